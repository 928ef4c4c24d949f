// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The example asks a shell something. Each wait ends when its prompt is there.
func ExampleRunner_Start() {
	ctx := context.Background()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
	defer r.Close()

	s, err := r.Start(ctx, &sallyport.Cmd{
		Args: []string{"sh", "-i"},
		TTY:  &sallyport.Size{Cols: 80, Rows: 24},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	if _, err := s.Yield(ctx, time.Minute); err != nil { // the first prompt
		log.Fatal(err)
	}
	fmt.Fprintln(s, "echo $((6 * 7))")
	out, err := s.Yield(ctx, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(out.String()) { // its echo, the answer, the next prompt
		if line = strings.TrimSpace(line); line == "42" {
			fmt.Println(line)
		}
	}
	// Output: 42
}

// Commands of a shared sandbox have one /tmp and one network, and each its own policy.
func ExampleRunner_Open() {
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
	defer r.Close()
	ctx := context.Background()
	in, err := r.Open(ctx, sallyport.SandboxOptions{})
	if err != nil {
		log.Fatal(err) // there are no shared sandboxes here
	}
	defer in.Close()
	for _, text := range []string{"echo a note >/tmp/note", "cat /tmp/note"} {
		res, err := in.Run(ctx, sallyport.Script(text))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(res.Output)
	}
	// Output: a note
}
