// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCeiling: the managed configuration of the server's machine bounds what a remote executor starts, with
// the policies that Runners have.
func TestCeiling(t *testing.T) {
	testenv.NeedUserNS(t)
	etc, ws, out := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(etc, "managed.toml"),
		[]byte("sandbox = \"workspace-write\"\ndeny = [\""+out+"\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := execserver.New(execserver.Options{Dir: "/", Environ: os.Environ(), Managed: etc})
	e := remote.New(remote.Options{Dial: s.Dial})
	closed(t, s)
	closed(t, e)
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		over   string // empty for nothing
	}{
		{"full access", sandbox.FullAccess(), "full-access"},
		{"full access without a network", sandbox.FullAccess().WithNetwork(sandbox.NetworkNone), "full-access"},
		{"the workspace", sandbox.WorkspaceWrite(), ""},
		{"read-only", sandbox.ReadOnly(), ""},
		{"another directory", sandbox.WorkspaceWrite().WithEntries(sandbox.PathEntry("/opt", sandbox.LevelWrite)), "/opt"},
		{"what is denied", sandbox.WorkspaceWrite().WithEntries(sandbox.PathEntry(out+"/x", sandbox.LevelRead)), out + "/x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &executor.Spec{Args: []string{"/bin/sh", "-c", "! ls " + out}, Dir: ws,
				Env: []string{"PATH=/usr/bin:/bin"}, Tmp: "host"}
			places, err := e.Places(t.Context(), ws, spec.Env, "host")
			if err != nil {
				places = sandbox.Places{Dir: ws, SlashTmp: "/tmp"}
			}
			spec.Policy = test.policy.Bind(places)
			p, err := e.Start(t.Context(), spec)
			if test.over != "" {
				if err == nil || !strings.Contains(err.Error(), "process/start "+test.over+
					" is more than the managed configuration allows (") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if exit, err := p.Wait(); err != nil || exit.Code != 0 {
				t.Errorf("%+v, %v: what is denied was listed", exit, err)
			}
		})
	}
}

// TestCeilingConfine: limits and walls of a remote executor are bounded by the managed configuration, and
// hold beside it.
func TestCeilingConfine(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	etc, ws := t.TempDir(), t.TempDir()
	settings := "protect_hard_links = true\nobserver = true\n[limits]\npids = 60\n"
	if err := os.WriteFile(filepath.Join(etc, "managed.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := execserver.New(execserver.Options{Dir: "/", Environ: os.Environ(), Managed: etc})
	e := remote.New(remote.Options{Dial: s.Dial})
	closed(t, s)
	closed(t, e)
	for _, test := range []struct {
		name string
		ask  func(*executor.Spec)
		over string  // empty for nothing
		pids float64 // that hold
	}{
		{"nothing", func(*executor.Spec) {}, "", 60},
		{"fewer processes", func(s *executor.Spec) { s.Resources.PIDs = 50 }, "", 50},
		{"more processes", func(s *executor.Spec) { s.Resources.PIDs = 70 }, "70", 0},
		{"no observer", func(s *executor.Spec) { s.NoObserver = true }, "false", 0},
		{"no caches", func(s *executor.Spec) { s.NoCaches = true }, "", 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &executor.Spec{Args: []string{"/bin/sh", "-c", "echo x >>linked"}, Dir: ws,
				Env: []string{"PATH=/usr/bin:/bin"}, Tmp: "host"}
			linked := filepath.Join(ws, "linked")
			_, _ = os.Remove(linked), os.Remove(linked+"2")
			if err := os.WriteFile(linked, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(linked, linked+"2"); err != nil {
				t.Fatal(err)
			}
			spec.Policy = sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"})
			test.ask(spec)
			p, err := e.Start(t.Context(), spec)
			if test.over != "" {
				if err == nil || !strings.Contains(err.Error(), test.over+
					" is more than the managed configuration allows (") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait()
			if err != nil || exit.Code == 0 {
				t.Fatalf("%+v, %v: a file with another name was written", exit, err)
			}
			if len(exit.Limits) != 1 || exit.Limits[0].Value != test.pids {
				t.Errorf("%+v", exit.Limits)
			}
		})
	}
}
