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
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	// readBytes is how much output one request asks for.
	readBytes = 1 << 20
	// readWait is how long the server waits for output before it answers, in milliseconds. The
	// request is made again then.
	readWait = 10 * 60 * 1000
)

// A reader reads the output of a run from its beginning.
type reader struct {
	c    client
	id   string
	next uint64   // the offset
	own  *reading // says what the reader of the run has; nil for another one

	result json.RawMessage // of a transient run, with the end of its output
}

// read returns the next output; with waits it blocks until there is some or the run has ended.
// Complete says that nothing follows.
func (r *reader) read(ctx context.Context, waits bool) (chunks []wire.RunChunk, complete bool, err error) {
	wait := 0
	if waits {
		wait = readWait
	}
	var got wire.RunReadResult
	params := map[string]any{"runId": r.id, "after": r.next, "maxBytes": readBytes, "waitMs": wait}
	if r.own != nil {
		params["reader"] = r.own.params()
	}
	err = r.c.Repeat(ctx, "run/read", params, &got)
	if err != nil {
		return nil, false, err
	}
	if got.Next < r.next {
		return nil, false, explain.NewError("the server sent the same output again")
	}
	r.next, r.result = got.Next, got.Result
	return got.Chunks, got.Complete, nil
}

// missing says that output is not there any more.
func missing(n uint64) string {
	if n == 1 {
		return "1 byte of output is no longer retained"
	}
	return fmt.Sprintf("%d bytes of output are no longer retained", n)
}

// logs prints output.
func logs(ctx context.Context, env *Env, o *Options, words []string) error {
	return o.using(ctx, env, words, func(c client, id string) error {
		out := printer{env: env, json: o.json}
		out.filtered()
		r := reader{c: c, id: id}
		for {
			chunks, complete, err := r.read(ctx, o.follow)
			if err != nil {
				return err
			}
			if err := out.show(chunks); err != nil {
				return err
			}
			if complete && !o.json {
				return ended(ctx, env, c, id)
			}
			if complete || !o.follow && len(chunks) == 0 {
				return nil
			}
		}
	})
}

// ended says how a run has ended, after its output. That the run is known no longer is no error.
func ended(ctx context.Context, env *Env, c client, id string) error {
	text, err := wire.FetchRunResult(ctx, c, id, false)
	res := new(sallyport.Result)
	if err == nil && json.Unmarshal(text, res) == nil {
		tellEnd(env, res)
	}
	return nil
}

// A printer prints output on the standard streams.
type printer struct {
	env     *Env
	json    bool
	silent  bool             // nothing is printed
	filters [2]*filter       // of standard output and standard error; nil where no terminal could answer
	modes   text.ScreenModes // what was set on standard output, where that is a terminal
	lineEnd string           // before and after a message of our own; empty for none of them
	own     *reading         // of the run that waits for this reader; nil for another one
}

// An outputLine is a piece of output as JSON.
type outputLine struct {
	Type    string  `json:"type"` // always "output"
	Offset  uint64  `json:"offset"`
	Missing uint64  `json:"missing_bytes,omitempty"` // directly before it
	Stream  string  `json:"stream"`
	Text    *string `json:"text,omitempty"`
	Base64  []byte  `json:"base64,omitempty"` // in place of text that is not UTF-8
}

// filtered has the streams filtered that are a terminal.
func (p *printer) filtered() {
	for i, f := range []*os.File{p.env.Stdout, p.env.Stderr} {
		if tty.Is(f) {
			p.filters[i] = new(filter)
		}
	}
}

func (p *printer) show(chunks []wire.RunChunk) error {
	if p.silent {
		return nil
	}
	for _, c := range chunks {
		if p.json {
			if err := p.object(c); err != nil {
				return err
			}
			continue
		}
		switch {
		case c.Missing > 0 && p.own != nil:
			p.own.misses(c)
		case c.Missing > 0:
			p.tell(missing(c.Missing))
		}
		to, filter := p.env.Stdout, p.filters[0]
		if c.Stream == "stderr" {
			to, filter = p.env.Stderr, p.filters[1]
		}
		text := c.Chunk
		if filter != nil {
			text = filter.pass(text)
			if to == p.env.Stdout {
				p.modes.Follow(text)
			}
		}
		if p.own.closed(c.Stream) {
			continue
		}
		if err := p.own.write(to, text); err != nil && !p.own.lost(c.Stream, err) {
			return cannotWrite(err)
		}
	}
	return nil
}

// tell prints a message, on a line of its own also where a line feed does not begin one.
func (p *printer) tell(text string) {
	if p.lineEnd != "" {
		_, _ = io.WriteString(p.env.Stderr, p.lineEnd) // there is no other place to report it
	}
	p.env.Tell(text)
	if p.lineEnd != "" {
		_, _ = io.WriteString(p.env.Stderr, "\r")
	}
}

func (p *printer) object(c wire.RunChunk) error {
	line := outputLine{Type: "output", Offset: c.Offset, Missing: c.Missing, Stream: c.Stream}
	if utf8.Valid(c.Chunk) {
		text := string(c.Chunk)
		line.Text = &text
	} else {
		line.Base64 = c.Chunk
	}
	return p.env.PrintJSON(line)
}

// cannotWrite is the error for output that cannot be printed. A reader that has closed it wants
// no more, and gets no word.
func cannotWrite(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return explain.SignalExit(syscall.SIGPIPE)
	}
	return explain.NewError("cannot write the output: %v", explain.SystemCause(err))
}

// awaited is what run/wait waits for.
func (o *Options) awaited() map[string]any {
	c, all := &o.conditions, map[string]any{}
	for name, is := range map[string]bool{"exit": c.Exit || *c == runs.Conditions{}, "input": c.Input,
		"port": c.Port,
		"raw":  o.raw} {
		if is {
			all[name] = true
		}
	}
	if c.Match != "" {
		all["match"] = c.Match
	}
	if c.Quiet != 0 {
		all["quietMs"] = c.Quiet.Milliseconds()
	}
	if o.after != nil {
		all["after"] = *o.after
	}
	return all
}

// wait waits for a session.
func wait(ctx context.Context, env *Env, o *Options, words []string) error {
	conditions := o.awaited()
	return o.using(ctx, env, words, func(c client, id string) error {
		params := map[string]any{"runId": id, "for": conditions}
		if o.timeout != nil {
			params["timeoutMs"] = o.timeout.Milliseconds()
		}
		var got waited
		if err := c.Repeat(ctx, "run/wait", params, &got); err != nil {
			return err
		}
		if o.json {
			if got.Reason == reasonExited {
				if whole, err := wire.FetchRunResult(ctx, c, id, true); err == nil {
					// else it was removed meanwhile
					got.Result = whole
				}
			}
			if err := env.PrintJSON(&got); err != nil {
				return err
			}
		}
		return got.leave(env, o)
	})
}

// A waited is the answer of run/wait, and of wait --json.
type waited struct {
	Type    string          `json:"type"` // always "wait"
	Reason  string          `json:"reason"`
	Next    uint64          `json:"next"`
	After   uint64          `json:"after"`
	Input   json.RawMessage `json:"input,omitempty"`
	Port    int             `json:"port,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Elapsed int64           `json:"elapsed_ms"`
}

// UnmarshalJSON reads the answer of the server.
func (w *waited) UnmarshalJSON(data []byte) error {
	var a struct {
		wire.RunWaitResult
		Input  json.RawMessage `json:"input"`
		Result json.RawMessage `json:"result"`
	}
	err := json.Unmarshal(data, &a)
	*w = waited{"wait", a.Reason, a.Next, a.After, a.Input, a.Port, a.Result, a.ElapsedMs}
	return err
}

// The reasons of run/wait that are no conditions.
const (
	reasonExited   = "exited"
	reasonDeadline = "deadline"
)

// leave says why a wait has ended, and returns its exit code.
func (w *waited) leave(env *Env, o *Options) error {
	switch {
	case w.Reason == reasonExited && len(w.Result) > 0:
		return leave(env, w.Result, o.json)
	case w.Reason == reasonDeadline:
		if !o.json {
			env.Tell(fmt.Sprintf("the session is still running after %v",
				*cmp.Or(o.timeout, new(time.Duration))))
		}
		return explain.ExitCode(explain.CodeTimedOut)
	case o.json:
		return nil
	case w.Port > 0:
		return env.Print(fmt.Sprintf("port %d\n", w.Port))
	}
	return env.Print(text.Line(w.Reason) + "\n")
}
