// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestUnlistable: a directory that may not be listed is read-only, and denied where a pattern
// could match in it; it stays as it is.
func TestUnlistable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // root lists everything
	}
	a := newArena(t)
	shut := a.ws + "/vendor"
	must(t, os.MkdirAll(shut+"/lib/.git/hooks", 0o755))
	write(t, shut+"/lib/secret.pem", "secret")
	must(t, os.Chmod(shut, 0o311))
	t.Cleanup(func() { must(t, os.Chmod(shut, 0o755)) })
	res := mustRun(t, a, &job{args: sh("echo x >vendor/lib/.git/hooks/pre-commit; mkdir vendor/lib/new; chmod 700 vendor; mv vendor moved; cat vendor/lib/secret.pem; echo x >own")})
	if res.out != "secret" || strings.Count(res.err, "Read-only file system") != 3 {
		t.Errorf("%+v", res)
	}
	if _, err := os.Stat(shut + "/lib/.git/hooks/pre-commit"); err == nil {
		t.Error("a hook was written")
	}
	policy := a.policy().WithEntries(sandbox.GlobEntry(a.ws + "/**/*.pem"))
	if res := mustRun(t, a, &job{policy: &policy, args: sh("cat vendor/lib/secret.pem")}); res.code == 0 || res.out != "" {
		t.Errorf("behind a pattern: %+v", res)
	}
}

// TestUnreadableConfig: no command starts where a configuration of git cannot be read.
func TestUnreadableConfig(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return
	}
	a := newArena(t)
	must(t, os.Mkdir(a.ws+"/conf", 0o755))
	write(t, a.ws+"/conf/more", "[core]\n\thooksPath = later\n")
	write(t, a.ws+"/.git/config", "[include]\n\tpath = ../conf/more\n")
	for _, name := range []string{"/.git/config", "/conf"} {
		must(t, os.Chmod(a.ws+name, 0))
		_, err := a.run(t, &job{args: sh("true")})
		var root *executor.RootError
		if !errors.As(err, &root) || root.Path != a.ws+name || root.Fix == "" || !strings.Contains(err.Error(), "ermission denied") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Chmod(a.ws+name, 0o755))
	}
	mustRun(t, a, &job{args: sh("true")})
}
