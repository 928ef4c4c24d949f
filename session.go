// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Session is a command that runs while its caller does something else, takes input and
// can be waited for again and again. Its methods may be called from several goroutines at
// once; calls of [Session.Send] with text take turns. Close it when it is no longer needed.
type Session struct {
	id        string
	runner    *Runner
	place     *process.Place[*Session]
	execution *execution
	attempt   atomic.Pointer[attempt] // the last one; nil before the first
	started   time.Time
	done      chan struct{} // closed when everything is over
	result    *Result       // written before done is closed
	err       error

	sendTurn chan struct{} // holds a token while a call writes and then waits
	input    *process.InputQueue

	inspections sync.WaitGroup // of the process; added to under mu while not over
	replies     chan []byte    // of the terminal to the program's queries; nil without a screen
	replied     chan struct{}  // closed when no reply is typed any more

	mu        sync.Mutex
	used      time.Time
	pending   *output.Buffer // output since the last reply
	total     uint64         // bytes of output
	matched   uint64         // the offset from which on the next wait looks for a match
	last      time.Time      // of the last byte
	changed   chan struct{}  // closed by the next output; nil while no call waits
	screen    *text.Screen   // nil for none
	size      *Size          // of the terminal since it was changed; nil before
	toldSpill bool           // a reply had the notice about SpillErr
}

// Start starts a command and returns as soon as it runs. The end of ctx keeps the command
// from being started and does not end one that runs: a session lives until its command
// ends, or it, or the Runner, is closed. Start keeps no reference to c. Cmd.Stdin must be
// nil; a session takes input through [Session.Write] if it has a TTY or OpenStdin. The
// errors are those of Run for a command that does not run, or of which that is not known
// ([ErrEndUnknown]), and *TooManySessionsError.
func (r *Runner) Start(ctx context.Context, c *Cmd) (*Session, error) { return r.start(ctx, c, nil) }

// start is Start in a shared sandbox, or with nil in one of the command's own.
func (r *Runner) start(ctx context.Context, c *Cmd, in *Sandbox) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, ErrNoContext
	case c == nil:
		return nil, c.check()
	case c.Stdin != nil:
		return nil, &CmdError{Field: "Stdin",
			Reason: "a session does not read it; set OpenStdin or TTY and use Session.Write"}
	}
	c = c.clone()
	life, leaveRunner, err := r.enter(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	leave, release := leaveRunner, func() {}
	var s *Session
	defer func() {
		if s == nil { // also where something of the caller panics
			release()
			leave()
		}
	}()
	leaveSandbox, err := in.enter()
	if err != nil {
		return nil, err
	}
	leave = func() {
		leaveSandbox()
		leaveRunner()
	}
	place, id, err := r.sessions.reserve(r.MaxSessions, r.sequentialIDs)
	if err != nil {
		return nil, err
	}
	release = func() { place.End(0) }
	if s, err = r.newSession(ctx, c, id); err != nil {
		return nil, err
	}
	s.place = place
	s.execution.sandbox = in
	running := make(chan struct{})
	go func() {
		defer leave()
		s.run(ctx, life, running)
	}()
	select {
	case <-running:
	case <-s.done:
	}
	if s.attempt.Load() == nil {
		return nil, s.err
	}
	return s, nil
}

// defaultSpill is Runner.Spill when that is 0.
const defaultSpill = 64 << 20

// newSession returns a session whose command has not been started.
func (r *Runner) newSession(ctx context.Context, c *Cmd, id string) (*Session, error) {
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Session{
		id: id, runner: r, execution: x, started: x.start, used: x.start, done: make(chan struct{}),
		sendTurn: make(chan struct{}, 1),
	}
	s.input = process.NewInputQueue(func() process.InputTaker { return s.attempt.Load().process },
		c.TTY != nil, inputPatience)
	if x.again = s.reset; c.TTY == nil && !c.OpenStdin {
		s.input.End()
	} else {
		x.queue = s.input
	}
	x.resumed = s.resume
	x.session, x.pipe, x.onOutput = true, c.OpenStdin && c.TTY == nil, s.onOutput
	x.retain = executor.Retention{Memory: c.Retention.Bytes, File: cmp.Or(r.Spill, defaultSpill),
		Open: c.Retry}
	if x.retain.Memory <= 0 {
		x.retain.Memory = output.DefaultBytes
	}
	s.pending = output.NewBuffer(x.retain.Memory)
	if c.Screen {
		size := c.TTY.OrUsual()
		s.screen = text.NewScreen(int(size.Cols), int(size.Rows))
		s.replies, s.replied = make(chan []byte, maxReplies), make(chan struct{})
	}
	return s, nil
}

// run executes the command to its end. It closes running once the process runs, and
// done when everything is over; the attempt stays nil if the process was not started.
func (s *Session) run(ctx, life context.Context, running chan<- struct{}) {
	// The end of either context prevents the start.
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	detach := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	defer detach()
	s.result, s.err = s.execution.execute(both, life, func(a *attempt) {
		s.execution.retain.After = a.process.Output() // for a second attempt
		if old := s.attempt.Swap(a); old != nil {
			s.input.Release()
			s.wake() // waits ask the new process
			if old.asked() == EndCanceled {
				a.stop(EndCanceled) // the session was terminated meanwhile
			}
			return
		}
		_, _ = s.place.Enter(s.id, s) // a number that was never given, in a table that is never closed
		if s.replies != nil {
			go s.reply()
		}
		close(running)
	})
	if s.attempt.Load() == nil {
		s.place.End(0)
		close(s.done)
		return
	}
	if out, ok := s.output().(interface{ End() }); ok {
		out.End()
	}
	s.input.Close()
	s.place.End(0)
	s.mu.Lock()
	close(s.done) // no inspection begins after this
	s.mu.Unlock()
	if s.replied != nil {
		<-s.replied
	}
	s.inspections.Wait()
}

// onOutput takes output that the executor has retained, and how many bytes after it are omitted.
func (s *Session) onOutput(p []byte, omitted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.pending.Write(p) // it does not fail
	s.pending.Omit(omitted)
	s.total += uint64(len(p) + omitted)
	s.last = time.Now()
	s.wakeLocked()
	if s.screen == nil {
		return
	}
	_, _ = s.screen.Write(p) // nor does this
	if r := s.screen.Replies(); len(r) > 0 {
		select {
		case s.replies <- r:
		default: // the program asks and reads no replies
		}
	}
}

// wake ends the pauses of waits.
func (s *Session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked()
}

// resume has waits for a quiet command begin anew: no question is open any more.
func (s *Session) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	s.wakeLocked()
}

func (s *Session) wakeLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// reset gives another attempt the terminal that it expects: of the size that it has by now, with nothing
// on it.
func (s *Session) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size != nil {
		*s.execution.cmd.TTY = *s.size
	}
	if s.screen != nil {
		size := s.execution.cmd.TTY.OrUsual()
		s.screen = text.NewScreen(int(size.Cols), int(size.Rows))
	}
}

// maxReplies is how many replies of the terminal wait for a program that does not read.
const maxReplies = 16

// reply types the replies of the terminal to what the program asks it.
func (s *Session) reply() {
	defer close(s.replied)
	for {
		select {
		case <-s.done:
			return
		case r := <-s.replies:
			_, _ = s.input.Answer(context.Background(), r) // a program that does not read gets no reply
		}
	}
}

// ID returns the identity of the session, a decimal number that the Runner gives only
// once.
func (s *Session) ID() string { return s.id }

// Info returns what a list of sessions shows of this one.
func (s *Session) Info() SessionInfo {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	x := s.execution
	info := SessionInfo{
		ID: s.id, Run: x.id, CallerID: x.callerID, Args: slices.Clone(x.args), Dir: x.dir,
		TTY:     x.cmd.TTY != nil,
		Started: s.started, LastUsed: used, Running: true, ExitCode: -1,
	}
	if s.over() {
		info.Running = false
		if s.result != nil {
			info.ExitCode, info.Signal = s.result.ExitCode, s.result.Signal
		}
	}
	return info
}

// over reports whether everything is over.
func (s *Session) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *Session) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

// Wait blocks until the command and its process tree have ended, and returns what Run
// would have returned; but that the session was terminated is no error, [Result.End] tells
// it. The end of ctx ends the wait only.
func (s *Session) Wait(ctx context.Context) (*Result, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, err
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		if !s.over() {
			return nil, waitCanceled(ctx)
		}
	}
	return s.result, s.err
}

// Terminate ends the command's process tree: it sends SIGTERM (before it SIGHUP on a
// terminal), and SIGKILL after Cmd.Grace. It waits for the end, and reports whether the
// command was alive. The output of the session can still be read.
func (s *Session) Terminate(ctx context.Context) (bool, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return false, err
	}
	if s.over() {
		return false, nil
	}
	s.stop()
	if _, err := s.Wait(ctx); !s.over() {
		return true, err
	}
	return true, nil
}

// stop ends the last attempt, and withdraws the question about a second one.
func (s *Session) stop() {
	for a := (*attempt)(nil); a != s.attempt.Load(); {
		a = s.attempt.Load()
		a.stop(EndCanceled)
	}
}

// TerminateAll terminates all sessions at once and returns how many were alive. The end
// of ctx ends the wait for them only.
func (r *Runner) TerminateAll(ctx context.Context) (int, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return 0, err
	}
	all, _ := r.sessions.List()
	for _, s := range all {
		s.stop()
	}
	for _, s := range all {
		if _, err := s.Terminate(ctx); err != nil {
			return len(all), err
		}
	}
	return len(all), nil
}

// Close ends the command as Terminate does and forgets the session: its identity is
// unknown from then on, and output that is only in its file can no longer be read. It may
// be called more than once.
func (s *Session) Close() error {
	s.stop()
	<-s.done
	s.place.Forget()
	s.drop()
	return nil
}

var _ io.WriteCloser = (*Session)(nil)

// How many sessions there may be.
const (
	// DefaultMaxSessions is how many sessions may be alive when MaxSessions is 0.
	DefaultMaxSessions = 64
	// noticeSessions is from how many of 64 on replies say that there are many.
	noticeSessions = 60
	// keptSessions is how many ended sessions are still known.
	keptSessions = 64
)

// Identities of sessions: numbers that are short and easy to repeat.
const (
	firstID = 1000
	lastID  = 99_999
)

// A SessionInfo is what a list of sessions shows.
type SessionInfo struct {
	ID       string    `json:"id"`
	Run      string    `json:"run"` // as in events
	CallerID string    `json:"caller_id,omitempty"`
	Args     []string  `json:"argv"`
	Dir      string    `json:"cwd"`
	TTY      bool      `json:"tty"`
	Started  time.Time `json:"started"`
	LastUsed time.Time `json:"last_used"` // of the last start, write or wait
	Running  bool      `json:"running"`
	// ExitCode and Signal are those of its Result; -1 and 0 while it runs.
	ExitCode int `json:"exit_code"`
	Signal   int `json:"signal"`
}

// A TooManySessionsError reports that the session limit is reached. No session was ended
// for the new one.
type TooManySessionsError struct {
	Max        int
	Candidates []SessionInfo // the live sessions, the one that was idle for longest first
}

// Error returns one sentence that names the first candidates.
func (e *TooManySessionsError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("sallyport: session limit (%d) reached by sessions that are starting; try again when one has ended", e.Max)
	}
	const named = 3
	var ids []string
	for _, c := range e.Candidates[:min(named, len(e.Candidates))] {
		ids = append(ids, fmt.Sprintf("%s (%s, idle for %v)", c.ID, text.Line(strings.Join(c.Args, " ")),
			time.Since(c.LastUsed).Round(time.Second)))
	}
	return fmt.Sprintf("sallyport: session limit (%d) reached; end one first, such as %s", e.Max,
		strings.Join(ids, ", "))
}

// sessions is the table of a Runner. The zero sessions is empty.
type sessions struct {
	process.Table[*Session]
	bounds sync.Once

	mu   sync.Mutex
	used map[int]struct{} // every number that was given
	next int              // for sequential numbers
}

// reserve takes a place and a number, or refuses.
func (t *sessions) reserve(most int, sequential bool) (*process.Place[*Session], string, error) {
	t.bounds.Do(func() { t.Ended, t.Drop = keptSessions, (*Session).drop })
	most = cmp.Or(most, DefaultMaxSessions)
	place, err := t.Reserve(most)
	if err != nil {
		return nil, "", &TooManySessionsError{Max: most, Candidates: t.idle()}
	}
	return place, strconv.Itoa(t.number(sequential)), nil
}

// number draws a number that was never given. When half of the range is used, the
// range grows tenfold, so a draw takes two tries on average.
func (t *sessions) number(sequential bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sequential {
		t.next = max(t.next+1, firstID)
		return t.next
	}
	if t.used == nil {
		t.used = make(map[int]struct{})
	}
	last := lastID
	for len(t.used) > (last-firstID)/2 {
		last = last*10 + 9
	}
	for {
		n := firstID + rand.IntN(last-firstID+1)
		if _, taken := t.used[n]; !taken {
			t.used[n] = struct{}{}
			return n
		}
	}
}

// idle lists the live sessions, the one that was idle for longest first.
func (t *sessions) idle() []SessionInfo {
	live, _ := t.List()
	return infos(live, func(a, b SessionInfo) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), strings.Compare(a.ID, b.ID))
	})
}

// infos lists sessions in an order.
func infos(list []*Session, order func(a, b SessionInfo) int) []SessionInfo {
	out := make([]SessionInfo, len(list))
	for i, s := range list {
		out[i] = s.Info()
	}
	slices.SortFunc(out, order)
	return out
}

// drop frees what is retained of the output of ended sessions outside of memory.
func (t *sessions) drop() {
	_, ended := t.List()
	for _, s := range ended {
		s.drop()
	}
}

// notice returns a sentence if there are many sessions; else it is empty.
func (t *sessions) notice(most int) string {
	most = cmp.Or(most, DefaultMaxSessions)
	_, n, _ := t.Count()
	if n < max(most*noticeSessions/DefaultMaxSessions, 1) || most < 2 {
		return ""
	}
	return fmt.Sprintf("%d of at most %d sessions are alive; reuse sessions, or end those that are not needed", n, most)
}

// Session returns the session with an identity, alive or ended, and whether it is known.
// Of ended sessions that were not closed, the last 64 are.
func (r *Runner) Session(id string) (*Session, bool) { return r.sessions.Find(id) }

// Sessions lists the sessions, alive or ended, by their number.
func (r *Runner) Sessions() []SessionInfo {
	live, ended := r.sessions.List()
	return infos(append(ended, live...), func(a, b SessionInfo) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
}
