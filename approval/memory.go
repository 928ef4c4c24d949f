// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A Memory asks an approver each question once: equal questions that are open at the same time
// share one answer, what was approved for the session is not asked again, and the answer Abort is
// that of all questions that are open. The zero Memory is ready. Its methods may be called from
// several goroutines at once.
type Memory struct {
	// Life is how long an approval for the session is remembered; 0 means as long as the Memory.
	Life time.Duration
	// Most is how many approvals are remembered; 0 means 1000. The oldest one is forgotten.
	Most int

	mu    sync.Mutex
	kept  []*Remembered // the oldest first
	byKey map[string]*Remembered
	open  map[string]*flight

	unkeyed uint64 // questions that are not remembered
}

// Remembered is an approval for the session.
type Remembered struct {
	Request  *Request
	Decision Decision
	Time     time.Time // when it was given
}

// A flight is a question that is open.
type flight struct {
	key     string
	done    chan struct{}
	waiters int
	cancel  context.CancelCauseFunc
	d       Decision
	err     error

	reviews  []Review      // as they were reported
	reviewed chan struct{} // closed at the next one
}

// defaultMost is Most if it is 0.
const defaultMost = 1000

// Ask is [Ask] with what is remembered. The question is withdrawn when the contexts of all who
// wait for its answer have ended; shared says that another one asked it first. Reviews are reported
// to all of them, see [WithReviews].
func (m *Memory) Ask(ctx context.Context, a Approver, r *Request) (d Decision, shared bool, err error) {
	if err := strict.CheckContext(ctx); err != nil {
		return Decision{}, false, err
	}
	key := r.key()
	m.mu.Lock()
	if key == "" {
		m.unkeyed++
		key = strconv.FormatUint(m.unkeyed, 10) // no key of a request, which has a NUL
	}
	if old := m.all(r); old != nil {
		m.mu.Unlock()
		d := old.Decision
		d.Source, d.Wait = FromCache, 0
		return d, false, nil
	}
	f := m.open[key]
	shared = f != nil
	if f == nil {
		f = m.start(ctx, a, r, key)
	}
	f.waiters++
	m.mu.Unlock()
	if !m.wait(ctx, f) {
		return Decision{}, shared, context.Cause(ctx)
	}
	return f.d, shared, f.err
}

// start asks a question in the background.
func (m *Memory) start(ctx context.Context, a Approver, r *Request, key string) *flight {
	if m.open == nil {
		m.open, m.byKey = map[string]*flight{}, map[string]*Remembered{}
	}
	asking, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight{key: key, done: make(chan struct{}), cancel: cancel, reviewed: make(chan struct{})}
	asking = m.collect(asking, f)
	m.open[key] = f
	go func() {
		defer close(f.done)
		defer cancel(nil)
		f.d, f.err = Ask(asking, a, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		if by := new(abortedError); errors.As(context.Cause(asking), &by) {
			f.d, f.err = Decision{Answer: Abort, Source: by.source}, nil
			return
		}
		if m.open[key] == f {
			delete(m.open, key)
		}
		switch {
		case f.err != nil:
		case f.d.Answer == ApprovedForSession && r.Key != "":
			m.keep(&Remembered{r, f.d, time.Now()})
		case f.d.Answer == Abort:
			for _, other := range m.open {
				other.cancel(&abortedError{f.d.Source})
			}
			clear(m.open) // who comes now asks anew
		}
	}()
	return f
}

// An abortedError ends questions that are open when another one is answered with Abort.
type abortedError struct{ source Source }

func (*abortedError) Error() string { return "approval: aborted with another question" }

// keep remembers an approval.
func (m *Memory) keep(n *Remembered) {
	for _, key := range n.Request.keys() {
		m.byKey[key] = n
	}
	m.kept = slices.DeleteFunc(m.kept, func(o *Remembered) bool { return !m.counts(o) })
	most := m.Most
	if most == 0 {
		most = defaultMost
	}
	if len(m.kept) >= most {
		m.forget(m.kept[0])
	}
	m.kept = append(m.kept, n)
}

// counts reports whether an approval is that of any key.
func (m *Memory) counts(n *Remembered) bool {
	return slices.ContainsFunc(n.Request.keys(), func(key string) bool { return m.byKey[key] == n })
}

// all returns an approval if there is one for every part of a request.
func (m *Memory) all(r *Request) (found *Remembered) {
	for _, key := range r.keys() {
		if found = m.find(key); found == nil {
			return nil
		}
	}
	return found
}

// find returns what is remembered, unless it is too old.
func (m *Memory) find(key string) *Remembered {
	n := m.byKey[key]
	if n != nil && m.Life > 0 && time.Since(n.Time) > m.Life {
		m.forget(n)
		return nil
	}
	return n
}

func (m *Memory) forget(n *Remembered) {
	if n == nil {
		return
	}
	for _, key := range n.Request.keys() {
		if m.byKey[key] == n {
			delete(m.byKey, key)
		}
	}
	m.kept = slices.DeleteFunc(m.kept, func(o *Remembered) bool { return o == n })
}

// Granted returns what was approved for the session to be opened for a command after it was
// denied, by the Key of its requests. What the caller asked for is not in it: it counts where the
// caller asks for it again.
func (m *Memory) Granted(key string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, n := range slices.Clone(m.kept) {
		if n.Request.Key == key && n.Request.Kind == KindAccess && m.all(n.Request) != nil {
			out = append(out, n.Request.Requires...)
		}
	}
	return out
}

// List returns what is remembered, the oldest first.
func (m *Memory) List() []Remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []Remembered{}
	for _, n := range slices.Clone(m.kept) {
		m.all(n.Request) // forgets what is too old
		if m.counts(n) {
			out = append(out, *n)
		}
	}
	return out
}

// ErrNotRemembered says that no approval with this ID is remembered.
var ErrNotRemembered = errors.New("approval: no such approval is remembered")

// Revoke forgets the approval that the request with an ID got. Commands that run keep it.
func (m *Memory) Revoke(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.kept {
		if n.Request.ID == id {
			m.forget(n)
			return nil
		}
	}
	return ErrNotRemembered
}
