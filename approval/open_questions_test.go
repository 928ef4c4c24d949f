// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
)

// TestBoard: the first answer that a question takes counts; others say why they do not.
func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		var b OpenQuestions
		if err := b.Answer("1", Decision{Answer: Approved}); !errors.Is(err, ErrUnknown) {
			t.Errorf("before the question: %v", err)
		}
		changed := b.Changed()
		r := question("1", "k")
		r.Offers = []Offer{{Answer: ApprovedRule, Rule: []string{"go", "vet"}},
			{Answer: ApprovedRule, Rule: []string{"go"}}}
		q := ask1(t.Context(), &m, &b, r)
		<-changed
		for name, d := range map[string]Decision{
			"a host":             {Answer: ApprovedHost, Host: "example.com"},
			"an offered no host": {Answer: ApprovedHost},
			"another rule":       {Answer: ApprovedRule, Rule: []string{"rm"}},
			"no such answer":     {Answer: 77},
		} {
			if err := b.Answer("1", d); !errors.Is(err, ErrNotOffered) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := b.Answer("2", Decision{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("another question: %v", err)
		}
		if len(b.Pending()) != 1 {
			t.Fatal("the question is gone")
		}
		changed = b.Changed()
		if err := b.Answer("1", Decision{Answer: ApprovedRule}); err != nil {
			t.Fatal(err)
		}
		<-changed
		if err := b.Answer("1", Decision{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("the second answer: %v", err)
		}
		<-q.done
		if want := (Decision{Answer: ApprovedRule, Rule: []string{"go", "vet"},
			Source: FromUser}); q.err != nil || !reflect.DeepEqual(q.d, want) {
			t.Errorf("%+v, %v", q.d, q.err)
		}
	})
}

// TestBoardCanceled: an answer and the end of the context at the same moment leave no question,
// and what is approved then does not count.
func TestBoardCanceled(t *testing.T) {
	for range 200 {
		var b OpenQuestions
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			d, err := Ask(ctx, &b, question("1", ""))
			if err == nil && d.Answer != Approved {
				err = errors.New("another answer")
			}
			result <- err
		}()
		for changed := b.Changed(); len(b.Pending()) == 0; changed = b.Changed() {
			<-changed
		}
		go cancel()
		answered := b.Answer("1", Decision{Answer: Approved})
		err := <-result
		if err != nil && !errors.Is(err, context.Canceled) || err == nil && answered != nil ||
			len(b.Pending()) != 0 {
			t.Fatalf("%v, %v, %d questions", answered, err, len(b.Pending()))
		}
		cancel()
	}
}
