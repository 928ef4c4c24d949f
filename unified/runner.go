// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/output"
)

// runnerHost is a Runner as the tools see it.
type runnerHost struct{ runner *sallyport.Runner }

func (h runnerHost) most() int {
	if h.runner.MaxSessions == 0 {
		return sallyport.DefaultMaxSessions
	}
	return h.runner.MaxSessions
}

func (h runnerHost) start(ctx context.Context, c *sallyport.Cmd, stdin Stdin) (process, error) {
	own := *c
	own.OpenStdin = stdin == StdinPipe
	s, err := h.runner.Start(ctx, &own)
	var full *sallyport.TooManySessionsError
	switch {
	case errors.As(err, &full):
		return nil, &TooManyError{Max: full.Max, Candidates: candidates(full.Candidates), Err: err}
	case err != nil:
		return nil, err
	}
	id, err := strconv.Atoi(s.ID())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("unified: a session has the number %q: %w", s.ID(), err), s.Close())
	}
	return &runnerProcess{session: s, id: id}, nil
}

// candidates lists sessions, among which there may be some that these tools did not start.
func candidates(list []sallyport.SessionInfo) []Info {
	var out []Info
	for _, s := range list {
		id, err := strconv.Atoi(s.ID)
		if err != nil {
			continue
		}
		out = append(out, Info{
			SessionID: id, Command: strings.Join(s.Args, " "), Dir: s.Dir, TTY: s.TTY,
			Started: s.Started, LastUsed: s.LastUsed, Running: s.Running,
		})
	}
	return out
}

// runnerProcess is a session of a Runner.
type runnerProcess struct {
	session *sallyport.Session
	id      int
	told    atomic.Bool // that not all of the output is kept
}

func (p *runnerProcess) number() int    { return p.id }
func (p *runnerProcess) args() []string { return p.session.Info().Args }
func (p *runnerProcess) dir() string    { return p.session.Info().Dir }
func (p *runnerProcess) running() bool  { return p.session.Info().Running }
func (p *runnerProcess) close() error   { return p.session.Close() }

func (p *runnerProcess) write(b []byte) (int, error) {
	n, err := p.session.Write(b)
	return n, inputError(err)
}

func (p *runnerProcess) closeInput() error { return inputError(p.session.CloseInput()) }

// inputError tells an input that was closed from one that the process does not read
// any more, which it may end for.
func inputError(err error) error {
	if errors.Is(err, sallyport.ErrInputClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return os.ErrClosed
	}
	return err
}

func (p *runnerProcess) interrupt(context.Context) error { return p.session.Interrupt() }

func (p *runnerProcess) resize(_ context.Context, s sallyport.Size) error { return p.session.Resize(s) }

func (p *runnerProcess) terminate(ctx context.Context) (bool, error) {
	alive, err := p.session.Terminate(ctx)
	if !p.session.Info().Running {
		err = nil // that it was ended is what was wanted
	}
	return alive, err
}

func (p *runnerProcess) wait(ctx context.Context) (*ending, error) {
	return endingOf(p.session.Wait(ctx))
}

// endingOf is how a process ended. That it was terminated is no error.
func endingOf(r *sallyport.Result, err error) (*ending, error) {
	if r == nil || err != nil && r.End != sallyport.EndCanceled {
		return nil, err
	}
	return &ending{
		code: r.ExitCode, signal: r.Signal, denials: r.Denials(), denialsOmitted: r.DenialsOmitted,
		sandboxed: r.Sandbox.Level != "none", observed: r.Sandbox.Observed, notices: r.Warnings,
	}, nil
}

func (p *runnerProcess) pieces(ctx context.Context) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		next, over := uint64(0), error(nil)
		hand := func(d sallyport.Delta) bool {
			next = d.Offset + uint64(len(d.Data))
			return yield(piece{offset: d.Offset, missing: d.Missing, stream: d.Stream, data: d.Data}, nil)
		}
		for d, err := range p.session.Deltas(ctx, 0) {
			if over = err; err == nil && !hand(d) {
				return
			}
		}
		if over == nil {
			return
		}
		// The time is up for what may come, not for what is there.
		if total, _ := p.session.Size(); next < total {
			for d, err := range p.session.Deltas(context.WithoutCancel(ctx), next) {
				if err != nil || !hand(d) {
					return
				}
				if next >= total {
					break
				}
			}
		}
		yield(piece{}, over)
	}
}

// reasonOf gives the reasons of a session in the words of the tools.
func reasonOf(r sallyport.Reason) Reason {
	switch r {
	case sallyport.ReasonExited:
		return Exited
	case sallyport.ReasonInput:
		return InputWait
	case sallyport.ReasonPassword:
		return Password
	case sallyport.ReasonBytes:
		return Bytes
	case sallyport.ReasonMatch:
		return Match
	case sallyport.ReasonQuiet:
		return Idle
	}
	return Deadline
}

func (p *runnerProcess) await(ctx context.Context, u until) (*reply, error) {
	w := sallyport.Until{For: u.longest, Input: u.input, Bytes: uint64(max(u.bytes, 0)), Match: u.match, Quiet: u.quiet}
	if w.For == 0 {
		w.For = 1 // no time at all, where a session has a usual one
	}
	w.ExitOnly = !w.Input && w.Bytes == 0 && w.Match == nil && w.Quiet == 0
	r, err := p.session.Await(ctx, w)
	if err != nil {
		return nil, err
	}
	last := &reply{
		output: output.Snapshot{Head: r.Output.Head(), Tail: r.Output.Tail(), Omitted: r.Output.Omitted, Total: r.Output.Total},
		reason: reasonOf(r.Reason),
	}
	if err := p.session.SpillErr(); err != nil && !p.told.Swap(true) {
		last.notices = append(last.notices, err.Error())
	}
	if last.reason == Exited {
		last.end, err = p.wait(ctx)
	}
	return last, err
}
