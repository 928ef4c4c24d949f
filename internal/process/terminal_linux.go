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

// A terminalPump hears a terminal by its master end.
//
// A terminal that nobody has open answers with EIO, but a process of the tree may
// open it again by its name. So that counts as the end of the output only when the
// command has ended; until then the pump waits for the next event.
type terminalPump struct {
	master *os.File
	raw    syscall.RawConn
	output func(executor.Stream, []byte)

	buf  *[bufferSize]byte // borrowed while there is something to read
	base time.Time         // pulse counts from here
	pulse
	done chan struct{}

	hearing atomic.Bool // from before a read until what it brought was handed on

	mu        sync.Mutex
	ended     bool // the command has ended
	finishing bool // nothing more is waited for
}

func newTerminalPump(cfg *Config, master *os.File) (*terminalPump, error) {
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("process: terminal: %w", err)
	}
	return &terminalPump{
		master: master, raw: raw, output: cfg.Output,
		base: time.Now(), done: make(chan struct{}),
	}, nil
}

func (p *terminalPump) start()                 { go p.run() }
func (p *terminalPump) eof() <-chan struct{}   { return p.done }
func (p *terminalPump) lastByte() time.Time    { return p.at(p.base) }
func (p *terminalPump) heard() <-chan struct{} { return p.wait() }
func (p *terminalPump) abandon()               { _ = p.master.Close() }

// allHeard looks into the terminal first: what is not there any more was taken out by a
// read that is seen to go on, or has handed it on.
func (p *terminalPump) allHeard() bool {
	empty := false
	err := p.raw.Control(func(fd uintptr) {
		// A poll also hands on what is on its way; a count leaves that out.
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		empty = err == nil && fds[0].Revents&unix.POLLIN == 0
	})
	return err == nil && empty && !p.hearing.Load()
}

func (p *terminalPump) commandEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.kickLocked()
}

func (p *terminalPump) finish() {
	p.mu.Lock()
	p.finishing = true
	p.kickLocked()
	p.mu.Unlock()
	<-p.done
}

// kickLocked ends the wait of run.
func (p *terminalPump) kickLocked() { _ = p.master.SetReadDeadline(time.Unix(1, 0)) }

// kicked is what run does after a kick. It reports whether nothing more is waited for.
func (p *terminalPump) kicked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.finishing {
		_ = p.master.SetReadDeadline(time.Time{})
	}
	return p.finishing
}

func (p *terminalPump) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *terminalPump) run() {
	defer close(p.done)
	for {
		var hungUp bool
		err := p.raw.Read(func(fd uintptr) bool {
			var n int
			n, hungUp = p.read(int(fd))
			return n > 0 || hungUp && p.isOver()
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if p.kicked() {
				p.sweep()
				return
			}
		case err != nil || hungUp && p.isOver():
			return
		}
	}
}

// read reads what is there, as far as it fits, and hands it on. It reports how much
// that was, and whether nobody has the terminal open.
func (p *terminalPump) read(fd int) (n int, hungUp bool) {
	p.hearing.Store(true)
	defer p.hearing.Store(false)
	p.buf = buffers.Get().(*[bufferSize]byte)
	defer func() {
		buffers.Put(p.buf)
		p.buf = nil
	}()
	// A terminal gives at most a page at a time.
	for n < len(p.buf) {
		m, err := unix.Read(fd, p.buf[n:])
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
		p.beat(p.base)
		p.output(executor.Stdout, p.buf[:n])
	}
	return n, hungUp
}

// sweep reads what is there now. Somebody outside the tree may have the terminal open
// and go on writing, so no more is read than a terminal can hold.
func (p *terminalPump) sweep() {
	const most = 1 << 20
	_ = p.raw.Control(func(fd uintptr) {
		for sum := 0; sum < most; {
			n, hungUp := p.read(int(fd))
			if sum += n; n == 0 || hungUp {
				return
			}
		}
	})
}

// A terminal is the master end, for all but reading.
type terminal struct {
	file *os.File
	raw  syscall.RawConn

	mu   sync.Mutex
	line int // bytes of input since the last end of a line
}

func newTerminal(master *os.File) (*terminal, error) {
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("process: terminal: %w", err)
	}
	return &terminal{file: master, raw: raw}, nil
}

// maxLine is how many bytes of one line a terminal keeps for a program that reads
// whole lines (N_TTY_BUF_SIZE of the kernel's n_tty, less one); the rest would be
// thrown away.
const maxLine = 4095

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
	n, err := t.file.Write(b)
	t.mu.Lock()
	if i := bytes.LastIndexAny(b[:n], "\n\r\x04"); i >= 0 {
		t.line = n - i - 1
	} else {
		t.line += n
	}
	t.mu.Unlock()
	return n, err
}

// endOfFile is the usual VEOF character, control-D.
const endOfFile = 4

// end tells a program that reads lines that there is no more input. In the middle of
// a line the character only ends that, so it takes two.
func (t *terminal) end() error {
	c, whole := byte(endOfFile), true
	if modes, err := t.modes(); err == nil {
		if v := modes.Cc[unix.VEOF]; v != 0 {
			c = v
		}
		whole = modes.Lflag&unix.ICANON == 0
	}
	t.mu.Lock()
	again := !whole && t.line > 0
	t.line = 0
	t.mu.Unlock()
	keys := []byte{c}
	if again {
		keys = append(keys, c)
	}
	if _, err := t.file.Write(keys); err != nil {
		return fmt.Errorf("process: cannot end the input of its terminal: %w", err)
	}
	return nil
}

func (t *terminal) control(what string, f func(fd int) error) error {
	var err error
	if cerr := t.raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("process: cannot %s of its terminal: %w", what, err)
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

// resize changes the size and tells the foreground process group (SIGWINCH).
func (t *terminal) resize(cols, rows uint16) error {
	return t.control("change the size", func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// signal sends a signal to the foreground process group. The kernel does that for the
// three that keys stand for; it reports whether this is one.
func (t *terminal) signal(sig syscall.Signal) (bool, error) {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP:
	default:
		return false, nil
	}
	return true, t.control("signal the foreground", func(fd int) error {
		return unix.IoctlSetInt(fd, unix.TIOCSIG, int(sig))
	})
}
