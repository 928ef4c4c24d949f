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
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The bounds of one owner.
const (
	// maxLive is how many runs are alive without a [Table.Live], those that are being started included.
	maxLive = 64
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
	// Workdir is an absolute path: where the command runs while the workspace stays that of Dir and the
	// flags, so that the choice opens nothing. Empty means in the workspace.
	Workdir string
	// Patch is the text of a patch, in the place of the command; empty for none.
	Patch string
	// Environ is the environment of the caller, as "NAME=value". It is not nil.
	Environ   []string
	TTY       *sallyport.Size // nil for none
	OpenStdin bool
	Screen    bool
	// Transient is for those who list it: see [Run.Transient].
	Transient bool
	// Unattended says that no person answers questions, so that none is asked unless the Request asks
	// for that.
	Unattended bool
	// Stays is that of the Cmd.
	Stays bool
	// Named is the sandbox that the run joins; nil for one of its own.
	Named *Named
	// Stage is that of the Cmd, in the place of what Args say; nil leaves it to them. Its owner, and that of
	// what they say, is StageOwner.
	Stage      *executor.Staging
	StageOwner string
	// Reader has the command wait for a reader of its output: see [Run.Taken]. False never does.
	Reader bool
	// Approver is asked what the run needs an approval for; nil means that there is no answer.
	Approver approval.Approver
	// Events gets the events of the run; nil means no sink.
	Events event.Sink
	// Trace is that of the Cmd.
	Trace event.TraceContext
	// Hidden are absolute paths that a run in a sandbox does not read, beside those of the Table. Those
	// that do not exist are left out: the client named files of another machine.
	Hidden []string
	// RequireSandbox refuses what would run without a sandbox, whatever settings, rules and approvals say.
	RequireSandbox bool
	// Over is called once when the run has ended, before that is known, or did not run. Nil does nothing.
	Over func()
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
//
// The exported fields must not change after the first Reserve.
type Table struct {
	// Prefix begins the ID of each run, before its number; it may be empty.
	Prefix string
	// Durable keeps the output and the results of runs for the next process; nil keeps nothing.
	Durable *durable.Store
	// Live is how many runs of one owner are alive at once, those that are being started included. 0 means
	// 64.
	Live int

	prepare Prepare
	hidden  []string
	kept    []string
	busy    func(change int)
	life    context.Context // ends with Close
	end     context.CancelFunc
	work    sync.WaitGroup // runs from Reserve to their end; added to under mu while not closed

	mu     sync.Mutex
	closed bool
	owners map[string]*process.Table[*Run]
	named  map[namedKey]*named

	changes Changes // of the runs of all owners

	exec local.Executor // of the named sandboxes; what it shares is that of all runs

	restoring sync.Mutex // held while runs are made of logs

	numbers sync.Mutex // held while a number is given
	number  Number
	last    uint64 // the last number that was given; guarded by numbers
}

// Number gives a number that was not given before and is larger than after. It may block for a while.
type Number func(after uint64) (uint64, error)

// New returns a Table. Number gives each run its number; nil means that they count from 1, so that
// another Table gives them again. Hidden are absolute paths that no run in a sandbox reads, and kept
// those that none changes. Busy is called with
// 1 when a run begins to start or is retained, and with -1 when that is over. The caller must call Close.
func New(prepare Prepare, number Number, hidden, kept []string, busy func(change int)) *Table {
	if number == nil {
		number = func(after uint64) (uint64, error) { return after + 1, nil }
	}
	t := &Table{prepare: prepare, number: number, hidden: hidden, kept: kept, busy: busy,
		owners: make(map[string]*process.Table[*Run]), named: make(map[namedKey]*named)}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Record has what runs be recorded in l. It is called before the first run starts.
func (t *Table) Record(l *process.Leftovers) { t.exec.Started = l.Add }

// Reserve gives an owner a number for a run, which is started with Start. One call of that, or of Release,
// must follow. It blocks as Number does. The error is an *Error with the reason Limit or Closed, or Failed
// where there is no number.
func (t *Table) Reserve(owner string) (*Run, error) {
	r := &Run{table: t, owner: owner, begun: make(chan struct{}), done: make(chan struct{})}
	r.life, r.cancel = context.WithCancel(t.life)
	if err := t.claim(r); err != nil {
		return nil, err
	}
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
	r.id, r.number = t.Prefix+strconv.FormatUint(n, 10), n
	return r, nil
}

// Stager returns what has the stages of the runs; nil where this system has none.
func (t *Table) Stager() executor.Stager {
	s, _ := any(&t.exec).(executor.Stager)
	return s
}

// claim takes a place for a run, until release or over.
func (t *Table) claim(r *Run) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosing()
	}
	o := t.owners[r.owner]
	if o == nil {
		o = &process.Table[*Run]{Ended: maxEnded, Time: endedTime, Drop: (*Run).drop}
		t.owners[r.owner] = o
	}
	var err error
	most := cmp.Or(t.Live, maxLive)
	if r.place, err = o.Reserve(most); err != nil {
		return full(o, most)
	}
	t.work.Add(1)
	t.busy(1)
	return nil
}

// full returns the error for one run too many, with the runs that were not used for longest.
func full(o *process.Table[*Run], most int) *Error {
	var live []sallyport.SessionInfo
	all, _ := o.List()
	for _, r := range all {
		if r.hasBegun() && r.session != nil {
			info := r.session.Info()
			info.ID = r.id
			live = append(live, info)
		}
	}
	if len(live) == 0 {
		return refuse(Limit, "limit of runs (%d) reached by runs that are starting; try again when one has ended", most)
	}
	slices.SortFunc(live, func(a, b sallyport.SessionInfo) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), cmp.Compare(a.ID, b.ID))
	})
	var names []string
	const named = 3
	for _, info := range live[:min(named, len(live))] {
		names = append(names, info.ID+" ("+text.Line(strings.Join(info.Args, " "))+")")
	}
	return refuse(Limit, "limit of runs (%d) reached; terminate one first, such as %s", most,
		strings.Join(names, ", "))
}

// release ends what Reserve began, for a run that was not started.
func (t *Table) release(r *Run) {
	r.cancel()
	r.place.Forget()
	close(r.begun)
	r.place.End(0)
	t.tidy(r.owner)
	t.changes.Tell()
	t.busy(-1)
	t.work.Done()
}

// begins lists a run that is about to be judged.
func (t *Table) begins(r *Run, s *Info) {
	r.starting.Store(s)
	_, _ = r.place.Enter(r.id, r) // a number that was never given
	t.changes.Tell()
}

// CancelStart prevents the start of a run, waits until that is over, and reports whether there was one
// to prevent. The end of ctx ends the wait only.
func (t *Table) CancelStart(ctx context.Context, owner, id string) bool {
	r, ok := t.known(owner, id)
	if !ok || r.hasBegun() {
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

// tidy forgets an owner without runs.
func (t *Table) tidy(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[owner]; o != nil {
		if taken, live, ended := o.Count(); taken+live+ended == 0 {
			delete(t.owners, owner)
		}
	}
}

// settle retains a run that was started, and reports false when the Table was closed meanwhile.
func (t *Table) settle(r *Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.busy(1)
	} else {
		r.place.Forget()
	}
	close(r.begun)
	t.changes.Tell()
	return !t.closed
}

// over retains a run that has ended, unless it was removed.
func (t *Table) over(r *Run) {
	r.place.End(0)
	close(r.done)
	t.tidy(r.owner)
	t.changes.Tell()
}

// take has a run be unknown, and reports whether it was known. The caller frees it afterwards.
func (t *Table) take(r *Run) bool {
	if !r.place.Forget() {
		return false
	}
	t.busy(-1)
	t.tidy(r.owner)
	t.changes.Tell()
	return true
}

// drop frees a run that has ended long ago, or before many others.
func (r *Run) drop() {
	r.table.busy(-1)
	r.free()
	r.table.tidy(r.owner)
	r.table.changes.Tell()
}

// known returns a run of an owner, which may be starting.
func (t *Table) known(owner, id string) (*Run, bool) {
	t.mu.Lock()
	o := t.owners[owner]
	t.mu.Unlock()
	if o == nil {
		return nil, false
	}
	return o.Find(id)
}

// Find returns a run of an owner. The error is an *Error with the reason Unknown or Starting.
func (t *Table) Find(owner, id string) (*Run, error) {
	switch r, ok := t.known(owner, id); {
	case ok && r.hasBegun():
		return r, nil
	case ok:
		return nil, refuse(Starting,
			"run %s has not begun; it may wait for an approval, which sallyport approvals lists",
			text.Word(id))
	}
	return nil, unknown(id)
}

func unknown(id string) *Error {
	return refuse(Unknown, "unknown run %s; run/list has those that there are", text.Word(id))
}

// List returns what there is to know of the runs of an owner, by their numbers.
func (t *Table) List(owner string) (list []Info) {
	for _, r := range t.sorted(owner) {
		switch {
		case !r.hasBegun():
			info := *r.starting.Load()
			info.Asks = r.asks()
			list = append(list, info)
		case r.session != nil: // else it was not started after all
			list = append(list, r.Info())
		}
	}
	return list
}

// sorted returns the runs of an owner by their numbers.
func (t *Table) sorted(owner string) []*Run {
	t.mu.Lock()
	o := t.owners[owner]
	t.mu.Unlock()
	if o == nil {
		return nil
	}
	live, ended := o.List()
	return slices.SortedFunc(slices.Values(append(ended, live...)),
		func(a, b *Run) int { return cmp.Compare(a.number, b.number) })
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

// Forget has an owner know a run no longer, and returns what terminates it and waits for its end, which
// must be called. It is nil where there is no such run.
func (t *Table) Forget(owner, id string) (free func()) {
	if r, err := t.Find(owner, id); err == nil && t.take(r) {
		r.forgetSaved()
		return r.free
	}
	return nil
}

// all returns all runs that have begun. The caller holds mu.
func (t *Table) all() (all []*Run) {
	for _, o := range t.owners {
		live, ended := o.List()
		all = append(append(all, live...), ended...)
	}
	return slices.DeleteFunc(all, func(r *Run) bool { return !r.hasBegun() || r.session == nil })
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
			// without an end of the context there is no error
			ends.Go(func() { _, _ = r.session.Terminate(context.Background()) })
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
	all, owners := t.all(), slices.Collect(maps.Values(t.owners))
	t.mu.Unlock()
	t.end()
	var freeing sync.WaitGroup
	for _, r := range all {
		t.take(r)
		freeing.Go(r.free)
	}
	for _, o := range owners {
		o.Close()
	}
	freeing.Wait()
	t.stopAllNamed()
	t.work.Wait()
	_ = t.exec.Close() // the next start removes what could not be removed
}
