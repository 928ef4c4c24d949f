// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/run/tracing"
)

// A span is one that has begun.
type span struct {
	exporter *Exporter
	id       tracing.ID
	parent   [8]byte // zero for none
	remote   bool    // the parent is of another process
	state    string  // tracestate
	name     string
	start    time.Time

	mu      sync.Mutex
	attrs   []slog.Attr
	events  []spanEvent
	dropped int // events
	end     time.Time
	failed  string
}

// A spanEvent is something at one time.
type spanEvent struct {
	at    time.Time
	name  string
	attrs []slog.Attr
}

// Start implements [tracing.Backend].
func (x *Exporter) Start(parent tracing.Span, caller event.TraceContext, name string, at time.Time,
	attrs []slog.Attr) tracing.Span {
	s := &span{exporter: x, name: name, start: at, attrs: x.cut(attrs)}
	binary.BigEndian.PutUint64(s.id.Span[:], 1+rand.Uint64N(1<<63))
	if p, ok := parent.(*span); ok {
		s.id.Trace, s.id.Sampled, s.parent, s.state = p.id.Trace, p.id.Sampled, p.id.Span, p.state
		return s
	}
	from, ok := tracing.Parse(caller)
	if ok {
		s.id.Trace, s.parent, s.remote, s.state = from.Trace, from.Span, true, caller.State
	} else {
		binary.BigEndian.PutUint64(s.id.Trace[:8], 1+rand.Uint64N(1<<63))
		binary.BigEndian.PutUint64(s.id.Trace[8:], rand.Uint64())
	}
	s.id.Sampled = x.config.sampler.keeps(s.id.Trace, ok, from.Sampled)
	return s
}

// keeps reports whether a trace is kept. By its number all processes decide alike.
func (s sampler) keeps(trace [16]byte, hasParent, sampled bool) bool {
	if s.parent && hasParent {
		return sampled
	}
	return s.ratio >= 1 || float64(binary.BigEndian.Uint64(trace[8:])>>1) < s.ratio*(1<<63)
}

// Context implements [tracing.Span].
func (s *span) Context() event.TraceContext {
	return event.TraceContext{Parent: s.id.String(), State: s.state}
}

// Set implements [tracing.Span]. A later value of an attribute replaces an earlier one.
func (s *span) Set(attrs ...slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
next:
	for _, a := range s.exporter.cut(attrs) {
		for i := range s.attrs {
			if s.attrs[i].Key == a.Key {
				s.attrs[i] = a
				continue next
			}
		}
		s.attrs = append(s.attrs, a)
	}
}

// Event implements [tracing.Span].
func (s *span) Event(name string, at time.Time, attrs []slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) >= s.exporter.config.spanEvents {
		s.dropped++
		return
	}
	s.events = append(s.events, spanEvent{at, name, s.exporter.cut(attrs)})
}

// End implements [tracing.Span].
func (s *span) End(at time.Time, failed string) {
	s.mu.Lock()
	s.end, s.failed = at, failed
	s.mu.Unlock()
	if s.id.Sampled {
		s.exporter.spans.add(s)
	}
}

// The values of enumerations.
const (
	kindInternal = 1
	statusError  = 2
	severityInfo = 9
)

// Flags of a span beside those of its trace.
const (
	flagSampled   = 1
	flagHasRemote = 0x100
	flagIsRemote  = 0x200
)

// encode writes the message Span. The span has ended.
func (s *span) encode(e *encoder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.bytes(1, s.id.Trace[:])
	e.bytes(2, s.id.Span[:])
	e.text(3, s.state)
	if s.parent != [8]byte{} {
		e.bytes(4, s.parent[:])
	}
	e.text(5, s.name)
	e.varint(6, kindInternal)
	e.time(7, s.start)
	e.time(8, s.end)
	e.attributes(9, s.attrs)
	for _, at := range s.events {
		e.message(11, func(e *encoder) {
			e.time(1, at.at)
			e.text(2, at.name)
			e.attributes(3, at.attrs)
		})
	}
	if s.dropped > 0 {
		e.varint(12, uint64(s.dropped))
	}
	if s.failed != "" {
		e.message(15, func(e *encoder) {
			e.text(2, s.failed)
			e.varint(3, statusError)
		})
	}
	flags := uint32(flagSampled | flagHasRemote)
	if s.remote {
		flags |= flagIsRemote
	}
	e.fixed32(16, flags)
}

// A logRecord is one row of the table of telemetry.
type logRecord struct {
	at    time.Time
	name  string
	attrs []slog.Attr
	in    tracing.ID
}

// Log implements [tracing.Backend].
func (x *Exporter) Log(in tracing.Span, at time.Time, name string, attrs []slog.Attr) {
	r := &logRecord{at: at, name: name, attrs: x.cut(attrs)}
	if s, ok := in.(*span); ok {
		r.in = s.id
	}
	x.records.add(r)
}

// encode writes the message LogRecord.
func (r *logRecord) encode(e *encoder) {
	e.time(1, r.at)
	e.varint(2, severityInfo)
	e.text(3, "INFO")
	e.message(5, func(e *encoder) { e.value(slog.StringValue(r.name)) })
	e.attributes(6, r.attrs)
	flags := uint32(0)
	if r.in.Sampled {
		flags = flagSampled
	}
	e.fixed32(8, flags)
	e.bytes(9, r.in.Trace[:])
	e.bytes(10, r.in.Span[:])
	e.time(11, r.at)
	e.text(12, r.name)
}

// cut returns attributes whose texts are valid and within the limit.
func (x *Exporter) cut(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(shorten(a.Value.String(), x.config.valueLength))
		}
		out[i] = a
	}
	return out
}
