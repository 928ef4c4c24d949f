// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caller"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var errCut = errors.New("connection reset by peer")

// halfInput is an input that breaks off.
func halfInput() io.Reader {
	return io.MultiReader(strings.NewReader("half\n"), iotest.ErrReader(errCut))
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// noReturn is a stream that panics, or ends its goroutine.
type noReturn func()

func (f noReturn) Write([]byte) (int, error) { f(); return 0, nil }
func (f noReturn) Read([]byte) (int, error)  { f(); return 0, nil }

// TestStreamErrors: an input that breaks off, and output that is not taken, are in the result, in Err of
// one that is successful otherwise, and in the JSON.
func TestStreamErrors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	errFull := errors.New("no space left")
	r := newRunner(t, sandbox.WorkspaceWrite())
	for _, test := range []struct {
		name, script string
		change       func(*Cmd)
		is           error  // Err is it; nil for none
		member       string // of the JSON; empty for none
		text         string
	}{
		{"a whole input", "cat", func(c *Cmd) { c.Stdin = strings.NewReader("whole") }, nil, "", ""},
		{"an input that is not read", "true", func(c *Cmd) { c.Stdin = strings.NewReader(strings.Repeat("x", 1<<20)) }, nil, "", ""},
		{"an input that breaks off", "cat", func(c *Cmd) { c.Stdin = halfInput() }, errCut, "stdin_error", "reset by peer"},
		{"on a terminal", "cat", func(c *Cmd) { c.Stdin, c.TTY = halfInput(), new(Size) }, errCut, "stdin_error", "reset by peer"},
		{"an output that fails", "echo x", func(c *Cmd) { c.Stdout = failingWriter{errFull} }, errFull, "stdout_error", "no space left"},
		{"an error output that fails", "echo x >&2", func(c *Cmd) { c.Stderr = failingWriter{errFull} }, errFull, "stderr_error", "no space left"},
		{"an output that panics", "echo x", func(c *Cmd) { c.Stdout = noReturn(func() { panic("no writer") }) }, nil, "stdout_error", "the writer panicked"},
		{"an output that ends its goroutine", "echo x", func(c *Cmd) { c.Stdout = noReturn(runtime.Goexit) }, caller.ErrExit, "stdout_error", "Goexit"},
		{"an input that panics", "cat", func(c *Cmd) { c.Stdin = noReturn(func() { panic("no reader") }) }, nil, "stdin_error", "Cmd.Stdin panicked"},
		{"an input that ends its goroutine", "cat", func(c *Cmd) { c.Stdin = noReturn(runtime.Goexit) }, caller.ErrExit, "stdin_error", "Goexit"},
		{"on a terminal, too", "cat", func(c *Cmd) { c.Stdin, c.TTY = noReturn(runtime.Goexit), new(Size) }, caller.ErrExit, "stdin_error", "Goexit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sh(test.script)
			test.change(c)
			res := run(t, r, c)
			err := res.Err()
			if res.ExitCode != 0 || test.is != nil && !errors.Is(err, test.is) || (err == nil) != (test.member == "") {
				t.Errorf("exit code %d, error %v", res.ExitCode, err)
			}
			text, err := res.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var members map[string]any
			var back Result
			if err := errors.Join(json.Unmarshal(text, &members), json.Unmarshal(text, &back)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"stdin_error", "stdout_error", "stderr_error"} {
				said, _ := members[name].(string)
				if (said != "") != (name == test.member) || !strings.Contains(said, test.text) && said != "" {
					t.Errorf("%s is %q", name, said)
				}
			}
			if err := back.Err(); (err == nil) != (test.member == "") {
				t.Errorf("decoded: %v", err)
			}
		})
	}
	c := sh("cat; exit 3")
	c.Stdin = halfInput()
	res := run(t, r, c)
	var exit *ExitError
	var broken *ReaderError
	if !errors.As(res.Err(), &exit) || !errors.As(res.StdinErr, &broken) {
		t.Errorf("a command that fails: %v, %v", res.Err(), res.StdinErr)
	}
}

// closes closes the Runner, and fails the test where that hangs.
func closes(t *testing.T, r *Runner) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatal("Close hangs")
		return nil
	}
}

// TestNoContext: a context that is nil is an error before anything begins.
func TestNoContext(t *testing.T) {
	var none context.Context
	r, _ := fakeRunner(nil, nil)
	_, s, _ := scriptedSession(t, &Cmd{OpenStdin: true})
	c := &Cmd{Args: []string{"true"}, Dir: "/"}
	for name, f := range map[string]func() error{
		"Run":          func() error { _, err := r.Run(none, c); return err },
		"Start":        func() error { _, err := r.Start(none, c); return err },
		"Open":         func() error { _, err := r.Open(none, SandboxOptions{}); return err },
		"TerminateAll": func() error { _, err := r.TerminateAll(none); return err },
		"Wait":         func() error { _, err := s.Wait(none); return err },
		"Terminate":    func() error { _, err := s.Terminate(none); return err },
		"Await":        func() error { _, err := s.Await(none, Until{}); return err },
		"Send":         func() error { _, err := s.Send(none, []byte("x"), Until{}); return err },
		"Yield":        func() error { _, err := s.Yield(none, 1); return err },
		"Search":       func() error { _, err := s.Search(none, nil, 0); return err },
		"Deltas": func() (last error) {
			for _, err := range s.Deltas(none, 0) {
				last = err
			}
			return last
		},
	} {
		if err := f(); !errors.Is(err, ErrNoContext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.over() {
		t.Error("the session was ended")
	}
	if err := closes(t, r); err != nil {
		t.Error(err)
	}
}

// TestPanics: what the caller gives a Runner and what panics there, or ends its goroutine, ends neither the
// program nor Close, and holds nothing up.
func TestPanics(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for how, fail := range map[string]func(){" panicked at": func() { panic("no") }, " did not return": runtime.Goexit} {
		asks := &Cmd{Args: []string{"true"}, Dir: "/", Unsandboxed: true}
		plain := &Cmd{Args: []string{"true"}, Dir: "/"}
		approver := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			fail()
			return approval.Decision{Answer: approval.Approved}, nil
		})
		first := approval.First(approver, approver)
		for _, test := range []struct {
			name   string
			runner *Runner
			cmd    *Cmd
			is     error
			text   string
		}{
			{"the approver", &Runner{Approver: approver}, asks, ErrRefused, "the approver"},
			{"the reviewer", &Runner{Reviewer: approver}, plain, ErrRefused, "the approver"},
			{"the first of several", &Runner{Approver: first}, asks, ErrRefused, "the approver"},
			{"Permits", &Runner{Permits: func([]string) error { fail(); return nil }}, asks, ErrForbidden, "Permits"},
			{"the sink", &Runner{Events: event.SinkFunc(func(event.Event) { fail() })}, plain, nil, "the sink of events"},
			{"the sink that is waited for", &Runner{WaitForEvents: true, Events: event.SinkFunc(func(event.Event) { fail() })}, plain, nil, "the sink of events"},
			{"the logger", &Runner{Logger: slog.New(handler(fail))}, plain, nil, ""},
		} {
			t.Run(test.name+how, func(t *testing.T) {
				test.runner.Executor = &fakeExecutor{play: func(*executor.Spec, *fakeProcess) {}}
				text := test.text + how
				if test.text == "" {
					text = ""
				}
				for _, start := range []bool{false, true} {
					res, err := test.runner.Run(t.Context(), test.cmd)
					if start {
						var s *Session
						if s, err = test.runner.Start(t.Context(), test.cmd); err == nil {
							res, err = s.Wait(t.Context())
						}
					}
					switch {
					case !errors.Is(err, test.is):
						t.Errorf("%v, want %v", err, test.is)
					case err != nil && !strings.Contains(err.Error(), text):
						t.Errorf("%v, want %q", err, text)
					case err == nil && start && !strings.Contains(strings.Join(res.Notices, ""), text):
						t.Errorf("notices: %q", res.Notices)
					}
				}
				err := test.runner.Flush(t.Context())
				if err2 := closes(t, test.runner); (err2 != nil) != (test.runner.Events != nil) || (err != nil) != (err2 != nil) {
					t.Errorf("Flush: %v; Close: %v", err, err2)
				}
			})
		}
	}
}

// A handler of slog that fails.
type handler func()

func (f handler) Enabled(context.Context, slog.Level) bool  { return true }
func (f handler) Handle(context.Context, slog.Record) error { f(); return nil }
func (f handler) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f handler) WithGroup(string) slog.Handler             { return f }

// TestSinkGoexit: a sink whose test fails in one event gets all that follow, and Flush returns.
func TestSinkGoexit(t *testing.T) {
	var kinds []string
	r, _ := fakeRunner(event.SinkFunc(func(e event.Event) {
		if kinds = append(kinds, e.Body.Kind()); len(kinds) <= 2 {
			runtime.Goexit()
		}
	}), func(*executor.Spec, *fakeProcess) {})
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"}); err != nil {
		t.Error(err)
	}
	var failed *PanicError
	if err := r.Flush(t.Context()); !errors.As(err, &failed) || failed.Where != "the sink of events" {
		t.Errorf("Flush: %v", err)
	}
	if err := r.Close(); !errors.As(err, &failed) {
		t.Errorf("Close: %v", err)
	}
	if got := strings.Join(kinds, " "); got != "judged started exited ended" {
		t.Errorf("the sink has %s", got)
	}
}

// TestFlush: after it, a slow sink has every event, and is called no more.
func TestFlush(t *testing.T) {
	next, calls := make(chan struct{}), 0 // calls is not guarded: Flush orders it
	r, _ := fakeRunner(event.SinkFunc(func(event.Event) {
		<-next
		calls++
	}), func(*executor.Spec, *fakeProcess) {})
	if err := r.Flush(t.Context()); err != nil {
		t.Errorf("before the first run: %v", err)
	}
	s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	early, cancel := context.WithCancelCause(t.Context())
	cancel(ErrClosed)
	if err := r.Flush(early); !errors.Is(err, ErrClosed) {
		t.Errorf("a context that has ended: %v", err)
	}
	close(next)
	if _, err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(r.Flush(t.Context()), r.Close(), r.Flush(t.Context())); err != nil {
		t.Error(err)
	}
	const all = 4 // judged, started, exited, ended
	if calls != all {
		t.Errorf("the sink has %d events, want %d", calls, all)
	}
	var none context.Context
	if err := r.Flush(none); !errors.Is(err, ErrNoContext) {
		t.Error(err)
	}
}

// TestFlushLast: Flush waits for the return of the sink, not for the call.
func TestFlushLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		r, _ := fakeRunner(event.SinkFunc(func(event.Event) { <-next }), func(*executor.Spec, *fakeProcess) {})
		s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		flushed := make(chan error, 1)
		go func() { flushed <- r.Flush(t.Context()) }()
		for n := range 4 { // judged, started, exited, ended
			synctest.Wait()
			if len(flushed) > 0 {
				t.Errorf("the sink has %d events", n)
			}
			next <- struct{}{}
		}
		if err := errors.Join(<-flushed, r.Close()); err != nil {
			t.Error(err)
		}
	})
}
