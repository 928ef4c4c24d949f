// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The longest wait of a call, in milliseconds.
const longestWait = 300_000

// write types on the terminal of a session, or writes to its input, and waits.
func (s *Server) write(c *call) (*answer, error) {
	r, err := s.find(c)
	if err != nil {
		return nil, err
	}
	chars, ends := c.args.text("chars"), c.args.truth("close_stdin")
	usual := 250
	if chars == "" {
		usual = 5000
	}
	yield, until := c.args.milliseconds("yield_time_ms", usual, 1), c.args.conditions()
	if len(chars) > maxInput {
		c.args.fail("chars", "it has more than %d bytes; write it in parts", maxInput)
	}
	if c.args.err != nil {
		return nil, c.args.err
	}
	size, _ := r.Size()
	after := &size // what was printed before answers nothing
	if chars == "" {
		after = nil
	}
	tokens, unwritten := c.args.tokens(), error(nil)
	if chars != "" {
		unwritten = taken(c.ctx, func() (<-chan struct{}, func() error) { return r.Write("", []byte(chars)) })
	}
	if ends && unwritten == nil {
		unwritten = taken(c.ctx, r.CloseInput)
	}
	var own *runs.Error
	if errors.As(unwritten, &own) && own.Reason != runs.Ended || unwritten != nil && own == nil {
		return nil, unwritten
	}
	a, err := await(c.ctx, r, &until, yield, r.Shown(), after, tokens)
	if err == nil && unwritten != nil {
		a.say("nothing was written: the session had ended")
	}
	return a, err
}

// taken waits until input was taken.
func taken(ctx context.Context, put func() (<-chan struct{}, func() error)) error {
	done, failure := put()
	select {
	case <-done:
		return failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits for a session.
func (s *Server) wait(c *call) (*answer, error) {
	r, err := s.find(c)
	if err != nil {
		return nil, err
	}
	until, longest := c.args.conditions(), c.args.milliseconds("timeout_ms", 45_000, 1)
	from, tokens := c.args.offset(r), c.args.tokens()
	if c.args.err != nil {
		return nil, c.args.err
	}
	var after *uint64
	if c.args.text("cursor") != "" {
		after = &from
	}
	return await(c.ctx, r, &until, longest, from, after, tokens)
}

// signal sends a signal to a session, and waits for a moment.
func (s *Server) signal(c *call) (*answer, error) {
	r, err := s.find(c)
	if err != nil {
		return nil, err
	}
	name := strings.ToUpper(c.args.text("signal"))
	if name == "" {
		name = "TERM"
	}
	number := process.SignalNumber("SIG" + strings.TrimPrefix(name, "SIG"))
	if number == 0 {
		c.args.fail("signal", "unknown signal %s; use a name such as TERM, INT, KILL or HUP",
			syntax.QuoteFlag(name))
	}
	yield, tokens := c.args.milliseconds("yield_time_ms", 500, 1), c.args.tokens()
	if c.args.err != nil {
		return nil, c.args.err
	}
	alive := r.Info().Running
	if err := r.Signal(number); err != nil {
		return nil, err
	}
	a, err := await(c.ctx, r, new(runs.Conditions), yield, r.Shown(), nil, tokens)
	if err == nil {
		a.facts["delivered"] = alive
		if a.facts["state"] == stateRunning {
			a.facts["reason"] = "signal"
		}
	}
	return a, err
}

// screen returns what the terminal of a session shows.
func (s *Server) screen(c *call) (*answer, error) {
	r, err := s.find(c)
	if err != nil {
		return nil, err
	}
	v, err := r.Screen()
	if err != nil {
		return nil, errors.New("session " + r.ID() + " has no screen; start it with tty")
	}
	a, left := new(answer), bytesPerToken*c.args.tokens()
	rows := make([]string, v.Rows)
	for i := range rows {
		if i < len(v.Lines) {
			rows[i] = first(text.Drawn(v.Lines[i]), left)
			left -= quoted(rows[i])
		}
	}
	a.facts = map[string]any{"rows": v.Rows, "cols": v.Cols, "lines": rows, "alternate": v.Alternate,
		"title":    shortened(text.Line(v.Title), maxFacts/4),
		"position": map[string]any{"row": v.Row, "col": v.Col, "visible": !v.Hidden}}
	a.say("screen of session %s: %d rows, %d columns, cursor at row %d, column %d", r.ID(), v.Rows, v.Cols,
		v.Row, v.Col)
	a.shown = strings.TrimRight(strings.Join(rows, "\n"), "\n")
	return a, nil
}

// list returns the sessions.
func (s *Server) list(c *call) (*answer, error) {
	all, left := c.args.truth("all"), bytesPerToken*c.args.tokens()
	if c.args.err != nil {
		return nil, c.args.err
	}
	list, omitted := []map[string]any{}, 0
	a := new(answer)
	infos := s.runs.List(owner)
	for i := len(infos) - 1; i >= 0; i-- { // the last ones first: they are what matters where not all fit
		info := &infos[i]
		if !info.Running && !info.Starting && !all {
			continue
		}
		const long = 200
		cmd, dir := shortened(info.Script, long), shortened(info.Dir, long)
		if left -= quoted(cmd) + quoted(dir) + long; left < 0 {
			omitted++
			continue
		}
		row := map[string]any{"session_id": info.ID, "cmd": cmd, "workdir": dir, "state": stateOf(info),
			"tty": info.TTY, "started": info.Started.UTC().Format(time.RFC3339Nano),
			"idle_ms": time.Since(info.LastUsed).Milliseconds(), "exit_code": nil}
		if info.Result != nil {
			row["exit_code"] = info.Result.ExitCode
		}
		list = append(list, row)
		a.shown += text.Line(info.ID+" "+stateOf(info)+": "+cmd) + "\n"
	}
	a.facts = map[string]any{"sessions": list, "omitted": omitted}
	a.say("%d sessions, %d more are not listed", len(list), omitted)
	return a, nil
}

// stateOf is the state of a session in a list.
func stateOf(info *runs.Info) string {
	switch {
	case info.Asks:
		return stateApproval
	case info.Running, info.Starting:
		return stateRunning
	}
	return stateEnded
}

// check says what would become of a command.
func (s *Server) check(c *call) (*answer, error) {
	x := c.args.execution(s)
	if c.args.err != nil {
		return nil, c.args.err
	}
	v, err := s.opts.Check(c.ctx, &runs.Request{Args: x.flags, Dir: s.opts.Dir, Workdir: x.workdir,
		Environ: s.opts.Environ})
	if err != nil {
		return nil, err
	}
	a, err := object(v)
	if err == nil {
		a.say("decision: %v", a.facts["decision"])
		a.shown = shortened(text.Lines(fmt.Sprint(v)), bytesPerToken*x.tokens)
	}
	return a, err
}
