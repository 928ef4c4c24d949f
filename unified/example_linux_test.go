// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
	"github.com/sallyport-dev/sallyport/unified"
)

// A shell on a terminal is started once and then told what to do. Every call answers as
// soon as the shell waits for the next line.
func Example() {
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
	defer r.Close()
	tools := &unified.Tools{Runner: r}
	defer tools.Close()

	ctx := context.Background()
	first, err := tools.ExecCommand(ctx, unified.Request{Command: "PS1='$ ' exec sh -i",
		Shell: "sh", TTY: true})
	if err != nil {
		log.Fatal(err)
	}
	second, err := tools.WriteStdin(ctx, unified.WriteRequest{SessionID: first.SessionID,
		Chars: "echo $((6*7))\n"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(string(second.Output), "42"), second.Reason)

	last, err := tools.WriteStdin(ctx, unified.WriteRequest{SessionID: first.SessionID, Chars: "exit 3\n"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(last.Reason, *last.ExitCode)
	// Output:
	// true input_wait
	// exited 3
}
