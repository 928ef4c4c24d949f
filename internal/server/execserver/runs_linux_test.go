// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// prepare makes runs of tests: the flag --ask has every command asked about, --sandbox runs it in
// one, --grace gives it time to end, --big keeps much output, and --broken is an error.
func prepare(_ context.Context, r *runs.Request) (*runs.Prepared, error) {
	runner := &sallyport.Runner{Policy: sandbox.FullAccess(), Approver: r.Approver}
	args, grace, kept := r.Args, time.Duration(-1), sallyport.Retention{}
	for ; len(args) > 0 && strings.HasPrefix(args[0], "--"); args = args[1:] {
		switch args[0] {
		case "--ask":
			runner.Approval = approval.Untrusted
		case "--sandbox":
			runner.Policy = sandbox.WorkspaceWrite(".")
		case "--grace":
			grace = time.Hour
		case "--big":
			kept.Bytes = 64 << 20
		case "--broken":
			return nil, errors.New("unknown flag --broken")
		}
	}
	return &runs.Prepared{
		Runner: runner,
		Cmd: &sallyport.Cmd{Args: args, Dir: r.Dir, Env: r.Environ,
			EnvPolicy: sallyport.EnvPolicy{Inherit: sallyport.InheritAll}, Grace: grace,
			Retention: kept},
	}, nil
}

// runOptions are those of a server with runs.
func runOptions() execserver.Options {
	o := options()
	o.Prepare = prepare
	return o
}

// A driver is a client that starts runs.
type driver struct {
	*caller
	asked   []runQuestion
	decides func(q *runQuestion) any // the members of the answer; nil for no answer
}

// A runQuestion is a request of the server.
type runQuestion struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RunID   string
		Request struct {
			Type, ID, Kind, Reason string
			Argv, Requires         []string
			Available              []string `json:"available_decisions"`
		}
	} `json:"params"`
}

// drive connects a client that can be asked if decides is not nil.
func drive(t testing.TB, server testServer, decides func(*runQuestion) any) *driver {
	t.Helper()
	d := &driver{caller: &caller{t: t}, decides: decides}
	d.speaker = &answering{connect(t, server), d}
	m := d.call("initialize", map[string]any{"clientName": "test", "extensionMethods": true,
		"approvals": decides != nil})
	if m.Error != nil || !strings.Contains(string(m.Result), `"runs":true`) {
		t.Fatalf("%+v, %s", m.Error, m.Result)
	}
	d.post(map[string]any{"method": "initialized"})
	return d
}

// answering is a speaker that answers the questions of the server.
type answering struct {
	speaker
	d *driver
}

func (a *answering) receive() ([]byte, error) {
	for {
		text, err := a.speaker.receive()
		var q runQuestion
		if err != nil || json.Unmarshal(text, &q) != nil || q.Method != "run/approve" || q.ID == nil {
			return text, err
		}
		a.d.asked = append(a.d.asked, q)
		answer := a.d.decides(&q)
		if answer == nil {
			return text, nil
		}
		members, ok := answer.(map[string]any)
		if !ok {
			a.d.t.Fatalf("%v", answer)
		}
		members["id"] = q.ID
		a.d.post(members)
	}
}

// result makes a request and reads its result.
func (d *driver) result(to any, method string, params map[string]any) {
	d.t.Helper()
	if m := d.call(method, params); m.Error != nil || json.Unmarshal(m.Result, to) != nil {
		d.t.Fatalf("%s %v: %+v, %s", method, params, m.Error, m.Result)
	}
}

// refused makes a request that has an error, and returns its reason.
func (d *driver) refused(method string, params map[string]any) string {
	d.t.Helper()
	m := d.call(method, params)
	if m.Error == nil || m.Error.Message == "" {
		d.t.Fatalf("%s %v: no error, %s", method, params, m.Result)
	}
	return m.Error.Data.Reason
}

// outcome is a result of a run.
type outcome struct {
	Argv      []string
	End       string
	ExitCode  int `json:"exit_code"`
	Stdout    string
	Error     string
	Approvals []struct{ Decision, Message, Source string }
	Denials   []struct{ Path string }
	First     *struct {
		Stdout   string
		ExitCode int `json:"exit_code"`
	}
}

type startedRun struct {
	RunID   string
	Started bool
	Result  *outcome
}

// start starts a run and returns what came of it.
func (d *driver) start(params map[string]any, args ...string) startedRun {
	d.t.Helper()
	all := map[string]any{"args": args, "cwd": d.t.TempDir()}
	for name, v := range params {
		all[name] = v
	}
	var r startedRun
	d.result(&r, "run/start", all)
	if r.RunID == "" || r.Started == (r.Result != nil) {
		d.t.Fatalf("%+v", r)
	}
	return r
}

// runs starts a run that must start, and returns its number.
func (d *driver) runs(params map[string]any, args ...string) string {
	d.t.Helper()
	r := d.start(params, args...)
	if !r.Started {
		d.t.Fatalf("%+v", r.Result)
	}
	return r.RunID
}

type waited struct {
	Reason string
	Next   int
	After  uint64
	Port   int
	Input  *struct{ Kind, Program string }
	Result *outcome

	ElapsedMs int
}

// wait waits for a run.
func (d *driver) wait(run string, conditions map[string]any) (w waited) {
	d.t.Helper()
	d.result(&w, "run/wait", map[string]any{"runId": run, "for": conditions, "timeoutMs": 60_000})
	return w
}

// over waits for the end of a run and returns its result.
func (d *driver) over(run string) *outcome {
	d.t.Helper()
	w := d.wait(run, map[string]any{"exit": true})
	if w.Reason != "exited" || w.Result == nil {
		d.t.Fatalf("%+v", w)
	}
	return w.Result
}

// writes writes to a run.
func (d *driver) writes(run, text string) {
	d.t.Helper()
	var none struct{}
	d.result(&none, "run/write", map[string]any{"runId": run,
		"chunk": base64.StdEncoding.EncodeToString([]byte(text))})
}

type runPage struct {
	Chunks []struct {
		Offset, Missing int
		Stream          string
		Chunk           []byte
	}
	Next     int
	Complete bool
}

// output reads all output of a run up to its end.
func (d *driver) output(run string) (text string) {
	d.t.Helper()
	for after := 0; ; {
		var p runPage
		d.result(&p, "run/read", map[string]any{"runId": run, "after": after, "waitMs": 60_000})
		for _, c := range p.Chunks {
			if c.Offset != len(text) || c.Missing != 0 {
				d.t.Errorf("chunk at %d (%d missing), want %d", c.Offset, c.Missing, len(text))
			}
			text += string(c.Chunk)
		}
		if after = p.Next; p.Complete {
			return text
		}
	}
}

// TestRunPipe: a run with a pipe as its input, from its start to its end.
func TestRunPipe(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	id := d.runs(map[string]any{"openStdin": true, "env": map[string]string{"PATH": "/usr/bin:/bin",
		"GREETING": "hello"}},
		"sh", "-c", `echo $GREETING; cat; echo done >&2; exit 3`)
	d.writes(id, "one\n")
	d.writes(id, "two\n")
	if w := d.wait(id, map[string]any{"match": "two"}); w.Reason != "match" || w.Result != nil {
		t.Errorf("%+v", w)
	}
	if got := d.refused("run/result", map[string]any{"runId": id}); got != "running" {
		t.Error(got)
	}
	var list struct {
		Runs []struct {
			RunID, CWD string
			Argv       []string
			Running    bool
			TTY        bool
			ExitCode   *int
			End        *string
		}
	}
	d.result(&list, "run/list", nil)
	if r := list.Runs; len(r) != 1 || r[0].RunID != id || !r[0].Running || r[0].ExitCode != nil ||
		r[0].End != nil || !slices.Equal(r[0].Argv[:2], []string{"sh", "-c"}) || r[0].CWD == "" {
		t.Errorf("%+v", list)
	}
	var none struct{}
	d.result(&none, "run/closeStdin", map[string]any{"runId": id})
	if got := d.refused("run/write", map[string]any{"runId": id, "chunk": "eA=="}); got != "inputClosed" &&
		got != "ended" {
		t.Error(got)
	}
	if res := d.over(id); res.End != "exited" || res.ExitCode != 3 || res.Stdout != "hello\none\ntwo\n" {
		t.Errorf("%+v", res)
	}
	if got := d.output(id); got != "hello\none\ntwo\ndone\n" {
		t.Errorf("%q", got)
	}
	if got := d.refused("run/write", map[string]any{"runId": id, "chunk": "eA=="}); got != "ended" {
		t.Error(got)
	}
	var result struct{ Result outcome }
	if d.result(&result, "run/result", map[string]any{"runId": id}); result.Result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
	d.result(&list, "run/list", nil)
	if r := list.Runs; len(r) != 1 || r[0].Running || *r[0].ExitCode != 3 || *r[0].End != "exited" {
		t.Errorf("%+v", list)
	}
	d.result(&none, "run/remove", map[string]any{"runId": id})
	if d.result(&list, "run/list", nil); len(list.Runs) != 0 {
		t.Errorf("%+v", list)
	}
	if next := d.runs(nil, "true"); next == id {
		t.Error("a number was given twice")
	}
}

// TestRunTerminal: a run on a terminal: its screen and size, and waits for input and quiet.
func TestRunTerminal(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	id := d.runs(map[string]any{"tty": map[string]int{"cols": 40, "rows": 10}, "screen": true},
		"sh", "-c", `trap 'stty size' WINCH; printf 'name: '; while ! read name; do :; done; echo "hi $name"; printf 'more: '; while ! read x; do :; done; exit 4`)
	if w := d.wait(id, map[string]any{"input": true}); w.Reason != "input_wait" || w.Input == nil ||
		w.Input.Program == "" {
		t.Errorf("%+v", w)
	}
	type screen struct {
		Lines      []string
		Cols, Rows int
		Col, Row   int
	}
	var s screen
	if d.result(&s, "run/screen", map[string]any{"runId": id}); s.Cols != 40 || s.Rows != 10 ||
		s.Lines[0] != "name:" || s.Col != 6 {
		t.Errorf("%+v", s)
	}
	d.writes(id, "joe\n")
	if w := d.wait(id, map[string]any{"match": "more: $"}); w.Reason != "match" {
		t.Errorf("%+v", w)
	}
	var none struct{}
	d.result(&none, "run/resize", map[string]any{"runId": id, "cols": 100, "rows": 33})
	if w := d.wait(id, map[string]any{"match": "33 100"}); w.Reason != "match" {
		t.Errorf("%+v", w)
	}
	if d.result(&s, "run/screen", map[string]any{"runId": id}); s.Cols != 100 || s.Rows != 33 ||
		!slices.Contains(s.Lines, "hi joe") {
		t.Errorf("%+v", s)
	}
	d.writes(id, "x\n")
	if res := d.over(id); res.ExitCode != 4 {
		t.Errorf("%+v", res)
	}
	d.result(&none, "run/resize", map[string]any{"runId": id, "cols": 1, "rows": 1}) // no effect
	plain := d.runs(nil, "sleep", "600")
	for method, want := range map[string]string{"run/screen": "noScreen", "run/resize": "noTerminal",
		"run/write": "inputClosed"} {
		if got := d.refused(method, map[string]any{"runId": plain, "cols": 1, "rows": 1,
			"chunk": "eA=="}); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

// TestRunWaits: what ends a wait, and that waits hold up nothing.
func TestRunWaits(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	for _, test := range []struct {
		script     string
		conditions map[string]any
		want       string
	}{
		{"echo x; sleep 600", map[string]any{"firstOutput": true}, "output"},
		{"echo 12345678; sleep 600", map[string]any{"bytes": 9}, "bytes"},
		{"echo x; sleep 600", map[string]any{"quietMs": 1}, "idle"},
		{"echo ready on port; sleep 600", map[string]any{"match": "^ready", "bytes": 1000}, "match"},
		{"exit 7", map[string]any{}, "exited"},
		{"exit 7", map[string]any{"match": "never"}, "exited"},
	} {
		id := d.runs(nil, "sh", "-c", test.script)
		if w := d.wait(id, test.conditions); w.Reason != test.want ||
			(w.Result != nil) != (test.want == "exited") {
			t.Errorf("%q: %+v, want %s", test.script, w, test.want)
		}
	}
	id := d.runs(nil, "sleep", "600")
	d.post(map[string]any{"id": "w", "method": "run/wait",
		"params": map[string]any{"runId": id, "for": map[string]any{"exit": true}}})
	for name, conditions := range map[string]map[string]any{"exit": {"exit": true},
		"output": {"firstOutput": true}} {
		var w waited
		if d.result(&w, "run/wait", map[string]any{"runId": id, "for": conditions,
			"timeoutMs": 1}); w.Reason != "deadline" {
			t.Errorf("%s: %+v", name, w)
		}
	}
	for _, conditions := range []any{map[string]any{"match": "("}, map[string]any{"quiet": 1}, 5, nil} {
		if m := d.call("run/wait", map[string]any{"runId": id, "for": conditions}); m.Error == nil ||
			m.Error.Code != -32602 {
			t.Errorf("%v: %+v", conditions, m)
		}
	}
	var ended struct{ Running bool }
	if d.result(&ended, "run/terminate", map[string]any{"runId": id}); !ended.Running {
		t.Error("it was not running")
	}
	for !d.answered[`"w"`] {
		d.more()
	}
	if res := d.over(id); res.End != "canceled" {
		t.Errorf("%+v", res)
	}
	if d.result(&ended, "run/terminate", map[string]any{"runId": id}); ended.Running {
		t.Error("it was running")
	}
	sig := d.runs(nil, "sleep", "600")
	d.result(&struct{}{}, "run/signal", map[string]any{"runId": sig, "signal": "SIGUSR1"})
	if res := d.over(sig); res.End != "signaled" || res.ExitCode != 138 {
		t.Errorf("%+v", res)
	}
	for _, name := range []string{"interrupt", "TERM", "9", ""} {
		if m := d.call("run/signal", map[string]any{"runId": sig, "signal": name}); m.Error == nil ||
			m.Error.Code != -32602 {
			t.Errorf("%q: %+v", name, m)
		}
	}
}

// TestRunWaitOffsets: each wait has an offset of its own, text behind a match is for the next one, and a
// wait for something else takes none away.
func TestRunWaitOffsets(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	id := d.runs(map[string]any{"openStdin": true}, "sh", "-c",
		`printf 'one\n\033[1mtw\033[mo\nname? '; read x; echo again; read x`)
	for _, test := range []struct {
		conditions map[string]any
		want       string
		after      uint64
	}{
		{map[string]any{"input": true}, "input_wait", 0},
		{map[string]any{"match": "one"}, "match", 3},
		{map[string]any{"match": "two"}, "match", 14},
		{map[string]any{"match": "two", "after": 0, "raw": true, "quietMs": 50}, "idle", 0},
		{map[string]any{"match": "tw", "after": 0, "raw": true}, "match", 10},
		{map[string]any{"match": "one", "after": 0}, "match", 3},
		{map[string]any{"match": "name", "after": 0}, "match", 19},
		{map[string]any{"match": "one|two", "quietMs": 50}, "idle", 14},
		{map[string]any{"quietMs": 50}, "idle", 21},
		{map[string]any{"firstOutput": true, "quietMs": 50}, "idle", 21},
		{map[string]any{"firstOutput": true, "after": 20}, "output", 21},
		{map[string]any{"match": `name\? $`}, "match", 21},
	} {
		if w := d.wait(id, test.conditions); w.Reason != test.want || w.After != test.after {
			t.Errorf("%v: %+v, want %s and %d", test.conditions, w, test.want, test.after)
		}
	}
	for _, client := range []string{"a", "b", "c"} {
		conditions := map[string]any{"match": "again"}
		if client == "c" {
			conditions = map[string]any{"firstOutput": true}
		}
		d.post(map[string]any{"id": client, "method": "run/wait",
			"params": map[string]any{"runId": id, "for": conditions}})
	}
	var late waited
	if d.result(&late, "run/wait", map[string]any{"runId": id, "for": map[string]any{"match": "never"},
		"timeoutMs": 50}); late.Reason != "deadline" || late.ElapsedMs > 900 {
		t.Errorf("beside others: %+v", late)
	}
	d.result(&struct{}{}, "run/write", map[string]any{"runId": id, "chunk": "Cg=="})
	for !d.answered[`"a"`] || !d.answered[`"b"`] || !d.answered[`"c"`] {
		d.more()
	}
}

// TestRunPort: a wait ends when the run listens on a port, and names it.
func TestRunPort(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := drive(t, run(t, runOptions()), nil)
	id := d.runs(map[string]any{"openStdin": true}, program, listenHelper)
	w := d.wait(id, map[string]any{"port": true})
	if w.Reason != "port" || w.Port == 0 {
		t.Fatalf("%+v", w)
	}
	d.result(&struct{}{}, "run/closeStdin", map[string]any{"runId": id})
	if res := d.over(id); res.ExitCode != 0 || res.Stdout != fmt.Sprintln(w.Port) {
		t.Errorf("%+v, the port is %d", res, w.Port)
	}
}

// TestRunRefused: what does not run says why, and is not retained. A client that did not say that it
// answers is not asked.
func TestRunRefused(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	if r := d.start(nil, "/nonexistent/program"); r.Started || r.Result.End != "not_found" ||
		r.Result.ExitCode != -1 || r.Result.Argv[0] != "/nonexistent/program" {
		t.Errorf("%+v", r.Result)
	}
	if r := d.start(nil, "--ask", "touch", "ran"); r.Started || r.Result.End != "refused" ||
		!strings.Contains(r.Result.Error, "no approver is configured") {
		t.Errorf("%+v", r.Result)
	}
	for name, params := range map[string]map[string]any{
		"flags": {"args": []string{"--broken"}}, "no args": {"args": []string{}}, "no list": {"args": "x"}, "a number": {"args": []string{"x"}, "cwd": 5}, "no command": {"args": []string{""}},
		"relative directory": {"args": []string{"x"}, "cwd": "x"}, "no size": {"args": []string{"x"}, "tty": map[string]int{"cols": 0, "rows": 1}},
		"two inputs": {"args": []string{"x"}, "openStdin": true, "tty": map[string]int{"cols": 1, "rows": 1}}, "no terminal": {"args": []string{"x"}, "screen": true},
		"variable": {"args": []string{"x"}, "env": map[string]string{"A=B": "x"}}, "long": {"args": []string{strings.Repeat("x", 3<<20)}},
	} {
		if m := d.call("run/start", params); m.Error == nil || m.Error.Code != -32602 ||
			m.Error.Data.Reason != "invalid" || m.Error.Data.ExitCode != 125 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// The exit code is that of a run that was asked for.
	for method, params := range map[string]map[string]any{"run/read": {"runId": "1"},
		"run/wait": {"runId": 1, "for": map[string]any{}}, "run/signal": {"runId": "1", "signal": "x"}} {
		if m := d.call(method, params); m.Error == nil || m.Error.Code != -32602 ||
			m.Error.Data.Reason != "invalid" || m.Error.Data.ExitCode != 0 {
			t.Errorf("%s: %+v", method, m)
		}
	}
	var list struct{ Runs []any }
	if d.result(&list, "run/list", nil); len(list.Runs) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestRunEvents: the events of a run come in their order, the output among them.
func TestRunEvents(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	const size = 3 << 20
	id := d.runs(map[string]any{"events": true}, "sh", "-c",
		fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size))
	type line struct {
		Type   string
		Seq    uint64
		Text   string
		Offset int
	}
	total, last := 0, line{}
	d.await(func(*message) bool { return true })
	for seen := 0; last.Type != "ended"; seen++ {
		for seen == len(d.events) {
			d.more()
		}
		m := d.events[seen]
		if m.Method != "run/event" || m.Params.RunID != id {
			t.Fatalf("%+v", m)
		}
		var e line
		if err := json.Unmarshal(m.Params.Event, &e); err != nil || e.Seq != last.Seq+1 {
			t.Fatalf("%+v after %+v, %v", e, last, err)
		}
		if e.Type == "output" {
			if e.Offset != total {
				t.Fatalf("output at %d, want %d", e.Offset, total)
			}
			total += len(e.Text)
		}
		last = e
	}
	if total != size {
		t.Errorf("%d bytes, want %d", total, size)
	}
	other := d.runs(nil, "true")
	d.over(other)
	for _, m := range d.events {
		if m.Params.RunID == other {
			t.Errorf("%+v", m)
		}
	}
}
