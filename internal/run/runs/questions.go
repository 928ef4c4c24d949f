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

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Questions are the open questions of a run, or of a process, and what was approved for its session.
type Questions struct {
	RunID string // that of the run in its [Table], which sets it; empty for a process without one
	Open  *approval.OpenQuestions
	// Await returns when each question that was announced is on the OpenQuestions or over, or ctx ends.
	Await func(ctx context.Context)
	// Remembered and Revoke are those of the Runner.
	Remembered func() []approval.Remembered
	Revoke     func(id string) error
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
	}
	return refuse(UnknownQuestion, "question %s is not open", text.Word(id))
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
