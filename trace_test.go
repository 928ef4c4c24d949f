// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// A fixedTracer gives each run the same context.
type fixedTracer struct{ to event.TraceContext }

func (fixedTracer) Emit(event.Event)                     {}
func (f fixedTracer) Begin(event.Run) event.TraceContext { return f.to }
func contextOf(parent, state string) (c event.TraceContext) {
	return event.TraceContext{Parent: parent, State: state}
}

// TestTraceVariables: a command gets a trace context where there is a valid one, that of its run before that
// of the caller, and in the place of what its environment has; else its environment stays as it is.
func TestTraceVariables(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const own = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"
	for _, test := range []struct {
		name   string
		set    string // TRACEPARENT of the environment; empty for none
		caller event.TraceContext
		tracer event.Tracer
		want   string
	}{
		{"nothing", "", event.TraceContext{}, nil, ""},
		{"the environment", "of the environment", event.TraceContext{}, nil, "TRACEPARENT=of the environment"},
		{"the caller", "of the environment", contextOf(caller, "a=b"), nil,
			"TRACEPARENT=" + caller + " TRACESTATE=a=b"},
		{"the caller, without a state", "", contextOf(caller, ""), nil, "TRACEPARENT=" + caller},
		{"the run", "of the environment", contextOf(caller, "a=b"), fixedTracer{contextOf(own, "a=b")},
			"TRACEPARENT=" + own + " TRACESTATE=a=b"},
		{"a tracer that makes none", "", contextOf(caller, ""), fixedTracer{}, ""},
		{"a tracer with an invalid one", "", contextOf(caller, ""), fixedTracer{contextOf("x", "a=b")}, ""},
		{"a malformed caller", "", contextOf(caller[1:], "a=b"), nil, ""},
		{"a malformed state", "", contextOf(caller, "a\nLD_PRELOAD=x"), nil, "TRACEPARENT=" + caller},
		{"a state alone", "", contextOf("", "a=b"), nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, fake := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) {})
			r.Tracer = test.tracer
			cmd := &Cmd{Args: []string{"x"}, Dir: "/w", Trace: test.caller}
			if test.set != "" {
				cmd.EnvPolicy.Set = map[string]string{"TRACEPARENT": test.set}
			}
			if _, err := r.Run(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(fake.Spec.Env), func(e string) bool {
				return !strings.HasPrefix(e, "TRACE") && !strings.HasPrefix(e, "LD_")
			})
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("it gets %q, want %q", text, test.want)
			}
		})
	}
}
