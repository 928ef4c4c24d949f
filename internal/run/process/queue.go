// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// freeInput is how many bytes of input may wait for a command that does not read before the
	// senders of further writes are held up until their turn comes.
	freeInput = 1 << 20
	// maxInput is how many may wait at all. It holds one message of the largest size.
	maxInput = 16 << 20
	// maxWaiting is how many writes may wait.
	maxWaiting = 64 << 10
	// maxIDs is how many writes are remembered, so that they are not repeated.
	maxIDs = 4096
)

var (
	// ErrInputFull refuses a write; nothing of it was taken.
	ErrInputFull = errors.New("input buffer full: the command is not reading; write again later")
	// ErrInputEnded says that the input was closed by a caller.
	ErrInputEnded = errors.New("the input of the process is closed")
)

// A InputQueue writes to a command in the order of the writes, in a goroutine that lives while some wait.
// Make one with [NewInputQueue]. It is safe for concurrent use.
type InputQueue struct {
	to       func() InputTaker
	terminal bool
	patience time.Duration
	flushes  sync.WaitGroup // at most one goroutine; added to under mu

	mu      sync.Mutex
	queue   []*InputWrite
	size    int           // bytes in queue and on their way
	current *InputWrite   // on its way; nil for none
	taker   InputTaker    // of current
	writing bool          // flush runs
	ended   bool          // nothing comes any more
	closed  bool          // the command has ended; what waits, and what comes, is not taken
	sent    bool          // the command got input of a caller, or its end
	held    chan struct{} // closed when writes go on; nil while they do
	lost    error         // why input was lost whose sender did not wait; told to one
	known   Recent[*InputWrite]
}

// A InputWrite is input that waits, or its end.
type InputWrite struct {
	data []byte
	end  bool
	from context.Context // of a sender that waits; nil for another one
	told bool            // the sender learns the result
	own  bool            // it answers what one attempt of the command asked its terminal
	turn func()          // called at its turn; nil for nothing
	done chan struct{}   // closed when the others are set for good
	n    int
	err  error
}

// NewInputQueue returns a Queue that writes to what to returns, each write to one. Terminal says that it
// takes input also after the end of the input, which is a character there. Patience is how long a write
// waits while the command reads nothing; it needs the method SetInputDeadline of [executor.Process].
// Zero waits until the command has ended.
func NewInputQueue(to func() InputTaker, terminal bool, patience time.Duration) *InputQueue {
	return &InputQueue{to: to, terminal: terminal, patience: patience,
		known: Recent[*InputWrite]{Most: maxIDs}}
}

// Done is closed when the input was taken, or not all of it.
func (w *InputWrite) Done() <-chan struct{} { return w.done }

// Result returns how many bytes were taken, and why not all. It waits for that.
func (w *InputWrite) Result() (int, error) {
	<-w.done
	return w.n, w.err
}

// finish sets the result, and keeps nothing else.
func (w *InputWrite) finish(n int, err error) *InputWrite {
	w.data, w.turn, w.n, w.err = nil, nil, n, err
	close(w.done)
	return w
}

// Put queues data, which it keeps, or the end of the input, which closes it. A write with a known ID is
// not repeated: it is the first one. An empty ID is never known. Accepted is called once: before Put
// returns, or, when much input waits already, at the turn of this one; its sender does not wait for the
// result, so that the error of input that is lost is that of the next Put with an accepted. Nil says
// that the sender waits. With an error, else [ErrInputFull] or [ErrInputEnded], nothing was taken, accepted
// is not called, and the Write is done.
func (q *InputQueue) Put(id string, data []byte, end bool, accepted func()) (*InputWrite, error) {
	q.mu.Lock()
	w := &InputWrite{data: data, end: end, told: accepted == nil, done: make(chan struct{})}
	first, now, err := q.add(id, w)
	if first == nil {
		first = w
	}
	if !now {
		w.turn = accepted
	}
	q.mu.Unlock()
	switch {
	case err != nil:
		return w.finish(0, err), err
	case now && accepted != nil:
		accepted()
	}
	return first, nil
}

// add queues w, and reports whether its sender may go on now. First is the write in place of it, if any.
func (q *InputQueue) add(id string, w *InputWrite) (first *InputWrite, now bool, err error) {
	if first, ok := q.known.Find(id); ok {
		return first, true, nil
	}
	again := q.ended && w.end
	if q.ended && !again && (!q.closed || !w.told) { // who waits learns of the end of the command
		return nil, false, ErrInputEnded
	}
	if !w.told && !again && q.lost != nil {
		err, q.lost = q.lost, nil
		return nil, false, err
	}
	if q.size > 0 && q.size+len(w.data) > maxInput || len(q.queue) >= maxWaiting {
		return nil, false, ErrInputFull
	}
	if id != "" {
		q.known.Add(id, w)
	}
	return nil, q.push(w) || q.size <= freeInput, nil
}

// push queues w, and reports true when it is done already.
func (q *InputQueue) push(w *InputWrite) bool {
	switch {
	case w.end && (q.closed || q.ended), len(w.data) == 0 && !w.end && !q.closed:
		w.finish(0, nil)
		return true
	case q.closed:
		w.finish(0, os.ErrProcessDone)
		return true
	}
	q.ended = w.end && !q.terminal
	q.size += len(w.data)
	q.queue = append(q.queue, w)
	if !q.writing {
		q.writing = true
		q.flushes.Go(q.flush)
	}
	return false
}

// Do queues data, or the end of the input, and waits until the command has taken it. It returns how
// many bytes that were; the error is [os.ErrProcessDone] after Close, [ErrInputEnded], or that of the
// command, which is [os.ErrDeadlineExceeded] when it has read nothing for the patience of the Queue, or
// ctx has ended. Any number of calls may wait, with any amount of input.
func (q *InputQueue) Do(ctx context.Context, data []byte, end bool) (int, error) {
	return q.do(ctx, &InputWrite{data: data, end: end})
}

// Answer is Do for what the command itself asked its terminal: that is not input of a caller, and is for
// no other attempt.
func (q *InputQueue) Answer(ctx context.Context, data []byte) (int, error) {
	return q.do(ctx, &InputWrite{data: data, own: true})
}

func (q *InputQueue) do(ctx context.Context, w *InputWrite) (int, error) {
	w.from, w.told, w.done = ctx, true, make(chan struct{})
	q.mu.Lock()
	if q.ended && !q.closed && !w.end {
		q.mu.Unlock()
		return 0, ErrInputEnded
	}
	q.push(w)
	q.mu.Unlock()
	defer context.AfterFunc(ctx, func() { q.cancel(w) })()
	return w.Result()
}

// cancel ends a write whose sender waits no more.
func (q *InputQueue) cancel(w *InputWrite) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == w {
		setDeadline(q.taker, time.Unix(1, 0))
	}
	if i := slices.Index(q.queue, w); i >= 0 {
		q.queue = slices.Delete(q.queue, i, i+1)
		q.size -= len(w.data)
		w.finish(0, os.ErrDeadlineExceeded)
	}
}

// setDeadline has a Taker give up at a time, if it can. False says that it takes no input any more.
func setDeadline(t InputTaker, at time.Time) bool {
	d, ok := t.(interface{ SetInputDeadline(t time.Time) error })
	if !ok {
		return true
	}
	err := d.SetInputDeadline(at)
	return err == nil || errors.Is(err, errors.ErrUnsupported)
}

// flush writes the queue.
func (q *InputQueue) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 {
		w := q.queue[0]
		q.queue[0] = nil
		q.queue = q.queue[1:]
		waited := q.awaitLocked(w)
		q.current, q.taker = w, q.to()
		closed, turn := q.closed, w.turn
		q.mu.Unlock()
		if turn != nil {
			turn()
		}
		n, err := 0, os.ErrProcessDone
		switch {
		case waited != nil && !closed:
			err = waited
		case !closed:
			n, err = q.pass(w)
		case w.end:
			err = nil
		}
		q.mu.Lock()
		q.current, q.taker = nil, nil
		q.sent = q.sent || !w.own && (n > 0 || w.end && err == nil)
		q.size -= len(w.data)
		if !w.told && !usual(err) {
			q.lost = err
		}
		w.finish(n, err)
	}
	q.writing, q.queue = false, nil
}

// awaitLocked waits while writes are held, at most for the patience of the Queue. What one attempt asked
// for is not taken then.
func (q *InputQueue) awaitLocked(w *InputWrite) error {
	held := q.held
	if held == nil {
		return nil
	}
	if w.own {
		return os.ErrProcessDone
	}
	q.mu.Unlock()
	defer q.mu.Lock()
	var from, late <-chan struct{}
	if w.from != nil {
		from = w.from.Done()
	}
	if q.patience > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), q.patience)
		defer cancel()
		late = ctx.Done()
	}
	select {
	case <-held:
		return nil
	case <-from:
	case <-late:
	}
	return os.ErrDeadlineExceeded
}

// Hold is called when an attempt of the command has ended that may be followed by another one. It reports
// whether that has got no input of a caller and no end of it, and none is on its way. If so, writes wait, as
// they do for a command that does not read, until [InputQueue.Release] or [InputQueue.Close].
func (q *InputQueue) Hold() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent || q.current != nil || q.ended || q.closed {
		return false
	}
	if q.held == nil {
		q.held = make(chan struct{})
	}
	return true
}

// Release has writes go on, to what the Queue writes to now.
func (q *InputQueue) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseLocked()
}

func (q *InputQueue) releaseLocked() {
	if q.held != nil {
		close(q.held)
		q.held = nil
	}
}

// pass writes all of w.
func (q *InputQueue) pass(w *InputWrite) (n int, err error) {
	for err = io.ErrShortWrite; errors.Is(err, io.ErrShortWrite); { // the command has read, and may go on
		if q.patience > 0 && !setDeadline(q.taker, time.Now().Add(q.patience)) {
			return n, os.ErrClosed
		}
		// The check follows the new deadline, which would hide the end of the context.
		if w.from != nil && w.from.Err() != nil {
			return n, os.ErrDeadlineExceeded
		}
		if w.end {
			err = q.taker.CloseInput()
			continue
		}
		var done int
		done, err = q.taker.Write(w.data[n:])
		n += done
	}
	return n, err
}

// End says that nothing comes any more, also when input waits.
func (q *InputQueue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
}

// Ended reports whether nothing comes any more.
func (q *InputQueue) Ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ended
}

// Settle waits until what was put before was taken, or not all of it, or ctx has ended.
func (q *InputQueue) Settle(ctx context.Context) {
	q.mu.Lock()
	last := q.current
	if n := len(q.queue); n > 0 {
		last = q.queue[n-1]
	}
	q.mu.Unlock()
	if last == nil {
		return
	}
	select {
	case <-last.done:
	case <-ctx.Done():
	}
}

// Close says that the command has ended: it takes no further input, and not what waits.
func (q *InputQueue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.releaseLocked()
}

// Wait waits, after Close, until all writes are done.
func (q *InputQueue) Wait() { q.flushes.Wait() }
