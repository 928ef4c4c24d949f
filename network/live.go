// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A Live is a Policy that can change while commands run: each decision is made by the one of that
// moment. A nil Live has no policy, which refuses everything. Its methods may be called from several
// goroutines at once.
type Live struct {
	policy atomic.Pointer[Policy]

	mu       sync.Mutex // held while the policy changes
	watchers map[*func()]func()
}

// NewLive returns a Live with a policy; nil refuses everything.
func NewLive(p *Policy) *Live {
	l := new(Live)
	l.policy.Store(p)
	return l
}

// Policy returns the policy of now.
func (l *Live) Policy() *Policy {
	if l == nil {
		return nil
	}
	return l.policy.Load()
}

// Update replaces the policy by what change makes of it. An error leaves it as it was. Then it calls
// those who watch, and returns when they have. A nil Live has nothing to change.
func (l *Live) Update(change func(*Policy) (*Policy, error)) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.policy.Load()
	next, err := change(now)
	if err != nil || next == now {
		return err
	}
	l.policy.Store(next.numbered(now.Version() + 1))
	for _, f := range slices.Collect(maps.Values(l.watchers)) {
		f()
	}
	return nil
}

// Watch calls f after each change, one call at a time, until stop is called. It must not change the
// policy itself. A call may still be under way when stop returns.
func (l *Live) Watch(f func()) (stop func()) {
	if l == nil {
		return func() {}
	}
	key := &f
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers == nil {
		l.watchers = map[*func()]func(){}
	}
	l.watchers[key] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, key)
	}
}

// Version says which of the policies of a [Live] this is: 1 for the first one, and one more after each
// change. It is 0 for no policy.
func (p *Policy) Version() uint64 {
	if p == nil {
		return 0
	}
	return p.version + 1
}

// numbered returns the policy with a version.
func (p *Policy) numbered(version uint64) *Policy {
	if p == nil {
		return nil
	}
	out := *p
	out.version = version - 1
	return &out
}
