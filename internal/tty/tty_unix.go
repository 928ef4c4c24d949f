// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package tty

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// A Terminal is that of the person in front of this process. Its methods may be
// called from several goroutines at once, Read from one at a time. It must be closed.
type Terminal struct {
	given *os.File // for its modes and size; another one's to close
	fd    int      // the descriptor of given
	keys  *os.File // for reading; given, or the same terminal opened anew
	anew  bool     // keys is ours to close, and does not block

	// wake holds a byte for the reader when it must look at its state again.
	wakeRead, wake *os.File
	signals        chan os.Signal
	sizes          chan Size // holds the last one that was not taken
	quit           chan struct{}
	serving        sync.WaitGroup
	reading        sync.WaitGroup

	mu         sync.Mutex
	before     *unix.Termios // the modes to put back; nil while nothing is changed
	wanted     bool          // raw mode is to be on whenever this process is in the foreground
	keepOutput bool
	suspended  bool // until SIGCONT: this process is about to stop
	last       Size // that sizes was told
	closed     bool
}

// Open begins to look after the terminal f, which must stay open until Close. It
// changes nothing yet. From then on this process hears SIGWINCH and SIGCONT.
func Open(f *os.File) (*Terminal, error) {
	if !Is(f) {
		return nil, fmt.Errorf("tty: %w", unix.ENOTTY)
	}
	t := &Terminal{
		given: f, keys: f,
		signals: make(chan os.Signal, 8), sizes: make(chan Size, 1), quit: make(chan struct{}),
		last: SizeOf(f),
	}
	var err error
	if t.wakeRead, t.wake, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("tty: %w", err)
	}
	_ = control(f, func(fd uintptr) error { t.fd = int(fd); return nil })
	if again := reopen(t.fd); again != nil {
		t.keys, t.anew = again, true
	}
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGCONT)
	t.serving.Go(t.serve)
	return t, nil
}

// Foreground reports whether this process may change and read the terminal f without
// being stopped: it belongs to the job in the foreground, or f is not the terminal
// that controls it. False when f is no terminal.
func Foreground(f *os.File) bool {
	in := false
	_ = control(f, func(fd uintptr) error { in = Is(f) && foreground(int(fd)); return nil })
	return in
}

func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	// ENOTTY: it is the terminal of another session, whose jobs are not ours.
	return err != nil || group == unix.Getpgrp()
}

// Raw hands every key on from now on as it is typed, signals and editing keys
// included, and shows none of them. With keepOutput, a line feed on the terminal
// still begins a new line; otherwise output goes to it as it is. In the background
// that comes into force when the job has been brought to the foreground. Raw may be called
// again. After Close it is os.ErrClosed.
func (t *Terminal) Raw(keepOutput bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return os.ErrClosed
	}
	t.wanted, t.keepOutput = true, keepOutput
	return t.apply()
}

// rawModes returns what cfmakeraw(3) makes of modes.
func rawModes(m unix.Termios, keepOutput bool) unix.Termios {
	m.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	if !keepOutput {
		m.Oflag &^= unix.OPOST
	}
	m.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	m.Cflag &^= unix.CSIZE | unix.PARENB
	m.Cflag |= unix.CS8
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 1, 0
	return m
}

// apply sets the raw modes where that is wanted and allowed. Keys that were typed
// before stay where they are. The lock is held.
func (t *Terminal) apply() error {
	// In the background, the modes are those of another job: neither to be changed nor
	// to be put back later.
	if !t.wanted || t.suspended || t.closed || !foreground(t.fd) {
		return nil
	}
	if t.before == nil {
		before, err := unix.IoctlGetTermios(t.fd, getModes)
		if err != nil {
			return trouble(err)
		}
		t.before = before
	}
	raw := rawModes(*t.before, t.keepOutput)
	return trouble(unix.IoctlSetTermios(t.fd, setModes, &raw))
}

// Restore puts back the modes that Raw found. In the background it leaves that to
// whoever has the terminal now, and a terminal that is gone needs nothing. Without
// Raw before it, and when called again, it does nothing.
func (t *Terminal) Restore() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted = false
	return t.restore()
}

// Suspend is Restore for a process that is about to stop: when it goes on, raw mode
// comes back.
func (t *Terminal) Suspend() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspended = true
	return t.restore()
}

func (t *Terminal) restore() error {
	before := t.before
	t.before = nil
	if before == nil || !foreground(t.fd) {
		return nil
	}
	if err := trouble(unix.IoctlSetTermios(t.fd, setModes, before)); !errors.Is(err, ErrGone) {
		return err
	}
	return nil
}

// trouble returns an error about modes for callers.
func trouble(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EIO):
		return ErrGone
	}
	return fmt.Errorf("tty: the modes of the terminal: %w", err)
}

// Sizes returns the channel that tells the size of the terminal whenever it has
// changed. It holds one: a size that nobody took gives way to the next. It is closed
// by Close.
func (t *Terminal) Sizes() <-chan Size { return t.sizes }

// serve hears the signals until Close.
func (t *Terminal) serve() {
	defer close(t.sizes)
	for {
		select {
		case s := <-t.signals:
			t.again(s == unix.SIGCONT)
			// While this process was stopped nobody told it about the window.
			t.resized()
		case <-t.quit:
			return
		}
	}
}

// again makes the terminal raw again after a stop, where that is wanted. The two
// signals that come then come in any order. The modes to put back at the end stay
// those of the beginning: a shell hands a job that goes on the modes in which the job
// was stopped.
func (t *Terminal) again(goesOn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if goesOn {
		t.suspended = false
		t.nudge()
	}
	_ = t.apply() // a terminal that is gone shows in Read
}

// nudge has the reader look again. The lock is held.
func (t *Terminal) nudge() {
	if !t.closed {
		// The pipe does not block. A full one says the same already.
		_ = control(t.wake, func(fd uintptr) error { _, err := unix.Write(int(fd), []byte{0}); return err })
	}
}

// resized tells the size if it is a new one.
func (t *Terminal) resized() {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := SizeOf(t.given)
	if t.suspended || size == t.last || size == (Size{}) {
		return
	}
	t.last = size
	select {
	case <-t.sizes:
	default:
	}
	t.sizes <- size // only this function sends
}

// endOfFile is the character that [Terminal.Read] returns for a terminal that says
// end of file, because it is not in raw mode: the key was a key like others.
const endOfFile = 4 // ASCII EOT, Control-D

// Read reads keys and blocks until there are some. It is [ErrGone] when the terminal
// is gone, and os.ErrClosed during and after Close. Keys that are there after Close
// stay for whoever reads the terminal next. A process in the background is stopped
// when it reads keys that were meant for another job, as every program is.
func (t *Terminal) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !t.enter() {
		return 0, os.ErrClosed
	}
	defer t.reading.Done()
	keys, wake := -1, -1
	_ = control(t.keys, func(fd uintptr) error { keys = int(fd); return nil })
	_ = control(t.wakeRead, func(fd uintptr) error { wake = int(fd); return nil })
	listen := true
	for {
		ready, woken, gone, err := await(keys, wake, listen)
		switch {
		case err != nil:
			return 0, fmt.Errorf("tty: wait for keys: %w", err)
		case woken:
			if t.isClosed() {
				return 0, os.ErrClosed
			}
			var b [64]byte
			_, _ = t.wakeRead.Read(b[:])
			listen = true
			continue
		case gone && !ready:
			return 0, ErrGone
		}
		n, err := unix.Read(keys, p)
		switch {
		case n > 0:
			t.comeForward()
			return n, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case err == nil && isThere(keys):
			p[0] = endOfFile
			return 1, nil
		case !gone && errors.Is(err, unix.EIO) && !foreground(keys):
			// Nobody is left who would bring this job to the foreground, so the kernel
			// refuses instead of stopping it.
			listen = false
		case err == nil, errors.Is(err, unix.EIO):
			return 0, ErrGone
		default:
			return 0, fmt.Errorf("tty: read keys: %w", err)
		}
	}
}

// comeForward makes the terminal raw where that had to wait for the foreground: a shell
// that brings a running job there tells it nothing, and the first keys are the first
// that it hears of it.
func (t *Terminal) comeForward() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		_ = t.apply()
	}
}

// isThere reports whether the terminal behind fd has not been taken away.
func isThere(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, getModes)
	return err == nil
}

// enter announces a read, unless the Terminal is closed.
func (t *Terminal) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.reading.Add(1)
	return true
}

func (t *Terminal) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Close ends a Read that waits, puts the modes back as Restore does, and ends the
// hearing of signals. It may be called more than once.
func (t *Terminal) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	err := t.restore()
	t.nudge()
	t.wanted, t.closed = false, true
	t.mu.Unlock()
	signal.Stop(t.signals)
	close(t.quit)
	t.serving.Wait()
	if t.anew {
		t.free()
	} else {
		// A description that may block: when somebody else took the key that had been
		// there, the read ends with the next one, or with this process.
		go t.free()
	}
	return err
}

// free closes what a read uses, after the last one.
func (t *Terminal) free() {
	t.reading.Wait()
	if t.anew {
		_ = t.keys.Close()
	}
	_ = t.wake.Close()
	_ = t.wakeRead.Close()
}
