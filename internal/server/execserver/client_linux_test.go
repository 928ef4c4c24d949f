// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// A speaker is a client's side of a connection.
type speaker interface {
	send(message []byte) error
	receive() ([]byte, error)
	close() error // cuts the connection
}

// errCut is what a server sees of a connection that its client has cut.
var errCut = errors.New("the connection was cut")

// An end is one of the two of a connection in memory. What it has written is read by the other one, also
// after its close; that then reads why it was closed.
type end struct {
	in    <-chan []byte
	out   chan<- []byte
	other *end
	over  chan struct{} // closed by close
	why   error         // set before over is closed
	once  sync.Once
	late  context.Context //nolint:containedctx // the end of all reads
}

// newPipe returns both ends of a connection that holds so many messages for the client.
func newPipe(ctx context.Context, holds int) (client, server *end) {
	to, from := make(chan []byte, 1024), make(chan []byte, holds)
	client = &end{in: from, out: to, over: make(chan struct{}), late: ctx}
	server = &end{in: to, out: from, over: make(chan struct{}), late: context.WithoutCancel(ctx)}
	client.other, server.other = server, client
	return client, server
}

// Read implements wire.Stream.
func (e *end) Read() ([]byte, error) {
	select {
	case m := <-e.in:
		return m, nil
	case <-e.over:
		return nil, io.ErrClosedPipe
	case <-e.late.Done():
		return nil, os.ErrDeadlineExceeded
	case <-e.other.over:
	}
	select {
	case m := <-e.in: // it was written before
		return m, nil
	default:
		return nil, e.other.why
	}
}

// Write implements wire.Stream.
func (e *end) Write(message []byte) error {
	select {
	case <-e.over:
	case <-e.other.over:
	default:
		select {
		case e.out <- bytes.Clone(message):
			return nil
		case <-e.over:
		case <-e.other.over:
		}
	}
	return io.ErrClosedPipe
}

// Close implements wire.Stream for the server, whose clients see a proper end.
func (e *end) Close() error { return e.closeWith(io.EOF) }

func (e *end) closeWith(why error) error {
	e.once.Do(func() {
		e.why = why
		close(e.over)
	})
	return nil
}

func (e *end) send(message []byte) error { return e.Write(message) }
func (e *end) receive() ([]byte, error)  { return e.Read() }
func (e *end) close() error              { return e.closeWith(errCut) }

// options are those of a server for tests.
func options() execserver.Options {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return execserver.Options{Version: "test", Dir: "/", Environ: os.Environ(),
		FileHelper: []string{program, fileHelper}}
}

// A testServer is a server, as clients of one credential see it.
type testServer struct {
	*execserver.Server
	serving    *sync.WaitGroup
	credential string
	session    string // that its clients open; empty for a new one
}

// run returns a server that is closed when the test ends.
func run(t testing.TB, o execserver.Options) testServer {
	t.Helper()
	s := testServer{execserver.New(o), new(sync.WaitGroup), "", ""}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.serving.Wait()
	})
	return s
}

// as returns the server for clients of another credential.
func (s testServer) as(credential string) testServer {
	s.credential = credential
	return s
}

// opening returns the server for clients that open a session with an ID.
func (s testServer) opening(session string) testServer {
	s.session = session
	return s
}

// connect returns a client of a server, which is closed when the test ends.
func connect(t testing.TB, s testServer) *end {
	t.Helper()
	return connectHolding(t, s, 2)
}

// connectHolding is connect for a connection that holds so many messages for the client.
func connectHolding(t testing.TB, s testServer, holds int) *end {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	client, server := newPipe(ctx, holds)
	s.serving.Go(func() { _ = s.ServeSession(server, s.credential, s.session) })
	t.Cleanup(func() { _ = client.close(); cancel() })
	return client
}

// A message is a message of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProcessID     string
		Seq           uint64
		Stream        string
		Chunk         []byte
		ExitCode      int
		SandboxDenied bool
		WatchID       int
		RequestID     string
		DeltaBase64   []byte
		Done          bool
		Error         *string
		ID            int
		RunID         string
		Event         json.RawMessage
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Reason   string
			ExitCode int
			By       string
			Session  string
		}
	} `json:"error"`
}

// A caller makes requests, one at a time, and keeps what comes between.
type caller struct {
	t testing.TB
	speaker
	id     int
	events []message // notifications
	// passed has the messages that came and that no until returned.
	passed []message
	// answered has the IDs of the answers that came, in JSON.
	answered map[string]bool
}

// call sends a request and returns the answer to it.
func (c *caller) call(method string, params any) message {
	c.t.Helper()
	c.id++
	c.post(map[string]any{"id": c.id, "method": method, "params": params})
	return c.until(func(m *message) bool { return string(m.ID) == fmt.Sprint(c.id) })
}

// post sends a message.
func (c *caller) post(v any) {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = c.send(text)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// sends sends a text: it takes long to encode a large message.
func (c *caller) sends(text string) {
	c.t.Helper()
	if err := c.send([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// until returns the first message that matches, of those that an earlier until passed by and of
// those that it receives. No message is returned twice: the order of an answer and of what the
// request causes is not promised.
func (c *caller) until(match func(*message) bool) message {
	c.t.Helper()
	for i := 0; ; i++ {
		if i == len(c.passed) {
			c.more()
		}
		if m := c.passed[i]; match(&m) {
			c.passed = slices.Delete(c.passed, i, i+1)
			return m
		}
	}
}

// more receives a message.
func (c *caller) more() {
	c.t.Helper()
	text, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	switch {
	case m.Method != "":
		c.events = append(c.events, m)
	case c.answered == nil:
		c.answered = map[string]bool{string(m.ID): true}
	default:
		c.answered[string(m.ID)] = true
	}
	c.passed = append(c.passed, m)
}

// await is until for a notification that an earlier until may have returned.
func (c *caller) await(match func(*message) bool) message {
	c.t.Helper()
	for i := range c.events {
		if match(&c.events[i]) {
			return c.events[i]
		}
	}
	return c.until(match)
}

// ended receives messages until the process has ended.
func (c *caller) ended(process string) {
	c.t.Helper()
	c.await(func(m *message) bool { return m.Method == "process/closed" && m.Params.ProcessID == process })
}

// greet makes or resumes a session and returns its ID.
func (c *caller) greet(resume any) string {
	c.t.Helper()
	m := c.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": resume,
		"extensionMethods": true})
	var result struct{ SessionID string }
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		c.t.Fatalf("%+v", m)
	}
	c.post(map[string]any{"method": "initialized"})
	return result.SessionID
}

// script returns parameters for a process that runs a shell script in dir.
func script(id, dir, text string) map[string]any {
	return map[string]any{
		"processId": id, "argv": []string{"sh", "-c", text}, "cwd": "file://" + dir,
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "pipeStdin": true,
	}
}
