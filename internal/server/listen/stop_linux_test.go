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
				c, _ = meet(t, url, nil)
			}
			printed := pipe(t, dir, "pipe")
			c.start(dir, fmt.Sprintf("head -c %d /dev/zero; exec 3>pipe; exec sleep 600", size), nil)
			c.post(map[string]any{"id": "parked", "method": "process/read",
				"params": map[string]any{"processId": "p", "afterSeq": 1 << 30, "waitMs": 600_000}})
			c.served() // the read waits
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
	answered := false
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
			answered = true
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
	if !answered {
		t.Error("the read that waited has no answer")
	}
}

// holdUp returns when a server has begun to end whose client does not read. Pipes in memory hold
// nothing, so the first message to it waits.
func holdUp(t *testing.T, c *caller, stop func()) {
	t.Helper()
	dir := t.TempDir()
	open := pipe(t, dir, "pipe")
	c.start(dir, "exec 3>pipe; exec sleep 600", nil)
	held := open()
	stop()
	if _, err := io.ReadAll(held); err != nil { // it ends with the process
		t.Fatal(err)
	}
}

// TestStopNotReady: a server that ends takes no further client and is not ready any more, while it
// waits for its clients.
func TestStopNotReady(t *testing.T) {
	over := make(chan struct{})
	l := pipes{make(chan net.Conn), over, sync.OnceFunc(func() { close(over) })}
	o := options()
	o.Server.Drain, o.Stdout = time.Hour, discard{}
	ctx, stop := context.WithCancel(t.Context())
	hurry, now := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(ctx, hurry, o, open, l, "url") }()
	t.Cleanup(func() { stop(); now() })
	dialIn := func() net.Conn {
		client, own := net.Pipe()
		l.conns <- own
		deadline(t, &webSocket{Conn: client})
		return client
	}
	asks := dialIn()
	in := bufio.NewReader(asks)
	ready := func(want int) {
		t.Helper()
		if _, err := io.WriteString(asks, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
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
	w, response, err := upgrade(dialIn(), nil)
	if err != nil || w == nil {
		t.Fatalf("%v, %v", response, err)
	}
	c := &caller{t: t, speaker: w}
	c.greet(nil)
	holdUp(t, c, stop)
	select {
	case <-over:
	default:
		t.Error("further connections are accepted")
	}
	ready(http.StatusServiceUnavailable)
	now()
	if err := <-ended; err != nil {
		t.Error(err)
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
