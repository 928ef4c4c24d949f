// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// childLine is what the child run prints, as a proof that it ran.
const childLine = "the ordinary user is here"

// TestProbes holds what the build machine promises: there, every probe must find
// its fact, as root and as an ordinary user.
func TestProbes(t *testing.T) {
	RunAsOrdinary(t)
	NeedUserNS(t)
	NeedLandlock(t, 1)
	NeedSeccomp(t)
	NeedProgram(t, "true")
}

// TestOrdinarySurroundings looks around: as root it finds root, in the child it
// finds a user without rights, a private home and temporary directory, and the
// package's testdata.
func TestOrdinarySurroundings(t *testing.T) {
	RunAsOrdinary(t)
	if data, err := os.ReadFile("testdata/hello.txt"); err != nil || len(data) == 0 {
		t.Errorf("testdata/hello.txt: %d bytes, %v", len(data), err)
	}
	if os.Geteuid() != ordinaryID {
		return
	}
	t.Log(childLine)
	if groups, err := os.Getgroups(); err != nil || len(groups) > 1 || len(groups) == 1 &&
		groups[0] != ordinaryID {
		t.Errorf("groups %v, %v; want none of root's", groups, err)
	}
	for _, dir := range []string{os.Getenv("HOME"), os.TempDir(), t.TempDir()} {
		if err := os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600); err != nil {
			t.Errorf("not writable: %v", err)
		}
	}
	const outside = "/sallyport-test-outside"
	if err := os.WriteFile(outside, nil, 0o600); err == nil {
		t.Errorf("the ordinary user could write %s", outside)
		_ = os.Remove(outside)
	}
}

func TestRunAsOrdinaryRuns(t *testing.T) {
	NeedRoot(t)
	cmd, err := ordinaryCommand(t, "TestOrdinarySurroundings")
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), childLine) {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestRunAsOrdinaryInClosedDir starts the child from a directory that only root
// may enter; it gets a copy of the testdata.
func TestRunAsOrdinaryInClosedDir(t *testing.T) {
	NeedRoot(t)
	closed := t.TempDir()
	if err := copyTree("testdata", filepath.Join(closed, "testdata")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(closed)
	cmd, err := ordinaryCommand(t, "TestOrdinarySurroundings")
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), childLine) {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestReport(t *testing.T) {
	tests := []struct {
		name   string
		output string
		err    error
		want   string
	}{
		{name: "passed", output: "--- PASS: TestA (0.00s)\n", want: "pass"},
		{name: "skipped", output: "--- SKIP: TestA (0.00s)\n", want: "skip"},
		{name: "failed", output: "--- FAIL: TestA (0.00s)\n", err: errors.New("exit status 1"), want: "fail"},
		{name: "died after passing", output: "--- PASS: TestA (0.00s)\n", err: errors.New("exit status 66"), want: "fail"},
		{name: "ran nothing", output: "testing: warning: no tests to run\nPASS\n", want: "fail"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fake := runFake(func(tb testing.TB) { report(tb, "TestA", test.output, test.err) })
			if fake.ended != test.want {
				t.Errorf("ended with %s %q, want %s", fake.ended, fake.message, test.want)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	const open, shut = 0o644, 0o600
	tests := []struct {
		name string
		file string
		mode os.FileMode
		want bool
	}{
		{name: "file for all", file: "a.go", mode: open, want: true},
		{name: "file for the owner", file: "a.go", mode: shut, want: false},
		{name: "testdata for the owner", file: "testdata/a", mode: shut, want: false},
		{name: "another package is not looked at", file: "sub/a.go", mode: shut, want: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, test.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, test.mode); err != nil {
				t.Fatal(err)
			}
			if got := readable(dir); got != test.want {
				t.Errorf("readable is %v, want %v", got, test.want)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outer, 0o700); err != nil {
		t.Fatal(err)
	}
	if reachable(inner) {
		t.Errorf("%s counts as reachable under a directory for its owner only", inner)
	}
	if !reachable("/") {
		t.Error("/ counts as out of reach")
	}
	if reachable(filepath.Join(outer, "missing")) {
		t.Error("a missing directory counts as reachable")
	}
}
