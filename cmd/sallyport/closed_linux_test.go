// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestNullDevice: the null device for both directions, as Python and Node give it, is no closed stream, also
// where a shell is between; standard output that such a program has closed itself is one.
func TestNullDevice(t *testing.T) {
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
		if code := cmd.ProcessState.ExitCode(); code != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, code, test.want)
		}
	}
}
