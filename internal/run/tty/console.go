// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

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
	// Reads takes one look whether the program is blocked in a read of a terminal; nil for no look.
	Reads func() bool
	// Size is that of the terminal; zero members are not known.
	Size executor.Size

	streams [3]*os.File
	term    *Terminal // of a program with its own; nil when no standard stream is one
	shown   bool      // the program's output goes to term
	restore func()    // the modes of a terminal that the program was given
	opened  []*os.File
	resizes chan executor.Size
	over    chan struct{}
	passing sync.WaitGroup
	gate    gate

	typed atomic.Int32 // the last signal that a key has asked for; 0 is none

	saying sync.Mutex  // held while a message of ours is printed, and to change the rest
	asking atomic.Bool // the terminal is in use for a question
	unsaid []func()    // messages that wait for its end
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
func (c *Console) Reader(s *Signals) *Keys { return &Keys{c, s} }

// Keys are what is typed.
type Keys struct {
	console *Console
	signals *Signals
}

// Read reads keys, and blocks until there are some.
func (k *Keys) Read(p []byte) (int, error) {
	n, err := k.console.term.Read(p)
	for key, s := range signalKeys {
		if bytes.IndexByte(p[:n], key) >= 0 {
			k.console.typed.Store(int32(s))
		}
	}
	if errors.Is(err, ErrGone) {
		k.signals.hangUp()
		return n, io.EOF // the program gets to know by the signal
	}
	return n, err
}

// signalKeys are the keys by which a terminal signals the job in its foreground.
var signalKeys = map[byte]syscall.Signal{0x03: syscall.SIGINT, 0x1c: syscall.SIGQUIT}

// Interrupt signals the other processes of this job by the signal that ended the program, if a key asked for
// that: a script has to hear of it, and this process took the key.
func (c *Console) Interrupt(s syscall.Signal) {
	if c.Own && s != 0 && syscall.Signal(c.typed.Load()) == s {
		interruptJob(s)
	}
}

// Around calls ask, which reads the terminal itself, and takes it back afterwards. Control-Z has no
// effect meanwhile. Output of a program that runs must go through Gate, where it waits.
func (c *Console) Around(ask func()) {
	c.hold()
	defer c.letGo()
	c.gate.turn.Lock()
	defer c.gate.turn.Unlock()
	if c.gate.asks {
		defer c.putAway()()
	} else {
		c.clear()
	}
	c.restore() // of a program that was given the terminal, and has ended
	c.suspend()
	defer c.resume()
	ask()
}

// hold begins a question: what [Console.Beside] gets waits.
func (c *Console) hold() {
	c.saying.Lock()
	defer c.saying.Unlock()
	c.asking.Store(true)
}

// letGo ends a question, and says what has waited.
func (c *Console) letGo() {
	c.saying.Lock()
	defer c.saying.Unlock()
	c.asking.Store(false)
	for _, say := range c.unsaid {
		say()
	}
	c.unsaid = nil
}

// Beside calls say, which prints a message of ours on the terminal: now, or where a question is on the
// terminal, after that.
func (c *Console) Beside(say func()) {
	c.saying.Lock()
	defer c.saying.Unlock()
	if c.asking.Load() {
		c.unsaid = append(c.unsaid, say)
		return
	}
	say()
}

// Unless calls say unless a question is on the terminal, and reports whether it did.
func (c *Console) Unless(say func()) bool {
	c.saying.Lock()
	defer c.saying.Unlock()
	if c.asking.Load() {
		return false
	}
	say()
	return true
}

// draws reports whether control sequences for the program's terminal go to this one.
func (c *Console) draws() bool { return c.term != nil && c.shown && !Plain() }

// clear brings the terminal out of the modes that a program has left which has ended. Where the cursor may
// be above what it wrote, the next line is the last one, so that nothing has to be erased.
func (c *Console) clear() {
	left, moved := c.gate.modes.Left(), c.gate.modes.Moved()
	if (left || moved) && c.draws() {
		_, _ = io.WriteString(c.streams[1], Cut)
		c.putAway()
		if moved {
			_, _ = io.WriteString(c.streams[1], resetModes+lowest)
		}
	}
	c.gate.modes = text.ScreenModes{}
}

// putAway brings the terminal out of the modes of a program that writes through the gate. The function
// that it returns brings it back, and has a program with a screen of its own draw that anew.
func (c *Console) putAway() (back func()) {
	if !c.gate.modes.Left() || !c.draws() {
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
	for _, f := range c.opened {
		_ = f.Close() // nothing was written that could be lost
	}
	if c.term != nil {
		if c.gate.modes.Left() && c.shown {
			Continue(c.streams[1]) // output that the program has stopped would wait
			c.putAway()
		}
		_ = c.term.Close() // nothing could fix it
		c.passing.Wait()
	}
}
