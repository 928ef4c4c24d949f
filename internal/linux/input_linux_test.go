// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An inputCase is a request that cannot be started.
type inputCase struct {
	name string
	job  job
	want []string         // must stand in the error
	is   func(error) bool // its kind; nil for any
	make func(a *arena)   // prepares the arena
	dir  func(a *arena) string
}

func notFound(err error) bool {
	var e *executor.StartError
	return errors.As(err, &e) && e.NotFound
}

func cannotRun(err error) bool {
	var e *executor.StartError
	return errors.As(err, &e) && !e.NotFound
}

func badDir(err error) bool {
	var e *executor.DirError
	return errors.As(err, &e)
}

func badRoot(err error) bool {
	var e *executor.RootError
	return errors.As(err, &e)
}

func unknownOpening(err error) bool {
	var e *seccomp.UnknownOpeningError
	return errors.As(err, &e)
}

func policyOf(roots ...string) *sandbox.Policy {
	p := sandbox.WorkspaceWrite(roots...)
	if path.IsAbs(roots[0]) { // others are left for the policy to refuse
		p = bind(p, "/")
	}
	return &p
}

func inputCases() []inputCase {
	script := func(name, text string, mode os.FileMode) func(*arena) {
		return func(a *arena) { _ = os.WriteFile(a.ws+"/"+name, []byte(text), mode) }
	}
	return []inputCase{
		{name: "missing program", job: job{args: []string{"no-such-program"}}, want: []string{"no-such-program", "not found"}, is: notFound},
		{name: "missing path", job: job{args: []string{"./none"}}, want: []string{"./none", "not found"}, is: notFound},
		{name: "below a file", job: job{args: []string{"./file/x"}}, want: []string{"not found"}, is: notFound},
		{name: "empty program", job: job{args: []string{""}}, is: notFound},
		{name: "directory", job: job{args: []string{"./dir"}}, want: []string{"directory"}, is: cannotRun},
		{name: "not executable", job: job{args: []string{"./file"}}, want: []string{"permission denied"}, is: cannotRun},
		{name: "no interpreter line", job: job{args: []string{"./plain"}}, make: script("plain", "echo hi\n", 0o755), want: []string{"#!"}, is: cannotRun},
		{name: "missing interpreter", job: job{args: []string{"./lost"}}, make: script("lost", "#!/no/such/shell\n", 0o755), is: func(err error) bool { return notFound(err) || cannotRun(err) }},
		{name: "broken link", job: job{args: []string{"./broken"}}, make: func(a *arena) { _ = os.Symlink("nowhere", a.ws+"/broken") }, want: []string{"not found"}, is: notFound},
		{name: "no PATH", job: job{args: []string{"true"}, env: []string{"A=1"}}, want: []string{"PATH"}, is: notFound},
		{name: "relative PATH", job: job{args: []string{"planted"}, env: []string{"PATH=.::dir"}}, make: script("planted", "#!/bin/sh\n", 0o755), is: notFound},
		{name: "huge argument", job: job{args: []string{"/bin/true", strings.Repeat("x", 2<<20)}}, want: []string{"too large"}, is: cannotRun},
		{name: "missing directory", job: job{args: []string{"/bin/true"}}, dir: func(a *arena) string { return a.ws + "/none" }, want: []string{"does not exist"}, is: badDir},
		{name: "file as directory", job: job{args: []string{"/bin/true"}}, dir: func(a *arena) string { return a.ws + "/file" }, want: []string{"not a directory"}, is: badDir},
		{name: "relative root", job: job{args: []string{"/bin/true"}, policy: policyOf("some/where")}},
		{name: "missing root", job: job{args: []string{"/bin/true"}, policy: policyOf("/no/such/root")}, want: []string{"/no/such/root", "does not exist"}, is: badRoot},
		{name: "device as root", job: job{args: []string{"/bin/true"}, policy: policyOf("/dev/null")}},
		{name: "unknown opening", job: job{args: []string{"/bin/true"}, allow: []string{"everything"}}, want: []string{"everything", "ptrace"}, is: unknownOpening},
	}
}

// entriesOf is what is in a directory.
func entriesOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return fmt.Sprint(entries)
}

func TestBadInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range inputCases() {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			if test.make != nil {
				test.make(a)
			}
			if test.dir != nil {
				test.job.dir = test.dir(a)
			}
			unchanged(t, a.ws+"/.git", a.ws+"/dir", a.out)
			before := entriesOf(t, a.ws)
			_, err := a.run(t, &test.job)
			if err == nil {
				t.Fatal("it was started")
			}
			t.Log(err)
			for _, w := range test.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if test.is != nil && !test.is(err) {
				t.Errorf("%T %v is of the wrong kind", err, err)
			}
			if len(err.Error()) > 1000 || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("the error has %d bytes or several lines", len(err.Error()))
			}
			// The host goes on as if nothing had been.
			if res := mustRun(t, a, &job{args: sh(`echo fine`)}); res.out != "fine\n" {
				t.Errorf("afterwards: %+v", res)
			}
			must(t, a.host.Close())
			if after := entriesOf(t, a.ws); after != before {
				t.Errorf("%q is in the workspace, before it was %q", after, before)
			}
		})
	}
	t.Run("unknown level", func(t *testing.T) {
		a := newArena(t)
		r := a.request(&job{args: sh(`:`)})
		r.Level = "strong"
		if _, err := a.start(r, nil, os.Stdin, os.Stdout, os.Stderr); err == nil ||
			!strings.Contains(err.Error(), "strong") {
			t.Errorf("%v", err)
		}
	})
}

// TestBadStateDirectory needs a directory for the private /tmp and does not get one.
func TestBadStateDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, state := range map[string]func(a *arena) string{
		"a file":       func(a *arena) string { return a.out + "/canary" },
		"below a file": func(a *arena) string { return a.out + "/canary/x" },
		"missing":      func(*arena) string { return "/proc/none" },
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			t.Setenv("XDG_STATE_HOME", state(a))
			_, err := a.run(t, &job{args: sh(`:`)})
			if err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("of somebody else", func(t *testing.T) {
		a := newArena(t)
		// A link stands where the directory would.
		must(t, os.Mkdir(a.base+"/xdg", 0o755))
		must(t, os.Symlink(a.out, a.base+"/xdg/sallyport"))
		t.Setenv("XDG_STATE_HOME", a.base+"/xdg")
		unchanged(t, a.out)
		if _, err := a.run(t, &job{args: sh(`:`)}); err == nil {
			t.Error("a link was taken for the state directory")
		}
	})
}

// TestInsideAnotherSandbox runs a front end in a sandbox: it cannot make user
// namespaces there and says so.
func TestInsideAnotherSandbox(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	res := mustRun(t, a, &job{args: []string{os.Getenv(programVar), partFront, "start", "ws=" + a.ws,
		"args=/bin/sh\x01-c\x01echo ran"}})
	if !strings.Contains(res.out, "UnsupportedError") || !strings.Contains(res.out, "user namespace") ||
		!strings.Contains(res.out, "filter") || strings.Contains(res.out, "ran\n") {
		t.Errorf("%+v", res)
	}
}

// TestMetadataOfInput passes files and directories outside as standard input. The
// command must not change their metadata through the descriptor.
func TestMetadataOfInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for name, path := range map[string]string{"file": a.out + "/canary", "directory": a.out + "/dir",
		"null device": os.DevNull} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(path)
			must(t, err)
			defer f.Close()
			if path != os.DevNull {
				unchanged(t, a.out)
			}
			a.expect(t, wordDenied, &job{stdin: f}, []string{"input-metadata", "input-beneath"})
		})
	}
	t.Run("offset", func(t *testing.T) {
		f, err := os.Open(a.out + "/canary")
		must(t, err)
		defer f.Close()
		_, err = f.Seek(3, 0)
		must(t, err)
		if res := mustRun(t, a, &job{stdin: f, args: sh(`cat`)}); res.out != "ary" {
			t.Errorf("%+v", res)
		}
	})
}
