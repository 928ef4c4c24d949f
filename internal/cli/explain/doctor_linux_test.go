// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// checksVar makes the test binary print the checks, a line each.
const checksVar = "DOCTOR_TEST_CHECKS"

// asChecks makes this program check the machine, where that is asked for, and reports whether it did.
func asChecks() bool {
	if os.Getenv(checksVar) == "" {
		return false
	}
	fmt.Println()
	for _, c := range Checks(context.Background()) {
		fmt.Printf("%s=%v %s\n", c.Name, c.OK, c.Detail)
	}
	return true
}

// needAll skips a test on a machine without the native level, and gives it a state directory.
func needAll(t *testing.T) {
	t.Helper()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedLandlock(t, 6)
	testenv.NeedSeccomp(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(visible(t), "state"))
}

// visible makes a directory that commands see, as opposed to one in /tmp.
func visible(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-doctor-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// descriptors lists what is open.
func descriptors(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil {
			out = append(out, to)
		}
	}
	return out
}

func TestChecks(t *testing.T) {
	needAll(t)
	Checks(t.Context()) // opens what the process keeps
	before := descriptors(t)
	checks := Checks(t.Context())
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("%q are open, before it was %q", after, before)
	}
	needed := 0
	for _, c := range checks {
		if c.Needed {
			needed++
		}
		if c.Name == "" || c.Detail == "" || c.Needed && !c.OK {
			t.Errorf("%+v", c)
		}
	}
	if needed != 9 {
		t.Errorf("%d parts are needed", needed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range Checks(ctx) {
		if c.OK || !strings.HasPrefix(c.Detail, "not tried") {
			t.Errorf("%+v", c)
		}
	}
}

func TestLevels(t *testing.T) {
	needAll(t)
	if _, lack := linux.FindBubblewrap(); lack != nil {
		testenv.Lack(t, testenv.Programs, lack.Error())
	}
	before := descriptors(t)
	for _, c := range Levels(t.Context()) {
		if !c.Available || c.Why != "" || len(c.Holds) == 0 || (len(c.Lacks) == 0) != (c.Level == "native") {
			t.Errorf("%+v", c)
		}
	}
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("%q are open, before it was %q", after, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range Levels(ctx) {
		if c.Available || !strings.HasPrefix(c.Why, "not tried") {
			t.Errorf("%+v", c)
		}
	}
}

// TestInsideSandbox checks a machine that refuses namespaces: each part that needs them says
// so, and the others do not fail with it.
func TestInsideSandbox(t *testing.T) {
	needAll(t)
	ws := visible(t)
	program := filepath.Join(ws, "program")
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = testenv.WriteProgram(program, self)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var host linux.Host
	defer host.Close()
	c, err := host.Start(t.Context(), &executor.Spec{
		Args: []string{program}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin", checksVar + "=1"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws},
			SlashTmp: "/tmp"}),
	}, [3]*os.File{null, w, w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	_, _, err = c.Wait()
	if err := errors.Join(err, c.Kill(), c.WaitAll(), c.Close(new(executor.Exit))); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"user namespace": "false", "mount namespace": "false", "pid namespace": "false", "network namespace": "false", "routes": "false",
		"whole sandbox": "false", "landlock": "true", "private /tmp": "true",
	} {
		if !strings.Contains(string(out), "\n"+name+"="+want+" ") {
			t.Errorf("%s is not %s", name, want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func TestAtLeast(t *testing.T) {
	for _, test := range []struct {
		name, release string
		want          bool
	}{
		{"same", "5.11.0", true}, {"newer", "6.1-rc2", true}, {"newer minor", "5.15.0-generic", true},
		{"older", "5.10.9", false}, {"much older", "4.19", false}, {"suffix", "5.11-rc1", true}, {"no number", "x.y", false}, {"empty", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := atLeast(test.release, 5, 11); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestCause checks how errors are reported.
func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		name        string
		err         error
		detail, fix string
	}{
		{"missing", missing("no wall", "build one"), "no wall", "build one"},
		{"unsupported", &sandbox.UnsupportedError{Need: "a", Have: "b", Hint: "c"}, "b", "c"},
		{"no better hint", &sandbox.UnsupportedError{Need: "a", Have: "b", Hint: hostfacts.SeeDoctor}, "b", "no usual cause"},
		{"other", syscall.ENOSPC, "no space", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			detail, fix := describe(test.err)
			if !strings.Contains(detail, test.detail) || !strings.HasPrefix(fix, test.fix) ||
				test.fix == "" && fix != "" {
				t.Errorf("%q %q", detail, fix)
			}
		})
	}
}
