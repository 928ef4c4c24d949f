// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"io"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestGoPipe: the ends of an os.Pipe are streams as programs expect them: a shell waits for its
// input, and for room for its output.
func TestGoPipe(t *testing.T) {
	var e Executor
	defer e.Close()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Start(t.Context(), &executor.Spec{
		Args: []string{"/bin/sh", "-c", "echo ready; read x; echo got $x; exec head -c 1000000 /dev/zero"},
		Dir:  "/", Env: os.Environ(),
		Policy: sandbox.FullAccess(), Stdin: stdin, Stdout: stdout,
	})
	if err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	stdout.Close()
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(out, ready); err != nil {
		t.Fatal(err)
	}
	if _, err := in.WriteString("it\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil || len(rest) != len("got it\n")+1_000_000 || string(rest[:7]) != "got it\n" {
		t.Errorf("%d bytes, %.20q, %v", len(rest), rest, err)
	}
	if x, err := p.Wait(); err != nil || x.Code != 0 {
		t.Errorf("%+v, %v", x, err)
	}
	in.Close()
	out.Close()
}
