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
	"os"
	"os/signal"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxReplay is how much of the output from before a terminal is shown.
const maxReplay = 1 << 20

// errDetached is the cause of the end when the user detaches.
var errDetached = errors.New("detached")

// A signalError is the cause of the end when this process gets a signal.
type signalError struct {
	signal syscall.Signal
	atOnce bool // the server may not answer any more
}

func (e *signalError) Error() string { return e.signal.String() }

// An attachment connects the terminal in front of this process with a run.
type attachment struct {
	env  *Env
	c    client
	run  *wire.ListedRun
	keys keyring
	// where are the flags that name the server, for messages.
	where string
	term  *tty.Terminal // nil without one: then output is shown only
	out   printer
	end   context.CancelCauseFunc
	work  sync.WaitGroup
	input *process.FeedFailure // of what is passed on; nil for nothing
	*turns
	// reading says that this is the reader for whom the run waits; nil for another one.
	reading *reading
}

// attachTo is attach.
func attachTo(ctx context.Context, env *Env, o *Options, words []string) error {
	keys, err := parseKeys(cmp.Or(o.detachKeys, defaultKeys))
	if err != nil {
		return err // it was checked
	}
	return o.using(ctx, env, words, func(c client, id string) error {
		run, err := find(ctx, c, id)
		if err != nil {
			return err
		}
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		a := &attachment{turns: new(turns), env: env, c: c, run: run, keys: keyring{keys: keys},
			out: printer{env: env}, end: end}
		result, err := a.follow(ctx)
		if err != nil {
			return a.left(err)
		}
		return cmp.Or(signaled(result), leave(env, result, false))
	})
}

// signaled ends this process as a signal ended a run; nil for another end.
func signaled(result json.RawMessage) error {
	var of struct {
		End    string
		Signal int
	}
	known := json.Unmarshal(result, &of) == nil
	if !known || of.End != string(sallyport.EndSignaled) || of.Signal <= 0 {
		return nil
	}
	return explain.SignalExit(of.Signal)
}

// follow shows the output and passes keys on until the run has ended. It returns the result. The
// terminal is as before when it returns.
func (a *attachment) follow(ctx context.Context) (json.RawMessage, error) {
	if a.reading != nil {
		defer a.forward(ctx)()
	} else {
		defer a.signals()()
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	defer a.close()
	if a.term != nil {
		a.turns.keys(func() { _ = a.term.Suspend() }, a.term.Resume) // the question tells a broken terminal
		a.work.Go(func() { a.typed(ctx) })
		if a.run.TTY {
			a.work.Go(func() { a.resizes(ctx) })
		}
	}
	err := a.show(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		a.reset()
		return nil, err
	}
	a.putAway()
	return a.result(ctx)
}

// putAway undoes what the program, which has ended or asks to be run again, has left on the terminal.
func (a *attachment) putAway() {
	if a.term != nil && a.run.TTY && a.out.modes.Left() && !tty.Plain() {
		away, _, _ := a.out.modes.Away()
		_, _ = io.WriteString(a.env.Stdout, away) // the terminal may be gone
	}
	a.out.modes = text.ScreenModes{}
}

// snapshot brings the terminal into the state that output which is not shown has set: modes, title and,
// of a full-screen program, what is on its screen.
func (a *attachment) snapshot(ctx context.Context) error {
	if a.term == nil || !a.run.TTY || tty.Plain() {
		return nil
	}
	var s wire.RunScreen
	if err := a.c.Repeat(ctx, "run/screen", map[string]any{"runId": a.run.RunID}, &s); err != nil {
		if why, _ := reasonOf(err); why == runs.NoScreen {
			return nil
		}
		return err
	}
	text := s.Modes
	if s.Title != "" {
		text += "\x1b]2;" + s.Title + "\x1b\\"
	}
	for y, line := range s.Lines {
		if s.Alternate && line != "" {
			text += fmt.Sprintf("\x1b[%d;1H%s", y+1, line)
		}
	}
	return a.out.show([]wire.RunChunk{{Stream: "stdout", Chunk: []byte(text)}})
}

// whole returns the text from the first line or control sequence on that begins in it.
func whole(text []byte) []byte {
	const most = 4 << 10 // a longer line begins where it is cut
	for i, b := range text[:min(len(text), most)] {
		switch {
		case b == '\n':
			return text[i+1:]
		case b == esc && i+1 < len(text) && text[i+1] != '\\': // not the end of a string
			return text[i:]
		}
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// result returns the result of a run that has ended, without output that was shown.
func (a *attachment) result(ctx context.Context) (json.RawMessage, error) {
	if a.reading != nil && a.reading.result != nil {
		return a.reading.result, nil
	}
	text, err := wire.FetchRunResult(ctx, a.c, a.run.RunID, a.out.silent)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return text, nil
}

// signals has signals that ask for the end of this process end the attachment, so that the terminal
// is restored before. Those that are ignored stay so.
func (a *attachment) signals() (stop func()) {
	arrived, over := make(chan os.Signal, 1), make(chan struct{})
	tty.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	a.work.Go(func() {
		select {
		case s := <-arrived:
			number, _ := s.(syscall.Signal)
			a.end(&signalError{signal: number})
		case <-over:
		}
	})
	return func() {
		signal.Stop(arrived)
		close(over)
		a.work.Wait()
	}
}

// open takes the terminal, if this process is in the foreground of one.
func (a *attachment) open() error {
	a.out.filtered()
	if !tty.Is(a.env.Stdin) || !tty.Is(a.env.Stdout) || !tty.Foreground(a.env.Stdin) {
		return nil
	}
	var err error
	if a.term, err = tty.Open(a.env.Stdin); err != nil {
		return err
	}
	a.out.lineEnd = "\r\n"
	// A program without a terminal has not made line ends for one.
	return a.term.Raw(!a.run.TTY)
}

// close restores the terminal and waits for all that uses it.
func (a *attachment) close() {
	a.end(nil)
	if a.term != nil {
		_ = a.term.Close() // nothing could fix it
	}
}

// reset undoes what the program, which goes on, has left on the terminal.
func (a *attachment) reset() {
	if a.term != nil && a.run.TTY && !tty.Plain() {
		_, _ = io.WriteString(a.env.Stdout, tty.Cut) // the terminal may be gone
		a.putAway()
		_, _ = io.WriteString(a.env.Stdout, tty.ResetSequence)
	}
	if a.term != nil {
		_, _ = io.WriteString(a.env.Stdout, "\r\n")
	}
}

// left says why the run goes on without this terminal.
func (a *attachment) left(err error) error {
	var by *signalError
	switch id := a.run.RunID; {
	case errors.Is(err, errDetached):
		a.env.Tell(fmt.Sprintf("detached from session %s, which keeps running; to return: "+
			"sallyport attach%s %s",
			id, a.where, id))
		return nil
	case errors.As(err, &by):
		a.env.Tell(fmt.Sprintf("detached from session %s, which keeps running, by %s", id, by))
		return explain.SignalExit(by.signal)
	}
	return err
}

// show shows the output until the run has ended.
func (a *attachment) show(ctx context.Context) error {
	if a.reading != nil {
		return a.readAll(ctx)
	}
	r := reader{c: a.c, id: a.run.RunID}
	chunks, complete, err := a.replay(ctx, &r)
	for {
		if err != nil {
			return err
		}
		if err := a.print(&a.out, chunks, r.next); err != nil {
			return err
		}
		if complete {
			return nil
		}
		chunks, complete, err = r.read(ctx, true)
	}
}

// replay returns the end of the output so far, and shows how much is before it.
func (a *attachment) replay(ctx context.Context, r *reader) (last []wire.RunChunk, complete bool, err error) {
	held, skipped := 0, uint64(0)
	for got := readBytes; got >= readBytes/2 && !complete; {
		var chunks []wire.RunChunk
		if chunks, complete, err = r.read(ctx, false); err != nil {
			return nil, false, err
		}
		got = 0
		for _, c := range chunks {
			got += len(c.Chunk)
			last = append(last, c)
		}
		for held += got; held > maxReplay && held-len(last[0].Chunk) >= maxReplay; last = last[1:] {
			held -= len(last[0].Chunk)
			skipped += last[0].Missing + uint64(len(last[0].Chunk))
		}
		if over := held - maxReplay; over > 0 {
			skipped += last[0].Missing + uint64(over)
			last[0].Missing, last[0].Chunk = 0, last[0].Chunk[over:]
			held = maxReplay
		}
	}
	if skipped > 0 {
		if err := a.snapshot(ctx); err != nil {
			return nil, false, err
		}
		text := whole(last[0].Chunk)
		skipped += uint64(len(last[0].Chunk) - len(text))
		last[0].Chunk = text
		a.out.tell(fmt.Sprintf("%d bytes of earlier output are not shown; sallyport logs %s prints them",
			skipped, a.run.RunID))
	}
	return last, complete, nil
}

// typed passes keys on until the terminal is closed.
func (a *attachment) typed(ctx context.Context) {
	buf := make([]byte, 4<<10)
	for {
		n, err := a.term.Read(buf)
		if err != nil {
			if errors.Is(err, tty.ErrGone) {
				a.end(&signalError{signal: syscall.SIGHUP})
			}
			return
		}
		keys, detach := a.keys.pass(buf[:n])
		if len(keys) > 0 {
			a.pass(ctx, keys)
		}
		if detach {
			a.end(errDetached)
			return
		}
	}
}

// pass passes keys on. A program that takes none loses them, and the user is told.
func (a *attachment) pass(ctx context.Context, keys []byte) {
	if !a.run.TTY {
		for _, k := range keys {
			if k == 3 { // Ctrl-C
				// it may have ended
				_ = a.c.Call(ctx, "run/signal", map[string]any{"runId": a.run.RunID, "signal": "SIGINT"}, nil)
			}
		}
		return
	}
	err := a.c.Repeat(ctx, "run/write", map[string]any{"runId": a.run.RunID, "chunk": keys,
		"writeId": newWriteID()}, nil)
	if why, _ := reasonOf(err); err != nil && ctx.Err() == nil && why != runs.Ended {
		a.out.tell(explained(err, a.run.RunID).Error())
	}
}

// resizes gives the run the size of this terminal, now and after each change.
func (a *attachment) resizes(ctx context.Context) {
	resize := func(s executor.Size) {
		if s.Cols > 0 && s.Rows > 0 {
			// it may have ended
			_ = a.c.Repeat(ctx, "run/resize", map[string]any{"runId": a.run.RunID, "cols": s.Cols,
				"rows": s.Rows}, nil)
		}
	}
	resize(tty.SizeOf(a.env.Stdin))
	for s := range a.term.Sizes() {
		resize(s)
	}
}
