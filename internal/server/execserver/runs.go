// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// maxRunWords is how many bytes the arguments of a run may have: as much as a system takes, and as
// a message with them carries.
const maxRunWords = 2 << 20

// maxRunHidden is how many files a client can have hidden from a run.
const maxRunHidden = 64

// runMethods are methods about runs, for clients that ask for extension methods.
var runMethods = sync.OnceValue(func() map[string]method {
	return map[string]method{
		"run/start":      on("run", wire.Decode[wire.RunStart], (*connection).startRun),
		"run/list":       on("run", wire.DecodeList, (*connection).listRuns),
		"run/read":       on("run", wire.Decode[wire.RunRead], (*connection).readRun),
		"run/write":      on("run", wire.Decode[wire.RunWrite], (*connection).writeRun),
		"run/closeStdin": on("run", wire.DecodeRunID, (*connection).closeRunInput),
		"run/wait":       on("run", wire.Decode[wire.RunWait], (*connection).waitRun),
		"run/screen":     on("run", wire.DecodeRunID, (*connection).runScreen),
		"run/resize":     on("run", wire.Decode[wire.RunResize], (*connection).resizeRun),
		"run/signal":     on("run", decodeRunSignal, (*connection).signalRun),
		"run/terminate":  on("run", wire.DecodeRunID, (*connection).terminateRun),
		"run/result":     on("run", wire.Decode[wire.RunResultOf], (*connection).runResult),
		"run/remove":     on("run", wire.DecodeRunID, (*connection).removeRun),
		"sandbox/list":   on("sandbox", wire.DecodeNothing, (*connection).listNamed),
		"sandbox/stop":   on("sandbox", wire.DecodeSandboxName, (*connection).stopNamed),
	}
})

// decodeRunSignal reads the parameters of run/signal.
func decodeRunSignal(params json.RawMessage) (*wire.RunSignal, error) {
	return wire.DecodeRunSignal(params, func(name string) bool {
		return signalNumber(name) != 0 &&
			name != wire.Interrupt
	})
}

// runFailure returns the error for a request about a run. Its data has the reason as a word.
func runFailure(err error) *wire.Error {
	failure := &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	var e *runs.Error
	if !errors.As(err, &e) {
		errors.As(err, &failure) // of methods that have errors of their own
		return failure
	}
	switch e.Reason {
	case runs.Failed:
	case runs.Invalid:
		failure.Code = wire.CodeInvalidParams
	default:
		failure.Code = wire.CodeInvalidRequest
	}
	var taken *int
	if e.Reason == runs.InputFull || e.Taken > 0 {
		taken = &e.Taken
	}
	failure.Data, _ = json.Marshal(struct { // a word and a number always encode
		Reason runs.Reason `json:"reason"`
		Taken  *int        `json:"taken,omitempty"`
		Exit   int         `json:"exitCode,omitempty"`
		By     string      `json:"by,omitempty"`
	}{e.Reason, taken, e.ExitCode, string(e.By)})
	return failure
}

// invalidRun returns the error for parameters of a method about runs.
func invalidRun(method string, err error) *wire.Error {
	if method == "run/start" {
		return runFailure(runs.NotRun(err))
	}
	return runFailure(&runs.Error{Reason: runs.Invalid, Err: err})
}

// run returns a run of the credential; nil when there is none, which is answered.
func (c *connection) run(id wire.ID, run string) *runs.Run {
	r, err := c.server.runs.Find(c.credential, run)
	if err != nil {
		c.fail(id, runFailure(err))
		return nil
	}
	return r
}

// reply answers a request that has no result but success.
func (c *connection) reply(id wire.ID, err error) {
	if err != nil {
		c.fail(id, runFailure(err))
		return
	}
	c.answer(id, struct{}{})
}

// startRun starts a run beside all other requests: a question may be open for long.
func (c *connection) startRun(id wire.ID, p *wire.RunStart) {
	q, err := c.server.runRequest(p)
	if err != nil {
		c.fail(id, runFailure(runs.NotRun(err)))
		return
	}
	if c.trace != nil {
		q.Trace = event.TraceContext(*c.trace)
	}
	if !c.admit(id) { // it may wait for an earlier one
		return
	}
	ctx, done := c.cancelable(id)
	from, starts := c.session.origin, &c.server.starts
	c.work.Go(func() {
		defer c.reads.Add(-1)
		defer done()
		byID := false
		a, _ := starts.Once(ctx, runs.KeyOf(p.Key, "run/start", c.credential), func() (a *startAnswer) {
			a, byID = starts.Once(ctx, runs.KeyOf(p.StartID, "startId", from.id),
				func() *startAnswer { return c.tryRun(ctx, from, p, q) })
			return a
		})
		c.answerRun(ctx, id, a, byID)
	})
}

// tryRun starts a run.
func (c *connection) tryRun(ctx context.Context, from *origin, p *wire.RunStart,
	q *runs.Request) *startAnswer {
	run, failure := c.server.reserveRun(from, q)
	if failure != nil {
		return &startAnswer{failure: failure}
	}
	q.StageOwner = c.credential
	if q.Approver = nil; c.approves {
		q.Approver = c.approver(run.ID())
	}
	if p.Events {
		q.Events = c.runEvents(run.ID())
	}
	res, err := run.Start(ctx, q)
	if err != nil {
		return &startAnswer{failure: runFailure(err)}
	}
	if res != nil {
		return notRun(run.ID(), runs.Encode(res), ctx.Err() != nil)
	}
	if q.Transient {
		// unless it is removed already
		context.AfterFunc(c.life, func() { _ = c.server.runs.Remove(c.credential, run.ID()) })
	}
	return &startAnswer{session: from.id, run: run.ID(),
		result: wire.RunStartResult{RunID: run.ID(), Started: true}}
}

// runRequest returns what a client asks for, without its approver and sink.
func (s *Server) runRequest(p *wire.RunStart) (*runs.Request, error) {
	q := &runs.Request{Args: p.Args, Dir: p.Dir, Environ: s.opts.Environ, OpenStdin: p.OpenStdin,
		RequireSandbox: s.opts.RequireSandbox,
		Screen:         p.Screen, Reader: p.Reader, Hidden: p.Hidden, Transient: p.Transient,
		Unattended: p.Unattended, Stage: p.Stage.Staging("")}
	if p.AskWrites {
		q.Args = append([]string{"--ask-writes"}, p.Args...)
	}
	if in := p.Sandbox; in != nil {
		if err := runs.CheckName(in.Name); err != nil {
			return nil, err
		}
		q.Named = &runs.Named{Name: in.Name,
			Idle: time.Duration(min(in.IdleMs, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond}
	}
	if q.Dir == "" {
		q.Dir = s.opts.Dir
	}
	if !filepath.IsAbs(q.Dir) {
		return nil, fmt.Errorf("cwd %q is not an absolute path", p.Dir)
	}
	if len(q.Hidden) > maxRunHidden || slices.ContainsFunc(q.Hidden,
		func(name string) bool { return !filepath.IsAbs(name) || strings.ContainsRune(name, 0) }) {
		return nil, fmt.Errorf("hidden takes at most %d absolute paths", maxRunHidden)
	}
	words := 0
	for _, arg := range p.Args {
		words += len(arg)
	}
	if words > maxRunWords {
		return nil, fmt.Errorf("args have more than %d bytes", maxRunWords)
	}
	if p.Env != nil || q.Environ == nil {
		q.Environ = []string{}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if name == "" || strings.Contains(name, "=") {
			return nil, fmt.Errorf("env: the name %q is empty or contains =", name)
		}
		q.Environ = append(q.Environ, name+"="+p.Env[name])
	}
	switch {
	case p.TTY != nil && p.OpenStdin:
		return nil, errors.New("openStdin is for a run without `tty`: a terminal takes input")
	case p.TTY == nil && p.Screen:
		return nil, errors.New("screen needs `tty`")
	case p.TTY != nil:
		q.TTY = &executor.Size{Cols: p.TTY.Cols, Rows: p.TTY.Rows}
	}
	return q, nil
}

// runEvents returns the sink for the events of a run. It waits while the queue of the connection is
// full, and so does the run.
func (c *connection) runEvents(run string) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if text, err := wire.Notification(wire.MethodRunEvent,
			wire.RunEvent{RunID: run, Event: e}); err == nil {
			// events always encode
			_ = c.conn.Send(text)
		}
	})
}

func (c *connection) listRuns(id wire.ID, p *wire.ListWait) {
	if p.Since == "" {
		c.answer(id, c.runList(c.server.runs.Version(c.credential)))
		return
	}
	c.beside(id, func(ctx context.Context) (any, error) {
		version, err := c.await(ctx, p, c.changed,
			func() string { return c.server.runs.Version(c.credential) })
		if err != nil {
			return nil, err
		}
		return c.runList(version), nil
	})
}

// await returns the version of a list when it is another one than the client has, its time is over, or the
// server ends. The error is that of ctx.
func (c *connection) await(ctx context.Context, p *wire.ListWait, changes func() []<-chan struct{},
	version func() string) (string, error) {
	waits, cancel := context.WithTimeout(ctx, milliseconds(p.WaitMs))
	defer cancel()
	defer context.AfterFunc(c.server.serving, cancel)()
	for {
		changed := changes()
		now := version() // before the list: what changes in between is found by the next wait
		if now != p.Since || !runs.Await(waits, changed) {
			return now, context.Cause(ctx)
		}
	}
}

// changed returns channels of which one is closed at the next change of what the client can list.
func (c *connection) changed() []<-chan struct{} {
	if q := c.server.opts.Questions; q != nil {
		return q.Changed()
	}
	return c.server.runs.Changed(c.credential)
}

func (c *connection) runList(version string) wire.RunList {
	list := wire.RunList{Runs: []wire.ListedRun{}, Version: version}
	for _, info := range c.server.runs.List(c.credential) {
		l := wire.ListedRun{
			RunID: info.ID, Argv: info.Args, CWD: info.Dir, TTY: info.TTY, Started: info.Started.UnixMilli(),
			LastUsed: info.LastUsed.UnixMilli(), Running: info.Running, Starting: info.Starting,
			LastLine: info.LastLine, WaitsFor: waitsFor(&info), Memory: info.Now.Memory, Size: info.Size,
		}
		l.CPU = inMilliseconds(info.Now.CPU)
		if info.Running {
			l.Denials = &info.Denials
		}
		if res := info.Result; res != nil {
			code, end := res.ExitCode, string(res.End)
			denied := res.DenialsOmitted
			for _, d := range res.Denials() {
				if d.Source.Evidence() { // a guess is no denial
					denied++
				}
			}
			l.ExitCode, l.Signal, l.End, l.Denials = &code, res.Signal, &end, &denied
			l.CPU = inMilliseconds(res.Usage.CPU)
		}
		list.Runs = append(list.Runs, l)
	}
	return list
}

// inMilliseconds returns nil for nil.
func inMilliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// waitsFor says what a run waits for, in the words of [wire.ListedRun].
func waitsFor(info *runs.Info) string {
	switch in := info.Now.Input; {
	case info.Asks:
		return "answer"
	case in == nil:
		return ""
	case in.Kind == executor.InputPassword:
		return "password"
	}
	return "input"
}

// readRun answers with output that is there, and waits beside all other requests otherwise.
func (c *connection) readRun(id wire.ID, p *wire.RunRead) {
	r := c.run(id, p.RunID)
	if r == nil || !c.admit(id) {
		return
	}
	c.taken(r, p)
	most := uint64(runs.DefaultPage)
	if p.MaxBytes != nil {
		most = *p.MaxBytes
	}
	ctx, done := c.cancelable(id)
	c.work.Go(func() {
		defer c.reads.Add(-1)
		defer done()
		if p.WaitMs > 0 {
			limited, cancel := context.WithTimeout(ctx, milliseconds(p.WaitMs))
			r.AwaitOutput(limited, p.After)
			cancel()
		}
		if c.wasCanceled(ctx, id) {
			return
		}
		select { // one page at a time, also where the client does not read
		case c.pages <- struct{}{}:
			defer func() { <-c.pages }()
		case <-c.life.Done():
			return
		}
		page := r.Page(p.After, most)
		result := wire.RunReadResult{Chunks: make([]wire.RunChunk, len(page.Chunks)), Next: page.Next,
			Complete: page.Complete}
		for i, d := range page.Chunks {
			result.Chunks[i] = wire.RunChunk{Offset: d.Offset, Missing: d.Missing, Stream: d.Stream.String(),
				Joined: d.Joined, Chunk: d.Data}
		}
		if !page.Complete || p.Reader == nil || !r.Transient() {
			c.answer(id, result)
			return
		}
		res, err := r.Result() // it has ended
		if err == nil {
			result.Result, err = runs.Encode(runs.WithoutOutput(res)).MarshalJSON()
		}
		if err != nil {
			c.fail(id, runFailure(err))
			return
		}
		free := c.server.runs.Forget(c.credential, p.RunID)
		c.answer(id, result)
		if free != nil { // another client has not removed it
			free()
		}
	})
}

// taken tells a run what its reader says with a read.
func (c *connection) taken(r *runs.Run, p *wire.RunRead) {
	if p.Reader == nil {
		return
	}
	r.Taken(c.life, p.After, p.Reader.StdoutClosed, p.Reader.StderrClosed)
	if p.Reader.Leaves {
		r.Leave()
	}
}

func (c *connection) writeRun(id wire.ID, p *wire.RunWrite) {
	if r := c.run(id, p.RunID); r != nil && c.admit(id) {
		done, err := r.Write(p.WriteID, p.Chunk)
		c.whenDone(id, done, err)
	}
}

func (c *connection) closeRunInput(id wire.ID, run string) {
	if r := c.run(id, run); r != nil && c.admit(id) {
		done, err := r.CloseInput()
		c.whenDone(id, done, err)
	}
}

// whenDone answers a request that was admitted when done is closed.
func (c *connection) whenDone(id wire.ID, done <-chan struct{}, err func() error) {
	c.work.Go(func() {
		defer c.reads.Add(-1)
		select {
		case <-done:
			c.reply(id, err())
		case <-c.life.Done():
		}
	})
}

// until returns the conditions of a wait.
func until(p *wire.RunWait) (runs.Until, error) {
	match, err := runs.Pattern(p.Match)
	u := runs.Until{For: -1, Quiet: milliseconds(p.QuietMs), Input: p.Input, Match: match, Port: p.Port,
		FirstOutput: p.FirstOutput, Bytes: p.Bytes, Raw: p.Raw, From: p.After}
	if p.TimeoutMs != nil {
		u.For = milliseconds(*p.TimeoutMs)
	}
	u.ExitOnly = u.Quiet == 0 && !u.Input && u.Match == nil && !u.Port && !u.FirstOutput && u.Bytes == 0
	return u, err
}

func (c *connection) waitRun(id wire.ID, p *wire.RunWait) {
	r := c.run(id, p.RunID)
	if r == nil {
		return
	}
	u, err := until(p)
	if err != nil {
		c.fail(id, runFailure(err))
		return
	}
	start := time.Now()
	c.beside(id, func(ctx context.Context) (any, error) {
		reply, err := r.Wait(ctx, u)
		if err != nil {
			return nil, err
		}
		result := wire.RunWaitResult{Reason: string(reply.Reason), Next: reply.Next, After: reply.After,
			Port: reply.Port, ElapsedMs: time.Since(start).Milliseconds()}
		if reply.Input != nil {
			result.Input = reply.Input
		}
		if reply.Result != nil {
			result.Result = runs.Encode(reply.Result)
		}
		return result, nil
	})
}

func (c *connection) runScreen(id wire.ID, run string) {
	r := c.run(id, run)
	if r == nil {
		return
	}
	s, err := r.Screen()
	if err != nil {
		c.fail(id, runFailure(err))
		return
	}
	result := wire.RunScreen{
		Lines: s.Lines, Cols: s.Cols, Rows: s.Rows, Col: s.Col, Row: s.Row, Hidden: s.Hidden, Title: s.Title,
		Alternate: s.Alternate, Modes: s.Modes,
	}
	if result.Lines == nil {
		result.Lines = []string{}
	}
	c.answer(id, result)
}

func (c *connection) resizeRun(id wire.ID, p *wire.RunResize) {
	if r := c.run(id, p.RunID); r != nil {
		c.reply(id, r.Resize(executor.Size{Cols: p.Cols, Rows: p.Rows}))
	}
}

func (c *connection) signalRun(id wire.ID, p *wire.RunSignal) {
	if r := c.run(id, p.RunID); r != nil {
		c.reply(id, r.Signal(signalNumber(p.Signal)))
	}
}

// terminateRun answers when the run has ended.
func (c *connection) terminateRun(id wire.ID, run string) {
	c.beside(id, func(context.Context) (any, error) {
		if c.server.runs.CancelStart(c.life, c.credential, run) {
			return wire.TerminateResult{}, nil
		}
		r, err := c.server.runs.Find(c.credential, run)
		if err != nil {
			return nil, err
		}
		running, err := r.Terminate(c.life)
		return wire.TerminateResult{Running: running}, err
	})
}

// maxPart is how much of a result one answer has, in bytes.
const maxPart = 4 << 20

func (c *connection) runResult(id wire.ID, p *wire.RunResultOf) {
	r := c.run(id, p.RunID)
	if r == nil {
		return
	}
	full, err := r.Result()
	if err != nil {
		c.fail(id, runFailure(err))
		return
	}
	if p.From == nil {
		if !p.Output {
			full = runs.WithoutOutput(full)
		}
		c.answer(id, wire.RunResult{Result: runs.Encode(full)})
		return
	}
	part, complete, err := c.parts.Part(full, p.Output, *p.From, maxPart)
	if err != nil {
		c.fail(id, runFailure(err))
		return
	}
	c.answer(id, wire.RunResult{Part: part, Complete: complete})
}

// removeRun answers when the run has ended.
func (c *connection) removeRun(id wire.ID, run string) {
	c.parts = runs.Parts{}
	c.beside(id, func(context.Context) (any, error) {
		if c.server.runs.CancelStart(c.life, c.credential, run) {
			return struct{}{}, nil
		}
		return struct{}{}, c.server.runs.Remove(c.credential, run)
	})
}

func (c *connection) listNamed(id wire.ID, _ struct{}) {
	list := wire.SandboxList{Sandboxes: []wire.ListedSandbox{}}
	for _, i := range c.server.runs.Named(c.credential) {
		l := wire.ListedSandbox{
			Name: i.Name, Workspace: i.Workspace, Network: i.Network.String(), Started: i.Since.UnixMilli(),
			Running: i.Running, PID: os.Getpid(), Idle: i.Idle.Milliseconds(),
		}
		if i.IdleLeft != nil {
			left := i.IdleLeft.Milliseconds()
			l.IdleLeft = &left
		}
		list.Sandboxes = append(list.Sandboxes, l)
	}
	c.answer(id, list)
}

// stopNamed answers when everything in the sandbox has ended.
func (c *connection) stopNamed(id wire.ID, name string) {
	c.beside(id, func(context.Context) (any, error) {
		return struct{}{}, c.server.runs.StopNamed(c.credential, name)
	})
}
