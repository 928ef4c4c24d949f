// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// A reviewing is an approver that reports a review, and completes it with the answer of a board.
type reviewing struct{ board OpenQuestions }

func (v *reviewing) Approve(ctx context.Context, r *Request) (Decision, error) {
	review := Review{ID: "v" + r.ID, Request: r, Status: ReviewInProgress}
	Reviewing(ctx, review)
	d, err := v.board.Approve(ctx, r)
	review.Status = ReviewApproved
	if err != nil {
		review.Status = ReviewAborted
	}
	Reviewing(ctx, review)
	return d, err
}

// heard is what one who waits for an answer hears of reviews.
type heard struct {
	*asking
	cancel context.CancelFunc
	said   []string
}

func hears(t *testing.T, m *Memory, a Approver, r *Request) *heard {
	h := new(heard)
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	h.asking = ask1(WithReviews(ctx, func(r Review) {
		h.said = append(h.said, r.ID+" "+string(r.Status))
	}), m, a, r)
	synctest.Wait()
	return h
}

func (h *heard) is(t *testing.T, want string) {
	t.Helper()
	<-h.done
	if got := strings.Join(h.said, ", "); got != want {
		t.Errorf("it heard %q, want %q", got, want)
	}
}

// TestReviews: all who wait for an answer hear of its reviews, each one from its beginning to its
// end, also who comes later and who leaves earlier.
func TestReviews(t *testing.T) {
	whole, aborted := "v1 in_progress, v1 approved", "v1 in_progress, v1 aborted"
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m Memory
			var v reviewing
			first := hears(t, &m, &v, question("1", "same"))
			later := hears(t, &m, &v, question("2", "same"))
			leaves := hears(t, &m, &v, question("3", "same"))
			leaves.cancel()
			leaves.is(t, aborted)
			if err := v.board.Answer("1", Decision{Answer: Approved}); err != nil {
				t.Fatal(err)
			}
			first.is(t, whole)
			later.is(t, whole)
		})
	})
	t.Run("withdrawn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m Memory
			var v reviewing
			first := hears(t, &m, &v, question("1", "same"))
			later := hears(t, &m, &v, question("2", "same"))
			first.cancel()
			first.is(t, aborted)
			later.cancel()
			later.is(t, aborted)
			if left := v.board.Pending(); len(left) != 0 {
				t.Errorf("%d questions are open", len(left))
			}
		})
	})
	t.Run("aborted with another question", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m Memory
			var v reviewing
			first := hears(t, &m, &v, question("1", "same"))
			if d, _, _ := m.Ask(t.Context(), Fixed(Decision{Answer: Abort}),
				question("2", "other")); d.Answer != Abort {
				t.Errorf("the answer is %s", d.Answer)
			}
			first.is(t, aborted)
		})
	})
	t.Run("aborted with another question, and not remembered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m Memory
			var v reviewing
			first, second := hears(t, &m, &v, question("1", "")), hears(t, &m, &v, question("2", ""))
			if d, _, _ := m.Ask(t.Context(), Fixed(Decision{Answer: Abort}),
				question("3", "")); d.Answer != Abort {
				t.Errorf("the answer is %s", d.Answer)
			}
			first.is(t, aborted)
			second.is(t, strings.ReplaceAll(aborted, "v1", "v2"))
			if first.d.Answer != Abort || second.d.Answer != Abort || first.err != nil {
				t.Errorf("%+v, %+v", first.d, second.d)
			}
			if d, _, _ := m.Ask(t.Context(), Fixed(Decision{Answer: ApprovedForSession}),
				question("4", "")); d.Answer != ApprovedForSession || len(m.List()) != 0 {
				t.Errorf("%s, and remembered %+v", d.Answer, m.List())
			}
		})
	})
	t.Run("a question that is not remembered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m Memory
			var v reviewing
			first := hears(t, &m, &v, question("1", ""))
			first.cancel()
			first.is(t, aborted)
		})
	})
	t.Run("without a listener", func(t *testing.T) {
		Reviewing(t.Context(), Review{})
	})
}

// TestAction: a command on one line, cut.
func TestAction(t *testing.T) {
	for _, test := range []struct {
		name, want string
		r          Request
	}{
		{"words", "rm -r x", Request{Args: []string{"rm", "-r", "x"}}},
		{"a script", `ls\necho`, Request{Args: []string{"sh", "-c", "ls\necho"}, Script: "ls\necho"}},
		{"what it requires", "ls (write:/p, outside)", Request{Args: []string{"ls"}, Requires: []string{"write:/p", "outside"}}},
		{"a long one", strings.Repeat("é", 100) + "…", Request{Script: strings.Repeat("é", 101)}},
	} {
		if got := test.r.Action(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestReviewed: in strict review a person answers about what the reviewer approves; the reviewer alone
// does where that is said.
func TestReviewed(t *testing.T) {
	yes, no := Fixed(Decision{Answer: Approved, Source: FromReviewer}),
		Fixed(Decision{Answer: Denied, Source: FromReviewer})
	person := Fixed(Decision{Answer: Denied, Source: FromUser})
	passes := Func(func(context.Context, *Request) (Decision, error) { return Decision{}, ErrPass })
	for _, test := range []struct {
		name           string
		reviewer, next Approver
		alone          bool
		source         Source
		err            error
	}{
		{"a person", yes, person, true, FromUser, nil}, {"denied", no, person, false, FromReviewer, nil},
		{"no person", yes, nil, false, "", ErrPass}, {"a person who is not there", yes, passes, false, "", ErrPass},
		{"alone", yes, nil, true, FromReviewer, nil}, {"alone where no person is there", yes, passes, true, FromReviewer, nil},
	} {
		d, err := Reviewed(test.reviewer, test.next, test.alone).Approve(t.Context(), question("1", "k"))
		if !errors.Is(err, test.err) || err == nil && d.Source != test.source || err != nil && d.Approves() {
			t.Errorf("%s: %+v, %v", test.name, d, err)
		}
	}
}
