// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/approval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDecodeCall(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       error
	}{
		{"list", `{"version":1,"do":"list"}`, nil},
		{"approve", `{"version":1,"do":"answer","id":"x-1","decision":"approved"}`, nil},
		{"rule", `{"version":1,"do":"answer","id":"x-1","decision":"approved_execpolicy_amendment"}`, nil},
		{"deny", `{"version":1,"do":"answer","id":"x-1","decision":"denied","message":"no"}`, nil},
		{"no decision denies", `{"version":1,"do":"answer","id":"x-1"}`, nil},
		{"forget", `{"version":1,"do":"forget","id":"x-1"}`, nil},
		{"nothing", ``, errInvalid},
		{"no object", `[]`, errInvalid},
		{"no version", `{"do":"list"}`, ErrVersion},
		{"another version with other members", `{"version":2,"do":"list","new":1}`, ErrVersion},
		{"an unknown member", `{"version":1,"do":"list","new":1}`, errInvalid},
		{"two objects", `{"version":1,"do":"list"}{}`, errInvalid},
		{"an unknown word", `{"version":1,"do":"stop"}`, errInvalid},
		{"an answer to nothing", `{"version":1,"do":"answer","decision":"approved"}`, errInvalid},
		{"an unknown decision", `{"version":1,"do":"answer","id":"x","decision":"yes"}`, errInvalid},
		{"a decision that no one gives", `{"version":1,"do":"answer","id":"x","decision":"timed_out"}`, errInvalid},
		{"a host", `{"version":1,"do":"answer","id":"x","decision":"network_policy_amendment"}`, errInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			if c, err := decodeCall([]byte(test.line)); !errors.Is(err, test.want) || (c == nil) != (err != nil) {
				t.Errorf("%+v, %v, want %v", c, err, test.want)
			}
		})
	}
}

// FuzzDecodeCall: what is read can be written and is the same then, and no answer passes that
// cannot be given.
func FuzzDecodeCall(f *testing.F) {
	f.Add([]byte(`{"version":1,"do":"answer","id":"x-1","decision":"approved","message":"a"}`))
	f.Add([]byte(`{"version":1,"do":"list"}` + "\n"))
	f.Add([]byte(`{"VERSION":1,"do":"forget","id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := decodeCall(line)
		if err != nil {
			return
		}
		again, err := encode(c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := decodeCall(again)
		if err != nil || *d != *c || !slices.Contains(answers, c.Decision) {
			t.Errorf("%+v, then %+v, %v", c, d, err)
		}
	})
}

// FuzzDecodeReply: what a listener sends is refused or can be shown.
func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte(`{"version":1,"pending":[{"id":"x-1","argv":["a"],"requires":["outside"],"offers":[{"decision":"approved_execpolicy_amendment","rule":["a","b"]}]}],"session":[{"id":"y"}]}`))
	f.Add([]byte(`{"version":1,"pending":[null]}`))
	f.Add([]byte(`{"version":1,"error":"unknown"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decodeReply(line)
		if err != nil {
			return
		}
		l := &Listing{}
		l.take(door{pid: 1}, r)
		if strings.ContainsAny(l.String(), "\x1b\r\u202e") {
			t.Errorf("%q", l.String())
		}
	})
}

func TestReadLine(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       string
		bad        bool
	}{
		{"a line", "abc\n", "abc\n", false},
		{"the first of two", "abc\ndef\n", "abc\n", false},
		{"half a line", "abc", "", true},
		{"as long as it may be", "abcdefg\n", "abcdefg\n", false},
		{"too long", "abcdefgh\n", "", true},
		{"endless", strings.Repeat("x", 1000), "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := readLine(strings.NewReader(test.text), 8); string(got) != test.want || (err != nil) != test.bad {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestPick(t *testing.T) {
	ids := []string{"abc-1", "abc-10", "abd-1", "rule-0a"}
	for id, want := range map[string]int{"abc-1": 0, "abc-10": 1, "abd": 2, "r": 3, "ab": -1, "abc": -1, "x": -1, "": -1, "bc-1": -1, "abd-12": -1} {
		if got, err := pick(ids, id); got != want || (err != nil) != (want < 0) {
			t.Errorf("%q: %d, %v, want %d", id, got, err, want)
		}
	}
	var e *IDError
	if _, err := pick(ids, "ab"); !errors.As(err, &e) || !e.Many {
		t.Error(err)
	}
}

// TestRuleLines: only lines that an approval could have written are listed.
func TestRuleLines(t *testing.T) {
	const written = `prefix_rule(pattern=["git", "push"], decision="allow")`
	text := strings.Join([]string{
		written, "# " + written, "  " + written, written + " # mine", `prefix_rule(pattern=["a"], decision="forbidden")`,
		`prefix_rule(pattern=[x], decision="allow")`, written + "\r", `network_rule(host="example.com", protocol="https", decision="allow")`, `network_rule(host=`, "",
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
	l := &Listing{
		Pending: []Question{{PID: 1, Request: &approval.Request{ID: hostile, Args: []string{hostile}, Script: "a\nquestion 2 of process 1:\n", Dir: hostile, Reason: hostile, Justification: hostile}}},
		Session: []Session{{ID: hostile, Args: []string{hostile}}}, Rules: []Rule{{"rule-1", hostile}},
	}
	text := l.String()
	if strings.Count("\n"+text, "\nquestion") != 1 || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%s", text)
	}
}
