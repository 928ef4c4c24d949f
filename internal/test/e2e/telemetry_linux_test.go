// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// recorded returns the records of a log: names with the values of some attributes. All of them
// must be of one call of one kind.
func recorded(t *testing.T, log *bytes.Buffer, tool string) []string {
	t.Helper()
	var all []string
	for _, line := range bytes.Split(bytes.TrimSpace(log.Bytes()), []byte("\n")) {
		var r map[string]any
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name, _ := r["msg"].(string)
		if name == "command ended" {
			continue
		}
		if version, _ := r["policy_version"].(string); name == "sallyport.tool_decision" &&
			len(version) != 12 {
			t.Errorf("no version of the policy: %s", line)
		}
		if id, _ := r["call_id"].(string); r["level"] != "DEBUG" || r["tool_name"] != tool || len(id) != 32 {
			t.Errorf("the record is %s", line)
		}
		for _, key := range []string{"success", "decision", "source", "cache_hit", "approved",
			"terminal_status", "risk_level", "outcome", "attempt", "sandbox_mode",
			"sandbox_level", "evidence"} {
			if value, ok := r[key]; ok && value != "" {
				text, _ := json.Marshal(value)
				name += " " + strings.ReplaceAll(string(text), `"`, "")
			}
		}
		for key, value := range r {
			if n, ok := value.(float64); strings.HasSuffix(key, "_ms") && (!ok || n < 0 || n > 60_000) {
				t.Errorf("%s is %v", key, value)
			}
		}
		all = append(all, strings.TrimPrefix(name, "sallyport."))
	}
	return all
}

// TestTelemetry: the records of runs in a real sandbox, with a reviewing model on this machine.
func TestTelemetry(t *testing.T) {
	testenv.NeedUserNS(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"{\"outcome\":\"allow\"}"}}]}`))
	}))
	defer model.Close()
	session := approval.Fixed(approval.Decision{Answer: approval.ApprovedForSession,
		Source: approval.FromUser})
	for _, test := range []struct {
		name     string
		script   string
		timeout  time.Duration
		approver approval.Approver
		strict   bool
		again    bool // it is run twice, and the records are those of the second run
		want     []string
	}{
		{"success", "true", 0, nil, false, false, []string{"tool_decision approved config false 0", "tool.call true 1"}},
		{"a failure of its own", "exit 3", 0, nil, false, false, []string{"tool_decision approved config false 0", "tool.call false 1"}},
		{"denied", "echo x >>../out/file || exit 1", 0, nil, false, false, []string{
			"tool_decision approved config false 0",
			"sandbox_outcome denied 1 workspace-write native notified", "tool.call false 1",
		}},
		{"denied, without a failure", "echo x >>../out/file; true", 0, nil, false, false, []string{"tool_decision approved config false 0", "tool.call true 1"}},
		{"a time limit", "sleep 60", 50 * time.Millisecond, nil, false, false, []string{
			"tool_decision approved config false 0", "sandbox_outcome timed_out 1 workspace-write native",
			"tool.call false 1",
		}},
		{"a signal", "kill -9 $$", 0, nil, false, false, []string{
			"tool_decision approved config false 0", "sandbox_outcome signal 1 workspace-write native",
			"tool.call false 1",
		}},
		{"the user", "echo x >>../out/file || exit 1", 0, session, false, false, []string{
			"tool_decision approved config false 0",
			"tool_decision approved_for_session user false 1 notified",
			"approval.requested approved_for_session 1",
			"sandbox_outcome escalated 2 workspace-write native notified", "tool.call true 2",
		}},
		{"remembered", "echo x >>../out/file || exit 1", 0, session, false, true, []string{"tool_decision approved config false 0", "tool.call true 1"}},
		{"strict review", "echo x >>../out/file || exit 1", 0, nil, true, false, []string{
			"guardian.review approved approved low allow 0",
			"tool_decision approved automatedreviewer false 0",
			"guardian.review approved approved low allow 1",
			"tool_decision approved automatedreviewer false 1 notified",
			"sandbox_outcome escalated 2 workspace-write native notified", "tool.call true 2",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			var log bytes.Buffer
			r := &sallyport.Runner{
				Policy: sandbox.WorkspaceWrite("."), Approver: test.approver,
				Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			if test.strict {
				r.Reviewer = &guardian.Guardian{BaseURL: model.URL, Model: "m"}
			}
			run := func() {
				log.Reset()
				res, err := r.Run(t.Context(), &sallyport.Cmd{Script: test.script, Dir: s.ws,
					Timeout: test.timeout})
				if err != nil || res.Sandbox.Level != "native" {
					t.Fatalf("%v, %+v", err, res)
				}
			}
			if run(); test.again {
				run()
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if got := recorded(t, &log, "shell"); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestTelemetrySession: a session has records, too.
func TestTelemetrySession(t *testing.T) {
	testenv.NeedUserNS(t)
	var log bytes.Buffer
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite("."),
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	s, err := r.Start(t.Context(), &sallyport.Cmd{Script: "kill -9 $$", Dir: newSite(t).ws})
	if err == nil {
		_, err = s.Wait(t.Context())
	}
	if closed := r.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	if got, want := recorded(t, &log, "unified_exec"), []string{"tool_decision approved config false 0",
		"sandbox_outcome signal 1 workspace-write native", "tool.call false 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
