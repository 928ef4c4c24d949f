// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// The limits of a relay.
const (
	// relaySize is how many bytes wait for a writer before the process has to.
	relaySize = 1 << 20
	// relayPiece is the most that a writer gets in one call, in bytes: small enough for
	// a slow writer to make progress within its patience.
	relayPiece = 64 << 10
	// patience is how long the process waits for a writer that takes nothing. A writer
	// that needs longer for one piece loses output.
	patience = time.Second
	// filePatience is that for a file, such as a terminal or a pipe whose reader is
	// paused: without a limit on its output the process would have the file itself.
	filePatience = 30 * time.Second
	// drainTime is how long both writers together may take, when the output is complete,
	// for what waits.
	drainTime = 2 * time.Second
)

// Writers relay the two streams of a process to io.Writers. They are made by
// [NewWriters]; Write and Close are called by one goroutine.
type Writers struct {
	relays [2]*relay // by stream; nil without a writer
}

// NewWriters returns Writers for the two streams; nil is no writer. One that is both gets
// one call at a time, in order of arrival. The caller must call Close.
func NewWriters(stdout, stderr io.Writer) *Writers {
	w := new(Writers)
	if stdout != nil {
		w.relays[executor.Stdout] = newRelay(stdout)
	}
	switch {
	case stderr == nil:
	case stdout != nil && same(stdout, stderr):
		w.relays[executor.Stderr] = w.relays[executor.Stdout]
	default:
		w.relays[executor.Stderr] = newRelay(stderr)
	}
	return w
}

// same reports whether two writers are one. Files are one if the same file is open in
// both.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // types that cannot be compared
	if a == b {
		return true
	}
	f, isFile := a.(*os.File)
	g, areFiles := b.(*os.File)
	if !isFile || !areFiles {
		return false
	}
	x, err := f.Stat()
	y, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// Write hands p to the writer of the stream. While the writer is merely slower than the
// process, Write blocks, as a pipe would. A writer that takes nothing for a second (a
// file: half a minute) loses output until it takes something again, and one that fails
// gets nothing more.
func (w *Writers) Write(s executor.Stream, p []byte) {
	if r := w.relays[s]; r != nil {
		r.push(p)
	}
}

// Close says that the output is complete. The writers get 2 seconds for what waits; one
// that took nothing before gets no time.
func (w *Writers) Close() {
	deadline := time.Now().Add(drainTime)
	for _, r := range w.relays {
		if r != nil {
			r.close(deadline)
		}
	}
}

// Missed returns how many bytes the writer of a stream did not take, and its error.
func (w *Writers) Missed(s executor.Stream) (bytes uint64, err error) {
	r := w.relays[s]
	if r == nil {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed, r.err
}

// A relay hands bytes to one writer, from a goroutine of its own.
type relay struct {
	w        io.Writer
	patience time.Duration

	more chan struct{} // there is something to write, or the end; holds one
	room chan struct{} // the writer made progress; holds one
	done chan struct{} // closed when w is called no more

	mu      sync.Mutex
	waiting []byte
	batch   []byte // what w is given now
	writing int    // bytes of it that w has not taken yet
	stuck   bool   // w takes nothing: the process does not wait for it
	closed  bool   // nothing more comes
	given   bool   // w had its time, or failed
	missed  uint64
	err     error
}

// A file is an *os.File, or a writer around one.
type file interface {
	io.Writer
	Stat() (os.FileInfo, error)
}

func newRelay(w io.Writer) *relay {
	r := &relay{
		w: w, patience: patience,
		more: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if _, isFile := w.(file); isFile {
		r.patience = filePatience
	}
	go r.run()
	return r
}

// signal fills a channel that holds one; a full one says the same already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push takes the next bytes. Without room it blocks as long as the writer makes progress.
func (r *relay) push(p []byte) {
	for {
		r.mu.Lock()
		n := 0
		if !r.given {
			n = min(len(p), relaySize-len(r.waiting))
			r.waiting = append(r.waiting, p[:n]...)
			p = p[n:]
		}
		if r.stuck || r.given {
			r.missed += uint64(len(p))
			p = nil
		}
		r.mu.Unlock()
		if n > 0 {
			signal(r.more)
		}
		if len(p) == 0 {
			return
		}
		timer := time.NewTimer(r.patience)
		select {
		case <-r.room:
		case <-timer.C:
			r.mu.Lock()
			r.stuck = true
			r.mu.Unlock()
		}
		timer.Stop()
	}
}

// run calls the writer.
func (r *relay) run() {
	defer close(r.done)
	for range r.more {
		for {
			batch, end := r.take()
			if end {
				return
			}
			if len(batch) == 0 {
				break
			}
			for len(batch) > 0 {
				piece := batch[:min(len(batch), relayPiece)]
				batch = batch[len(piece):]
				n, err := write(r.w, piece)
				if n != len(piece) && err == nil {
					err = io.ErrShortWrite
				}
				if !r.took(min(max(n, 0), len(piece)), err) {
					return
				}
			}
		}
	}
}

// write is w.Write; a panic is an error.
func write(w io.Writer, p []byte) (n int, err error) {
	err = strict.Call("the writer", func() (err error) {
		n, err = w.Write(p)
		return err
	})
	return n, err
}

// take returns what waits, and whether the writer gets nothing more. The batch before it
// has been written, so its memory is used again.
func (r *relay) take() (batch []byte, end bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given || len(r.waiting) == 0 && r.closed {
		return nil, true
	}
	r.batch, r.waiting = r.waiting, r.batch[:0]
	r.writing = len(r.batch)
	signal(r.room)
	return r.batch, false
}

// took records that the writer took n bytes, and reports whether it gets more.
func (r *relay) took(n int, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given {
		return false
	}
	r.writing -= n
	r.stuck = false
	if err != nil {
		r.err = err
		r.giveUp()
	}
	signal(r.room)
	return err == nil
}

// giveUp gives the writer nothing more. The caller holds mu.
func (r *relay) giveUp() {
	r.missed += uint64(r.writing + len(r.waiting))
	r.writing, r.waiting, r.given = 0, nil, true
}

// close ends the relay: the writer gets what waits, until the deadline.
func (r *relay) close(deadline time.Time) {
	r.mu.Lock()
	r.closed = true
	left := time.Until(deadline)
	if r.stuck {
		left = 0
	}
	r.mu.Unlock()
	signal(r.more)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveUp()
}
