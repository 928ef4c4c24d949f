// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// An InterruptedError says that a call was ended by the end of its context. The process
// goes on, and what came so far comes with the next response.
type InterruptedError struct {
	SessionID int
	Err       error // the cause of the context's end
}

// Error returns one sentence with the number of the process.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("the call was interrupted, and the process goes on as session %d: %v", e.SessionID, e.Err)
}

// Unwrap gives the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

// start starts a command in the place that was reserved for it, and returns it in the
// store, with its turn. There is a beginning and an end in the events whatever happens.
func (t *Tools) start(ctx context.Context, h host, q *Request, c *sallyport.Cmd) (e *entry, notices []string, err error) {
	stdin := StdinNull
	switch {
	case q.terminal():
		stdin = StdinTTY
	case q.Stdin != "":
		stdin = q.Stdin
	}
	began := time.Now()
	watching, release := context.WithCancel(context.WithoutCancel(ctx))
	var failures <-chan string
	if t.Watch != nil {
		failures = t.Watch(watching, q.CallID)
	}
	p, notices, err := t.launch(ctx, h, c, stdin)
	if err != nil {
		release()
		t.mu.Lock()
		t.reserved--
		t.mu.Unlock()
		t.neverRan(q, c, err, time.Since(began))
		return nil, nil, err
	}
	now := time.Now()
	e = newEntry(p, Info{
		CallID: q.CallID, SessionID: p.number(), Command: q.Command, Dir: p.dir(), TTY: stdin == StdinTTY,
		Started: now, LastUsed: now,
	}, stdin)
	e.starting = true
	_ = e.tryLock() // nobody else knows it yet
	live, err := t.store(e, t.listens())
	if err != nil { // closed meanwhile
		release()
		_, terminateErr := p.terminate(context.WithoutCancel(ctx))
		t.neverRan(q, c, err, time.Since(began))
		return nil, nil, errors.Join(err, terminateErr, p.close())
	}
	t.emit(Begin{
		CallID: q.CallID, SessionID: e.info.SessionID, Args: p.args(), Command: q.Command, Dir: e.info.Dir, Source: SourceStartup,
	})
	if t.listens() {
		go t.attend(e, failures, release)
	} else {
		close(e.settled)
		release()
	}
	return e, append(notices, t.warning(live, h.most())...), nil
}

// launch starts the command. Where the Runner has no place for it because of sessions
// that others started, one of ours may have to go.
func (t *Tools) launch(ctx context.Context, h host, c *sallyport.Cmd, stdin Stdin) (p process, notices []string, err error) {
	for {
		p, err = h.start(ctx, c, stdin)
		var full *TooManyError
		switch {
		case err == nil:
			return p, notices, nil
		case !errors.As(err, &full):
			return nil, nil, &CreateError{Err: err}
		}
		notice, ok, evictErr := t.evict(ctx)
		if !ok || evictErr != nil {
			return nil, nil, errors.Join(err, evictErr)
		}
		notices = append(notices, notice)
	}
}

// neverRan tells the listener about a command that was not started.
func (t *Tools) neverRan(q *Request, c *sallyport.Cmd, err error, took time.Duration) {
	status := Failed
	if errors.Is(err, sallyport.ErrForbidden) || errors.Is(err, sallyport.ErrRefused) {
		status = Declined
	}
	t.emit(Begin{CallID: q.CallID, Command: q.Command, Dir: c.Dir, Source: SourceStartup})
	t.emit(End{CallID: q.CallID, Status: status, ExitCode: -1, Output: failedOutput(nil, nil, err.Error()), Duration: took})
}

// warning says that many processes run.
func (t *Tools) warning(live, most int) []string {
	at := t.WarnAt
	if at == 0 {
		at = DefaultWarnAt
	}
	if at < 0 || live < at {
		return nil
	}
	return []string{fmt.Sprintf("Warning: The maximum number of unified exec processes you can keep open is %d and you currently have %d processes open. Reuse older processes or end those that you no longer need.", most, live)}
}

// started marks the call that started the process as over. A process that was
// terminated meanwhile was kept for it until now.
func (t *Tools) started(e *entry) {
	t.mu.Lock()
	e.starting = false
	terminated := e.terminating
	t.mu.Unlock()
	if terminated && !e.process.running() {
		t.remove(e)
	}
}

// A call is what a wait needs to know of the call that waits.
type call struct {
	until   until
	tokens  *int
	notices []string
}

// collect waits for a process and answers with what came. The caller holds the
// process's turn.
func (t *Tools) collect(ctx context.Context, e *entry, c call) (*Response, error) {
	began, paused := time.Now(), t.pause.total()
	out := output.NewBuffer(BufferBytes)
	out.Append(e.back)
	e.back = output.Snapshot{}
	for {
		last, err := e.process.await(ctx, c.until)
		if last != nil {
			out.Append(last.output)
		}
		if err == nil {
			err = t.pause.wait(ctx)
		}
		if err != nil {
			return nil, t.broken(ctx, e, out, err)
		}
		if extra := t.pause.total() - paused; last.reason == Deadline && extra > 0 {
			paused += extra
			c.until.longest = extra
			continue
		}
		return t.answer(e, c, out.Drain(), last, time.Since(began))
	}
}

// broken turns an error of a wait into that of the call. What was collected stays with
// the process.
func (t *Tools) broken(ctx context.Context, e *entry, out *output.Buffer, err error) error {
	e.back = out.Drain()
	if ctx.Err() != nil {
		return &InterruptedError{SessionID: e.info.SessionID, Err: err}
	}
	t.fail(e, err.Error())
	_, terminateErr := e.process.terminate(context.WithoutCancel(ctx))
	t.remove(e)
	return &FailedError{Message: err.Error(), Err: errors.Join(err, terminateErr)}
}

// answer makes the response, and forgets a process that has ended.
func (t *Tools) answer(e *entry, c call, s output.Snapshot, last *reply, wall time.Duration) (*Response, error) {
	id, err := newChunkID(t.Random)
	if err != nil {
		e.back = s
		return nil, err
	}
	r := &Response{
		CallID: e.info.CallID, ChunkID: id, WallTime: wall, Command: e.info.Command, Reason: last.reason, Notices: c.notices,
		tokens: outputTokens(c.tokens, t.OutputTokens), truncated: c.tokens != nil, plain: t.Compatible,
	}
	r.Notices = append(r.Notices, last.notices...)
	if last.end == nil {
		s, e.back = holdBack(s)
		r.setOutput(s)
		t.mu.Lock()
		gone := e.gone
		t.mu.Unlock()
		if gone {
			return nil, &UnknownProcessError{ID: e.info.SessionID}
		}
		r.SessionID = e.info.SessionID
		return r, nil
	}
	<-e.settled
	r.setOutput(s)
	failure := t.failure(e, r.Output)
	t.remove(e)
	if failure != "" {
		return nil, &FailedError{Message: failure}
	}
	end := last.end
	r.ExitCode, r.Signal = &end.code, end.signal
	r.Denials, r.DenialsOmitted = end.denials, end.denialsOmitted
	r.Notices = append(r.Notices, end.notices...)
	if len(r.Denials) == 0 && !end.observed {
		r.SuspectDenied = text.SuspectDenied(end.code, end.sandboxed, t.system() == "linux", r.Output)
	}
	return r, nil
}

// holdBack keeps the beginning of a character at the end of s for the next response.
func holdBack(s output.Snapshot) (told, back output.Snapshot) {
	if s.Omitted == 0 {
		s.Head, s.Tail = s.Bytes(), nil // else a character may lie in both
	}
	last := &s.Tail
	if len(s.Tail) == 0 {
		last = &s.Head
	}
	whole := len(*last) - text.Unfinished(*last)
	rest := (*last)[whole:]
	*last = (*last)[:whole]
	s.Total -= uint64(len(rest))
	return s, output.Snapshot{Head: rest, Total: uint64(len(rest))}
}
