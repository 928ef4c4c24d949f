// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestRunner: a Runner runs commands and sessions through an exec-server, in the sandbox of its
// policy.
func TestRunner(t *testing.T) {
	testenv.NeedUserNS(t)
	e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
	closed(t, e)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Executor: e}
	closed(t, r)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := os.CreateTemp("/tmp", "sallyport-remote")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(seen.Close(), os.Remove(seen.Name())) })
	for _, test := range []struct {
		name string
		cmd  sallyport.Cmd
		out  string
		code int
	}{
		{"arguments", sallyport.Cmd{Args: []string{"/bin/sh", "-c", "echo a >f; cat f; exit 3"}}, "a\n", 3},
		{"script", sallyport.Cmd{Script: "echo $((1+1))"}, "2\n", 0},
		{"denied", sallyport.Cmd{Args: []string{"/bin/sh", "-c", "echo x >/etc/x 2>/dev/null || echo no"}}, "no\n", 0},
		{"private /tmp", sallyport.Cmd{Script: "test -e " + seen.Name() + " && echo seen"}, "", 1},
		{"machine's /tmp", sallyport.Cmd{Script: "test -e " + seen.Name() + " && echo seen", Tmp: "host"}, "seen\n", 0},
		{"input", sallyport.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("typed")}, "typed", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cmd.Dir = dir
			result, err := r.Run(t.Context(), &test.cmd)
			if err != nil || result.Stdout.String() != test.out || result.ExitCode != test.code ||
				!slices.Contains([]string{"native", "bwrap"}, result.Sandbox.Level) {
				t.Errorf("%+v, %v, %q", result, err, result.Stdout.String())
			}
		})
	}
}
