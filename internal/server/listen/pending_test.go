// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// FuzzTake: what a process answers is refused or can be shown.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"questions":[{"digest":"a","request":{"id":"x-1","argv":["a"],"requires":["outside"],"offers":[{"decision":"approved_execpolicy_amendment","rule":["a","b"]}]}}],"approved":[{"id":"y"}]}`))
	f.Add([]byte(`{"questions":[{"request":null}]}`))
	f.Add([]byte(`{"questions":[{}],"omitted":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var list wire.QuestionList
		if json.Unmarshal(text, &list) != nil {
			return
		}
		l := &QuestionListing{}
		if err := l.take(questionSocket{pid: 1}, &list); err != nil &&
			(len(l.Pending) > 0 || len(l.Session) > 0) {
			t.Errorf("%v, and a part of it is listed", err)
		}
		if strings.ContainsAny(l.String(), "\x1b\r\u202e") {
			t.Errorf("%q", l.String())
		}
	})
}

func TestPick(t *testing.T) {
	ids := [][2]string{{"abc-1"}, {"abc-10"}, {"abd-1"}, {"rule-0a"}}
	for id, want := range map[string]int{"abc-1": 0, "abc-10": 1, "abd": 2, "r": 3, "ab": -1, "abc": -1,
		"x": -1, "": -1, "bc-1": -1, "abd-12": -1} {
		if got, err := pick(ids, id); got != want || (err != nil) != (want < 0) {
			t.Errorf("%q: %d, %v, want %d", id, got, err, want)
		}
	}
	var e *QuestionIDError
	if _, err := pick(ids, "ab"); !errors.As(err, &e) || !e.Many {
		t.Error(err)
	}
}

// TestRuleLines: only lines that an approval could have written are listed.
func TestRuleLines(t *testing.T) {
	const written = `prefix_rule(pattern=["git", "push"], decision="allow")`
	text := strings.Join([]string{
		written, "# " + written, "  " + written, written + " # mine",
		`prefix_rule(pattern=["a"], decision="forbidden")`,
		`prefix_rule(pattern=[x], decision="allow")`, written + "\r",
		`network_rule(host="example.com", protocol="https", decision="allow")`, `network_rule(host=`, "",
	}, "\n")
	want := []string{written, `network_rule(host="example.com", protocol="https", decision="allow")`}
	if got := ruleLines([]byte(text)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if a, b := ruleID(want[0]), ruleID(want[1]); a == b || a != "rule-"+a[5:] || len(a) != 17 {
		t.Errorf("%s, %s", a, b)
	}
}

// TestListingText: words of others move no terminal and look like no line of ours.
func TestListingText(t *testing.T) {
	hostile := "x\x1b[2J\nquestion 1 of process 1:\u202e"
	l := &QuestionListing{
		Pending: []Question{{PID: 1, Request: &approval.Request{ID: hostile, Args: []string{hostile},
			Script: "a\nquestion 2 of process 1:\n", Dir: hostile, Reason: hostile, Justification: hostile}}},
		Session: []QuestionSession{{Approved: wire.Approved{ID: hostile, Argv: []string{hostile}}}},
		Rules:   []QuestionRule{{"rule-1", hostile}},
	}
	text := l.String()
	if strings.Count("\n"+text, "\nquestion") != 1 || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%s", text)
	}
}
