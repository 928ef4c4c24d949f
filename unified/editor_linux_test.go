// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestEditor: the answer to ":wq" is the end of vim.
func TestEditor(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "vim")
	tools, _ := newTools(t)
	tools.Term = "xterm-256color" // of which vim asks the version, and waits for the answer before it ends
	// What looks like a wait while it ends lasts microseconds.
	for i := range testenv.Rounds(8, 25) {
		name := fmt.Sprintf("file%d", i)
		first := exec(t, tools, tty("exec vim -i NONE "+name))
		if first.Reason != sallyport.ReasonInput {
			t.Fatalf("round %d: vim does not wait: %+v", i, first)
		}
		typed := say(t, tools, first, "itext\x1b")
		if typed.Reason != sallyport.ReasonInput {
			t.Fatalf("round %d: vim does not wait: %+v", i, typed)
		}
		last := say(t, tools, first, ":wq\r")
		if last.Reason != sallyport.ReasonExited {
			t.Fatalf("round %d: %s with %q", i, last.Reason, last.Output)
		}
		if text, err := os.ReadFile(filepath.Join(tools.Cmd.Dir, name)); err != nil ||
			string(text) != "text\n" {
			t.Fatalf("round %d: %q, %v", i, text, err)
		}
	}
}
