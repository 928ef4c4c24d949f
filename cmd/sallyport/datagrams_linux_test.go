// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestDatagrams: what programs do with datagram sockets and sendmsg(2) gives the same inside and
// outside.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	python := testenv.NeedProgram(t, "python3")
	program, err := os.ReadFile(filepath.Join("testdata", "datagrams.py"))
	must(t, err)
	output := func(args ...string) string {
		root := workRoot(t)
		must(t, os.WriteFile(root+"/program.py", program, 0o644))
		must(t, os.Mkdir(root+"/w", 0o755))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], append(args[1:], python, root+"/program.py")...)
		cmd.Dir = root + "/w"
		cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+root+"/state", "GORACE="+noRaceSleep)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, %s", args, err, &stderr)
		}
		return string(out)
	}
	if diff := cmp.Diff(output("env"), output("sallyport", "run", "--")); diff != "" {
		t.Errorf("outside and inside:\n%s", diff)
	}
}
