// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/network"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, parent, want string // empty for none
		sampled            bool
	}{
		{"sampled", parent, parent, true},
		{"not sampled", parent[:53] + "00", parent[:53] + "00", false},
		{"flags of a later version", parent[:53] + "fe", parent[:53] + "00", false},
		{"random, and sampled", parent[:53] + "03", parent, true},
		{"a later version", "01" + parent[2:] + "-more", parent, true},
		{"none", "", "", false},
		{"no flags", parent[:52], "", false},
		{"no digits in the flags", parent[:53] + "0g", "", false},
		{"no digits in the trace", parent[:3] + "g" + parent[4:], "", false},
		{"no trace", "00-" + strings.Repeat("0", 32) + parent[35:], "", false},
		{"no span", parent[:36] + strings.Repeat("0", 16) + "-01", "", false},
		{"capitals", strings.ToUpper(parent), "", false},
		{"a line", parent + "\n", "", false},
		{"version ff", "ff" + parent[2:], "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, ok := Parse(event.TraceContext{Parent: test.parent, State: "a=\x00b"})
			got := ""
			if ok {
				got = id.String()
			}
			if got != test.want || id.Sampled != test.sampled {
				t.Errorf("%q, sampled %v, want %q, %v", got, id.Sampled, test.want, test.sampled)
			}
			if !ok && id != (ID{}) {
				t.Errorf("what is none has an ID: %+v", id)
			}
		})
	}
}

// FuzzParse: what is read is written as a context that is read the same way, and nothing else is read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{parent, parent[:53] + "00", "01" + parent[2:] + "-x",
		"ff" + parent[2:], ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := Parse(event.TraceContext{Parent: text})
		if !ok {
			if id != (ID{}) {
				t.Errorf("%+v of %q, which is none", id, text)
			}
			return
		}
		out := id.String()
		if again, ok := Parse(event.TraceContext{Parent: out}); !ok || again != id {
			t.Errorf("%q is written as %q, which is %+v", text, out, again)
		}
		if len(text) < len(out) || text[2:53] != out[2:53] {
			t.Errorf("%q is written as %q", text, out)
		}
	})
}

// A story writes down what a Builder does with its backend.
type story struct {
	lines []string
	open  int
}

type spanOf struct {
	*story
	name   string
	caller event.TraceContext
}

func (s *story) Start(of Span, caller event.TraceContext, name string, _ time.Time, _ []slog.Attr) Span {
	within := "-"
	if of != nil {
		within = nameOf(of)
	}
	s.lines = append(s.lines, strings.TrimSpace(fmt.Sprintf("start %s in %s %s", name, within, caller.Parent)))
	s.open++
	return &spanOf{s, name, caller}
}

func nameOf(s Span) string {
	of, ok := s.(*spanOf)
	if !ok {
		return "?"
	}
	return of.name
}

func (s *story) Log(in Span, _ time.Time, name string, _ []slog.Attr) {
	s.lines = append(s.lines, "log "+name+" in "+nameOf(in))
}

func (s *story) Add(m *Metric, n int64, _ []slog.Attr) {
	s.lines = append(s.lines, fmt.Sprintf("add %s %d", m.Name, n))
}

func (s *story) Observe(m *Metric, _ int64, _ []slog.Attr) {
	s.lines = append(s.lines, "observe "+m.Name)
}

func (s *spanOf) Context() event.TraceContext { return s.caller }
func (s *spanOf) Set(...slog.Attr)            {}

func (s *spanOf) Event(name string, _ time.Time, _ []slog.Attr) {
	s.lines = append(s.lines, "event "+name+" in "+s.name)
}

func (s *spanOf) End(_ time.Time, failed string) {
	s.lines = append(s.lines, strings.TrimSpace("end "+s.name+" "+failed))
	s.open--
}

// spans are the lines about spans, without the common prefix of names.
func (s *story) spans() (all []string) {
	for _, l := range s.lines {
		if strings.HasPrefix(l, "start ") || strings.HasPrefix(l, "end ") {
			all = append(all, strings.ReplaceAll(l, "sallyport.", ""))
		}
	}
	return all
}

// TestBegin: the run is in the trace of its caller, and what Begin returns is the context of its span.
func TestBegin(t *testing.T) {
	for _, test := range []struct {
		name string
		in   event.TraceContext
		want string
	}{
		{"a caller", event.TraceContext{Parent: parent, State: "a=b"}, "start run in - " + parent},
		{"no caller", event.TraceContext{}, "start run in -"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := new(story)
			b := New(s)
			if got := b.Begin(event.Run{ID: "r", Tool: "shell", Trace: test.in}); got != test.in {
				t.Errorf("Begin returns %+v", got)
			}
			b.Emit(event.Event{Run: "r", Body: event.Started{}}) // spans within have no other caller
			if got := s.spans(); got[0] != test.want || slices.ContainsFunc(got[1:],
				func(l string) bool { return strings.Contains(l, parent) }) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestBuilder: which spans events make, and that none stays open.
func TestBuilder(t *testing.T) {
	q := &approval.Request{ID: "q", Kind: approval.KindCommand}
	ended := event.Ended{End: "exited"}
	for _, test := range []struct {
		name   string
		bodies []event.Body
		want   string // the lines about spans, joined
	}{
		{"a run", []event.Body{event.Judged{}, event.Started{}, event.Exited{}, ended},
			"start run in -; start judge in run; end judge; start start in run; end start; " +
				"start attempt in run; end attempt; end run"},
		{"forbidden", []event.Body{event.Judged{}, event.Ended{End: "forbidden", ExitCode: 122, Error: "no"}},
			"start run in -; start judge in run; end judge; end run forbidden"},
		{"not found", []event.Body{event.Ended{End: "not_found", ExitCode: 127, Error: "no"}},
			"start run in -; start start in run; end start not_found; end run not_found"},
		{"a question", []event.Body{event.ApprovalRequested{Request: q}, event.ApprovalDecided{ID: "q"},
			ended}, "start run in -; start approval in run; end approval; end run"},
		{"a question that stays open", []event.Body{event.ApprovalRequested{Request: q}, ended},
			"start run in -; start approval in run; end approval; end run"},
		{"a host", []event.Body{event.Started{}, event.ApprovalRequested{Request: &approval.Request{ID: "q",
			Kind: approval.KindNetwork}}, event.ApprovalDecided{ID: "q"}, event.Exited{Code: 3},
			event.Ended{End: "exited", ExitCode: 3}},
			"start run in -; start start in run; end start; start attempt in run; " +
				"start network_approval in attempt; end network_approval; " +
				"end attempt exit code 3; end run exited"},
		{"a review", []event.Body{event.ApprovalRequested{Request: q},
			event.ReviewStarted{Review: approval.Review{ID: "v", Request: q}},
			event.ReviewCompleted{Review: approval.Review{ID: "v", Request: q}},
			event.ApprovalDecided{ID: "q"}, ended},
			"start run in -; start approval in run; start review in approval; end review; " +
				"end approval; end run"},
		{"a retry", []event.Body{event.Started{}, event.Exited{Code: 1}, event.Retrying{}, event.Started{},
			event.Exited{}, ended},
			"start run in -; start start in run; end start; start attempt in run; end attempt exit code 1; " +
				"start retry in run; start start in retry; end start; start attempt in retry; end attempt; " +
				"end retry; end run"},
		{"an end without an exit", []event.Body{event.Started{}, event.Ended{End: "timed_out", ExitCode: 124}},
			"start run in -; start start in run; end start; start attempt in run; " +
				"end attempt timed_out; end run timed_out"},
		{"output is nothing", []event.Body{event.Output{}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := new(story)
			b := New(s)
			for _, body := range test.bodies {
				b.Emit(event.Event{Run: "r", Attempt: 1, Body: body})
			}
			if got := strings.Join(s.spans(), "; "); got != test.want {
				t.Errorf("\n%s, want\n%s", got, test.want)
			}
			if s.open != 0 || len(b.runs) != 0 {
				t.Errorf("%d spans and %d runs are left", s.open, len(b.runs))
			}
		})
	}
}

// TestBuilderCounts: sessions that run are as many less as they were more; denials are events and counted.
func TestBuilderCounts(t *testing.T) {
	s := new(story)
	b := New(s)
	b.Begin(event.Run{ID: "r", Tool: sessionTool, TTY: true})
	denied := network.Record{Decision: network.Deny}
	for _, body := range []event.Body{event.Started{}, event.Denied{}, event.Network{Record: denied},
		event.Granted{}, event.Quarantined{}, event.Survived{}, event.Exited{}, event.Ended{End: "exited"}} {
		b.Emit(event.Event{Run: "r", Attempt: 1, Body: body})
	}
	for _, want := range []string{"add sallyport.tool.unified_exec 1",
		"add sallyport.tool.unified_exec.running 1",
		"add sallyport.tool.unified_exec.running -1", "add sallyport.denied 1",
		"event sallyport.denied in sallyport.attempt",
		"event sallyport.network_proxy.policy_decision in sallyport.attempt",
		"event sallyport.granted in sallyport.attempt",
		"event sallyport.quarantined in sallyport.attempt", "event sallyport.survived in sallyport.attempt"} {
		others := func(l string) bool { return l != want }
		if n := len(slices.DeleteFunc(slices.Clone(s.lines), others)); n != 1 {
			t.Errorf("%q is there %d times in %q", want, n, s.lines)
		}
	}
}

// TestDerived: a metric has its attributes and value, and counts only records that have what it needs.
func TestDerived(t *testing.T) {
	record := []slog.Attr{slog.String("tool_name", "shell"), slog.String("source", "user"),
		slog.String("secret", "x"), slog.Int64("wait_ms", 7)}
	for _, test := range []struct {
		name  string
		of    derived
		want  string
		value int64
		has   bool
	}{
		{"a counter", derived{attrs: []string{"source", "tool_name"}}, "source=user tool=shell", 0, true},
		{"a value", derived{attrs: []string{"tool_name"}, value: "wait_ms"}, "tool=shell", 7, true},
		{"what must be there", derived{only: "wait_ms"}, "", 0, true},
		{"what is not there", derived{attrs: []string{"missing"}, only: "request_id"}, "", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			attrs, value, has := test.of.of(record)
			var words []string
			for _, a := range attrs {
				words = append(words, a.String())
			}
			if got := strings.Join(words, " "); got != test.want || value != test.value || has != test.has {
				t.Errorf("%q %d %v", got, value, has)
			}
		})
	}
}
