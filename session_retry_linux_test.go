// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSessionRetry: a session without input asks after a denial, and its output goes on with the
// second attempt.
func TestSessionRetry(t *testing.T) {
	testenv.NeedUserNS(t)
	const script = "echo out $$; echo x >>../out/file || exit 1; echo done"
	for _, test := range []struct {
		name   string
		retry  bool
		answer approval.Answer
		asked  int
		code   int
		says   string // the last line of the output
		runs   int
	}{
		{"approved", true, approval.Approved, 1, 0, "done", 2},
		{"denied", true, approval.Denied, 1, 1, "", 1},
		{"without Retry", false, approval.Approved, 0, 1, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: test.answer}, nil
			})
			starting, started := context.WithCancel(t.Context())
			session, err := r.Start(starting, &Cmd{Args: []string{"sh", "-c", script}, Dir: s.ws, Retry: test.retry})
			started() // that ends no session
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			at := uint64(0)
			for d, err := range session.Deltas(t.Context(), 0) { // it ends with the session only
				if err != nil || d.Offset != at || d.Missing != 0 {
					t.Fatalf("%+v, %v, want the offset %d", d, err, at)
				}
				at = d.End()
				if d.Stream.String() == "stdout" {
					out.Write(d.Data)
				}
			}
			res, err := session.Wait(t.Context())
			if err != nil || res.ExitCode != test.code || len(res.Attempts) != test.runs || asked != test.asked {
				t.Errorf("%v, %v, %d questions", res, err, asked)
			}
			if again := test.runs == 2; again != (res.First != nil) || again && (res.First.ExitCode != 1 || !strings.HasPrefix(res.First.Stdout.String(), "out ")) {
				t.Errorf("the first result is %v", res.First)
			}
			if got := out.String(); strings.Count(got, "out ") != test.runs || !strings.HasSuffix(got, test.says+"\n") && test.says != "" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestSessionRetryTerminated: the question about a second attempt is withdrawn when the session is
// terminated, and the first result stays.
func TestSessionRetryTerminated(t *testing.T) {
	testenv.NeedUserNS(t)
	s := newSite(t)
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	asked := make(chan struct{})
	r.Approver = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
		close(asked)
		<-ctx.Done()
		return approval.Decision{Answer: approval.Approved}, nil
	})
	session, err := r.Start(t.Context(), &Cmd{Args: []string{"sh", "run.sh"}, Dir: s.ws, Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if alive, err := session.Terminate(t.Context()); !alive || err != nil {
		t.Error(alive, err)
	}
	res, err := session.Wait(t.Context())
	if err != nil || res.ExitCode != 1 || s.ran() != 1 || !strings.Contains(strings.Join(res.Notices, "\n"), "the session was terminated while the question was open") {
		t.Errorf("%v, %v, %q", res, err, res.Notices)
	}
	if reply, err := session.Await(t.Context(), Until{For: time.Minute, ExitOnly: true}); err != nil || reply.Reason != ReasonExited {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestSessionRetryInput: a session with input is not run again, because what was typed is gone.
func TestSessionRetryInput(t *testing.T) {
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	for _, c := range []*Cmd{{OpenStdin: true}, {TTY: new(Size)}} {
		c.Args, c.Retry = []string{"true"}, true
		var wrong *CmdError
		if _, err := r.Start(t.Context(), c); !errors.As(err, &wrong) || wrong.Field != "Retry" {
			t.Error(err)
		}
	}
}
