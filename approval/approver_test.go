// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// says returns an approver that gives an answer at once.
func says(a Answer, by Source) Approver { return Fixed(Decision{Answer: a, Source: by}) }

var (
	errBroken = errors.New("broken")
	passes    = Func(func(context.Context, *Request) (Decision, error) { return Decision{}, ErrPass })
	broken    = Func(func(context.Context,
		*Request) (Decision, error) {
		return Decision{Answer: Approved}, errBroken
	})
	// waits answers when it is canceled, and says yes: too late.
	waits = Func(func(ctx context.Context, _ *Request) (Decision, error) {
		<-ctx.Done()
		return Decision{Answer: Approved, Source: "late"}, nil
	})
)

// TestCombinations: who answers counts, by the way in which several are asked.
func TestCombinations(t *testing.T) {
	for _, test := range []struct {
		name string
		of   Approver
		want Answer
		by   Source
		err  error
	}{
		{"chain of none", Chain(), Denied, "", ErrPass},
		{"chain, all pass", Chain(passes, passes), Denied, "", ErrPass},
		{"chain, the second", Chain(passes, says(Approved, "2"), says(Denied, "3")), Approved, "2", nil},
		{"chain, a denial ends it", Chain(says(Denied, "1"), says(Approved, "2")), Denied, "1", nil},
		{"chain, a failure ends it", Chain(broken, says(Approved, "2")), Denied, "", errBroken},
		{"first of none", First(), Denied, "", ErrPass},
		{"first, all pass", First(passes, passes), Denied, "", ErrPass},
		{"first, the other waits", First(waits, says(Denied, "2")), Denied, "2", nil},
		{"first, one passes", First(passes, says(Approved, "2")), Approved, "2", nil},
		{"first, a failure", First(broken, waits), Denied, "", errBroken},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := test.of.Approve(t.Context(), question("1", ""))
			if !errors.Is(err, test.err) || err == nil && (d.Answer != test.want || d.Source != test.by) {
				t.Errorf("%+v, %v; want %v by %q, %v", d, err, test.want, test.by, test.err)
			}
		})
	}
}

// TestAsk: what is no answer to the question denies.
func TestAsk(t *testing.T) {
	r := question("1", "")
	r.Offers = []Offer{{Answer: ApprovedRule, Rule: []string{"go", "vet"}},
		{Answer: ApprovedHost, Host: "a.example"}}
	small := &Request{Available: []Answer{Approved}}
	for _, test := range []struct {
		name    string
		a       Approver
		r       *Request
		approve bool
		message string
		err     error
	}{
		{"approved", says(Approved, FromUser), r, true, "", nil},
		{"no approver", nil, r, false, "", ErrPass},
		{"passes", passes, r, false, "", ErrPass},
		{"fails with a yes", broken, r, false, "broken", nil},
		{"the offered rule", Fixed(Decision{Answer: ApprovedRule, Rule: []string{"go", "vet"}}), r, true, "", nil},
		{"a wider rule", Fixed(Decision{Answer: ApprovedRule, Rule: []string{"go"}}), r, false, "was not offered", nil},
		{"the offered host", Fixed(Decision{Answer: ApprovedHost, Host: "a.example"}), r, true, "", nil},
		{"another host", Fixed(Decision{Answer: ApprovedHost, Host: "b.example"}), r, false, "was not offered", nil},
		{"for the session, not offered", says(ApprovedForSession, FromUser), small, false, "was not offered", nil},
		{"no such answer", says(99, FromUser), r, false, "was not offered", nil},
		{"timed out", says(TimedOut, FromUser), small, false, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := Ask(t.Context(), test.a, test.r)
			if !errors.Is(err, test.err) || d.Answer.Approves() != test.approve ||
				!strings.Contains(d.Message, test.message) {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if d, err := Ask(ctx, says(Approved, FromUser), r); !errors.Is(err, errBroken) || d.Answer.Approves() {
		t.Errorf("after the end: %v, %v", d, err)
	}
}

// TestForms: the words on the wire, and lists that are there when they are empty.
func TestForms(t *testing.T) {
	for i, word := range answerWords {
		a, back := Answer(i), Answer(99)
		if text, err := a.MarshalText(); err != nil || string(text) != word {
			t.Errorf("%d: %s, %v", i, text, err)
		}
		if err := back.UnmarshalText([]byte(word)); err != nil || back != a {
			t.Errorf("%s: %d, %v", word, back, err)
		}
	}
	bad := Denied
	if err := bad.UnmarshalText([]byte("yes")); err == nil || bad != Denied {
		t.Errorf("%v, %v", bad, err)
	}
	if Answer(99).Approves() || Answer(99).String() != "denied" {
		t.Error("an unknown answer is no denial")
	}
	text, err := json.Marshal(Request{ID: "1", Kind: KindCommand, Key: "secret"})
	const want = `{"id":"1","kind":"command","argv":[],"script":"","cwd":"","program":"","reason":"","justification":"","requires":[],"denials":[],"runs":0,"offers":[],"available_decisions":[]}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	text, err = json.Marshal(question("1", ""))
	if err != nil || !strings.Contains(string(text),
		`"available_decisions":["approved","approved_for_session","denied","abort"]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestRefusal: what the caller is told. The approver's own words come first.
func TestRefusal(t *testing.T) {
	for want, d := range map[string]Decision{
		"rejected by user":          {Source: FromUser},
		"rejected by configuration": {Source: FromHook},
		"no approval came in time":  {Answer: TimedOut},
		"not on a Friday":           {Source: FromHook, Message: "not on a Friday"},
	} {
		if got := d.Refusal(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
