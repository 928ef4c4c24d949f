// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// ran reports whether the program of a test has made its file in dir.
func ran(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "ran"))
	return err == nil
}

// closing returns options whose runs, when all of one is over, are counted in the channel.
func closing() (execserver.Options, <-chan struct{}) {
	o, over := options(), make(chan struct{}, 100)
	o.Prepare = func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
		p, err := prepare(ctx, r)
		if err == nil {
			p.Close = func() { over <- struct{}{} }
		}
		return p, err
	}
	return o, over
}

// TestRunApprovals: only one of the answers that were offered lets a run begin. All else denies,
// and the result says why.
func TestRunApprovals(t *testing.T) {
	server := run(t, runOptions())
	decide := func(word string) any {
		return map[string]any{"result": map[string]any{"decision": word, "message": "because"}}
	}
	for _, test := range []struct {
		name    string
		answer  any
		starts  bool
		message string // part of it
	}{
		{"approved", decide("approved"), true, "because"},
		{"approved for the session", decide("approved_for_session"), true, "because"},
		{"denied", decide("denied"), false, "because"},
		{"abort", decide("abort"), false, "because"},
		{"none", decide("none"), false, "there is no one to ask"},
		{"not offered: a rule", decide("approved_execpolicy_amendment"), false, "was not offered"},
		{"not offered: a host", decide("network_policy_amendment"), false, "was not offered"},
		{"timed out", decide("timed_out"), false, `the client gave no answer: "timed_out" is no decision`},
		{"no word", decide("yes"), false, `the client gave no answer: "yes" is no decision`},
		{"empty", map[string]any{"result": map[string]any{}}, false, "missing field `decision`"},
		{"null", map[string]any{"result": nil}, false, "the client gave no answer"},
		{"number", map[string]any{"result": 1}, false, "the client gave no answer"},
		{"error", map[string]any{"error": map[string]any{"code": 1, "message": "approved"}}, false, `the client gave no answer: it has the error "approved"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, server, func(*runQuestion) any { return test.answer })
			dir := t.TempDir()
			r := d.start(map[string]any{"cwd": dir}, "--ask", "touch", "ran")
			if len(d.asked) != 1 {
				t.Fatalf("%d questions", len(d.asked))
			}
			q := d.asked[0].Params
			if q.RunID != r.RunID || q.Request.Type != "approval_request" || q.Request.Kind != "command" ||
				strings.Join(q.Request.Argv, " ") != "touch ran" || q.Request.Reason == "" ||
				len(q.Request.Available) == 0 {
				t.Errorf("%+v", q)
			}
			res := r.Result
			if r.Started {
				res = d.over(r.RunID)
			}
			if r.Started != test.starts || ran(dir) != test.starts {
				t.Errorf("%+v, it ran: %v", r, ran(dir))
			}
			if said, _ := json.Marshal(res); !strings.Contains(strings.ReplaceAll(string(said), `\"`, `"`),
				test.message) {
				t.Errorf("%s, want %s", said, test.message)
			}
			if !test.starts && res.End != "refused" {
				t.Errorf("%+v", res)
			}
			if test.name == "approved" && (len(res.Approvals) != 1 ||
				res.Approvals[0].Decision != "approved" || res.Approvals[0].Source != "user") {
				t.Errorf("%+v", res.Approvals)
			}
		})
	}
}

// TestRunRetry: after a denial the client is asked for what the run lacked. The run goes on with the
// second attempt, and the result has the first one.
func TestRunRetry(t *testing.T) {
	testenv.NeedUserNS(t)
	server := run(t, runOptions())
	for _, test := range []struct {
		decision string
		code     int
		stdout   string
	}{{"approved", 0, "again\n"}, {"denied", 1, "begin\n"}} {
		t.Run(test.decision, func(t *testing.T) {
			dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") //nolint:usetesting // runs have a /tmp of their own
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			ws, out := filepath.Join(dir, "ws"), filepath.Join(dir, "out")
			if err := errors.Join(os.Mkdir(ws, 0o755), os.Mkdir(out, 0o755)); err != nil { //nolint:gosec // a workspace
				t.Fatal(err)
			}
			d := drive(t, server, func(*runQuestion) any {
				return map[string]any{"result": map[string]any{"decision": test.decision}}
			})
			id := d.runs(map[string]any{"cwd": ws}, "--sandbox", "sh", "-c",
				`[ -e begun ] && echo again || echo begin; touch begun; echo x >../out/file || exit 1`)
			res := d.over(id)
			if len(d.asked) != 1 || d.asked[0].Params.Request.Kind != "access" ||
				len(d.asked[0].Params.Request.Requires) != 1 ||
				d.asked[0].Params.Request.Requires[0] != "write:"+out {
				t.Fatalf("%+v", d.asked)
			}
			if res.ExitCode != test.code || res.Stdout != test.stdout || len(res.Approvals) != 1 ||
				res.Approvals[0].Decision != test.decision {
				t.Errorf("%+v", res)
			}
			approved := test.decision == "approved"
			if (res.First != nil) != approved || approved &&
				(res.First.Stdout != "begin\n" || res.First.ExitCode != 1) {
				t.Errorf("%+v", res.First)
			}
			if got := d.output(id); !strings.HasPrefix(got, "begin\n") ||
				approved != strings.HasSuffix(got, "again\n") {
				t.Errorf("%q", got)
			}
			if _, err := os.Stat(filepath.Join(out, "file")); (err == nil) != approved {
				t.Error(err)
			}
		})
	}
}

// TestRunCut: when the connection is cut while its question is open, the answer is no, and the server
// does not wait for one.
func TestRunCut(t *testing.T) {
	for name, why := range map[string]error{"cut": errCut, "closed": io.EOF} {
		t.Run(name, func(t *testing.T) {
			o, over := closing()
			d := drive(t, run(t, o), func(*runQuestion) any { return nil })
			dir := t.TempDir()
			d.post(map[string]any{"id": "s", "method": "run/start",
				"params": map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir}})
			d.until(func(m *message) bool { return m.Method == "run/approve" })
			if w, ok := d.speaker.(*answering).speaker.(*end); !ok || w.closeWith(why) != nil {
				t.Fatal("not closed")
			}
			<-over
			if ran(dir) {
				t.Error("it ran")
			}
		})
	}
}

// TestRunStray: an answer that was not asked for ends the connection, and so does a second one. The
// first one counts.
func TestRunStray(t *testing.T) {
	server := run(t, runOptions())
	yes := map[string]any{"decision": "approved"}
	for _, test := range []struct {
		name   string
		post   func(d *driver, id json.RawMessage)
		starts bool
	}{
		{"unknown number", func(d *driver, _ json.RawMessage) { d.post(map[string]any{"id": 4711, "result": yes}) }, false},
		{"text in place of a number", func(d *driver, id json.RawMessage) { d.post(map[string]any{"id": string(id), "result": yes}) }, false},
		{"error", func(d *driver, _ json.RawMessage) {
			d.post(map[string]any{"id": 4711, "error": map[string]any{"code": 1, "message": ""}})
		}, false},
		{"two answers", func(d *driver, id json.RawMessage) {
			d.post(map[string]any{"id": id, "result": map[string]any{"decision": "denied"}})
			d.post(map[string]any{"id": id, "result": yes})
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := drive(t, server, func(*runQuestion) any { return nil })
			dir := t.TempDir()
			d.post(map[string]any{"id": "s", "method": "run/start",
				"params": map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir}})
			d.until(func(m *message) bool { return m.Method == "run/approve" })
			test.post(d, d.asked[0].ID)
			for {
				if _, err := d.receive(); err != nil {
					break // the end of the connection
				}
			}
			if ran(dir) {
				t.Error("it ran")
			}
		})
	}
	d := drive(t, server, nil) // the server goes on
	d.over(d.runs(nil, "true"))
}

// TestRunStarting: a run that waits for an approval is listed, and another client of the credential can
// end it before it begins.
func TestRunStarting(t *testing.T) {
	server := run(t, runOptions())
	for _, method := range []string{"run/terminate", "run/remove"} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			d, other := drive(t, server, func(*runQuestion) any { return nil }), drive(t, server, nil)
			d.post(map[string]any{"id": "s", "method": "run/start",
				"params": map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir}})
			d.until(func(m *message) bool { return m.Method == "run/approve" })
			id := d.asked[0].Params.RunID
			type listed struct {
				RunID             string
				Argv              []string
				CWD               string
				Starting, Running bool
				ExitCode          *int
			}
			var list struct{ Runs []listed }
			other.result(&list, "run/list", nil)
			if i := slices.IndexFunc(list.Runs, func(r listed) bool { return r.RunID == id }); i < 0 {
				t.Fatalf("%+v, want run %s", list, id)
			} else if r := list.Runs[i]; !r.Starting || r.Running || r.ExitCode != nil ||
				!slices.Equal(r.Argv, []string{"touch", "ran"}) || r.CWD != dir {
				t.Errorf("%+v", r)
			}
			if why := other.refused("run/read", map[string]any{"runId": id, "after": 0}); why != "starting" {
				t.Errorf("a read: %q", why)
			}
			var ended struct{ Running bool }
			if other.result(&ended, method, map[string]any{"runId": id}); ended.Running {
				t.Errorf("%+v", ended)
			}
			m := d.until(func(m *message) bool { return string(m.ID) == `"s"` })
			var r startedRun
			if err := json.Unmarshal(m.Result, &r); err != nil || r.Started ||
				r.Result.End != "canceled" || ran(dir) {
				t.Errorf("%+v, %v", m, err)
			}
			if other.result(&list, "run/list", nil); slices.ContainsFunc(list.Runs,
				func(r listed) bool { return r.RunID == id }) {
				t.Errorf("it is still listed: %+v", list)
			}
		})
	}
}

// TestRunElsewhere: a question that was answered elsewhere can still be answered, once.
func TestRunElsewhere(t *testing.T) {
	board := new(approval.OpenQuestions)
	o := options()
	o.Prepare = func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
		r.Approver = approval.First(r.Approver, board)
		return prepare(ctx, r)
	}
	d := drive(t, run(t, o), func(*runQuestion) any { return nil })
	d.post(map[string]any{"id": "s", "method": "run/start",
		"params": map[string]any{"args": []string{"--ask", "true"}}})
	d.until(func(m *message) bool { return m.Method == "run/approve" })
	for {
		changed := board.Changed()
		if len(board.Pending()) > 0 {
			break
		}
		<-changed
	}
	q := d.asked[0]
	if err := board.Answer(q.Params.Request.ID, approval.Decision{Answer: approval.Approved}); err != nil {
		t.Fatal(err)
	}
	m := d.until(func(m *message) bool { return string(m.ID) == `"s"` })
	if !slices.ContainsFunc(d.events, func(m message) bool {
		return m.Method == "request/cancel" &&
			m.Params.ID == 1
	}) {
		t.Errorf("%+v", d.events)
	}
	var r startedRun
	if err := json.Unmarshal(m.Result, &r); err != nil || !r.Started {
		t.Fatalf("%+v, %v", m, err)
	}
	late := map[string]any{"id": q.ID, "result": map[string]any{"decision": "denied"}}
	d.post(late)
	d.over(r.RunID)
	d.post(late)
	for {
		if _, err := d.receive(); err != nil {
			return // the end of the connection
		}
	}
}

// TestServerEnds: the end of the server ends all processes and runs, also those that ignore signals or made
// a session of their own, and questions.
func TestServerEnds(t *testing.T) {
	testenv.NeedProgram(t, "setsid")
	o := runOptions()
	o.Drain = time.Millisecond // this client does not read
	server := run(t, o)
	d := drive(t, server, func(*runQuestion) any { return nil })
	const stubborn = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; sleep 600' & echo $$ $!; wait"
	id := d.runs(nil, "sh", "-c", stubborn)
	d.wait(id, map[string]any{"match": "\n"})
	var p runPage
	d.result(&p, "run/read", map[string]any{"runId": id, "after": 0})
	d.started(script("p", t.TempDir(), stubborn))
	pids := append(strings.Fields(string(p.Chunks[0].Chunk)), strings.Fields(d.first("p"))...)
	dir := t.TempDir()
	d.post(map[string]any{"id": "s", "method": "run/start",
		"params": map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir}})
	d.until(func(m *message) bool { return m.Method == "run/approve" })
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if alive(t, pid) {
			t.Errorf("process %s is alive", pid)
		}
	}
	if len(pids) != 4 || ran(dir) {
		t.Errorf("%q, it ran: %v", pids, ran(dir))
	}
}
