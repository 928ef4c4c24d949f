// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestJSON holds the JSON form, which other programs read: a change here is a
// change of the contract.
func TestJSON(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 5, time.FixedZone("east", 3600))
	const head = `{"v":1,"type":"`
	const mid = `","time":"2026-08-01T11:00:00.000000005Z","seq":7,"run":"r","attempt":1`
	question := approval.Request{ID: "r-1", Args: []string{"touch", "<x\n>"}, Requires: []string{"write:/p"}}
	tests := []struct {
		body Body
		want string // the members of the body
	}{
		{Judged{Args: []string{"a", "b"}, Dir: "/w", Decision: DecisionPrompt, Reason: "it <asks>"},
			`,"argv":["a","b"],"cwd":"/w","decision":"prompt","reason":"it <asks>"}`},
		{Judged{Review: true}, `,"argv":[],"cwd":"","decision":"","strict_review":true}`},
		{Judged{}, `,"argv":[],"cwd":"","decision":""}`},
		{ReviewStarted{Review: approval.Review{ID: "v", Request: &question, Model: "m", Status: approval.ReviewInProgress, Started: at}},
			`,"id":"v","request_id":"r-1","status":"in_progress","started_at_ms":1785582000000,"decision_source":"agent","model":"m","shadow":false,"action":"touch <x\\n> (write:/p)"}`},
		{ReviewCompleted{Review: approval.Review{
			ID: "v", Request: &question, Model: "m", Shadow: true, Status: approval.ReviewDenied, Started: at,
			Completed: at.Add(time.Second),
			Outcome:   "allow", Risk: "critical", Authorization: "low", Rationale: "it <is>", Attempts: 2,
		}},
			`,"id":"v","request_id":"r-1","status":"denied","started_at_ms":1785582000000,"decision_source":"agent","model":"m","shadow":true,"action":"touch <x\\n> (write:/p)",` +
				`"completed_at_ms":1785582001000,"attempts":2,"outcome":"allow","risk":"critical","authorization":"low","rationale":"it <is>"}`},
		{ReviewCompleted{Review: approval.Review{ID: "v", Request: new(approval.Request), Status: approval.ReviewAborted, Started: at, Completed: at, Failure: "x"}},
			`,"id":"v","request_id":"","status":"aborted","started_at_ms":1785582000000,"decision_source":"agent","model":"","shadow":false,"action":"","completed_at_ms":1785582000000,"attempts":0,"error":"x"}`},
		{Started{Sandbox: Sandbox{Mode: "read-only", Sandbox: executor.Sandbox{Level: "native", Weaker: []string{"w"}}}, Withheld: []string{"A_KEY"}},
			`,"sandbox":{"mode":"read-only","network":"none","level":"native","mechanism":[],"weaker":["w"],"observed":false},"withheld":["A_KEY"]}`},
		{Output{Stream: executor.Stderr, Number: 2, Offset: 10, Data: []byte("é")},
			`,"stream":"stderr","number":2,"offset":10,"text":"é"}`},
		{Output{Number: 1, Data: []byte("a\xff")}, `,"stream":"stdout","number":1,"offset":0,"text":"a` + "\ufffd" + `","data":"Yf8="}`},
		{Output{Number: 3, Offset: 4, DroppedEvents: 5, DroppedBytes: 6},
			`,"stream":"stdout","number":3,"offset":4,"text":"","dropped_events":5,"dropped_bytes":6}`},
		{Denied{sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/x"}}},
			`,"op":"write","path":"/x","addr":"","call":"","errno":"","source":"guessed","pid":0,"program":"","rule":"","grant":"","count":1}`},
		{Network{network.Record{Host: "h.example", Port: 443, Protocol: network.HTTPSConnect, Reason: network.NotAllowed, Source: network.BaselinePolicy}},
			`,"host":"h.example","port":443,"protocol":"https_connect","decision":"deny","reason":"not_allowed","source":"baseline_policy","policy_version":0}`},
		{Network{network.Record{Host: "h.example", Port: 80, Method: "GET", Decision: network.Allow, Reason: network.Allowed, Rule: "*.example", PolicyVersion: 2, End: &network.End{Resolved: "192.0.2.1:80", Up: 1, Down: 2, MS: 3, Cause: "ended"}}},
			`,"host":"h.example","port":80,"protocol":"http","method":"GET","decision":"allow","reason":"allowed","source":"","rule":"*.example","policy_version":2,"end":{"resolved":"192.0.2.1:80","bytes_up":1,"bytes_down":2,"duration_ms":3,"cause":"ended"}}`},
		{Exited{Code: 137, Signal: 9, Survivors: []executor.Survivor{{PID: 3, Name: "x"}}, Duration: time.Second},
			`,"exit_code":137,"signal":9,"survivors":[{"pid":3,"name":"x"}],"duration_ms":1000}`},
		{SandboxOutcome{Outcome: OutcomeDenied, Initial: time.Second, Mode: "read-only", Level: "native"},
			`,"outcome":"denied","initial_duration_ms":1000,"mode":"read-only","level":"native","evidence":[]}`},
		{SandboxOutcome{Outcome: OutcomeEscalated, Initial: time.Second, Mode: "m", Level: "none", Evidence: []sandbox.Source{sandbox.Audited, sandbox.Notified}},
			`,"outcome":"escalated","initial_duration_ms":1000,"escalated_duration_ms":0,"mode":"m","level":"none","evidence":["audited","notified"]}`},
		{Recorded{Path: "/r.cast", Format: "asciicast-v3", SHA256: "ab", Bytes: 9, Gaps: 1, Hidden: 2},
			`,"path":"/r.cast","format":"asciicast-v3","sha256":"ab","bytes":9,"gaps":1,"hidden":2}`},
		{Ended{ExitCode: -1, End: "refused", Error: "no"}, `,"exit_code":-1,"end":"refused","error":"no","duration_ms":0}`},
	}
	for _, test := range tests {
		t.Run(test.body.Kind(), func(t *testing.T) {
			got, err := Event{Time: at, Seq: 7, Run: "r", Attempt: 1, Body: test.body}.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if want := head + test.body.Kind() + mid + test.want; string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if !json.Valid(got) {
				t.Error("it is not JSON")
			}
		})
	}
	t.Run("no body", func(t *testing.T) {
		if got, err := (Event{}).MarshalJSON(); err == nil {
			t.Errorf("got %s, want an error", got)
		}
	})
}

// TestCallerIDUnknown keeps the id of the caller of an event of a later version, once.
func TestCallerIDUnknown(t *testing.T) {
	const text = `{"v":1,"type":"later","time":"2026-01-02T03:04:05Z","seq":1,"run":"r","attempt":1,"caller_id":"c","more":2}`
	var e Event
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.CallerID != "c" {
		t.Fatalf("%+v, %v", e, err)
	}
	if back, err := json.Marshal(e); err != nil || string(back) != text {
		t.Errorf("%s, %v", back, err)
	}
}

// TestHead: the envelope is what encoding/json makes of it, whatever its texts are.
func TestHead(t *testing.T) {
	at := time.Date(2026, 11, 29, 1, 2, 3, 40, time.FixedZone("x", 3600))
	for _, word := range []string{"", "plain", "<&>", `a "quote"`, `\`, "a\nline", "\x00\x1f\x7f",
		"é\u2028", "\xff"} {
		for _, e := range []Event{
			{Time: at, Seq: 1<<64 - 1, Run: word, Attempt: -1, CallerID: word, Body: Ended{}},
			{Time: at, Body: Unknown{Type: word}},
		} {
			want, err := encode(envelope{Version: Version, Type: e.Body.Kind(), Time: e.Time.UTC(), Seq: e.Seq,
				Run: e.Run, Attempt: e.Attempt, CallerID: e.CallerID})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.head(); err != nil || string(got) != string(want) {
				t.Errorf("%s %v, want %s", got, err, want)
			}
		}
	}
	if _, err := (Event{Time: at.AddDate(9000, 0, 0), Body: Ended{}}).MarshalJSON(); err == nil {
		t.Error("a year of five digits has a form")
	}
}
