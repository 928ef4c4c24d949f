// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A versioned list is what a client reads of a list.
type versioned struct {
	Runs []struct {
		RunID             string
		Starting, Running bool
		WaitsFor          string
		Size              *struct{ Cols, Rows int }
	}
	Questions []struct {
		RunID, Digest string
		Request       struct{ ID string }
	}
	Stages  []struct{ ID string }
	Version string
}

// waits asks for a list that is another one than l, sees that there is no answer yet, and returns a function
// that waits for it.
func (d *driver) waits(method string, l *versioned) func() *versioned {
	d.t.Helper()
	answer := d.asks(method, l)
	id := fmt.Sprint(d.id)
	d.result(new(versioned), method, nil) // whatever is to be answered at once is answered by now
	for _, m := range d.passed {
		if string(m.ID) == id {
			d.t.Errorf("%s did not wait: %s", method, m.Result)
		}
	}
	return answer
}

func (d *driver) asks(method string, l *versioned) func() *versioned {
	d.t.Helper()
	d.id++
	id := fmt.Sprint(d.id)
	d.post(map[string]any{"id": d.id, "method": method,
		"params": map[string]any{"since": l.Version, "waitMs": 3_600_000}})
	return func() *versioned {
		d.t.Helper()
		m := d.until(func(m *message) bool { return string(m.ID) == id })
		var now versioned
		if m.Error != nil || json.Unmarshal(m.Result, &now) != nil || now.Version == "" ||
			now.Version == l.Version {
			d.t.Fatalf("%+v, %s", m.Error, m.Result)
		}
		return &now
	}
}

// reaches waits for answers until one is as wanted. A list may be newer than its version: then the next
// answer is the same list.
func (d *driver) reaches(method string, answer func() *versioned, want func(*versioned) bool) *versioned {
	d.t.Helper()
	for {
		l := answer()
		if want(l) {
			return d.list(method) // nothing changes now: its version is that of the list
		}
		answer = d.asks(method, l)
	}
}

func (d *driver) list(method string) *versioned {
	d.t.Helper()
	l := new(versioned)
	d.result(l, method, nil)
	if l.Version == "" {
		d.t.Fatalf("%s has no version", method)
	}
	return l
}

// TestListWaits: a list that is waited for comes with each change: a run that comes, asks, is answered,
// begins, ends and is removed. What others do is no change.
func TestListWaits(t *testing.T) {
	o := runOptions()
	asks := make(chan struct{}, 10)
	o.Prepare = boarded(asks)
	server := run(t, o)
	d, again, mallory := drive(t, server.as("alice"), nil), drive(t, server.as("alice"), nil),
		drive(t, server.as("mallory"), nil)
	all, open := d.list("run/list"), d.list("question/list")
	other := mallory.waits("run/list", mallory.list("run/list"))

	comes, asked := d.waits("run/list", all), d.waits("question/list", open)
	again.post(map[string]any{"id": "s", "method": "run/start",
		"params": map[string]any{"args": []string{"--ask", "sleep", "1000"}, "cwd": t.TempDir()}})
	all = d.reaches("run/list", comes, func(l *versioned) bool {
		if len(l.Runs) != 1 || !l.Runs[0].Starting {
			t.Fatalf("a run that asks: %+v", l)
		}
		return l.Runs[0].WaitsFor == "answer"
	})
	open = d.reaches("question/list", asked, func(l *versioned) bool { return len(l.Questions) == 1 })
	if open.Questions[0].RunID != all.Runs[0].RunID {
		t.Fatalf("a question: %+v", open)
	}

	begins, answered := d.waits("run/list", all), d.asks("question/list", open)
	q := open.Questions[0]
	again.result(new(struct{}), "question/answer", map[string]any{"id": q.Request.ID, "digest": q.Digest,
		"decision": "approved", "source": "console"})
	d.reaches("question/list", answered, func(l *versioned) bool { return len(l.Questions) == 0 })
	all = d.reaches("run/list", begins, func(l *versioned) bool {
		return !l.Runs[0].Starting && l.Runs[0].WaitsFor == ""
	})
	ends := d.waits("run/list", all)
	run := map[string]any{"runId": q.RunID}
	again.result(new(struct{}), "run/terminate", run)
	all = d.reaches("run/list", ends, func(l *versioned) bool { return !l.Runs[0].Running })
	removed := d.waits("run/list", all)
	again.result(new(struct{}), "run/remove", run)
	if all = removed(); len(all.Runs) != 0 {
		t.Errorf("removed: %+v", all)
	}
	mallory.runs(nil, "true")
	if l := other(); len(l.Runs) != 1 {
		t.Errorf("another owner: %+v", l)
	}
}

// TestListWaitsEnd: a wait ends with its time, when it is canceled, and with its connection.
func TestListWaitsEnd(t *testing.T) {
	testenv.NeedInotify(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := run(t, runOptions())
	for _, method := range []string{"run/list", "question/list", "stage/list"} {
		d := drive(t, server, nil)
		l, same := d.list(method), new(versioned)
		d.result(same, method, map[string]any{"since": l.Version, "waitMs": 1})
		if same.Version != l.Version {
			t.Errorf("%s after its time: %+v, want %+v", method, same, l)
		}
		d.result(same, method, map[string]any{"since": "another", "waitMs": 3_600_000})
		d.result(same, method, map[string]any{"waitMs": 3_600_000}) // without a version
		d.waits(method, l)
		d.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": d.id - 1}})
		id := fmt.Sprint(d.id - 1)
		if m := d.until(func(m *message) bool { return string(m.ID) == id }); m.Error == nil ||
			m.Error.Code != -32800 {
			t.Errorf("%s was canceled: %+v, %s", method, m.Error, m.Result)
		}
		d.waits(method, l)
		if err := d.close(); err != nil { // the end of the server waits for what is left
			t.Fatal(err)
		}
	}
	d := drive(t, server, nil)
	d.waits("run/list", d.list("run/list"))
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// TestSizeListWaits: who waits for the list of runs is told that a client has changed the size of a terminal.
func TestSizeListWaits(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	id := d.runs(map[string]any{"tty": map[string]int{"cols": 40, "rows": 10}}, "sleep", "1000")
	list := d.list("run/list")
	if s := list.Runs[0].Size; s == nil || s.Cols != 40 || s.Rows != 10 {
		t.Errorf("%+v", s)
	}
	comes := d.waits("run/list", list)
	d.result(new(struct{}), "run/resize", map[string]any{"runId": id, "cols": 100, "rows": 30})
	d.reaches("run/list", comes, func(l *versioned) bool { return l.Runs[0].Size.Cols == 100 })
	d.result(new(struct{}), "run/terminate", map[string]any{"runId": id})
}

// TestStageListWaits: a list of stages that is waited for comes when another process makes a stage, uses it,
// applies a part of it and discards it.
func TestStageListWaits(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d, dir := drive(t, run(t, runOptions()).as("me"), nil), t.TempDir()
	other := drive(t, run(t, runOptions()).as("me"), nil) // as good as another process
	list := d.list("stage/list")
	id := ""
	for _, step := range []struct {
		name   string
		do     func()
		stages int
	}{
		{"new", func() { id = stagedRun(other, dir, "kept", "echo one >a; echo two >b") }, 1},
		{"used", func() { stagedRun(other, dir, "kept", "echo more >c") }, 1},
		{"applied in part", func() {
			other.result(new(struct{}), "stage/apply", map[string]any{"stageId": id, "paths": []string{"a"}})
		}, 1},
		{"discarded", func() {
			other.result(new(struct{}), "stage/discard", map[string]any{"stageId": id})
		}, 0},
	} {
		comes := d.waits("stage/list", list)
		step.do()
		last := other.list("stage/list")
		list = d.reaches("stage/list", comes, func(l *versioned) bool { return l.Version == last.Version })
		if len(list.Stages) != step.stages {
			t.Errorf("%s: %+v", step.name, list)
		}
	}
}

// TestManyListWaits: as many waits as a connection may have are answered by one change; one more is refused.
func TestManyListWaits(t *testing.T) {
	const most = 1024
	server := run(t, runOptions())
	other := drive(t, server, nil)
	d := &driver{caller: &caller{t: t}}
	d.speaker = connectHolding(t, server, 2*most)
	d.greet(nil)
	params := map[string]any{"since": d.list("run/list").Version, "waitMs": 3_600_000}
	for i := range most {
		d.post(map[string]any{"id": fmt.Sprint("w", i), "method": "run/list", "params": params})
	}
	if m := d.call("run/list", params); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("one wait too many: %+v, %s", m.Error, m.Result)
	}
	d.list("run/list") // one that does not wait is answered
	other.runs(nil, "sleep", "1000")
	for i := range most {
		id := fmt.Sprintf("%q", fmt.Sprint("w", i))
		if m := d.until(func(m *message) bool { return string(m.ID) == id }); m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
	}
}

// TestAnsweredBy: an answer that came too late says who was first, and an unknown source is refused.
func TestAnsweredBy(t *testing.T) {
	o := runOptions()
	asks := make(chan struct{}, 10)
	o.Prepare = boarded(asks)
	server := run(t, o)
	for _, source := range []string{"", "user", "console"} {
		d, again := drive(t, server, nil), drive(t, server, nil)
		d.post(map[string]any{"id": "s", "method": "run/start",
			"params": map[string]any{"args": []string{"--ask", "sleep", "1000"}, "cwd": t.TempDir()}})
		<-asks
		q := again.list("question/list").Questions[0]
		answer := map[string]any{"id": q.Request.ID, "digest": q.Digest, "decision": "approved",
			"source": "hook"}
		if m := again.call("question/answer", answer); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("a source that is no person: %+v", m.Error)
		}
		answer["source"] = source
		again.result(new(struct{}), "question/answer", answer)
		want := source
		if want == "" {
			want = "user"
		}
		for _, digest := range []string{q.Digest, "another"} {
			answer["digest"] = digest
			if m := again.call("question/answer", answer); m.Error == nil ||
				m.Error.Data.Reason != "unknownQuestion" || m.Error.Data.By != want {
				t.Errorf("%q answered again: %+v", source, m.Error)
			}
		}
		m := d.until(func(m *message) bool { return string(m.ID) == `"s"` })
		var r startedRun
		if err := json.Unmarshal(m.Result, &r); err != nil || !r.Started {
			t.Errorf("%s, %v", m.Result, err)
		}
		run := map[string]any{"runId": r.RunID}
		d.result(new(struct{}), "run/terminate", run)
		var over struct{ Result outcome }
		d.result(&over, "run/result", run)
		if all := over.Result.Approvals; len(all) != 1 || all[0].Source != want {
			t.Errorf("%+v, want one of %s", all, want)
		}
		d.result(new(struct{}), "run/remove", run)
	}
}
