// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package records says in which forms what happened in a run is recorded: the JSON form of results, as Go
// types that say what it has, and the records of some events for logs and telemetry, under one set of names
// and attributes. The table of both is in docs/reference.md. A [Queue] passes all events
// to a sink.
package records

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The names of records.
const (
	ToolDecision      = "sallyport.tool_decision"
	SandboxOutcome    = "sallyport.sandbox_outcome"
	ApprovalRequested = "sallyport.approval.requested"
	GuardianReview    = "sallyport.guardian.review"
	ToolCall          = "sallyport.tool.call"
	PolicyDecision    = "sallyport.network_proxy.policy_decision"
	ConnectionClosed  = "sallyport.network.connection.closed"
)

// Write writes the records of an event at the level Debug; most events have none. Tool is the kind
// of call, "shell", "unified_exec" or "apply_patch". A nil logger writes nothing, and one whose handler panics misses
// the event.
func Write(log *slog.Logger, tool string, e *event.Event) {
	if log != nil {
		_ = strict.Call("Logger", func() error { write(log, tool, e); return nil })
	}
}

// Ended writes the one line of a run at the level Info, as Write.
func Ended(log *slog.Logger, e *event.Event, program, dir string) {
	if log == nil {
		return
	}
	b, _ := e.Body.(event.Ended)
	_ = strict.Call("Logger", func() error {
		log.LogAttrs(context.Background(), slog.LevelInfo, "command ended",
			slog.String("run", e.Run), callerID(e.CallerID), slog.String("program", program),
			slog.String("dir", dir),
			slog.String("end", b.End), slog.Int("exit_code", b.ExitCode),
			slog.Int64("duration_ms", b.Duration.Milliseconds()))
		return nil
	})
}

func write(log *slog.Logger, tool string, e *event.Event) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for _, r := range Of(tool, e) {
		log.LogAttrs(context.Background(), slog.LevelDebug, r.Name, r.Attrs...)
	}
}

// A Record is one row of the table of telemetry.
type Record struct {
	Name  string // one of the constants
	Attrs []slog.Attr
}

// Of returns the records of an event; most events have none. Tool is as in [Write].
func Of(tool string, e *event.Event) (out []Record) {
	record := func(name string, attrs ...slog.Attr) {
		call := []slog.Attr{slog.String("tool_name", tool), slog.String("call_id", e.Run),
			slog.Int("attempt", e.Attempt)}
		out = append(out, Record{name, append(call, attrs...)})
	}
	switch b := e.Body.(type) {
	case event.Judged:
		if b.Decision == event.DecisionAllow && !b.Review {
			record(ToolDecision, append(decision(approval.Approved, approval.FromConfig, 0, false),
				slog.String("policy_version", b.PolicyVersion))...)
		}
	case event.ApprovalDecided:
		record(ToolDecision, append(decision(b.Decision, b.Source, b.WaitMS, b.Deny),
			slog.String("policy_version", b.PolicyVersion),
			slog.String("request_id", b.ID), slog.String("evidence", words(b.Evidence)))...)
		if b.Asked {
			record(ApprovalRequested, slog.String("approved", answer(b.Decision)))
		}
	case event.ReviewCompleted:
		record(GuardianReview, review(&b.Review)...)
	case event.SandboxOutcome:
		record(SandboxOutcome, outcome(&b)...)
	case event.Network:
		name := PolicyDecision
		if b.End != nil {
			name = ConnectionClosed
		}
		record(name, host(e, &b.Record)...)
	case event.Ended:
		record(ToolCall, slog.Bool("success", b.Error == "" && b.ExitCode == 0), slog.String("end", b.End),
			slog.Int("exit_code", b.ExitCode), slog.Int64("duration_ms", b.Duration.Milliseconds()))
	}
	return out
}

// callerID is the attribute for the id that the caller gave to a command; a handler leaves out that of none.
func callerID(id string) slog.Attr {
	if id == "" {
		return slog.Attr{}
	}
	return slog.String("caller_id", id)
}

// decision are the attributes of ToolDecision.
func decision(a approval.Answer, source approval.Source, wait int64, deny bool) []slog.Attr {
	said := answer(a)
	if deny {
		said = "approved_with_network_policy_deny"
	}
	return []slog.Attr{
		slog.String("decision", said), slog.String("source", origin(source)),
		slog.Int64("wait_ms", wait), slog.Bool("cache_hit", source == approval.FromCache),
	}
}

// outcome are the attributes of SandboxOutcome.
func outcome(o *event.SandboxOutcome) []slog.Attr {
	attrs := []slog.Attr{slog.String("outcome", o.Outcome),
		slog.Int64("initial_duration_ms", o.Initial.Milliseconds())}
	if o.Outcome == event.OutcomeEscalated {
		attrs = append(attrs, slog.Int64("escalated_duration_ms", o.Escalated.Milliseconds()))
	}
	return append(attrs, slog.String("sandbox_mode", o.Mode), slog.String("sandbox_level", o.Level),
		slog.String("evidence", words(o.Evidence)))
}

// host are the attributes of PolicyDecision and ConnectionClosed: neither path nor query of a request.
func host(e *event.Event, r *network.Record) []slog.Attr {
	method := "none"
	if r.Method != "" {
		method = r.Method
	}
	attrs := []slog.Attr{
		slog.String("event.timestamp", r.Time.UTC().Format("2006-01-02T15:04:05.000Z")),
		slog.String("network.policy.scope", r.Scope()),
		slog.String("network.policy.decision", r.Decision.String()),
		slog.String("network.policy.source", string(r.Source)),
		slog.String("network.policy.reason", string(r.Reason)),
		slog.Bool("network.policy.override", r.Source == network.Decider),
		slog.String("network.transport.protocol", r.Protocol.String()), slog.String("server.address", r.Host),
		slog.Int("server.port", int(r.Port)),
		slog.String("http.request.method", method), slog.String("client.address", "unknown"),
		slog.String("execution.id", e.Run),
		slog.String("sp.call_id", e.Run), slog.String("sp.rule", r.Rule),
		slog.Uint64("sp.policy_version", r.PolicyVersion), slog.String("sp.capture", capture(r.Protocol)),
	}
	if r.End == nil {
		return attrs
	}
	return append(attrs, slog.String("server.resolved", r.End.Resolved), slog.Int64("sp.bytes_up", r.End.Up),
		slog.Int64("sp.bytes_down", r.End.Down),
		slog.Int64("duration_ms", r.End.MS), slog.String("sp.cause", r.End.Cause))
}

// capture is how a request came to the proxy.
func capture(p network.Protocol) string {
	switch p {
	case network.SOCKS5TCP, network.SOCKS5UDP:
		return "socks"
	case network.TransparentTCP:
		return "redirect"
	case network.DNS:
		return "dns"
	}
	return "proxy"
}

// words are the sources of evidence as one text.
func words(evidence []sandbox.Source) string {
	var out []string
	for _, s := range evidence {
		out = append(out, s.String())
	}
	return strings.Join(out, ",")
}

// review are the attributes of GuardianReview.
func review(r *approval.Review) []slog.Attr {
	return []slog.Attr{
		slog.String("review_id", r.ID), slog.String("request_id", r.Request.ID),
		slog.String("action", string(r.Request.Kind)), slog.String("decision", answer(r.Decision.Answer)),
		slog.String("terminal_status", string(r.Status)), slog.String("failure_reason", r.Failure),
		slog.String("risk_level", r.Risk), slog.String("user_authorization", r.Authorization),
		slog.String("outcome", r.Outcome),
		slog.String("guardian_model", r.Model), slog.Bool("shadow", r.Shadow),
		slog.Int("requests", r.Attempts),
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
	case approval.FromUser, approval.FromConsole, approval.FromCache:
		return "user"
	}
	return "config"
}
