// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing makes spans, metrics and log records of events, for any [Backend]: the API of OpenTelemetry
// in package telemetry, and the exporters of the command.
//
// A run is a span, and so is each phase of it: judging, questions, reviews, the start, attempts, the retry.
// Log records and metrics are the rows of the table of [records.Of].
package tracing

import (
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/network"
)

// The names of spans.
const (
	SpanRun             = "sallyport.run"
	SpanJudge           = "sallyport.judge"
	SpanApproval        = "sallyport.approval"
	SpanNetworkApproval = "sallyport.network_approval"
	SpanReview          = "sallyport.review"
	SpanStart           = "sallyport.start"
	SpanAttempt         = "sallyport.attempt"
	SpanRetry           = "sallyport.retry"
)

// A Backend takes what is made of events. Its methods do not block.
type Backend interface {
	// Start begins a span. Without a parent (nil) it belongs to the trace of the caller, or if that is zero
	// it begins a trace.
	Start(parent Span, caller event.TraceContext, name string, at time.Time, attrs []slog.Attr) Span
	// Log takes a log record.
	Log(in Span, at time.Time, name string, attrs []slog.Attr)
	// Add counts n under a metric that is no histogram, and Observe takes a value of a histogram.
	Add(m *Metric, n int64, attrs []slog.Attr)
	Observe(m *Metric, value int64, attrs []slog.Attr)
}

// A Span is one of a Backend, until End.
type Span interface {
	Context() event.TraceContext
	Set(attrs ...slog.Attr)
	Event(name string, at time.Time, attrs []slog.Attr)
	// End ends the span. Failed is one word for what went wrong, empty for nothing.
	End(at time.Time, failed string)
}

// A Builder makes spans of the events of runs. It is an [event.Tracer].
type Builder struct {
	backend Backend

	mu   sync.Mutex
	runs map[string]*run // by identity, until they end
}

// New returns a Builder for a backend.
func New(b Backend) *Builder { return &Builder{backend: b, runs: make(map[string]*run)} }

// A run is one that has not ended.
type run struct {
	event.Run
	span    Span
	retry   Span // nil while there is none
	attempt Span // of a process that runs; nil for none
	// questions and reviews that are open, by their IDs.
	questions, reviews map[string]Span
	ready              time.Time // when the last thing before a start was decided
	started            bool      // some process of it ran
}

// inner is the innermost span that contains what happens now.
func (r *run) inner() Span {
	switch {
	case r.attempt != nil:
		return r.attempt
	case r.retry != nil:
		return r.retry
	}
	return r.span
}

// Begin implements [event.Tracer].
func (b *Builder) Begin(begin event.Run) event.TraceContext {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beginLocked(begin).span.Context()
}

func (b *Builder) beginLocked(begin event.Run) *run {
	r := &run{Run: begin, ready: begin.Start}
	attrs := []slog.Attr{slog.String("tool_name", begin.Tool), slog.String("call_id", begin.ID)}
	if begin.CallerID != "" {
		attrs = append(attrs, slog.String("caller_id", begin.CallerID))
	}
	r.span = b.backend.Start(nil, begin.Trace, SpanRun, begin.Start, attrs)
	b.runs[begin.ID] = r
	if begin.Tool == sessionTool {
		b.backend.Add(&unifiedExec, 1, []slog.Attr{slog.Bool("tty", begin.TTY)})
	}
	return r
}

// sessionTool is the kind of call of a session.
const sessionTool = "unified_exec"

// Emit implements [event.Sink]. A run that no Begin has announced is one of the tool "shell".
func (b *Builder) Emit(e event.Event) {
	if _, isOutput := e.Body.(event.Output); isOutput {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[e.Run]
	if r == nil {
		r = b.beginLocked(event.Run{ID: e.Run, CallerID: e.CallerID, Tool: "shell", Start: e.Time})
	}
	found := records.Of(r.Tool, &e)
	for _, rec := range found {
		b.backend.Log(r.inner(), e.Time, rec.Name, rec.Attrs)
		b.measure(rec)
	}
	if !b.before(r, &e, found) {
		b.during(r, &e, found)
	}
}

// before takes events about whether a command runs, and reports whether it was one. Found are the records of
// the event.
func (b *Builder) before(r *run, e *event.Event, found []records.Record) bool {
	switch body := e.Body.(type) {
	case event.Judged:
		r.span.Set(judgedAttrs(&body)...)
		b.whole(r.span, SpanJudge, r.Start, e.Time, slog.String("decision", body.Decision),
			slog.String("policy_version", body.PolicyVersion))
		r.ready = e.Time
	case event.ApprovalRequested:
		name := SpanApproval
		if body.Request.Kind == approval.KindNetwork {
			name = SpanNetworkApproval
		}
		open(&r.questions, body.Request.ID, b.start(r.inner(), name, e.Time,
			slog.String("request_id", body.Request.ID), slog.String("action", string(body.Request.Kind)),
			slog.Int("attempt", e.Attempt)))
	case event.ApprovalDecided:
		r.ready = e.Time
		end(r.questions, body.ID, e.Time, recorded(found, records.ToolDecision))
	case event.ReviewStarted:
		parent := r.inner()
		if q := r.questions[body.Review.Request.ID]; q != nil {
			parent = q
		}
		open(&r.reviews, body.Review.ID, b.start(parent, SpanReview, e.Time))
	case event.ReviewCompleted:
		end(r.reviews, body.Review.ID, e.Time, recorded(found, records.GuardianReview))
	case event.Retrying:
		r.ready = e.Time
		r.retry = b.start(r.span, SpanRetry, e.Time, slog.Int("attempt", e.Attempt),
			slog.String("reason", body.Reason), slog.String("added", strings.Join(body.Added, ",")))
	default:
		return false
	}
	return true
}

// during takes events about a command that runs or has run, with their records.
func (b *Builder) during(r *run, e *event.Event, found []records.Record) {
	switch body := e.Body.(type) {
	case event.Started:
		attrs := []slog.Attr{slog.Int("attempt", e.Attempt), slog.String("sandbox_mode", body.Sandbox.Mode),
			slog.String("sandbox_level", body.Sandbox.Level),
			slog.String("network", body.Sandbox.Network.String())}
		b.whole(r.inner(), SpanStart, r.ready, e.Time, attrs...)
		r.attempt = b.start(r.inner(), SpanAttempt, e.Time, attrs...)
		if !r.started && r.Tool == sessionTool {
			b.backend.Add(&running, 1, nil)
		}
		r.started = true
	case event.Denied:
		b.backend.Add(&denials, 1, []slog.Attr{slog.String("op", body.Denial.Op.String()),
			slog.String("source", body.Denial.Source.String())})
		r.inner().Event("sallyport.denied", e.Time, deniedAttrs(&body))
	case event.Network:
		if body.End == nil && body.Decision == network.Deny {
			r.inner().Event(found[0].Name, e.Time, found[0].Attrs)
		}
	case event.Granted:
		r.inner().Event("sallyport.granted", e.Time, []slog.Attr{slog.String("op", body.Op.String()),
			slog.String("path", body.Path), slog.String("source", string(body.By)),
			slog.Int64("wait_ms", body.WaitedMS)})
	case event.Quarantined:
		r.inner().Event("sallyport.quarantined", e.Time, []slog.Attr{slog.String("path", body.Path)})
	case event.Survived:
		r.inner().Event("sallyport.survived", e.Time, []slog.Attr{slog.Int("survivors", len(body.Survivors))})
	case event.Exited:
		r.inner().Set(slog.Int("exit_code", body.Code), slog.Int("signal", body.Signal))
		stop(&r.attempt, e.Time, failure(body.Code))
		stop(&r.retry, e.Time, failure(body.Code))
	case event.Ended:
		b.ended(r, e, &body)
	}
}

// ended ends the span of a run, and what is still open in it.
func (b *Builder) ended(r *run, e *event.Event, body *event.Ended) {
	for _, spans := range []map[string]Span{r.reviews, r.questions} {
		for id := range spans {
			end(spans, id, e.Time, nil)
		}
	}
	if !r.started && body.Error != "" && !notStarted[body.End] {
		s := b.start(r.span, SpanStart, r.ready, slog.Int("attempt", e.Attempt))
		s.End(e.Time, body.End)
	}
	stop(&r.attempt, e.Time, body.End)
	stop(&r.retry, e.Time, body.End)
	r.span.Set(slog.String("end", body.End), slog.Int("exit_code", body.ExitCode),
		slog.Int("attempts", e.Attempt))
	word := ""
	if body.Error != "" || body.ExitCode != 0 {
		word = body.End // the sentence could have words of the command in it
	}
	r.span.End(e.Time, word)
	if r.started && r.Tool == sessionTool {
		b.backend.Add(&running, -1, nil)
	}
	delete(b.runs, e.Run)
}

// notStarted are the ends of runs of which no start was tried.
var notStarted = map[string]bool{"forbidden": true, "refused": true}

// start begins a span within another.
func (b *Builder) start(parent Span, name string, at time.Time, attrs ...slog.Attr) Span {
	return b.backend.Start(parent, event.TraceContext{}, name, at, attrs)
}

// whole makes a span that is over.
func (b *Builder) whole(parent Span, name string, from, to time.Time, attrs ...slog.Attr) {
	b.start(parent, name, from, attrs...).End(to, "")
}

// open keeps a span until it ends.
func open(spans *map[string]Span, id string, s Span) {
	if *spans == nil {
		*spans = make(map[string]Span)
	}
	(*spans)[id] = s
}

// end ends a span that is open.
func end(spans map[string]Span, id string, at time.Time, attrs []slog.Attr) {
	if s := spans[id]; s != nil {
		s.Set(attrs...)
		s.End(at, "")
		delete(spans, id)
	}
}

// stop ends a span, if there is one.
func stop(s *Span, at time.Time, failed string) {
	if *s != nil {
		(*s).End(at, failed)
		*s = nil
	}
}

// recorded returns the attributes of the record with a name.
func recorded(all []records.Record, name string) []slog.Attr {
	for _, r := range all {
		if r.Name == name {
			return r.Attrs
		}
	}
	return nil
}

// failure is the word for an exit code.
func failure(code int) string {
	if code == 0 {
		return ""
	}
	return "exit code " + strconv.Itoa(code)
}

// judgedAttrs are the attributes of a run that are known when it was judged. Arguments are not among them:
// they may have secrets.
func judgedAttrs(b *event.Judged) []slog.Attr {
	var attrs []slog.Attr
	if len(b.Args) > 0 {
		attrs = append(attrs, slog.String("process.executable.name", filepath.Base(b.Args[0])))
	}
	if b.Rule != nil {
		attrs = append(attrs, slog.String("rule", b.Rule.File+":"+strconv.Itoa(b.Rule.Line)))
	}
	return attrs
}

func deniedAttrs(b *event.Denied) []slog.Attr {
	d := &b.Denial
	attrs := []slog.Attr{slog.String("op", d.Op.String()), slog.String("source", d.Source.String()),
		slog.String("rule", d.Rule), slog.String("grant", d.Grant)}
	if d.Path != "" {
		attrs = append(attrs, slog.String("path", d.Path))
	}
	if d.Addr != "" {
		attrs = append(attrs, slog.String("server.address", d.Addr))
	}
	return attrs
}
