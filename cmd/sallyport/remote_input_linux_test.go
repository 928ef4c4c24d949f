// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRemoteInput: input of a run on another server that cannot be read is no success of the run, and a
// command that reads no further is one. A limit on output holds there as here.
func TestRemoteInput(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	long := strings.Repeat("x", 1<<20)
	const broken = "sallyport: the input of the command is not complete: read /dev/stdin: is a directory\n"
	for _, test := range []struct {
		name    string
		input   string // "/" and what follows is a file that is there
		command []string
		code    int
		out     string
		errs    string
	}{
		{"a directory", "/", []string{"cat"}, 125, "", broken},
		{"a directory, and a failure", "/", []string{"sh", "-c", "cat; exit 3"}, 3, "", broken},
		{"the null device", os.DevNull, []string{"cat"}, 0, "", ""},
		{"another device", "/dev/zero", []string{"head", "-c", "3"}, 0, "\x00\x00\x00", ""},
		{"a device that is not read", "/dev/zero", []string{"true"}, 0, "", ""},
		{"all", "words\n", []string{"cat"}, 0, "words\n", ""},
		{"not read", long, []string{"true"}, 0, "", ""},
		{"read in part", long, []string{"head", "-c", "3"}, 0, "xxx", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := d.command(t, append([]string{"sallyport", "run", "--remote", url, "-C", d.work, "--"},
				test.command...)...)
			cmd.Stdin = strings.NewReader(test.input)
			if test.input[0] == '/' {
				f, err := os.Open(test.input)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd.Stdin = f
			}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run()
			if code := testenv.Code(cmd.ProcessState); code != test.code || out.String() != test.out ||
				errs.String() != test.errs {
				t.Errorf("exit code %d, %q, %q", code, out.String(), errs.String())
			}
		})
	}
	out, _, _ := d.run(t, "run", "--remote", url, "-C", d.work, "--output", "1000", "--", "yes")
	if len(out) != 1000 {
		t.Errorf("of a limit of 1000 bytes %d came", len(out))
	}
}
