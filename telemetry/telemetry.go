// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry makes OpenTelemetry spans, metrics and log records of what a Runner does.
//
// It takes the providers of the program and exports nothing itself:
//
//	sink := telemetry.New(telemetry.Options{Traces: otel.GetTracerProvider()})
//	r := &sallyport.Runner{Policy: policy, Tracer: sink}
//
// Each run is a span sallyport.run with one span for each phase; docs/telemetry.md lists the names and
// attributes. The command gets the context of that span in TRACEPARENT. A run belongs to the trace in
// Cmd.Trace, which [FromContext] makes of a context. Arguments, variables and output are in no span, metric
// or record.
//
// The command sallyport does not use this package: it has exporters of its own.
package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	nolog "go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/run/tracing"
)

// scope is the name of the instrumentation.
const scope = "github.com/sallyport-dev/sallyport"

// Options are where telemetry goes. A nil provider takes nothing.
type Options struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider
	Logs    log.LoggerProvider
}

// New returns a Tracer for a Runner, or for several. What its methods wait for is the providers' matter: they
// should export in the background, as batch processors do. The error is that of a MeterProvider which refuses
// an instrument.
func New(o Options) (event.Tracer, error) {
	if o.Traces == nil {
		o.Traces = notrace.NewTracerProvider()
	}
	if o.Metrics == nil {
		o.Metrics = nometric.NewMeterProvider()
	}
	if o.Logs == nil {
		o.Logs = nolog.NewLoggerProvider()
	}
	b := &backend{tracer: o.Traces.Tracer(scope), logger: o.Logs.Logger(scope),
		add: make(map[*tracing.Metric]adder), record: make(map[*tracing.Metric]metric.Int64Histogram)}
	if err := b.instruments(o.Metrics.Meter(scope)); err != nil {
		return nil, err
	}
	return tracing.New(b), nil
}

// FromContext returns the span of a context, for Cmd.Trace; the zero TraceContext if there is none.
func FromContext(ctx context.Context) event.TraceContext {
	return contextOf(trace.SpanContextFromContext(ctx))
}

// contextOf writes a span context as the W3C does.
func contextOf(sc trace.SpanContext) event.TraceContext {
	if !sc.IsValid() {
		return event.TraceContext{}
	}
	id := tracing.ID{Trace: sc.TraceID(), Span: sc.SpanID(), Sampled: sc.IsSampled()}
	return event.TraceContext{Parent: id.String(), State: sc.TraceState().String()}
}

// remote returns the context of ctx with the span of a caller.
func remote(ctx context.Context, caller event.TraceContext) context.Context {
	id, ok := tracing.Parse(caller)
	if !ok {
		return ctx
	}
	c := trace.SpanContextConfig{TraceID: id.Trace, SpanID: id.Span, Remote: true}
	if id.Sampled {
		c.TraceFlags = trace.FlagsSampled
	}
	if state, err := trace.ParseTraceState(caller.State); err == nil {
		c.TraceState = state // what the W3C does not allow is dropped
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

// An adder is a counter.
type adder interface {
	Add(ctx context.Context, n int64, o ...metric.AddOption)
}

// A backend passes on to the API of OpenTelemetry.
type backend struct {
	tracer trace.Tracer
	logger log.Logger
	add    map[*tracing.Metric]adder
	record map[*tracing.Metric]metric.Int64Histogram
}

// instruments makes those of all metrics.
func (b *backend) instruments(meter metric.Meter) (err error) {
	for _, m := range tracing.All() {
		unit, help := metric.WithUnit(m.Unit), metric.WithDescription(m.Help)
		switch m.Kind {
		case tracing.Histogram:
			b.record[m], err = meter.Int64Histogram(m.Name, unit, help,
				metric.WithExplicitBucketBoundaries(tracing.Bounds...))
		case tracing.UpDown:
			b.add[m], err = meter.Int64UpDownCounter(m.Name, unit, help)
		default:
			b.add[m], err = meter.Int64Counter(m.Name, unit, help)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) Start(parent tracing.Span, caller event.TraceContext, name string, at time.Time,
	attrs []slog.Attr) tracing.Span {
	ctx := remote(context.Background(), caller)
	if s, ok := parent.(span); ok {
		ctx = trace.ContextWithSpan(ctx, s.Span)
	}
	_, s := b.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(attributes(attrs)...))
	return span{s}
}

func (b *backend) Log(in tracing.Span, at time.Time, name string, attrs []slog.Attr) {
	var r log.Record
	r.SetTimestamp(at)
	r.SetEventName(name)
	r.SetSeverity(log.SeverityInfo)
	r.SetSeverityText("INFO")
	r.SetBody(log.StringValue(name))
	for _, a := range attrs {
		r.AddAttributes(log.KeyValueFromAttribute(attributeOf(a)))
	}
	ctx := context.Background()
	if s, ok := in.(span); ok {
		ctx = trace.ContextWithSpan(ctx, s.Span)
	}
	b.logger.Emit(ctx, r)
}

func (b *backend) Add(m *tracing.Metric, n int64, attrs []slog.Attr) {
	b.add[m].Add(context.Background(), n, metric.WithAttributes(attributes(attrs)...))
}

func (b *backend) Observe(m *tracing.Metric, value int64, attrs []slog.Attr) {
	b.record[m].Record(context.Background(), value, metric.WithAttributes(attributes(attrs)...))
}

// A span is one of OpenTelemetry.
type span struct{ trace.Span }

func (s span) Context() event.TraceContext { return contextOf(s.SpanContext()) }

func (s span) Set(attrs ...slog.Attr) { s.SetAttributes(attributes(attrs)...) }

func (s span) Event(name string, at time.Time, attrs []slog.Attr) {
	s.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attributes(attrs)...))
}

func (s span) End(at time.Time, failed string) {
	if failed != "" {
		s.SetStatus(codes.Error, failed)
	}
	s.Span.End(trace.WithTimestamp(at))
}

func attributes(attrs []slog.Attr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		out[i] = attributeOf(a)
	}
	return out
}

func attributeOf(a slog.Attr) attribute.KeyValue {
	switch a.Value.Kind() {
	case slog.KindBool:
		return attribute.Bool(a.Key, a.Value.Bool())
	case slog.KindInt64:
		return attribute.Int64(a.Key, a.Value.Int64())
	case slog.KindUint64:
		return attribute.Int64(a.Key, int64(min(a.Value.Uint64(), 1<<63-1)))
	}
	return attribute.String(a.Key, a.Value.String())
}
