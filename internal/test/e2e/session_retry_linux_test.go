// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
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
			session, err := r.Start(starting, &sallyport.Cmd{Args: []string{"sh", "-c", script}, Dir: s.ws,
				Retry: test.retry})
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
			if err != nil || res.ExitCode != test.code || len(res.Attempts) != test.runs ||
				asked != test.asked {
				t.Errorf("%v, %v, %d questions", res, err, asked)
			}
			if again := test.runs == 2; again != (res.First != nil) || again &&
				(res.First.ExitCode != 1 || !strings.HasPrefix(res.First.Stdout.String(), "out ")) {
				t.Errorf("the first result is %v", res.First)
			}
			if got := out.String(); strings.Count(got, "out ") != test.runs ||
				!strings.HasSuffix(got, test.says+"\n") && test.says != "" {
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
	session, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"sh", "run.sh"},
		Dir: s.ws, Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if alive, err := session.Terminate(t.Context()); !alive || err != nil {
		t.Error(alive, err)
	}
	res, err := session.Wait(t.Context())
	if err != nil || res.ExitCode != 1 || s.ran() != 1 ||
		!strings.Contains(strings.Join(res.Notices, "\n"),
			"the session was terminated while the question was open") {
		t.Errorf("%v, %v, %q", res, err, res.Notices)
	}
	if reply, err := session.Await(t.Context(), sallyport.Until{For: time.Minute,
		ExitOnly: true}); err != nil || reply.Reason != sallyport.ReasonExited {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestSessionRetryInput: a session that was sent nothing is run again, and what is sent while the question
// is open reaches the second attempt. One that was sent something is not: what was typed is gone.
func TestSessionRetryInput(t *testing.T) {
	testenv.NeedUserNS(t)
	const denied = "echo x >>../out/file || exit 1; "
	for _, test := range []struct {
		name   string
		script string
		before string // sent at first; EOF ends the input
		asked  int
	}{
		{"nothing sent", denied + "read line; echo got $line", "", 1},
		{"text", "read line; " + denied + "read line; echo got $line", "one\n", 0},
		{"the end of the input", "cat; " + denied, "EOF", 0},
	} {
		for _, kind := range []string{"pipe", "terminal", "screen"} {
			t.Run(test.name+", "+kind, func(t *testing.T) {
				s := newSite(t)
				r := newRunner(t, sandbox.WorkspaceWrite("."))
				asked, answer := make(chan struct{}, 1), make(chan struct{})
				r.Approver = approval.Func(func(context.Context,
					*approval.Request) (approval.Decision, error) {
					asked <- struct{}{}
					<-answer
					return approval.Decision{Answer: approval.Approved}, nil
				})
				c := &sallyport.Cmd{Args: []string{"sh", "-c", test.script}, Dir: s.ws, Retry: true,
					OpenStdin: kind == "pipe", Screen: kind == "screen"}
				if kind != "pipe" {
					c.TTY = &sallyport.Size{Cols: 40, Rows: 10}
				}
				session, err := r.Start(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case test.before == "EOF":
					err = session.CloseInput()
				case test.before != "":
					_, err = session.Write([]byte(test.before))
				}
				if err != nil {
					t.Fatal(err)
				}
				if test.asked > 0 {
					<-asked
					sent := make(chan error, 1)
					go func() {
						_, err := session.Write([]byte("two\n"))
						sent <- err
					}()
					close(answer)
					if err := <-sent; err != nil {
						t.Error(err)
					}
				}
				res, err := session.Wait(t.Context())
				if err != nil || len(asked) > 0 || len(res.Attempts) != 1+test.asked ||
					(res.ExitCode == 0) != (test.asked > 0) {
					t.Fatalf("%v, %v, %d attempts, %d questions", res, err, len(res.Attempts), len(asked))
				}
				if text := res.Output.String(); strings.Contains(text, "got two") != (test.asked > 0) {
					t.Errorf("%q", text)
				}
				if screen, ok := session.Screen(); ok && test.asked > 0 &&
					strings.Contains(screen.String(), "Read-only") {
					t.Errorf("the screen has the first attempt:\n%s", screen)
				}
			})
		}
	}
}

// TestSessionRetryWait: a wait for input that began before the second attempt ends when that one waits for
// it, on a terminal that has the size which was set meanwhile.
func TestSessionRetryWait(t *testing.T) {
	testenv.NeedUserNS(t)
	s := newSite(t)
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	var session *sallyport.Session
	started := make(chan struct{})
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		<-started
		_ = session.Resize(sallyport.Size{Cols: 33, Rows: 11}) // the process has ended
		return approval.Decision{Answer: approval.Approved}, nil
	})
	// the second attempt is silent until then
	const script = "echo x >>../out/file || exit 1; read line; stty size; exit 7"
	session, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"sh", "-c", script}, Dir: s.ws,
		Retry: true, TTY: new(sallyport.Size), Screen: true})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan *sallyport.Reply, 1)
	go func() {
		reply, err := session.Await(t.Context(), sallyport.Until{For: time.Minute, Input: true})
		if err != nil {
			t.Error(err)
		}
		waited <- reply
	}()
	close(started)
	reply := <-waited
	if reply == nil || reply.Reason != sallyport.ReasonInput {
		t.Fatalf("%+v", reply)
	}
	if reply, err := session.Send(t.Context(), []byte("x\n"),
		sallyport.Until{For: time.Minute, ExitOnly: true}); err != nil || reply.Result == nil ||
		reply.Result.ExitCode != 7 {
		t.Errorf("%+v, %v", reply, err)
	}
	if screen, _ := session.Screen(); !strings.Contains(screen.String(), "11 33") || screen.Cols != 33 ||
		strings.Contains(screen.String(), "Read-only") {
		t.Errorf("%dx%d:\n%s", screen.Cols, screen.Rows, screen)
	}
}
