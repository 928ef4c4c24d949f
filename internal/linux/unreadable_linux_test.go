// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
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
	if res := mustRun(t, a, &job{policy: &policy, args: sh("cat vendor/lib/secret.pem")}); res.code == 0 ||
		res.out != "" {
		t.Errorf("behind a pattern: %+v", res)
	}
}

// TestUnlistableMoved: a directory that cannot be listed stays closed where the one above it is moved.
func TestUnlistableMoved(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // root lists everything
	}
	a := newArena(t)
	must(t, os.MkdirAll(a.ws+"/above/shut", 0o755))
	must(t, os.Chmod(a.ws+"/above/shut", 0o311))
	moved := a.ws + "/moved/shut"
	res := mustRun(t, a, &job{args: sh("mv above moved; mkdir moved/shut/.git; echo x >moved/shut/own; mv moved/shut out; rmdir moved/shut")})
	must(t, os.Chmod(moved, 0o755))
	if strings.Count(res.err, "Read-only file system") != 2 || strings.Count(res.err, "busy") != 2 {
		t.Errorf("%+v", res)
	}
	if left, err := os.ReadDir(moved); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestInotifyLeft: a command cannot use up what watches outside need, and gets its part.
func TestInotifyLeft(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	all := a.host.Facts().Watch["max_inotify_instances"]
	if all < 8 {
		t.Fatalf("the limit outside is %d", all)
	}
	got := a.attack(t, &job{}, []string{"inotify"})["inotify"]
	if want := strconv.Itoa(all / 4); got.word != wordOK || got.detail != want {
		t.Errorf("instances: %v, want %s", got, want)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must(t, err)
	unix.Close(fd)
}

// inotifyInstances says how many there can be at most.
func inotifyInstances() map[string]attack {
	return map[string]attack{"inotify": func(map[string]string) outcome {
		const most = 1 << 16
		for n := range most {
			if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
				return fine("%d", n)
			}
		}
		return bad("no limit")
	}}
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
		if !errors.As(err, &root) || root.Path != a.ws+name || root.Fix == "" ||
			!strings.Contains(err.Error(), "ermission denied") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Chmod(a.ws+name, 0o755))
	}
	mustRun(t, a, &job{args: sh("true")})
}
