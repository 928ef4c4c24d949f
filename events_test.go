// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// collector is a sink that keeps everything.
type collector struct {
	mu     sync.Mutex
	events []event.Event
	hold   chan struct{} // when set, every event waits for it
}

func (c *collector) Emit(e event.Event) {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *collector) outputs() (out []event.Output) {
	for _, e := range c.events {
		if o, ok := e.Body.(event.Output); ok {
			out = append(out, o)
		}
	}
	return out
}

func TestEvents(t *testing.T) {
	var c collector
	r, _ := fakeRunner(&c, func(spec *executor.Spec, p *e2e.FakeProcess) {
		spec.OnOutput(executor.Stdout, []byte("caf\xc3"))
		spec.OnOutput(executor.Stderr, []byte("err\n"))
		spec.OnOutput(executor.Stdout, []byte("\xa9\n"))
		spec.OnOutput(executor.Stdout, []byte("cut \xe2\x82"))
		p.Exit = executor.Exit{Code: 1, Survivors: []executor.Survivor{{PID: 3, Name: "x"}}}
	})
	defer r.Close()
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	var text [2][]byte
	for i, e := range c.events {
		if e.Seq != uint64(i+1) || e.Run == "" || e.Run != c.events[0].Run {
			t.Errorf("event %d has number %d and run %q", i, e.Seq, e.Run)
		}
		if o, ok := e.Body.(event.Output); ok {
			if o.Offset != uint64(len(text[o.Stream])) {
				t.Errorf("offset %d of %q, want %d", o.Offset, o.Data, len(text[o.Stream]))
			}
			text[o.Stream] = append(text[o.Stream], o.Data...)
			continue
		}
		kinds = append(kinds, fmt.Sprint(e.Body.Kind(), " ", e.Attempt))
	}
	if want := []string{"judged 0", "started 1", "survived 1", "exited 1",
		"ended 1"}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	if string(text[0]) != "café\ncut \xe2\x82" || string(text[1]) != "err\n" {
		t.Errorf("output %q", text)
	}
	for _, o := range c.outputs() {
		if bytes.HasSuffix(o.Data, []byte("\xc3")) {
			t.Errorf("piece %q ends inside of a character", o.Data)
		}
	}
}

// row41: 10 001 pieces become 10 000 events and one that counts the rest.
func TestDeltaCap(t *testing.T) {
	t.Run("row41", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var c collector
			r, _ := fakeRunner(&c, func(spec *executor.Spec, _ *e2e.FakeProcess) {
				for range 10_003 {
					spec.OnOutput(executor.Stdout, []byte("x\n"))
					synctest.Wait() // the sink has it: nothing is joined
				}
				spec.OnOutput(executor.Stderr, []byte("of its own"))
			})
			defer r.Close()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
			if err != nil {
				t.Fatal(err)
			}
			out := c.outputs()
			if len(out) != 10_000+2 {
				t.Fatalf("%d events, want 10 000, one of stderr and the sum", len(out))
			}
			if last := out[len(out)-1]; last.DroppedEvents != 3 || last.DroppedBytes != 6 ||
				len(last.Data) != 0 || last.Stream != executor.Stdout {
				t.Errorf("the sum is %+v", last)
			}
			if res.Stdout.Total != 2*10_003 {
				t.Errorf("%d bytes captured", res.Stdout.Total)
			}
		})
	})
}

// row42: a sink that never returns keeps nothing from ending, and memory bounded.
func TestStuckSink(t *testing.T) {
	t.Run("row42", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := collector{hold: make(chan struct{})}
			const size = 64 << 20
			r, _ := fakeRunner(&c, func(spec *executor.Spec, _ *e2e.FakeProcess) {
				p := make([]byte, 1<<20)
				for range size / len(p) {
					spec.OnOutput(executor.Stdout, p)
				}
			})
			begin := time.Now()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took != records.FlushTime {
				t.Errorf("it took %v, want %v", took, records.FlushTime)
			}
			if res.Stdout.Total != size {
				t.Errorf("%d bytes captured", res.Stdout.Total)
			}
			close(c.hold)
			synctest.Wait() // Close waits no second time
			r.Close()
			var got, lost uint64
			for _, o := range c.outputs() {
				got += uint64(len(o.Data))
				lost += o.DroppedBytes
			}
			if got > 2*records.MaxWaiting || got+lost != size {
				t.Errorf("%d bytes handed out and %d counted as lost, want %d together", got, lost, size)
			}
			if last := c.events[len(c.events)-1].Body.Kind(); last != "ended" {
				t.Errorf("the last event is %q", last)
			}
		})
	})
}

// TestDeniedEvents checks that the denials that an executor saw are completed and reported in
// events before the end and in the result, and that nothing is guessed after an observer.
func TestDeniedEvents(t *testing.T) {
	const words = "touch: cannot touch '/etc/x': Read-only file system\n"
	for _, test := range []struct {
		name     string
		exit     executor.Exit
		want     string // of the events
		denials  int
		omitted  int
		observed bool
	}{
		{"seen", executor.Exit{Code: 0, Denials: writes("/etc/hosts", "/w/.env"), DenialsOmitted: 7, Sandbox: executor.Sandbox{Observed: true}},
			"judged started denied /etc/hosts denied /w/.env exited ended", 2, 7, true},
		{"seen that there was none", executor.Exit{Code: 1, Sandbox: executor.Sandbox{Observed: true}}, "judged started exited ended", 0, 0, true},
		{"guessed", executor.Exit{Code: 1}, "judged started denied /etc/x exited ended", 1, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard []string
			r, _ := fakeRunner(event.SinkFunc(func(e event.Event) {
				if e.Body.Kind() != "output" { // comes when it comes
					heard = append(heard, e.Body.Kind())
				}
				if d, ok := e.Body.(event.Denied); ok {
					heard = append(heard, d.Denial.Path)
					if d.Denial.Rule != "/=read" {
						t.Errorf("the rule is %q", d.Denial.Rule)
					}
				}
			}), func(spec *executor.Spec, p *e2e.FakeProcess) {
				spec.OnOutput(executor.Stderr, []byte(words))
				p.Exit = test.exit
			})
			r.Policy = sandbox.ReadOnly()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(heard, " "); got != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
			about := res
			if len(res.Denials()) != test.denials || about.DenialsOmitted != test.omitted ||
				about.Sandbox.Observed != test.observed {
				t.Errorf("%+v", about)
			}
			if len(test.exit.Denials) > 0 && test.exit.Denials[0].Rule != "" {
				t.Error("the executor's own list was changed")
			}
		})
	}
}

func writes(names ...string) []sandbox.Denial {
	var ds []sandbox.Denial
	for _, n := range names {
		ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: n},
			Source: sandbox.Notified})
	}
	return ds
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

// TestPanics: what the caller gives a Runner and what panics there, or ends its goroutine, ends neither the
// program nor Close, and holds nothing up.
func TestPanics(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for how, fail := range map[string]func(){" panicked at": func() { panic("no") },
		" did not return": runtime.Goexit} {
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
				test.runner.Executor = &e2e.Fake{Play: func(*executor.Spec,
					*e2e.FakeProcess) {
				}}
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
				if err2 := closes(t, test.runner); (err2 != nil) != (test.runner.Events != nil) ||
					(err != nil) != (err2 != nil) {
					t.Errorf("Flush: %v; Close: %v", err, err2)
				}
			})
		}
	}
}

// A handler of slog that fails.
type handler func()

func (f handler) Enabled(context.Context, slog.Level) bool { return true }

func (f handler) Handle(context.Context, slog.Record) error { f(); return nil }

func (f handler) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f handler) WithGroup(string) slog.Handler { return f }

// TestSinkGoexit: a sink whose test fails in one event gets all that follow, and Flush returns.
func TestSinkGoexit(t *testing.T) {
	var kinds []string
	r, _ := fakeRunner(event.SinkFunc(func(e event.Event) {
		if kinds = append(kinds, e.Body.Kind()); len(kinds) <= 2 {
			runtime.Goexit()
		}
	}), func(*executor.Spec, *e2e.FakeProcess) {})
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
	}), func(*executor.Spec, *e2e.FakeProcess) {})
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
		r, _ := fakeRunner(event.SinkFunc(func(event.Event) { <-next }),
			func(*executor.Spec, *e2e.FakeProcess) {})
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

// A failingLog is a log that fails from its n-th Sync on.
type failingLog struct {
	mu    sync.Mutex
	kinds []string
	kept  []string
	good  int // calls of Sync that succeed; negative for all
}

func (k *failingLog) Emit(e event.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds = append(k.kinds, e.Body.Kind())
}

var errFull = errors.New("no space left")

func (k *failingLog) Sync(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.good == 0 {
		return errFull
	}
	k.good--
	k.kept = slices.Clone(k.kinds)
	return nil
}

// TestAudit keeps what happened before a command starts, and all of it before Run returns.
func TestAudit(t *testing.T) {
	for name, tc := range map[string]struct {
		log      *failingLog
		required bool
		runs     int
		fails    bool   // with an *AuditError
		notice   string // part of a notice; empty for none
		kept     []string
	}{
		"kept":                 {&failingLog{good: -1}, true, 1, false, "", []string{"judged", "started", "exited", "ended"}},
		"full before":          {&failingLog{good: 0}, true, 0, true, "", nil},
		"full at the end":      {&failingLog{good: 1}, true, 1, true, "", []string{"judged"}},
		"not required":         {&failingLog{good: 0}, false, 1, false, "no space left", nil},
		"required without one": {nil, true, 0, true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { runs++ })
			r.AuditRequired = tc.required
			if tc.log != nil {
				r.Audit = tc.log
			}
			defer r.Close()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"true"}, Dir: "/"})
			failed := new(AuditError)
			if errors.As(err, &failed) != tc.fails || (res != nil) != (tc.runs > 0) || runs != tc.runs {
				t.Fatalf("%v, %v, %d runs", res, err, runs)
			}
			if res != nil && !strings.Contains(strings.Join(res.Notices, "\n"), tc.notice) {
				t.Errorf("notices %q", res.Notices)
			}
			if tc.log != nil && !slices.Equal(tc.log.kept, tc.kept) {
				t.Errorf("kept %q, want %q", tc.log.kept, tc.kept)
			}
		})
	}
}

// A fixedTracer gives each run the same context.
type fixedTracer struct{ to event.TraceContext }

func (fixedTracer) Emit(event.Event)                     {}
func (f fixedTracer) Begin(event.Run) event.TraceContext { return f.to }
func contextOf(parent, state string) (c event.TraceContext) {
	return event.TraceContext{Parent: parent, State: state}
}

// TestTraceVariables: a command gets a trace context where there is a valid one, that of its run before that
// of the caller, and in the place of what its environment has; else its environment stays as it is.
func TestTraceVariables(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	const own = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00"
	for _, test := range []struct {
		name   string
		set    string // TRACEPARENT of the environment; empty for none
		caller event.TraceContext
		tracer event.Tracer
		want   string
	}{
		{"nothing", "", event.TraceContext{}, nil, ""},
		{"the environment", "of the environment", event.TraceContext{}, nil, "TRACEPARENT=of the environment"},
		{"the caller", "of the environment", contextOf(caller, "a=b"), nil,
			"TRACEPARENT=" + caller + " TRACESTATE=a=b"},
		{"the caller, without a state", "", contextOf(caller, ""), nil, "TRACEPARENT=" + caller},
		{"the run", "of the environment", contextOf(caller, "a=b"), fixedTracer{contextOf(own, "a=b")},
			"TRACEPARENT=" + own + " TRACESTATE=a=b"},
		{"a tracer that makes none", "", contextOf(caller, ""), fixedTracer{}, ""},
		{"a tracer with an invalid one", "", contextOf(caller, ""), fixedTracer{contextOf("x", "a=b")}, ""},
		{"a malformed caller", "", contextOf(caller[1:], "a=b"), nil, ""},
		{"a malformed state", "", contextOf(caller, "a\nLD_PRELOAD=x"), nil, "TRACEPARENT=" + caller},
		{"a state alone", "", contextOf("", "a=b"), nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, fake := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) {})
			r.Tracer = test.tracer
			cmd := &Cmd{Args: []string{"x"}, Dir: "/w", Trace: test.caller}
			if test.set != "" {
				cmd.EnvPolicy.Set = map[string]string{"TRACEPARENT": test.set}
			}
			if _, err := r.Run(t.Context(), cmd); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(fake.Spec.Env), func(e string) bool {
				return !strings.HasPrefix(e, "TRACE") && !strings.HasPrefix(e, "LD_")
			})
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("it gets %q, want %q", text, test.want)
			}
		})
	}
}
