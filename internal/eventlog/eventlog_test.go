// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// written returns the records of an event, without level and time.
func written(level slog.Level, b event.Body) string {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	Write(log, "shell", &event.Event{Run: "r", Attempt: 1, Body: b})
	return strings.TrimSpace(out.String())
}

// TestWrite holds the names and attributes, which other programs read: a change here is a change
// of the contract.
func TestWrite(t *testing.T) {
	const call = " tool_name=shell call_id=r attempt=1 "
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	question := &approval.Request{ID: "r-1", Kind: approval.KindAccess}
	decided := func(a approval.Answer, s approval.Source) event.ApprovalDecided {
		return event.ApprovalDecided{Decision: a, Source: s, WaitMS: 7}
	}
	miss := decided(approval.ApprovedRule, approval.FromUser)
	miss.Asked = true
	for _, test := range []struct {
		name string
		body event.Body
		want string
	}{
		{"no approval is needed", event.Judged{Decision: event.DecisionAllow}, "msg=sallyport.tool_decision" + call + "decision=approved source=config wait_ms=0 cache_hit=false"},
		{"it is reviewed in any case", event.Judged{Decision: event.DecisionAllow, Review: true}, ""},
		{"an approval is needed", event.Judged{Decision: event.DecisionPrompt}, ""},
		{"forbidden", event.Judged{Decision: event.DecisionForbid}, ""},
		{"the user", decided(approval.ApprovedForSession, approval.FromUser), "msg=sallyport.tool_decision" + call + "decision=approved_for_session source=user wait_ms=7 cache_hit=false"},
		{"the cache", decided(approval.ApprovedForSession, approval.FromCache), "msg=sallyport.tool_decision" + call + "decision=approved_for_session source=user wait_ms=7 cache_hit=true"},
		{"a program", decided(approval.Abort, approval.FromHook), "msg=sallyport.tool_decision" + call + "decision=abort source=config wait_ms=7 cache_hit=false"},
		{"the reviewer", decided(approval.TimedOut, approval.FromReviewer), "msg=sallyport.tool_decision" + call + "decision=timed_out source=automatedreviewer wait_ms=7 cache_hit=false"},
		{"a host", decided(approval.ApprovedHost, approval.FromUser), "msg=sallyport.tool_decision" + call + "decision=approved_with_network_policy_allow source=user wait_ms=7 cache_hit=false"},
		{"not in the cache", miss, "msg=sallyport.tool_decision" + call + "decision=approved_with_amendment source=user wait_ms=7 cache_hit=false\n" +
			"msg=sallyport.approval.requested" + call + "approved=approved_with_amendment"},
		{"a review begins", event.ReviewStarted{Review: approval.Review{Request: question}}, ""},
		{"a review", event.ReviewCompleted{Review: approval.Review{
			ID: "v", Request: question, Model: "m", Status: approval.ReviewDenied, Started: at, Completed: at.Add(time.Second),
			Outcome: "allow", Risk: "critical", Authorization: "low", Rationale: "x", Attempts: 2,
		}}, "msg=sallyport.guardian.review" + call + "review_id=v action=access decision=denied terminal_status=denied failure_reason=\"\" risk_level=critical user_authorization=low" +
			" outcome=allow guardian_model=m shadow=false requests=2 duration_ms=1000"},
		{"a review that failed", event.ReviewCompleted{Review: approval.Review{
			ID: "v", Request: question, Model: "m", Shadow: true, Status: approval.ReviewDenied, Started: at, Completed: at, Failure: "no answer", Attempts: 3,
		}}, "msg=sallyport.guardian.review" + call + "review_id=v action=access decision=denied terminal_status=denied failure_reason=\"no answer\" risk_level=\"\" user_authorization=\"\"" +
			" outcome=\"\" guardian_model=m shadow=true requests=3 duration_ms=0"},
		{"denied", event.SandboxOutcome{Outcome: event.OutcomeDenied, Initial: time.Second, Mode: "read-only", Level: "native", Evidence: []sandbox.Source{sandbox.Audited, sandbox.Notified}},
			"msg=sallyport.sandbox_outcome" + call + "outcome=denied initial_duration_ms=1000 sandbox_mode=read-only sandbox_level=native evidence=audited,notified"},
		{"escalated", event.SandboxOutcome{Outcome: event.OutcomeEscalated, Initial: time.Second, Escalated: 2 * time.Second, Mode: "custom", Level: "native"},
			"msg=sallyport.sandbox_outcome" + call + "outcome=escalated initial_duration_ms=1000 escalated_duration_ms=2000 sandbox_mode=custom sandbox_level=native evidence=\"\""},
		{"an event of another kind", event.Ended{}, ""},
	} {
		if got := written(slog.LevelDebug, test.body); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
		if got := written(slog.LevelInfo, test.body); got != "" {
			t.Errorf("%s, at the level Info: %s", test.name, got)
		}
	}
	Write(nil, "shell", &event.Event{Body: event.Judged{Decision: event.DecisionAllow}})
}
