// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/run/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A collector answers requests by a function, and counts them by path.
type collector struct {
	*httptest.Server

	mu     sync.Mutex
	bodies map[string][]string
	seen   chan string // paths, in order
}

func newCollector(t testing.TB, answer func(n int, w http.ResponseWriter)) *collector {
	t.Helper()
	c := &collector{bodies: make(map[string][]string), seen: make(chan string, 1000)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], string(body)+r.Header.Get("Api-Key"))
		n := len(c.bodies[r.URL.Path])
		c.mu.Unlock()
		answer(n, w)
		c.seen <- r.URL.Path
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) got(path string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bodies[path]
}

func ok(int, http.ResponseWriter) {}

// process returns a Process that sends to a URL, and what it says.
func process(url string, environ ...string) (*Process, *[]string) {
	said := new([]string)
	var mu sync.Mutex
	return &Process{Environ: append(environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+url), Say: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		*said = append(*said, s)
	}}, said
}

// run makes a run with one denied access.
func run(tracer event.Tracer, id string) {
	tracer.Begin(event.Run{ID: id, Tool: "unified_exec", Start: time.Now()})
	tracer.Emit(event.Event{Run: id, Time: time.Now(), Body: event.Judged{Decision: event.DecisionAllow}})
	tracer.Emit(event.Event{Run: id, Time: time.Now(), Body: event.Ended{End: "exited"}})
}

// TestFailures: what a collector does wrong costs a limited time and one warning.
func TestFailures(t *testing.T) {
	status := func(code int) func(int, http.ResponseWriter) {
		return func(_ int, w http.ResponseWriter) { w.WriteHeader(code) }
	}
	for _, test := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter)
		said   string // empty for nothing
	}{
		{"well", ok, ""},
		{"a code of its own", status(http.StatusAccepted), ""},
		{"not found", status(http.StatusNotFound), `^telemetry: not all (traces|metrics|logs) were delivered: 127\.0\.0\.1:\d+ answers 404 Not Found$`},
		{"not authorized", status(http.StatusUnauthorized), "answers 401 Unauthorized$"},
		{"a redirect is not followed", func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "answers 307"},
		{"partly", func(_ int, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte("\x0a\x07\x08\x02\x12\x03bad"))
		}, "rejected 2: bad$"},
		{"an invalid response", func(_ int, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte("\x0a\xff"))
		}, "the response is invalid$"},
		{"a message with control characters", func(_ int, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte("\x0a\x05\x12\x03\x1b[2"))
		}, `rejected 0: [^\x1b]*$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCollector(t, test.answer)
			p, said := process(c.URL)
			run(p.Tracer(true), "r")
			p.Close(t.Context())
			if test.said == "" && len(*said) == 0 {
				return
			}
			if len(*said) != 1 || !regexp.MustCompile(test.said).MatchString((*said)[0]) {
				t.Errorf("it says %q", *said)
			}
			if len(c.got("/elsewhere")) > 0 {
				t.Error("it followed")
			}
		})
	}
}

// TestNoCollector: without a collector the end takes no time.
func TestNoCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, said := process("http://user:s3cret@" + l.Addr().String())
	run(p.Tracer(true), "r")
	p.Close(t.Context())
	if text := strings.Join(*said, "\n"); len(*said) != 1 || !strings.Contains(text, "connection refused; start a collector") ||
		strings.Contains(text, "s3cret") {
		t.Errorf("it says %q", text)
	}
}

// TestHang: a collector that does not answer holds up the end for a limited time.
func TestHang(t *testing.T) {
	over := make(chan struct{})
	c := newCollector(t, func(int, http.ResponseWriter) { <-over })
	p, said := process(c.URL)
	run(p.Tracer(true), "r")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as after CloseTime
	p.exporter.Close(ctx)
	close(over)
	if len(*said) != 1 {
		t.Errorf("it says %q", *said)
	}
}

// TestAgain: a request that a collector cannot take now is sent again.
func TestAgain(t *testing.T) {
	c := newCollector(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p, said := process(c.URL, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1", "OTEL_LOGS_EXPORTER=none",
		"OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_HEADERS=api-key=k")
	run(p.Tracer(true), "r")
	<-c.seen
	<-c.seen
	p.Close(t.Context())
	got := c.got("/v1/traces")
	if len(*said) > 0 || len(got) < 2 || got[0] != got[1] || !strings.HasSuffix(got[0], "k") {
		t.Errorf("%d requests, it says %q", len(got), *said)
	}
}

// TestRoom: what waits is bounded, and what is dropped is said.
func TestRoom(t *testing.T) {
	c := newCollector(t, ok)
	p, said := process(c.URL, "OTEL_BSP_MAX_QUEUE_SIZE=10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=20",
		"OTEL_BSP_SCHEDULE_DELAY=600000")
	tracer := p.Tracer(true)
	for i := range 20 {
		run(tracer, fmt.Sprint(i))
	}
	if n := len(p.exporter.spans.waiting); n != 10 {
		t.Errorf("%d wait", n)
	}
	p.Close(t.Context())
	if len(*said) != 1 || !strings.Contains((*said)[0], "30 were dropped, because too many waited") {
		t.Errorf("it says %q", *said)
	}
}

// TestQuiet: nothing is said, and nothing is made where there is no telemetry.
func TestQuiet(t *testing.T) {
	var none *Process
	none.Quiet()
	none.Close(t.Context())
	p, said := process("http://127.0.0.1:1")
	if none.Tracer(true) != nil || p.Tracer(false) != nil || p.exporter != nil {
		t.Error("there is telemetry")
	}
	p.Quiet()
	run(p.Tracer(true), "r")
	p.Close(t.Context())
	if len(*said) > 0 {
		t.Errorf("it says %q", *said)
	}
}

// TestDelta: a counter that is sent as deltas says what came since, an up-down counter what there is.
func TestDelta(t *testing.T) {
	x := newExporter(config{valueLength: math.MaxInt32}, "v", func(string) {})
	all := tracing.All()
	var counter, histogram *tracing.Metric
	for _, m := range all {
		switch m.Kind {
		case tracing.Counter:
			counter = m
		case tracing.Histogram:
			histogram = m
		}
	}
	x.Add(counter, 2, nil)
	x.Observe(histogram, 7, nil)
	var first, second, third encoder
	x.meter.encode(&first, true, time.Now())
	x.Add(counter, 3, nil)
	x.Observe(histogram, 8, nil)
	x.meter.encode(&second, true, time.Now())
	p, h := x.meter.points[counter][""], x.meter.points[histogram][""]
	if p.now.count != 5 || p.sent.count != 5 || h.sent.count != 2 || h.sent.total != 15 {
		t.Errorf("%+v %+v", p, h)
	}
	if part := h.take(); part.count != 0 || part.total != 0 || part.buckets[1] != 0 {
		t.Errorf("nothing came, and the part is %+v", part)
	}
	x.meter.encode(&third, false, time.Now())
	if len(first) != len(second) || len(third) == 0 {
		t.Errorf("%d and %d bytes", len(first), len(second))
	}
	x.end()
}

// TestOverflow: the number of combinations of attributes is bounded.
func TestOverflow(t *testing.T) {
	x := newExporter(config{valueLength: math.MaxInt32}, "v", func(string) {})
	defer x.end()
	m := tracing.All()[0]
	for i := range maxPoints + 5 {
		x.Add(m, 1, []slog.Attr{slog.Int("n", i)})
	}
	if p := x.meter.points[m][`{otel_metric_overflow="true"}`]; len(x.meter.points[m]) != maxPoints+1 || p.now.count != 5 {
		t.Errorf("%d points", len(x.meter.points[m]))
	}
}

// TestPrometheus: the endpoint shows what was counted, without OTLP, and nothing else.
func TestPrometheus(t *testing.T) {
	p, said := process("http://127.0.0.1:1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	p.Served()
	go func() { over <- p.Serve(ctx, l) }()
	tracer := p.Tracer(false)
	caller := event.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	if got := tracer.Begin(event.Run{ID: "r", Tool: `a"b\c`, Start: time.Now(), Trace: caller}); got != caller {
		t.Errorf("the command gets %+v", got)
	}
	tracer.Emit(event.Event{Run: "r", Time: time.Now(), Body: event.Ended{End: "exited", Duration: 7 * time.Millisecond}})
	for _, test := range []struct {
		method, path string
		status       int
	}{{"GET", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404}} {
		q, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+l.Addr().String()+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != test.status {
			t.Errorf("%s %s: %s, %v", test.method, test.path, resp.Status, err)
		}
		if test.status == 200 {
			checkExposition(t, resp.Header, string(body))
		}
	}
	cancel()
	if shared, ok := http.DefaultTransport.(*http.Transport); ok {
		shared.CloseIdleConnections()
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if len(p.exporter.spans.waiting)+len(p.exporter.records.waiting) > 0 {
		t.Error("something would be sent")
	}
	p.Close(t.Context())
	if len(*said) > 0 { // nothing is sent
		t.Errorf("it says %q", *said)
	}
}

// exposition is the form of a line of Prometheus, version 0.0.4.
var exposition = regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="([^"\\\n]|\\.)*"(,[a-z_]+="([^"\\\n]|\\.)*")*\})? -?\d+)$`)

func checkExposition(t *testing.T, header http.Header, body string) {
	t.Helper()
	if header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%v", header)
	}
	for line := range strings.Lines(body) {
		if !exposition.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("the line %q", line)
		}
	}
	for _, want := range []string{
		"# TYPE sallyport_tool_call_total counter\n" + `sallyport_tool_call_total{tool="a\"b\\c",success="true"} 1`,
		`sallyport_tool_call_duration_ms_bucket{tool="a\"b\\c",success="true",le="5"} 0`,
		`sallyport_tool_call_duration_ms_bucket{tool="a\"b\\c",success="true",le="10"} 1`,
		`sallyport_tool_call_duration_ms_bucket{tool="a\"b\\c",success="true",le="+Inf"} 1`,
		`sallyport_tool_call_duration_ms_sum{tool="a\"b\\c",success="true"} 7`,
		`sallyport_tool_call_duration_ms_count{tool="a\"b\\c",success="true"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

func FuzzRejected(f *testing.F) {
	f.Add([]byte("\x0a\x07\x08\x02\x12\x03bad"))
	f.Add([]byte{0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, body []byte) {
		_, message, err := rejected(body)
		if err != nil && message != "" && len(message) > len(body) {
			t.Error(message)
		}
	})
}

// BenchmarkRun is what a run costs the Runner that waits for it, without the network.
func BenchmarkRun(b *testing.B) {
	c := newCollector(b, ok)
	p, _ := process(c.URL, "OTEL_BSP_MAX_QUEUE_SIZE=1000000", "OTEL_BLRP_MAX_QUEUE_SIZE=1000000")
	tracer := p.Tracer(true)
	b.ReportAllocs()
	for b.Loop() {
		run(tracer, "r")
	}
	b.StopTimer()
	p.Close(b.Context())
}
