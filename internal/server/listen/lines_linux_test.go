// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// socketOf runs a server of runs on a socket and returns its path.
func socketOf(t *testing.T, o Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	o.Listen = "unix://" + path
	run(t, o)
	return path
}

func connectTo(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func lineDriver(t *testing.T, path string) *driver {
	c := connectTo(t, path)
	return driveOn(t, &linePeer{c, bufio.NewReader(c)}, nil)
}

// TestUnixLines: a client of a socket may send lines from the first byte on, several at once. It has the runs
// of clients with WebSockets.
func TestUnixLines(t *testing.T) {
	path := socketOf(t, runOptions())
	lines, web := lineDriver(t, path), drive(t, "unix://"+path, nil, nil)
	id := lines.runs(nil, "echo", "hi")
	if got := web.output(id); got != "hi\n" {
		t.Errorf("%q", got)
	}
	id = web.runs(nil, "echo", "ho")
	if got := lines.output(id); got != "ho\n" {
		t.Errorf("%q", got)
	}
	c := connectTo(t, path)
	const hello = `{"id":1,"method":"initialize","params":{"clientName":"test","extensionMethods":true}}` + "\n" +
		`{"method":"initialized"}` + "\n" + `{"id":2,"method":"run/start","params":{"args":["true"],"cwd":"/"}}` + "\n"
	if _, err := io.Copy(c, iotest.OneByteReader(strings.NewReader(hello))); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for _, want := range []string{`"id":1,`, `"started":true`} {
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("%q, %v, want %s", line, err, want)
		}
	}
}

// TestUnixNoLines: where a token is needed, and for anything else than a message, there is HTTP.
func TestUnixNoLines(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := runOptions()
	guarded.Auth = Auth{Kind: AuthCapability, TokenFile: secret}
	for _, test := range []struct {
		name string
		o    Options
		text string
	}{
		{"token", guarded, `{"id":1,"method":"initialize","params":{"clientName":"test"}}` + "\n\r\n\r\n"},
		{"no message", runOptions(), "[]\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connectTo(t, socketOf(t, test.o))
			if _, err := io.WriteString(c, test.text); err != nil {
				t.Fatal(err)
			}
			if answer, _ := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
				t.Errorf("%q", answer)
			}
		})
	}
}

// TestTransient: a run of use to one connection ends with that, and its reader gets the result with the end of
// the output.
func TestTransient(t *testing.T) {
	url := run(t, runOptions())
	other := drive(t, url, nil, nil)
	list := func() (n int) {
		var all struct{ Runs []struct{ RunID string } }
		other.result(&all, "run/list", nil)
		return len(all.Runs)
	}
	own := drive(t, url, nil, nil)
	id := own.runs(map[string]any{"transient": true, "reader": true}, "sh", "-c", "echo hi; exit 3")
	var page struct {
		runPage
		Result *outcome
	}
	for after := 0; !page.Complete; after = page.Next {
		page.Result = nil
		own.result(&page, "run/read", map[string]any{"runId": id, "after": after, "waitMs": 60_000, "reader": map[string]any{}})
	}
	if page.Result == nil || page.Result.ExitCode != 3 || page.Result.Stdout != "" {
		t.Errorf("%+v", page.Result)
	}
	if why := own.refused("run/read", map[string]any{"runId": id, "after": 0}); why != "unknownRun" || list() != 0 {
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
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}, 60_000); n != 1 {
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
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d := drive(t, run(t, runOptions()), nil, nil)
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
	if since < begin.UnixMilli() || since > time.Now().UnixMilli() || all.Sandboxes[0] != (listed{"web", dir, "none", 1, 3_600_000, nil, os.Getpid(), since}) {
		t.Errorf("%+v", all)
	}
	if r := d.start(map[string]any{"cwd": t.TempDir(), "sandbox": in["sandbox"]}, "--sandbox", "true"); r.Started || !strings.Contains(r.Result.Error, "cannot join the sandbox web: its workspace is") {
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
		if m := d.call("run/start", map[string]any{"args": []string{"true"}, "cwd": dir, "sandbox": map[string]any{"name": name}}); m.Error == nil {
			t.Errorf("%v: %s", name, m.Result)
		}
	}
}

// A clocked connection notes the times that are set for reads, and its end.
type clocked struct {
	net.Conn
	times  []time.Time
	closed bool
}

func (c *clocked) SetReadDeadline(t time.Time) error { c.times = append(c.times, t); return nil }
func (c *clocked) Close() error                      { c.closed = true; return c.Conn.Close() }
func (c *clocked) Unwrap() net.Conn                  { return c.Conn }

// TestUnixTimes: a client has a time for its first byte and none afterwards, and is closed where it sends none
// or the server ends.
func TestUnixTimes(t *testing.T) {
	const hello = `{"id":1,"method":"initialize","params":{"clientName":"test"}}` + "\n"
	for _, test := range []struct {
		name, sends string
		over        bool // the server ends
		answer      string
	}{
		{"a message", hello, false, `{"id":1,`}, {"nothing", "", false, ""}, {"a message at the end", hello, true, ""}, {"another protocol at the end", "G", true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, ok := connectTo(t, path).(*net.UnixConn)
			own, err := l.Accept()
			if err != nil || !ok {
				t.Fatal(err)
			}
			server := execserver.New(execserver.Options{})
			defer server.Close()
			lines := &lineListener{door: newDoor(server, open), http: make(chan net.Conn), over: make(chan struct{})}
			if test.over {
				lines.door.close()
				close(lines.over)
			}
			if _, err := io.WriteString(client, test.sends); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c, before := &clocked{Conn: own}, time.Now()
			lines.serve(c)
			if len(c.times) != 2 || c.times[0].Before(before.Add(requestTime)) || !c.times[1].IsZero() || !c.closed || len(lines.door.slots) != 0 {
				t.Errorf("%v, closed %v, %d clients", c.times, c.closed, len(lines.door.slots))
			}
			text, err := io.ReadAll(client) // what was not read is a reset
			if !strings.HasPrefix(string(text), test.answer) || test.answer == "" && len(text) > 0 {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
