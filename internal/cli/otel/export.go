// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/run/tracing"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// An Exporter sends spans, metrics and log records by OTLP over HTTP. It is a [tracing.Backend], whose methods
// do not wait for the network.
type Exporter struct {
	config   config
	version  string
	resource []slog.Attr
	warn     func(sentence string)

	life    context.Context // of requests
	end     context.CancelFunc
	closing atomic.Bool
	warned  atomic.Bool
	clients [signals]*http.Client // nil for a signal that goes nowhere

	meter   meter
	spans   batch
	records batch

	mu   sync.Mutex
	next *time.Timer // of metrics; nil until they are sent

	measuring sync.Mutex // held while metrics are sent: the newest last
}

// newExporter returns an Exporter by a config. Warn gets one sentence when something is not delivered, at
// most once.
func newExporter(c config, version string, warn func(string)) *Exporter {
	x := &Exporter{config: c, version: version, warn: warn}
	x.life, x.end = context.WithCancel(context.Background())
	now := time.Now()
	x.meter = meter{start: now, sent: now, points: make(map[*tracing.Metric]map[string]*point)}
	x.spans = batch{x: x, signal: traces, limits: c.batches[traces]}
	x.records = batch{x: x, signal: logs, limits: c.batches[logs]}
	x.resource = []slog.Attr{slog.String("service.name", "sallyport"),
		slog.String("service.version", version),
		slog.String("service.instance.id", fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())),
		slog.String("telemetry.sdk.name", "sallyport"), slog.String("telemetry.sdk.language", "go"),
		slog.String("telemetry.sdk.version", version)}
next:
	for _, pair := range c.resource {
		own := slog.String(pair[0], shorten(pair[1], c.valueLength))
		for i := range x.resource {
			if x.resource[i].Key == own.Key {
				x.resource[i] = own
				continue next
			}
		}
		x.resource = append(x.resource, own)
	}
	usual := client(nil) // one connection for all signals, where that is possible
	for s, t := range c.targets {
		switch {
		case t.tls != nil:
			x.clients[s] = client(t.tls)
		case t.url != "":
			x.clients[s] = usual
		}
	}
	return x
}

// client returns one with certificates; nil for the usual. It does not go elsewhere when it is told to.
func client(certificates *tls.Config) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: certificates,
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, DisableCompression: true}
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// shorten returns valid text of at most so many characters.
func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}

// An item is a span or a log record.
type item interface{ encode(e *encoder) }

// A batch holds items until they are sent.
type batch struct {
	x      *Exporter
	signal signal
	limits limits

	mu      sync.Mutex
	waiting []item
	dropped int // for want of room, since it was last said
	timer   *time.Timer
	full    bool // a flush was begun because the batch was full

	sending sync.Mutex // held by who flushes
}

// add takes an item, and drops it if too many wait.
func (b *batch) add(i item) {
	if b.x.clients[b.signal] == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= b.limits.queue {
		b.dropped++
		return
	}
	b.waiting = append(b.waiting, i)
	switch {
	case b.x.closing.Load() || b.full: // who flushes takes it, too
	case len(b.waiting) >= b.limits.batch:
		b.full = true
		go b.flush()
	case b.timer == nil:
		b.timer = time.AfterFunc(b.limits.delay, b.flush)
	}
}

// flush sends what waits.
func (b *batch) flush() {
	b.sending.Lock()
	defer b.sending.Unlock()
	for {
		b.mu.Lock()
		if b.timer != nil {
			b.timer.Stop()
			b.timer = nil
		}
		n, dropped := min(len(b.waiting), b.limits.batch), b.dropped
		part := b.waiting[:n:n]
		b.waiting, b.full, b.dropped = b.waiting[n:], n < len(b.waiting), 0
		b.mu.Unlock()
		if dropped > 0 {
			b.x.failed(b.signal, fmt.Errorf("%d were dropped, because too many waited", dropped))
		}
		if n == 0 {
			return
		}
		b.x.send(b.signal, request(b.x.resource, b.x.version, func(e *encoder) {
			for _, i := range part {
				e.message(itemField, i.encode)
			}
		}))
	}
}

// sendMetrics sends all metrics.
func (x *Exporter) sendMetrics() {
	if x.clients[metrics] == nil {
		return
	}
	x.measuring.Lock()
	defer x.measuring.Unlock()
	points := 0
	body := request(x.resource, x.version, func(e *encoder) {
		points = x.meter.encode(e, x.config.delta, time.Now())
	})
	if points > 0 {
		x.send(metrics, body)
	}
}

// sendRegularly sends metrics in the interval of the config until the end.
func (x *Exporter) sendRegularly() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next != nil || x.clients[metrics] == nil || x.closing.Load() {
		return
	}
	x.next = time.AfterFunc(x.config.interval, func() {
		x.sendMetrics()
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.closing.Load() {
			x.next.Reset(x.config.interval)
		}
	})
}

// Close sends what waits and ends the Exporter. The end of ctx ends that.
func (x *Exporter) Close(ctx context.Context) {
	x.closing.Store(true)
	stop := context.AfterFunc(ctx, x.end)
	defer stop()
	defer x.end()
	x.mu.Lock()
	measures := x.next != nil // else they are for Prometheus only
	if measures {
		x.next.Stop()
	}
	x.mu.Unlock()
	x.spans.flush() // one after the other: a further connection takes longer
	x.records.flush()
	if measures {
		x.sendMetrics()
	}
	for _, c := range x.clients {
		if c != nil {
			c.CloseIdleConnections()
		}
	}
}

// failed says once that something was not delivered.
func (x *Exporter) failed(s signal, err error) {
	if !x.warned.Swap(true) {
		x.warn("telemetry: not all " + words[s] + " were delivered: " + text.Line(err.Error()))
	}
}

// send delivers one request, and tries again where that helps.
func (x *Exporter) send(s signal, body []byte) {
	t := &x.config.targets[s]
	ctx, cancel := context.WithTimeout(x.life, t.timeout)
	defer cancel()
	sent, encoding := body, ""
	if t.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(body)
		if err = errors.Join(err, w.Close()); err != nil {
			x.failed(s, err)
			return
		}
		sent, encoding = b.Bytes(), "gzip"
	}
	for wait := time.Second; ; wait *= 2 {
		again, after, err := x.post(ctx, s, sent, encoding)
		switch {
		case err == nil:
			return
		case !again || x.closing.Load() || !pause(ctx, max(after, wait/2+rand.N(wait/2))):
			x.failed(s, err)
			return
		}
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxResponse is how much of a response is read.
const maxResponse = 64 << 10

// post makes one request. Again says that another try may succeed, at the earliest after some time.
func (x *Exporter) post(ctx context.Context, s signal, body []byte,
	encoding string) (again bool, after time.Duration, err error) {
	t := &x.config.targets[s]
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the endpoint is invalid")
	}
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "sallyport/"+x.version)
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	resp, err := x.clients[s].Do(r)
	if err != nil {
		return true, 0, fmt.Errorf("%w; start a collector, set OTEL_EXPORTER_OTLP_ENDPOINT, or turn "+
			"telemetry.enabled off", cause(r, err))
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16) // a date is not followed
		return true, time.Duration(seconds) * time.Second, errors.New(r.URL.Host + " answers " + resp.Status)
	case resp.StatusCode/100 != 2: //nolint:mnd // the class of a status
		return false, 0, errors.New(r.URL.Host + " answers " + resp.Status)
	case err != nil:
		return true, 0, cause(r, err)
	case resp.Header.Get("Content-Type") != "application/x-protobuf":
		return false, 0, nil // it was taken
	}
	n, message, err := rejected(answer)
	if err == nil && (n > 0 || message != "") {
		err = fmt.Errorf("%s rejected %d: %s", r.URL.Host, n, message)
	}
	return false, 0, err
}

// cause returns the reason of a failed request without its URL, which may have a password.
func cause(r *http.Request, err error) error {
	if e := errors.Unwrap(err); e != nil && strings.Contains(err.Error(), r.URL.Redacted()) {
		err = e
	}
	return fmt.Errorf("%s: %w", r.URL.Host, err)
}
