// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// TestQuestions: a run in another process asks, the page shows it, and the answer of the page counts.
func TestQuestions(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	for _, test := range []struct {
		name     string
		answer   func()
		decision string
		code     int
	}{
		{"approved by a click", func() { p.click("question", "answer-approved") }, "approved", 0},
		{"denied by a click", func() { p.click("question", "answer-denied") }, "denied", 123},
		{"approved by two strokes", func() { p.keys("y"); p.keys(kb.Enter) }, "approved", 0},
		{"denied by two strokes", func() { p.keys("n"); p.keys(kb.Enter) }, "denied", 123},
		{"the second letter counts", func() { p.keys("y"); p.keys("n"); p.keys(kb.Enter) }, "denied", 123},
		{"for the session", func() { p.click("question", "answer-approved_for_session") }, "approved_for_session", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.in(t, s)
			a := s.asks("--", "touch", "made-by-"+strings.ReplaceAll(test.name, " ", "-"))
			p.wait("question~made-by-" + strings.ReplaceAll(test.name, " ", "-"))
			p.until(`document.title.includes("1")`)
			test.answer()
			a.wantDecided(test.decision, test.code)
			p.gone("question")
			p.until(`!/\d/.test(document.title)`)
		})
	}
}

// TestQuestionIsSeenAtOnce measures how long after it was asked a question is in the page.
func TestQuestionIsSeenAtOnce(t *testing.T) {
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	var all []time.Duration
	for range 5 {
		eval[bool](p, `(sp.seen.at = 0, sp.until(() => sp.all(["question"]).length)
			.then(() => { sp.seen.at = Date.now(); }), true)`)
		a := s.asks("--", "touch", "made")
		p.wait("question")
		p.until(`sp.seen.at > 0`)
		all = append(all, time.UnixMilli(eval[int64](p, `sp.seen.at`)).Sub(a.at))
		p.click("question", "answer-denied")
		a.wantDecided("denied", 123)
		p.gone("question")
	}
	report(t, "a new question is visible", 200*time.Millisecond, all)
}

// TestQuestionKeys: one stroke decides nothing, nor does Enter alone, and another key takes the letter back.
func TestQuestionKeys(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	a := s.asks("--", "touch", "made")
	p.wait("question")
	for _, keys := range []string{"y" + kb.Escape + kb.Enter, "yq" + kb.Enter, kb.Escape + " "} {
		p.keys(keys)
		if code, out := s.says("approvals"); code != 0 || !strings.Contains(out, a.id) {
			t.Fatalf("the question is gone after %q: %s", keys, out)
		}
	}
	p.keys("n")
	p.keys(kb.Enter)
	a.wantDecided("denied", 123)
}

// TestQuestionOrder: the newest question is the first one, and each answer is for its own.
func TestQuestionOrder(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	older := s.asks("--", "touch", "older-one")
	p.wait("question~older-one")
	newer := s.asks("--", "touch", "newer-one")
	p.wait("question~newer-one")
	p.until(`document.title.includes("2")`)
	order := eval[string](p, `sp.all(["question"])
		.map((el) => el.textContent.includes("newer-one") ? "newer" : "older").join()`)
	if order != "newer,older" {
		t.Errorf("in this order: %s", order)
	}
	// Right after the list has moved, the page takes no answer.
	for p.count("question~older-one") > 0 {
		p.click("question~older-one", "answer-approved")
		p.until(`sp.all(["question~older-one"]).length === 0 || sp.all(["notice~just changed"]).length > 0`)
	}
	older.wantDecided("approved", 0)
	p.gone("question~older-one")
	p.click("question~newer-one", "answer-denied")
	newer.wantDecided("denied", 123)
}

// TestQuestionTooLate: an answer that came too late changes nothing and says who was first.
func TestQuestionTooLate(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	a := s.asks("--", "touch", "made")
	p.wait("question", "answer-approved")
	eval[bool](p, `(sp.hold(), true)`)
	s.must("deny", a.id)
	if got, code := a.decided(); got.Decision != "denied" || got.Source != "user" || code != 123 {
		t.Errorf("%+v, exit code %d", got, code)
	}
	p.click("question", "answer-approved")
	eval[bool](p, `(sp.release(), true)`)
	p.wait("notice~user")
	p.gone("question")
	if s.read("made") != "" {
		t.Error("the run has run")
	}
}

// TestTwoConsoles: of two answers from two consoles one counts, and the other one is told.
func TestTwoConsoles(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	one, two := open(t, s.console()), open(t, s.console())
	one.view("questions")
	two.view("questions")
	a := s.asks("--", "touch", "made")
	one.wait("question", "answer-denied")
	two.wait("question", "answer-approved")
	eval[bool](two, `(sp.hold(), true)`)
	one.click("question", "answer-denied")
	a.wantDecided("denied", 123)
	two.click("question", "answer-approved")
	eval[bool](two, `(sp.release(), true)`)
	two.wait("notice~console")
	two.gone("question")
	one.gone("question")
}

// TestQuestionContent: what a person decides about is whole, and escaped.
func TestQuestionContent(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("questions")
	long := strings.Repeat("0123456789", 500)
	hostile := []string{"<img src=x onerror='document.title=1;window.pwned=1'>", "<script>window.pwned=1</script>",
		"red\x1b[31m", "bell\a", "left\u202eright", "iso\u2066late", "zero\u200bwidth", "c1\u009b2J", "&lt;b&gt;",
		"new\nline"}
	a := s.asks(append([]string{"--", "touch", long}, hostile...)...)
	p.wait("question", "question-command")
	text := p.text("question", "question-command")
	if n := strings.Count(text, "0123456789"); n != 500 {
		t.Errorf("%d of 500 parts of the command are shown", n)
	}
	for _, want := range []string{hostile[0][:12], "<script>window.pwned=1</script>", "&lt;b&gt;", `\x1b`,
		`\u202e`, `\u2066`, `\u200b`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text[len(long):])
		}
	}
	wantPrintable(t, text)
	if n := eval[int](p, `document.querySelectorAll("img, [data-testid=question] script").length`); n != 0 {
		t.Errorf("%d elements are made of the command", n)
	}
	if eval[bool](p, `window.pwned !== undefined`) {
		t.Error("a script of the command ran")
	}
	whole := p.text("question")
	for _, want := range []string{s.work, "/touch", "no rule allows"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q in %s", want, printable(strings.ReplaceAll(whole, long, "...")))
		}
	}
	p.wait("question", "question-waits")
	p.click("question", "answer-denied")
	a.wantDecided("denied", 123)
}

// wantPrintable fails the test if a text has control or bidirectional characters.
func wantPrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		hidden := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
			strings.ContainsRune("\u061c\u200b\u200e\u200f\u2060\ufeff", r) ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		if hidden {
			t.Errorf("%q is shown", r)
		}
	}
}
