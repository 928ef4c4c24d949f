// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestStaged: all commands of Tools have the stage of Cmd, also at the same time.
func TestStaged(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tools, _ := newTools(t)
	tools.Cmd.Stage = new(executor.Staging)
	q, waits := sh("echo a >a; read x; cat b"), true
	q.Stdin, q.Until.InputWait = StdinPipe, &waits
	first := exec(t, tools, q)
	code(t, exec(t, tools, sh("cat a; echo b >b")), 0)
	code(t, say(t, tools, first, "x\n"), 0)
	if _, err := os.Stat(filepath.Join(tools.Cmd.Dir, "a")); err == nil {
		t.Error("the file itself was written")
	}
	all, err := tools.Runner.Stages(t.Context())
	if err != nil || len(all) != 1 || all[0].Changes != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}
