// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/internal/execclient"
	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/input"
	"github.com/sallyport-dev/sallyport/internal/runargs"
	"github.com/sallyport-dev/sallyport/internal/runs"
	"github.com/sallyport-dev/sallyport/internal/tty"
	"github.com/sallyport-dev/sallyport/internal/wire"
)

// Remote runs a command on the exec-server that run names, as in front of the user: its settings and
// rules count, questions are asked on this terminal, output and keys pass through, and the run ends
// with this process where it can say so. It returns the result that the server tells, also of a
// command that did not run. Event is called with the events, as JSON; nil asks for none.
func Remote(ctx context.Context, env *Env, run *runargs.Options, words []string, event func(json.RawMessage) error) (json.RawMessage, error) {
	outer := ctx // a start is not given up for lines that cannot be printed: its run would stay
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A reader of our output that has gone is an error of a write. It stays so: nothing is printed later.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	o := &Options{target: run.Server}
	shared := new(turns)
	opts := execclient.Options{Approvals: true, OnRequest: answer(&terminal.Approver{Around: shared.around})}
	params := started(env, run, words)
	params["reader"] = !run.Captures()
	lines := &eventLines{show: event, end: end}
	if event != nil {
		params["events"] = true
		opts.OnNotify, opts.OnResume = lines.notify, lines.cut
	}
	onTerminal := params["tty"] != nil
	input := !isNull(env.Stdin) && !(onTerminal && tty.Is(env.Stdin))
	if !onTerminal {
		params["openStdin"] = input
	}
	c, err := o.connect(ctx, env, false, opts)
	if err != nil {
		return nil, explain(err, "")
	}
	defer c.Close() //nolint:errcheck // every answer was read
	id, result, err := start(outer, c, params)
	if err != nil || id == "" {
		return result, err
	}
	result, err = attend(ctx, env, c, id, run, input, shared)
	if errors.Is(err, errDetached) {
		return nil, nil //nolint:nilnil // it goes on
	}
	var transport *execclient.TransportError
	if errors.As(err, &transport) {
		return nil, failure.New("the connection to %s is lost: %v; the command may go on there as session %s", run.Server.URL, err, id)
	}
	// One that has ended has been told of, and one that has not is to end.
	if gone := c.Call(context.WithoutCancel(ctx), "run/remove", map[string]any{"runId": id}, nil); err == nil && gone != nil {
		err = gone
	}
	if err == nil {
		err = lines.complete()
	}
	return result, explain(err, id)
}

// eventLines prints the events of a run as lines. The functions are called by the goroutine that reads
// from the server.
type eventLines struct {
	show func(json.RawMessage) error
	end  context.CancelCauseFunc // of the run, when a line cannot be printed

	mu        sync.Mutex
	over, gap bool // the last event was there; some before it are missing
}

func (l *eventLines) notify(method string, params json.RawMessage) {
	var n struct{ Event json.RawMessage }
	if method != wire.MethodRunEvent || json.Unmarshal(params, &n) != nil {
		return
	}
	if err := l.show(n.Event); err != nil {
		l.end(err)
	}
	var of struct{ Type string }
	if json.Unmarshal(n.Event, &of) == nil && of.Type == "ended" {
		l.mu.Lock()
		l.over = true
		l.mu.Unlock()
	}
}

// cut notes that the connection was cut: what the server sends afterwards of this run does not come.
func (l *eventLines) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gap = l.gap || !l.over
}

// complete returns an error if lines are missing.
func (l *eventLines) complete() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gap {
		return nil
	}
	return failure.New("the connection was cut while the command ran, and events since then are missing; the result is complete")
}

// attend shows the output of a run and passes on what is typed and signaled, until its end.
func attend(ctx context.Context, env *Env, c client, id string, run *runargs.Options, feeds bool, shared *turns) (json.RawMessage, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	listed, err := find(ctx, c, id)
	if err != nil {
		return nil, err
	}
	own := &reading{terminal: listed.TTY, late: make(chan struct{}, 1)}
	if !run.Captures() {
		shared.begin(ctx, c, id)
	}
	a := &attachment{
		turns: shared, env: env, c: c, run: listed, out: printer{env: env, silent: run.Captures(), own: own}, end: end,
		where: " --remote " + run.Server.URL, reading: own,
	}
	if feeds {
		a.input = input.Feed(inputOf{a, ctx}, env.Stdin) // a read of standard input cannot be ended
	}
	if listed.TTY {
		if a.keys.keys, err = parseKeys(defaultKeys); err != nil {
			return nil, err
		}
		result, err := a.follow(ctx)
		var by *signalError
		switch {
		case errors.As(err, &by):
			return nil, failure.ExitCode(128 + int(by.signal))
		case errors.Is(err, errDetached):
			a.say(context.WithoutCancel(ctx), map[string]any{"leaves": true})
			_ = a.left(err)
		case err == nil:
			err = cmp.Or(own.complete(result), a.fed(result))
		}
		return result, err
	}
	defer a.forward(ctx)()
	if err := a.show(ctx); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	result, err := a.result(ctx)
	if err == nil {
		err = cmp.Or(own.complete(result), a.fed(result))
	}
	return result, err
}

// isNull reports whether f is the null device, or another one that is no terminal.
func isNull(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !tty.Is(f)
}

// forward passes signals on to the command. The second one that asks for the end ends it.
func (a *attachment) forward(ctx context.Context) (stop func()) {
	arrived, over := make(chan os.Signal, 4), make(chan struct{})
	names := map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT"}
	for s := range names {
		if !signal.Ignored(s) {
			signal.Notify(arrived, s)
		}
	}
	a.work.Go(func() {
		for again := false; ; again = true {
			select {
			case s := <-arrived:
				a.reading.stopped.Store(true)
				a.work.Go(func() { a.unhold(ctx, over) })
				_ = a.c.Call(ctx, "run/signal", map[string]any{"runId": a.run.RunID, "signal": names[s]}, nil) // it may have ended
				if again {
					_ = a.c.Call(ctx, "run/terminate", map[string]any{"runId": a.run.RunID}, nil)
				}
			case <-over:
				return
			}
		}
	})
	return func() {
		signal.Stop(arrived)
		close(over)
		a.work.Wait()
	}
}

// An inputOf takes the input of a run.
type inputOf struct {
	*attachment
	ctx context.Context
}

// Write passes input on. That the run takes no more is os.ErrClosed.
func (a inputOf) Write(text []byte) (int, error) {
	taken, err := a.write(a.ctx, text)
	why, _ := refusal(err)
	switch {
	case why == runs.Ended, why == runs.InputClosed, a.ctx.Err() != nil:
		err = os.ErrClosed
	case err == nil && taken < len(text):
		err = io.ErrShortWrite
	}
	if err != nil && !errors.Is(err, io.ErrShortWrite) {
		taken = 0
	}
	return taken, err
}

// CloseInput ends the input.
func (a inputOf) CloseInput() error {
	return a.c.Repeat(a.ctx, "run/closeStdin", map[string]any{"runId": a.run.RunID}, nil)
}

// fed returns an error if a run that was successful did not get all of its input, and tells it of others.
func (a *attachment) fed(result json.RawMessage) error {
	err := a.input.Err()
	if err == nil {
		return nil
	}
	broken := failure.New("the input of the command is not complete: %v", err) // as sallyport.ReaderError says it
	var of struct {
		ExitCode int `json:"exit_code"`
	}
	if json.Unmarshal(result, &of) == nil && of.ExitCode == failure.CodeOK {
		return broken
	}
	a.out.tell(failure.OneLine(broken))
	return nil
}

// write passes input on, and returns how much the command took. One that does not read is no error.
func (a *attachment) write(ctx context.Context, text []byte) (taken int, err error) {
	err = a.c.Repeat(ctx, "run/write", map[string]any{"runId": a.run.RunID, "chunk": text, "writeId": newWriteID()}, nil)
	if why, taken := refusal(err); why == runs.InputFull {
		return taken, nil
	}
	return len(text), err
}
