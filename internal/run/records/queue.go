// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// The limits of a Queue.
const (
	// MaxWaiting is how many bytes of output may wait for a slow sink.
	MaxWaiting = 1 << 20
	// maxJoined is how large a waiting piece of output may become by joining, in bytes.
	maxJoined = 64 << 10
	// FlushTime is how long the end of a run waits for a slow sink.
	FlushTime = 2 * time.Second
)

// A Queue passes events to a sink, in order and one at a time. Its goroutine lives only
// while there are events. The nil Queue drops everything, but has no Output.
type Queue struct {
	Sink event.Sink // nil for none: then it has no Output either
	// Log gets the same events but output, before Emit returns; nil for none.
	Log event.Log
	// Tracer gets what Log gets; nil for none. It was told of each run by its owner.
	Tracer event.Sink

	mu      sync.Mutex
	queue   []event.Event
	pending int // bytes of output in queue
	seq     uint64
	idle    chan struct{} // closed when the goroutine ends; nil without one
	late    bool          // a flush has waited in vain, and the sink is where it was
	room    chan struct{} // closed when a piece of output is on its way; nil when none waits
	err     error         // of the first call of the sink that failed
	logErr  error         // likewise of the log
	gone    bool          // the sink has panicked
	taken   uint64        // the number of the last event that the sink has
	step    chan struct{} // closed when it has one more; nil when none waits
}

// A Fate says what became of a piece of output.
type Fate uint8

// The fates.
const (
	Dropped Fate = iota // there was no room for it
	Taken               // it will be an event
	Joined              // it was appended to a waiting event
)

// Emit takes an event that must not be lost, and gives it its time and number.
func (m *Queue) Emit(e event.Event) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pushLocked(e)
}

// Output takes a piece of output if there is room for it, and returns what tells of room
// where there is none. The event is that of the piece, without a body. It keeps no reference to the data.
func (m *Queue) Output(e event.Event, out event.Output) (Fate, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending+len(out.Data) > MaxWaiting && len(m.queue) > 0 {
		if m.room == nil {
			m.room = make(chan struct{})
		}
		return Dropped, m.room
	}
	m.pending += len(out.Data)
	if m.joinLocked(&e, out) {
		return Joined, nil
	}
	out.Data = append([]byte(nil), out.Data...)
	e.Body = out
	m.pushLocked(e)
	return Taken, nil
}

// joinLocked appends the piece to the newest waiting event if that is the piece before it.
func (m *Queue) joinLocked(e *event.Event, out event.Output) bool {
	if len(m.queue) == 0 || out.DroppedEvents > 0 {
		return false
	}
	last := &m.queue[len(m.queue)-1]
	before, ok := last.Body.(event.Output)
	if !ok || last.Run != e.Run || last.Attempt != e.Attempt || before.Stream != out.Stream ||
		len(before.Data)+len(out.Data) > maxJoined {
		return false
	}
	before.Data = append(before.Data, out.Data...)
	last.Body = before
	return true
}

func (m *Queue) pushLocked(e event.Event) {
	m.seq++
	e.Time, e.Seq = time.Now(), m.seq
	if m.Log != nil && !isOutput(e) {
		err := strict.Call("the log of events", func() error { m.Log.Emit(e); return nil })
		m.logErr = cmp.Or(m.logErr, err)
	}
	if m.Tracer != nil && !isOutput(e) {
		err := strict.Call("the tracer", func() error { m.Tracer.Emit(e); return nil })
		m.err = cmp.Or(m.err, err)
	}
	if m.Sink == nil {
		m.taken = m.seq
		return
	}
	m.queue = append(m.queue, e)
	if m.idle == nil {
		m.idle = make(chan struct{})
		go m.run(m.idle)
	}
}

func isOutput(e event.Event) bool {
	_, ok := e.Body.(event.Output)
	return ok
}

// run emits until no event waits.
func (m *Queue) run(idle chan struct{}) {
	defer close(idle)
	for {
		m.mu.Lock()
		m.late = false
		if len(m.queue) == 0 {
			m.idle = nil
			m.mu.Unlock()
			return
		}
		e := m.queue[0]
		m.queue = m.queue[1:]
		if out, ok := e.Body.(event.Output); ok {
			m.pending -= len(out.Data)
			if m.room != nil {
				close(m.room)
				m.room = nil
			}
		}
		gone := m.gone
		m.mu.Unlock()
		var err error
		if !gone {
			err = strict.Call("the sink of events", func() error { m.Sink.Emit(e); return nil })
		}
		m.mu.Lock()
		m.taken = e.Seq
		if err != nil {
			m.err, m.gone = cmp.Or(m.err, err), !errors.Is(err, strict.ErrExit)
		}
		if m.step != nil {
			close(m.step)
			m.step = nil
		}
		m.mu.Unlock()
	}
}

// Await waits until the sink has returned from all that was emitted before the call. The error is the
// cause of ctx, or Err.
func (m *Queue) Await(ctx context.Context) error {
	if err := strict.CheckContext(ctx); err != nil || m == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for last := m.seq; m.taken < last; m.mu.Lock() {
		if m.step == nil {
			m.step = make(chan struct{})
		}
		step := m.step
		m.mu.Unlock()
		select {
		case <-step:
		case <-ctx.Done():
			m.mu.Lock()
			return context.Cause(ctx)
		}
	}
	return m.err
}

// Err returns why the sink may lack events. One that has panicked gets nothing any more, as its state is not
// known; one that has ended the goroutine of a call, as a test that fails does, gets what follows.
func (m *Queue) Err() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Sync waits until the log has kept everything that was emitted before the call, and returns why not.
func (m *Queue) Sync(ctx context.Context) error {
	if m == nil || m.Log == nil {
		return nil
	}
	m.mu.Lock()
	err := m.logErr
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return strict.Call("the log of events", func() error { return m.Log.Sync(ctx) })
}

// Flush waits until the sink has all events, or for a limited time. That begins when one of
// the channels is closed, and at once when both are nil.
func (m *Queue) Flush(stopped, canceled <-chan struct{}) {
	if m == nil {
		return
	}
	m.mu.Lock()
	idle, late := m.idle, m.late
	m.mu.Unlock()
	if idle == nil || late {
		return
	}
	if stopped != nil || canceled != nil {
		select {
		case <-idle:
			return
		case <-stopped:
		case <-canceled:
		}
	}
	timer := time.NewTimer(FlushTime)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		m.mu.Lock()
		m.late = true
		m.mu.Unlock()
	}
}
