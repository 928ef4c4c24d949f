// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/internal/output"
)

// An Eviction says what happens to a start when as many processes run as may. The end
// of a process that ended and was not asked about since is forgotten for it in any
// case, and told.
type Eviction string

// The kinds of eviction. The zero Eviction refuses the start.
const (
	EvictNone Eviction = ""    // the start is a *TooManyError
	EvictLRU  Eviction = "lru" // the process that was left alone for longest is ended, and told
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
	Running   bool      `json:"running"`   // false: it has ended, and nobody asked since
}

// An entry is a process that a call started and whose end no call has told.
type entry struct {
	process process
	info    Info // LastUsed is guarded by the Tools' mutex
	stdin   Stdin

	// turn is held by the call that deals with the process; see lock.
	turn chan struct{}
	back output.Snapshot // output that was taken and not told; guarded by turn

	// Guarded by the Tools' mutex.
	starting    bool   // the call that started it has not returned
	terminating bool   // somebody ends it, or has
	gone        bool   // it is not in the store
	failure     string // why it was ended; the first one stays
	told        []byte // the output that the call had collected which met the failure

	settled chan struct{} // closed when no more failure can come
	users   atomic.Int32  // the store and who attends to it; see drop
}

func newEntry(p process, info Info, stdin Stdin) *entry {
	e := &entry{process: p, info: info, stdin: stdin, turn: make(chan struct{}, 1), settled: make(chan struct{})}
	e.users.Store(1)
	return e
}

// lock waits for the other calls that deal with the process.
func (e *entry) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tryLock reports whether nobody deals with the process; then the caller does.
func (e *entry) tryLock() bool {
	select {
	case e.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *entry) unlock() { <-e.turn }

// drop ends the use of the process by one of its users. The last one frees it.
func (e *entry) drop() {
	if e.users.Add(-1) == 0 {
		_ = e.process.close() // it has ended; there is nothing left that could fail and matter
	}
}

// A tenant is what the choice of a process to evict looks at.
type tenant struct {
	lastUsed time.Time
	exited   bool
	locked   bool // a call deals with it
}

// victim returns the index of the process to evict, by the rule of Codex: the most
// recently used ones are protected; the least recently used of the others that has
// exited goes first, else the least recently used of the others. One that a call deals
// with is left alone, and if it has exited then its slot is about to be free, and
// nothing that runs is evicted.
func victim(list []tenant, protected int) (index int, ok bool) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return list[a].lastUsed.Compare(list[b].lastUsed) })
	order = order[:max(len(order)-protected, 0)]
	busy := false
	for _, i := range order {
		switch {
		case list[i].exited && !list[i].locked:
			return i, true
		case list[i].exited:
			busy = true
		}
	}
	if busy {
		return 0, false
	}
	for _, i := range order {
		if !list[i].locked {
			return i, true
		}
	}
	return 0, false
}

// orderedLocked returns the entries by number.
func (t *Tools) orderedLocked() []*entry {
	list := make([]*entry, 0, len(t.entries))
	for _, e := range t.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.info.SessionID, b.info.SessionID) })
	return list
}

// chooseLocked takes an entry out of the store to make room, with its turn; nil if
// there is none that may go.
func (t *Tools) chooseLocked() *entry {
	list := t.orderedLocked()
	var tenants []tenant
	var candidates []*entry
	protected := ProtectedProcesses
	for _, e := range list {
		exited := !e.process.running()
		if t.Evict != EvictLRU && !exited {
			continue
		}
		candidates = append(candidates, e)
		tenants = append(tenants, tenant{lastUsed: e.info.LastUsed, exited: exited, locked: len(e.turn) > 0})
	}
	if t.Evict != EvictLRU {
		protected = 0 // none of them runs
	}
	for {
		i, ok := victim(tenants, protected)
		if !ok {
			return nil
		}
		if candidates[i].tryLock() {
			t.removeLocked(candidates[i])
			return candidates[i]
		}
		tenants[i].locked = true
	}
}

// evict ends a process to make room for another one, and says so; false if there is
// none that may go.
func (t *Tools) evict(ctx context.Context) (notice string, ok bool, err error) {
	t.mu.Lock()
	e := t.chooseLocked()
	t.mu.Unlock()
	if e == nil {
		return "", false, nil
	}
	info := e.info
	info.Running = e.process.running()
	t.emit(Evicted{Process: info})
	ended, err := e.process.terminate(context.WithoutCancel(ctx)) // it is out of the store: nobody else would
	e.unlock()
	e.drop()
	verb := "was ended"
	if !ended {
		verb = "had ended and is forgotten"
	}
	return fmt.Sprintf("Session %d (%s) %s to make room for this one.", info.SessionID, oneLine(info.Command), verb), true, err
}

// reserve keeps a place for a process, and makes room where that is permitted. The
// notices tell about those that had to go.
func (t *Tools) reserve(ctx context.Context, most int) (notices []string, err error) {
	for {
		t.mu.Lock()
		switch {
		case t.closed:
			t.mu.Unlock()
			return nil, ErrUnavailable
		case len(t.entries)+t.reserved < most:
			t.reserved++
			t.mu.Unlock()
			return notices, nil
		}
		t.mu.Unlock()
		notice, ok, err := t.evict(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &TooManyError{Max: most, Candidates: t.idle()}
		}
		notices = append(notices, notice)
	}
}

// idle returns the processes, those first that were left alone for longest.
func (t *Tools) idle() []Info {
	list := t.List()
	slices.SortStableFunc(list, func(a, b Info) int { return a.LastUsed.Compare(b.LastUsed) })
	return list
}

// store makes an entry known under its number, instead of its reservation. One that is
// attended is used by attend, and Close waits for that.
func (t *Tools) store(e *entry, attended bool) (live int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved--
	if t.closed {
		return 0, ErrUnavailable
	}
	if t.entries == nil {
		t.entries = make(map[int]*entry)
	}
	t.entries[e.info.SessionID] = e
	if attended {
		e.users.Add(1)
		t.attended.Add(1)
	}
	return len(t.entries), nil
}

// lookup returns the process with the number.
func (t *Tools) lookup(id int) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrUnavailable
	}
	e := t.entries[id]
	if e == nil {
		return nil, &UnknownProcessError{ID: id}
	}
	return e, nil
}

// acquire returns the process with the number, with its turn.
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
		return nil, cmp.Or(err, error(&UnknownProcessError{ID: id}))
	}
	t.mu.Lock()
	e.info.LastUsed = time.Now()
	t.mu.Unlock()
	return e, nil
}

// removeLocked takes an entry out of the store; false if it was not there.
func (t *Tools) removeLocked(e *entry) bool {
	if e.gone {
		return false
	}
	e.gone = true
	delete(t.entries, e.info.SessionID)
	return true
}

// remove takes an entry out of the store, and frees it if nobody else uses it.
func (t *Tools) remove(e *entry) {
	t.mu.Lock()
	was := t.removeLocked(e)
	t.mu.Unlock()
	if was {
		e.drop()
	}
}
