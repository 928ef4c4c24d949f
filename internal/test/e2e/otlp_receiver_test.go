// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A receiver is a collector that takes OTLP over HTTP, as its definition has it, and refuses all else. An
// ExportTraceServiceRequest has the form of TracesData, and so on.
type receiver struct {
	t   testing.TB
	url string

	mu       sync.Mutex
	resource map[string]string
	spans    []*tracepb.Span
	records  []*logspb.LogRecord
	metrics  map[string]*metricspb.Metric // of the last export of each
	requests int
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t, metrics: make(map[string]*metricspb.Metric)}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if err := r.take(q); err != nil {
		r.t.Errorf("%s %s: %v", q.Method, q.URL, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(nil) // a response without a partial success is an empty message
}

func (r *receiver) take(q *http.Request) error {
	if q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("the type is %q", q.Header.Get("Content-Type"))
	}
	var in io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = z
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	switch q.URL.Path {
	case "/v1/traces":
		m := new(tracepb.TracesData)
		if err := whole(body, m); err != nil {
			return err
		}
		for _, s := range m.ResourceSpans {
			r.resource = values(s.Resource.Attributes)
			for _, scope := range s.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	case "/v1/logs":
		m := new(logspb.LogsData)
		if err := whole(body, m); err != nil {
			return err
		}
		for _, s := range m.ResourceLogs {
			for _, scope := range s.ScopeLogs {
				r.records = append(r.records, scope.LogRecords...)
			}
		}
	case "/v1/metrics":
		m := new(metricspb.MetricsData)
		if err := whole(body, m); err != nil {
			return err
		}
		for _, s := range m.ResourceMetrics {
			for _, scope := range s.ScopeMetrics {
				for _, metric := range scope.Metrics {
					r.metrics[metric.Name] = metric
				}
			}
		}
	default:
		return fmt.Errorf("no such path")
	}
	return nil
}

// whole decodes a message that has no field which its definition lacks, and that is written as it is read.
func whole(body []byte, m proto.Message) error {
	if err := proto.Unmarshal(body, m); err != nil {
		return err
	}
	if n := proto.Size(m); n != len(body) {
		return fmt.Errorf("%d bytes of %d are in the message", n, len(body))
	}
	return unknown(m.ProtoReflect())
}

// unknown returns an error for a field that is not defined.
func unknown(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("%s has undefined fields: %x", m.Descriptor().FullName(), m.GetUnknown())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				err = errors.Join(err, unknown(v.List().Get(i).Message()))
			}
		default:
			err = unknown(v.Message())
		}
		return err == nil
	})
	return err
}

// values returns attributes as texts.
func values(attrs []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, a := range attrs {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			out[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			out[a.Key] = fmt.Sprintf("%T", v)
		}
	}
	return out
}
