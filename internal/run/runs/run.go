// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Run is a command of an owner. Its methods may be called from several goroutines at once.
type Run struct {
	table  *Table
	owner  string
	id     string
	number uint64

	life   context.Context    // of the start, and of the table
	cancel context.CancelFunc // prevents the start
	onEnd  func()             // Request.Over; nil for none

	// These are set by Start, before others know the run.
	prepared *Prepared
	session  *sallyport.Session
	input    *process.InputQueue
	reader   *reader // nil for none
	named    *joined // nil for a sandbox of its own

	transient bool

	saved    *durable.Log      // that a next process finds; nil for none
	left     *durable.Left     // that a process before this one has left, of which the run was made; else nil
	restored *sallyport.Result // for such a run: has an End if one is known

	process atomic.Pointer[executor.Process] // the last one; nil before the first
	size    atomic.Pointer[sallyport.Size]   // of the terminal; nil without one
	denied  atomic.Int64                     // accesses so far

	place    *process.Place[*Run]
	starting atomic.Pointer[Info] // what a list shows before it has begun; nil before it is known
	begun    chan struct{}        // closed when Start has returned; then session is nil unless it runs

	done   chan struct{}     // closed when everything is over
	result *sallyport.Result // written before done is closed

	freeing sync.Once

	cursors sync.Mutex
	matched uint64 // offset after the last match that a wait without an offset has found
	told    uint64 // offset after what the waits without an offset have counted
	shown   uint64 // offset after what Show was told
}

// ID returns the number of the run, in decimal.
func (r *Run) ID() string { return r.id }

// Transient reports whether the run is of use only to who has started it.
func (r *Run) Transient() bool { return r.transient }

// over reports whether everything is over.
func (r *Run) over() bool { return isClosed(r.done) }

// hasBegun reports whether Start has returned.
func (r *Run) hasBegun() bool { return isClosed(r.begun) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Start has the command judged, asks where an approval is needed, and returns when it runs, with
// nil, or when it does not, with the Result that says why, or what became of it where the table was
// closed meanwhile. The end of ctx prevents the start and does not end a run. The error is an *Error
// with the reason Invalid: the Request, the settings or the rules are; or Closed. Unless the command
// runs, the run is forgotten.
func (r *Run) Start(ctx context.Context, q *Request) (*sallyport.Result, error) {
	defer r.cancel()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	r.onEnd = q.Over
	res, err := r.start(ctx, q)
	if r.session == nil {
		r.tellEnd()
		r.table.release(r)
		return res, err
	}
	settled := r.table.settle(r)
	go r.follow()
	if settled {
		return nil, nil //nolint:nilnil // it runs
	}
	_, _ = r.session.Terminate(context.Background()) // without an end of the context there is no error
	<-r.done
	r.free()
	return r.result, nil
}

// Release ends what Reserve began, without a start.
func (r *Run) Release() { r.table.release(r) }

// tellEnd calls Request.Over.
func (r *Run) tellEnd() {
	if r.onEnd != nil {
		r.onEnd()
	}
}

// start does the work of Start. The session stays nil if the command does not run.
func (r *Run) start(ctx context.Context, q *Request) (*sallyport.Result, error) {
	p, err := r.table.prepare(ctx, q)
	if err != nil {
		return nil, NotRun(err)
	}
	r.prepared, r.transient = p, q.Transient
	if p.Questions != nil {
		p.Questions.RunID = r.id
	}
	p.Cmd.Stage = q.stage(p.Cmd.Stage)
	if err := r.enter(ctx, q, p); err != nil {
		p.close()
		return p.failed(err)
	}
	p.own = watched{wrapped{p.own}, &r.process}
	if q.Reader {
		r.reader = newReader(p.own)
		p.own = r.reader
	} else {
		p.own = unread{wrapped{p.own}}
	}
	p.Runner.Executor = p.own
	c := *p.Cmd
	c.Stdin, c.Stdout, c.Stderr, c.Signals, c.Resizes, c.Ready, c.OnStop, c.Files = nil, nil, nil, nil,
		nil, nil, nil, nil
	c.TTY, c.OpenStdin, c.Screen = q.TTY, q.OpenStdin, q.Screen
	c.Stays, c.Trace = c.Stays || q.Stays, q.Trace
	c.Retry = q.TTY == nil && !q.OpenStdin
	c.OnDenied = func(d sandbox.Denial) {
		if d.Source.Evidence() { // a guess is no denial
			r.denied.Add(1)
		}
	}
	p.Runner.Events, p.Runner.WaitForEvents = p.announcing(q.Events), q.Events != nil
	if p.Runner.Policy.Mode() == sandbox.Managed {
		here := slices.DeleteFunc(slices.Clone(q.Hidden), func(name string) bool {
			_, err := os.Lstat(name)
			return errors.Is(err, fs.ErrNotExist)
		})
		for _, name := range slices.Concat(r.table.hidden, here) {
			p.Runner.Policy = p.Runner.Policy.WithEntries(sandbox.PathEntry(name, sandbox.LevelDeny))
		}
	}
	p.Runner.Policy, err = reach.Area{Policy: p.Runner.Policy, Workspace: c.Dir,
		HostTmp: c.Tmp == "host"}.Keep(r.table.kept)
	if err != nil {
		p.close()
		return nil, NotRun(err)
	}
	now := time.Now()
	r.table.begins(r, &Info{Starting: true, Script: c.Script, SessionInfo: sallyport.SessionInfo{
		ID: r.id, Args: c.Args, Dir: c.Dir, TTY: c.TTY != nil, Started: now, LastUsed: now,
	}})
	if q.TTY != nil {
		r.setSize(*q.TTY)
	}
	if r.session, err = p.Runner.Start(ctx, &c); err == nil {
		r.input = process.NewInputQueue(func() process.InputTaker { return r.session }, q.TTY != nil, 0)
		return nil, nil //nolint:nilnil // it runs
	}
	r.session = nil
	p.close()
	return p.failed(err)
}

// enter gives the run its executor.
func (r *Run) enter(ctx context.Context, q *Request, p *Prepared) error {
	if q.Named != nil {
		in, err := r.table.join(ctx, r.owner, q.Named, p)
		var no *RefusedError
		var none *sandbox.UnsupportedError
		switch {
		case err == nil:
			r.named, p.own = in, in
		case !q.Named.Else || !errors.As(err, &no) && !errors.As(err, &none):
			return err
		}
	}
	if p.own == nil {
		p.own = r.table.exec.Another()
	}
	return nil
}

// stage returns the stage of a run whose flags and settings ask for one; nil for none.
func (q *Request) stage(said *executor.Staging) *executor.Staging {
	if q.Stage != nil {
		said = q.Stage
	}
	if said == nil {
		return nil
	}
	own := *said
	own.Owner = q.StageOwner
	return &own
}

// failed returns the Result, or the *Error, for a command that does not run because of an error.
func (p *Prepared) failed(err error) (*sallyport.Result, error) {
	var wrong *sallyport.CmdError
	var load *rules.LoadError
	var own *Error
	switch {
	case errors.As(err, &own):
		return nil, own
	case errors.As(err, &wrong), errors.As(err, &load):
		return nil, NotRun(err)
	}
	refused := p.Refused
	if refused == nil {
		refused = func(err error) *sallyport.Result { return sallyport.ResultOf(nil, err) }
	}
	res := refused(err)
	res.Args, res.Dir = p.Cmd.Args, p.Cmd.Dir
	return res, nil
}

// announcing returns a sink that announces questions before it passes them on; nil for no sink.
func (p *Prepared) announcing(to event.Sink) event.Sink {
	if to == nil || p.Announce == nil {
		return to
	}
	return event.SinkFunc(func(e event.Event) {
		if asked, ok := e.Body.(event.ApprovalRequested); ok {
			p.Announce(asked.Request.ID)
		}
		to.Emit(e)
	})
}

// end ends the Runner.
func (p *Prepared) end() {
	_ = p.Runner.Close() // what could not be removed now is when another Runner starts
	if p.own != nil {
		_ = p.own.Close() // likewise
	}
}

// close ends the Runner and frees what was prepared.
func (p *Prepared) close() {
	p.end()
	if p.Close != nil {
		p.Close()
	}
}

// follow waits for the end of the run.
func (r *Run) follow() {
	defer r.table.work.Done()
	defer r.table.busy(-1)
	saved := r.save()
	res, err := r.session.Wait(context.Background())
	made := *sallyport.ResultOf(res, err)
	if err != nil {
		made.Error = err.Error()
	}
	if r.restored != nil && r.restored.End != "" {
		r.restored.Stdout, r.restored.Stderr, r.restored.Output = made.Stdout, made.Stderr, made.Output
		made = *r.restored
	}
	if r.prepared.Ended != nil {
		r.prepared.Ended(&made)
	}
	saved(&made)
	r.result = &made
	r.input.Close()
	r.input.Wait() // not long: the command has ended
	r.Leave()
	if r.named != nil {
		_ = r.named.Close() // it does not wait for those who read the run
	}
	r.tellEnd()
	r.table.over(r)
	// A long output is in a file of the Runner. Without one there is no need to retain that, and
	// the /tmp of the command.
	if total, _ := r.session.Size(); total <= output.DefaultBytes {
		r.prepared.end()
	}
}

// free ends the run and frees what it holds. It waits for the end.
func (r *Run) free() {
	r.freeing.Do(func() {
		_ = r.session.Close() // it returns nil
		r.prepared.close()
	})
}

// Info is what a list shows of a run.
type Info struct {
	sallyport.SessionInfo
	// Script is the script that runs; empty for a program.
	Script string
	// Result is nil while the run is alive.
	Result *sallyport.Result
	// Starting says that it has not begun: it is judged, or waits for an approval.
	Starting bool
	// LastLine is the last line of the output so far that is not empty, without control sequences.
	LastLine string
	// Now is what it does; the zero value after the end. Denials counts what was denied so far.
	Now     process.Now
	Denials int
	// Size is that of the terminal; nil without one.
	Size *sallyport.Size
	// Asks says that a question about it is open, that others than its client can answer.
	Asks bool
}

// Info returns what a list shows.
func (r *Run) Info() Info {
	info := Info{SessionInfo: r.session.Info(), LastLine: r.lastLine(), Size: r.size.Load()}
	info.Script = r.prepared.Cmd.Script
	if r.left != nil {
		info.Started, info.LastUsed = r.left.Started, r.left.Started
	}
	info.ID, info.Running, info.Denials, info.Asks = r.id, !r.over(), int(r.denied.Load()), r.asks()
	if !info.Running {
		info.Result = r.result
	} else if p := r.process.Load(); p != nil {
		info.Now = process.NowOf(*p)
	}
	return info
}

// asks reports whether a question about the run is open.
func (r *Run) asks() bool {
	q := r.prepared.Questions
	return q != nil && len(q.Open.Pending()) > 0
}

// Answer answers the open question with an ID. Of several answers the first one counts; the error for a
// later one is an [approval.ErrUnknown].
func (r *Run) Answer(id string, d approval.Decision) error {
	if q := r.prepared.Questions; q != nil {
		return q.Open.Answer(id, d)
	}
	return approval.ErrUnknown
}

// Result returns the Result of a run that has ended. The error is an *Error with the reason
// Running.
func (r *Run) Result() (*sallyport.Result, error) {
	if !r.over() {
		return nil, refuse(Running, "run %s has not ended; wait for its end first", r.id)
	}
	return r.result, nil
}

// maxResult is how long a Result in JSON may be before it goes without its output.
const maxResult = 8 << 20

// Encode returns what has the JSON form of a Result. The output of a long one is left out, and can be
// read from the run.
func Encode(res *sallyport.Result) json.Marshaler {
	text, err := res.MarshalJSON()
	if err == nil && len(text) <= maxResult {
		return json.RawMessage(text)
	}
	short := WithoutOutput(res)
	short.Notices = append(slices.Clone(res.Notices),
		"its output is too long for one message; read it with run/read")
	return short
}

// WithoutOutput returns a copy of a Result that has the sizes of its output only.
func WithoutOutput(res *sallyport.Result) *sallyport.Result {
	short := *res
	short.Stdout, short.Stderr, short.Output = res.Stdout.WithoutText(), res.Stderr.WithoutText(),
		res.Output.WithoutText()
	return &short
}

// Parts is the JSON form of a Result of which a part was read. The zero Parts has none. With a form for each
// part, the work would grow with the square of the size.
type Parts struct {
	of     *sallyport.Result
	output bool
	text   []byte
}

// Part returns at most so many bytes of the JSON form of res, with its output or not, and whether they end
// it.
// Until then the form is kept.
func (p *Parts) Part(res *sallyport.Result, output bool, from uint64, most int) (part []byte, last bool,
	err error) {
	if p.of != res || p.output != output {
		*p = Parts{}
		form := res
		if !output {
			form = WithoutOutput(res)
		}
		text, err := form.MarshalJSON()
		if err != nil {
			return nil, false, err
		}
		*p = Parts{res, output, text}
	}
	rest := p.text[min(from, uint64(len(p.text))):]
	if len(rest) > most {
		return rest[:most], false, nil
	}
	*p = Parts{}
	return rest, true, nil
}

// Until says what ends a wait.
type Until = sallyport.Until

// A Reply is the result of a wait.
type Reply struct {
	Reason sallyport.Reason
	Next   uint64 // the offset after all output so far
	After  uint64 // the offset from which on a next wait looks at the output
	Input  *executor.InputWait
	Port   int
	Result *sallyport.Result // nil unless the run has ended
}

// Wait waits until a condition of u holds, as [sallyport.Session.Await] does, or u.For is over;
// negative means no limit. The end of the run always ends it. Any number of waits go on at once, each
// with an offset of its own: u.From, or without one that of the last match, and for the amount of
// output that of the last wait. The error is an *Error with the reason Invalid, or that of the end of
// ctx.
func (r *Run) Wait(ctx context.Context, u Until) (*Reply, error) {
	own := u.From != nil
	if !own {
		u.From = r.cursor(&u)
	}
	if u.For == 0 {
		u.For = time.Nanosecond
	}
	got, err := r.session.Await(ctx, u)
	var invalid *sallyport.UntilError
	switch {
	case errors.As(err, &invalid):
		return nil, &Error{Reason: Invalid, Err: err}
	case err != nil:
		return nil, err
	}
	if !own && !u.ExitOnly {
		r.move(&u, got)
	}
	reply := &Reply{Reason: got.Reason, After: got.Next, Input: got.Input, Port: got.Port}
	if reply.Reason == sallyport.ReasonExited {
		<-r.done
	}
	if r.over() {
		*reply = Reply{Reason: sallyport.ReasonExited, Result: r.result, After: got.Next}
	}
	reply.Next, _ = r.session.Size()
	return reply, nil
}

// cursor returns where a wait begins that names no offset. Only a match takes output away from
// the next one: the other waits show nothing of it.
func (r *Run) cursor(u *Until) *uint64 {
	r.cursors.Lock()
	defer r.cursors.Unlock()
	from := r.told
	if u.Match != nil {
		from = r.matched
	}
	return &from
}

// move moves the cursors after a wait that named no offset.
func (r *Run) move(u *Until, got *sallyport.Reply) {
	r.cursors.Lock()
	defer r.cursors.Unlock()
	if u.Match != nil {
		r.matched = max(r.matched, got.Next)
	}
	if got.Reason == sallyport.ReasonMatch {
		r.told = max(r.told, got.Next)
	} else {
		r.told = max(r.told, got.Offset)
	}
}

// maxPattern is how long the pattern of a wait may be.
const maxPattern = 4 << 10

// Pattern compiles the pattern of a wait; an empty one is nil. The error is an *Error with the
// reason Invalid.
func Pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no condition
	}
	if len(text) > maxPattern {
		return nil, refuse(Invalid, "the pattern of `match` is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, refuse(Invalid, "the pattern of `match` is invalid: %w", err)
	}
	return re, nil
}

// Screen returns what the terminal of the run shows. The error is an *Error with the reason
// NoScreen.
func (r *Run) Screen() (sallyport.Screen, error) {
	s, ok := r.session.Screen()
	if !ok {
		return s, refuse(NoScreen, "run %s has no screen; start it with `tty` and `screen`", r.id)
	}
	return s, nil
}

// Resize changes the size of the terminal. After the end of the run it has no effect. The error is
// an *Error with the reason NoTerminal or Failed.
func (r *Run) Resize(size sallyport.Size) error {
	switch err := r.session.Resize(size); {
	case err == nil:
		r.setSize(size)
		r.table.changes.Tell()
		return nil
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		return refuse(NoTerminal, "run %s has no terminal; start it with `tty`", r.id)
	default:
		return refuse(Failed, "cannot resize the terminal of run %s: %w", r.id, err)
	}
}

func (r *Run) setSize(size sallyport.Size) {
	size = size.OrUsual()
	r.size.Store(&size)
}

// Signal sends a signal by number to the process group. After the end of the run it has no effect.
// The error is an *Error with the reason Failed.
func (r *Run) Signal(sig int) error {
	if err := r.session.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return refuse(Failed, "cannot send a signal to run %s: %w", r.id, err)
	}
	return nil
}

// Terminate ends the run, waits for its end, and reports whether it was alive. The end of ctx ends
// the wait only.
func (r *Run) Terminate(ctx context.Context) (bool, error) {
	alive, err := r.session.Terminate(ctx)
	if err != nil {
		return alive, err
	}
	<-r.done
	return alive, nil
}

// End prevents the start of the run, or terminates it, and waits until that is over.
func (r *Run) End() {
	r.cancel()
	<-r.begun
	if r.session != nil {
		_, _ = r.Terminate(context.Background()) // without an end of the context there is no error
	}
}
