// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// written returns the records of an event, without level and time.
func written(level slog.Level, b event.Body) string {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
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
		return event.ApprovalDecided{ID: "r-1", Decision: a, Source: s, WaitMS: 7, PolicyVersion: "12ab",
			Evidence: []sandbox.Source{sandbox.Notified}}
	}
	miss := decided(approval.ApprovedRule, approval.FromUser)
	miss.Asked = true
	denied := decided(approval.ApprovedHost, approval.FromUser)
	denied.Deny = true
	for _, test := range []struct {
		name string
		body event.Body
		want string
	}{
		{"no approval is needed", event.Judged{Decision: event.DecisionAllow, PolicyVersion: "12ab"}, "msg=sallyport.tool_decision" + call + "decision=approved source=config wait_ms=0 cache_hit=false policy_version=12ab"},
		{"it is reviewed in any case", event.Judged{Decision: event.DecisionAllow, Review: true}, ""},
		{"an approval is needed", event.Judged{Decision: event.DecisionPrompt}, ""},
		{"forbidden", event.Judged{Decision: event.DecisionForbid}, ""},
		{"the user", decided(approval.ApprovedForSession, approval.FromUser), "msg=sallyport.tool_decision" + call + "decision=approved_for_session source=user wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified"},
		{"the cache", decided(approval.ApprovedForSession, approval.FromCache), "msg=sallyport.tool_decision" + call + "decision=approved_for_session source=user wait_ms=7 cache_hit=true policy_version=12ab request_id=r-1 evidence=notified"},
		{"a program", decided(approval.Abort, approval.FromHook), "msg=sallyport.tool_decision" + call + "decision=abort source=config wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified"},
		{"the reviewer", decided(approval.TimedOut, approval.FromReviewer), "msg=sallyport.tool_decision" + call + "decision=timed_out source=automatedreviewer wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified"},
		{"a host", decided(approval.ApprovedHost, approval.FromUser), "msg=sallyport.tool_decision" + call + "decision=approved_with_network_policy_allow source=user wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified"},
		{"a host that is denied from now on", denied, "msg=sallyport.tool_decision" + call + "decision=approved_with_network_policy_deny source=user wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified"},
		{"not in the cache", miss, "msg=sallyport.tool_decision" + call + "decision=approved_with_amendment source=user wait_ms=7 cache_hit=false policy_version=12ab request_id=r-1 evidence=notified\n" +
			"msg=sallyport.approval.requested" + call + "approved=approved_with_amendment"},
		{"a review begins", event.ReviewStarted{Review: approval.Review{Request: question}}, ""},
		{"a review", event.ReviewCompleted{Review: approval.Review{
			ID: "v", Request: question, Model: "m", Status: approval.ReviewDenied, Started: at,
			Completed: at.Add(time.Second),
			Outcome:   "allow", Risk: "critical", Authorization: "low", Rationale: "x", Attempts: 2,
		}}, "msg=sallyport.guardian.review" + call +
			"review_id=v request_id=r-1 action=access decision=denied terminal_status=denied failure_reason=\"\" risk_level=critical user_authorization=low" +
			" outcome=allow guardian_model=m shadow=false requests=2 duration_ms=1000"},
		{"a review that failed", event.ReviewCompleted{Review: approval.Review{
			ID: "v", Request: question, Model: "m", Shadow: true, Status: approval.ReviewDenied, Started: at,
			Completed: at, Failure: "no answer", Attempts: 3,
		}}, "msg=sallyport.guardian.review" + call +
			"review_id=v request_id=r-1 action=access decision=denied terminal_status=denied failure_reason=\"no answer\" risk_level=\"\" user_authorization=\"\"" +
			" outcome=\"\" guardian_model=m shadow=true requests=3 duration_ms=0"},
		{"denied", event.SandboxOutcome{Outcome: event.OutcomeDenied, Initial: time.Second, Mode: "read-only", Level: "native", Evidence: []sandbox.Source{sandbox.Audited, sandbox.Notified}},
			"msg=sallyport.sandbox_outcome" + call +
				"outcome=denied initial_duration_ms=1000 sandbox_mode=read-only sandbox_level=native evidence=audited,notified"},
		{"escalated", event.SandboxOutcome{Outcome: event.OutcomeEscalated, Initial: time.Second, Escalated: 2 * time.Second, Mode: "custom", Level: "native"},
			"msg=sallyport.sandbox_outcome" + call +
				"outcome=escalated initial_duration_ms=1000 escalated_duration_ms=2000 sandbox_mode=custom sandbox_level=native evidence=\"\""},
		{"the end", event.Ended{ExitCode: 3, End: "exited", Duration: time.Second}, "msg=sallyport.tool.call" + call + "success=false end=exited exit_code=3 duration_ms=1000"},
		{"a host that was refused", event.Network{Record: network.Record{Host: "h.example", Port: 443, Protocol: network.TransparentTCP, Reason: network.NotAllowed, Source: network.Decider, Time: time.Unix(0, 5e6)}},
			"msg=sallyport.network_proxy.policy_decision" + call +
				"event.timestamp=1970-01-01T00:00:00.005Z network.policy.scope=domain network.policy.decision=deny network.policy.source=decider network.policy.reason=not_allowed network.policy.override=true " +
				"network.transport.protocol=transparent_tcp server.address=h.example server.port=443 http.request.method=none client.address=unknown execution.id=r sp.call_id=r sp.rule=\"\" sp.policy_version=0 sp.capture=redirect"},
		{"a connection that ended", event.Network{Record: network.Record{Host: "192.0.2.1", Port: 80, Protocol: network.HTTP, Method: "GET", Decision: network.Allow, Reason: network.Allowed, Source: network.BaselinePolicy, Rule: "192.0.2.1", PolicyVersion: 3,
			Time: time.Unix(0, 0), End: &network.End{Resolved: "192.0.2.1:80", Up: 1, Down: 2, MS: 4,
				Cause: "ended"}}},
			"msg=sallyport.network.connection.closed" + call +
				"event.timestamp=1970-01-01T00:00:00.000Z network.policy.scope=non_domain network.policy.decision=allow network.policy.source=baseline_policy network.policy.reason=allowed network.policy.override=false " +
				"network.transport.protocol=http server.address=192.0.2.1 server.port=80 http.request.method=GET client.address=unknown execution.id=r sp.call_id=r sp.rule=192.0.2.1 sp.policy_version=3 sp.capture=proxy server.resolved=192.0.2.1:80 sp.bytes_up=1 sp.bytes_down=2 duration_ms=4 sp.cause=ended"},
		{"an event of another kind", event.Retrying{}, ""},
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

// TestEnded: times of the line of a run have their unit in the name, as those of the records.
func TestEnded(t *testing.T) {
	var b bytes.Buffer
	e := event.Event{Run: "r1", CallerID: "task-7", Body: event.Ended{End: "exited", ExitCode: 3,
		Duration: 1500 * time.Millisecond}}
	Ended(slog.New(slog.NewJSONHandler(&b, nil)), &e, "go", "/w")
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]any{
		"level": "INFO", "msg": "command ended", "run": "r1", "caller_id": "task-7", "program": "go", "dir": "/w",
		"end": "exited", "exit_code": 3.0, "duration_ms": 1500.0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
