// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/printable"
)

// The bounds of one owner.
const (
	// MaxLive is how many runs are alive, those that are being started included.
	MaxLive = 64
	// maxEnded is how many runs that have ended are retained, and endedTime how long.
	maxEnded  = 64
	endedTime = time.Hour
	// defaultGrace is what a Cmd without a Grace has.
	defaultGrace = 2 * time.Second
)

// A Request asks for a run.
type Request struct {
	// Args are the words after "sallyport run": flags and the command.
	Args []string
	Dir  string // absolute; the working directory unless a flag names another one
	// Environ is the environment of the caller, as "NAME=value". It is not nil.
	Environ   []string
	TTY       *sallyport.Size // nil for none
	OpenStdin bool
	Screen    bool
	// Transient is for those who list it: see [Run.Transient].
	Transient bool
	// Unattended says that no person answers questions, so that none is asked unless the Request asks for that.
	Unattended bool
	// Named is the sandbox that the run joins; nil for one of its own.
	Named *Named
	// Reader has the command wait for a reader of its output: see [Run.Taken]. False never does.
	Reader bool
	// Approver is asked what the run needs an approval for; nil means that there is no answer.
	Approver approval.Approver
	// Events gets the events of the run; nil means no sink.
	Events event.Sink
	// Hidden are absolute paths that a run in a sandbox does not read, beside those of the Table. Those
	// that do not exist are left out: the client named files of another machine.
	Hidden []string
}

// Prepared is what runs for a Request.
type Prepared struct {
	// Runner serves this run only. The Table closes it. Its Events are replaced by those of the
	// Request.
	Runner *sallyport.Runner
	// Cmd is the command. Its streams, and what is in the Request, are replaced.
	Cmd *sallyport.Cmd
	// Close frees what else was prepared. It is called once, after the end of the Runner. Nil
	// frees nothing.
	Close func()
	// Questions are those of the run that can be answered by others than its client; nil for none.
	Questions *Questions
	// Announce is called with the ID of a question before its event is passed on, so that a
	// client which has the event can answer elsewhere. Nil does nothing.
	Announce func(question string)
	// Refused returns the Result for a command that does not run because of an error; nil means
	// [sallyport.ResultOf].
	Refused func(err error) *sallyport.Result
	// Ended is called once with the Result of a run that has ended, and may change it; nil does
	// nothing.
	Ended func(*sallyport.Result)

	own ownExecutor // of the Runner; nil for the one that it makes
}

// An ownExecutor is closed with the Runner that uses it.
type ownExecutor interface {
	executor.Executor
	Close() error
}

// Prepare returns what runs for a Request. An error, which is one sentence, says that the Request
// or the settings are invalid. It may be called from several goroutines at once.
type Prepare func(ctx context.Context, r *Request) (*Prepared, error)

// A Table has the runs of all owners. Make one with New. Its methods may be called from several
// goroutines at once.
type Table struct {
	prepare Prepare
	hidden  []string
	kept    []string
	busy    func(change int)
	life    context.Context // ends with Close
	end     context.CancelFunc
	work    sync.WaitGroup // runs from Reserve to their end; added to under mu while not closed

	mu     sync.Mutex
	closed bool
	owners map[string]*owned
	named  map[namedKey]*named

	exec local.Executor // of the named sandboxes

	numbers sync.Mutex // held while a number is given
	number  Number
	last    uint64 // the last number that was given; guarded by numbers
}

// Number gives a number that was not given before and is larger than after. It may block for a while.
type Number func(after uint64) (uint64, error)

// owned are the runs of one owner.
type owned struct {
	live int // running and starting
	runs map[string]*Run
	// starting are those that are judged, or wait for an approval.
	starting map[string]*Run
	ended    []*Run // those of runs that have ended, the oldest first
}

// New returns a Table. Number gives each run its number; nil means that they count from 1, so that
// another Table gives them again. Hidden are absolute paths that no run in a sandbox reads, and kept
// those that none changes. Busy is called with
// 1 when a run begins to start or is retained, and with -1 when that is over. The caller must call Close.
func New(prepare Prepare, number Number, hidden, kept []string, busy func(change int)) *Table {
	if number == nil {
		number = func(after uint64) (uint64, error) { return after + 1, nil }
	}
	t := &Table{prepare: prepare, number: number, hidden: hidden, kept: kept, busy: busy, owners: make(map[string]*owned), named: make(map[namedKey]*named)}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Reserve gives an owner a number for a run, which is started with Start. One call of that must
// follow. It blocks as Number does. The error is an *Error with the reason Limit or Closed, or Failed
// where there is no number.
func (t *Table) Reserve(owner string) (*Run, error) {
	if err := t.claim(owner); err != nil {
		return nil, err
	}
	r := &Run{table: t, owner: owner, begun: make(chan struct{}), done: make(chan struct{})}
	t.numbers.Lock()
	n, err := t.number(t.last)
	if err == nil {
		t.last = n
	}
	t.numbers.Unlock()
	if err != nil {
		t.release(r)
		return nil, &Error{Reason: Failed, Err: err}
	}
	r.id, r.number = strconv.FormatUint(n, 10), n
	return r, nil
}

// claim counts one more run that is alive, until release or over.
func (t *Table) claim(owner string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosing()
	}
	o := t.owners[owner]
	if o == nil {
		o = &owned{runs: make(map[string]*Run), starting: make(map[string]*Run)}
		t.owners[owner] = o
	}
	if o.live >= MaxLive {
		return o.full()
	}
	o.live++
	t.work.Add(1)
	t.busy(1)
	return nil
}

// full returns the error for one run too many, with the runs that were not used for longest.
func (o *owned) full() *Error {
	var live []sallyport.SessionInfo
	for _, r := range o.runs {
		if !r.over() {
			info := r.session.Info()
			info.ID = r.id
			live = append(live, info)
		}
	}
	if len(live) == 0 {
		return refuse(Limit, "limit of runs (%d) reached by runs that are starting; try again when one has ended", MaxLive)
	}
	slices.SortFunc(live, func(a, b sallyport.SessionInfo) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	var names []string
	const named = 3
	for _, info := range live[:min(named, len(live))] {
		names = append(names, info.ID+" ("+printable.Line(strings.Join(info.Args, " "))+")")
	}
	return refuse(Limit, "limit of runs (%d) reached; terminate one first, such as %s", MaxLive, strings.Join(names, ", "))
}

// release ends what Reserve began, for a run that was not started.
func (t *Table) release(r *Run) {
	t.mu.Lock()
	t.owners[r.owner].live--
	t.started(r)
	t.tidy(r.owner)
	t.mu.Unlock()
	t.busy(-1)
	t.work.Done()
}

// begins lists a run that is about to be judged. Cancel prevents its start.
func (t *Table) begins(r *Run, info Info, cancel context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.wanted, r.cancel = info, cancel
	t.owners[r.owner].starting[r.id] = r
}

// started ends what begins began. The caller holds mu.
func (t *Table) started(r *Run) {
	delete(t.owners[r.owner].starting, r.id)
	close(r.begun)
}

// CancelStart prevents the start of a run, waits until that is over, and reports whether there was one
// to prevent. The end of ctx ends the wait only.
func (t *Table) CancelStart(ctx context.Context, owner, id string) bool {
	t.mu.Lock()
	var r *Run
	if o := t.owners[owner]; o != nil {
		r = o.starting[id]
	}
	t.mu.Unlock()
	if r == nil {
		return false
	}
	r.cancel()
	select {
	case <-r.begun:
	case <-ctx.Done():
	}
	_, err := t.Find(owner, id)
	return err != nil // else it had started already
}

// tidy forgets an owner without runs. The caller holds mu.
func (t *Table) tidy(owner string) {
	if o := t.owners[owner]; o != nil && o.live == 0 && len(o.runs) == 0 {
		delete(t.owners, owner)
	}
}

// settle retains a run that was started, and reports false when the Table was closed meanwhile.
func (t *Table) settle(r *Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started(r)
	if !t.closed {
		t.owners[r.owner].runs[r.id] = r
		t.busy(1)
	}
	return !t.closed
}

// over retains a run that has ended, unless it was removed. Of too many the oldest one goes.
func (t *Table) over(r *Run) {
	t.mu.Lock()
	o := t.owners[r.owner]
	o.live--
	var oldest *Run
	if o.runs[r.id] == r {
		o.ended = append(o.ended, r)
		r.timer = time.AfterFunc(endedTime, func() { t.forget(r) })
		if len(o.ended) > maxEnded {
			oldest = o.ended[0]
			t.take(oldest)
		}
	}
	close(r.done)
	t.tidy(r.owner)
	t.mu.Unlock()
	if oldest != nil {
		oldest.free()
	}
}

// take takes a run out of the Table, and reports whether it was there. The caller holds mu, and
// frees the run afterwards.
func (t *Table) take(r *Run) bool {
	o := t.owners[r.owner]
	if o == nil || o.runs[r.id] != r {
		return false
	}
	delete(o.runs, r.id)
	t.busy(-1)
	o.ended = slices.DeleteFunc(o.ended, func(e *Run) bool { return e == r })
	if r.timer != nil {
		r.timer.Stop()
	}
	t.tidy(r.owner)
	return true
}

// forget removes a run that has ended.
func (t *Table) forget(r *Run) {
	t.mu.Lock()
	found := !t.closed && t.take(r)
	if found {
		t.work.Add(1)
	}
	t.mu.Unlock()
	if found {
		r.free()
		t.work.Done()
	}
}

// Find returns a run of an owner. The error is an *Error with the reason Unknown or Starting.
func (t *Table) Find(owner, id string) (*Run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[owner]
	switch {
	case o != nil && o.runs[id] != nil:
		return o.runs[id], nil
	case o != nil && o.starting[id] != nil:
		return nil, refuse(Starting, "run %s has not begun; it may wait for an approval, which sallyport approvals lists", printable.Word(id))
	}
	return nil, unknown(id)
}

func unknown(id string) *Error {
	return refuse(Unknown, "unknown run %s; run/list has those that there are", printable.Word(id))
}

// List returns what there is to know of the runs of an owner, by their numbers.
func (t *Table) List(owner string) (list []Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.sorted(owner) {
		if t.owners[owner].starting[r.id] != nil {
			list = append(list, r.wanted)
		} else {
			list = append(list, r.Info())
		}
	}
	return list
}

// sorted returns the runs of an owner by their numbers. The caller holds mu.
func (t *Table) sorted(owner string) []*Run {
	o := t.owners[owner]
	if o == nil {
		return nil
	}
	all := slices.AppendSeq(slices.Collect(maps.Values(o.runs)), maps.Values(o.starting))
	slices.SortFunc(all, func(a, b *Run) int { return cmp.Compare(a.number, b.number) })
	return all
}

// Remove has an owner know a run no longer, terminates it and waits for its end. The error is an
// *Error with the reason Unknown.
func (t *Table) Remove(owner, id string) error {
	free := t.Forget(owner, id)
	if free == nil {
		return unknown(id)
	}
	free()
	return nil
}

// Forget has an owner know a run no longer, and returns what terminates it and waits for its end, which must be
// called. It is nil where there is no such run.
func (t *Table) Forget(owner, id string) (free func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[owner]
	if o == nil || o.runs[id] == nil {
		return nil
	}
	r := o.runs[id]
	t.take(r)
	return r.free
}

// all returns all runs. The caller holds mu.
func (t *Table) all() (all []*Run) {
	for _, o := range t.owners {
		all = slices.AppendSeq(all, maps.Values(o.runs))
	}
	return all
}

// Grace returns the longest time that a run which is alive has between SIGTERM and SIGKILL.
func (t *Table) Grace() (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.all() {
		if !r.over() {
			longest = max(longest, cmp.Or(r.prepared.Cmd.Grace, defaultGrace))
		}
	}
	return longest
}

// Stop ends all runs, and waits until they have ended; no further ones are started. They are known
// until Close. It returns the owners of those that were alive.
func (t *Table) Stop() map[string]bool {
	t.mu.Lock()
	t.closed = true
	owners := make(map[string]bool)
	var ends sync.WaitGroup
	for _, r := range t.all() {
		if !r.over() {
			owners[r.owner] = true
			ends.Go(func() { _, _ = r.session.Terminate(context.Background()) }) // without an end of the context there is no error
		}
	}
	t.mu.Unlock()
	t.end()
	ends.Wait()
	t.stopAllNamed()
	t.work.Wait()
	return owners
}

// Close ends all runs and waits until nothing of them is left. It may be called more than once.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	all := t.all()
	for _, r := range all {
		t.take(r)
	}
	t.mu.Unlock()
	t.end()
	var freeing sync.WaitGroup
	for _, r := range all {
		freeing.Go(r.free)
	}
	freeing.Wait()
	t.stopAllNamed()
	t.work.Wait()
	_ = t.exec.Close() // the next start removes what could not be removed
}
