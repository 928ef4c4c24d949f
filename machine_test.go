// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSpecIdentity checks that the executor gets the identity that events carry.
func TestSpecIdentity(t *testing.T) {
	var c collector
	r, e := fakeRunner(&c, func(*executor.Spec, *fakeProcess) {})
	defer r.Close()
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	if e.spec.Run == "" || e.spec.Run != c.events[0].Run || e.spec.Attempt != 1 {
		t.Errorf("the Spec has run %q, attempt %d; the events have run %q", e.spec.Run, e.spec.Attempt, c.events[0].Run)
	}
	first := e.spec.Run
	s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if e.spec.Run != s.Info().Run || e.spec.Run == first || e.spec.Attempt != 1 {
		t.Errorf("the Spec has run %q, attempt %d; the session has run %q", e.spec.Run, e.spec.Attempt, s.Info().Run)
	}
}

// A knownHost is an executor that describes its machine as the test says.
type knownHost struct {
	fakeExecutor
	info    executor.HostInfo
	hostErr error
}

func (e *knownHost) Host(context.Context) (executor.HostInfo, error) { return e.info, e.hostErr }

func (e *knownHost) Places(context.Context, string, []string, string) (sandbox.Places, error) {
	return sandbox.Places{Dir: "/there"}, nil
}

func (e *knownHost) Shell(_ context.Context, name, script string, _ bool) ([]string, error) {
	return []string{name, script}, nil
}

// TestHost checks what a Runner asks of the machine of its executor.
func TestHost(t *testing.T) {
	base := []string{"Path=/bin", "PATH=/usr/bin"}
	run := func(t *testing.T, e *knownHost, c *Cmd) error {
		t.Helper()
		e.play = func(*executor.Spec, *fakeProcess) {}
		r := &Runner{Executor: e, Policy: sandbox.ReadOnly()}
		defer r.Close()
		_, err := r.Run(t.Context(), c)
		return err
	}
	t.Run("places and shell", func(t *testing.T) {
		e := &knownHost{info: executor.HostInfo{OS: "linux"}}
		if err := run(t, e, &Cmd{Script: "do it", Shell: "sh", Env: base}); err != nil {
			t.Fatal(err)
		}
		if e.spec.Dir != "/there" || !slices.Equal(e.spec.Args, []string{"sh", "do it"}) {
			t.Errorf("directory %q, arguments %q", e.spec.Dir, e.spec.Args)
		}
	})
	t.Run("the system decides about variables", func(t *testing.T) {
		for _, test := range []struct {
			system string
			kept   bool // Path, which is the same variable as PATH on Windows
		}{{"linux", true}, {"windows", false}, {"", true}} {
			e := &knownHost{info: executor.HostInfo{OS: test.system}}
			if err := run(t, e, &Cmd{Args: []string{"x"}, Env: base}); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(e.spec.Env, "Path=/bin") != test.kept {
				t.Errorf("system %q: environment %q", test.system, e.spec.Env)
			}
		}
	})
	t.Run("unknown", func(t *testing.T) {
		e := &knownHost{hostErr: errors.ErrUnsupported}
		if err := run(t, e, &Cmd{Args: []string{"x"}, Env: base}); err != nil {
			t.Error(err)
		}
	})
	t.Run("not reachable", func(t *testing.T) {
		broken := errors.New("no connection")
		if err := run(t, &knownHost{hostErr: broken}, &Cmd{Args: []string{"x"}, Env: base}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}
