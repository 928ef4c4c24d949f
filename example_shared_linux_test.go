// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

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
