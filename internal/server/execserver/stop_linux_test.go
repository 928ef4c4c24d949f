// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shutDown begins the end of a server. Over gets its error.
func shutDown(t *testing.T, s testServer) (over <-chan error) {
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	return ended
}

// pipe makes a named pipe for scripts in dir, and returns what waits until a script opens it.
func pipe(t *testing.T, dir, base string) (open func() *os.File) {
	t.Helper()
	name := filepath.Join(dir, base)
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() *os.File {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
}

// TestStopRuns: a client that follows a run gets the output and the result after the server began to
// end, and its connection then ends properly.
func TestStopRuns(t *testing.T) {
	o, dir := runOptions(), t.TempDir()
	o.Drain = time.Minute
	server := run(t, o)
	d := drive(t, server, nil)
	printed := pipe(t, dir, "pipe")
	var started struct{ RunID string }
	d.result(&started, "run/start",
		map[string]any{"args": []string{"sh", "-c", "echo before; exec 3>pipe; exec sleep 600"}, "cwd": dir})
	printed()
	over := shutDown(t, server)
	var waited struct{ Result outcome }
	d.result(&waited, "run/wait", map[string]any{"runId": started.RunID, "for": map[string]any{"exit": true}})
	var read struct {
		Chunks   []struct{ Chunk []byte }
		Complete bool
	}
	d.result(&read, "run/read", map[string]any{"runId": started.RunID, "after": 0})
	var got struct{ Result outcome }
	d.result(&got, "run/result", map[string]any{"runId": started.RunID})
	if waited.Result.ExitCode != 137 || got.Result.ExitCode != 137 || !read.Complete ||
		len(read.Chunks) != 1 || string(read.Chunks[0].Chunk) != "before\n" {
		t.Errorf("%+v, %+v, %+v", waited, read, got)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestStopNotReady: a server that ends starts nothing, while it waits for a run that was asked to end.
func TestStopNotReady(t *testing.T) {
	o, dir := runOptions(), t.TempDir()
	o.Drain = time.Minute
	server := run(t, o)
	d := drive(t, server, nil)
	runs, ending, release := pipe(t, dir, "runs"), pipe(t, dir, "ending"), pipe(t, dir, "go")
	const script = "trap 'echo >ending; echo >go; exit 0' TERM; echo >runs; sleep 600 & wait"
	id := d.runs(map[string]any{"cwd": dir}, "--grace", "sh", "-c", script)
	runs()
	over := shutDown(t, server)
	ending()
	if reason := d.refused("run/start", map[string]any{"args": []string{"true"},
		"cwd": dir}); reason != "closing" {
		t.Errorf("another run: %q", reason)
	}
	if m := d.call("process/start", map[string]any{"processId": "p", "argv": []string{"true"},
		"cwd": "file:///", "env": map[string]string{}, "tty": false}); m.Error == nil ||
		m.Error.Message != "the server is closing" {
		t.Errorf("another process: %s, %+v", m.Result, m.Error)
	}
	release()
	if res := d.over(id); res.End != "canceled" || res.ExitCode != 143 {
		t.Errorf("%+v", res)
	}
	_ = d.close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestStopNotReading: a client that does not read holds up the end of a server for a bounded time.
func TestStopNotReading(t *testing.T) {
	o := options()
	o.Drain = 10 * time.Millisecond
	server, dir := run(t, o), t.TempDir()
	c := &caller{t: t, speaker: connectHolding(t, server, 0)} // the first message to it waits
	c.greet(nil)
	open := pipe(t, dir, "pipe")
	c.started(script("held", dir, "exec 3>pipe; exec sleep 600"))
	open()
	over := shutDown(t, server)
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server waits for a client that does not read")
	}
}

// TestStopHTTP: an HTTP request that waits is answered at the end of a server.
func TestStopHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := options()
	o.Drain, o.AllowHTTP = time.Minute, true
	server := run(t, o)
	c, _ := meet(t, server, nil)
	c.post(map[string]any{"id": "http", "method": "http/request",
		"params": map[string]any{"method": "GET", "url": "http://" + l.Addr().String(), "requestId": "r"}})
	silent, err := l.Accept() // the request is on its way, and gets no answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	over := shutDown(t, server)
	m := c.until(func(m *message) bool { return string(m.ID) == `"http"` })
	if m.Error == nil || !strings.Contains(m.Error.Message, "the server is closed") {
		t.Errorf("%s, %+v", m.Result, m.Error)
	}
	_ = c.close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
