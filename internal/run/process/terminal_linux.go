// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// A terminal is the master end of the terminal of a command, and its pump.
//
// The read of a terminal that no process has open fails with EIO, but a process of the
// tree may open it again by its name. So EIO is the end of the output only when the
// command has ended; until then the pump waits for the next event.
type terminal struct {
	file   *os.File
	raw    syscall.RawConn
	output func(executor.Stream, []byte)
	typed  func([]byte, executor.Echo) // nil for nothing
	pulse
	delivery
	done      chan struct{}
	ended     atomic.Bool // the command has ended
	finishing atomic.Bool // the pump waits for nothing more

	mu   sync.Mutex
	line int // bytes of input since the last end of a line
}

func newTerminal(cfg *Config, master *os.File) (*terminal, error) {
	if master == nil {
		return nil, ErrNoTerminal
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("cannot use the terminal of the process: %w", err)
	}
	return &terminal{file: master, raw: raw, output: cfg.Output, typed: cfg.Typed,
		pulse: pulse{base: time.Now()}, done: make(chan struct{})}, nil
}

func (t *terminal) start()                      { go t.run() }
func (t *terminal) eof() <-chan struct{}        { return t.done }
func (t *terminal) closeStream(executor.Stream) {} // of which a program would notice nothing
func (t *terminal) close()                      { _ = t.file.Close() }

// delivered looks into the terminal first: what has left it was taken by a read that is
// in progress, or was delivered.
func (t *terminal) delivered() bool {
	empty := false
	err := t.raw.Control(func(fd uintptr) {
		// Unlike a count of bytes, a poll includes those that are on their way.
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		empty = err == nil && fds[0].Revents&unix.POLLIN == 0
	})
	return err == nil && empty && !t.under.Load()
}

func (t *terminal) commandEnded() {
	t.ended.Store(true)
	t.interrupt()
}

func (t *terminal) finish() {
	t.finishing.Store(true)
	t.interrupt()
	<-t.done
}

// interrupt ends the wait of run, which looks at ended and finishing then.
func (t *terminal) interrupt() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) }

func (t *terminal) run() {
	defer close(t.done)
	for {
		var hungUp bool
		err := t.raw.Read(func(fd uintptr) bool {
			var n int
			n, hungUp = t.read(int(fd))
			return n > 0 || hungUp && t.ended.Load()
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = t.file.SetReadDeadline(time.Time{}) // before the look, so that no interrupt is lost
			if t.finishing.Load() {
				t.sweep()
				return
			}
		case err != nil || hungUp && t.ended.Load():
			return
		}
	}
}

// read delivers what the terminal holds, as far as the buffer goes. It reports how much
// that was, and whether no process has the terminal open.
func (t *terminal) read(fd int) (n int, hungUp bool) {
	t.begin()
	defer t.over()
	buf := buffer()
	defer buffers.Put(buf)
	for n < len(buf) { // a read returns a page at most
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			break
		}
		if err != nil || m == 0 {
			hungUp = true
			break
		}
		n += m
	}
	if n > 0 {
		t.beat()
		t.output(executor.Stdout, buf[:n])
	}
	return n, hungUp
}

// sweep reads what the terminal holds now. A process outside of the tree may have it
// open and go on writing, so there is a bound.
func (t *terminal) sweep() {
	const bound = 1 << 20
	_ = t.raw.Control(func(fd uintptr) {
		for sum := 0; sum < bound; {
			n, hungUp := t.read(int(fd))
			if sum += n; n == 0 || hungUp {
				return
			}
		}
	})
}

// maxLine is how many bytes of one line a terminal keeps for a program that reads
// whole lines (N_TTY_BUF_SIZE of the kernel's n_tty, less one). It discards the rest.
const maxLine = 4095

// endOfFile is the usual VEOF character, control-D.
const endOfFile = 4

// Write writes input. It blocks while the terminal is full.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	line := t.line
	longest := 0
	for _, c := range b {
		if c == '\n' || c == '\r' || c == endOfFile {
			line = 0
			continue
		}
		line++
		longest = max(longest, line)
	}
	t.mu.Unlock()
	if longest > maxLine {
		if modes, err := t.modes(); err == nil && modes.Lflag&unix.ICANON != 0 {
			return 0, ErrLineTooLong
		}
	}
	var before executor.Echo
	if t.typed != nil {
		before = t.echo()
	}
	n, err := take(t.file, b)
	if t.typed != nil && n > 0 {
		t.typed(b[:n], min(before, t.echo())) // it may have changed meanwhile: then less is shown
	}
	t.mu.Lock()
	if i := bytes.LastIndexAny(b[:n], "\n\r\x04"); i >= 0 {
		t.line = n - i - 1
	} else {
		t.line += n
	}
	t.mu.Unlock()
	return n, err
}

// endInput types the end-of-file character. In the middle of a line it only ends that
// line, so it takes two.
func (t *terminal) endInput() error {
	t.mu.Lock()
	inLine := t.line > 0
	t.line = 0
	t.mu.Unlock()
	keys := []byte{endOfFile}
	if modes, err := t.modes(); err == nil {
		if c := modes.Cc[unix.VEOF]; c != 0 {
			keys[0] = c
		}
		if inLine && modes.Lflag&unix.ICANON != 0 {
			keys = append(keys, keys[0])
		}
	}
	if _, err := t.file.Write(keys); err != nil {
		return fmt.Errorf("cannot end the input of the terminal: %w", err)
	}
	return nil
}

// control calls f with the terminal's descriptor.
func (t *terminal) control(what string, f func(fd int) error) error {
	var err error
	if cerr := t.raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("cannot %s of the terminal: %w", what, err)
	}
	return nil
}

func (t *terminal) modes() (m *unix.Termios, err error) {
	err = t.control("read the modes", func(fd int) (err error) {
		m, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return m, err
}

// echo says whether what is typed now is shown; where that is not known, it is not.
func (t *terminal) echo() executor.Echo {
	modes, err := t.modes()
	switch {
	case err != nil:
		return executor.EchoOff
	case modes.Lflag&unix.ECHO != 0:
		return executor.EchoOn
	case modes.Lflag&unix.ICANON == 0:
		return executor.EchoKeys
	}
	return executor.EchoOff
}

// resize changes the size, which signals the foreground process group (SIGWINCH).
func (t *terminal) resize(s executor.Size) error {
	return t.control("change the size", func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	})
}

// signal signals the foreground process group. The kernel does that for the signals of
// keys only; signal reports whether this is one.
func (t *terminal) signal(sig syscall.Signal) (bool, error) {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP:
	default:
		return false, nil
	}
	return true, t.control("signal the foreground process group", func(fd int) error {
		return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig))
	})
}
