// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A ReviewStatus says how far a Review is, and how it went.
type ReviewStatus string

// The statuses.
const (
	ReviewInProgress ReviewStatus = "in_progress"
	ReviewApproved   ReviewStatus = "approved"
	ReviewDenied     ReviewStatus = "denied"    // also where the reviewer gave no answer
	ReviewTimedOut   ReviewStatus = "timed_out" // no answer came in time
	ReviewAborted    ReviewStatus = "aborted"   // the question was withdrawn
)

// A Review is what an automatic reviewer makes of one Request.
type Review struct {
	ID      string // unique
	Request *Request
	Model   string
	Shadow  bool // what it says does not count
	Status  ReviewStatus
	// Started and Completed are when it began and ended; Completed is zero while it is in progress,
	// and so is all that follows.
	Started, Completed time.Time
	// Decision is the reviewer's, in shadow mode the one that does not count. It denies where the
	// review was aborted.
	Decision Decision
	// Outcome ("allow" or "deny"), Risk, Authorization and Rationale are the model's words; empty
	// without an answer of it.
	Outcome, Risk, Authorization, Rationale string
	// requests to the model; 0 for a denial that is given again
	Attempts int
	Failure  string // why there is no answer, a clause; empty if there is one
}

// maxAction is how many bytes of a command stand in Action.
const maxAction = 200

// Action says on one line what a request is about: the command as it was given, and what it
// requires.
func (r *Request) Action() string {
	s := r.Script
	if s == "" {
		s = strings.Join(r.Args, " ")
	}
	s = text.Line(s)
	if len(s) > maxAction {
		s = strings.ToValidUTF8(s[:maxAction], "") + "…"
	}
	if len(r.Requires) > 0 {
		s += " (" + text.Line(strings.Join(r.Requires, ", ")) + ")"
	}
	return s
}

// reviews is the key of the function to which reviews are reported.
type reviews struct{}

// WithReviews returns a context for [Approver.Approve] with which reviews are reported to f, each
// one twice: when it begins and when it is completed. Of several functions the last one counts. f
// is called by approvers before they return, and must not block.
func WithReviews(ctx context.Context, f func(Review)) context.Context {
	return context.WithValue(ctx, reviews{}, f)
}

// Reviewing reports a review to the function of [WithReviews]; without one it does nothing.
func Reviewing(ctx context.Context, r Review) {
	if f, ok := ctx.Value(reviews{}).(func(Review)); ok {
		f(r)
	}
}

// Reviewed returns an Approver for strict review: it asks a reviewer, and next about what that
// approves. The answer is that of next; where next is nil or passes, it is the reviewer's if alone
// is true, and else it passes.
func Reviewed(reviewer, next Approver, alone bool) Approver {
	return Func(func(ctx context.Context, r *Request) (Decision, error) {
		review, err := Ask(ctx, reviewer, r)
		if err != nil || !review.Approves() {
			return review, err
		}
		if next != nil {
			if d, err := next.Approve(ctx, r); !errors.Is(err, ErrPass) {
				return d, err
			}
		}
		if !alone {
			return Decision{}, ErrPass
		}
		return review, nil
	})
}

// collect has the reviews of a question reported to all who wait for its answer.
func (m *Memory) collect(ctx context.Context, f *flight) context.Context {
	return WithReviews(ctx, func(r Review) {
		m.mu.Lock()
		defer m.mu.Unlock()
		f.reviews = append(f.reviews, r)
		close(f.reviewed)
		f.reviewed = make(chan struct{})
	})
}

// wait waits for the answer to a question, and reports its reviews meanwhile. It is false if ctx
// ended first.
func (m *Memory) wait(ctx context.Context, f *flight) (answered bool) {
	var seen []Review
	var more <-chan struct{}
	for {
		seen, more = m.follow(ctx, f, len(seen))
		select {
		case <-f.done:
			m.follow(ctx, f, len(seen))
			return true
		case <-ctx.Done():
			m.leave(ctx, f)
			seen, _ = m.follow(ctx, f, len(seen))
			abort(ctx, seen)
			return false
		case <-more:
		}
	}
}

// follow reports the reviews of a question from one on. It returns all that there are, and what is
// closed by the next one.
func (m *Memory) follow(ctx context.Context, f *flight, from int) ([]Review, <-chan struct{}) {
	m.mu.Lock()
	all, more := f.reviews, f.reviewed
	m.mu.Unlock()
	for _, r := range all[from:] {
		Reviewing(ctx, r)
	}
	return all, more
}

// leave waits no longer for an answer. The question is withdrawn if no one else does.
func (m *Memory) leave(ctx context.Context, f *flight) {
	m.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	if last && m.open[f.key] == f {
		delete(m.open, f.key) // who comes now asks anew
	}
	m.mu.Unlock()
	if last {
		f.cancel(context.Cause(ctx))
		<-f.done // nothing of the question is left
	}
}

// abort reports reviews that go on for others as aborted.
func abort(ctx context.Context, seen []Review) {
	for i, r := range seen {
		over := func(o Review) bool { return o.ID == r.ID }
		if r.Status == ReviewInProgress && !slices.ContainsFunc(seen[i+1:], over) {
			r.Status, r.Completed = ReviewAborted, time.Now()
			Reviewing(ctx, r)
		}
	}
}
