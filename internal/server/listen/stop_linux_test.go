// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stoppable runs a server until stop is called, or the test ends. Over gets the error of Run.
func stoppable(t *testing.T, o Options) (url string, stop func(), over <-chan error) {
	t.Helper()
	r, w := io.Pipe()
	o.Stdout = w
	ctx, cancel := context.WithCancel(t.Context())
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		ended <- Run(ctx, o)
	}()
	t.Cleanup(func() { cancel(); <-gone })
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url), cancel, ended
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

// TestStopTells: the end of a server tells clients the output and the exit of their processes, and
// answers reads that wait, before it closes their connections properly.
func TestStopTells(t *testing.T) {
	const size = 300_000
	for _, transport := range []string{"tcp", "unix", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			o, dir := options(), t.TempDir()
			o.Server.Drain = time.Minute
			var c *caller
			var stop func()
			var over <-chan error
			if transport == "stdio" {
				c, stop, over = stoppableLines(t, o)
			} else {
				if transport == "unix" {
					o.Listen = "unix://" + filepath.Join(dir, "s")
				}
				var url string
				url, stop, over = stoppable(t, o)
				c, _ = meet(t, url, nil, nil)
			}
			printed := pipe(t, dir, "pipe")
			c.started(script("p", dir, fmt.Sprintf("head -c %d /dev/zero; exec 3>pipe; exec sleep 600", size)))
			c.post(map[string]any{"id": "parked", "method": "process/read", "params": map[string]any{"processId": "p", "afterSeq": 1 << 30, "waitMs": 600_000}})
			if m := c.call("environment/status", nil); m.Error != nil { // the read waits
				t.Fatalf("%+v", m.Error)
			}
			printed()
			stop()
			checkEnd(t, c, size)
			if err := <-over; err != nil {
				t.Error(err)
			}
			if w, ok := c.speaker.(*webSocket); ok && w.code != 1001 {
				t.Errorf("the connection was closed with %d, want 1001", w.code)
			}
		})
	}
}

// stoppableLines is stoppable for a client on lines.
func stoppableLines(t *testing.T, o Options) (c *caller, stop func(), over <-chan error) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	o.Listen, o.Stdin, o.Stdout = "stdio", in, out
	ctx, cancel := context.WithCancel(t.Context())
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		ended <- Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		_ = fromServer.Close()
		<-gone
	})
	c = &caller{t: t, speaker: &linePeer{toServer, bufio.NewReader(fromServer)}}
	c.greet(nil)
	return c, cancel, ended
}

// checkEnd receives all that the server sends, and checks that it is the whole story of the process.
func checkEnd(t *testing.T, c *caller, size int) {
	t.Helper()
	for {
		text, err := c.receive()
		if errors.Is(err, io.EOF) {
			break
		}
		var m message
		if err != nil || json.Unmarshal(text, &m) != nil {
			t.Fatalf("%q, %v", text, err)
		}
		if m.Method != "" {
			c.events = append(c.events, m)
		} else if string(m.ID) == `"parked"` && bytes.Contains(m.Result, []byte(`"closed":true`)) {
			c.answered[`"parked"`] = true
		}
	}
	got, ends := 0, ""
	for i, m := range c.events {
		if m.Params.Seq != uint64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, m.Params.Seq)
		}
		got += len(m.Params.Chunk)
		if m.Method != "process/output" {
			ends += m.Method + " "
		}
		if m.Method == "process/exited" && m.Params.ExitCode != 137 {
			t.Errorf("exit code %d", m.Params.ExitCode)
		}
	}
	if got != size || ends != "process/exited process/closed " {
		t.Errorf("%d bytes and %s, want %d bytes, the exit and the end", got, ends, size)
	}
	if !c.answered[`"parked"`] {
		t.Error("the read that waited has no answer")
	}
}

// TestStopRuns: a client that follows a run gets the output and the result after the server began to
// end, and its connection then ends properly.
func TestStopRuns(t *testing.T) {
	o, dir := runOptions(), t.TempDir()
	o.Server.Drain = time.Minute
	url, stop, over := stoppable(t, o)
	d := drive(t, url, nil, nil)
	printed := pipe(t, dir, "pipe")
	var started struct{ RunID string }
	d.result(&started, "run/start", map[string]any{"args": []string{"sh", "-c", "echo before; exec 3>pipe; exec sleep 600"}, "cwd": dir})
	printed()
	stop()
	var waited struct{ Result outcome }
	d.result(&waited, "run/wait", map[string]any{"runId": started.RunID, "for": map[string]any{"exit": true}})
	var read struct {
		Chunks   []struct{ Chunk []byte }
		Complete bool
	}
	d.result(&read, "run/read", map[string]any{"runId": started.RunID, "after": 0})
	var got struct{ Result outcome }
	d.result(&got, "run/result", map[string]any{"runId": started.RunID})
	if waited.Result.ExitCode != 137 || got.Result.ExitCode != 137 || !read.Complete || len(read.Chunks) != 1 || string(read.Chunks[0].Chunk) != "before\n" {
		t.Errorf("%+v, %+v, %+v", waited, read, got)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// lateHelper is the argument with which this program ends some time after SIGTERM: it opens the named
// pipe runs when that has a reader, and after the signal ending; then it ends with a byte from go.
const lateHelper = "late"

func endsLate() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if err := os.WriteFile("runs", nil, 0); err != nil {
		panic(err)
	}
	<-asked
	if err := os.WriteFile("ending", nil, 0); err != nil {
		panic(err)
	}
	f, err := os.Open("go")
	if err == nil {
		_, err = f.Read(make([]byte, 1))
	}
	if err != nil {
		panic(err)
	}
}

// lateRelease makes the named pipe go in dir, and returns what lets the helper end. The pipe holds the
// byte until the helper reads it.
func lateRelease(t *testing.T, dir string) func() {
	t.Helper()
	name := filepath.Join(dir, "go")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return sync.OnceFunc(func() { _, _ = f.WriteString("x") })
}

// TestStopNotReady: a server that ends takes no further client and is not ready any more, while it
// waits for a run that was asked to end.
func TestStopNotReady(t *testing.T) {
	o, dir := runOptions(), t.TempDir()
	o.Server.Drain = time.Minute
	release := lateRelease(t, dir)
	url, stop, over := stoppable(t, o)
	t.Cleanup(release)
	address := strings.TrimPrefix(url, "ws://")
	d := drive(t, url, nil, nil)
	runs, ending := pipe(t, dir, "runs"), pipe(t, dir, "ending")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ RunID string }
	d.result(&started, "run/start", map[string]any{"cwd": dir, "args": []string{"--grace", program, lateHelper}})
	runs()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	deadline(t, &webSocket{Conn: conn})
	in := bufio.NewReader(conn)
	ready := func(want int) {
		t.Helper()
		if _, err := io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _ = io.Copy(io.Discard, r.Body); r.StatusCode != want {
			t.Errorf("/readyz has the status %d, want %d", r.StatusCode, want)
		}
	}
	ready(http.StatusOK)
	stop()
	ending()
	ready(http.StatusServiceUnavailable)
	if late, err := net.Dial("tcp", address); err == nil {
		_ = late.Close()
		t.Error("a further connection was accepted")
	}
	if reason := d.refused("run/start", map[string]any{"args": []string{"true"}, "cwd": dir}); reason != "closing" {
		t.Errorf("another run: %q", reason)
	}
	if m := d.call("process/start", script("p", dir, "true")); m.Error == nil || m.Error.Message != "the server is closing" {
		t.Errorf("another process: %s, %+v", m.Result, m.Error)
	}
	release()
	var waited struct{ Result outcome }
	d.result(&waited, "run/wait", map[string]any{"runId": started.RunID, "for": map[string]any{"exit": true}})
	if waited.Result.End != "canceled" || waited.Result.ExitCode != 143 {
		t.Errorf("%+v", waited)
	}
	_ = d.close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// holdUp returns when a server has begun to end whose client does not read. Pipes in memory hold
// nothing, so the first message to it waits.
func holdUp(t *testing.T, c *caller, stop func()) {
	t.Helper()
	dir := t.TempDir()
	open := pipe(t, dir, "pipe")
	c.started(script("held", dir, "exec 3>pipe; exec sleep 600"))
	held := open()
	stop()
	if _, err := io.ReadAll(held); err != nil { // it ends with the process
		t.Fatal(err)
	}
}

// TestStopNotReading: a client that does not read holds up the end of a server for a bounded time.
func TestStopNotReading(t *testing.T) {
	o := options()
	o.Server.Drain = 10 * time.Millisecond
	c, stop, over := stoppableLines(t, o)
	holdUp(t, c, stop)
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server waits for a client that does not read")
	}
}

// TestStopTwice: a second signal ends the wait for clients.
func TestStopTwice(t *testing.T) {
	o := options()
	o.Server.Drain = time.Hour
	c, _, over := stoppableLines(t, o)
	term := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	holdUp(t, c, term)
	term()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server goes on waiting for a client after the second signal")
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
	o.Server.Drain, o.Server.AllowHTTP = time.Minute, true
	url, stop, over := stoppable(t, o)
	c, _ := meet(t, url, nil, nil)
	c.post(map[string]any{"id": "http", "method": "http/request", "params": map[string]any{"method": "GET", "url": "http://" + l.Addr().String(), "requestId": "r"}})
	silent, err := l.Accept() // the request is on its way, and gets no answer
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	stop()
	m := c.until(func(m *message) bool { return string(m.ID) == `"http"` })
	if m.Error == nil || !strings.Contains(m.Error.Message, "the server is closed") {
		t.Errorf("%s, %+v", m.Result, m.Error)
	}
	_ = c.close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
