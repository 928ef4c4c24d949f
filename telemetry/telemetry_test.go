// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// events are those of a run that is denied a write and run again.
func events(start time.Time) (all []event.Event) {
	denial := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/srv/file"},
		Source: sandbox.Notified}
	started := event.Started{Sandbox: event.Sandbox{Mode: "read-only", Sandbox: executor.Sandbox{Level: "native"}}}
	for i, e := range []event.Event{
		{Body: event.Judged{Args: []string{"/bin/x", "s3cret"}, Decision: event.DecisionAllow, PolicyVersion: "v"}},
		{Attempt: 1, Body: started},
		{Attempt: 1, Body: event.Output{Data: []byte("s3cret")}},
		{Attempt: 1, Body: event.Denied{Denial: denial}},
		{Attempt: 1, Body: event.Exited{Code: 1}},
		{Attempt: 1, Body: event.ApprovalRequested{Request: &approval.Request{ID: "q", Kind: approval.KindAccess}}},
		{Attempt: 1, Body: event.ApprovalDecided{ID: "q", Decision: approval.Approved, Source: approval.FromUser,
			WaitMS: 7, Asked: true}},
		{Attempt: 2, Body: event.Retrying{Reason: "approved", Added: []string{"write:/srv/file"}}},
		{Attempt: 2, Body: started},
		{Attempt: 2, Body: event.Exited{}},
		{Attempt: 2, Body: event.SandboxOutcome{Outcome: event.OutcomeEscalated}},
		{Attempt: 2, Body: event.Ended{End: "exited", Duration: 9 * time.Millisecond}},
	} {
		e.Run, e.Time = "r", start.Add(time.Duration(i+1)*time.Millisecond)
		all = append(all, e)
	}
	return all
}

// TestSDK: with the SDK of OpenTelemetry there is one span for each phase, and the records and metrics are
// those of the table.
func TestSDK(t *testing.T) {
	spans, reader, records := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader(), new(kept)
	sink, err := New(Options{
		Traces:  sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		Metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Logs:    sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(records))),
	})
	if err != nil {
		t.Fatal(err)
	}
	caller := event.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	start := time.Now()
	child := sink.Begin(event.Run{ID: "r", Tool: "shell", Start: start, Trace: caller})
	for _, e := range events(start) {
		sink.Emit(e)
	}
	var got []string
	names := make(map[trace.SpanID]string)
	for _, s := range spans.GetSpans() {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans.GetSpans() {
		if s.SpanContext.TraceID().String() != caller.Parent[3:35] || strings.Contains(fmt.Sprint(s.Attributes), "s3cret") {
			t.Errorf("the span %+v", s)
		}
		line := names[s.Parent.SpanID()] + " > " + s.Name
		if s.Name == "sallyport.run" {
			if child.Parent != contextOf(s.SpanContext).Parent || s.Parent.SpanID().String() != caller.Parent[36:52] ||
				child.State != "a=b" || !s.StartTime.Equal(start) || !s.Parent.IsRemote() {
				t.Errorf("%+v, the command got %+v", s, child)
			}
		}
		if s.Status.Code == codes.Error {
			line += " (" + s.Status.Description + ")"
		}
		for _, e := range s.Events {
			line += " " + e.Name
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := ` > sallyport.run
sallyport.retry > sallyport.attempt
sallyport.retry > sallyport.start
sallyport.run > sallyport.approval
sallyport.run > sallyport.attempt (exit code 1) sallyport.denied
sallyport.run > sallyport.judge
sallyport.run > sallyport.retry
sallyport.run > sallyport.start`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the spans are\n%s", text)
	}
	if want := []string{"sallyport.tool_decision", "sallyport.tool_decision", "sallyport.approval.requested",
		"sallyport.sandbox_outcome", "sallyport.tool.call"}; !slices.Equal(records.names, want) {
		t.Errorf("the records are %q", records.names)
	}
	checkCounts(t, reader)
}

func checkCounts(t *testing.T, reader *sdkmetric.ManualReader) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int64)
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				counts[m.Name] += p.Value
			}
		case metricdata.Histogram[int64]:
			for _, p := range d.DataPoints {
				counts[m.Name] += p.Sum
			}
		}
	}
	if got := fmt.Sprint(counts); got != "map[sallyport.approval.requested:1 sallyport.approval.wait_ms:7 "+
		"sallyport.denied:1 sallyport.sandbox_outcome:1 sallyport.tool.call:1 sallyport.tool.call.duration_ms:9 "+
		"sallyport.tool_decision:2]" {
		t.Errorf("the metrics are %s", got)
	}
}

// TestUnsampled: what is not sampled is told to the command as such.
func TestUnsampled(t *testing.T) {
	sink, err := New(Options{Traces: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))})
	if err != nil {
		t.Fatal(err)
	}
	if child := sink.Begin(event.Run{ID: "r", Start: time.Now()}); !strings.HasSuffix(child.Parent, "-00") {
		t.Errorf("the command got %+v", child)
	}
}

// TestNothing: without providers there is nothing, also for events of runs that have no begin or no end.
func TestNothing(t *testing.T) {
	sink, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events(time.Now()) {
		sink.Emit(e)
	}
	for i, e := range events(time.Now()) {
		e.Run = fmt.Sprint(i)
		sink.Emit(e)
	}
	if child := sink.Begin(event.Run{ID: "r", Start: time.Now()}); child != (event.TraceContext{}) {
		t.Errorf("the command got %+v", child)
	}
}

// TestFromContext: a context with a span becomes that of a Cmd.
func TestFromContext(t *testing.T) {
	if got := FromContext(t.Context()); got != (event.TraceContext{}) {
		t.Errorf("%+v without a span", got)
	}
	ctx, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "x")
	got := FromContext(ctx)
	if want := "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() +
		"-01"; got.Parent != want || got.Valid() != got {
		t.Errorf("%+v, want %s", got, want)
	}
}

// kept is an exporter of log records.
type kept struct{ names []string }

func (k *kept) Export(_ context.Context, records []sdklog.Record) error {
	for _, r := range records {
		k.names = append(k.names, r.EventName())
	}
	return nil
}
func (*kept) Shutdown(context.Context) error   { return nil }
func (*kept) ForceFlush(context.Context) error { return nil }
