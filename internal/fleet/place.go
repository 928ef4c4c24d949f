// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

// A Need is what a session needs of its node.
type Need struct {
	Labels map[string]string // that the node must have
	Level  string            // that it must enforce; empty for any
}

// placeTimes are how long a node may take to answer whether it has room: the next one is asked then, and each
// one again when none has answered. One that has gone is known as lost only after a while.
var placeTimes = []time.Duration{300 * time.Millisecond, 3 * time.Second, 10 * time.Second}

// Place reserves a slot for a session on the node with most free slots of those that fit. Where there is none
// it waits for so long: zero is not at all. The error is ErrNoSlot or ErrNoNode, or that of ctx.
//
// The node decides. It is told how many slots were believed to be free, and refuses if it has fewer: so many
// who place at once still find the emptiest one.
func (r *Registry) Place(ctx context.Context, session string, need Need, wait time.Duration,
) (found Record, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	silent, round := make(map[string]bool), 0
	unanswered := make(map[string]link.Address) // a slot may be reserved there
	defer func() { r.release(session, unanswered, found.Name) }()
	for {
		changed := r.Changed()
		best, believed, err := r.best(need, silent)
		if err != nil && len(silent) > 0 && round+1 < len(placeTimes) {
			clear(silent)
			round++
			continue
		}
		if err != nil {
			if len(silent) > 0 {
				err = fmt.Errorf("%w answers that would fit", ErrNoNode)
			}
			if wait <= 0 {
				return Record{}, err
			}
			select {
			case <-changed:
			case <-timer.C:
				return Record{}, err
			case <-ctx.Done():
				return Record{}, fmt.Errorf("%w: %w", err, context.Cause(ctx))
			}
			clear(silent)
			round = 0
			continue
		}
		var got Reserved
		asked, cancel := context.WithTimeout(ctx, placeTimes[round])
		err = r.client.Call(asked, best.Address(), MethodReserve,
			Reserve{Session: session, Free: believed, Level: need.Level}, &got)
		cancel()
		switch {
		case ctx.Err() != nil:
			return Record{}, context.Cause(ctx)
		case err != nil && r.conn.For() == 0: // it is not the node that does not answer
			if err := r.conn.Await(ctx); err != nil {
				return Record{}, err //nolint:wrapcheck // it says what failed
			}
			continue
		case err != nil || got.Record.Name != best.Name || got.Record.Boot != best.Boot:
			silent[best.Name] = true
			unanswered[best.Name] = best.Address()
			continue
		}
		got.Record.Shared = best.Shared
		r.reserved(&got.Record)
		switch {
		case got.OK:
			got.Record.Info = best.Info
			return got.Record, nil
		case got.Record.Free >= believed && got.Record.State == Ready:
			silent[best.Name] = true // it has a reason of its own
		}
	}
}

// release has nodes but one release the slot that they may have reserved for a session.
func (r *Registry) release(session string, nodes map[string]link.Address, but string) {
	for name, a := range nodes {
		if name != but {
			r.client.Tell(a, MethodKill, Kill{Session: session, Unused: true})
		}
	}
}

// Choose returns the node that Place would try first, or one without free slots: for a session that begins
// with something else than a start.
func (r *Registry) Choose(need Need) (Record, error) {
	best, _, err := r.best(need, nil)
	if errors.Is(err, ErrNoSlot) {
		return r.Like(need)
	}
	return best, err
}

// best returns the node with most free slots, and how many these are.
func (r *Registry) best(need Need, silent map[string]bool) (best Record, free int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = ErrNoNode
	ties := 0
	for _, e := range r.nodes {
		if !e.alive() || e.State != Ready || silent[e.Name] || !e.matches(need.Labels) ||
			!Enforces(e.Level, need.Level) {
			continue
		}
		if errors.Is(err, ErrNoNode) {
			err = ErrNoSlot
		}
		has := e.Free
		switch {
		case has <= 0 || has < free:
			continue
		case has > free:
			ties = 0
		}
		if ties++; rand.IntN(ties) == 0 {
			best, free, err = e.Record, has, nil
		}
	}
	if errors.Is(err, ErrNoNode) {
		err = need.none()
	}
	return best, free, err
}

// none is the error where no node fits.
func (n Need) none() error {
	if len(n.Labels)+len(n.Level) > 0 {
		return fmt.Errorf("%w with the labels and the level that were asked for is ready", ErrNoNode)
	}
	return fmt.Errorf("%w is ready; sallyport fleet node offers a machine", ErrNoNode)
}

// reserved notes what a node answered.
func (r *Registry) reserved(of *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.nodes[of.Name]; e != nil && e.Boot == of.Boot {
		e.Free, e.State = of.Free, of.State
		r.tell()
	}
}
