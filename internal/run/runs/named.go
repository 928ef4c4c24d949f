// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	printable "github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const (
	// DefaultIdle is how long a named sandbox stays open without a run.
	DefaultIdle = 10 * time.Minute
	// maxNamed is how many named sandboxes an owner has.
	maxNamed = 64
)

// A Named says in which sandbox a run starts: the one of its owner with that name, which is opened if there
// is none.
type Named struct {
	Name string
	// Idle is how long it waits without a run before it ends, if this one opens it; 0 means DefaultIdle.
	Idle time.Duration
	// Else has a run that cannot join the sandbox run in one of its own. False refuses it.
	Else bool
}

// A NamedInfo describes a named sandbox.
type NamedInfo struct {
	Name      string
	Workspace string // an absolute path without links
	Network   sandbox.Network
	Since     time.Time
	Running   int // runs that have joined it and have not ended
	Idle      time.Duration
	IdleLeft  *time.Duration // before it ends; nil while something runs
}

// named is a sandbox that is shared by the runs of an owner which join it by its name.
type named struct {
	table *Table
	key   namedKey
	own   *needs // of the run that has opened it
	idle  time.Duration
	since time.Time

	opened chan struct{}   // closed when shared is set, or not opened
	shared executor.Shared // nil: it could not be opened
	ended  chan struct{}   // closed when nothing of it is left

	// These are guarded by the lock of the table.
	over    bool // it is ending, and no longer known
	running int
	unused  time.Time   // since when nothing runs
	timer   *time.Timer // likewise; nil before the first time
}

type namedKey struct{ owner, name string }

// A joined is the executor of a run in a named sandbox.
type joined struct {
	*local.Executor
	in      *named
	leaving sync.Once
}

// Start implements [executor.Executor].
func (j *joined) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	return j.in.shared.Start(ctx, spec)
}

// Close leaves the sandbox. The executor is that of all.
func (j *joined) Close() error {
	j.leaving.Do(j.in.leave)
	return nil
}

// join has what was prepared run in a named sandbox, and opens that if there is none: of several runs that do
// so at once, one does. The error is a *RefusedError, a *sandbox.UnsupportedError, an *Error with the reason
// Closed or Limit, that of the end of ctx, or of the system.
func (t *Table) join(ctx context.Context, owner string, want *Named, p *Prepared) (*joined, error) {
	asks, err := t.needs(ctx, want.Name, p)
	if err != nil {
		return nil, err
	}
	for {
		s, first, err := t.enter(namedKey{owner, want.Name}, want.Idle, asks)
		switch {
		case err != nil:
			return nil, err
		case first:
			err = s.open(ctx)
		default:
			select {
			case <-s.opened:
				if s.shared != nil {
					err = refused(want.Name, s.own, asks)
				}
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		switch {
		case err != nil:
			s.leave()
			return nil, err
		case s.shared != nil && !s.isOver():
			p.Cmd.Stage = s.own.stage // of the sandbox, which has one for all runs, or none
			return &joined{Executor: &t.exec, in: s}, nil
		}
		s.leave() // it was not opened, or has ended since: another one is opened
	}
}

// enter counts a run in a sandbox, which it makes if there is none: first has to open it.
func (t *Table) enter(key namedKey, idle time.Duration, asks *needs) (s *named, first bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, errClosing()
	}
	if s = t.named[key]; s == nil {
		if n := len(t.namedOf(key.owner)); n >= maxNamed {
			return nil, false, refuse(Limit, "limit of named sandboxes (%d) reached; stop one first", n)
		}
		s = &named{
			table: t, key: key, own: asks, idle: cmp.Or(idle, DefaultIdle), since: time.Now(),
			opened: make(chan struct{}), ended: make(chan struct{}),
		}
		first = true
		t.named[key] = s
		t.work.Add(1)
		t.busy(1)
	}
	s.running++
	return s, first, nil
}

// open opens a sandbox that was just made.
func (s *named) open(ctx context.Context) (err error) {
	s.shared, err = s.table.exec.Open(ctx, &executor.SharedSpec{Policy: s.own.policy})
	close(s.opened)
	if err != nil {
		s.finish()
		return err
	}
	go func() {
		<-s.shared.Done() // its holder may be killed
		s.finish()
	}()
	return nil
}

func (s *named) isOver() bool {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	return s.over
}

// leave ends what enter began.
func (s *named) leave() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.running--; s.running > 0 || s.over {
		return
	}
	s.unused = time.Now()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.idle, s.expire)
	} else {
		s.timer.Reset(s.idle)
	}
}

// expire ends a sandbox in which nothing has run for long enough.
func (s *named) expire() {
	s.table.mu.Lock()
	// Else a run came meanwhile, or it is ending.
	idle := s.running == 0 && time.Since(s.unused) >= s.idle && s.forget()
	s.table.mu.Unlock()
	if idle {
		s.end()
	}
}

// finish ends the sandbox with everything in it, and waits for that. From its begin on there is none of its
// name.
func (s *named) finish() {
	s.table.mu.Lock()
	first := s.forget()
	s.table.mu.Unlock()
	if first {
		s.end()
	}
	<-s.ended
}

// forget has the owner know the sandbox no longer, and reports whether the caller is to end it. The caller
// holds the lock.
func (s *named) forget() bool {
	if s.over {
		return false
	}
	s.over = true
	delete(s.table.named, s.key)
	if s.timer != nil {
		s.timer.Stop()
	}
	return true
}

// end ends a sandbox that was forgotten.
func (s *named) end() {
	<-s.opened
	if s.shared != nil {
		if k, ok := s.shared.(interface{ Kill() }); ok { // what runs there is told why it has ended
			k.Kill()
		}
		_ = s.shared.Close() // the next start removes what could not be removed
	}
	close(s.ended)
	s.table.busy(-1)
	s.table.work.Done()
}

// namedOf returns the sandboxes of an owner. The caller holds mu.
func (t *Table) namedOf(owner string) (all []*named) {
	for key, s := range t.named {
		if key.owner == owner {
			all = append(all, s)
		}
	}
	return all
}

// Named returns the open sandboxes of an owner, by their names.
func (t *Table) Named(owner string) (list []NamedInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.namedOf(owner) {
		select {
		case <-s.opened:
		default:
			continue
		}
		i := NamedInfo{
			Name: s.key.name, Workspace: s.own.workspace, Network: s.own.policy.Network(),
			Since:   s.since.Round(0),
			Running: s.running, Idle: s.idle,
		}
		if s.running == 0 {
			left := max(s.idle-time.Since(s.unused), 0)
			i.IdleLeft = &left
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b NamedInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// StopNamed ends a named sandbox with everything that runs in it, and waits for that. The error is an *Error
// with the reason UnknownSandbox.
func (t *Table) StopNamed(owner, name string) error {
	t.mu.Lock()
	s := t.named[namedKey{owner, name}]
	t.mu.Unlock()
	if s == nil {
		const text = "unknown sandbox %s; sandbox/list has those that there are"
		return refuse(UnknownSandbox, text, printable.Word(name))
	}
	s.finish()
	return nil
}

// stopAllNamed is StopNamed for all of them, whose ends t.work has.
func (t *Table) stopAllNamed() {
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.named))
	t.mu.Unlock()
	for _, s := range all {
		go s.finish()
	}
}
