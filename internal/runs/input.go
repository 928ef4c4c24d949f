// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"sync"

	"github.com/sallyport-dev/sallyport"
)

// The bounds of what waits for a run that does not read.
const (
	maxInput = 16 << 20 // bytes; one write may exceed it
	// maxWaiting is how many writes wait.
	maxWaiting = 4096
	// maxWriteIDs is how many writes are remembered, so that they are not repeated.
	maxWriteIDs = 4096
)

// An input writes to a run in the order of the writes, beside all else.
type input struct {
	session *sallyport.Session
	flushes sync.WaitGroup // at most one goroutine; added to under mu while not closed

	mu      sync.Mutex
	queue   []*write
	size    int // bytes in queue and on their way
	writing bool
	closed  bool              // the run has ended
	known   map[string]*write // by their IDs
	recent  []string          // the same, the oldest first
}

// A write is input, or its end.
type write struct {
	data []byte // nil when it was taken
	end  bool
	done chan struct{} // closed when err is set
	err  error
}

// Write queues data, which it keeps, for the input of the run. Done is closed when the data was
// taken, or not all of it: err then returns an *Error with the reason InputClosed, InputFull,
// Ended or Failed. A write with an ID that is known is not repeated: it is the first one. An empty
// ID is never known.
func (r *Run) Write(id string, data []byte) (done <-chan struct{}, err func() error) {
	return r.put(id, &write{data: data, done: make(chan struct{})})
}

// CloseInput queues the end of the input, as Write does. A terminal gets its end-of-file character.
// After the end of the run it has no effect.
func (r *Run) CloseInput() (done <-chan struct{}, err func() error) {
	return r.put("", &write{end: true, done: make(chan struct{})})
}

func (r *Run) put(id string, w *write) (<-chan struct{}, func() error) {
	in := &r.input
	in.mu.Lock()
	defer in.mu.Unlock()
	if first := in.known[id]; first != nil {
		return first.done, func() error { return first.err }
	}
	switch {
	case in.closed && w.end:
		close(w.done)
	case in.closed:
		w.fail(r.ended())
	case in.size > 0 && in.size+len(w.data) > maxInput || len(in.queue) >= maxWaiting:
		w.fail(r.inputError(0, sallyport.ErrInputFull))
	default:
		in.remember(id, w)
		in.size += len(w.data)
		in.queue = append(in.queue, w)
		if !in.writing {
			in.writing = true
			in.flushes.Go(r.flush)
		}
	}
	return w.done, func() error { return w.err }
}

func (w *write) fail(err error) {
	w.err = err
	close(w.done)
}

// remember keeps a write by its ID.
func (in *input) remember(id string, w *write) {
	if id == "" {
		return
	}
	if in.known == nil {
		in.known = make(map[string]*write)
	}
	in.known[id] = w
	in.recent = append(in.recent, id)
	if len(in.recent) > maxWriteIDs {
		delete(in.known, in.recent[0])
		in.recent[0] = ""
		in.recent = in.recent[1:]
	}
}

// flush writes the queue.
func (r *Run) flush() {
	in := &r.input
	for {
		in.mu.Lock()
		if len(in.queue) == 0 {
			in.writing, in.queue = false, nil
			in.mu.Unlock()
			return
		}
		w := in.queue[0]
		in.queue[0] = nil
		in.queue = in.queue[1:]
		in.mu.Unlock()
		size, n := len(w.data), 0
		var err error
		if w.end {
			err = in.session.CloseInput()
		} else {
			n, err = in.session.Write(w.data)
		}
		in.mu.Lock()
		in.size -= size
		in.mu.Unlock()
		w.data = nil
		w.fail(r.inputError(n, err))
	}
}

// close refuses further writes and waits for those that were taken. The run has ended, so that is
// at once.
func (in *input) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.flushes.Wait()
}
