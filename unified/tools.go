// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/shell"
)

// Tools are the two calls, and the processes that were started by them. Only Runner
// must be set. The methods may be called from several goroutines at once, as models
// make calls in parallel: those to one process are served one after another. The
// fields must not change after the first call. Close ends the processes.
type Tools struct {
	// Runner runs the commands, and decides what they may. Its owner closes it, after
	// the Tools.
	Runner *sallyport.Runner
	// Cmd is what all commands have in common, such as Dir, Env, EnvPolicy and
	// Resources. What a [Request] says goes before it. Args, Script, Stdin, Stdout,
	// Stderr, Timeout and the channels are not looked at.
	Cmd sallyport.Cmd
	// Size is that of terminals; the zero Size is 80 columns and 24 rows.
	Size sallyport.Size
	// Term is the terminal type that commands are told; empty means [DefaultTerm].
	Term string
	// AllowLogin permits login shells.
	AllowLogin bool
	// EnvironmentID is the name of the machine that commands run on, for callers who
	// have several; a request for another one is an error. Empty has no name.
	EnvironmentID string
	// System is the system of that machine in the words of GOOS; empty means the one
	// that this program runs on.
	System string

	// MaxPoll is the longest wait of a call that writes nothing; 0 means [MaxPoll].
	MaxPoll time.Duration
	// OutputTokens bounds how much output a response shows, in tokens of four bytes;
	// 0 means [FallbackTokens], negative means that nothing but the request does.
	OutputTokens int
	// Evict says what happens at the Runner's cap on sessions.
	Evict Eviction
	// WarnAt is the number of processes from which on a response to a start warns; 0
	// means [DefaultWarnAt], negative means never.
	WarnAt int
	// Compatible makes the tools do what Codex does where ours differ in what models
	// see: CODEX_CI instead of SALLYPORT_CI, waits that end early only where a request
	// asks for it, and responses with nothing in them but what Codex has.
	Compatible bool

	// Events hears what happens, one call at a time; nil means nobody. It must not
	// call the Tools.
	Events func(Event)
	// Watch, when it is not nil, is asked before each start for a channel by which it
	// can say why the process has failed, such as that its network was refused. The
	// first message ends the process and takes the place of its exit code; an empty one
	// is [NetworkDenied]. Closing the channel says that none will come. The context
	// ends a tenth of a second after the process at the latest.
	Watch func(ctx context.Context, callID string) <-chan string
	// Random is where the digits of chunk ids come from; nil means the system.
	Random io.Reader

	host  host // instead of the Runner, for tests
	pause pauseClock

	mu       sync.Mutex
	closed   bool
	entries  map[int]*entry
	reserved int            // places kept for processes that are being started
	attended sync.WaitGroup // calls of attend; added to under mu while not closed

	telling sync.Mutex // held while Events is called
}

// NetworkDenied is the failure of a process whose network was refused without a word.
const NetworkDenied = "Network access was denied by the Codex sandbox network proxy."

// ExecCommand starts a command and waits for its end, for one of the conditions of the
// request, or for the time it gives. A Response with a SessionID is that of a process
// that goes on; it does so when ctx ends, too. The end of ctx is an *InterruptedError
// once the process runs.
//
// Other errors say that nothing runs: *ArgumentError and the sentinels of this package
// for a request that means nothing, *TooManyError, *CreateError with what the Runner
// said, and *FailedError.
func (t *Tools) ExecCommand(ctx context.Context, q Request) (*Response, error) {
	c, err := t.command(&q)
	if err != nil {
		return nil, err
	}
	h, err := t.source()
	if err != nil {
		return nil, err
	}
	notices, err := t.reserve(ctx, h.most())
	if err != nil {
		return nil, err
	}
	e, more, err := t.start(ctx, h, &q, c)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	defer t.started(e)
	return t.collect(ctx, e, call{
		until: t.until(q.Until, StartYield(q.Yield, t.system()), e), tokens: q.MaxOutputTokens,
		notices: append(notices, more...),
	})
}

// WriteStdin writes to a process and waits as [Tools.ExecCommand] does. A write that the
// process did not live to read is no error: the Response then has its end.
//
// The errors are *UnknownProcessError, [ErrStdinClosed], *WriteError, *ArgumentError,
// *FailedError, and *InterruptedError for the end of ctx.
func (t *Tools) WriteStdin(ctx context.Context, w WriteRequest) (*Response, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	e, err := t.acquire(ctx, w.SessionID)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	yield := WriteYield(w.Yield)
	if w.polls() {
		yield = PollYield(w.Yield, t.MaxPoll)
	} else if err := t.write(ctx, e, &w); err != nil {
		return nil, err
	}
	r, err := t.collect(ctx, e, call{until: t.until(w.Until, yield, e), tokens: w.MaxOutputTokens})
	if err == nil && w.polls() && r.SessionID != 0 {
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID})
	}
	return r, err
}

// exitSoon is how long a process that does not read its input any more has to end, so
// that the end is told and not the failed write.
const exitSoon = 50 * time.Millisecond

// write hands the text of a request to the process. The error is nil for one that has
// ended.
func (t *Tools) write(ctx context.Context, e *entry, w *WriteRequest) error {
	tty := e.stdin == StdinTTY
	if !tty && w.Chars == "\x03" && !w.EOF {
		return t.interrupt(ctx, e)
	}
	if e.stdin == StdinNull {
		return ErrStdinClosed
	}
	var accepted int
	var err error
	if w.Chars != "" {
		accepted, err = e.process.write([]byte(w.Chars))
	}
	if err == nil && w.EOF {
		err = e.process.closeInput()
	}
	switch {
	case err == nil:
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID, Stdin: w.Chars})
		return nil
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case errors.Is(err, os.ErrClosed):
		return ErrStdinClosed
	}
	soon, cancel := context.WithTimeout(ctx, exitSoon)
	defer cancel()
	if _, ended := e.process.wait(soon); ended == nil {
		return nil
	}
	return &WriteError{Accepted: accepted, Err: err}
}

// interrupt sends SIGINT to the process.
func (t *Tools) interrupt(ctx context.Context, e *entry) error {
	err := e.process.interrupt(ctx)
	switch {
	case err == nil:
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID, Stdin: "\x03"})
	case errors.Is(err, os.ErrProcessDone):
	case errors.Is(err, errors.ErrUnsupported):
		return ErrNoInterrupt
	default:
		return &WriteError{Err: err}
	}
	return nil
}

// Interrupt sends SIGINT to a process, on a terminal to the foreground group. It does
// not wait for what comes of it. One that has ended is no error.
func (t *Tools) Interrupt(ctx context.Context, id int) error {
	e, err := t.lookup(id)
	if err != nil {
		return err
	}
	return t.interrupt(ctx, e)
}

// Resize changes the size of a process's terminal.
func (t *Tools) Resize(ctx context.Context, id int, size sallyport.Size) error {
	e, err := t.lookup(id)
	if err != nil {
		return err
	}
	return e.process.resize(ctx, size)
}

// List returns the processes by number, those included that have ended and were not
// asked about since.
func (t *Tools) List() []Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Info, 0, len(t.entries))
	for _, e := range t.orderedLocked() {
		info := e.info
		info.Running = e.process.running()
		list = append(list, info)
	}
	return list
}

// Terminate ends a process: it is asked first, and killed after the grace of Tools.Cmd.
// It reports whether this call ended it: false for a number that belongs to none, and
// for a process that had ended or is being ended. A call that waits for the process
// returns its exit code. With an error the process may still run.
func (t *Tools) Terminate(ctx context.Context, id int) (bool, error) {
	t.mu.Lock()
	e := t.entries[id]
	if e == nil || e.terminating {
		t.mu.Unlock()
		return false, nil
	}
	e.terminating = true
	t.mu.Unlock()

	ended, err := e.process.terminate(ctx)

	t.mu.Lock()
	if err != nil || !ended {
		e.terminating = false // what it left can still be asked for
		t.mu.Unlock()
		return false, err
	}
	starting := e.starting
	t.mu.Unlock()
	if !starting {
		t.remove(e)
	}
	return true, nil
}

// Pause stops the clock of all calls, for the time in which a person is asked something
// that a process waits for: their yields are longer by that time, and none of them
// returns. The returned function ends it; it may be called more than once.
func (t *Tools) Pause() (resume func()) { return t.pause.pause() }

// Close ends all processes, waits for them, and has told the last event when it
// returns. Calls that wait for one of them return. Later calls are [ErrUnavailable].
func (t *Tools) Close() error {
	t.mu.Lock()
	t.closed = true
	list := t.orderedLocked()
	for _, e := range list {
		t.removeLocked(e)
	}
	t.mu.Unlock()

	errs := make([]error, len(list))
	var ending sync.WaitGroup
	for i, e := range list {
		ending.Go(func() {
			_, errs[i] = e.process.terminate(context.Background())
			e.drop()
		})
	}
	ending.Wait()
	t.attended.Wait()
	return errors.Join(errs...)
}

// source returns what starts processes.
func (t *Tools) source() (host, error) {
	switch {
	case t.host != nil:
		return t.host, nil
	case t.Runner != nil:
		return runnerHost{t.Runner}, nil
	}
	return nil, ErrUnavailable
}

// system returns the system that commands run on.
func (t *Tools) system() string {
	if t.System != "" {
		return t.System
	}
	return hostfacts.System
}

// command turns a request into a command.
func (t *Tools) command(q *Request) (*sallyport.Cmd, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	switch {
	case q.Command == "":
		return nil, ErrNoCommand
	case q.EnvironmentID != "" && q.EnvironmentID != t.EnvironmentID:
		return nil, &UnknownEnvironmentError{ID: q.EnvironmentID}
	case strings.ContainsRune(q.Dir, 0):
		return nil, &InvalidPathError{Path: q.Dir, System: t.system()}
	}
	login, err := shell.Login(q.Login, t.AllowLogin)
	if err != nil {
		return nil, err
	}
	c := t.Cmd
	c.Args, c.Script, c.Shell, c.Login = nil, q.Command, q.Shell, login
	c.Dir = joinDir(t.Cmd.Dir, q.Dir)
	c.Stdin, c.Stdout, c.Stderr, c.Signals, c.Ready, c.Resizes = nil, nil, nil, nil, nil, nil
	c.Timeout, c.TTY = 0, nil
	if q.terminal() {
		size := t.Size
		c.TTY = &size
	}
	c.EnvPolicy = withVariables(c.EnvPolicy, t.Term, t.Compatible)
	c.Unsandboxed, c.Justification = q.Permissions == RequireEscalated, q.Justification
	return &c, nil
}

// joinDir returns dir as seen from base; each may be empty.
func joinDir(base, dir string) string {
	switch {
	case dir == "":
		return base
	case base == "" || filepath.IsAbs(dir) || strings.HasPrefix(dir, "/"):
		return dir
	}
	return filepath.Join(base, dir)
}

// until turns the conditions of a request into those of a wait.
func (t *Tools) until(c Conditions, longest time.Duration, e *entry) until {
	u := until{longest: longest, bytes: c.MinBytes, match: c.Match, quiet: c.Idle}
	if c.InputWait != nil {
		u.input = *c.InputWait
	} else {
		u.input = e.stdin == StdinTTY && !t.Compatible
	}
	return u
}

// emit tells the listener, one event at a time.
func (t *Tools) emit(e Event) {
	if t.Events == nil {
		return
	}
	t.telling.Lock()
	defer t.telling.Unlock()
	t.Events(e)
}
