// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guardian asks a language model for approval, over HTTP in the forms of OpenAI's
// Responses and Chat Completions.
//
// The model gets the request as data, not as instructions. Its answer has a fixed schema,
// and this package judges it: a critical risk is always denied, and a high one needs an
// authorization. Every failure denies.
package guardian

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// DefaultTimeout is how long a review may take if it is not said, with all its attempts.
const DefaultTimeout = 90 * time.Second

// reuse is how long a denial is given again for the same question, without asking the model. An
// approval is never given again: files that the command reads may have changed.
const reuse = 10 * time.Minute

// maxDenials is how many denials are kept for that.
const maxDenials = 1000

// A Guardian is an approver that asks a model. It must not be copied after the first use. Its
// methods may be called from several goroutines at once.
type Guardian struct {
	// BaseURL is where the API is, such as "https://api.openai.com/v1": https, or http on this
	// machine. A path that ends in /responses or /chat/completions is the address itself, and
	// says the Form.
	BaseURL string
	Model   string
	// Form is the form of the API. Empty is that of the address, else Responses at
	// api.openai.com and Chat elsewhere.
	Form Form
	// Key returns the key of the API; nil sends none. It is called for each review.
	Key func() (string, error)
	// Timeout is how long a review may take; 0 means DefaultTimeout.
	Timeout    time.Duration
	Thresholds Thresholds
	// Instructions are what the user asked for, in the user's words. They alone can authorize
	// something. Empty means that nothing is known.
	Instructions string
	// Policy is that of the Runner. The model is told what it denies, and files that it denies
	// are not shown; the zero Policy denies all.
	Policy sandbox.Policy
	// Shadow asks and reports, and passes every question to the next approver.
	Shadow bool
	// Reviewed, if not nil, is called with every review that was not aborted, before Approve
	// returns.
	Reviewed func(approval.Review)
	// Breaker, if not nil, is shared with other Guardians; nil is one of its own.
	Breaker *Breaker
	// Client sends the requests. Its redirects are not followed. Nil is one that obeys the
	// proxy variables of this process.
	Client *http.Client

	mu     sync.Mutex
	own    Breaker
	denied map[digest]denial // by what the model was shown
}

// A digest is a question.
type digest [sha256.Size]byte

// A denial is one that can be given again.
type denial struct {
	answer answer
	at     time.Time
}

// A FailedError says that a review gave no answer.
type FailedError struct {
	Why     string // a clause
	Prepare bool   // nothing was sent: the settings or the request do not allow it
}

func (e *FailedError) Error() string {
	if e.Prepare {
		return "automatic approval review could not prepare the action: " + e.Why + notDangerous
	}
	return "Automatic approval review failed: " + e.Why + notDangerous
}

// The texts for the caller beside the reason.
const (
	notDangerous = ". The command was not run, because its review could not be completed. This says nothing about its risk; " +
		"do not work around the review: tell the user, or try again later"
	rejected = "This action was rejected due to unacceptable risk.\nReason: "
	noBypass = "\nDo not reach the same result in another way, by indirect execution or around the review. " +
		"Go on only with an alternative that is clearly safer, or after the user, told of the risk, has approved it; else stop and ask."
	missed = "The automatic approval review missed its deadline. The command was not run. " +
		"This says nothing about its risk: try once more, or ask the user."
)

// Approve asks the model. It never approves for more than this time. An error is a
// [*FailedError], which denies, [approval.ErrPass] in shadow mode, or the end of ctx. The review is
// reported, see [approval.WithReviews].
func (g *Guardian) Approve(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return approval.Decision{}, err
	}
	review := approval.Review{
		ID: fmt.Sprintf("%016x", rand.Uint64()), Request: r, Model: g.Model, Shadow: g.Shadow,
		Status: approval.ReviewInProgress, Started: time.Now(),
	}
	approval.Reviewing(ctx, review)
	review.Decision.Source = approval.FromReviewer
	err := g.review(ctx, r, &review)
	review.Completed = time.Now()
	approval.Reviewing(ctx, review)
	if review.Status == approval.ReviewAborted {
		return approval.Decision{}, context.Cause(ctx)
	}
	if g.Reviewed != nil {
		g.Reviewed(review)
	}
	if g.Shadow {
		return approval.Decision{}, approval.ErrPass
	}
	return review.Decision, err
}

// review fills in what became of the question. The error is a *FailedError.
func (g *Guardian) review(ctx context.Context, r *approval.Request, out *approval.Review) error {
	timed, cancel := context.WithTimeout(ctx, cmp.Or(g.Timeout, DefaultTimeout))
	defer cancel()
	a, err := g.decide(timed, r, out)
	d := &out.Decision
	refused := false
	switch {
	case ctx.Err() != nil:
		out.Status = approval.ReviewAborted
	case err == nil:
		out.Outcome = map[bool]string{true: "allow", false: "deny"}[a.allow]
		out.Risk, out.Authorization, out.Rationale = string(a.risk), string(a.authorization), a.rationale
		said := fmt.Sprintf("(risk: %s, authorization: %s): %s", a.risk, a.authorization, a.rationale)
		if short := g.Thresholds.short(&a); short != "" {
			refused, out.Status, d.Message = true, approval.ReviewDenied, rejected+a.rationale+short+noBypass
		} else {
			out.Status, d.Answer, d.Message = approval.ReviewApproved, approval.Approved,
				"Automatic approval review approved "+said
		}
	case timed.Err() != nil:
		out.Status, d.Answer, d.Message, err = approval.ReviewTimedOut, approval.TimedOut, missed, nil
	default:
		out.Status, out.Failure, d.Message = approval.ReviewDenied, err.Error(), err.Error()
		if failed := new(FailedError); errors.As(err, &failed) {
			out.Failure = failed.Why
		}
	}
	if warning := g.breaker().count(refused); warning != "" && !g.Shadow {
		d.Answer, d.Message = approval.Abort, warning+"\nReason: "+a.rationale
	}
	return err
}

// decide returns the model's answer, or an earlier one that denied the same.
func (g *Guardian) decide(ctx context.Context, r *approval.Request, out *approval.Review) (answer, error) {
	q, err := g.question(r)
	if err != nil {
		return answer{}, &FailedError{err.Error(), true}
	}
	key := digest(sha256.Sum256([]byte(q)))
	if a, ok := g.known(key); ok {
		return a, nil
	}
	c, err := g.client()
	if err != nil {
		return answer{}, &FailedError{err.Error(), true}
	}
	defer c.close()
	a, err := c.ask(ctx, q, &out.Attempts)
	if err != nil {
		return a, err
	}
	if again, err := g.question(r); err != nil || again != q {
		return a, &FailedError{Why: "a file that the command runs changed while it was reviewed"}
	}
	if g.Thresholds.short(&a) != "" {
		g.remember(key, a)
	}
	return a, nil
}

// known returns the answer that denied a question a short time ago.
func (g *Guardian) known(q digest) (answer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := g.denied[q]
	if ok && time.Since(old.at) > reuse {
		delete(g.denied, q)
		return answer{}, false
	}
	return old.answer, ok
}

func (g *Guardian) remember(q digest, a answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.denied == nil || len(g.denied) >= maxDenials {
		g.denied = map[digest]denial{} // all are asked again, which is safe
	}
	g.denied[q] = denial{a, time.Now()}
}

func (g *Guardian) breaker() *Breaker {
	if g.Breaker != nil {
		return g.Breaker
	}
	return &g.own
}

// The bounds of the circuit breaker.
const (
	breakerWindow      = 50
	breakerConsecutive = 3
	breakerDenials     = 10
)

// A Breaker ends what a caller does when it was denied too often: three times in a row, or ten of
// the last fifty times. It begins anew then. The zero Breaker is ready.
type Breaker struct {
	mu          sync.Mutex
	window      []bool // whether the last reviews denied, the oldest first
	consecutive int
}

// count notes a review, and returns the warning if it was one denial too many.
func (b *Breaker) count(denied bool) (warning string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.window = append(b.window, denied)
	if len(b.window) > breakerWindow {
		b.window = b.window[1:]
	}
	if !denied {
		b.consecutive = 0
		return ""
	}
	b.consecutive++
	all := 0
	for _, d := range b.window {
		if d {
			all++
		}
	}
	if b.consecutive < breakerConsecutive && all < breakerDenials {
		return ""
	}
	warning = fmt.Sprintf("Automatic approval review rejected too many approval requests for this turn (%d consecutive, %d in the last %d reviews); interrupting the turn.", b.consecutive, all, breakerWindow)
	b.window, b.consecutive = nil, 0
	return warning
}

var errNoModel = errors.New("no model is named; set reviewer.model")
