// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// openQuestions is what a client reads of question/list.
type openQuestions struct {
	Questions []struct {
		RunID, Digest string
		Request       struct {
			ID, Type string
			Argv     []string
		}
	}
	Approved []struct{ ID string }
}

// boarded returns a Prepare function for runs whose questions can be answered by all clients of their
// owner. Each question is told to asks.
func boarded(asks chan<- struct{}) runs.Prepare {
	return func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
		p, err := prepare(ctx, r)
		if err != nil {
			return nil, err
		}
		board := new(approval.OpenQuestions)
		p.Runner.Approver = approval.Func(func(ctx context.Context,
			r *approval.Request) (approval.Decision, error) {
			changed := board.Changed()
			go func() { <-changed; asks <- struct{}{} }()
			return board.Approve(ctx, r)
		})
		p.Questions = &runs.Questions{Open: board, Await: func(context.Context) {},
			Remembered: p.Runner.Approvals, Revoke: p.Runner.RevokeApproval}
		return p, nil
	}
}

// TestQuestions: a question of a run is listed and answered by the clients of its owner, on any
// connection. For others there is none.
func TestQuestions(t *testing.T) {
	o := runOptions()
	asks := make(chan struct{}, 10)
	o.Prepare = boarded(asks)
	server := run(t, o)
	for _, test := range []struct {
		decision string
		starts   bool
	}{{"approved", true}, {"approved_for_session", true}, {"denied", false}, {"abort", false}} {
		t.Run(test.decision, func(t *testing.T) {
			alice, again, mallory := drive(t, server.as("alice"), nil), drive(t, server.as("alice"), nil),
				drive(t, server.as("mallory"), nil)
			dir := t.TempDir()
			alice.post(map[string]any{"id": "s", "method": "run/start",
				"params": map[string]any{"args": []string{"--ask", "sh", "-c",
					"touch ran; sleep 1000"}, "cwd": dir}})
			<-asks
			var all, none openQuestions
			again.result(&all, "question/list", nil)
			if len(all.Questions) != 1 || all.Questions[0].RunID == "" ||
				all.Questions[0].Request.Type != "approval_request" ||
				len(all.Questions[0].Request.Argv) != 3 {
				t.Fatalf("%+v", all)
			}
			q := all.Questions[0]
			answer := map[string]any{"id": q.Request.ID, "digest": q.Digest, "decision": test.decision}
			mallory.result(&none, "question/list", nil)
			if len(none.Questions) != 0 {
				t.Errorf("another owner sees %+v", none)
			}
			for method, params := range map[string]map[string]any{"question/answer": answer,
				"question/forget": {"id": q.Request.ID}} {
				if why := mallory.refused(method, params); why != "unknownQuestion" {
					t.Errorf("another owner: %s: %s", method, why)
				}
			}
			wrong := map[string]any{"id": q.Request.ID, "digest": "x", "decision": test.decision}
			if why := again.refused("question/answer", wrong); why != "otherQuestion" {
				t.Errorf("another digest: %s", why)
			}
			again.result(new(struct{}), "question/answer", answer)
			m := alice.until(func(m *message) bool { return string(m.ID) == `"s"` })
			var r startedRun
			if err := json.Unmarshal(m.Result, &r); err != nil || r.Started != test.starts || r.Started &&
				r.RunID != q.RunID {
				t.Errorf("%+v, %v", m, err)
			}
			if why := again.refused("question/answer", answer); why != "unknownQuestion" {
				t.Errorf("answered twice: %s", why)
			}
			all = openQuestions{}
			again.result(&all, "question/list", nil)
			if remembers := test.decision == "approved_for_session"; len(all.Questions) != 0 ||
				(len(all.Approved) == 1) != remembers {
				t.Errorf("%+v", all)
			} else if remembers {
				mallory.refused("question/forget", map[string]any{"id": q.Request.ID})
				again.result(new(struct{}), "question/forget", map[string]any{"id": q.Request.ID})
				if why := again.refused("question/forget",
					map[string]any{"id": q.Request.ID}); why != "unknownQuestion" {
					t.Errorf("forgotten twice: %s", why)
				}
			}
			if r.Started {
				again.result(new(struct{}), "run/remove", map[string]any{"runId": r.RunID})
			}
		})
	}
}

// TestNoQuestions: a server without runs, and a client that does not ask for extension methods, have
// no such methods, nor those of runs; the client has no other extensions either.
func TestNoQuestions(t *testing.T) {
	const unknown = -32601
	c := drive(t, run(t, runOptions()), nil)
	var none openQuestions
	if c.result(&none, "question/list", nil); none.Questions == nil || none.Approved == nil ||
		len(none.Questions) != 0 {
		t.Errorf("%+v", none)
	}
	for _, test := range []struct {
		o       execserver.Options
		extends bool
	}{{runOptions(), false}, {options(), true}} {
		c := &caller{t: t, speaker: connect(t, run(t, test.o))}
		c.call("initialize", map[string]any{"clientName": "test", "extensionMethods": test.extends})
		c.post(map[string]any{"method": "initialized"})
		absent := []string{"question/list", "run/list"}
		if !test.extends {
			absent = append(absent, "process/resize", "process/closeStdin", "process/list", "fs/rename",
				"fs/chmod", "fs/symlink", "fs/append")
		}
		for _, method := range absent {
			if m := c.call(method, map[string]any{"processId": "p"}); m.Error == nil ||
				m.Error.Code != unknown {
				t.Errorf("%s: %+v, %s", method, m.Error, m.Result)
			}
		}
	}
}

// TestObservedQuestions: who observes a session does not see questions.
func TestObservedQuestions(t *testing.T) {
	server := run(t, runOptions())
	_, id := meet(t, server, nil)
	w, m := observer(t, server, id)
	if m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	for _, method := range []string{"question/list", "question/answer", "question/forget"} {
		if m := w.call(method, map[string]any{"id": "1", "digest": "1",
			"decision": "approved"}); m.Error == nil || !strings.Contains(m.Error.Message, "observes") {
			t.Errorf("%s: %+v, %s", method, m.Error, m.Result)
		}
	}
}
