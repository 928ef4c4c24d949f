// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
)

// escalated asks to leave the sandbox.
func escalated(cmd string) members {
	return members{"cmd": cmd, "sandbox_permissions": "require_escalated", "justification": "it must"}
}

// answers is a client that can be asked.
func answers(answer func(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult,
	error)) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context,
		r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return answer(ctx, r.Params)
	}}
}

func accept(word any) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": word}}
}

// elicitation returns a client of a revision in which servers ask by requests.
func elicitation(t *testing.T, o *sdk.ClientOptions, flags ...string) *client {
	t.Helper()
	return openAt(t, "2025-11-25", o, flags...)
}

// TestElicitation: only an offered word approves, and everything is shown.
func TestElicitation(t *testing.T) {
	for name, test := range map[string]struct {
		result *sdk.ElicitResult
		err    error
		code   int
	}{
		"approved":        {accept("approved"), nil, 0},
		"for the session": {accept("approved_for_session"), nil, 0},
		"denied":          {accept("denied"), nil, 123},
		"abort":           {accept("abort"), nil, 123},
		"not offered":     {accept("network_policy_amendment"), nil, 123},
		"no word":         {accept("yes"), nil, 123},
		"not a word":      {accept(true), nil, 123},
		"accept without":  {&sdk.ElicitResult{Action: "accept"}, nil, 123},
		"decline":         {&sdk.ElicitResult{Action: "decline"}, nil, 123},
		"cancel":          {&sdk.ElicitResult{Action: "cancel"}, nil, 123},
		"decline with content": {&sdk.ElicitResult{Action: "decline",
			Content: map[string]any{"decision": "approved"}}, nil, 123},
		"error": {nil, errors.New("broken"), 123},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *sdk.ElicitParams
			c := elicitation(t, answers(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult,
				error) {
				asked = p
				return test.result, test.err
			}))
			f := c.call("exec", escalated("echo ran\necho \x1b[2Jtwice >> once")).exits(t, test.code)
			if test.code == 0 && f.Output != "ran\n" || test.code != 0 && (f.End != "refused" ||
				strings.Contains(f.Output, "ran\n")) {
				t.Errorf("%+v", f)
			}
			contains(t, asked.Message, `echo ran\necho \x1b[2Jtwice >> once`, c.dir, "it must", "outside")
			if asked.Mode != "form" || strings.ContainsRune(asked.Message, 0x1b) {
				t.Errorf("%+v", asked)
			}
			if _, err := os.Stat(filepath.Join(c.dir, "once")); (err == nil) != (test.code == 0) {
				t.Errorf("the command ran: %v", err == nil)
			}
			if len(f.Approvals) != 1 {
				t.Errorf("%+v", f.Approvals)
			}
		})
	}
}

// TestElicitationElsewhere: the first answer counts, and the client is not asked any more.
func TestElicitationElsewhere(t *testing.T) {
	withdrawn := make(chan struct{})
	c := elicitation(t, answers(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		approveElsewhere(t, approval.Approved)
		<-ctx.Done()
		close(withdrawn)
		return nil, ctx.Err()
	}))
	c.call("exec", escalated("echo ran")).exits(t, 0)
	<-withdrawn
}

// approveElsewhere answers the open question as sallyport approve does.
func approveElsewhere(t *testing.T, answer approval.Answer) {
	list, err := listen.ListQuestions("")
	if err != nil || len(list.Pending) != 1 {
		t.Errorf("%v, %v", list, err)
		return
	}
	if err := list.Answer(list.Pending[0].Request.ID, answer, "", ""); err != nil {
		t.Error(err)
	}
}

// TestElicitationCanceled: the end of the call withdraws the question, and nothing runs.
func TestElicitationCanceled(t *testing.T) {
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	c := elicitation(t, answers(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		close(asked)
		<-ctx.Done()
		close(withdrawn)
		return accept("approved"), nil
	}))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "exec",
		Arguments: escalated("touch ran")}); err == nil {
		t.Error("the call was answered")
	}
	<-withdrawn
	c.server.Close()
	if _, err := os.Stat(filepath.Join(c.dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}

// TestRecallable: a client that cannot be asked repeats the call after an answer from elsewhere.
func TestRecallable(t *testing.T) {
	for name, test := range map[string]struct {
		answer approval.Answer
		code   int
	}{"approved": {approval.Approved, 0}, "denied": {approval.Denied, 123}} {
		t.Run(name, func(t *testing.T) {
			c := open(t, nil)
			args := escalated("echo ran; echo x >> count")
			f := c.call("exec", args).ok(t)
			if f.State != "approval_needed" || f.Approval.ID == "" || f.Run != "" || f.SessionID != "" ||
				f.ExitCode != nil ||
				f.Approval.Kind != "command" || len(f.Approval.Offers) == 0 ||
				f.Approval.Requires[0] != "outside" {
				t.Fatalf("%+v", f)
			}
			if expires, err := time.Parse(time.RFC3339, f.Approval.Expires); err != nil ||
				time.Until(expires) < time.Minute {
				t.Errorf("%s, %v", f.Approval.Expires, err)
			}
			contains(t, f.text, "sallyport approve "+f.Approval.ID, "approval_id")
			id := f.Approval.ID
			// Other arguments are an error, and the question stays open.
			other := escalated("echo other")
			other["approval_id"] = id
			if bad := c.call("exec", other); !bad.failed || !strings.Contains(bad.text,
				"not those of approval") {
				t.Errorf("%+v", bad)
			}
			args["approval_id"], args["yield_time_ms"] = id, 250
			if f = c.call("exec", args).ok(t); f.State != "approval_needed" || f.Approval.ID != id {
				t.Errorf("%+v", f)
			}
			approveElsewhere(t, test.answer)
			args["yield_time_ms"] = 30_000
			var both [2]*facts
			var calls sync.WaitGroup
			for i := range both {
				calls.Go(func() { both[i] = c.call("exec", args) })
			}
			calls.Wait()
			again := c.call("exec", args).exits(t, test.code)
			for _, f := range both {
				f.exits(t, test.code)
				equal(t, "the answer", []string{f.Run, f.Output}, []string{again.Run, again.Output})
			}
			count, _ := os.ReadFile(filepath.Join(c.dir, "count"))
			equal(t, "runs", string(count), map[bool]string{true: "x\n"}[test.code == 0])
		})
	}
}

// TestByCall: --approvals call has clients repeat calls that could be asked.
func TestByCall(t *testing.T) {
	c := open(t, answers(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		t.Error("the client is asked")
		return accept("approved"), nil
	}), "call")
	if f := c.call("exec", escalated("true")).ok(t); f.State != "approval_needed" {
		t.Errorf("%+v", f)
	}
}

// TestAskedAfterDenial: what a command was denied may be asked about after it ran, and the call is
// repeated then.
func TestAskedAfterDenial(t *testing.T) {
	c := open(t, nil)
	file := filepath.Join(outside(t), "file")
	args := members{"cmd": "echo x >> attempts; echo x > " + file}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := c.call("exec", args).ok(t)
	if f.State != "approval_needed" || f.Approval.Kind != "access" {
		t.Fatalf("%+v", f)
	}
	equal(t, "what is asked for", f.Approval.Requires, []string{"write:" + file})
	args["approval_id"], args["yield_time_ms"] = f.Approval.ID, 250
	if f = c.call("exec", args).ok(t); f.State != "approval_needed" {
		t.Fatalf("%+v", f)
	}
	approveElsewhere(t, approval.Approved)
	args["yield_time_ms"] = 30_000
	c.call("exec", args).exits(t, 0)
	if text, _ := os.ReadFile(file); string(text) != "x\n" {
		t.Errorf("%q", text)
	}
}

// TestInputRequired: clients of the revision 2026-07-28 get the question in the answer, and decide by
// calling again.
func TestInputRequired(t *testing.T) {
	for name, test := range map[string]struct {
		result *sdk.ElicitResult
		code   int
	}{"approved": {accept("approved"), 0}, "decline": {&sdk.ElicitResult{Action: "decline"}, 123}} {
		t.Run(name, func(t *testing.T) {
			c := open(t, answers(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
				contains(t, p.Message, "echo ran", "it must")
				return test.result, nil
			}))
			if v := c.InitializeResult().ProtocolVersion; v < "2026-07-28" {
				t.Fatalf("the client speaks %s", v)
			}
			c.call("exec", escalated("echo ran")).exits(t, test.code)
		})
	}
}

// TestTwoAnswers: of two answers to one question the first counts, and the other one is told so.
func TestTwoAnswers(t *testing.T) {
	c := open(t, answers(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		approveElsewhere(t, approval.Denied)
		return accept("approved"), nil
	}))
	f := c.call("exec", escalated("touch ran")).exits(t, 123)
	contains(t, f.text, "answered elsewhere")
	if _, err := os.Stat(filepath.Join(c.dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}
