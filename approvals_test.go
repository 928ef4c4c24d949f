// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A startHook is called with each start of a command, from 1, and may fail it.
type startHook struct {
	*fakeExecutor
	n     int
	start func(ctx context.Context, n int) error
}

func (e *startHook) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	e.n++
	if err := e.start(ctx, e.n); err != nil {
		return nil, err
	}
	return e.fakeExecutor.Start(ctx, spec)
}

// cancelations are the points at which a context ends.
var cancelations = []struct {
	name   string
	at     string // where the context ends
	asks   bool   // before the first attempt
	runs   int
	first  bool // the result has a first attempt beside its end
	result bool
}{
	{"before the question", "begin", true, 0, false, false},
	{"while the question is open", "question 1", true, 0, false, false},
	{"with the answer", "answer 1", true, 0, false, false},
	{"at the first start", "start 1", true, 0, false, false},
	{"while it runs", "run 1", true, 1, false, true},
	{"while the question about a retry is open", "question 1", false, 1, true, true},
	{"with the answer about a retry", "answer 1", false, 1, true, true},
	{"at the second start", "start 2", false, 1, true, true},
	{"while it runs again", "run 2", false, 2, true, true},
}

// TestCanceledEverywhere: wherever the end of the context meets a command with questions, the
// error is that end, no question stays open, nothing runs later, and what the first attempt did
// is told.
func TestCanceledEverywhere(t *testing.T) {
	for _, test := range cancelations {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			at := func(point string) {
				if point == test.at {
					cancel()
				}
			}
			runs, questions := 0, 0
			var c collector
			r, e := fakeRunner(&c, nil)
			e.play = func(spec *executor.Spec, p *fakeProcess) {
				runs++
				at("run " + string(rune('0'+runs)))
				if ctx.Err() != nil {
					<-p.stopped
					p.exit = executor.Exit{Code: -1, Signal: 15, LastSignal: 15, Stopped: true}
					return
				}
				deniedOnce(new(int), sandbox.Notified)(spec, p)
			}
			r.Executor = &startHook{e, 0, func(ctx context.Context, n int) error {
				at("start " + string(rune('0'+n)))
				return ctx.Err()
			}}
			board := new(approval.Board)
			r.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
				questions++
				point := string(rune('0' + questions))
				at("answer " + point)
				if "question "+point != test.at {
					return approval.Decision{Answer: approval.Approved}, nil
				}
				go func() {
					for changed := board.Changed(); len(board.Pending()) == 0; changed = board.Changed() {
						<-changed
					}
					cancel()
				}()
				return board.Approve(ctx, q)
			})
			cmd := &Cmd{Args: []string{"x"}, Dir: "/w"}
			if test.asks {
				cmd.AskFor = []sandbox.Grant{{Path: "/other", Level: sandbox.LevelWrite}}
			}
			at("begin")
			res, err := r.Run(ctx, cmd)
			if closed := r.Close(); closed != nil {
				t.Fatal(closed)
			}
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrRefused) {
				t.Errorf("the error is %v", err)
			}
			if runs != test.runs || len(board.Pending()) != 0 {
				t.Errorf("it ran %d times, want %d; %d questions", runs, test.runs, len(board.Pending()))
			}
			switch {
			case (res != nil) != test.result:
				t.Fatalf("the result is %+v", res)
			case res == nil:
				return
			case res.End != EndCanceled || len(res.Attempts) != test.runs || (res.First != nil) != test.first:
				t.Errorf("end %v, %d attempts, first %+v", res.End, len(res.Attempts), res.First)
			}
			if test.first && (res.First.End != EndExited || res.First.ExitCode != 1 || string(res.First.Stdout.Bytes()) != "first\n" || len(res.First.Denials()) != 1) {
				t.Errorf("the first attempt is %+v", res.First)
			}
		})
	}
}

// TestNoOneToAsk: where all approvers pass, nothing is decided, and nothing is run again.
func TestNoOneToAsk(t *testing.T) {
	passes := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		return approval.Decision{}, approval.ErrPass
	})
	var c collector
	runs := 0
	r, _ := fakeRunner(&c, deniedOnce(&runs, sandbox.Notified))
	r.Approver = passes
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
	if err != nil || runs != 1 || res.ExitCode != 1 || len(res.Approvals) != 0 || len(res.Notices) != 0 {
		t.Errorf("%v, %d runs, %+v", err, runs, res)
	}
	var asked *ApprovalError
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}); !errors.Is(err, ErrRefused) || errors.As(err, &asked) {
		t.Errorf("%v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	decided := 0
	for _, e := range c.events {
		if d, ok := e.Body.(event.ApprovalDecided); ok {
			if decided++; d.Source != approval.FromConfig || d.Decision != approval.Denied {
				t.Errorf("%+v", d)
			}
		}
	}
	if decided != 2 {
		t.Errorf("%d questions have an end", decided)
	}
}

// TestRefusedBefore: the error of a command that did not run has the answers, the words of who
// refused it, and what was asked.
func TestRefusedBefore(t *testing.T) {
	r, _ := fakeRunner(nil, nil)
	defer r.Close()
	r.Approver = answering(approval.Denied)
	_, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true})
	var asked *ApprovalError
	if !errors.Is(err, ErrRefused) || !errors.As(err, &asked) || len(asked.Approvals) != 1 || asked.Approvals[0].Message != "not today" ||
		!strings.Contains(err.Error(), "not today") {
		t.Errorf("%v", err)
	}
}

// TestRetryEvents: the event of a second attempt has its number, and what it is given.
func TestRetryEvents(t *testing.T) {
	var c collector
	runs := 0
	r, _ := fakeRunner(&c, deniedOnce(&runs, sandbox.Notified))
	r.Approver = answering(approval.Approved)
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.events, func(e event.Event) bool { return e.Body.Kind() == "retrying" })
	text, err := json.Marshal(c.events[i])
	if err != nil || !strings.Contains(string(text), `"attempt":2,"reason":"approved","added":["write:/srv/file"]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// startMany starts commands that do nothing, from several goroutines at once.
type startMany struct {
	*fakeExecutor
	runs *sync.Map
}

func (e startMany) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	e.runs.Store(spec.Run, true)
	p := &fakeProcess{stopped: make(chan struct{}), done: make(chan struct{})}
	close(p.done)
	return p, nil
}

// TestEqualRuns: 20 equal commands at once are one question; one of them that is canceled leaves
// it to the others. An abort is for all that is asked.
func TestEqualRuns(t *testing.T) {
	for _, answer := range []approval.Answer{approval.Approved, approval.Abort} {
		synctest.Test(t, func(t *testing.T) {
			var runs sync.Map
			r, e := fakeRunner(nil, nil)
			r.Executor = startMany{e, &runs}
			board := new(approval.Board)
			r.Approver = board
			ctx, cancel := context.WithCancel(t.Context())
			results := make(chan error, 21)
			run := func(ctx context.Context, args ...string) {
				_, err := r.Run(ctx, &Cmd{Args: args, Dir: "/w", Unsandboxed: true})
				results <- err
			}
			for i := range 20 {
				if i == 0 {
					go run(ctx, "x")
					continue
				}
				go run(t.Context(), "x")
			}
			go run(t.Context(), "another")
			synctest.Wait()
			cancel()
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			pending := board.Pending()
			if len(pending) != 2 {
				t.Fatalf("%d questions", len(pending))
			}
			for _, q := range pending {
				if err := board.Answer(q.ID, approval.Decision{Answer: answer}); err != nil && (answer != approval.Abort || !errors.Is(err, approval.ErrUnknown)) {
					t.Error(err)
				}
			}
			for range 20 {
				if err := <-results; answer.Approves() != (err == nil) || err != nil && !errors.Is(err, ErrRefused) {
					t.Error(err)
				}
			}
			n := 0
			runs.Range(func(any, any) bool { n++; return true })
			if want := map[bool]int{true: 20}[answer.Approves()]; n != want || len(board.Pending()) != 0 {
				t.Errorf("%d ran, want %d; %d questions are open", n, want, len(board.Pending()))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
