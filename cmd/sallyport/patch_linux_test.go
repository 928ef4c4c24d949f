// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestPatchVectors: the recordings of apply_patch, through the command.
func TestPatchVectors(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	testenv.EachPatchVector(t, "../../internal/patch/testdata/vectors",
		func(t *testing.T, _, dir, patch string) (string, bool) {
			cmd := s.command(t, "sallyport", "patch", "-s", "full-access", "-C", dir, "-")
			var out bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(patch), &out, &out
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
				return out.String(), true
			} else if err != nil {
				t.Fatal(err)
			}
			return out.String(), false
		})
}
