// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/eventlog"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// unknownHost is the part of an executor that does not describe its machine.
type unknownHost struct{}

func (unknownHost) Host(context.Context) (executor.HostInfo, error) {
	return executor.HostInfo{}, errors.ErrUnsupported
}

func (unknownHost) Places(context.Context, string, []string, string) (sandbox.Places, error) {
	return sandbox.Places{}, errors.ErrUnsupported
}

func (unknownHost) Shell(context.Context, string, string, bool) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// fakeExecutor runs commands that the test plays.
type fakeExecutor struct {
	unknownHost
	play func(spec *executor.Spec, p *fakeProcess)
	mu   sync.Mutex     // held while spec is set
	spec *executor.Spec // of the last one
}

func (e *fakeExecutor) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	e.mu.Lock()
	e.spec = spec
	e.mu.Unlock()
	p := newFakeProcess()
	go func() {
		defer close(p.done)
		e.play(spec, p)
	}()
	return p, nil
}

type fakeProcess struct {
	exit    executor.Exit
	err     error
	once    sync.Once
	stopped chan struct{}
	done    chan struct{}
	mu      sync.Mutex
	signals []int
}

func newFakeProcess() *fakeProcess {
	return &fakeProcess{stopped: make(chan struct{}), done: make(chan struct{})}
}

func (p *fakeProcess) SetInputDeadline(time.Time) error { return errors.ErrUnsupported }
func (p *fakeProcess) Output() executor.Output          { return newFakeOutput(0) }
func (p *fakeProcess) Resize(executor.Size) error       { return errors.ErrUnsupported }

func (p *fakeProcess) AwaitInput(context.Context) (*executor.InputWait, error) {
	return nil, errors.ErrUnsupported
}

func (p *fakeProcess) AwaitPort(context.Context, []int) (int, error) {
	return 0, errors.ErrUnsupported
}

func (p *fakeProcess) Write(b []byte) (int, error)   { return len(b), nil }
func (p *fakeProcess) CloseInput() error             { return nil }
func (p *fakeProcess) Sandbox() executor.Sandbox     { return executor.Sandbox{Level: "native"} }
func (p *fakeProcess) Stop()                         { p.once.Do(func() { close(p.stopped) }) }
func (p *fakeProcess) Wait() (*executor.Exit, error) { <-p.done; return &p.exit, p.err }

func (p *fakeProcess) Signal(sig int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, sig)
	return nil
}

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

// fakeRunner returns a Runner whose commands are played.
func fakeRunner(sink event.Sink, play func(spec *executor.Spec, p *fakeProcess)) (*Runner, *fakeExecutor) {
	e := &fakeExecutor{play: play}
	return &Runner{Policy: sandbox.ReadOnly(), Executor: e, Events: sink}, e
}

func TestEvents(t *testing.T) {
	var c collector
	r, _ := fakeRunner(&c, func(spec *executor.Spec, p *fakeProcess) {
		spec.OnOutput(executor.Stdout, []byte("caf\xc3"))
		spec.OnOutput(executor.Stderr, []byte("err\n"))
		spec.OnOutput(executor.Stdout, []byte("\xa9\n"))
		spec.OnOutput(executor.Stdout, []byte("cut \xe2\x82"))
		p.exit = executor.Exit{Code: 1, Survivors: []executor.Survivor{{PID: 3, Name: "x"}}}
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
	if want := []string{"judged 0", "started 1", "survived 1", "exited 1", "ended 1"}; !slices.Equal(kinds, want) {
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
			r, _ := fakeRunner(&c, func(spec *executor.Spec, _ *fakeProcess) {
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
			if last := out[len(out)-1]; last.DroppedEvents != 3 || last.DroppedBytes != 6 || len(last.Data) != 0 || last.Stream != executor.Stdout {
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
			r, _ := fakeRunner(&c, func(spec *executor.Spec, _ *fakeProcess) {
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
			if took := time.Since(begin); took != eventlog.FlushTime {
				t.Errorf("it took %v, want %v", took, eventlog.FlushTime)
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
			if got > 2*eventlog.MaxWaiting || got+lost != size {
				t.Errorf("%d bytes handed out and %d counted as lost, want %d together", got, lost, size)
			}
			if last := c.events[len(c.events)-1].Body.Kind(); last != "ended" {
				t.Errorf("the last event is %q", last)
			}
		})
	})
}

func TestTimeoutAndSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan int)
		r, _ := fakeRunner(nil, func(_ *executor.Spec, p *fakeProcess) {
			signals <- 0
			signals <- 10
			signals <- 0 // taken only when 10 was sent
			<-p.stopped
			p.exit = executor.Exit{Code: 0, Stopped: true, LastSignal: 15}
			if !slices.Equal(p.signals, []int{10}) {
				t.Errorf("signals %v", p.signals)
			}
		})
		defer r.Close()
		begin := time.Now()
		res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/", Timeout: 3 * time.Second, Signals: signals})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if !res.TimedOut || res.ExitCode != 124 || res.Signal != 0 || res.Attempts[0].Code != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// A tieContext is one that is canceled in this very moment: it has its error, and no one
// was told yet.
type tieContext struct{ context.Context }

func (tieContext) Err() error { return context.Canceled }

// TestTimeoutTie: a cancellation that is there when the time limit is exceeded wins.
func TestTimeoutTie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ctx, want := range map[context.Context]End{t.Context(): EndTimedOut, tieContext{t.Context()}: EndCanceled} {
			p := newFakeProcess()
			a := &attempt{process: p, stopped: make(chan struct{})}
			release := a.watch(ctx, &Cmd{Timeout: time.Second})
			<-p.stopped
			release()
			if got := a.asked(); got != want {
				t.Errorf("the run ends as %q, want %q", got, want)
			}
		}
	})
}

func TestUnknownEnd(t *testing.T) {
	r, _ := fakeRunner(nil, func(_ *executor.Spec, p *fakeProcess) { p.exit = executor.Exit{Code: -1} })
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if err == nil || res == nil || res.End != EndFailed || res.ExitCode != -1 {
		t.Errorf("got %+v and %v, want both", res, err)
	}
}

func TestForeignExecutor(t *testing.T) {
	r, e := fakeRunner(nil, func(*executor.Spec, *fakeProcess) {})
	defer r.Close()
	if _, err := r.Run(t.Context(), &Cmd{Script: "exit 1", Dir: "/somewhere"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/sh", "-c", "exit 1"}; !slices.Equal(e.spec.Args, want) || e.spec.Dir != "/somewhere" {
		t.Errorf("it got %q in %q", e.spec.Args, e.spec.Dir)
	}
	for _, c := range []*Cmd{{Args: []string{"x"}, Dir: "relative"}, {Args: []string{"x"}}, {Script: "x", Shell: "zsh", Dir: "/"}} {
		if _, err := r.Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "sallyport: Cmd.") {
			t.Errorf("%+v gave %v", c, err)
		}
	}
}

func TestResultJSON(t *testing.T) {
	r, _ := fakeRunner(nil, func(spec *executor.Spec, p *fakeProcess) {
		spec.OnOutput(executor.Stdout, []byte("a\xffb & <c>\n"))
		spec.OnOutput(executor.Stderr, []byte("touch: cannot touch '/etc/x': Read-only file system\n"))
		p.exit = executor.Exit{Code: 1, Sandbox: executor.Sandbox{Level: "native", Mechanism: []string{"userns"}}}
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"sh", "x"}, Dir: "/w", EnvPolicy: EnvPolicy{Base: []string{"A_KEY=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Run) != 32 {
		t.Errorf("the run has the identity %q", res.Run)
	}
	res.Duration, res.Run = 12*time.Millisecond, "r1"
	got, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"result","argv":["sh","x"],"cwd":"/w","exit_code":1,"signal":0,"timed_out":false,"end":"exited",` +
		`"duration_ms":12,"stdout":"a\ufffdb \u0026 \u003cc\u003e\n","stderr":"touch: cannot touch '/etc/x': Read-only file system\n",` +
		`"output":"a\ufffdb \u0026 \u003cc\u003e\ntouch: cannot touch '/etc/x': Read-only file system\n",` +
		`"stdout_bytes":10,"stderr_bytes":52,"omitted_bytes":0,"stdout_base64":"Yf9iICYgPGM+Cg==",` +
		`"sandbox":{"mode":"read-only","network":"none","level":"native","mechanism":["userns"],"observed":false},"attempts":1,` +
		`"denials":[{"op":"write","path":"/etc/x","addr":"","call":"","errno":"EROFS","source":"guessed","pid":0,"program":"","rule":"/=read","grant":"--rw /etc/x","count":1}],` +
		`"survivors":0,"withheld":["A_KEY"],"run":"r1"}`
	if string(got) != strings.ReplaceAll(want, `\ufffd`, "\ufffd") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLateUnavailable: a sandbox that turned out not to be there is no end of a
// command.
func TestLateUnavailable(t *testing.T) {
	r, _ := fakeRunner(nil, func(_ *executor.Spec, p *fakeProcess) {
		p.exit = executor.Exit{Code: -1}
		p.err = &sandbox.UnsupportedError{Need: "a", Have: "b", Hint: "c"}
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if !errors.Is(err, ErrNoSandbox) || res == nil || res.End != EndUnavailable {
		t.Errorf("got %+v and %v", res, err)
	}
}
