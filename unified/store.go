// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
)

// An Eviction says what happens to a start when the session limit is reached. A process
// that has ended, and whose end no call was told, is forgotten for it in any case, with a
// notice.
type Eviction string

// The kinds of eviction. The zero Eviction refuses the start.
const (
	EvictNone Eviction = ""    // the start is an ErrTooMany
	EvictLRU  Eviction = "lru" // the process that was idle for longest is ended, with a notice
)

// Info describes a process for lists. Its JSON form has the number as text.
type Info struct {
	CallID    string    `json:"call_id"` // of the call that started it
	SessionID int       `json:"process_id,string"`
	Command   string    `json:"command"`
	Dir       string    `json:"cwd"`
	TTY       bool      `json:"tty"`
	Started   time.Time `json:"started"`
	LastUsed  time.Time `json:"last_used"` // by a call
	Running   bool      `json:"running"`   // false: it has ended, and no call was told
}

// An entry is a process that a call started and whose end no call has been told.
type entry struct {
	session *sallyport.Session
	place   *process.Place[*entry]
	info    Info // LastUsed is guarded by the Tools' mutex
	stdin   Stdin

	// turn is held by the call that uses the process, and guards back and toldSpill.
	turn      chan struct{}
	back      output.Snapshot // output that was collected and not told
	toldSpill bool            // a response had the notice about the spill file

	// Guarded by the Tools' mutex.
	starting    bool   // the call that started it has not returned
	terminating bool   // it is being ended, or was
	failure     string // why it was ended; the first one stays
	told        []byte // output of the call that was told the failure

	settled  chan struct{} // closed when no more failure can come
	attended chan struct{} // closed when its End was emitted
}

func newEntry(s *sallyport.Session, place *process.Place[*entry], q *Request) *entry {
	info, now := s.Info(), time.Now()
	return &entry{
		session: s, place: place, stdin: q.input(), starting: true,
		info: Info{
			CallID: q.CallID, SessionID: idOf(info.ID), Command: q.Command, Dir: info.Dir, TTY: info.TTY,
			Started: now, LastUsed: now,
		},
		turn: make(chan struct{}, 1), settled: make(chan struct{}), attended: make(chan struct{}),
	}
}

// lock waits for the other calls that use the process.
func (e *entry) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock locks the entry if no call uses the process.
func (e *entry) tryLock() bool {
	select {
	case e.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *entry) unlock() { <-e.turn }

func (e *entry) running() bool { return e.session.Info().Running }

// A storeEntry is what the choice of a process to evict depends on.
type storeEntry struct {
	lastUsed time.Time
	exited   bool
	locked   bool // a call uses it
}

// leastRecent returns the index of the process to evict, by the rule of Codex: the most
// recently used processes are protected. Of the others the least recently used one that
// has exited goes, otherwise the least recently used one. A locked one is left alone, and
// if it has exited its place is about to be free, so that no running process is evicted.
func leastRecent(list []storeEntry, protected int) (index int, ok bool) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return list[a].lastUsed.Compare(list[b].lastUsed) })
	order = order[:max(len(order)-protected, 0)]
	busy := false
	for _, i := range order {
		if list[i].exited && !list[i].locked {
			return i, true
		}
		busy = busy || list[i].exited
	}
	i := slices.IndexFunc(order, func(i int) bool { return !list[i].locked })
	if i < 0 || busy {
		return 0, false
	}
	return order[i], true
}

// ordered returns the entries by number.
func (t *Tools) ordered() []*entry {
	live, _ := t.processes.List()
	return slices.SortedFunc(slices.Values(live),
		func(a, b *entry) int { return cmp.Compare(a.info.SessionID, b.info.SessionID) })
}

// chooseLocked takes an entry out of the store to make room and locks it; nil if none may
// go.
func (t *Tools) chooseLocked() *entry {
	var entries []storeEntry
	var candidates []*entry
	protected := 0
	if t.Evict == EvictLRU {
		protected = ProtectedProcesses
	}
	for _, e := range t.ordered() {
		exited := !e.running()
		if exited || t.Evict == EvictLRU {
			candidates = append(candidates, e)
			entries = append(entries, storeEntry{lastUsed: e.info.LastUsed, exited: exited,
				locked: len(e.turn) > 0})
		}
	}
	for {
		i, ok := leastRecent(entries, protected)
		if !ok {
			return nil
		}
		if candidates[i].tryLock() {
			t.remove(candidates[i])
			return candidates[i]
		}
		entries[i].locked = true
	}
}

// evict ends a process to make room and returns a notice about it; false if none may go.
func (t *Tools) evict(ctx context.Context) (notice string, ok bool, err error) {
	t.mu.Lock()
	e := t.chooseLocked()
	t.mu.Unlock()
	if e == nil {
		return "", false, nil
	}
	info := e.info
	info.Running = e.running()
	t.emit(Evicted{Process: info})
	ended, err := terminate(context.WithoutCancel(ctx), e.session)
	e.unlock()
	what := "was ended"
	if !ended {
		what = "had ended and is forgotten"
	}
	return fmt.Sprintf("Session %d (%s) %s to make room for this one.", info.SessionID, oneLine(info.Command),
		what), true, err
}

// reserve keeps a place for a process, and makes room where that is permitted. The
// notices tell which processes had to go.
func (t *Tools) reserve(ctx context.Context) (place *process.Place[*entry], notices []string, err error) {
	for {
		if place, err = t.processes.Reserve(t.most()); err == nil {
			return place, notices, nil
		}
		if errors.Is(err, process.ErrTableClosed) {
			return nil, nil, unavailable()
		}
		notice, ok, err := t.evict(ctx)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			idle := t.List()
			slices.SortStableFunc(idle, func(a, b Info) int { return a.LastUsed.Compare(b.LastUsed) })
			return nil, nil, tooManyOf(t.most(), idle, nil)
		}
		notices = append(notices, notice)
	}
}

// most returns how many processes may run at a time.
func (t *Tools) most() int { return cmp.Or(t.Runner.MaxSessions, DefaultMaxProcesses) }

// store has others know an entry, and returns how many there are. Close waits for its attendance.
func (t *Tools) store(e *entry) (live int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if live, err = e.place.Enter(strconv.Itoa(e.info.SessionID), e); err != nil {
		e.place.End(0)
		return 0, unavailable()
	}
	t.work.Add(1)
	return live, nil
}

// lookup returns the process with the number.
func (t *Tools) lookup(id int) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, unavailable()
	}
	e, ok := t.processes.Find(strconv.Itoa(id))
	if !ok {
		return nil, unknownProcess(id)
	}
	return e, nil
}

// acquire returns the process with the number and locks it.
func (t *Tools) acquire(ctx context.Context, id int) (*entry, error) {
	e, err := t.lookup(id)
	if err != nil {
		return nil, err
	}
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	if again, err := t.lookup(id); err != nil || again != e {
		e.unlock()
		return nil, cmp.Or(err, unknownProcess(id))
	}
	t.mu.Lock()
	e.info.LastUsed = time.Now()
	t.mu.Unlock()
	return e, nil
}

// remove has others know an entry no longer, unless they do not know it. Its session is closed when the
// last event about it was emitted.
func (t *Tools) remove(e *entry) {
	if !e.place.Forget() {
		return
	}
	e.place.End(0)
	t.work.Go(func() {
		<-e.attended
		_ = e.session.Close() // it has ended, and no error is possible
	})
}
