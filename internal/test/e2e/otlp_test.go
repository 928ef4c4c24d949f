// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The trace of the caller.
const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

// played plays a command: "retry" is denied a write until it may, and "net" asks for a host that is asked about
// and for one that is denied.
func played(spec *executor.Spec, p *e2e.FakeProcess) {
	switch spec.Args[0] {
	case "retry":
		if spec.Policy.LevelAt("/srv/file") != sandbox.LevelWrite {
			p.Exit = executor.Exit{Code: 1, Denials: []sandbox.Denial{{Errno: "EROFS", Source: sandbox.Notified,
				Access: sandbox.Access{Op: sandbox.Write, Path: "/srv/file"}}}}
		}
	case "net":
		<-p.Waited
		for _, name := range []string{"asked.example", "denied.example"} {
			host, err := network.ParseHost(name)
			if err != nil {
				panic(err)
			}
			r := network.Request{Protocol: network.HTTPSConnect, Host: host, Port: 443}
			d := spec.Network.Policy().Decide(r)
			if d.Ruling == network.Ask {
				d = spec.AskHost(context.Background(), r)
			}
			spec.OnRecord(network.Record{Time: time.Now(), Host: name, Port: 443, Protocol: r.Protocol,
				Decision: d.Ruling, Reason: d.Reason, Source: d.Source})
		}
		p.Exit.Code = 1
	}
}

// scripted runs a session of several commands: one that needs nothing, a session on a terminal, a second
// attempt, hosts that are asked about and denied, one that is reviewed, one that is refused and a patch.
func scripted(t *testing.T, tracer event.Tracer, logger *slog.Logger) (traceparents map[string]string) {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"{\"outcome\":\"allow\"}"}}]}`))
	}))
	defer model.Close()
	hosts, err := network.New(network.Config{Mode: network.Full, Ask: true,
		Entries: []network.Entry{{Pattern: "denied.example", Deny: true}}})
	if err != nil {
		t.Fatal(err)
	}
	fake := &e2e.Fake{Play: played}
	yes := approval.Fixed(approval.Decision{Answer: approval.Approved, Source: approval.FromUser})
	r := &sallyport.Runner{Executor: fake, Approver: yes, Network: hosts, Tracer: tracer, Logger: logger,
		Policy: sandbox.ReadOnly().WithNetwork(sandbox.NetworkProxy)}
	strict := &sallyport.Runner{Executor: fake, Tracer: tracer, Logger: logger, Policy: sandbox.ReadOnly(),
		Reviewer: &guardian.Guardian{BaseURL: model.URL, Model: "m"}}
	no := &sallyport.Runner{Executor: fake, Tracer: tracer, Logger: logger, Policy: sandbox.ReadOnly(),
		Approval: approval.Untrusted}
	traceparents = make(map[string]string)
	run := func(r *sallyport.Runner, c *sallyport.Cmd) {
		c.Dir = "/w"
		c.EnvPolicy.Set = map[string]string{"TRACEPARENT": "of the environment"}
		_, _ = r.Run(t.Context(), c) // what became of it, telemetry says
		for _, entry := range fake.Spec.Env {
			if value, ok := strings.CutPrefix(entry, "TRACEPARENT="); ok {
				traceparents[c.CallerID] = value
			}
		}
	}
	caller := event.TraceContext{Parent: "00-" + callerTrace + "-" + callerSpan + "-01", State: "a=b"}
	run(r, &sallyport.Cmd{Args: []string{"plain", "s3cret"}, CallerID: "plain", Trace: caller})
	run(r, &sallyport.Cmd{Args: []string{"retry"}, CallerID: "retry"})
	run(r, &sallyport.Cmd{Args: []string{"net"}, CallerID: "net"})
	run(strict, &sallyport.Cmd{Args: []string{"reviewed"}, CallerID: "reviewed"})
	run(no, &sallyport.Cmd{Args: []string{"refused"}, CallerID: "refused"})
	s, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"session"}, CallerID: "session", Dir: "/w",
		TTY: &sallyport.Size{}})
	if err == nil {
		_, err = s.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*sallyport.Runner{r, strict, no} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return traceparents
}

// TestOTLP: a collector gets every span, metric and log record of a scripted session, once.
func TestOTLP(t *testing.T) {
	for _, test := range []struct {
		name    string
		environ []string
	}{
		{"plain", nil},
		{"compressed, in many small requests", []string{"OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
			"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=3", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE=1",
			"OTEL_METRIC_EXPORT_INTERVAL=20"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			collector := newReceiver(t)
			p := &otel.Process{Environ: append(test.environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.url,
				"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=a%20test,service.name=x", "OTEL_SERVICE_NAME=own"),
				Say: func(s string) { t.Error(s) }}
			var log bytes.Buffer
			parents := scripted(t, p.Tracer(true),
				slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			p.Close(t.Context()) // many small requests take long on a busy machine
			if r := collector.resource; r["service.name"] != "own" || r["service.instance.id"] == "" ||
				r["deployment.environment.name"] != "a test" {
				t.Errorf("the resource is %v", r)
			}
			checkSpans(t, collector, parents)
			checkRecords(t, collector, log.Bytes())
			checkMetrics(t, collector)
		})
	}
}

// wantSpans are the spans of the session: those of each run, each below its parent.
const wantSpans = `net sallyport.run
net sallyport.run > sallyport.attempt
net sallyport.run > sallyport.attempt > sallyport.network_approval
net sallyport.run > sallyport.judge
net sallyport.run > sallyport.start
plain sallyport.run
plain sallyport.run > sallyport.attempt
plain sallyport.run > sallyport.judge
plain sallyport.run > sallyport.start
refused sallyport.run
refused sallyport.run > sallyport.judge
retry sallyport.run
retry sallyport.run > sallyport.approval
retry sallyport.run > sallyport.attempt
retry sallyport.run > sallyport.judge
retry sallyport.run > sallyport.retry
retry sallyport.run > sallyport.retry > sallyport.attempt
retry sallyport.run > sallyport.retry > sallyport.start
retry sallyport.run > sallyport.start
reviewed sallyport.run
reviewed sallyport.run > sallyport.approval
reviewed sallyport.run > sallyport.approval > sallyport.review
reviewed sallyport.run > sallyport.attempt
reviewed sallyport.run > sallyport.judge
reviewed sallyport.run > sallyport.start
session sallyport.run
session sallyport.run > sallyport.attempt
session sallyport.run > sallyport.judge
session sallyport.run > sallyport.start`

// spanAttributes are the attributes that each span has.
var spanAttributes = map[string][]string{
	"sallyport.run": {"tool_name", "call_id", "caller_id", "process.executable.name", "end", "exit_code",
		"attempts"},
	"sallyport.judge":            {"decision", "policy_version"},
	"sallyport.approval":         {"request_id", "action", "attempt", "decision", "source", "wait_ms", "cache_hit"},
	"sallyport.network_approval": {"request_id", "action", "attempt", "decision", "source", "wait_ms"},
	"sallyport.review":           {"review_id", "decision", "terminal_status", "risk_level", "guardian_model"},
	"sallyport.start":            {"attempt", "sandbox_mode", "sandbox_level", "network"},
	"sallyport.attempt":          {"attempt", "sandbox_mode", "sandbox_level", "network", "exit_code", "signal"},
	"sallyport.retry":            {"attempt", "reason", "added"},
}

func checkSpans(t *testing.T, c *receiver, parents map[string]string) {
	t.Helper()
	type found struct{ name, parent, trace string }
	byID := make(map[string]found)
	runs := make(map[string]string) // by trace and span
	var events []string
	for _, s := range c.spans {
		id, attrs := hex.EncodeToString(s.SpanId), values(s.Attributes)
		if byID[id] != (found{}) || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
			t.Errorf("the span %s is there twice, or has no identity", s.Name)
		}
		byID[id] = found{s.Name, hex.EncodeToString(s.ParentSpanId), hex.EncodeToString(s.TraceId)}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < uint64(time.Now().Add(-time.Hour).UnixNano()) {
			t.Errorf("%s lasts from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		for _, key := range spanAttributes[s.Name] {
			if _, ok := attrs[key]; !ok {
				t.Errorf("%s has no %s: %v", s.Name, key, attrs)
			}
		}
		if strings.Contains(s.String(), "s3cret") {
			t.Errorf("%s has an argument", s.Name)
		}
		if caller := attrs["caller_id"]; s.Name == "sallyport.run" {
			runs[byID[id].trace+id] = caller
			if want := "00-" + byID[id].trace + "-" + id + "-01"; parents[caller] != want && caller != "session" &&
				caller != "refused" {
				t.Errorf("%s got the context %q, want %q", caller, parents[caller], want)
			}
			if caller == "plain" && (byID[id].parent != callerSpan || byID[id].trace != callerTrace ||
				s.TraceState != "a=b" || s.Flags != 0x301) {
				t.Errorf("the run is not in the trace of its caller: %v", s)
			}
		}
		for _, e := range s.Events {
			events = append(events, fmt.Sprint(s.Name, " ", e.Name, " ", values(e.Attributes)["path"],
				values(e.Attributes)["server.address"]))
		}
	}
	var got []string
	for id, s := range byID {
		path, at := s.name, id
		for byID[at].name != "sallyport.run" && byID[byID[at].parent].name != "" {
			at = byID[at].parent
			path = byID[at].name + " > " + path
		}
		got = append(got, runs[s.trace+at]+" "+path)
	}
	slices.Sort(got)
	if text := strings.Join(got, "\n"); text != wantSpans {
		t.Errorf("the spans are\n%s", text)
	}
	if want := []string{"sallyport.attempt sallyport.denied /srv/file",
		"sallyport.attempt sallyport.network_proxy.policy_decision denied.example"}; !slices.Equal(slices.Sorted(slices.Values(events)), want) {
		t.Errorf("the events of spans are %q", events)
	}
}

// checkRecords holds that the log records are those of the logger: the same names and attributes, each once.
func checkRecords(t *testing.T, c *receiver, log []byte) {
	t.Helper()
	var want, got []string
	for line := range bytes.Lines(log) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		name, _ := r["msg"].(string)
		delete(r, "msg")
		delete(r, "level")
		delete(r, "time")
		attrs := make(map[string]string)
		for key, value := range r {
			attrs[key] = fmt.Sprint(value)
		}
		if name != "command ended" {
			want = append(want, fmt.Sprint(name, attrs))
		}
	}
	for _, r := range c.records {
		got = append(got, fmt.Sprint(r.EventName, values(r.Attributes)))
		if r.SeverityNumber != 9 || r.Body.GetStringValue() != r.EventName || len(r.TraceId) != 16 ||
			len(r.SpanId) != 8 || r.TimeUnixNano == 0 {
			t.Errorf("the record %v", r)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range []string{"tool_decision", "approval.requested", "sandbox_outcome", "guardian.review",
		"tool.call", "network_proxy.policy_decision"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "sallyport."+name) }) {
			t.Errorf("the session has no %s", name)
		}
	}
}

// wantMetrics are the metrics of the session: values of counters, and numbers of values of histograms.
const wantMetrics = `sallyport.approval.requested map[approved:approved tool:shell] 2
sallyport.approval.wait_ms map[decision:approved source:automatedreviewer tool:shell] 1
sallyport.approval.wait_ms map[decision:approved source:user tool:shell] 2
sallyport.denied map[op:write source:notified] 1
sallyport.guardian.review map[action:command decision:approved guardian_model:m risk_level:low shadow:false terminal_status:approved user_authorization:unknown] 1
sallyport.guardian.review.duration_ms map[action:command decision:approved guardian_model:m risk_level:low shadow:false terminal_status:approved user_authorization:unknown] 1
sallyport.sandbox_outcome map[outcome:escalated sandbox_level: sandbox_mode:workspace-write tool:shell] 1
sallyport.tool.call map[success:false tool:shell] 2
sallyport.tool.call map[success:true tool:shell] 3
sallyport.tool.call map[success:true tool:unified_exec] 1
sallyport.tool.call.duration_ms map[success:false tool:shell] 2
sallyport.tool.call.duration_ms map[success:true tool:shell] 3
sallyport.tool.call.duration_ms map[success:true tool:unified_exec] 1
sallyport.tool.unified_exec map[tty:true] 1
sallyport.tool.unified_exec.running map[] 0`

func checkMetrics(t *testing.T, c *receiver) {
	t.Helper()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(c.metrics)) {
		m := c.metrics[name]
		if m.Unit == "" || m.Description == "" {
			t.Errorf("%s has no unit or no description", name)
		}
		if strings.HasPrefix(name, "sallyport.tool_decision") || strings.Contains(name, "policy_decision") {
			continue // as their records
		}
		switch data := m.Data.(type) {
		case *metricspb.Metric_Sum:
			if data.Sum.AggregationTemporality != 2 || data.Sum.IsMonotonic == strings.HasSuffix(name, "running") {
				t.Errorf("%s is %v", name, data.Sum)
			}
			for _, p := range data.Sum.DataPoints {
				got = append(got, fmt.Sprint(name, " ", values(p.Attributes), " ", p.GetAsInt()))
			}
		case *metricspb.Metric_Histogram:
			for _, p := range data.Histogram.DataPoints {
				sum := uint64(0)
				for _, n := range p.BucketCounts {
					sum += n
				}
				if sum != p.Count || len(p.BucketCounts) != len(p.ExplicitBounds)+1 || p.StartTimeUnixNano > p.TimeUnixNano {
					t.Errorf("%s is %v", name, p)
				}
				got = append(got, fmt.Sprint(name, " ", values(p.Attributes), " ", p.Count))
			}
		}
	}
	slices.Sort(got)
	if text := strings.Join(got, "\n"); text != wantMetrics {
		t.Errorf("the metrics are\n%s", text)
	}
}
