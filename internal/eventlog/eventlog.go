// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlog writes what some events say into the log of a program, under the names and
// with the attributes of telemetry. The table of both is in docs/reference.md.
package eventlog

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
)

// The names of records.
const (
	ToolDecision      = "sallyport.tool_decision"
	SandboxOutcome    = "sallyport.sandbox_outcome"
	ApprovalRequested = "sallyport.approval.requested"
	GuardianReview    = "sallyport.guardian.review"
)

// Write writes the records of an event at the level Debug; most events have none. Tool is the kind
// of call, "shell" or "unified_exec". A nil logger writes nothing.
func Write(log *slog.Logger, tool string, e *event.Event) {
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	record := func(name string, attrs ...slog.Attr) {
		call := []slog.Attr{slog.String("tool_name", tool), slog.String("call_id", e.Run), slog.Int("attempt", e.Attempt)}
		log.LogAttrs(context.Background(), slog.LevelDebug, name, append(call, attrs...)...)
	}
	switch b := e.Body.(type) {
	case event.Judged:
		if b.Decision == event.DecisionAllow && !b.Review {
			record(ToolDecision, decision(approval.Approved, approval.FromConfig, 0)...)
		}
	case event.ApprovalDecided:
		record(ToolDecision, decision(b.Decision, b.Source, b.WaitMS)...)
		if b.Asked {
			record(ApprovalRequested, slog.String("approved", answer(b.Decision)))
		}
	case event.ReviewCompleted:
		record(GuardianReview, review(&b.Review)...)
	case event.SandboxOutcome:
		record(SandboxOutcome, outcome(&b)...)
	}
}

// decision are the attributes of ToolDecision.
func decision(a approval.Answer, source approval.Source, wait int64) []slog.Attr {
	return []slog.Attr{
		slog.String("decision", answer(a)), slog.String("source", origin(source)),
		slog.Int64("wait_ms", wait), slog.Bool("cache_hit", source == approval.FromCache),
	}
}

// outcome are the attributes of SandboxOutcome.
func outcome(o *event.SandboxOutcome) []slog.Attr {
	attrs := []slog.Attr{slog.String("outcome", o.Outcome), slog.Int64("initial_duration_ms", o.Initial.Milliseconds())}
	if o.Outcome == event.OutcomeEscalated {
		attrs = append(attrs, slog.Int64("escalated_duration_ms", o.Escalated.Milliseconds()))
	}
	var evidence []string
	for _, s := range o.Evidence {
		evidence = append(evidence, s.String())
	}
	return append(attrs, slog.String("sandbox_mode", o.Mode), slog.String("sandbox_level", o.Level), slog.String("evidence", strings.Join(evidence, ",")))
}

// review are the attributes of GuardianReview.
func review(r *approval.Review) []slog.Attr {
	return []slog.Attr{
		slog.String("review_id", r.ID), slog.String("action", string(r.Request.Kind)), slog.String("decision", answer(r.Decision.Answer)),
		slog.String("terminal_status", string(r.Status)), slog.String("failure_reason", r.Failure),
		slog.String("risk_level", r.Risk), slog.String("user_authorization", r.Authorization), slog.String("outcome", r.Outcome),
		slog.String("guardian_model", r.Model), slog.Bool("shadow", r.Shadow), slog.Int("requests", r.Attempts),
		slog.Int64("duration_ms", r.Completed.Sub(r.Started).Round(time.Millisecond).Milliseconds()),
	}
}

// answer is the word of telemetry for an answer. Those that remember something have their own.
func answer(a approval.Answer) string {
	switch a {
	case approval.ApprovedRule:
		return "approved_with_amendment"
	case approval.ApprovedHost:
		return "approved_with_network_policy_allow"
	}
	return a.String()
}

// origin is the word of telemetry for who decided: a program is part of the configuration, and
// what is remembered is the user's.
func origin(s approval.Source) string {
	switch s {
	case approval.FromReviewer:
		return "automatedreviewer"
	case approval.FromUser, approval.FromCache:
		return "user"
	}
	return "config"
}
