// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Questions are the open questions of a run, or of a process, and what was approved for its session.
type Questions struct {
	RunID string // that of the run in its [Table], which sets it; empty for a process without one
	Open  *approval.OpenQuestions
	// Await returns when each question that was announced is on the OpenQuestions or over, or ctx ends.
	Await func(ctx context.Context)
	// Limits says until when questions are open; nil for no limits that are known.
	Limits *Limits
	// Remembered and Revoke are those of the Runner.
	Remembered func() []approval.Remembered
	Revoke     func(id string) error
}

// Limits says until when questions are open. The zero Limits knows of none. Its methods may be called from
// several goroutines at once.
type Limits struct {
	changes Changes

	mu sync.Mutex
	at map[string]time.Time
}

// Set says until when the question with an ID is open; the zero time is that it has no limit, or is over.
func (l *Limits) Set(id string, at time.Time) {
	l.mu.Lock()
	if at.IsZero() {
		delete(l.at, id)
	} else {
		if l.at == nil {
			l.at = map[string]time.Time{}
		}
		l.at[id] = at
	}
	l.mu.Unlock()
	l.changes.Tell()
}

// Of returns when the question with an ID expires, in milliseconds since 1970; 0 for no limit that is known.
func (l *Limits) Of(id string) int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.at[id]; !at.IsZero() {
		return at.UnixMilli()
	}
	return 0
}

// Questions returns those of the runs of an owner, by the numbers of the runs.
func (t *Table) Questions(owner string) (list []*Questions) {
	for _, r := range t.sorted(owner) {
		if r.prepared.Questions != nil {
			list = append(list, r.prepared.Questions)
		}
	}
	return list
}

// Question returns the JSON form of a question, and the digest that identifies what it says.
func Question(r *approval.Request) (text json.RawMessage, digest string, err error) {
	text, err = json.Marshal(r)
	if err != nil {
		return nil, "", fmt.Errorf("cannot encode the question: %w", err)
	}
	text = append([]byte(`{"type":"approval_request",`), text[1:]...)
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}

// Answer answers the open question with an ID, if it has the digest. The error is an *Error with the
// reason UnknownQuestion, OtherQuestion or NotOffered; after the last two the question stays open.
func Answer(all []*Questions, id, digest string, d approval.Decision) error {
	var by approval.Source
	for _, q := range all {
		for _, r := range q.Open.Pending() {
			if r.ID != id {
				continue
			}
			if _, is, err := Question(r); err != nil || is != digest {
				return refuse(OtherQuestion,
					"the answer is to another question than %s, which is open; list it again", text.Word(id))
			}
			if err := q.Open.Answer(id, d); errors.Is(err, approval.ErrNotOffered) {
				return refuse(NotOffered, "the answer was not offered for question %s", text.Word(id))
			} else if err == nil {
				return nil
			}
		}
		for _, o := range q.Open.Answered() {
			if o.ID == id {
				by = o.By
			}
		}
	}
	e := refuse(UnknownQuestion, "question %s is not open", text.Word(id))
	if by != "" {
		e = refuse(UnknownQuestion, "question %s was answered already, by: %s", text.Word(id), by)
		e.By = by
	}
	return e
}

// Forget takes back what was approved for the session with an ID. The error is an *Error with the
// reason UnknownQuestion.
func Forget(all []*Questions, id string) error {
	for _, q := range all {
		if q.Revoke(id) == nil {
			return nil
		}
	}
	return refuse(UnknownQuestion, "nothing is remembered of question %s", text.Word(id))
}
