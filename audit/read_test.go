// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// denial is an access that was denied.
func denial(op sandbox.Op, path string) event.Denied {
	return event.Denied{Denial: sandbox.Denial{Access: sandbox.Access{Op: op, Path: path}, Errno: "EROFS",
		Source: sandbox.Notified, PID: 7, Program: "cc"}}
}

func request(r network.Ruling, end *network.End) event.Network {
	return event.Network{Record: network.Record{Host: "example.com", Port: 443, Decision: r, End: end}}
}

// bodies are those of a run with everything that filters look at, in order.
var bodies = []event.Body{
	event.Judged{Args: []string{"/usr/bin/make", "all"}, Dir: "/w", Decision: event.DecisionPrompt},  // 0
	event.ApprovalRequested{Request: &approval.Request{ID: "q", Args: []string{"/usr/bin/make"}}},    // 1
	event.ApprovalDecided{ID: "q", Decision: approval.ApprovedForSession, Source: approval.FromUser}, // 2
	event.Started{},                        // 3
	denial(sandbox.Write, "/etc/passwd"),   // 4
	request(network.Allow, nil),            // 5
	request(network.Allow, &network.End{}), // 6
	request(network.Deny, nil),             // 7
	event.Granted{Op: sandbox.Write, Path: "/etc/hosts", By: approval.FromCache},         // 8
	event.Quarantined{Quarantined: executor.Quarantined{Path: "/w/.git/hooks/x"}},        // 9
	event.ApprovalDecided{ID: "r", Decision: approval.Denied, Source: approval.FromHook}, // 10
	event.Exited{Code: 2},                   // 11
	event.Ended{ExitCode: 2, End: "exited"}, // 12
}

// TestFilter: each member of a filter selects what it says, and all together what each does.
func TestFilter(t *testing.T) {
	l := openTest(t, Options{})
	start := time.Unix(1_700_000_000, 0).UTC()
	emit := func(run string, i int, b event.Body) {
		l.Emit(event.Event{Time: start.Add(time.Duration(i) * time.Second), Seq: uint64(i), Run: run, Body: b})
	}
	for i, b := range bodies {
		emit("aaaa", i, b)
	}
	emit("bbbb", 13, event.Judged{Args: []string{"rm", "-rf", "/"}, Decision: event.DecisionForbid})
	emit("bbbb", 14, event.Ended{End: "denied"})
	if err := l.Append("run", json.RawMessage(
		`{"run":"bbbb","argv":["rm"],"seq":15,"denials":[{"op":"read","path":"/etc/shadow"}],"network_denials":[{"host":"h"}]}`)); err != nil {
		t.Fatal(err)
	}
	syncTest(t, l)
	for name, tc := range map[string]struct {
		filter Filter
		want   []int
	}{
		"run":                  {Filter{Run: "aaaa", Since: start.Add(12 * time.Second)}, []int{12}},
		"begin of a run":       {Filter{Run: "b"}, []int{13, 14, 15}},
		"another run":          {Filter{Run: "c"}, nil},
		"since and until":      {Filter{Since: start.Add(3 * time.Second), Until: start.Add(5 * time.Second)}, []int{3, 4}},
		"kind of events":       {Filter{Kind: "approval_decided"}, []int{2, 10}},
		"kind of a record":     {Filter{Kind: "run"}, []int{15}},
		"program":              {Filter{Program: "rm"}, []int{13, 14, 15}},
		"program by base":      {Filter{Program: "make", Kind: "ended"}, []int{12}},
		"program by path":      {Filter{Program: "/usr/bin/make", Kind: "judged"}, []int{0}},
		"no program":           {Filter{Program: "mak"}, nil},
		"host":                 {Filter{Host: "example.com"}, []int{5, 6, 7}},
		"host of a record":     {Filter{Host: "h"}, []int{15}},
		"path":                 {Filter{Path: "/etc/passwd"}, []int{4}},
		"paths below":          {Filter{Path: "/etc"}, []int{4, 8, 15}},
		"paths below the root": {Filter{Path: "/", Kind: "quarantined"}, []int{9}},
		"no path":              {Filter{Path: "/et"}, nil},
		"decision":             {Filter{Decision: "deny"}, []int{7}},
		"approved by":          {Filter{ApprovedBy: "user"}, []int{2}},
		"granted by":           {Filter{ApprovedBy: "cache"}, []int{8}},
		"refused by":           {Filter{ApprovedBy: "hook"}, nil},
		"denied":               {Filter{Denied: true}, []int{4, 7, 9, 10, 13, 15}},
		"denied in a run":      {Filter{Denied: true, Program: "make", Path: "/etc"}, []int{4}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, r := range readAll(t, l.store.dir.Name(), tc.filter) {
				var b struct{ Seq int }
				if err := json.Unmarshal(r.Body, &b); err != nil {
					t.Fatal(err)
				}
				got = append(got, b.Seq)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// TestReadEnds: an error of the caller ends it, and io.EOF is none.
func TestReadEnds(t *testing.T) {
	l := openTest(t, Options{})
	l.Emit(ended(1))
	syncTest(t, l)
	want := errors.New("enough")
	for give, want := range map[error]error{io.EOF: nil, want: want} {
		n := 0
		err := Read(l.store.dir.Name(), Filter{}, func(Record) error { n++; return give })
		if n != 1 || !errors.Is(err, want) {
			t.Errorf("%v: %v after %d", give, err, n)
		}
	}
}

// required are the members that version 1.3.0 of the schema requires of a class, beside those of all
// classes.
var required = map[int][]string{
	classFile: {"actor", "device", "file"}, classProcess: {"actor", "device", "process"},
	classNetwork: {"dst_endpoint"}, classAPI: {"actor", "api", "src_endpoint"},
}

// TestOCSF: each event is one of the schema, with what its class requires, and what was denied is so there.
func TestOCSF(t *testing.T) {
	want := []string{"600399", "600399", "600399", "100701", "100103 denied", "400101", "400102", "400105 denied", "100103",
		"100105 denied", "600399 denied", "100702", "600399"}
	l := openTest(t, Options{})
	more := []event.Body{denial(sandbox.Connect, "/run/x"), denial(sandbox.Signal, ""), denial(sandbox.Exec, "/bin/x"),
		event.Listening{Port: 80}}
	want = append(want, "400105 denied", "100799 denied", "100114 denied", "400107")
	for i, b := range append(slices.Clone(bodies), more...) {
		l.Emit(event.Event{Time: time.Unix(1_700_000_000, 5e6), Seq: uint64(i), Run: "aaaa", Attempt: 1, Body: b})
	}
	syncTest(t, l)
	n := 0
	for _, r := range readAll(t, l.store.dir.Name(), Filter{}) {
		text, ok, err := OCSF(r)
		if err != nil || ok != (r.Kind == "event") {
			t.Fatalf("%s: %v, %v", r.Kind, ok, err)
		}
		if !ok {
			continue
		}
		var o map[string]json.RawMessage
		if err := json.Unmarshal(text, &o); err != nil || bytes.ContainsRune(text, '\n') {
			t.Fatalf("%s: %v", text, err)
		}
		var typ, class int
		if err := errors.Join(json.Unmarshal(o["type_uid"], &typ), json.Unmarshal(o["class_uid"], &class)); err != nil {
			t.Fatal(err)
		}
		for _, member := range append([]string{"activity_id", "category_uid", "severity_id", "metadata", "time", "message",
			"status_id"}, required[class]...) {
			if len(o[member]) == 0 {
				t.Errorf("%s: no %s", text, member)
			}
		}
		got := fmt.Sprint(typ)
		if string(o["severity_id"]) == "2" && string(o["status_id"]) == "2" {
			got += " denied"
		}
		if got != want[n] || class != typ/100 || string(o["time"]) != "1700000000005" || string(o["unmapped"]) != string(r.Body) ||
			!strings.Contains(string(o["metadata"]), `"correlation_uid":"aaaa"`) {
			t.Errorf("%s is %s, want %s", r.Body, text, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d events", n)
	}
	if _, ok, err := OCSF(Record{Kind: "event", Body: []byte("[]")}); ok || err == nil {
		t.Error("what is no event was taken")
	}
}
