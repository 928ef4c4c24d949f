// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Console is the terminal in front of this process, as far as there is one. It connects a
// program that has a terminal of its own with it, and restores it when the program has ended.
type Console struct {
	// Own says that the program has a terminal of its own; the others are for that.
	Own bool
	// Keys says that standard input is the terminal, from which Read reads.
	Keys bool
	// Size is that of the terminal; zero members are not known.
	Size executor.Size

	streams [3]*os.File
	term    *Terminal // of a program with its own; nil when no standard stream is one
	shown   bool      // the program's output goes to term
	restore func()    // the modes of a terminal that the program was given
	resizes chan executor.Size
	over    chan struct{}
	passing sync.WaitGroup
	asking  atomic.Bool // the terminal is in use for a question
	gate    gate
}

// OpenConsole returns the console of the standard streams, which must be closed. It changes nothing
// yet. With own the program has a terminal of its own; with captured its output does not go to
// the standard streams.
func OpenConsole(stdin, stdout, stderr *os.File, own, captured bool) (*Console, error) {
	c := &Console{
		Own: own, streams: [3]*os.File{stdin, stdout, stderr}, restore: func() {},
		resizes: make(chan executor.Size), over: make(chan struct{}),
	}
	var front *os.File
	for _, f := range c.streams {
		if front == nil && Is(f) {
			front = f
		}
	}
	switch {
	case front == nil:
		return c, nil
	case !own:
		c.restore = Keep(front)
		return c, nil
	}
	c.Keys, c.shown, c.Size = front == stdin, !captured && Is(stdout), SizeOf(front)
	var err error
	c.term, err = Open(front)
	return c, err
}

// Present reports whether this process is in the foreground of a terminal.
func (c *Console) Present() bool {
	for _, f := range c.streams {
		if Foreground(f) {
			return true
		}
	}
	return false
}

// Resizes returns a channel of the sizes of the terminal, which nothing closes; nil without a
// terminal.
func (c *Console) Resizes() <-chan executor.Size {
	if c.term == nil {
		return nil
	}
	c.passing.Go(func() {
		for s := range c.term.Sizes() {
			select {
			case c.resizes <- s:
			case <-c.over:
				return
			}
		}
	})
	return c.resizes
}

// Begin passes every key on from now on, until Close. It comes shortly before the program
// runs, so that what is typed meanwhile is not shown twice, and the terminal's answers to the
// program are not echoed.
func (c *Console) Begin() error {
	if !c.Keys {
		return nil
	}
	err := c.term.Raw(!c.shown)
	if errors.Is(err, ErrGone) {
		return nil // the program gets to know
	}
	return err
}

// LineEnd ends a line on standard error while the program runs.
func (c *Console) LineEnd() string {
	if c.Keys && c.shown && Is(c.streams[2]) {
		return "\r\n"
	}
	return "\n"
}

// Reader returns a reader of keys for the program. When the terminal is gone, the program gets
// SIGHUP before the end of its input.
func (c *Console) Reader(s *Signals) *Keys { return &Keys{c.term, s} }

// Keys are what is typed.
type Keys struct {
	term    *Terminal
	signals *Signals
}

// Read reads keys, and blocks until there are some.
func (k *Keys) Read(p []byte) (int, error) {
	n, err := k.term.Read(p)
	if errors.Is(err, ErrGone) {
		k.signals.hangUp()
		return n, io.EOF // the program gets to know by the signal
	}
	return n, err
}

// Around calls ask, which reads the terminal itself, and takes it back afterwards. Control-Z has no
// effect meanwhile. Output of a program that runs must go through Gate, where it waits.
func (c *Console) Around(ask func()) {
	c.asking.Store(true)
	defer c.asking.Store(false)
	c.gate.turn.Lock()
	defer c.gate.turn.Unlock()
	if !c.gate.asks {
		c.gate.modes = text.ScreenModes{} // the question resets what one that has ended has left on
	}
	defer c.putAway()()
	c.restore() // of a program that was given the terminal, and has ended
	c.suspend()
	defer c.resume()
	ask()
}

// putAway brings the terminal out of the modes of a program that writes through the gate. The function
// that it returns brings it back, and has a program with a screen of its own draw that anew.
func (c *Console) putAway() (back func()) {
	if !c.gate.modes.Left() || c.term == nil || !c.shown || Plain() {
		return func() {}
	}
	away, again, second := c.gate.modes.Away()
	_, _ = io.WriteString(c.streams[1], away)
	return func() {
		_, _ = io.WriteString(c.streams[1], again)
		if second {
			c.redraw()
		}
	}
}

// redraw changes the size of the program's terminal for a moment: programs draw their screen anew then.
func (c *Console) redraw() {
	size := SizeOf(c.streams[1])
	if size.Rows < 2 {
		return
	}
	less := size
	less.Rows--
	c.passing.Go(func() {
		for _, s := range []executor.Size{less, size} {
			select {
			case c.resizes <- s:
			case <-c.over:
				return
			}
		}
	})
}

// suspend leaves the terminal to the shell while this process is stopped.
func (c *Console) suspend() {
	if c.term != nil {
		_ = c.term.Suspend() // nothing could fix it
	}
}

// resume takes the terminal back.
func (c *Console) resume() {
	if c.term != nil {
		c.term.Resume()
	}
}

// Close leaves the terminal as it was found. It may be called more than once.
func (c *Console) Close() {
	select {
	case <-c.over:
		return
	default:
	}
	close(c.over)
	c.restore()
	if c.term != nil {
		if c.gate.modes.Left() && c.shown {
			Continue(c.streams[1]) // output that the program has stopped would wait
			c.putAway()
		}
		_ = c.term.Close() // nothing could fix it
		c.passing.Wait()
	}
}
