// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
)

// TestRunCredential: the runs of a client are unknown to those with other credentials, and known on
// each of its own connections.
func TestRunCredential(t *testing.T) {
	server := run(t, runOptions())
	alice, again, mallory := drive(t, server.as("alice"), nil), drive(t, server.as("alice"), nil),
		drive(t, server.as("mallory"), nil)
	id := alice.runs(map[string]any{"tty": map[string]int{"cols": 80, "rows": 24}, "screen": true}, "sh",
		"-c", "read x; exit 5")
	all := map[string]any{"runId": id, "after": 0, "chunk": "eA==", "for": map[string]any{"exit": true},
		"timeoutMs": 0, "cols": 9, "rows": 9, "signal": "SIGKILL"}
	for _, method := range []string{
		"run/read", "run/write", "run/closeStdin", "run/wait", "run/screen", "run/resize", "run/signal",
		"run/terminate", "run/result", "run/remove",
	} {
		here, none := mallory.call(method, all), map[string]any{}
		for name, v := range all {
			none[name] = v
		}
		none["runId"] = "999999"
		there := mallory.call(method, none)
		if here.Error == nil || here.Error.Data.Reason != "unknownRun" ||
			strings.Replace(here.Error.Message, id, "999999", 1) != there.Error.Message {
			t.Errorf("%s: %+v, of a run that does not exist %+v", method, here.Error, there.Error)
		}
	}
	var list struct{ Runs []struct{ RunID string } }
	if mallory.result(&list, "run/list", nil); len(list.Runs) != 0 {
		t.Errorf("%+v", list)
	}
	if again.result(&list, "run/list", nil); len(list.Runs) != 1 || list.Runs[0].RunID != id {
		t.Errorf("%+v", list)
	}
	if err := alice.close(); err != nil { // a run belongs to no connection
		t.Fatal(err)
	}
	again.writes(id, "x\n")
	if res := again.over(id); res.ExitCode != 5 {
		t.Errorf("%+v", res)
	}
}

// TestRunLimit: one live run too many is refused, and no other one is ended for it.
func TestRunLimit(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	var ids []string
	for range 64 {
		ids = append(ids, d.runs(nil, "sleep", "600"))
	}
	m := d.call("run/start", map[string]any{"args": []string{"sleep", "600"}})
	if m.Error == nil || m.Error.Code != -32600 || m.Error.Data.Reason != "runLimit" ||
		!strings.Contains(m.Error.Message, "limit of runs (64) reached; terminate one first, such as "+ids[0]+
			" (sleep 600)") {
		t.Errorf("%+v", m)
	}
	var list struct{ Runs []struct{ Running bool } }
	d.result(&list, "run/list", nil)
	for _, r := range list.Runs {
		if !r.Running {
			t.Errorf("%+v", list)
		}
	}
	d.result(&struct{}{}, "run/terminate", map[string]any{"runId": ids[3]})
	d.runs(nil, "true")
}

// TestRunFlood: a client that reads nothing takes a bounded amount of memory, whatever it asks for,
// and slows down no other one.
func TestRunFlood(t *testing.T) {
	server := run(t, runOptions())
	slow, other := drive(t, server, nil), drive(t, server, nil)
	dir := t.TempDir()
	const size = 64 << 20
	slow.runs(map[string]any{"events": true, "cwd": dir}, "sh", "-c",
		fmt.Sprintf("head -c %d /dev/zero; touch done", size))
	large := slow.runs(nil, "head", "-c", fmt.Sprint(16<<20), "/dev/zero")
	other.over(large)
	for i := range 200 { // 3 GiB in all
		slow.post(map[string]any{"id": i + 1000, "method": "run/read",
			"params": map[string]any{"runId": large, "after": 0, "maxBytes": 8 << 20}})
	}
	for range 30 {
		if res := other.over(other.runs(nil, "echo", "x")); res.Stdout != "x\n" {
			t.Errorf("%+v", res)
		}
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc > 512<<20 {
			t.Fatalf("%d MiB", m.HeapAlloc>>20)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
		t.Errorf("%d bytes were taken that no client reads", size)
	}
}

// TestStartAgain: a start that another connection of the session repeats is answered with the run of the
// first, or with what has become of it, and starts no second one.
func TestStartAgain(t *testing.T) {
	prepared := 0
	o := options()
	o.Prepare = func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
		prepared++
		return prepare(ctx, r)
	}
	server := run(t, o)
	c, session := meet(t, server, nil)
	start := map[string]any{"args": []string{"sleep", "1000"}, "startId": "a"}
	first := c.call("run/start", start)
	again := func() message {
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		c = resumed(t, server, session)
		c.post(map[string]any{"method": "initialized"})
		return c.call("run/start", start)
	}
	var run startedRun
	if json.Unmarshal(first.Result, &run) != nil || !run.Started {
		t.Fatalf("%+v", first)
	}
	if m := again(); string(m.Result) != string(first.Result) || prepared != 1 {
		t.Errorf("%s, %+v; %d were prepared", m.Result, m.Error, prepared)
	}
	if m := c.call("run/remove", map[string]any{"runId": run.RunID}); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	if m := again(); m.Error == nil || !strings.Contains(m.Error.Message, "unknown run "+run.RunID) ||
		prepared != 1 {
		t.Errorf("%s, %+v; %d were prepared", m.Result, m.Error, prepared)
	}
}
