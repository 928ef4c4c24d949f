// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestRetry: with Cmd.Retry a command that was denied something is run again with what was approved, whatever
// it reads from.
func TestRetry(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, stdin := range []Stdin{StdinNull, StdinPipe, StdinTTY} {
		t.Run(string(stdin), func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") //nolint:usetesting // commands have a /tmp of their own
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			ws, out := filepath.Join(dir, "ws"), filepath.Join(dir, "out")
			for _, d := range []string{ws, out} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite("."),
				Approver: approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
					return approval.Decision{Answer: approval.Approved}, nil
				})}
			tools := &Tools{Runner: r, Cmd: sallyport.Cmd{Dir: ws, Retry: true}}
			defer func() {
				if err := tools.Close(); err != nil {
					t.Error(err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			no := false
			got, err := tools.ExecCommand(t.Context(), Request{
				Command: "echo x >>../out/file || exit 3; echo done", Stdin: stdin, Yield: 30 * time.Second,
				Until: Conditions{InputWait: &no},
			})
			if err != nil || got.ExitCode == nil || *got.ExitCode != 0 ||
				!strings.Contains(string(got.Output), "done") {
				t.Fatalf("%+v, %v", got, err)
			}
		})
	}
}
