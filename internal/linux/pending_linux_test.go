// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/pending"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// answering approves the open question at a socket, and prints what the listener says.
const answering = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b'{"version":1,"do":"answer","id":"abc-1","decision":"approved"}\n')
print(s.recv(1000))
`

// TestAnswerFromInside: at no level does a command answer a question, whether the directory of the
// sockets is hidden from it or the listener refuses it. A process outside does.
func TestAnswerFromInside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	for level, want := range map[string]string{
		plan.LevelNative: "PermissionError", plan.LevelBwrap: "PermissionError", plan.LevelLandlock: `"error":"confined"`,
	} {
		t.Run(level, func(t *testing.T) {
			a := atLevel(t, level)
			if lack := a.host.lacks(level); lack != nil {
				testenv.Lack(t, testenv.Programs, lack.Error())
			}
			var memory approval.Memory
			passes := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				return approval.Decision{}, approval.ErrPass
			})
			p := &pending.Post{Beside: passes, Wait: time.Hour, Remembered: memory.List, Revoke: memory.Revoke, Failed: func(err error) { t.Error(err) }}
			defer p.Close()
			p.Announce("abc-1")
			asked := make(chan approval.Answer, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				d, _ := p.Approve(ctx, &approval.Request{ID: "abc-1", Available: []approval.Answer{approval.Approved}}) // denied after an error
				asked <- d.Answer
			}()
			dir, err := state.Dir()
			must(t, err)
			sockets, err := filepath.Glob(dir + "/approvals/*.sock")
			if must(t, err); len(sockets) != 1 {
				t.Fatal(sockets)
			}
			for _, allow := range [][]string{nil, {"unix"}} {
				res, err := a.run(t, &job{args: []string{python, "-c", answering, sockets[0]}, allow: allow})
				must(t, err)
				if said := res.out + res.err; allow != nil && !strings.Contains(said, want) || strings.Contains(said, `b'{"version":1}`) {
					t.Errorf("allowed %q: %+v", allow, res)
				}
			}
			select {
			case d := <-asked:
				t.Fatalf("it was answered: %v", d)
			default:
			}
			open, err := pending.List("")
			must(t, err)
			if err := open.Answer("abc-1", approval.Approved, ""); err != nil || <-asked != approval.Approved {
				t.Errorf("the user's answer: %v", err)
			}
		})
	}
}
