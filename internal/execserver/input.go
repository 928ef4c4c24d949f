// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
)

const (
	// freeInput is how many bytes of input may wait for a process that does not read before
	// further writes are answered only when their turn comes.
	freeInput = 1 << 20
	// maxInput is how many may wait at all. It holds one message of the largest size.
	maxInput = 16 << 20
	// maxWaiting is how many writes may wait.
	maxWaiting = 64 << 10
	// maxWriteIDs is how many writes of a process are remembered, so that they are not
	// repeated.
	maxWriteIDs = 4096
)

// errInputFull refuses a write; nothing of it was taken.
var errInputFull = errors.New("input buffer full: the command is not reading; write again later")

// errInputEnded says that the input has none after it was closed by the client.
var errInputEnded = errors.New("the input of the process is closed")

// An input writes to a process in the order of the writes, and waits for it in place of them.
type input struct {
	process  executor.Process
	terminal bool

	mu      sync.Mutex
	queue   []write
	size    int // bytes in queue and on their way
	writing bool
	ended   bool  // the client closed it; nothing comes after that
	closed  bool  // the process has ended or reads no more; further input is discarded
	failed  error // why input was lost; told to one write
	ids     map[string]struct{}
	recent  []string // the same, oldest first
}

// A write is input that waits.
type write struct {
	data     []byte
	end      bool   // closes the input, or types the end-of-file character
	accepted func() // answers the request; nil when that was done
}

func newInput(p executor.Process, terminal bool) *input {
	return &input{process: p, terminal: terminal, ids: make(map[string]struct{})}
}

// write queues data, which it keeps, and calls accepted once: before it returns, or when much
// input waits already, when the turn of this one comes. A write with a known ID is accepted and
// not repeated. With an error nothing was taken and accepted is not called.
func (in *input) write(id string, data []byte, accepted func()) error {
	return in.take(id, write{data: data, accepted: accepted})
}

// end closes the input after the writes before it; a terminal gets its end-of-file character
// then. The ID may be empty: it is repeated then. Otherwise it is as write.
func (in *input) end(id string, accepted func()) error {
	return in.take(id, write{end: true, accepted: accepted})
}

// take does the work of write and end.
func (in *input) take(id string, w write) error {
	accepted := w.accepted
	in.mu.Lock()
	now, err := in.add(id, w)
	in.mu.Unlock()
	if now {
		accepted()
	}
	return err
}

// add queues w, and reports whether accepted has to be called now.
func (in *input) add(id string, w write) (now bool, err error) {
	if _, known := in.ids[id]; known || in.ended && w.end {
		return true, nil
	}
	if in.ended {
		return false, errInputEnded
	}
	if in.failed != nil {
		err, in.failed = in.failed, nil
		return false, err
	}
	if in.size > 0 && in.size+len(w.data) > maxInput || len(in.queue) >= maxWaiting {
		return false, errInputFull
	}
	if id != "" {
		in.remember(id)
	}
	in.ended = w.end && !in.terminal
	if in.closed || len(w.data) == 0 && !w.end {
		return true, nil
	}
	in.size += len(w.data)
	now = in.size <= freeInput
	if now {
		w.accepted = nil
	}
	in.queue = append(in.queue, w)
	if !in.writing {
		in.writing = true
		go in.flush()
	}
	return now, nil
}

// remember keeps the ID of a write.
func (in *input) remember(id string) {
	in.ids[id] = struct{}{}
	in.recent = append(in.recent, id)
	if len(in.recent) > maxWriteIDs {
		delete(in.ids, in.recent[0])
		in.recent[0] = ""
		in.recent = in.recent[1:]
	}
}

// flush writes the queue.
func (in *input) flush() {
	for {
		in.mu.Lock()
		if len(in.queue) == 0 {
			in.writing, in.queue = false, nil
			in.mu.Unlock()
			return
		}
		w := in.queue[0]
		in.queue[0] = write{}
		in.queue = in.queue[1:]
		closed := in.closed
		in.mu.Unlock()
		if w.accepted != nil {
			w.accepted()
		}
		var err error
		switch {
		case closed:
		case w.end:
			err = in.process.CloseInput()
		default:
			err = in.pass(w.data)
		}
		in.mu.Lock()
		in.size -= len(w.data)
		switch {
		case errors.Is(err, io.ErrClosedPipe), errors.Is(err, os.ErrClosed):
			in.closed = true // the process closed its input, which is no error
		case err != nil:
			in.failed = err
		}
		in.mu.Unlock()
	}
}

// pass writes all of data.
func (in *input) pass(data []byte) error {
	for {
		n, err := in.process.Write(data)
		if !errors.Is(err, io.ErrShortWrite) {
			return err
		}
		data = data[n:]
	}
}

// close discards further input, and what waits.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
}
