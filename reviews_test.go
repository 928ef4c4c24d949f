// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

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

// told is the kinds of events of runs without those of output, with the status of reviews and the
// decision of questions.
func told(t *testing.T, events []event.Event, run string) string {
	t.Helper()
	var all []string
	question := ""
	for _, e := range events {
		if e.Run != run {
			t.Errorf("an event of the run %q, want %q", e.Run, run)
		}
		word := e.Body.Kind()
		switch b := e.Body.(type) {
		case event.Output, event.Exited, event.Denied:
			continue
		case event.ApprovalRequested:
			question = b.Request.ID
		case event.ReviewStarted:
			if b.Review.Request.ID != question {
				t.Errorf("a review of %q", b.Review.Request.ID)
			}
		case event.ReviewCompleted:
			word += "=" + string(b.Review.Status)
		case event.ApprovalDecided:
			word += "=" + b.Decision.String() + " by " + string(b.Source)
		case event.SandboxOutcome:
			word += "=" + b.Outcome
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// TestReviewEvents: a review stands between its question and the decision, in the events of its run.
func TestReviewEvents(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []approval.Answer
		want    string
	}{
		{"approved", []approval.Answer{approval.Approved}, "judged approval_requested review_started review_completed=approved approval_decided=approved by reviewer started" +
			" approval_requested review_started review_completed=approved approval_decided=approved by reviewer retrying started sandbox_outcome=escalated ended"},
		{"denied", []approval.Answer{approval.Denied}, "judged approval_requested review_started review_completed=denied approval_decided=denied by reviewer ended"},
		{"the second attempt is denied", []approval.Answer{approval.Approved, approval.Denied}, "judged approval_requested review_started review_completed=approved approval_decided=approved by reviewer started" +
			" approval_requested review_started review_completed=denied approval_decided=denied by reviewer sandbox_outcome=denied ended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c collector
			r, _ := fakeRunner(&c, deniedOnce(new(int), sandbox.Notified))
			r.Approver = &reviewer{answers: test.answers}
			_, _ = r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", AskFor: []sandbox.Grant{{Path: "/other", Level: sandbox.LevelWrite}}})
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if got := told(t, c.events, c.events[0].Run); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestReviewCanceled: a review that ends with its run is reported as aborted, before the end.
func TestReviewCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c collector
	r, _ := fakeRunner(&c, func(*executor.Spec, *fakeProcess) { t.Error("it ran") })
	r.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
		review := approval.Review{ID: "v", Request: q, Status: approval.ReviewInProgress}
		approval.Reviewing(ctx, review)
		cancel()
		<-ctx.Done()
		review.Status = approval.ReviewAborted
		approval.Reviewing(ctx, review)
		return approval.Decision{}, context.Cause(ctx)
	})
	_, err := r.Run(ctx, &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true})
	if closed := r.Close(); err == nil || closed != nil {
		t.Fatal(err, closed)
	}
	if got := told(t, c.events, c.events[0].Run); got != "judged approval_requested review_started review_completed=aborted ended" {
		t.Errorf("got %s", got)
	}
}

// TestStrictReview: the reviewer is asked about every command that is not forbidden, and what it does
// not approve does not run. The attack is a command that needs no approval and is not reviewed.
func TestStrictReview(t *testing.T) {
	const allow, prompt, outside = `prefix_rule(["x"])`, `prefix_rule(["x"], "prompt")`, `prefix_rule(["x"], sandbox = "outside")`
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
			r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *fakeProcess) { mode = spec.Policy.Mode() })
			v := &reviewer{answers: []approval.Answer{test.answer}}
			asked := 0
			r.Approval, r.Reviewer, r.Rules = test.policy, v, ruleSet(t, test.rules)
			if test.approver != nil {
				r.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
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
				if q.Key != "" || q.Reason == "" || slices.Contains(q.Available, approval.ApprovedForSession) {
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
	if q := v.seen[1]; q.Kind != approval.KindAccess || q.Runs != 1 || !slices.Equal(q.Requires, []string{"write:/srv/file"}) {
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
	r, _ := fakeRunner(nil, func(*executor.Spec, *fakeProcess) { t.Error("it ran") })
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
