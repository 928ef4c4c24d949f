// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"io"
	"sync"
	"time"
)

// The bounds of a relay.
const (
	// relaySize is how many bytes wait for a writer before the command has to.
	relaySize = 1 << 20
	// relayPiece is the most that a writer gets in one call, in bytes: small
	// enough that a slow writer can show that it is alive.
	relayPiece = 64 << 10
	// relayPatience is how long the command waits for a writer that takes nothing.
	// A writer that needs longer for one piece loses output.
	relayPatience = time.Second
	// relayDrain is how long all writers together may take for what still waits
	// when the command has ended.
	relayDrain = 2 * time.Second
)

// A relay hands bytes to a writer without being at its mercy. While the writer is
// merely slower than the command, the command waits, as it would with a pipe; when
// the writer takes nothing for a while, output is dropped and counted until it
// takes something again; when it fails, it gets nothing more.
type relay struct {
	w io.Writer
	// patience is relayPatience, unless the writer has a reason to be slow. It is set
	// before the first push.
	patience time.Duration

	more chan struct{} // there is something to write, or the end; holds one
	room chan struct{} // something was taken; holds one
	done chan struct{} // closed when w is called no more

	mu      sync.Mutex
	waiting []byte // next for w
	spare   []byte // memory for the next waiting
	closed  bool   // nothing more comes
	given   bool   // up: w had its time
	stuck   bool   // w takes nothing: nobody waits for it
	writing int    // bytes handed to w that it has not taken yet
	missed  uint64
	err     error
}

func newRelay(w io.Writer) *relay {
	l := &relay{w: w, patience: relayPatience, more: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

// signal fills a channel that holds one; a full one says the same already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push takes the next bytes. It blocks while there is no room, for as long as the
// writer shows life.
func (l *relay) push(p []byte) {
	var patience *time.Timer
	for {
		l.mu.Lock()
		if l.err != nil {
			l.missed += uint64(len(p))
			l.mu.Unlock()
			return
		}
		n := min(len(p), relaySize-len(l.waiting))
		l.waiting = append(l.waiting, p[:n]...)
		p = p[n:]
		if l.stuck {
			l.missed += uint64(len(p))
			p = nil
		}
		l.mu.Unlock()
		if n > 0 {
			signal(l.more)
		}
		if len(p) == 0 {
			return
		}
		if patience == nil {
			patience = time.NewTimer(l.patience)
			defer patience.Stop()
		} else if n > 0 {
			patience.Reset(l.patience)
		}
		select {
		case <-l.room:
			patience.Reset(l.patience)
		case <-patience.C:
			l.mu.Lock()
			l.stuck = true
			l.mu.Unlock()
		}
	}
}

// run is the goroutine that calls the writer.
func (l *relay) run() {
	defer close(l.done)
	for range l.more {
		for {
			batch, end := l.take()
			if len(batch) == 0 {
				if end {
					return
				}
				break
			}
			if !l.write(batch) {
				return
			}
		}
	}
}

// take returns what waits, and whether nothing comes after it.
func (l *relay) take() (batch []byte, end bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given || l.err != nil {
		return nil, true
	}
	batch, l.waiting, l.spare = l.waiting, l.spare[:0], nil
	l.writing = len(batch)
	return batch, l.closed
}

// write hands a batch to the writer and reports whether it may get more.
func (l *relay) write(batch []byte) bool {
	// The room is there as soon as the batch was taken out.
	signal(l.room)
	for rest := batch; len(rest) > 0; {
		piece := rest[:min(len(rest), relayPiece)]
		n, err := l.w.Write(piece)
		if n < 0 || n > len(piece) {
			n = 0
		}
		if n < len(piece) && err == nil {
			err = io.ErrShortWrite
		}
		rest = rest[n:]
		if !l.progress(n, err) {
			return false
		}
	}
	l.mu.Lock()
	l.spare = batch
	l.mu.Unlock()
	return true
}

// progress records that the writer took n bytes.
func (l *relay) progress(n int, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer signal(l.room)
	if l.given {
		return false
	}
	l.writing -= n
	if err != nil {
		l.err = err
		l.missed += uint64(l.writing + len(l.waiting))
		l.writing, l.waiting = 0, nil
		return false
	}
	l.stuck = false
	return true
}

// close ends the relay: the writer gets what waits, until the deadline. A writer
// that took nothing before gets no more time.
func (l *relay) close(deadline time.Time) {
	l.mu.Lock()
	l.closed = true
	left := time.Until(deadline)
	if l.stuck {
		left = 0
	}
	l.mu.Unlock()
	signal(l.more)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = true
	l.missed += uint64(l.writing + len(l.waiting))
	l.writing, l.waiting = 0, nil
}

// trouble returns a *WriterError if the writer did not get everything.
func (l *relay) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed == 0 && l.err == nil {
		return nil
	}
	return &WriterError{Missed: l.missed, Err: l.err}
}
