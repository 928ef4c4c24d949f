// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
)

// A fakeHost starts processes that exist in the test only: each runs the play for its
// command, or does nothing until it is ended.
type fakeHost struct {
	max   int // 0 is DefaultMaxProcesses
	plays map[string]func(*fakeProcess)
	fail  error         // of every start
	slow  time.Duration // of every start

	mu      sync.Mutex
	last    int
	started []*fakeProcess
}

func (h *fakeHost) most() int {
	if h.max == 0 {
		return DefaultMaxProcesses
	}
	return h.max
}

func (h *fakeHost) start(ctx context.Context, c *sallyport.Cmd, stdin Stdin) (process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if h.fail != nil {
		return nil, h.fail
	}
	after(ctx, h.slow)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(h.last+1, 1000)
	p := &fakeProcess{id: h.last, cmd: c, changed: make(chan struct{}), gone: make(chan struct{}), log: output.NewBuffer(64 << 20)}
	p.context, p.cancel = context.WithCancel(context.Background())
	h.started = append(h.started, p)
	if play := h.plays[c.Script]; play != nil {
		go play(p)
	}
	return p, nil
}

// A fakeProcess keeps its whole output and answers waits by the rules of a session.
type fakeProcess struct {
	id      int
	cmd     *sallyport.Cmd
	context context.Context // ends with the process
	cancel  func()

	onWrite      func(*fakeProcess, string) error
	onInterrupt  func(*fakeProcess) error
	terminateErr error

	mu      sync.Mutex
	log     *output.Buffer
	told    uint64
	ended   *ending
	shut    bool // the streams are closed
	waiting bool
	closed  int
	changed chan struct{}
	gone    chan struct{}
}

// notifyLocked wakes everybody who waits for the process.
func (p *fakeProcess) notifyLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *fakeProcess) print(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.log.Write([]byte(s))
	p.notifyLocked()
}

// exit ends the process. Unless held, its streams are closed with it.
func (p *fakeProcess) exit(end ending, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return
	}
	p.ended = &end
	p.shut = !held
	p.cancel()
	close(p.gone)
	p.notifyLocked()
}

func (p *fakeProcess) shutStreams() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	p.notifyLocked()
}

// reacts says what the process does with what is written to it.
func (p *fakeProcess) reacts(f func(*fakeProcess, string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onWrite = f
}

// obeys says what the process does with an interrupt.
func (p *fakeProcess) obeys(f func(*fakeProcess) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onInterrupt = f
}

func (p *fakeProcess) number() int    { return p.id }
func (p *fakeProcess) args() []string { return []string{"/bin/sh", "-c", p.cmd.Script} }
func (p *fakeProcess) dir() string    { return p.cmd.Dir }

func (p *fakeProcess) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended == nil
}

func (p *fakeProcess) write(b []byte) (int, error) {
	if !p.running() {
		return 0, os.ErrProcessDone
	}
	p.mu.Lock()
	react := p.onWrite
	p.mu.Unlock()
	if react == nil {
		return len(b), nil
	}
	if err := react(p, string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *fakeProcess) closeInput() error { return nil }

func (p *fakeProcess) interrupt(context.Context) error {
	p.mu.Lock()
	obey := p.onInterrupt
	p.mu.Unlock()
	if obey == nil {
		return errors.ErrUnsupported
	}
	return obey(p)
}

func (p *fakeProcess) resize(context.Context, sallyport.Size) error { return nil }

// newLocked returns what came since the last reply.
func (p *fakeProcess) newLocked() []byte { return p.log.Snapshot().Bytes()[p.told:] }

// replyLocked returns the reply that ends a wait now, or nil.
func (p *fakeProcess) replyLocked(u until, expired, over bool) *reply {
	came := p.newLocked()
	r := &reply{end: p.ended}
	switch {
	case p.ended != nil && (p.shut || over):
		r.reason = Exited
	case p.ended != nil:
		return nil
	case u.match != nil && u.match.Match(came):
		r.reason = Match
	case u.bytes > 0 && len(came) >= u.bytes:
		r.reason = Bytes
	case u.input && p.waiting:
		r.reason = InputWait
	case expired:
		r.reason = Deadline
	default:
		return nil
	}
	p.told += uint64(len(came))
	b := output.NewBuffer(BufferBytes)
	_, _ = b.Write(came)
	r.output = b.Drain()
	return r
}

func (p *fakeProcess) await(ctx context.Context, u until) (*reply, error) {
	deadline := time.After(u.longest)
	var over <-chan time.Time // 50 ms after the end, when something holds the streams
	for expired, late := false, false; ; {
		p.mu.Lock()
		r, changed := p.replyLocked(u, expired, late), p.changed
		if p.ended != nil && over == nil {
			over = time.After(50 * time.Millisecond)
		}
		p.mu.Unlock()
		if r != nil {
			return r, nil
		}
		select {
		case <-changed:
		case <-deadline:
			expired = true
		case <-over:
			late = true
		case <-ctx.Done():
			return p.takeBack(), context.Cause(ctx)
		}
	}
}

// takeBack hands out what came, for a wait that is cut short.
func (p *fakeProcess) takeBack() *reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	came := p.newLocked()
	p.told += uint64(len(came))
	return &reply{output: output.Snapshot{Head: came, Total: uint64(len(came))}, reason: Canceled}
}

func (p *fakeProcess) pieces(ctx context.Context) iter.Seq2[piece, error] {
	return func(yield func(piece, error) bool) {
		var at uint64
		for {
			p.mu.Lock()
			data, shut, changed := p.log.Snapshot().Bytes()[at:], p.shut, p.changed
			p.mu.Unlock()
			if len(data) > 0 {
				if !yield(piece{offset: at, stream: executor.Stdout, data: data}, nil) {
					return
				}
				at += uint64(len(data))
				continue
			}
			if shut {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(piece{}, ctx.Err())
				return
			}
		}
	}
}

func (p *fakeProcess) wait(ctx context.Context) (*ending, error) {
	select {
	case <-p.gone:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *fakeProcess) terminate(context.Context) (bool, error) {
	if p.terminateErr != nil {
		return false, p.terminateErr
	}
	if !p.running() {
		return false, nil
	}
	p.exit(ending{code: 143, signal: 15}, false)
	return true, nil
}

func (p *fakeProcess) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	return nil
}

// echo is a play: a shell that prints what it is told, and ends by "exit".
func echo(p *fakeProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = true
	p.onWrite = func(p *fakeProcess, s string) error {
		if strings.TrimSpace(s) == "exit" {
			p.exit(ending{}, false)
			return nil
		}
		p.print(s)
		return nil
	}
	p.notifyLocked()
}

// seconds is a time in seconds.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// later is a play that prints, waits and ends.
func later(d time.Duration, s string, end ending) func(*fakeProcess) {
	return func(p *fakeProcess) {
		after(p.context, d)
		if p.running() {
			p.print(s)
			p.exit(end, false)
		}
	}
}
