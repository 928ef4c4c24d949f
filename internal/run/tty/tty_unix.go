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

	"github.com/sallyport-dev/sallyport/executor"
)

// A Terminal is the terminal of the user of this process. Several goroutines may call its
// methods at once, one of them Read. It must be closed.
type Terminal struct {
	given *os.File // for its modes and size; the caller closes it
	fd    int      // the descriptor of given
	keys  *os.File // for reading; given, or the same terminal opened anew
	anew  bool     // keys was opened anew: it does not block, and Close closes it

	// wake gets a byte if the reader must look at its state again.
	wakeRead, wake *os.File
	signals        chan os.Signal
	sizes          chan executor.Size // holds the last one that was not taken
	quit           chan struct{}
	serving        sync.WaitGroup
	reading        sync.WaitGroup

	mu     sync.Mutex
	before *unix.Termios // the modes to restore; nil while nothing is changed
	// makes the modes for this process in the foreground; nil changes none
	wanted    func(unix.Termios) unix.Termios
	suspended bool // until SIGCONT: this process will stop
	last      executor.Size
	closed    bool
}

// Open begins to manage the terminal f, which must stay open until Close. It changes
// nothing yet. From then on this process handles SIGWINCH and SIGCONT.
func Open(f *os.File) (*Terminal, error) {
	if !Is(f) {
		return nil, fmt.Errorf("tty: %w", unix.ENOTTY)
	}
	t := &Terminal{
		given: f, fd: descriptor(f), keys: f,
		signals: make(chan os.Signal, 8), sizes: make(chan executor.Size, 1), quit: make(chan struct{}),
		last: SizeOf(f),
	}
	var err error
	if t.wakeRead, t.wake, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("tty: %w", err)
	}
	if again := reopen(t.fd); again != nil {
		t.keys, t.anew = again, true
	}
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGCONT)
	t.serving.Go(t.serve)
	return t, nil
}

// descriptor returns the number of an open file.
func descriptor(f *os.File) int {
	n := -1
	_ = control(f, func(fd uintptr) error { n = int(fd); return nil })
	return n
}

// Foreground reports whether this process can change and read the terminal f without
// being stopped: it belongs to the job in the foreground, or f is not the terminal that
// controls it. It is false if f is not a terminal.
func Foreground(f *os.File) bool { return Is(f) && foreground(descriptor(f)) }

func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	// ENOTTY: it is the terminal of another session, which has its own jobs.
	return err != nil || group == unix.Getpgrp()
}

// Continue lets output to f go on that a program has stopped (tcflow(3)), so that writing to
// it does not wait for ever. It does nothing where f is no terminal, or one that this process
// is in the background of.
func Continue(f *os.File) {
	if Foreground(f) {
		_ = control(f, func(fd uintptr) error { return continueOutput(int(fd)) }) // nothing could fix it
	}
}

// Keep remembers the modes of the terminal f and returns the function that restores them,
// unless another job is in the foreground then. For what is no terminal that does nothing.
func Keep(f *os.File) (restore func()) {
	fd := descriptor(f)
	modes, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return func() {}
	}
	return func() {
		if now, err := unix.IoctlGetTermios(fd, getModes); err == nil && *now != *modes && foreground(fd) {
			_ = unix.IoctlSetTermios(fd, setModes, modes) // nothing could fix it
		}
	}
}

// Raw passes every key on as it is typed, signals and editing keys included, and shows none
// of them. With keepOutput, a line feed on the terminal still begins a new line; otherwise
// output goes to it unchanged. In the background Raw takes effect when the job comes to the
// foreground. Raw may be called again. After Close it is os.ErrClosed.
func (t *Terminal) Raw(keepOutput bool) error {
	return t.set(func(m unix.Termios) unix.Termios { return rawModes(m, keepOutput) })
}

// Lines passes whole lines on, and shows what is typed, as a terminal does that no program has
// changed. In the background and after Close it is as [Terminal.Raw].
func (t *Terminal) Lines() error { return t.set(lineModes) }

func (t *Terminal) set(modes func(unix.Termios) unix.Termios) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return os.ErrClosed
	}
	t.wanted = modes
	return t.apply()
}

// Discard forgets the keys that were typed and not read yet.
func (t *Terminal) Discard() error { return modeError(discardInput(t.fd)) }

// lineModes returns the modes with those that whole lines need.
func lineModes(m unix.Termios) unix.Termios {
	m.Iflag |= unix.ICRNL | unix.BRKINT
	m.Iflag &^= unix.INLCR | unix.IGNCR | unix.ISTRIP
	m.Oflag |= unix.OPOST | unix.ONLCR
	m.Lflag |= unix.ICANON | unix.ECHO | unix.ECHOE | unix.ECHOK | unix.ISIG | unix.IEXTEN
	return m
}

// rawModes returns the modes as cfmakeraw(3) changes them.
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

// apply sets the modes if that is wanted and allowed. It keeps keys that were typed
// before. The lock is held.
func (t *Terminal) apply() error {
	// In the background, the modes are those of another job, neither to be changed nor to
	// be restored later.
	if t.wanted == nil || t.suspended || t.closed || !foreground(t.fd) {
		return nil
	}
	if t.before == nil {
		before, err := unix.IoctlGetTermios(t.fd, getModes)
		if err != nil {
			return modeError(err)
		}
		t.before = before
	}
	modes := t.wanted(*t.before)
	return modeError(unix.IoctlSetTermios(t.fd, setModes, &modes))
}

// Suspend restores the modes that Raw found, for a process that will stop or leave the terminal
// to another reader, and reads no keys: when it continues, raw mode comes back.
func (t *Terminal) Suspend() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspended = true
	return t.restore()
}

func (t *Terminal) isSuspended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.suspended
}

// Resume ends a Suspend as the signal SIGCONT does.
func (t *Terminal) Resume() { t.handle(true) }

// restore restores the modes that Raw found. It does nothing in the background, where
// another job has the terminal, and when called again. The lock is held.
func (t *Terminal) restore() error {
	before := t.before
	t.before = nil
	if before == nil || !foreground(t.fd) {
		return nil
	}
	if err := modeError(unix.IoctlSetTermios(t.fd, setModes, before)); !errors.Is(err, ErrGone) {
		return err
	}
	return nil
}

// modeError returns an error about modes for callers.
func modeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EIO):
		return ErrGone
	}
	return fmt.Errorf("tty: the modes of the terminal: %w", err)
}

// Sizes returns a channel with the size of the terminal after each change. It holds one: a
// size that was not received is replaced by the next. Close closes it.
func (t *Terminal) Sizes() <-chan executor.Size { return t.sizes }

// serve handles the signals until Close.
func (t *Terminal) serve() {
	defer close(t.sizes)
	for {
		select {
		case s := <-t.signals:
			t.handle(s == unix.SIGCONT)
		case <-t.quit:
			return
		}
	}
}

// handle handles a signal: it makes the terminal raw again after a stop, if that is wanted,
// and reports a new size. After a stop both signals come, in any order. The modes to
// restore at the end stay those of the beginning: a shell hands a continued job the modes
// in which the job was stopped.
func (t *Terminal) handle(continued bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if continued {
		t.suspended = false
		t.nudge()
	}
	_ = t.apply() // Read reports a terminal that is gone
	size := SizeOf(t.given)
	if t.suspended || size == t.last || size == (executor.Size{}) {
		return
	}
	t.last = size
	select {
	case <-t.sizes:
	default:
	}
	t.sizes <- size // only this function sends
}

// nudge makes the reader look at its state again. The lock is held.
func (t *Terminal) nudge() {
	if !t.closed {
		// The pipe does not block. A full one has the same meaning.
		_ = control(t.wake, func(fd uintptr) error { _, err := unix.Write(int(fd), []byte{0}); return err })
	}
}

// endOfFile is the character that [Terminal.Read] returns for the end of file of a
// terminal that is not in raw mode: it is a key like others.
const endOfFile = 4 // ASCII EOT, Control-D

// Read reads keys and blocks until there are some. It is [ErrGone] if the terminal is gone,
// and os.ErrClosed during and after Close. Keys typed after Close stay for the next reader
// of the terminal, and keys typed while another job is in the foreground are that job's.
func (t *Terminal) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !t.enter() {
		return 0, os.ErrClosed
	}
	defer t.reading.Done()
	keys, wake := descriptor(t.keys), descriptor(t.wakeRead)
	for listen := true; ; {
		ready, woken, gone, err := await(keys, wake, listen)
		switch {
		case err != nil:
			return 0, fmt.Errorf("tty: wait for keys: %w", err)
		case woken:
			var b [64]byte
			_, _ = t.wakeRead.Read(b[:])
			if t.isClosed() { // looked at after what woke it is gone: another wake may have come with it
				return 0, os.ErrClosed
			}
			listen = true
			continue
		case gone && !ready:
			return 0, ErrGone
		case t.isSuspended():
			listen = false // until it resumes: the keys are for what has the terminal meanwhile
			continue
		case !foreground(keys):
			// They are for another job. A shell that brings this one forward while it runs
			// sends no signal, so the next key tells.
			if err := awaitNext(keys, wake); err != nil {
				return 0, fmt.Errorf("tty: wait for the foreground: %w", err)
			}
			continue
		}
		n, err := unix.Read(keys, p)
		switch {
		case n > 0:
			t.comeForward()
			return n, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case err == nil && exists(keys):
			p[0] = endOfFile
			return 1, nil
		case !gone && errors.Is(err, unix.EIO) && !foreground(keys):
			// The job has no shell that could bring it to the foreground, so the kernel
			// refuses instead of stopping it.
			listen = false
		case err == nil, errors.Is(err, unix.EIO):
			return 0, ErrGone
		default:
			return 0, fmt.Errorf("tty: read keys: %w", err)
		}
	}
}

// comeForward makes the terminal raw if that had to wait for the foreground: a shell that
// brings a running job there sends no signal, so the first keys are the notice.
func (t *Terminal) comeForward() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		_ = t.apply()
	}
}

// exists reports whether the terminal behind fd has not been taken away.
func exists(fd int) bool {
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

// Close ends a Read that waits, restores the modes, and stops handling signals. It may be
// called more than once.
func (t *Terminal) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	err := t.restore()
	t.nudge()
	t.wanted, t.closed = nil, true
	t.mu.Unlock()
	signal.Stop(t.signals)
	close(t.quit)
	t.serving.Wait()
	if t.anew {
		t.free()
	} else {
		// The read can block: if another process took the key that had been there, it ends
		// with the next key, or with this process.
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
