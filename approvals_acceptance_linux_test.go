// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The scripts of the rows: in and out of the workspace, each time with a line in count.
const (
	writeIn  = "echo ran >>count; echo x >in || exit 1"
	writeOut = "echo ran >>count; echo x >>../out/file || exit 1"
)

// approvalRows are rows of the acceptance list of orchestration, in a real sandbox.
var approvalRows = []struct {
	name      string
	policy    sandbox.Policy
	approval  approval.Policy
	script    string
	escalate  bool
	answers   []approval.Answer // of the questions, in order
	wantAsked int
	runs      int  // lines in count
	writes    bool // the file is there
	refused   bool // it did not run
	says      string
}{
	{"C1 full access, on-request", sandbox.FullAccess(), approval.OnRequest, writeOut, false, nil, 0, 1, true, false, ""},
	{"C3 full access, never", sandbox.FullAccess(), approval.Never, writeOut, false, nil, 0, 1, true, false, ""},
	{"C4 read-only, on-request, escalated and approved", sandbox.ReadOnly(), approval.OnRequest, writeOut, true, []approval.Answer{approval.Approved}, 1, 1, true, false, ""},
	{"C4 escalated and denied", sandbox.ReadOnly(), approval.OnRequest, writeOut, true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"C4 read-only, on-request, echo", sandbox.ReadOnly(), approval.OnRequest, "echo x", false, nil, 0, 0, false, false, "x"},
	{"C5 read-only, untrusted: two questions", sandbox.ReadOnly(), approval.Untrusted, "echo x >in || exit 1", false, []approval.Answer{approval.Approved, approval.Approved}, 2, 0, true, false, ""},
	{"C6 read-only, never", sandbox.ReadOnly(), approval.Never, "echo x >in || exit 1", false, nil, 0, 0, false, false, "Read-only file system"},
	{"C7 workspace-write, inside", sandbox.WorkspaceWrite("."), approval.OnRequest, writeIn, false, nil, 0, 1, true, false, ""},
	{"C7 outside, escalated", sandbox.WorkspaceWrite("."), approval.OnRequest, writeOut, true, []approval.Answer{approval.Approved}, 1, 1, true, false, ""},
	{"C7 outside, never", sandbox.WorkspaceWrite("."), approval.Never, writeOut, false, nil, 0, 1, false, false, "Read-only file system"},
	{"C8 an escalated safe command is asked about", sandbox.WorkspaceWrite("."), approval.OnRequest, "echo x", true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"C8 granular without sandbox_approval", sandbox.WorkspaceWrite("."), approval.Granular{Rules: true}.Policy(), "echo x", true, nil, 0, 0, false, true, "sandbox_approval is false"},
	{"C10 the first part is safe", sandbox.WorkspaceWrite("."), approval.OnRequest, "cat /dev/null && touch in", true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"M1 granular, a denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), writeOut, false, []approval.Answer{approval.Approved}, 1, 2, true, false, ""},
	{"M2 untrusted, a denial: two questions", sandbox.WorkspaceWrite("."), approval.Untrusted, writeOut, false, []approval.Answer{approval.Approved, approval.Denied}, 2, 1, false, false, "Read-only file system"},
	{"M3 words are no denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), "echo ran >>count; echo log line: permission denied; exit 1", false, nil, 0, 1, false, false, "log line: permission denied"},
	{"M4 a late denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), "sleep 0.5; " + writeOut, false, []approval.Answer{approval.Approved}, 1, 2, true, false, ""},
	{"exit code 0 is not asked about", sandbox.WorkspaceWrite("."), approval.OnRequest, "echo ran >>count; echo x >>../out/file; true", false, nil, 0, 1, false, false, ""},
}

// TestApprovalRows: what is asked, what runs and how often, and what it leaves.
func TestApprovalRows(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, row := range approvalRows {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, row.policy)
			r.Approval = row.approval
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				if asked > len(row.answers) {
					return approval.Decision{}, nil
				}
				return approval.Decision{Answer: row.answers[asked-1]}, nil
			})
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"/bin/bash", "-c", row.script}, Dir: s.ws, Unsandboxed: row.escalate})
			var said string
			if err != nil {
				said = err.Error()
			} else {
				said = string(res.Output.Bytes())
			}
			if refused := errors.Is(err, ErrRefused) || errors.Is(err, ErrForbidden); refused != row.refused || err != nil && !refused {
				t.Fatal(err)
			}
			if asked != row.wantAsked || s.ran() != row.runs || !strings.Contains(said, row.says) {
				t.Errorf("%d questions, want %d; it ran %d times, want %d; it says %q", asked, row.wantAsked, s.ran(), row.runs, said)
			}
			_, in := os.Lstat(filepath.Join(s.ws, "in"))
			_, out := os.Lstat(filepath.Join(s.out, "file"))
			if (in == nil || out == nil) != row.writes {
				t.Errorf("in the workspace %v, outside %v", in, out)
			}
		})
	}
}

// TestApprovalRowsNetwork holds the parts of rows C4 and C7 that are about the network: a command that
// asks a server of this machine for a word.
func TestApprovalRowsNetwork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("word of the server\n"))
			c.Close()
		}
	})
	defer serving.Wait()
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, row := range []struct {
		name     string
		policy   sandbox.Policy
		escalate bool
		asked    int
		reaches  bool
	}{
		{"C4 read-only, on-request: fails", sandbox.ReadOnly(), false, 0, false},
		{"C4 escalated and approved: works", sandbox.ReadOnly(), true, 1, true},
		{"C7 workspace-write: blocked", sandbox.WorkspaceWrite("."), false, 0, false},
		{"C7 with the network of the host: works", sandbox.WorkspaceWrite(".").WithNetwork(sandbox.NetworkHost), false, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, row.policy)
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3"}, Dir: s.ws, Unsandboxed: row.escalate})
			if err != nil {
				t.Fatal(err)
			}
			if out := string(res.Output.Bytes()); strings.Contains(out, "word of the server") != row.reaches || (res.ExitCode == 0) != row.reaches || asked != row.asked {
				t.Errorf("exit code %d after %d questions, %q", res.ExitCode, asked, out)
			}
		})
	}
}
