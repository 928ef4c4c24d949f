// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// An Approver answers questions. Approve blocks until there is an answer or ctx ends; what it
// has opened for the question is gone when it returns. Every error but [ErrPass] denies.
type Approver interface {
	Approve(ctx context.Context, r *Request) (Decision, error)
}

// ErrPass says that an approver has no answer, and that the next one may be asked.
var ErrPass = errors.New("approval: no answer")

// Func is a function as an Approver.
type Func func(ctx context.Context, r *Request) (Decision, error)

// Approve calls f, with a context that is not nil.
func (f Func) Approve(ctx context.Context, r *Request) (Decision, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return Decision{}, err
	}
	return f(ctx, r)
}

// Fixed returns an Approver that always gives one answer.
func Fixed(d Decision) Approver {
	return Func(func(context.Context, *Request) (Decision, error) { return d, nil })
}

// Chain returns an Approver that asks in turn: an approver that passes leaves the question to the
// next one. It passes if all do, and without approvers.
func Chain(as ...Approver) Approver {
	return Func(func(ctx context.Context, r *Request) (Decision, error) {
		for _, a := range as {
			if d, err := a.Approve(ctx, r); !errors.Is(err, ErrPass) {
				return d, err
			}
		}
		return Decision{}, ErrPass
	})
}

// answered is what one of several approvers said.
type answered struct {
	d   Decision
	err error
}

// ErrAnswered is the cause with which [First] cancels approvers: another one has answered.
var ErrAnswered = errors.New("approval: another approver has answered")

// An AnsweredError says that a question has its answer already. It is [ErrAnswered] and [ErrUnknown].
type AnsweredError struct {
	// By is who was first; "timeout" where no answer came in time, and empty where it is not known.
	By Source
}

func (e *AnsweredError) Error() string {
	if e.By == "" {
		return ErrAnswered.Error()
	}
	return ErrAnswered.Error() + ": " + string(e.By)
}

// Is reports whether target is ErrAnswered or ErrUnknown.
func (e *AnsweredError) Is(target error) bool { return target == ErrAnswered || target == ErrUnknown }

// answeredBy returns the error for those who answer after d.
func answeredBy(d *Decision) *AnsweredError {
	if d.Answer == TimedOut {
		return &AnsweredError{By: "timeout"}
	}
	return &AnsweredError{By: d.Source}
}

// First returns an Approver that asks all at once; the first answer counts, and the others are
// canceled. It returns when all have ended, and passes if all pass.
func First(as ...Approver) Approver {
	return Func(func(ctx context.Context, r *Request) (Decision, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		first := answered{err: ErrPass}
		answers := make(chan answered, len(as)) // it has room for all
		for _, a := range as {
			go func() {
				d, err := approve(ctx, a, r)
				answers <- answered{d, err}
			}()
		}
		for range as {
			got := <-answers
			if errors.Is(first.err, ErrPass) && !errors.Is(got.err, ErrPass) {
				first = got
				cancel(answeredBy(&first.d))
			}
		}
		return first.d, first.err
	})
}

// approve is a.Approve, which must answer: a panic of it is an error, and so is the end of its goroutine.
func approve(ctx context.Context, a Approver, r *Request) (d Decision, err error) {
	err = strict.Call("the approver", func() (err error) {
		d, err = a.Approve(ctx, r)
		return err
	})
	return d, err
}

// Ask asks an approver, and makes a denial of everything that is no answer to this request: an
// error, a panic, an answer that was not offered. Only the end of ctx is an error, and
// [ErrPass] of an approver that passes.
func Ask(ctx context.Context, a Approver, r *Request) (Decision, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return Decision{}, err
	}
	if a == nil {
		return Decision{}, ErrPass
	}
	d, err := approve(ctx, a, r)
	switch {
	case ctx.Err() != nil:
		return Decision{}, context.Cause(ctx)
	case errors.Is(err, ErrPass):
		return Decision{}, ErrPass
	case err != nil:
		return Decision{Source: d.Source, Message: err.Error()}, nil //nolint:nilerr // it denies
	case !r.Takes(&d):
		return Decision{Source: d.Source, Message: fmt.Sprintf("the answer %s was not offered",
			d.Answer)}, nil
	}
	return d, nil
}
