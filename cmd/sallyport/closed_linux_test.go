// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestNullInput: standard input that a shell has closed is one that fails, but not where such a shell gives
// commands in the background the null device for both directions.
func TestNullInput(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	text, err := os.ReadFile(testenv.NeedProgram(t, "bash")) // which has its own input open, as those have
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"bash": 1, "zsh": 0, "tcsh": 0} {
		shell := filepath.Join(dir, name)
		if err := testenv.WriteProgram(shell, text); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), shell, "-c",
			"sallyport run -s full-access -- cat <&-; exit $?")
		cmd.Stdin, cmd.Env, cmd.Dir = in, append(testenv.Environ(), "XDG_STATE_HOME="+
			t.TempDir()), t.TempDir()
		out, _ := cmd.CombinedOutput()
		_ = in.Close()
		if code := testenv.Code(cmd.ProcessState); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, want, out)
		}
	}
}

// TestNullDevice: the null device for both directions, as Python and Node give it, is no closed stream, also
// where a shell is between; standard output that such a program has closed itself is one.
func TestNullDevice(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, test := range []struct {
		name string
		args []string
		want int
	}{
		{"given", []string{"sallyport", "version"}, 0},
		{"given to a shell", []string{"sh", "-c", "sallyport version; exit $?"}, 0},
		{"given to a launcher", []string{"timeout", "60", "sallyport", "version"}, 0},
		{"closed by a shell for a launcher", []string{"sh", "-c", "exec 3</; timeout 60 sallyport version >&-; exit $?"}, 125},
		{"closed for a shell", []string{"sh", "-c", "exec >&-; sallyport version; exit $?"}, 125},
	} {
		cmd := exec.CommandContext(t.Context(), test.args[0], test.args[1:]...)
		cmd.Stdout, cmd.Env = null, testenv.Environ()
		_ = cmd.Run()
		if code := testenv.Code(cmd.ProcessState); code != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, code, test.want)
		}
	}
}
