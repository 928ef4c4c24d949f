// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package otel sends the telemetry of the command: spans, metrics and log records by OTLP over HTTP, as the
// OTEL_ variables say, and metrics for Prometheus.
//
// It links nothing of OpenTelemetry. Every start of the command would pay for that, and few have telemetry
// (decision 0154); what is needed of the protocol is small.
package otel

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/tracing"
)

// CloseTime is how long the end of a process waits for telemetry that was not sent: what Close is called
// with there.
const CloseTime = 2 * time.Second

// A Process is the telemetry of this process. Nothing is made before it is first needed. The nil Process has
// none.
type Process struct {
	Environ []string // with the OTEL_ variables
	// Say prints a warning.
	Say func(sentence string)

	once     sync.Once
	exporter *Exporter
	full     *tracing.Builder // all signals
	counting *tracing.Builder // metrics only

	mu     sync.Mutex
	served bool // metrics are read by Prometheus
	quiet  bool
}

// Quiet prints no warnings from now on.
func (p *Process) Quiet() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = true
}

// Tracer returns what a Runner needs for telemetry. Enabled is what the settings say; without it there are
// only the metrics that Serve shows. Nil means that there is nothing to do.
func (p *Process) Tracer(enabled bool) event.Tracer {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	served := p.served
	p.mu.Unlock()
	switch {
	case enabled:
		p.make()
		p.exporter.sendRegularly()
		return p.full
	case served:
		p.make()
		return p.counting
	}
	return nil
}

// make makes the Exporter.
func (p *Process) make() {
	p.once.Do(func() {
		c, wrong := parse(p.Environ)
		for _, sentence := range wrong {
			p.say(sentence)
		}
		p.exporter = newExporter(c, hostfacts.ReadBuild().Version, p.say)
		p.full, p.counting = tracing.New(p.exporter), tracing.New(counter{p.exporter})
	})
}

func (p *Process) say(sentence string) {
	p.mu.Lock()
	quiet := p.quiet
	p.mu.Unlock()
	if !quiet {
		p.Say(sentence)
	}
}

// Close sends what was not sent, within the time of ctx. No run goes on.
func (p *Process) Close(ctx context.Context) {
	if p == nil || p.exporter == nil {
		return
	}
	p.exporter.Close(ctx)
}

// readTime is how long a scraper may take for its request.
const readTime = 10 * time.Second

// Served has all runs counted from now on, for Serve.
func (p *Process) Served() {
	p.make()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served = true
}

// Serve answers GET /metrics on a listener until ctx ends, after Served. It closes the listener.
func (p *Process) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = p.exporter.meter.expose(w) // who reads has gone
	})
	s := &http.Server{Handler: mux, ReadTimeout: readTime, WriteTimeout: readTime, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // what is read then is not of use
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A counter takes metrics, and neither spans nor records.
type counter struct{ *Exporter }

// Start implements [tracing.Backend].
func (counter) Start(_ tracing.Span, caller event.TraceContext, _ string, _ time.Time,
	_ []slog.Attr) tracing.Span {
	return noSpan(caller)
}

// Log implements [tracing.Backend].
func (counter) Log(tracing.Span, time.Time, string, []slog.Attr) {}

// A noSpan is not kept.
type noSpan event.TraceContext

// Context implements [tracing.Span]: it is that of the caller, which the command gets.
func (s noSpan) Context() event.TraceContext        { return event.TraceContext(s) }
func (noSpan) Set(...slog.Attr)                     {}
func (noSpan) Event(string, time.Time, []slog.Attr) {}
func (noSpan) End(time.Time, string)                {}
