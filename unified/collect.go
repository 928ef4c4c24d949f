// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// start starts a command in its reserved place and returns its entry, which the caller has
// locked. It emits a Begin and an End whatever happens.
func (t *Tools) start(ctx context.Context, place *process.Place[*entry], q *Request,
	c *sallyport.Cmd) (e *entry, notices []string, err error) {
	began := time.Now()
	watching, release := context.WithCancel(context.WithoutCancel(ctx))
	var failures <-chan string
	if t.Watch != nil {
		err = strict.Call("Watch", func() error { failures = t.Watch(watching, q.CallID); return nil })
	}
	var s *sallyport.Session
	if err == nil {
		s, notices, err = t.launch(ctx, c)
	}
	if err != nil {
		release()
		place.End(0)
		t.neverRan(q, c, err, time.Since(began))
		return nil, nil, err
	}
	e = newEntry(s, place, q)
	_ = e.tryLock() // it is not known to others yet
	live, err := t.store(e)
	if err != nil { // closed meanwhile
		release()
		t.neverRan(q, c, err, time.Since(began))
		return nil, nil, errors.Join(err, s.Close())
	}
	t.emit(Begin{
		CallID: q.CallID, SessionID: e.info.SessionID, Args: s.Info().Args, Command: q.Command,
		Dir: e.info.Dir, Source: SourceStartup,
	})
	go t.attend(e, failures, release)
	return e, append(notices, t.warning(live)...), nil
}

// launch starts the command. If others have started as many sessions as the Runner
// permits, one of ours may have to go.
func (t *Tools) launch(ctx context.Context,
	c *sallyport.Cmd) (s *sallyport.Session, notices []string, err error) {
	for {
		s, err = t.begin(ctx, c)
		if err == nil {
			return s, notices, nil
		}
		full := tooMany(err)
		if full == nil {
			return nil, nil, notCreated(err)
		}
		notice, ok, err := t.evict(ctx)
		if !ok || err != nil {
			return nil, nil, errors.Join(full, err)
		}
		notices = append(notices, notice)
	}
}

// begin starts the command in the sandbox of the conversation. If that has ended, because its holder was
// killed, there is a new one.
func (t *Tools) begin(ctx context.Context, c *sallyport.Cmd) (*sallyport.Session, error) {
	if t.Isolate {
		return t.Runner.Start(ctx, c)
	}
	in, err := t.sandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	s, err := in.Start(ctx, c)
	if errors.Is(err, executor.ErrSharedEnded) {
		if in, err = t.sandbox(ctx, in); err != nil {
			return nil, err
		}
		s, err = in.Start(ctx, c)
	}
	return s, err
}

// sandbox returns the shared sandbox of the conversation, but not the one that has ended.
func (t *Tools) sandbox(ctx context.Context, ended *sallyport.Sandbox) (*sallyport.Sandbox, error) {
	t.opening.Lock()
	defer t.opening.Unlock()
	if t.shared != nil && t.shared != ended {
		return t.shared, nil
	}
	if ended != nil {
		_ = ended.Close() // it has ended
	}
	var err error
	t.shared, err = t.Runner.Open(ctx, sallyport.SandboxOptions{Apart: true})
	return t.shared, err
}

// closeShared closes it. No command runs any more.
func (t *Tools) closeShared() error {
	t.opening.Lock()
	defer t.opening.Unlock()
	if t.shared == nil {
		return nil
	}
	return t.shared.Close()
}

// neverRan emits the events of a command that was not started.
func (t *Tools) neverRan(q *Request, c *sallyport.Cmd, err error, took time.Duration) {
	status := Failed
	if errors.Is(err, sallyport.ErrForbidden) || errors.Is(err, sallyport.ErrRefused) {
		status = Declined
	}
	t.emit(Begin{CallID: q.CallID, Command: q.Command, Dir: c.Dir, Source: SourceStartup})
	t.emit(End{CallID: q.CallID, Status: status, ExitCode: -1, Output: []byte(err.Error()), Duration: took})
}

// warning returns a sentence if many processes run.
func (t *Tools) warning(live int) []string {
	if at := cmp.Or(t.WarnAt, DefaultWarnAt); at < 0 || live < at {
		return nil
	}
	return []string{fmt.Sprintf("Warning: The maximum number of unified exec processes you can keep open is %d and you currently have %d processes open. Reuse older processes or end those that you no longer need.", t.most(), live)}
}

// started ends the first call of a process. If the process was terminated meanwhile, its
// entry was kept for the call until now.
func (t *Tools) started(e *entry) {
	t.mu.Lock()
	e.starting = false
	terminated := e.terminating
	t.mu.Unlock()
	if terminated && !e.running() {
		t.remove(e)
	}
}

// A call is what collect needs to know of a tool call.
type call struct {
	until   sallyport.Until
	usual   bool // Until has its Input by default: where the executor cannot tell, it has not
	tokens  *int
	notices []string
}

// collect waits for a process and makes the response. The caller has locked the entry.
func (t *Tools) collect(ctx context.Context, e *entry, c call) (*Response, error) {
	began, paused := time.Now(), t.pause.total()
	out := output.NewBuffer(bufferBytes)
	out.Append(e.back)
	e.back = output.Snapshot{}
	for {
		reply, err := e.session.Await(ctx, c.until)
		if c.usual && c.until.Input && errors.Is(err, errors.ErrUnsupported) {
			c.until.Input = false
			c.until.ExitOnly = c.until.Bytes == 0 && c.until.Match == nil && c.until.Quiet == 0
			continue
		}
		if err == nil {
			out.Append(snapshotOf(reply.Output))
			err = t.pause.wait(ctx)
		}
		if err != nil {
			return nil, t.broken(ctx, e, out, err)
		}
		if extra := t.pause.total() - paused; reply.Reason == sallyport.ReasonDeadline && extra > 0 {
			paused += extra
			c.until.For = extra
			continue
		}
		if err := e.session.SpillErr(); err != nil && !e.toldSpill {
			e.toldSpill = true
			c.notices = append(c.notices, err.Error())
		}
		r := &Response{
			CallID: e.info.CallID, WallTime: time.Since(began), Command: e.info.Command, Reason: reply.Reason,
			Notices: c.notices,
			tokens:  outputTokens(c.tokens, t.OutputTokens, t.Compatible), truncated: c.tokens != nil,
			plain: t.Compatible,
		}
		if r.ChunkID, err = newChunkID(t.Random); err != nil {
			e.back = out.Drain()
			return nil, err
		}
		if reply.Reason != sallyport.ReasonExited {
			return t.goesOn(e, r, out.Drain())
		}
		result, err := resultOf(ctx, e.session)
		if err != nil {
			return nil, t.broken(ctx, e, out, err)
		}
		return t.over(e, r, out.Drain(), result)
	}
}

// broken turns an error of a wait into that of the call. The output that was collected
// stays with the process.
func (t *Tools) broken(ctx context.Context, e *entry, out *output.Buffer, err error) error {
	e.back = out.Drain()
	if ctx.Err() != nil {
		return interrupted(e.info.SessionID, err)
	}
	t.fail(e, err.Error())
	_, terminateErr := terminate(context.WithoutCancel(ctx), e.session)
	t.remove(e)
	return failed(err.Error(), errors.Join(err, terminateErr))
}

// goesOn completes the response of a process that still runs.
func (t *Tools) goesOn(e *entry, r *Response, s output.Snapshot) (*Response, error) {
	s, e.back = holdBack(s)
	r.setOutput(s)
	if known, err := t.lookup(e.info.SessionID); err != nil || known != e {
		return nil, unknownProcess(e.info.SessionID)
	}
	r.SessionID = e.info.SessionID
	return r, nil
}

// over completes the response of a process that has ended, and forgets the process.
func (t *Tools) over(e *entry, r *Response, s output.Snapshot, end *sallyport.Result) (*Response, error) {
	<-e.settled
	r.setOutput(s)
	failure := t.failure(e, r.Output)
	t.remove(e)
	if failure != "" {
		return nil, failed(failure, nil)
	}
	code := end.ExitCode
	r.ExitCode, r.Signal = &code, end.Signal
	r.Denials, r.DenialsOmitted = end.Denials(), end.DenialsOmitted
	r.Notices = append(r.Notices, end.Warnings...)
	r.SuspectDenied = len(r.Denials) > 0 && !slices.ContainsFunc(r.Denials, evident)
	return r, nil
}

// holdBack keeps the beginning of a character at the end of s for the next response.
func holdBack(s output.Snapshot) (told, back output.Snapshot) {
	if s.Omitted == 0 {
		s.Head, s.Tail = s.Bytes(), nil // otherwise a character may lie in both
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
