// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
)

// Remote runs a command on the exec-server that run names, or with --join on the daemon of this user, as in
// front of the user: the server's settings and rules count, questions are asked on this terminal, output and
// keys pass through, and the run ends with this process where it can say so. It returns the result that the
// server tells, also of a command that did not run. Event is called with the events, as JSON; nil asks
// for none.
func Remote(ctx context.Context, env *Env, run *args.Options, words []string,
	event func(json.RawMessage) error) (json.RawMessage, error) {
	outer := ctx // a start is not given up for lines that cannot be printed: its run would stay
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A reader of our output that has gone is an error of a write. It stays so: nothing is printed later.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	o := &Options{target: run.Server, narrow: true}
	shared := new(turns)
	opts := wire.ClientOptions{Approvals: true,
		OnRequest: wire.AnswerApproval(&terminal.Approver{Around: shared.around})}
	params, err := started(env, run, words)
	if err != nil {
		return nil, err
	}
	params.Reader = !run.Captures()
	lines := &eventLines{show: event, end: end}
	if event != nil {
		params.Events = true
		opts.OnNotify, opts.OnResume = lines.notify, lines.cut
	}
	onTerminal := params.TTY != nil
	// To read a terminal would stop a job in the background, and take the answer to a question.
	asks := len(run.Given["ask_writes"])+len(run.Given["network.ask"]) > 0
	input := !isNull(env.Stdin) && (!tty.Is(env.Stdin) || !onTerminal && !asks && tty.Foreground(env.Stdin))
	if !onTerminal {
		params.OpenStdin = input
	}
	if run.Join != "" {
		opts.Resume, opts.Eager = -1, true // what has ended with the daemon does not come back
		join(env, run, params)
	}
	c, id, result, err := o.begin(ctx, outer, env, run.Join != "", opts, params)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // every answer was read
	if id == "" {
		return result, nil
	}
	own := &reading{terminal: onTerminal, late: make(chan struct{}, 1)}
	result, err = attend(ctx, env, c, id, run, input, shared, own)
	if errors.Is(err, errDetached) {
		return nil, nil //nolint:nilnil // it goes on
	}
	var transport *wire.TransportError
	switch {
	case errors.As(err, &transport) && run.Join != "":
		return nil, explain.NewError("the command was killed: %v", executor.ErrSharedEnded)
	case errors.As(err, &transport):
		return nil, explain.NewError("lost the connection to %s: %v; the command may still be running there as session %s", run.Server.URL, err, id)
	}
	if run.Join == "" { // which ends with the connection
		err = cmp.Or(err, endRun(ctx, env, c, id, err))
	}
	if by := new(signalError); errors.As(err, &by) {
		return nil, explain.SignalExit(by.signal)
	}
	if err == nil {
		err = lines.complete()
	}
	return result, explained(err, id)
}

// join has a run be one of a shared sandbox, which a daemon of this user has.
func join(env *Env, run *args.Options, params *wire.RunStart) {
	params.Transient = true
	params.Sandbox = &wire.RunSandbox{Name: run.Join,
		IdleMs: uint64(max(run.Idle.Milliseconds(), min(int64(run.Idle), 1)))}
	params.Unattended = !tty.Is(env.Stdin) || !tty.Is(env.Stderr)
}

// endRun ends a run that has not ended, and has the server forget it. Err is why it is read no more;
// after a signal the user is told where that fails.
func endRun(ctx context.Context, env *Env, c client, id string, err error) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var by *signalError
	signaled := errors.As(err, &by)
	if signaled && by.atOnce {
		defer time.AfterFunc(lastWord, cancel).Stop()
	}
	err = wire.RemoveRun(ctx, c, id)
	if err != nil && signaled {
		env.Tell(fmt.Sprintf("the exec-server does not answer; the command may still be running there "+
			"as session %s", id))
	}
	return err
}

// begin connects to the server and starts a run there. With a daemon, which is started where there is none,
// that is tried again where it ended before it looked at the request.
func (o *Options) begin(ctx, outer context.Context, env *Env, onDaemon bool, opts wire.ClientOptions,
	params *wire.RunStart) (c client, id string, result json.RawMessage, err error) {
	const tries = 3
	for range tries {
		if c, err = o.connect(ctx, env, onDaemon, opts); err != nil {
			return nil, "", nil, explained(err, "")
		}
		id, result, err = start(outer, c, params)
		if err == nil {
			return c, id, result, nil
		}
		_ = c.Close() // the error says more
		var transport *wire.TransportError
		if !onDaemon || !errors.As(err, &transport) || transport.Sent {
			return nil, "", nil, err
		}
	}
	return nil, "", nil, explain.NewError("the daemon did not accept the run: %v; if it is an older version, end its sessions first (sallyport ps lists them)", err)
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
	return explain.NewError("the connection was cut while the command ran, and events since then are missing; the result is complete")
}

// attend shows the output of a run and passes on what is typed and signaled, until its end.
func attend(ctx context.Context, env *Env, c client, id string, run *args.Options, feeds bool, shared *turns,
	own *reading) (json.RawMessage, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &attachment{
		turns: shared, env: env, c: c, run: &wire.ListedRun{RunID: id, TTY: own.terminal},
		out: printer{env: env, silent: run.Captures(), own: own}, end: end,
		where: where(&run.Server), reading: own,
	}
	if !run.Captures() {
		shared.begin(ctx, c, id, a.putAway)
	}
	if feeds {
		a.input = process.Feed(inputOf{a, ctx}, env.Stdin) // a read of standard input cannot be ended
	}
	if own.terminal {
		if run.Join == "" { // one that joined goes on for no one
			var err error
			if a.keys.keys, err = parseKeys(defaultKeys); err != nil {
				return nil, err
			}
		}
		result, err := a.follow(ctx)
		switch {
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

// where returns the flags that name a server.
func where(s *config.Server) string {
	flags := " --remote " + s.URL
	if s.Creds != "" {
		flags += " --creds " + explain.ShellWord(s.Creds)
	}
	return flags
}

// isNull reports whether f is the null device, from which there is nothing to read.
func isNull(f *os.File) bool {
	info, err := f.Stat()
	null, unknown := os.Stat(os.DevNull)
	return err == nil && unknown == nil && os.SameFile(info, null)
}

// lastWord is how long a server that may not answer gets to end a run.
const lastWord = 2 * time.Second

// forward passes signals on to the command. The second one that asks for the end ends it, and the third one
// ends this process, also where the server does not answer.
func (a *attachment) forward(ctx context.Context) (stop func()) {
	arrived, over := make(chan os.Signal, 4), make(chan struct{})
	asks := map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM",
		syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT"}
	names := maps.Clone(asks)
	maps.Copy(names, userSignals)
	tty.Notify(arrived, slices.Collect(maps.Keys(names))...)
	passing := make(chan func(), cap(arrived))
	a.work.Go(func() {
		for pass := range passing {
			pass()
		}
	})
	a.work.Go(func() {
		defer close(passing)
		for asked := 0; ; {
			var s os.Signal
			select {
			case s = <-arrived:
			case <-over:
				return
			}
			if asks[s] != "" {
				asked++
				a.reading.stopped.Store(true)
				a.work.Go(func() { a.unhold(ctx, over) })
			}
			if number, _ := s.(syscall.Signal); asked > 2 && asks[s] != "" {
				a.end(&signalError{signal: number, atOnce: true})
				continue
			}
			ends := asked == 2 && asks[s] != ""
			select {
			case passing <- func() {
				// it may have ended
				_ = a.c.Call(ctx, "run/signal", map[string]any{"runId": a.run.RunID, "signal": names[s]}, nil)
				if ends {
					_ = a.c.Call(ctx, "run/terminate", map[string]any{"runId": a.run.RunID}, nil)
				}
			}:
			default: // the server takes none
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
	// a transient run is unknown afterwards
	case why == runs.Ended, why == runs.Unknown, why == runs.InputClosed, a.ctx.Err() != nil:
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
	// as sallyport.ReaderError says it
	broken := explain.NewError("the input of the command is not complete: %v", err)
	var of struct {
		ExitCode int `json:"exit_code"`
	}
	if json.Unmarshal(result, &of) == nil && of.ExitCode == explain.CodeOK {
		return broken
	}
	a.out.tell(explain.OneLine(broken))
	return nil
}

// write passes input on, and returns how much the command took. One that does not read is no error.
func (a *attachment) write(ctx context.Context, text []byte) (taken int, err error) {
	err = a.c.Repeat(ctx, "run/write", map[string]any{"runId": a.run.RunID, "chunk": text,
		"writeId": newWriteID()}, nil)
	if why, taken := refusal(err); why == runs.InputFull {
		return taken, nil
	}
	return len(text), err
}
