// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An attempt is one process of a run, from its start to its end.
type attempt struct {
	policy   sandbox.Policy
	process  executor.Process
	start    time.Time
	ear      *ear
	exit     *executor.Exit
	end      End
	duration time.Duration
	kept     output.Captured // of the output, at its end
	denials  []sandbox.Denial

	mu    sync.Mutex
	cause End // why it was stopped, by whoever was first; empty when it was not
}

// try runs the command once under a policy and follows it to its end. Without an
// attempt the error says why there is no process. With one, it says that the run
// was cut short or that the end of the process is not known.
func (t *task) try(ctx context.Context, policy sandbox.Policy) (*attempt, error) {
	a, err := t.begin(ctx, policy)
	if err != nil {
		return nil, err
	}
	return a, t.follow(ctx, a)
}

// begin starts the command once under a policy. An error says why there is no process.
func (t *task) begin(ctx context.Context, policy sandbox.Policy) (*attempt, error) {
	t.tries++
	a := &attempt{policy: policy}
	a.ear = t.newEar(func() { a.stop(EndOutput) })
	spec := &executor.Spec{
		Run: t.id, Attempt: t.tries,
		Args: t.args, Arg0: t.cmd.Arg0, Dir: t.dir, Env: t.env,
		Policy: policy, Allow: t.cmd.Allow, Level: t.cmd.Level, Tmp: t.cmd.Tmp, NoCaches: t.cmd.NoCaches, NoObserver: t.cmd.NoObserver,
		Stdout: t.direct(executor.Stdout), Stderr: t.direct(executor.Stderr),
		Resources: t.cmd.Resources,
		Output:    a.ear.hear, Grace: t.cmd.Grace, Ready: t.cmd.Ready,
	}
	input := t.input(spec)

	a.start = time.Now()
	p, err := t.runner.executor().Start(ctx, spec)
	if err != nil {
		a.ear.close()
		return nil, noSandbox(err)
	}
	a.began(p)
	t.emit(event.Started{Sandbox: wireSandbox(policy, p.Sandbox()), Withheld: t.withheld})
	if input != nil {
		go feed(p, input)
	}
	return a, nil
}

// follow follows an attempt to its end. The error says that the run was cut short or
// that the end of the process is not known.
func (t *task) follow(ctx context.Context, a *attempt) error {
	release := a.watch(ctx, t.limits.timeout(t.cmd.Timeout), t.cmd)
	// What waits keeps its stack for as long as the command lives, so the large part is
	// a function of its own.
	var err error
	a.exit, err = a.process.Wait()
	release()
	return t.followed(ctx, a, err)
}

// followed tells the end of an attempt, of which its Wait has returned err.
func (t *task) followed(ctx context.Context, a *attempt, err error) error {
	a.duration = time.Since(a.start)
	a.ear.close()
	a.kept = a.ear.kept.Snapshot()
	a.end = a.ending()
	a.denials = t.denied(a)
	for _, q := range a.exit.Quarantined {
		t.emit(event.Quarantined{Quarantined: q})
	}
	for _, d := range a.denials {
		t.emit(event.Denied{Denial: d})
	}
	if len(a.exit.Survivors) > 0 {
		t.emit(event.Survived{Survivors: a.exit.Survivors, By: a.exit.SurvivorsBy})
	}
	t.emit(event.Exited{Code: a.exit.Code, Signal: a.exit.Signal, Survivors: a.exit.Survivors, Duration: a.duration})
	switch {
	case errors.Is(noSandbox(err), ErrNoSandbox):
		a.end = EndUnavailable // the sandbox could not be built; the command did not run
		return noSandbox(err)
	case err != nil:
		a.end = EndFailed
		return fmt.Errorf("sallyport: the end of the command is not known: %w", err)
	case a.exit.Broken != nil:
		a.end = EndFailed
		return fmt.Errorf("sallyport: the sandbox did not hold: %w", a.exit.Broken)
	case a.end == EndCanceled && t.session && ctx.Err() == nil && a.asked() == EndCanceled:
		return nil // whoever has the session has ended it
	case a.end == EndCanceled:
		return canceled(ctx)
	case a.end == EndFailed:
		return errors.New("sallyport: the end of the command is not known: something else ended its supervision")
	}
	return nil
}

// input gives a Spec its standard input, and returns what has to be copied there.
func (t *task) input(spec *executor.Spec) io.Reader {
	input := t.cmd.Stdin
	f, isFile := input.(*os.File)
	if t.cmd.TTY != nil {
		spec.TTY = t.cmd.TTY
		if t.session {
			return nil // it is typed by whoever has the session
		}
		if input == nil || isFile && f == nil {
			return strings.NewReader("") // the null device: it ends at once
		}
		return input
	}
	if isFile {
		spec.Stdin, input = f, nil // a nil file is the null device, too
	}
	spec.PipeStdin = input != nil || t.pipe
	return input
}

// direct returns the writer of a stream if it is a file, which the command then gets
// itself, unless a terminal takes its place or what goes there has to be counted.
func (t *task) direct(s executor.Stream) *os.File {
	switch {
	case t.cmd.TTY != nil && s == executor.Stdout, t.cmd.Resources.Output > 0:
		return nil
	case s == executor.Stdout:
		return asFile(t.cmd.Stdout)
	}
	return asFile(t.cmd.Stderr)
}

// asFile returns w if it is a file.
func asFile(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}

// feed copies a reader to standard input. A command that does not read to the end
// is no error. It ends when the command has ended, unless the reader is blocked:
// then it ends when Read returns.
func feed(p executor.Process, input io.Reader) {
	_, _ = io.Copy(writeOnly{p}, input)
	_ = p.CloseInput()
}

// writeOnly hides other methods of a process from io.Copy.
type writeOnly struct{ p executor.Process }

func (w writeOnly) Write(b []byte) (int, error) { return w.p.Write(b) }

// watch stops the process when ctx ends or the time is up, and hands signals and sizes
// on.
// The returned function ends the watch; it must be called once.
func (a *attempt) watch(ctx context.Context, timeout time.Duration, c *Cmd) (release func()) {
	detach := context.AfterFunc(ctx, func() { a.stop(EndCanceled) })
	var timer *time.Timer
	if timeout > 0 {
		timer = time.AfterFunc(timeout, func() {
			if ctx.Err() != nil {
				a.stop(EndCanceled) // a cancellation that is there wins a tie
				return
			}
			a.stop(EndTimedOut)
		})
	}
	over := make(chan struct{})
	var forwarding sync.WaitGroup
	if c.Signals != nil {
		forwarding.Go(func() {
			forward(c.Signals, over, func(sig int) {
				if sig > 0 {
					_ = a.process.Signal(sig)
				}
			})
		})
	}
	if c.Resizes != nil && c.TTY != nil {
		forwarding.Go(func() { forward(c.Resizes, over, func(s Size) { _ = a.process.Resize(s) }) })
	}
	return func() {
		detach()
		if timer != nil {
			timer.Stop()
		}
		close(over)
		forwarding.Wait()
	}
}

// forward hands what comes to f until the command is over. That f can come too late
// is no error.
func forward[T any](from <-chan T, over <-chan struct{}, f func(T)) {
	for {
		select {
		case v, ok := <-from:
			if !ok {
				return
			}
			f(v)
		case <-over:
			return
		}
	}
}

// began notes the process, which may have printed too much by now.
func (a *attempt) began(p executor.Process) {
	a.mu.Lock()
	a.process = p
	late := a.cause != ""
	a.mu.Unlock()
	if late {
		p.Stop()
	}
}

// stop ends the process for a reason; the first reason counts.
func (a *attempt) stop(why End) {
	a.mu.Lock()
	if a.cause == "" {
		a.cause = why
	}
	p := a.process
	a.mu.Unlock()
	if p != nil {
		p.Stop()
	}
}

// ending says how the process ended. A stop that came too late was none.
func (a *attempt) ending() End {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.exit.Stopped && a.cause != "":
		return a.cause
	case a.exit.Limit != "":
		return endOfLimit(a.exit.Limit)
	case a.cause == EndOutput:
		return a.cause // it ended by itself first, but not all of its output was handed on
	case a.exit.Stopped:
		return EndCanceled // by the executor's own end
	case a.exit.Signal != 0:
		return EndSignaled
	case a.exit.Code < 0:
		return EndFailed
	}
	return EndExited
}

// asked returns why the process was stopped; empty when it was not.
func (a *attempt) asked() End {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause
}

// canceled returns the error for a run whose context has ended.
func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrClosed):
		return cause
	case cause == nil:
		return fmt.Errorf("sallyport: canceled: %w", ErrClosed)
	}
	return fmt.Errorf("sallyport: canceled: %w", cause)
}

// wireSandbox is what events and reports say about the sandbox of an attempt.
func wireSandbox(p sandbox.Policy, s executor.Sandbox) event.Sandbox {
	return event.Sandbox{
		Mode: p.Name(), Mechanism: s.Mechanism, Network: p.Network().String(), Level: s.Level, Observed: s.Observed, Weaker: s.Weaker,
	}
}
