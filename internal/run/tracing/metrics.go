// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"

	"github.com/sallyport-dev/sallyport/internal/run/records"
)

// A MetricKind says what a metric is.
type MetricKind uint8

// The kinds.
const (
	Counter   MetricKind = iota // grows
	UpDown                      // grows and shrinks
	Histogram                   // of values
)

// A Metric is one row of the table of metrics. Each has one address.
type Metric struct {
	Name, Unit, Help string
	Kind             MetricKind
}

// Bounds are the upper bounds of the buckets of histograms, in milliseconds.
var Bounds = []float64{5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000,
	1_800_000}

// A derived metric counts records, or takes a value of them.
type derived struct {
	Metric
	record string   // its name
	attrs  []string // those of the record that the metric has, few values each
	value  string   // the attribute with the value of a histogram; empty for a counter
	only   string   // an attribute that the record must have; empty for all records
}

// table has the metrics that are made of records.
var table = []derived{
	{Metric{records.ToolDecision, "{decision}", "Decisions about calls.", Counter}, records.ToolDecision,
		[]string{"tool_name", "decision", "source", "cache_hit"}, "", ""},
	{Metric{"sallyport.approval.wait_ms", "ms", "How long questions were open.", Histogram},
		records.ToolDecision, []string{"tool_name", "decision", "source"}, "wait_ms", "request_id"},
	{Metric{records.ApprovalRequested, "{question}", "Questions whose answers can be remembered.", Counter},
		records.ApprovalRequested, []string{"tool_name", "approved"}, "", ""},
	{Metric{records.SandboxOutcome, "{outcome}", "Runs that were denied something, run again or ended early.",
		Counter}, records.SandboxOutcome,
		[]string{"tool_name", "outcome", "sandbox_mode", "sandbox_level"}, "", ""},
	{Metric{records.ToolCall, "{call}", "Calls that are over.", Counter}, records.ToolCall,
		[]string{"tool_name", "success"}, "", ""},
	{Metric{records.ToolCall + ".duration_ms", "ms", "How long calls took, with the time of questions.",
		Histogram}, records.ToolCall, []string{"tool_name", "success"}, "duration_ms", ""},
	{Metric{records.GuardianReview, "{review}", "Reviews by a model.", Counter}, records.GuardianReview,
		reviewed, "", ""},
	{Metric{records.GuardianReview + ".duration_ms", "ms", "How long reviews took.", Histogram},
		records.GuardianReview, reviewed, "duration_ms", ""},
	{Metric{records.PolicyDecision, "{request}", "Decisions of the managed network.", Counter},
		records.PolicyDecision, []string{"network.policy.decision", "network.policy.source",
			"network.policy.reason", "network.transport.protocol"}, "", ""},
}

// reviewed are the attributes of metrics of reviews.
var reviewed = []string{"action", "decision", "terminal_status", "risk_level", "user_authorization",
	"guardian_model", "shadow"}

// Metrics that are made of events.
var (
	unifiedExec = Metric{"sallyport.tool.unified_exec", "{session}", "Sessions that were asked for.", Counter}
	running     = Metric{"sallyport.tool.unified_exec.running", "{session}", "Sessions that run.", UpDown}
	denials     = Metric{"sallyport.denied", "{denial}", "Different accesses that runs were denied.", Counter}
)

// All lists all metrics.
func All() []*Metric {
	all := []*Metric{&unifiedExec, &running, &denials}
	for i := range table {
		all = append(all, &table[i].Metric)
	}
	return all
}

// measure takes a record into the metrics of its name. The attribute tool_name is tool there.
func (b *Builder) measure(r records.Record) {
	for i := range table {
		d := &table[i]
		if d.record != r.Name {
			continue
		}
		attrs, value, has := d.of(r.Attrs)
		switch {
		case !has:
		case d.value != "":
			b.backend.Observe(&d.Metric, value, attrs)
		default:
			b.backend.Add(&d.Metric, 1, attrs)
		}
	}
}

// of returns the attributes and the value of a metric, and whether the record has what it must have.
func (d *derived) of(attrs []slog.Attr) (own []slog.Attr, value int64, has bool) {
	has = d.only == ""
	own = make([]slog.Attr, 0, len(d.attrs))
	for _, name := range d.attrs {
		for _, a := range attrs {
			if a.Key != name {
				continue
			}
			if name == "tool_name" {
				a.Key = "tool"
			}
			own = append(own, a)
		}
	}
	for _, a := range attrs {
		has = has || a.Key == d.only
		if d.value != "" && a.Key == d.value {
			value = a.Value.Int64()
		}
	}
	return own, value, has
}
