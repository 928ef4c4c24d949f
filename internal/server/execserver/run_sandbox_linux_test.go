// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestTransient: a run of use to one connection ends with that, and its reader gets the result with the
// end of the output.
func TestTransient(t *testing.T) {
	server := run(t, runOptions())
	other := drive(t, server, nil)
	list := func() (n int) {
		var all struct{ Runs []struct{ RunID string } }
		other.result(&all, "run/list", nil)
		return len(all.Runs)
	}
	own := drive(t, server, nil)
	id := own.runs(map[string]any{"transient": true, "reader": true}, "sh", "-c", "echo hi; exit 3")
	var page struct {
		runPage
		Result *outcome
	}
	for after := 0; !page.Complete; after = page.Next {
		page.Result = nil
		own.result(&page, "run/read", map[string]any{"runId": id, "after": after, "waitMs": 60_000,
			"reader": map[string]any{}})
	}
	if page.Result == nil || page.Result.ExitCode != 3 || page.Result.Stdout != "" {
		t.Errorf("%+v", page.Result)
	}
	if why := own.refused("run/read", map[string]any{"runId": id,
		"after": 0}); why != "unknownRun" || list() != 0 {
		t.Errorf("afterwards: %s, %d runs", why, list())
	}
	id = own.runs(map[string]any{"transient": true}, "sh", "-c", "echo $$; exec sleep 600")
	pid := strings.TrimSpace(string(own.page(id)))
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	command, err := unix.PidfdOpen(number, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(command)
	if err := own.close(); err != nil {
		t.Error(err)
	}
	if n, err := testenv.Poll([]unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}, time.Minute); n != 1 {
		t.Errorf("the command goes on: %v", err)
	}
	if n := list(); n != 0 { // it is taken before it is ended
		t.Errorf("%d runs are known", n)
	}
}

// page returns the first output of a run.
func (d *driver) page(run string) (text []byte) {
	d.t.Helper()
	var p runPage
	d.result(&p, "run/read", map[string]any{"runId": run, "after": 0, "waitMs": 60_000})
	for _, c := range p.Chunks {
		text = append(text, c.Chunk...)
	}
	return text
}

// TestNamedSandbox: runs join a sandbox by its name, which is listed and ended.
func TestNamedSandbox(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d := drive(t, run(t, runOptions()), nil)
	dir, begin := t.TempDir(), time.Now()
	in := map[string]any{"cwd": dir, "sandbox": map[string]any{"name": "web", "idleMs": 3_600_000}}
	if got := d.output(d.runs(in, "--sandbox", "sh", "-c", "echo hi >/tmp/x")); got != "" {
		t.Errorf("%q", got)
	}
	id := d.runs(in, "--sandbox", "sh", "-c", "cat /tmp/x; exec sleep 600")
	if got := string(d.page(id)); got != "hi\n" {
		t.Errorf("%q", got)
	}
	type listed struct {
		Name, Workspace, Network string
		Running                  int
		IdleMs                   int
		IdleLeftMs               *int
		PID                      int
		StartedAtMs              int64
	}
	var all struct{ Sandboxes []listed }
	d.result(&all, "sandbox/list", nil)
	if len(all.Sandboxes) != 1 {
		t.Fatalf("%+v", all)
	}
	since := all.Sandboxes[0].StartedAtMs
	if since < begin.UnixMilli() || since > time.Now().UnixMilli() ||
		all.Sandboxes[0] != (listed{"web", dir, "none", 1, 3_600_000, nil, os.Getpid(), since}) {
		t.Errorf("%+v", all)
	}
	if r := d.start(map[string]any{"cwd": t.TempDir(), "sandbox": in["sandbox"]}, "--sandbox",
		"true"); r.Started || !strings.Contains(r.Result.Error,
		"cannot join the sandbox web: its workspace is") {
		t.Errorf("%+v", r)
	}
	var none struct{}
	d.result(&none, "sandbox/stop", map[string]any{"name": "web"})
	if res := d.over(id); !strings.Contains(res.Error, "the shared sandbox has ended") {
		t.Errorf("%+v", res)
	}
	if why := d.refused("sandbox/stop", map[string]any{"name": "web"}); why != "unknownSandbox" {
		t.Error(why)
	}
	for _, name := range []any{"", ".x", "a/b", 1, nil} {
		if m := d.call("run/start", map[string]any{"args": []string{"true"}, "cwd": dir,
			"sandbox": map[string]any{"name": name}}); m.Error == nil {
			t.Errorf("%v: %s", name, m.Result)
		}
	}
}
