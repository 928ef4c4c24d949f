// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bodies have every member that stands in JSON, and each kind once without those that may be missing.
func bodies() []Body {
	at := time.UnixMilli(1_785_582_000_123).UTC()
	denial := sandbox.Denial{
		Access: sandbox.Access{Op: sandbox.Connect, Path: "/p", Addr: "192.0.2.1:443", Call: "ptrace"},
		Errno:  "EPERM", Source: sandbox.Proxied,
		PID: 7, Program: "/bin/x", Name: "x", Rule: "r", Grant: "--net", Wider: "--net host",
		Harmless: "h", Count: 3,
	}
	review := approval.Review{ID: "v", Request: &approval.Request{ID: "q"}, Model: "m", Shadow: true,
		Status: approval.ReviewTimedOut, Started: at}
	whole := review
	whole.Completed, whole.Attempts, whole.Failure = at.Add(time.Second), 2, "late"
	whole.Outcome, whole.Risk, whole.Authorization, whole.Rationale = "deny", "high", "low", "why"
	return []Body{
		Judged{}, Judged{
			Args: []string{"a", "<b>"}, Dir: "/w", Decision: DecisionForbid, Reason: "no",
			Rule: &Rule{"f", 2, 3, "prompt", "outside", "because"}, Review: true, PolicyVersion: "1",
		},
		ApprovalRequested{&approval.Request{}}, ApprovalRequested{&approval.Request{
			ID: "q", Kind: approval.KindAccess, Args: []string{"x"}, Script: "s", Dir: "/w",
			Program: "/bin/x", Digest: "d", Environment: "e",
			Files: []approval.File{{Path: "/f", Role: approval.RoleScript, Digest: "d"}}, Reason: "r",
			Arg0: "n", Variables: []string{"A=1"}, Input: "a file", Justification: "j", Requires: []string{approval.Outside},
			Denials: []sandbox.Denial{denial}, Runs: 1, Waiting: true, WaitMS: 5,
			Available: []approval.Answer{approval.ApprovedForSession, approval.Denied},
			Offers: []approval.Offer{{Answer: approval.ApprovedRule, Rule: []string{"x"}},
				{Answer: approval.ApprovedHost, Host: "h", Protocol: "https", Deny: true},
				{Answer: approval.Approved, Path: "/p"}},
		}},
		ReviewStarted{Review: review, Action: "touch x"},
		ReviewCompleted{Review: whole, Action: strings.Repeat("long ", 200)},
		ApprovalDecided{}, ApprovalDecided{
			ID: "q", Decision: approval.ApprovedHost, Source: approval.FromUser, WaitMS: 4, Message: "m",
			Rule: []string{"a"}, Host: "h", Deny: true, Path: "/p",
			PolicyVersion: "1", Evidence: []sandbox.Source{sandbox.Notified, sandbox.Audited},
		},
		Granted{}, Granted{sandbox.Write, "/p", approval.FromUser, 6, "mkdir", 7},
		Retrying{}, Retrying{"r", []string{"write:/p"}},
		SandboxOutcome{}, SandboxOutcome{OutcomeEscalated, time.Second, 2 * time.Second, "m", "l",
			[]sandbox.Source{sandbox.Audited}},
		Started{}, Started{Sandbox{"read-only", sandbox.NetworkProxy, "why", executor.Sandbox{
			Level: "native", Mechanism: []string{"m"}, Weaker: []string{"w"},
			Published: []network.Publish{{Port: 1, HostPort: 2}},
			Hidden:    []string{"h"}, Replaced: []string{"r"}, Observed: true, Shared: true,
		}}, []string{"A"}},
		Output{Number: 1}, Output{executor.Stderr, 2, 3, []byte("é\x00"), 4, 5},
		Output{Data: []byte("a\xff")},
		Denied{denial}, Network{network.Record{}}, Network{network.Record{
			Host: "h", Port: 443, Protocol: network.HTTPSConnect, Method: "GET", Decision: network.Allow,
			Reason: network.Allowed, Source: network.Decider,
			Rule: "*", PolicyVersion: 9, End: &network.End{Resolved: "r", Up: 1, Down: 2, MS: 3,
				Cause: "idle"},
		}},
		Listening{5173},
		Quarantined{executor.Quarantined{Path: "/a", MovedTo: "/b", Why: "w", Grant: "g"}},
		Exited{}, Exited{137, 9, []executor.Survivor{{PID: 1, Name: "n", Command: "c"}}, time.Minute},
		Survived{Survivors: make([]executor.Survivor, SurvivorsListed+3), By: executor.ByNamespace},
		Recorded{}, Recorded{"/r.cast", "asciicast-v3", "ab", 1, 2, 3, "full"},
		Ended{}, Ended{-1, "refused", "no", time.Millisecond},
		Unknown{"later", json.RawMessage(`{"Type":"x","a":[1,{"b":"<"}]}`)},
	}
}

// TestDecode: every body comes back as it was, and so does its JSON.
func TestDecode(t *testing.T) {
	met := map[string]bool{}
	for i, b := range bodies() {
		met[b.Kind()] = true
		t.Run(fmt.Sprint(i, " ", b.Kind()), func(t *testing.T) {
			want := Event{Time: time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC), Seq: 7, Run: "r",
				Attempt: 2, Body: b}
			if d, ok := b.(Denied); ok {
				d.Denial.Count = max(d.Denial.Count, 1)
				want.Body = d
			}
			text, err := want.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var got Event
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if diff := cmp.Diff(want, got,
				cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Error(diff)
			}
			if again, err := got.MarshalJSON(); err != nil || string(again) != string(text) {
				t.Errorf("%s, %v\nwas %s", again, err, text)
			}
		})
	}
	for _, kind := range slices.Sorted(maps.Keys(forms)) {
		if !met[kind] {
			t.Errorf("no body of kind %s is decoded", kind)
		}
	}
}

// TestDecodeMembers: each member of the bodies above is one of their forms, and each of the forms is there.
func TestDecodeMembers(t *testing.T) {
	met := map[string]map[string]bool{}
	for _, b := range bodies() {
		text, err := encode(b)
		var members map[string]json.RawMessage
		if err = errors.Join(err, json.Unmarshal(text, &members)); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			if met[b.Kind()] == nil {
				met[b.Kind()] = map[string]bool{}
			}
			met[b.Kind()][name] = true
		}
	}
	for kind, f := range forms {
		has := map[string]bool{}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(f)) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
				has[name] = true
			}
		}
		if kind == "network_decided" {
			delete(has, "end")
			delete(has, "method")
			delete(has, "rule")
		}
		if diff := cmp.Diff(has, met[kind]); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	const head = `{"v":1,"time":"2026-08-01T12:00:00Z","seq":1,"run":"r","attempt":0,"type":`
	for _, test := range []struct{ name, text, says string }{
		{"cut", head + `"ended","exit_code":0`, "unexpected end"},
		{"a list", `[]`, "not an object"},
		{"null", `{"v":null}`, "its member v is not 1"},
		{"a later version", `{"v":2,"type":"ended"}`, "its member v is not 1"},
		{"no version", `{"type":"ended"}`, "its member v is not 1"},
		{"a result", `{"type":"result","argv":[]}`, "decode it into a sallyport.Result"},
		{"no type", `{"v":1}`, "the member type is missing"},
		{"a member twice", head + `"approval_decided","decision":"denied","decision":"approved"}`, `repeated member "decision"`},
		{"another kind of value", head + `"ended","exit_code":"0"}`, "invalid type"},
		{"an unknown answer", head + `"approval_decided","decision":"yes"}`, "yes"},
		{"an unknown stream", head + `"output","stream":"stdin"}`, `the stream "stdin" is not known`},
		{"no end of a connection", head + `"network_closed","host":"h"}`, `those of the type "network_decided"`},
		{"fewer survivors than listed", head + `"survived","survivors":0,"survivor_list":[{"pid":1}]}`, "the number of its survivors"},
		{"too many survivors", head + `"survived","survivors":9999999}`, "the number of its survivors"},
		{"a year of five digits", `{"v":1,"type":"x","time":"9999-12-31T23:59:59-23:00"}`, "four digits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := Event{Run: "as it was"}
			err := e.UnmarshalJSON([]byte(test.text))
			var wrong *DecodeError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.says) || e.Run != "as it was" {
				t.Errorf("%v, %+v; want %q", err, e, test.says)
			}
			if later := strings.Contains(test.says, "member v"); errors.Is(err, ErrVersion) != later {
				t.Errorf("%v is ErrVersion: %v", err, !later)
			}
		})
	}
	var e Event
	err := e.UnmarshalJSON([]byte(head + `"approval_decided","decision":"denied","Decision":"approved"}`))
	if answer, ok := e.Body.(ApprovalDecided); err != nil || !ok || answer.Decision != approval.Denied {
		t.Errorf("%+v, %v: a name in another case counts", e, err)
	}
}

// FuzzDecode: what can be decoded can be encoded, and is the same event afterwards.
func FuzzDecode(f *testing.F) {
	for _, b := range bodies() {
		text, err := Event{Time: time.Unix(0, 1), Seq: 1, Run: "r", Body: b}.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, again Event
		if e.UnmarshalJSON(text) != nil {
			return
		}
		once, err := e.MarshalJSON()
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if err := again.UnmarshalJSON(once); err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%v\n%+v\n%+v\n%s", err, e, again, once)
		}
	})
}
