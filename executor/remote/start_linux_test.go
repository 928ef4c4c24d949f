// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A scripted server answers requests as a test says.
type scripted struct {
	t *testing.T
	// reply answers a request on the connection with that number, from 1. Nil cuts the connection.
	reply func(conn int, m *wire.Message) any
	// dialed is called with the number of a connection before it is made. Nil is not called.
	dialed func(ctx context.Context, conn int) error

	mu    sync.Mutex
	conns int
	asked []string // methods about processes
	work  sync.WaitGroup
}

func (s *scripted) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	if s.dialed != nil {
		if err := s.dialed(ctx, n); err != nil {
			return nil, err
		}
	}
	client, server := net.Pipe()
	s.work.Go(func() {
		defer server.Close()
		s.serve(n, wire.LinesOn(server))
	})
	return client, nil
}

func (s *scripted) serve(conn int, server wire.Stream) {
	for {
		text, err := server.Read()
		if err != nil {
			return
		}
		m, err := wire.DecodeMessage(text)
		if err != nil {
			s.t.Error(err)
			return
		}
		if m.Method == "initialized" {
			continue
		}
		if m.Method != "initialize" {
			s.mu.Lock()
			s.asked = append(s.asked, m.Method)
			s.mu.Unlock()
		}
		answer := s.reply(conn, m)
		failure, fails := answer.(*wire.Error)
		text, err = wire.Response(m.ID, answer)
		if fails {
			text, err = wire.Failure(m.ID, failure)
		}
		if answer == nil || err != nil || server.Write(text) != nil {
			return
		}
	}
}

// count returns how often a method was asked for.
func (s *scripted) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.asked {
		if m == method {
			n++
		}
	}
	return n
}

func refusal(text string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: text}
}

var (
	greeted = map[string]any{"sessionId": "s",
		"environmentInfo": map[string]any{"capabilities": map[string]bool{"processPrivateTmp": true}}}
	exists   = refusal("process p already exists")
	notKnown = refusal("unknown process id p")
	starting = refusal("process id p is starting")
)

// A lostStart is a start of which answers are lost, and what becomes of it.
type lostStart struct {
	name   string
	inside bool  // of a sandbox
	start  []any // answers; the last one again and again
	read   []any
	hello  []any
	class  Class
	runs   bool // Start has no error
	starts int
	kills  bool
}

// lostStarts are the cases of TestStartUnknown.
func lostStarts() []lostStart {
	ended := wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: 3, Exited: true,
		ExitCode: new(int), Closed: true}
	withSandbox := func(kind string) wire.ReadResult { r := ended; r.SandboxType = kind; return r }
	return []lostStart{
		{name: "exists and has ended", start: []any{nil, exists}, read: []any{ended}, runs: true, starts: 2},
		{name: "cut three times", start: []any{nil, nil, nil, exists}, read: []any{ended}, runs: true, starts: 4},
		{name: "exists in the sandbox", inside: true, start: []any{nil, exists}, read: []any{withSandbox("linuxSeccomp")}, runs: true, starts: 2},
		{name: "exists in no sandbox", inside: true, start: []any{nil, exists}, read: []any{withSandbox("none")}, class: ClassUnsupported, starts: 2, kills: true},
		{name: "the sandbox is not told", inside: true, start: []any{nil, exists}, read: []any{ended}, class: ClassTransport, starts: 2, kills: true},
		{name: "is being started", start: []any{nil, exists}, read: []any{starting, starting, ended}, runs: true, starts: 4},
		{name: "is being started for ever", start: []any{nil, exists}, read: []any{starting}, class: ClassTransport, starts: 1 + maxAsks, kills: true},
		{name: "dropped once", start: []any{nil, exists, refusal("performed")}, class: ClassSpawn, starts: 3},
		{name: "dropped again and again", start: []any{exists}, class: ClassTransport, starts: maxAsks, kills: true},
		{name: "refused after a cut", start: []any{nil, refusal("no such thing")}, class: ClassSpawn, starts: 2},
		{name: "the session is gone", start: []any{nil}, hello: []any{greeted, refusal("unknown session id s")}, class: ClassTransport, starts: 1},
		{name: "no answer is understood", start: []any{7}, class: ClassTransport, starts: 1, kills: true},
		{name: "refused", start: []any{refusal("no")}, class: ClassSpawn, starts: 1},
	}
}

// TestStartUnknown: a start without an answer is asked about; where the server does not tell whether
// the process runs, the error says that the end is not known, and what may run is ended. What did not
// run is told apart.
func TestStartUnknown(t *testing.T) {
	for _, test := range lostStarts() {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next := func(list *[]any) any {
					answer := (*list)[0]
					if len(*list) > 1 {
						*list = (*list)[1:]
					}
					return answer
				}
				hello := test.hello
				if hello == nil {
					hello = []any{greeted}
				}
				s := &scripted{t: t, reply: func(_ int, m *wire.Message) any {
					switch m.Method {
					case "initialize":
						return next(&hello)
					case "process/start":
						return next(&test.start)
					case "process/read":
						if test.read == nil {
							return notKnown
						}
						return next(&test.read)
					}
					return struct{}{}
				}}
				e := New(Options{Dial: s.dial})
				spec := shellSpec("true")
				spec.Policy = sandbox.FullAccess()
				if test.inside {
					spec.Policy = sandbox.ReadOnly().Bind(sandbox.Places{Dir: "/"})
				}
				p, err := e.Start(t.Context(), spec)
				var failure *Error
				switch {
				case test.runs && err == nil:
					if exit, err := p.Wait(); err != nil || exit.Code != 0 {
						t.Errorf("%+v, %v", exit, err)
					}
				case test.runs || !errors.As(err, &failure) || failure.Class != test.class:
					t.Errorf("%v, want class %d", err, test.class)
				}
				if got := errors.Is(err, executor.ErrEndUnknown); got != (test.class == ClassTransport) {
					t.Errorf("%v: the end is unknown: %v", err, got)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				s.work.Wait()
				if n := s.count("process/start"); n != test.starts {
					t.Errorf("%d starts, want %d", n, test.starts)
				}
				if kills := s.count("process/terminate") > 0; kills != test.kills {
					t.Errorf("ended: %v", kills)
				}
			})
		})
	}
}

// TestStartNotSent: a start that reached no server is known not to run.
func TestStartNotSent(t *testing.T) {
	none := errors.New("no route")
	e := New(Options{Dial: func(context.Context) (io.ReadWriteCloser, error) { return nil, none }})
	defer e.Close()
	spec := shellSpec("true")
	spec.Policy = sandbox.FullAccess()
	_, err := e.Start(t.Context(), spec)
	var failure *Error
	if !errors.As(err, &failure) || failure.Class != ClassSpawn || errors.Is(err, executor.ErrEndUnknown) ||
		!errors.Is(err, none) {
		t.Errorf("%v", err)
	}
}

// TestStartLate: after a cut that lasts longer than servers surely know an ID, the start is not sent
// again: it would be a second one. The wall is sureTime.
func TestStartLate(t *testing.T) {
	for _, runs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			s := &scripted{t: t, dialed: func(_ context.Context, conn int) error {
				if conn > 1 && time.Since(begin) < sureTime {
					return errors.New("no route")
				}
				return nil
			}}
			s.reply = func(conn int, m *wire.Message) any {
				switch {
				case m.Method == "initialize":
					return greeted
				case m.Method == "process/start" && conn == 1:
					return nil
				case m.Method == "process/start":
					return wire.StartResult{ProcessID: "p", SandboxType: "none"} // the second one
				case m.Method == "process/read" && !runs:
					return notKnown
				case m.Method == "process/read":
					return wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: 3, Exited: true,
						ExitCode: new(int), Closed: true}
				}
				return struct{}{}
			}
			e := New(Options{Dial: s.dial, Resume: 10 * time.Minute})
			spec := shellSpec("true")
			spec.Policy = sandbox.FullAccess()
			_, err := e.Start(t.Context(), spec)
			if runs != (err == nil) || !runs && !errors.Is(err, executor.ErrEndUnknown) {
				t.Errorf("runs: %v, %v", runs, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			s.work.Wait()
			if n := s.count("process/start"); n != 1 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

// TestStartCanceled: a start that is canceled while it has no answer is ended at the server, also when
// the connection is away just then, and when Close follows at once. The wall is Executor.ends.
func TestStartCanceled(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan string, 1)
			s := &scripted{t: t, dialed: func(_ context.Context, conn int) error {
				if conn > 1 {
					<-time.After(8 * time.Second)
				}
				return nil
			}}
			s.reply = func(_ int, m *wire.Message) any {
				switch m.Method {
				case "initialize":
					return greeted
				case "process/start":
					cancel()
					synctest.Wait()
					if away {
						return nil
					}
					return wire.StartResult{ProcessID: "p", SandboxType: "none"}
				case "process/terminate":
					var p wire.Terminate
					if err := json.Unmarshal(m.Params, &p); err != nil {
						t.Error(err)
					}
					ended <- p.ProcessID
				}
				return struct{}{}
			}
			e := New(Options{Dial: s.dial})
			spec := shellSpec("true")
			spec.Policy = sandbox.FullAccess()
			_, err := e.Start(ctx, spec)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, executor.ErrEndUnknown) {
				t.Errorf("%v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			s.work.Wait()
			select {
			case id := <-ended:
				if !strings.HasPrefix(id, "sallyport-") {
					t.Errorf("%q was ended", id)
				}
			default:
				t.Error("it was not ended")
			}
		})
	}
}

// TestStartCutConfined: a start in a sandbox whose answer is lost is found again, in its sandbox, and
// has run once.
func TestStartCutConfined(t *testing.T) {
	testenv.NeedUserNS(t)
	l, e := newLine(t, "")
	dir := t.TempDir()
	var once sync.Once
	l.before = func(message string) (cut bool) {
		if strings.Contains(message, `"process/start"`) {
			once.Do(func() { cut = true })
		}
		return cut
	}
	s := shellSpec("echo ran >>ran; read line; echo no >/etc/no") // it cannot end before the line is cut
	s.Dir, s.Policy = dir, sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: dir, SlashTmp: "/tmp"})
	p, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("go\n")); err != nil {
		t.Error(err)
	}
	exit, err := p.Wait()
	text, _ := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil || exit.Code == 0 || string(text) != "ran\n" ||
		!slices.Contains(p.Sandbox().Mechanism, "exec-server") || l.dials != 2 {
		t.Errorf("%+v, %v, %q, %+v, %d connections", exit, err, text, p.Sandbox(), l.dials)
	}
}
