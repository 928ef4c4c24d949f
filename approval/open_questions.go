// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// An OpenQuestions is an Approver that keeps questions until they are answered from elsewhere: by another
// process, a console, a client on the wire. The zero OpenQuestions is ready. Its methods may be called
// from several goroutines at once.
type OpenQuestions struct {
	mu      sync.Mutex
	pending []*openQuestion
	over    []AnsweredQuestion // the last ones, the oldest first
	changed chan struct{}      // closed at the next change; nil if nothing watches
}

// openQuestion is a question on the OpenQuestions.
type openQuestion struct {
	request *Request
	answer  chan Decision // has room for the one answer
}

// An AnsweredQuestion is one that was open, with who has answered it, as [AnsweredError] has it.
type AnsweredQuestion struct {
	ID string
	By Source
}

// maxAnswered is how many questions are remembered that have their answer.
const maxAnswered = 256

// Errors of [OpenQuestions.Answer].
var (
	// ErrUnknown says that no question with this ID is open: there was none, or it was answered
	// or withdrawn.
	ErrUnknown = errors.New("approval: no such question is open")
	// ErrNotOffered says that a question does not take this answer; it stays open.
	ErrNotOffered = errors.New("approval: the answer was not offered")
)

// Approve posts the question and waits for its answer.
func (b *OpenQuestions) Approve(ctx context.Context, r *Request) (Decision, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return Decision{}, err
	}
	p := &openQuestion{r, make(chan Decision, 1)}
	b.mu.Lock()
	b.pending = append(b.pending, p)
	b.changeLocked()
	b.mu.Unlock()
	select {
	case d := <-p.answer:
		return d, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeLocked(p)
	var why *AnsweredError
	if errors.As(context.Cause(ctx), &why) {
		b.overLocked(r.ID, why.By)
	}
	select {
	case d := <-p.answer: // it came at the same moment
		return d, nil
	default:
		return Decision{}, context.Cause(ctx)
	}
}

// Pending returns the open questions, the oldest first. They must not be changed.
func (b *OpenQuestions) Pending() []*Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*Request, len(b.pending))
	for i, p := range b.pending {
		out[i] = p.request
	}
	return out
}

// Answer answers the open question with an ID. The answer to a rule, a host or a path
// without it takes the first offer. Of several answers the first one counts; the error for a later one is an
// [*AnsweredError], as long as who was first is remembered.
func (b *OpenQuestions) Answer(id string, d Decision) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.pending, func(p *openQuestion) bool { return p.request.ID == id })
	if i < 0 {
		for _, q := range b.over {
			if q.ID == id {
				return &AnsweredError{q.By}
			}
		}
		return fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	p := b.pending[i]
	if first := p.request.Decide(d.Answer); d.Rule == nil && d.Host == "" && d.Path == "" {
		d.Rule, d.Host, d.Path = first.Rule, first.Host, first.Path
	}
	if !p.request.Takes(&d) {
		return fmt.Errorf("%w: %s", ErrNotOffered, d.Answer)
	}
	if d.Source == "" {
		d.Source = FromUser
	}
	b.removeLocked(p)
	b.overLocked(id, answeredBy(&d).By)
	p.answer <- d
	return nil
}

// Changed returns a channel that is closed when a question comes or goes. Take it before Pending, so
// that no change is missed.
func (b *OpenQuestions) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *OpenQuestions) removeLocked(p *openQuestion) {
	if i := slices.Index(b.pending, p); i >= 0 {
		b.pending = slices.Delete(b.pending, i, i+1)
		b.changeLocked()
	}
}

// Answered returns the last questions that have their answer, the oldest first: at most 256.
func (b *OpenQuestions) Answered() []AnsweredQuestion {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.over)
}

// overLocked remembers who has answered a question, unless that is remembered already.
func (b *OpenQuestions) overLocked(id string, by Source) {
	if !slices.ContainsFunc(b.over, func(q AnsweredQuestion) bool { return q.ID == id }) {
		b.over = append(b.over[max(0, len(b.over)-maxAnswered+1):], AnsweredQuestion{id, by})
	}
}

func (b *OpenQuestions) changeLocked() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
