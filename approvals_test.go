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
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// answering returns an approver that gives one answer.
func answering(a approval.Answer) approval.Approver {
	return approval.Fixed(approval.Decision{Answer: a, Message: "not today"})
}

// TestApprover: a command that leaves the sandbox runs only when an approver approves,
// with Run and with Start.
func TestApprover(t *testing.T) {
	for _, test := range []struct {
		name     string
		approver approval.Approver
		cmd      Cmd
		asked    int
		want     error
		mode     sandbox.Mode
	}{
		{"inside the sandbox there is no question", answering(approval.Denied), Cmd{}, 0, nil, sandbox.Managed},
		{"no approver", nil, Cmd{Unsandboxed: true}, 0, ErrRefused, 0},
		{"refused", answering(approval.Denied), Cmd{Unsandboxed: true}, 1, ErrRefused, 0},
		{"approved", answering(approval.Approved), Cmd{Unsandboxed: true}, 1, nil, sandbox.Full},
	} {
		for _, session := range []bool{false, true} {
			name := test.name + ", run"
			if session {
				name = test.name + ", start"
			}
			t.Run(name, func(t *testing.T) {
				var modes []sandbox.Mode
				r, _ := fakeRunner(nil, func(spec *executor.Spec,
					p *e2e.FakeProcess) {
					modes = append(modes, spec.Policy.Mode())
				})
				defer r.Close()
				asked := 0
				if test.approver != nil {
					r.Approver = approval.Func(func(ctx context.Context,
						q *approval.Request) (approval.Decision, error) {
						asked++
						if len(q.Args) != 1 || q.Dir != "/w" || q.Reason == "" ||
							q.Justification != "because" {
							t.Errorf("the question is %+v", q)
						}
						return test.approver.Approve(ctx, q)
					})
				}
				c := test.cmd
				c.Args, c.Dir, c.Justification = []string{"x"}, "/w", "because"
				var err error
				if session {
					var s *Session
					if s, err = r.Start(t.Context(), &c); err == nil {
						_, err = s.Wait(t.Context())
					}
				} else {
					_, err = r.Run(t.Context(), &c)
				}
				if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, ErrRefused) ||
					asked != test.asked {
					t.Errorf("%v after %d questions, want %v after %d", err, asked, test.want, test.asked)
				}
				if test.want == nil && (len(modes) != 1 || modes[0] != test.mode) || test.want != nil &&
					len(modes) > 0 {
					t.Errorf("ran with %v", modes)
				}
			})
		}
	}
	t.Run("the end of the context ends the question", func(t *testing.T) {
		r, _ := fakeRunner(nil, nil)
		defer r.Close()
		ctx, cancel := context.WithCancel(t.Context())
		r.Approver = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
			cancel()
			<-ctx.Done()
			return approval.Decision{}, ctx.Err()
		})
		if _, err := r.Run(ctx, &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}); !errors.Is(err,
			context.Canceled) || errors.Is(err, ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}

// A startHook is called with each start of a command, from 1, and may fail it.
type startHook struct {
	*e2e.Fake
	n     int
	start func(ctx context.Context, n int) error
}

func (e *startHook) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	e.n++
	if err := e.start(ctx, e.n); err != nil {
		return nil, err
	}
	return e.Fake.Start(ctx, spec)
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
			e.Play = func(spec *executor.Spec, p *e2e.FakeProcess) {
				runs++
				at("run " + string(rune('0'+runs)))
				if ctx.Err() != nil {
					<-p.Stopped
					p.Exit = executor.Exit{Code: -1, Signal: 15, LastSignal: 15, Stopped: true}
					return
				}
				deniedOnce(new(int), sandbox.Notified)(spec, p)
			}
			r.Executor = &startHook{e, 0, func(ctx context.Context, n int) error {
				at("start " + string(rune('0'+n)))
				return ctx.Err()
			}}
			board := new(approval.OpenQuestions)
			r.Approver = approval.Func(func(ctx context.Context,
				q *approval.Request) (approval.Decision, error) {
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
			if test.first && (res.First.End != EndExited || res.First.ExitCode != 1 ||
				string(res.First.Stdout.Bytes()) != "first\n" || len(res.First.Denials()) != 1) {
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
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}); !errors.Is(err,
		ErrRefused) || errors.As(err, &asked) {
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
	if !errors.Is(err, ErrRefused) || !errors.As(err, &asked) || len(asked.Approvals) != 1 ||
		asked.Approvals[0].Message != "not today" ||
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
	if err != nil || !strings.Contains(string(text),
		`"attempt":2,"reason":"approved","added":["write:/srv/file"]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestEqualRuns: 20 equal commands at once are one question; one of them that is canceled leaves
// it to the others. An abort is for all that is asked.
func TestEqualRuns(t *testing.T) {
	for _, answer := range []approval.Answer{approval.Approved, approval.Abort} {
		synctest.Test(t, func(t *testing.T) {
			var runs sync.Map
			r, _ := fakeRunner(nil, func(spec *executor.Spec,
				_ *e2e.FakeProcess) {
				runs.Store(spec.Run, true)
			})
			board := new(approval.OpenQuestions)
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
				if err := board.Answer(q.ID, approval.Decision{Answer: answer}); err != nil &&
					(answer != approval.Abort || !errors.Is(err, approval.ErrUnknown)) {
					t.Error(err)
				}
			}
			for range 20 {
				if err := <-results; answer.Approves() != (err == nil) || err != nil &&
					!errors.Is(err, ErrRefused) {
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

// A reviewer is an automatic reviewer that gives these answers, the last one again and again.
type reviewer struct {
	answers []approval.Answer
	seen    []*approval.Request
}

func (v *reviewer) Approve(ctx context.Context, q *approval.Request) (approval.Decision, error) {
	v.seen = append(v.seen, q)
	answer := v.answers[0]
	if len(v.answers) > 1 {
		v.answers = v.answers[1:]
	}
	r := approval.Review{ID: "v" + q.ID, Request: q, Model: "m", Status: approval.ReviewInProgress}
	approval.Reviewing(ctx, r)
	r.Status, r.Outcome, r.Risk, r.Authorization = approval.ReviewDenied, "deny", "high", "unknown"
	if answer.Approves() {
		r.Status, r.Outcome, r.Risk = approval.ReviewApproved, "allow", "low"
	}
	r.Decision = approval.Decision{Answer: answer, Source: approval.FromReviewer}
	approval.Reviewing(ctx, r)
	return r.Decision, nil
}

// TestStrictReview: the reviewer is asked about every command that is not forbidden, and what it does
// not approve does not run. The attack is a command that needs no approval and is not reviewed.
func TestStrictReview(t *testing.T) {
	const allow, prompt, outside = `prefix_rule(["x"])`, `prefix_rule(["x"], "prompt")`,
		`prefix_rule(["x"], sandbox = "outside")`
	yes, no, pass := answering(approval.Approved), answering(approval.Denied), approval.Chain()
	for _, test := range []struct {
		name     string
		policy   approval.Policy
		rules    string
		answer   approval.Answer
		approver approval.Approver
		reviewed []string // what reviews require, joined
		asked    int      // how often the approver is
		err      error
		mode     sandbox.Mode
	}{
		{"needs no approval", approval.OnRequest, "", approval.Approved, no, []string{""}, 0, nil, sandbox.Managed},
		{"needs no approval, and is denied", approval.OnRequest, "", approval.Denied, yes, []string{""}, 0, ErrRefused, 0},
		{"needs no approval, and no answer comes", approval.OnRequest, "", approval.TimedOut, yes, []string{""}, 0, ErrRefused, 0},
		{"an answer that was not offered", approval.OnRequest, "", approval.ApprovedForSession, yes, []string{""}, 0, ErrRefused, 0},
		{"allowed by a rule, and denied", approval.OnRequest, allow, approval.Denied, nil, []string{""}, 0, ErrRefused, 0},
		{"never", approval.Never, "", approval.Approved, no, []string{""}, 0, nil, sandbox.Managed},
		{"never, and denied", approval.Never, "", approval.Denied, nil, []string{""}, 0, ErrRefused, 0},
		{"forbidden", approval.OnRequest, `prefix_rule(["x"], "forbidden")`, approval.Approved, yes, nil, 0, ErrForbidden, 0},
		{"never, and a rule prompts", approval.Never, prompt, approval.Approved, yes, nil, 0, ErrForbidden, 0},
		{"a rule prompts", approval.OnRequest, prompt, approval.Approved, nil, []string{""}, 0, nil, sandbox.Managed},
		{"a rule prompts, and the approver passes", approval.OnRequest, prompt, approval.Approved, pass, []string{""}, 1, nil, sandbox.Managed},
		{"a rule prompts, and the approver denies", approval.OnRequest, prompt, approval.Approved, no, []string{""}, 1, ErrRefused, 0},
		{"a rule prompts, and the review denies", approval.OnRequest, prompt, approval.Denied, yes, []string{""}, 0, ErrRefused, 0},
		{"a rule prompts, and the review's answer was not offered", approval.OnRequest, prompt, approval.ApprovedForSession, yes, []string{""}, 0, ErrRefused, 0},
		{"untrusted asks the approver as well", approval.Untrusted, "", approval.Approved, yes, []string{""}, 1, nil, sandbox.Managed},
		{"untrusted, and the approver denies", approval.Untrusted, "", approval.Approved, no, []string{""}, 1, ErrRefused, 0},
		{"untrusted, and the approver passes", approval.Untrusted, "", approval.Approved, pass, []string{""}, 1, ErrRefused, 0},
		{"untrusted, and no approver", approval.Untrusted, "", approval.Approved, nil, []string{""}, 0, ErrRefused, 0},
		{"untrusted, and a rule allows", approval.Untrusted, allow, approval.Approved, no, []string{""}, 0, nil, sandbox.Managed},
		{"a rule leads outside", approval.OnRequest, outside, approval.Approved, nil, []string{"outside"}, 0, nil, sandbox.Full},
		{"a rule leads outside, and is denied", approval.OnRequest, outside, approval.Denied, nil, []string{"outside"}, 0, ErrRefused, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mode sandbox.Mode
			r, _ := fakeRunner(nil, func(spec *executor.Spec,
				_ *e2e.FakeProcess) {
				mode = spec.Policy.Mode()
			})
			v := &reviewer{answers: []approval.Answer{test.answer}}
			asked := 0
			r.Approval, r.Reviewer, r.Rules = test.policy, v, ruleSet(t, test.rules)
			if test.approver != nil {
				r.Approver = approval.Func(func(ctx context.Context,
					q *approval.Request) (approval.Decision, error) {
					asked++
					return test.approver.Approve(ctx, q)
				})
			}
			_, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if closed := r.Close(); !errors.Is(err, test.err) || closed != nil {
				t.Errorf("%v, want %v; %v", err, test.err, closed)
			}
			var required []string
			for _, q := range v.seen {
				required = append(required, strings.Join(q.Requires, " "))
				if q.Key != "" || q.Reason == "" ||
					slices.Contains(q.Available, approval.ApprovedForSession) {
					t.Errorf("the question is %+v", q)
				}
			}
			if !slices.Equal(required, test.reviewed) || asked != test.asked || mode != test.mode {
				t.Errorf("reviewed %q, asked %d times, ran in mode %v", required, asked, mode)
			}
		})
	}
}

// TestStrictReviewAnew: each run and each second attempt is a review of its own, whatever was
// approved before. The attacks are an approval for the session, which opens more without a review,
// and a second attempt that rests on the review of the first.
func TestStrictReviewAnew(t *testing.T) {
	r, _ := fakeRunner(nil, deniedOnce(new(int), sandbox.Notified))
	v := &reviewer{answers: []approval.Answer{approval.Approved}}
	r.Reviewer, r.Approver = v, answering(approval.ApprovedForSession)
	run := func() *Result {
		t.Helper()
		res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	// The approver's answer is not offered, so that the second attempt is refused.
	if res := run(); len(res.Attempts) != 1 || len(v.seen) != 2 || len(r.Approvals()) != 0 {
		t.Errorf("%d attempts, %d reviews, %d approvals", len(res.Attempts), len(v.seen), len(r.Approvals()))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r, _ = fakeRunner(nil, deniedOnce(new(int), sandbox.Notified))
	v = &reviewer{answers: []approval.Answer{approval.Approved}}
	r.Reviewer = v
	for n := 1; n <= 2; n++ {
		if res := run(); len(res.Attempts) != 2 || len(v.seen) != 2*n {
			t.Errorf("run %d: %d attempts, %d reviews", n, len(res.Attempts), len(v.seen))
		}
	}
	if q := v.seen[1]; q.Kind != approval.KindAccess || q.Runs != 1 ||
		!slices.Equal(q.Requires, []string{"write:/srv/file"}) {
		t.Errorf("the second question is %+v", q)
	}
	v.answers = []approval.Answer{approval.Approved, approval.Denied}
	if res := run(); len(res.Attempts) != 1 || res.ExitCode != 1 || len(res.Notices) != 1 {
		t.Errorf("%d attempts, exit code %d, %q", len(res.Attempts), res.ExitCode, res.Notices)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStrictReviewPasses: a reviewer that has no answer approves nothing.
func TestStrictReviewPasses(t *testing.T) {
	r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { t.Error("it ran") })
	r.Reviewer, r.Approver = approval.Chain(), answering(approval.Approved)
	for _, policy := range []approval.Policy{approval.OnRequest, approval.Never} {
		r.Approval = policy
		if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"}); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAuthorize is what questions add to a run that needs none. Claim: at most 3 % of a
// sandboxed /bin/true, which takes some milliseconds.
func BenchmarkAuthorize(b *testing.B) {
	r, _ := fakeRunner(nil, nil)
	r.Approver = answering(approval.Denied)
	x, err := r.newExecution(b.Context(), &Cmd{Args: []string{"/bin/true"}, Dir: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := x.authorize(b.Context(), x.judge()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAnswerToStart is the time from an answer on the OpenQuestions to the start of the command, with
// its identity looked at again: until the executor is called, and until the command runs in a
// sandbox. Claim: at most 2 ms (median) until the executor is called; the rest is a start.
func BenchmarkAnswerToStart(b *testing.B) {
	b.Run("called", func(b *testing.B) {
		started := make(chan time.Time, 1)
		r, e := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) {})
		r.Executor = &startHook{e, 0, func(context.Context, int) error { started <- time.Now(); return nil }}
		answerToStart(b, r, started)
	})
	b.Run("sandboxed", func(b *testing.B) {
		testenv.NeedUserNS(b)
		started := make(chan time.Time, 1)
		answerToStart(b, &Runner{Policy: sandbox.WorkspaceWrite("."),
			Events: event.SinkFunc(func(e event.Event) {
				if _, ok := e.Body.(event.Started); ok {
					started <- e.Time
				}
			})}, started)
	})
}

func answerToStart(b *testing.B, r *Runner, started <-chan time.Time) {
	board := new(approval.OpenQuestions)
	r.Approver, r.Approval = board, approval.Untrusted
	dir := b.TempDir()
	var took []time.Duration
	for b.Loop() {
		done := make(chan error)
		go func() {
			_, err := r.Run(b.Context(), &Cmd{Args: []string{"/bin/true"}, Dir: dir})
			done <- err
		}()
		for changed := board.Changed(); len(board.Pending()) == 0; changed = board.Changed() {
			<-changed
		}
		answered := time.Now()
		if err := board.Answer(board.Pending()[0].ID,
			approval.Decision{Answer: approval.Approved}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-started).Sub(answered))
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms(p50)")
}

// TestStrictReviewCeiling: a rule leads no command out of the sandbox that the ceiling holds in it, also
// where the reviewer approves all.
func TestStrictReviewCeiling(t *testing.T) {
	var mode sandbox.Mode
	r, _ := fakeRunner(nil, func(spec *executor.Spec,
		_ *e2e.FakeProcess) {
		mode = spec.Policy.Mode()
	})
	v := &reviewer{answers: []approval.Answer{approval.Approved}}
	r.Reviewer, r.Rules = v, ruleSet(t, `prefix_rule(["x"], sandbox = "outside")`)
	r.Permits = func(required []string) error {
		if slices.Contains(required, approval.Outside) {
			return errors.New("more than the ceiling")
		}
		return nil
	}
	_, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
	if closed := r.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	if mode != sandbox.Managed || len(v.seen) != 1 || len(v.seen[0].Requires) != 0 {
		t.Errorf("mode %v, reviews %+v", mode, v.seen)
	}
}
