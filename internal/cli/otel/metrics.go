// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/tracing"
)

// maxPoints is how many combinations of attributes a metric has at most; others are counted together.
const maxPoints = 1000

// A meter holds the metrics of this process.
type meter struct {
	start time.Time

	mu     sync.Mutex
	points map[*tracing.Metric]map[string]*point
	sent   time.Time // when what came before was exported; only for deltas
}

// A point is a metric with certain attributes.
type point struct {
	attrs []slog.Attr
	now   sums
	sent  sums // of now, what was exported; only for deltas
}

// sums are what was counted.
type sums struct {
	count   int64 // of a counter the sum, of a histogram the number of values
	total   int64
	buckets []uint64 // one more than bounds
}

// Add implements [tracing.Backend].
func (x *Exporter) Add(m *tracing.Metric, n int64, attrs []slog.Attr) {
	x.meter.update(m, x.cut(attrs), func(s *sums) { s.count += n })
}

// Observe implements [tracing.Backend].
func (x *Exporter) Observe(m *tracing.Metric, value int64, attrs []slog.Attr) {
	x.meter.update(m, x.cut(attrs), func(s *sums) {
		if s.buckets == nil {
			s.buckets = make([]uint64, len(tracing.Bounds)+1)
		}
		at, _ := slices.BinarySearch(tracing.Bounds, float64(value))
		s.buckets[at]++
		s.count++
		s.total += value
	})
}

// update changes a point.
func (m *meter) update(of *tracing.Metric, attrs []slog.Attr, change func(*sums)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	points := m.points[of]
	if points == nil {
		points = make(map[string]*point)
		m.points[of] = points
	}
	key := labels(attrs, "")
	if points[key] == nil && len(points) >= maxPoints {
		attrs = []slog.Attr{slog.Bool("otel.metric.overflow", true)}
		key = labels(attrs, "")
	}
	p := points[key]
	if p == nil {
		p = &point{attrs: attrs}
		points[key] = p
	}
	change(&p.now)
}

// The words for what a sum counts from.
const (
	sinceLast  = 1
	sinceStart = 2
)

// encode writes Metric messages of all that there is at a time, and returns how many points they have.
func (m *meter) encode(e *encoder, delta bool, now time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range tracing.All() {
		points, since, kind := sorted(m.points[of]), m.start, uint64(sinceStart)
		if delta && of.Kind != tracing.UpDown { // the value of an up-down counter stays cumulative
			since, kind = m.sent, sinceLast
		}
		if len(points) == 0 {
			continue
		}
		e.message(itemField, func(e *encoder) {
			e.text(1, of.Name)
			e.text(2, of.Help)
			e.text(3, of.Unit)
			field := 7 // Sum
			if of.Kind == tracing.Histogram {
				field = 9
			}
			e.message(field, func(e *encoder) {
				for _, p := range points {
					part := p.now
					if kind == sinceLast {
						part = p.take()
					}
					e.message(1, func(e *encoder) { part.encode(e, of.Kind, p.attrs, since, now) })
					n++
				}
				e.varint(2, kind)
				if of.Kind == tracing.Counter {
					e.varint(3, 1) // it grows only
				}
			})
		})
	}
	m.sent = now
	return n
}

// take returns what came since it was called last.
func (p *point) take() sums {
	part := sums{count: p.now.count - p.sent.count, total: p.now.total - p.sent.total,
		buckets: slices.Clone(p.now.buckets)}
	for i := range p.sent.buckets {
		part.buckets[i] -= p.sent.buckets[i]
	}
	p.sent = p.now
	p.sent.buckets = slices.Clone(p.now.buckets)
	return part
}

// encode writes a NumberDataPoint or a HistogramDataPoint.
func (s *sums) encode(e *encoder, kind tracing.MetricKind, attrs []slog.Attr, since, now time.Time) {
	e.time(2, since)
	e.time(3, now)
	if kind != tracing.Histogram {
		e.fixed64(6, uint64(s.count))
		e.attributes(7, attrs)
		return
	}
	e.fixed64(4, uint64(s.count))
	e.double(5, float64(s.total))
	var counts, bounds []byte
	for _, n := range s.buckets {
		counts = binary.LittleEndian.AppendUint64(counts, n)
	}
	for _, b := range tracing.Bounds {
		bounds = binary.LittleEndian.AppendUint64(bounds, math.Float64bits(b))
	}
	e.bytes(6, counts)
	e.bytes(7, bounds)
	e.attributes(9, attrs)
}

// sorted returns points in the order of their attributes.
func sorted(points map[string]*point) []*point {
	out := make([]*point, 0, len(points))
	for _, p := range points {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *point) int {
		return cmp.Compare(labels(a.attrs, ""), labels(b.attrs, ""))
	})
	return out
}

// expose writes all metrics in the text form of Prometheus, version 0.0.4.
func (m *meter) expose(w io.Writer) error {
	var b strings.Builder
	m.mu.Lock()
	for _, of := range tracing.All() {
		name, kind := strings.ReplaceAll(of.Name, ".", "_"), "gauge"
		switch of.Kind {
		case tracing.Counter:
			name, kind = name+"_total", "counter"
		case tracing.Histogram:
			kind = "histogram"
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, of.Help, name, kind)
		for _, p := range sorted(m.points[of]) {
			if of.Kind != tracing.Histogram {
				fmt.Fprintf(&b, "%s%s %d\n", name, labels(p.attrs, ""), p.now.count)
				continue
			}
			sum := uint64(0)
			for i, n := range p.now.buckets {
				sum += n
				le := "+Inf"
				if i < len(tracing.Bounds) {
					le = strconv.FormatFloat(tracing.Bounds[i], 'f', -1, 64)
				}
				fmt.Fprintf(&b, "%s_bucket%s %d\n", name, labels(p.attrs, le), sum)
			}
			fmt.Fprintf(&b, "%s_sum%s %d\n%s_count%s %d\n", name, labels(p.attrs, ""), p.now.total, name,
				labels(p.attrs, ""), p.now.count)
		}
	}
	m.mu.Unlock()
	_, err := io.WriteString(w, b.String())
	return err
}

// escape is how Prometheus has values of labels.
var escape = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
})

// labels writes attributes as Prometheus does. Le is a further one for buckets; empty for none.
func labels(attrs []slog.Attr, le string) string {
	if le != "" {
		attrs = append(slices.Clip(attrs), slog.String("le", le))
	}
	if len(attrs) == 0 {
		return ""
	}
	parts := make([]string, len(attrs))
	for i, a := range attrs {
		parts[i] = strings.ReplaceAll(a.Key, ".", "_") + `="` + escape().Replace(a.Value.String()) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}
