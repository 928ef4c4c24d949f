// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminalPatience is how long [Terminal.Expect] and [Terminal.Wait] wait for what
// a program does within a moment: long enough for a machine that builds at the
// same time, short enough to end before all tests do.
const terminalPatience = 2 * time.Minute

// Terminal is a pseudo-terminal with a program on it, for tests that play the
// person in front of it. The program leads a session of its own and has the
// terminal as its controlling one. The zero Terminal is of no use; see
// [StartTerminal]. One goroutine uses it at a time.
type Terminal struct {
	t      testing.TB
	cmd    *exec.Cmd
	master *os.File
	before unix.Termios

	cols, rows uint16 // at the beginning

	more  chan struct{} // something was seen; holds one
	over  chan struct{} // closed when nothing more will be seen
	ended chan struct{} // closed when the program has ended
	err   error         // of waiting for the program; set before ended is closed

	mu    sync.Mutex
	seen  []byte
	next  int // where Expect goes on in seen
	begin time.Time
	parts []part
}

// A part is where something ends that was seen at once.
type part struct {
	end int // in seen
	at  time.Duration
}

// OpenTerminal makes a pseudo-terminal of that size in characters and returns both
// of its ends, which end with t. The master is read without holding a thread.
func OpenTerminal(t testing.TB, cols, rows uint16) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("testenv: no pseudo-terminal: %v", err)
	}
	master = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("testenv: unlock the terminal: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		t.Fatalf("testenv: set the size of the terminal: %v", err)
	}
	// By descriptor and not by name: a name means another terminal where another
	// file system is mounted at /dev/pts.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatalf("testenv: open the terminal: %v", errno)
	}
	slave = os.NewFile(peer, "terminal")
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// StartTerminal starts cmd on a new terminal of that size and returns the terminal.
// The standard streams that cmd does not have yet are the terminal. What is left of
// both is ended with t.
func StartTerminal(t testing.TB, cmd *exec.Cmd, cols, rows uint16) *Terminal {
	t.Helper()
	x := &Terminal{t: t, cmd: cmd, more: make(chan struct{}, 1), over: make(chan struct{}),
		ended: make(chan struct{}), begin: time.Now(), cols: cols, rows: rows}
	var slave *os.File
	x.master, slave = OpenTerminal(t, cols, rows)
	x.before = x.Modes()
	control := -1
	for i, have := range []bool{cmd.Stdin != nil, cmd.Stdout != nil, cmd.Stderr != nil} {
		if have {
			continue
		}
		switch i {
		case 0:
			cmd.Stdin = slave
		case 1:
			cmd.Stdout = slave
		default:
			cmd.Stderr = slave
		}
		control = i
	}
	if control < 0 {
		t.Fatal("testenv: all standard streams go elsewhere, so the program would not see its terminal")
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, control
	if err := cmd.Start(); err != nil {
		t.Fatalf("testenv: start on a terminal: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go x.read()
	go func() {
		defer close(x.ended)
		x.err = cmd.Wait()
		// Until here, so that no output is lost between two programs on the terminal.
		_ = slave.Close()
	}()
	return x
}

// read keeps the output of the master until the other end is closed.
func (x *Terminal) read() {
	defer close(x.over)
	buf := make([]byte, 32<<10)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.seen = append(x.seen, buf[:n]...)
		x.parts = append(x.parts, part{len(x.seen), time.Since(x.begin)})
		x.mu.Unlock()
		if n > 0 {
			select {
			case x.more <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// Send types text. A person's Enter is "\r".
func (x *Terminal) Send(text string) {
	x.t.Helper()
	if err := x.master.SetWriteDeadline(time.Now().Add(terminalPatience)); err != nil {
		x.t.Fatalf("testenv: %v", err)
	}
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatalf("testenv: type %q: %v; seen so far:\n%q", text, err, x.Transcript())
	}
}

// Expect waits until the output after the last match has a match of pattern, and
// returns the match and its groups. It fails the test when the output ends, or half a
// minute passes, without one.
func (x *Terminal) Expect(pattern string) []string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	patience := time.NewTimer(terminalPatience)
	defer patience.Stop()
	ended := false
	for {
		if found := x.match(re); found != nil {
			return found
		}
		if ended {
			x.t.Fatalf("testenv: the output ended without %q; seen:\n%q", pattern, x.Transcript())
		}
		select {
		case <-x.more:
		case <-x.over:
			ended = true
		case <-patience.C:
			x.t.Fatalf("testenv: no %q within %v; seen:\n%q", pattern, terminalPatience, x.Transcript())
		}
	}
}

// match looks once.
func (x *Terminal) match(re *regexp.Regexp) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := re.FindSubmatchIndex(x.seen[x.next:])
	if at == nil {
		return nil
	}
	var found []string
	for group := range slices.Chunk(at, 2) {
		if group[0] < 0 {
			found = append(found, "")
			continue
		}
		found = append(found, string(x.seen[x.next+group[0]:x.next+group[1]]))
	}
	x.next += at[1]
	return found
}

// Asciicast returns what was seen as a recording in the form asciicast v2
// (https://docs.asciinema.org/manual/asciicast/v2/).
func (x *Terminal) Asciicast() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := new(bytes.Buffer)
	fmt.Fprintf(out, `{"version": 2, "width": %d, "height": %d}`+"\n", x.cols, x.rows)
	begin := 0
	for _, p := range x.parts {
		text, err := json.Marshal(string(x.seen[begin:p.end]))
		if err != nil {
			x.t.Fatal(err) // a string has a form
		}
		fmt.Fprintf(out, "[%.6f, \"o\", %s]\n", p.at.Seconds(), text)
		begin = p.end
	}
	return out.Bytes()
}

// Resize changes the size of the terminal, in characters, and with it tells the
// programs on it.
func (x *Terminal) Resize(cols, rows uint16) {
	x.t.Helper()
	x.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// ModesBefore returns the modes that the program found.
func (x *Terminal) ModesBefore() unix.Termios { return x.before }

// Modes returns the modes of the terminal as they are now, also after the end of the
// program.
func (x *Terminal) Modes() unix.Termios {
	x.t.Helper()
	var modes unix.Termios
	x.control(func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			modes = *got
		}
		return err
	})
	return modes
}

// Foreground returns the number of the process group in the foreground.
func (x *Terminal) Foreground() int {
	x.t.Helper()
	var group int
	x.control(func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return group
}

// SetModes gives the terminal modes, as a shell does between two programs.
func (x *Terminal) SetModes(modes unix.Termios) {
	x.t.Helper()
	x.control(func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETS, &modes) })
}

// control makes a request about the terminal. The master answers for both ends.
func (x *Terminal) control(request func(fd int) error) {
	x.t.Helper()
	raw, err := x.master.SyscallConn()
	if err == nil {
		var answer error
		err = errors.Join(raw.Control(func(fd uintptr) { answer = request(int(fd)) }), answer)
	}
	if err != nil {
		x.t.Fatalf("testenv: the terminal: %v", err)
	}
}

// PID returns the process number of the program.
func (x *Terminal) PID() int { return x.cmd.Process.Pid }

// Signal sends a signal to the program alone.
func (x *Terminal) Signal(sig os.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(sig); err != nil {
		x.t.Fatalf("testenv: signal the program: %v", err)
	}
}

// HangUp takes the terminal away, as a window that is closed does. The programs on
// it get SIGHUP; only Wait and Transcript may be called afterwards.
func (x *Terminal) HangUp() { _ = x.master.Close() }

// Wait waits for the end of the program and of all output, and returns the exit code,
// -1 when a signal ended it. A process that still has the terminal open after half a
// minute fails the test.
func (x *Terminal) Wait() int {
	x.t.Helper()
	patience := time.NewTimer(terminalPatience)
	defer patience.Stop()
	select {
	case <-x.ended:
		if failed := new(exec.ExitError); x.err != nil && !errors.As(x.err, &failed) {
			x.t.Fatalf("testenv: wait for the program: %v", x.err)
		}
	case <-patience.C:
		x.t.Fatalf("testenv: the program has not ended within %v; seen:\n%q", terminalPatience,
			x.Transcript())
	}
	select {
	case <-x.over:
	case <-patience.C:
		x.t.Fatalf("testenv: the program has ended, and another process still has its terminal open; output:\n%q", x.Transcript())
	}
	return Code(x.cmd.ProcessState)
}

// Transcript returns everything that was seen so far: what a person would have seen,
// byte for byte.
func (x *Terminal) Transcript() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.seen)
}
