// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A line connects to a server and is cut by a test.
type line struct {
	server *execserver.Server
	mu     sync.Mutex
	dials  int
	gate   chan struct{} // not nil: a connection waits for its end
	// before is called with each message to the server; when it reports true the line is cut after
	// it. Nil is not called.
	before func(message string) bool
}

func (l *line) dial(ctx context.Context) (wire.Stream, error) {
	l.mu.Lock()
	gate, server := l.gate, l.server
	l.dials++
	l.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s, err := Near(ctx, server)
	return &wireTap{s, l}, err
}

type wireTap struct {
	wire.Stream
	line *line
}

func (w *wireTap) Write(message []byte) error {
	w.line.mu.Lock()
	before := w.line.before
	w.line.mu.Unlock()
	err := w.Stream.Write(message)
	if before != nil && before(string(message)) {
		_ = w.Close()
	}
	return err
}

// newLine returns a line to a new server and an executor on it. Logs are the directory of the
// server's logs; empty for none.
func newLine(t *testing.T, logs string) (*line, *Executor) {
	t.Helper()
	l := &line{server: execserver.New(execserver.Options{Dir: "/srv", Version: "test", LogDir: logs})}
	e := NewOn(l.dial, Options{Environment: "test"})
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), l.server.Close()); err != nil {
			t.Error(err)
		}
	})
	return l, e
}

// shellSpec returns a Spec that runs a script.
func shellSpec(script string) *executor.Spec {
	return &executor.Spec{Args: []string{"/bin/sh", "-c", script}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin"}, PipeStdin: true}
}

// start starts a Spec with full access.
func start(t *testing.T, e *Executor, s *executor.Spec) *process {
	t.Helper()
	s.Policy = sandbox.FullAccess()
	p, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	own, ok := p.(*process)
	if !ok {
		t.Fatalf("%T", p)
	}
	return own
}

// TestLazy: the first use connects, once for all who use it then.
func TestLazy(t *testing.T) {
	l, e := newLine(t, "")
	if l.dials != 0 {
		t.Errorf("%d connections before the first use", l.dials)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if info, err := e.Host(t.Context()); err != nil || info.Local || info.OS != "linux" ||
				info.Environment != "test" {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
	wg.Wait()
	if l.dials != 1 {
		t.Errorf("%d connections", l.dials)
	}
}

// TestPlaces: paths and shells are those of the server.
func TestPlaces(t *testing.T) {
	_, e := newLine(t, "")
	for _, test := range []struct{ dir, tmp, want string }{
		{"", "", "/srv  /tmp"},
		{"a/../b", "host", "/srv/b /my/tmp /tmp"},
		{"/nonexistent/", "", "/nonexistent  /tmp"},
	} {
		places, err := e.Places(t.Context(), test.dir, []string{"TMPDIR=/other", "TMPDIR=/my/tmp"}, test.tmp)
		if got := strings.Join([]string{places.Dir, places.TmpDir, places.SlashTmp}, " "); err != nil ||
			got != test.want || places.Minimal != nil {
			t.Errorf("%q: %q, %v, want %q", test.dir, got, err, test.want)
		}
	}
	if _, err := e.Places(t.Context(), "a\x00", nil, ""); err == nil {
		t.Error("NUL")
	}
	if argv, err := e.Shell(t.Context(), "sh", "x y", false); err != nil ||
		!slices.Equal(argv, []string{"/bin/sh", "-c", "x y"}) {
		t.Errorf("%q, %v", argv, err)
	}
	if argv, err := e.Shell(t.Context(), "", "x", true); err != nil || len(argv) != 3 || argv[2] != "x" {
		t.Errorf("%q, %v", argv, err)
	}
	if _, err := e.Shell(t.Context(), "fish", "x", false); err == nil {
		t.Error("fish")
	}
}

// TestLostOutput: what is printed while the connection is cut comes from memory and from disk; of what a
// server did not retain every byte is counted, and Wait says so.
func TestLostOutput(t *testing.T) {
	t.Run("no disk", func(t *testing.T) { flood(t, "", true) })
	t.Run("on disk", func(t *testing.T) { flood(t, t.TempDir(), false) })
}

// flood has a process print 3 MB while the connection is cut.
func flood(t *testing.T, logs string, loses bool) {
	l, e := newLine(t, logs)
	s := shellSpec("echo first; read x; head -c 3000000 /dev/zero; echo last; exit 4")
	s.Retain.Memory = 8 << 20
	first, seen, last := make(chan struct{}), 0, ""
	s.OnOutput = func(_ executor.Stream, p []byte) {
		if seen == 0 {
			close(first)
		}
		seen += len(p)
		last = (last + string(p))[max(0, len(last)+len(p)-5):]
	}
	p := start(t, e, s)
	<-first
	gate, sent := make(chan struct{}), make(chan struct{})
	var once sync.Once
	request := ""
	l.mu.Lock()
	l.before = func(message string) bool {
		cut := false
		if strings.Contains(message, `"process/write"`) {
			once.Do(func() { cut, request = true, message; close(sent) })
		}
		return cut
	}
	l.gate = gate
	l.mu.Unlock()
	written := make(chan error, 1)
	go func() {
		_, err := p.Write([]byte("go\n"))
		written <- err
	}()
	<-sent
	awaitClosed(t, l, p, request)
	close(gate)
	if err := <-written; err != nil {
		t.Errorf("Write: %v", err)
	}
	exit, err := p.Wait()
	lost := new(LostOutputError)
	if errors.As(err, &lost) != loses || (err != nil) != loses || exit.Code != 4 ||
		(lost.Bytes > 0) != loses || seen+int(lost.Bytes) != 6+3_000_000+5 ||
		!strings.HasSuffix(last, "last\n") {
		t.Errorf("%+v, %v, %d bytes seen", exit, err, seen)
	}
	if total, missing := p.Output().Size(); total != 3_000_011 || missing != lost.Bytes {
		t.Errorf("%d bytes, %d missing", total, missing)
	}
}

// awaitClosed waits until the server has seen the end of the process, by another connection that
// takes the session over for that time. Request is one that the cut may have lost, and that a server which
// has it performs once.
func awaitClosed(t *testing.T, l *line, p *process, request string) {
	t.Helper()
	s, err := Near(t.Context(), l.server)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ask := func(text string) wire.ReadResult {
		if err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for {
			answer, err := s.Read()
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     int
				Result wire.ReadResult
				Error  *wire.Error
			}
			if json.Unmarshal(answer, &m) != nil || m.Error != nil {
				t.Fatalf("%s", answer)
			}
			if m.ID != 0 {
				return m.Result
			}
		}
	}
	ask(fmt.Sprintf(`{"id":1,"method":"initialize","params":{"clientName":"x","takeOver":true,"resumeSessionId":%q}}`, p.client.Server().SessionID))
	if err := s.Write([]byte(`{"method":"initialized"}`)); err != nil {
		t.Fatal(err)
	}
	ask(request)
	for after := uint64(0); ; {
		page := ask(fmt.Sprintf(`{"id":2,"method":"process/read","params":{"processId":%q,"afterSeq":%d,"waitMs":60000}}`, p.id, after))
		if page.Closed {
			return
		}
		after = page.NextSeq - 1
	}
}

// TestLostSession: when the session is lost, its processes say so, and the next command gets a new
// one.
func TestLostSession(t *testing.T) {
	l, e := newLine(t, "")
	first, exits := make(chan struct{}), 0
	s := shellSpec("echo ready; read x")
	s.OnOutput = func(executor.Stream, []byte) { close(first) }
	s.OnExit = func(int, int) { exits++ }
	p := start(t, e, s)
	<-first
	l.mu.Lock()
	old := l.server
	l.server = execserver.New(execserver.Options{Dir: "/srv"})
	l.mu.Unlock()
	if err := old.Close(); err != nil { // the new one does not know the session
		t.Error(err)
	}
	exit, err := p.Wait()
	var failure *Error
	if !errors.As(err, &failure) || failure.Class != ClassTransport ||
		failure.Code() != wire.CodeInvalidRequest || exit == nil {
		// The end of the process may have been told before the connection ended.
		if err != nil || exit.Code != 137 {
			t.Errorf("%+v, %v", exit, err)
		}
	} else if exits != 0 || exit.Code != -1 {
		t.Errorf("%d exits, %+v", exits, exit)
	}
	if exit, err := start(t, e, shellSpec("exit 3")).Wait(); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestStartCut: a start whose answer is lost with the connection is performed once.
func TestStartCut(t *testing.T) {
	l, e := newLine(t, "")
	if _, err := e.Host(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cut := make(chan struct{}, 1)
	cut <- struct{}{}
	l.mu.Lock()
	l.before = func(message string) bool {
		if !strings.Contains(message, `"process/start"`) {
			return false
		}
		select {
		case <-cut:
			return true
		default:
			return false
		}
	}
	l.mu.Unlock()
	s := shellSpec("echo ran >>ran; read line; cat ran") // it cannot end before the line is cut
	s.Dir = dir
	out := ""
	s.OnOutput = func(_ executor.Stream, p []byte) { out += string(p) }
	p := start(t, e, s)
	if _, err := p.Write([]byte("go\n")); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 || out != "ran\n" || l.dials != 2 {
		t.Errorf("%+v, %v, %q after %d connections", exit, err, out, l.dials)
	}
}

// play is a server that answers requests as reply says, until its client closes.
func play(t *testing.T, server wire.Stream, reply func(m *wire.Message) (any, *wire.Error)) {
	for {
		text, err := server.Read()
		if err != nil {
			return
		}
		m, err := wire.DecodeMessage(text)
		if err != nil {
			t.Error(err)
			return
		}
		if m.Method == "initialized" {
			continue
		}
		result, failure := reply(m)
		answer, err := wire.Response(m.ID, result)
		if failure != nil {
			answer, err = wire.Failure(m.ID, failure)
		}
		if err != nil || server.Write(answer) != nil {
			return
		}
	}
}

// TestWeakerSandbox: a process that a server started without the sandbox is ended.
func TestWeakerSandbox(t *testing.T) {
	client, server := net.Pipe()
	ended := make(chan string, 1)
	go play(t, wire.LinesOn(server), func(m *wire.Message) (any, *wire.Error) {
		switch m.Method {
		case "initialize":
			return map[string]any{"sessionId": "s",
				"environmentInfo": map[string]any{"capabilities": map[string]bool{"processPrivateTmp": true}}}, nil
		case "process/start":
			return wire.StartResult{SandboxType: "none"}, nil
		case "process/terminate":
			ended <- string(m.Params)
		}
		return struct{}{}, nil
	})
	e := New(Options{Dial: func(context.Context) (io.ReadWriteCloser, error) {
		return client,
			nil
	}, Resume: -1})
	s := shellSpec("exit 0")
	s.Policy = sandbox.ReadOnly().Bind(sandbox.Places{Dir: "/"})
	_, err := e.Start(t.Context(), s)
	if err == nil {
		t.Fatal("it runs")
	}
	var unsupported *sandbox.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(),
		"sandbox policy read-only is not supported by this executor") {
		t.Errorf("%v", err)
	}
	if id := <-ended; !strings.Contains(id, "sallyport-") {
		t.Errorf("%s was ended", id)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestBusy: OnOutput may write input while much output waits. The wall is process.calls.
func TestBusy(t *testing.T) {
	_, e := newLine(t, "")
	s := shellSpec("head -c 12000000 /dev/zero; read x; echo $x")
	ready, got, last := make(chan *process, 1), 0, ""
	s.OnOutput = func(_ executor.Stream, data []byte) {
		if got == 0 {
			p := <-ready
			p.mu.Lock()
			for p.events.size < maxQueue {
				p.changed.Wait()
			}
			p.mu.Unlock()
			if _, err := p.Write([]byte("word\n")); err != nil {
				t.Error(err)
			}
		}
		got += len(data)
		last = (last + string(data))[max(0, len(last)+len(data)-5):]
	}
	p := start(t, e, s)
	ready <- p
	if exit, err := p.Wait(); err != nil || exit.Code != 0 || got != 12_000_005 || last != "word\n" {
		t.Errorf("%+v, %v, %d bytes", exit, err, got)
	}
}

// TestClosed: Close ends what runs, and nothing starts after it.
func TestClosed(t *testing.T) {
	_, e := newLine(t, "")
	p := start(t, e, shellSpec("trap '' TERM; cat; cat"))
	p.spec.Grace = -1
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(); err != nil || !exit.Stopped {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := e.Start(t.Context(), shellSpec("")); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := e.Host(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestStopAfterExit: a stop of what a command has left is not why the command ended.
func TestStopAfterExit(t *testing.T) {
	_, e := newLine(t, "")
	s := shellSpec("sleep 600 & exit 3")
	s.AwaitStreams = true
	p := start(t, e, s)
	<-p.ended
	p.Stop()
	exit, err := p.Wait()
	if err != nil || exit.Code != 3 || exit.Stopped {
		t.Errorf("%+v, %v", exit, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		t.Error("the stop counts as the cause")
	}
}

// TestQueueBound: output that no one takes holds up the connection at 8 MiB, unless a request waits for an
// answer behind it.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{events: newSorter()}
		p.changed.L = &p.mu
		taken := func() int {
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.events.ready)
		}
		go func() {
			for seq := range uint64(100) {
				p.take(seq+1, event{kind: kindOutput, data: make([]byte, 1<<20)})
			}
		}()
		if n := taken(); n != 8 {
			t.Errorf("%d MiB wait", n)
		}
		p.mu.Lock()
		p.calls++
		p.changed.Broadcast()
		p.mu.Unlock()
		if n := taken(); n != 64 {
			t.Errorf("%d MiB wait behind a request", n)
		}
		p.mu.Lock()
		p.err = errFlood
		p.changed.Broadcast()
		p.mu.Unlock()
	})
}
