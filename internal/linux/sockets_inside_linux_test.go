// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// connecting connects to a socket by its path, and prints what the listener says.
const connecting = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print("said", s.recv(1000))
`

// TestSocketFromInside: at no level does a command reach who answers questions, or runs commands,
// for this user's processes: the directory of the sockets is hidden from it, or the listener refuses
// it. A process outside is let in. The walls are the state directory, and peer.Listen.
func TestSocketFromInside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	for level, want := range map[string]string{
		plan.LevelNative: "PermissionError", plan.LevelBwrap: "PermissionError",
		plan.LevelLandlock: "said b''",
	} {
		t.Run(level, func(t *testing.T) {
			a := atLevel(t, level)
			if lack := a.host.lacks(level); lack != nil {
				testenv.Lack(t, testenv.Programs, lack.Error())
			}
			dir, err := dirs.Dir()
			must(t, err)
			dir = filepath.Join(dir, "approvals")
			must(t, os.MkdirAll(dir, 0o700))
			path := filepath.Join(dir, "1-0123456789abcdef.sock")
			l, err := dirs.ListenSocket(path)
			must(t, err)
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, "let in")
					c.Close()
				}
			})
			defer serving.Wait()
			defer l.Close()
			for _, allow := range [][]string{nil, {"unix"}} {
				res, err := a.run(t, &job{args: []string{python, "-c", connecting, path}, allow: allow})
				must(t, err)
				if said := res.out + res.err; allow != nil && !strings.Contains(said, want) ||
					strings.Contains(said, "let in") {
					t.Errorf("allowed %q: %+v", allow, res)
				}
			}
			c, err := dirs.DialSocket(t.Context(), path, true)
			must(t, err)
			defer c.Close()
			if said, err := io.ReadAll(c); err != nil || string(said) != "let in" {
				t.Errorf("outside: %q, %v", said, err)
			}
		})
	}
}
