// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestManyConnections: the observer makes connections for a command on threads that give
// up rights for it. Whatever becomes of such a thread, the command goes on.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "python3")
	ws := filepath.Join(workRoot(t), "w")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	const text = `
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen(100)
for i in range(100):
    c = socket.socket(socket.AF_UNIX); c.connect("sock"); s.accept()[0].close(); c.close()
sys.exit(7)
`
	for range 4 {
		cmd := exec.CommandContext(t.Context(), "sallyport", "run", "-q", "--", "python3", "-c", text)
		cmd.Dir, cmd.Env = ws, append(testenv.Environ(), "XDG_STATE_HOME="+
			filepath.Join(filepath.Dir(ws), "state"))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 7 {
			t.Fatalf("%v, %s", err, out)
		}
		if err := os.Remove(filepath.Join(ws, "sock")); err != nil {
			t.Fatal(err)
		}
	}
}
