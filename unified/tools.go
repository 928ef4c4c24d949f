// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Tools are the two calls, and the processes that they have started. Only Runner must be
// set. The methods may be called from several goroutines at once, as models make calls in
// parallel; calls for one process take turns. The fields must not change after the first
// call. Close ends the processes.
type Tools struct {
	// Runner runs the commands and decides what they may do. Its owner closes it, after
	// the Tools.
	Runner *sallyport.Runner
	// Cmd is what all commands have in common, such as Dir, Env, EnvPolicy and Resources.
	// A [Request] overrides it. Args, Script, Stdin, Stdout, Stderr, Retention, Timeout
	// and the channels are ignored.
	Cmd sallyport.Cmd
	// Size is that of terminals; the zero Size is 80 columns and 24 rows.
	Size sallyport.Size
	// Record returns what records the terminal of one command. It is called for each that has one; nil, and
	// what it returns as nil, record nothing. Cmd.Record is ignored.
	Record func() event.Recorder
	// Term is the terminal type of commands; empty means "dumb".
	Term string
	// AdditionalPermissions lets calls ask for single paths beyond the sandbox, which needs an
	// approval. False refuses such calls.
	AdditionalPermissions bool
	// AllowLogin permits login shells.
	AllowLogin bool
	// Isolate runs each command in a sandbox of its own, in which no other command is reached. False
	// runs those that have the network of the Runner's policy in one shared sandbox, which is
	// opened with the first one: a server of one command is reached by the next, on the same
	// loopback interface, and they have one /tmp.
	Isolate bool
	// EnvironmentID is the name of the machine that commands run on, for callers who have
	// several; a request for another one is an error. Empty means that it has no name.
	EnvironmentID string
	// System is the operating system of that machine, as GOOS names it; empty means that
	// of this program.
	System string

	// MaxPoll is the longest wait of a call that writes nothing; 0 means [MaxPoll].
	MaxPoll time.Duration
	// OutputTokens limits how much output a response shows, in tokens of four bytes; 0
	// means [DefaultOutputTokens], or 2 500 with Compatible, and negative means
	// that only the request limits it.
	OutputTokens int
	// Evict says what happens at the Runner's session limit.
	Evict Eviction
	// WarnAt is the number of processes from which on a response to a start warns; 0
	// means [DefaultWarnAt], negative means never.
	WarnAt int
	// Compatible makes the tools do what Codex does where models see a difference:
	// CODEX_CI instead of SALLYPORT_CI, waits that end early only if a request asks for
	// it, and responses without what Codex does not have.
	Compatible bool

	// Events receives what happens, one call at a time; nil means no listener. It must
	// not call the Tools.
	Events func(Event)
	// Watch, if not nil, is called before each start for a channel that tells why the
	// process has failed, for example that its network was denied. The first message ends
	// the process and replaces its exit code; an empty one means [NetworkDenied]. Closing
	// the channel says that there will be none. The context ends a tenth of a second after
	// the process at the latest.
	Watch func(ctx context.Context, callID string) <-chan string
	// Random is where the digits of chunk ids come from; nil means the system.
	Random io.Reader

	pause pauseClock

	mu        sync.Mutex
	closed    bool
	processes process.Table[*entry]
	shared    *sallyport.Sandbox // nil before the first command; guarded by opening
	// goroutines that follow or close processes; added to under mu while not closed
	work sync.WaitGroup

	emitting sync.Mutex // held while Events is called
	opening  sync.Mutex // held while shared is opened
}

// NetworkDenied is the failure of a process whose network was denied without a message.
const NetworkDenied = "Network access was denied by the Codex sandbox network proxy."

// ExecCommand starts a command and waits for its end, for one of the conditions of the
// request, or for the time it gives. A Response with a SessionID is that of a process
// that goes on. The end of ctx does not end a process that runs; it is
// [ErrInterrupted] then. After any other error nothing runs. Errors are [*Error] values of the kinds
// [ErrArgument], [ErrUnavailable], [ErrTooMany], [ErrCreate] with the error of the Runner, and [ErrFailed].
func (t *Tools) ExecCommand(ctx context.Context, q Request) (*Response, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	c, err := t.command(&q)
	if err != nil {
		return nil, err
	}
	if t.Runner == nil {
		return nil, unavailable()
	}
	place, notices, err := t.reserve(ctx)
	if err != nil {
		return nil, err
	}
	e, more, err := t.start(ctx, place, &q, c)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	defer t.started(e)
	return t.collect(ctx, e, call{
		until: t.until(q.Until, startYield(q.Yield, t.system()), e), usual: q.Until.InputWait == nil,
		tokens:  q.MaxOutputTokens,
		notices: append(notices, more...),
	})
}

// WriteStdin writes to a process and waits as [Tools.ExecCommand] does. If the process
// ends before it reads the text, that is no error: the Response has its end.
//
// The errors are [*Error] values of the kinds [ErrArgument], [ErrUnavailable], [ErrUnknownProcess],
// [ErrStdinClosed], [ErrNoInterrupt], [ErrWrite], [ErrFailed], and [ErrInterrupted] for the end of ctx.
func (t *Tools) WriteStdin(ctx context.Context, w WriteRequest) (*Response, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	e, err := t.acquire(ctx, w.SessionID)
	if err != nil {
		return nil, err
	}
	defer e.unlock()
	yield := writeYield(w.Yield)
	if w.polls() {
		yield = pollYield(w.Yield, t.MaxPoll)
	} else if err := t.write(ctx, e, &w); err != nil {
		return nil, err
	}
	r, err := t.collect(ctx, e, call{until: t.until(w.Until, yield, e), usual: w.Until.InputWait == nil,
		tokens: w.MaxOutputTokens})
	if err == nil && w.polls() && r.SessionID != 0 {
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID})
	}
	return r, err
}

// exitSoon is how long a process that no longer reads its input has to end, so that the
// response tells the end and not the failed write.
const exitSoon = 50 * time.Millisecond

// write passes the text of a request to the process. The error is nil for a process that
// has ended.
func (t *Tools) write(ctx context.Context, e *entry, w *WriteRequest) error {
	if e.stdin != StdinTTY && w.Chars == "\x03" && !w.EOF {
		return t.interrupt(e)
	}
	if e.stdin == StdinNull {
		return &Error{Kind: ErrStdinClosed}
	}
	var accepted int
	var err error
	if w.Chars != "" {
		accepted, err = e.session.Write([]byte(w.Chars))
	}
	if err == nil && w.EOF {
		err = e.session.CloseInput()
	}
	switch {
	case err == nil:
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID, Stdin: w.Chars})
		return nil
	case errors.Is(err, os.ErrProcessDone):
		return nil
	case errors.Is(err, sallyport.ErrInputClosed) && !errors.Is(err, io.ErrClosedPipe):
		return &Error{Kind: ErrStdinClosed}
	}
	soon, cancel := context.WithTimeout(ctx, exitSoon)
	defer cancel()
	if _, ended := resultOf(soon, e.session); ended == nil {
		return nil
	}
	return notWritten(accepted, err)
}

// interrupt sends SIGINT to the process.
func (t *Tools) interrupt(e *entry) error {
	err := e.session.Interrupt()
	switch {
	case err == nil:
		t.emit(Interaction{CallID: e.info.CallID, SessionID: e.info.SessionID, Stdin: "\x03"})
	case errors.Is(err, os.ErrProcessDone):
	case errors.Is(err, errors.ErrUnsupported):
		return &Error{Kind: ErrNoInterrupt}
	default:
		return notWritten(0, err)
	}
	return nil
}

// Interrupt sends SIGINT to a process, on a terminal to the foreground process group. It
// does not wait for the effect. A process that has ended is no error.
func (t *Tools) Interrupt(id int) error {
	e, err := t.lookup(id)
	if err != nil {
		return err
	}
	return t.interrupt(e)
}

// Resize changes the size of a process's terminal.
func (t *Tools) Resize(id int, size sallyport.Size) error {
	e, err := t.lookup(id)
	if err != nil {
		return err
	}
	return e.session.Resize(size)
}

// List returns the processes by number, including those that have ended and whose end no
// call was told.
func (t *Tools) List() []Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []Info{}
	for _, e := range t.ordered() {
		info := e.info
		info.Running = e.running()
		list = append(list, info)
	}
	return list
}

// Terminate ends a process: SIGTERM first, SIGKILL after the grace of Tools.Cmd. It
// reports whether this call ended it: false for an unknown number, and for a process that
// had ended or is being ended. A call that waits for the process returns its exit code.
// After an error the process may still run.
func (t *Tools) Terminate(ctx context.Context, id int) (bool, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return false, err
	}
	t.mu.Lock()
	e, ok := t.processes.Find(strconv.Itoa(id))
	if !ok || e.terminating {
		t.mu.Unlock()
		return false, nil
	}
	e.terminating = true
	t.mu.Unlock()

	ended, err := terminate(ctx, e.session)

	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || !ended {
		e.terminating = false // its end can still be asked for
		return false, err
	}
	if !e.starting {
		t.remove(e)
	}
	return true, nil
}

// Pause stops the clock of all calls, for the time in which a person is asked something
// that a process waits for: their yields are extended by that time, and none of them
// returns. The returned function ends the pause; it may be called more than once.
func (t *Tools) Pause() (resume func()) { return t.pause.pause() }

// Close ends all processes and waits for them; the last event was emitted when it returns.
// Calls that wait for a process return. Later calls are [ErrUnavailable].
func (t *Tools) Close() error {
	t.mu.Lock()
	t.closed = true
	t.processes.Close()
	list := t.ordered()
	for _, e := range list {
		t.remove(e)
	}
	t.mu.Unlock()

	errs := make([]error, len(list))
	var ending sync.WaitGroup
	for i, e := range list {
		ending.Go(func() { _, errs[i] = terminate(context.Background(), e.session) })
	}
	ending.Wait()
	t.work.Wait()
	return errors.Join(errors.Join(errs...), t.closeShared())
}

// system returns the operating system that commands run on.
func (t *Tools) system() string { return cmp.Or(t.System, hostfacts.System) }

// command turns a request into a command.
func (t *Tools) command(q *Request) (*sallyport.Cmd, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	switch {
	case q.Command == "":
		return nil, invalid("missing command line for unified exec request")
	case q.EnvironmentID != "" && q.EnvironmentID != t.EnvironmentID:
		return nil, invalid("unknown turn environment id `%s`", text.Line(q.EnvironmentID))
	case strings.ContainsRune(q.Dir, 0):
		return nil, invalid("%s is not valid on %s",
			text.Line(strings.ReplaceAll(q.Dir, "\x00", `\0`)), t.system())
	}
	login, err := programs.LoginShell(q.Login, t.AllowLogin)
	if err != nil {
		return nil, err
	}
	c := t.Cmd
	c.Args, c.Script, c.Shell, c.Login = nil, q.Command, q.Shell, login
	c.Dir = joinDir(t.Cmd.Dir, q.Dir)
	c.Stdin, c.Stdout, c.Stderr, c.Signals, c.Ready, c.Resizes = nil, nil, nil, nil, nil, nil
	c.Retention, c.Timeout, c.TTY, c.OpenStdin = sallyport.Retention{}, 0, nil, false
	c.Record = nil
	switch q.input() {
	case StdinTTY:
		size := t.Size
		c.TTY = &size
		if t.Record != nil {
			c.Record = t.Record()
		}
	case StdinPipe:
		c.OpenStdin = true
	}
	c.EnvPolicy = withVariables(c.EnvPolicy, t.Term, t.Compatible)
	c.Unsandboxed, c.Justification, c.PrefixRule = q.Permissions == RequireEscalated,
		q.Justification, q.PrefixRule
	if c.AskFor, err = t.grants(q, c.Dir); err != nil {
		return nil, err
	}
	return &c, nil
}

// joinDir returns dir relative to base; each may be empty.
func joinDir(base, dir string) string {
	switch {
	case dir == "":
		return base
	case base == "" || filepath.IsAbs(dir) || strings.HasPrefix(dir, "/"):
		return dir
	}
	return filepath.Join(base, dir)
}

// until turns the conditions of a request into those of a wait of at most longest.
func (t *Tools) until(c Conditions, longest time.Duration, e *entry) sallyport.Until {
	u := sallyport.Until{For: longest, Bytes: uint64(c.MinBytes), Match: c.Match, Quiet: c.Idle}
	if c.InputWait != nil {
		u.Input = *c.InputWait
	} else {
		u.Input = e.stdin == StdinTTY && !t.Compatible
	}
	u.ExitOnly = !u.Input && u.Bytes == 0 && u.Match == nil && u.Quiet == 0
	return u
}

// emit passes an event to the listener, one at a time. A listener that panics misses that event.
func (t *Tools) emit(e Event) {
	if t.Events == nil {
		return
	}
	t.emitting.Lock()
	defer t.emitting.Unlock()
	_ = strict.Call("Events", func() error { t.Events(e); return nil })
}
