// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Process is a started command together with its reaper. Its methods may be
// called from several goroutines; Close ends it.
type Process struct {
	pid     int // the reaper, as this process sees it
	command int // the command, as the reaper sees it
	ownPID  bool
	pidfd   int
	file    *os.File // the pidfd, in the runtime's poller
	status  *os.File // records of the reaper
	owner   *Launcher

	reading chan struct{} // holds a token while somebody reads records
	known   chan struct{} // closed when the command's end is known, or lost
	// The rest belongs to the reader.
	result syscall.WaitStatus
	ended  bool     // the command's record was read
	empty  bool     // the reaper said that nobody is left
	lost   bool     // the reaper ended without saying so
	spent  Usage    // written with empty; guarded by mu
	then   []func() // called when the reaper has been collected

	mu     sync.Mutex
	gone   bool // collected
	closed bool
}

// watch puts the pidfd into the runtime's poller.
func (p *Process) watch() error {
	if err := unix.SetNonblock(p.pidfd, true); err != nil {
		return fmt.Errorf("launch: pidfd: %w", err)
	}
	p.file = os.NewFile(uintptr(p.pidfd), "pidfd")
	return nil
}

// PID is the process id of the reaper, the ancestor of everything that the
// command starts, as the caller sees it.
func (p *Process) PID() int { return p.pid }

// ErrLost says that the reaper ended without a word about the command, as it
// does when it was killed.
var ErrLost = errors.New("launch: the command's end was not reported")

// nextLocked reads one record of the reaper's. The caller holds the token.
func (p *Process) next() {
	var record [8]byte
	_, err := io.ReadFull(p.status, record[:])
	le := binary.NativeEndian
	before := p.ended || p.lost || p.empty
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The reaper writes a record whole, so none is cut in two.
	case err != nil:
		p.lost = true
	case le.Uint32(record[:]) == 0:
		p.empty = true
		p.readSpent()
	case !before:
		p.result, p.ended = syscall.WaitStatus(le.Uint32(record[4:])), true
	}
	if !before && (p.ended || p.lost || p.empty) {
		close(p.known)
	}
}

// isKnown reports whether the command's end is known, or lost.
func (p *Process) isKnown() bool {
	select {
	case <-p.known:
		return true
	default:
		return false
	}
}

// Wait blocks until the command itself has ended and returns its status. What
// the command left behind may still run. It returns ErrLost when the tree was
// killed before the command ended by itself.
func (p *Process) Wait() (syscall.WaitStatus, error) {
	for !p.isKnown() {
		select {
		case <-p.known: // WaitAll has read it
		case p.reading <- struct{}{}:
			if !p.isKnown() {
				p.next()
			}
			<-p.reading
		}
	}
	if !p.ended { // does not change any more
		return 0, ErrLost
	}
	return p.result, nil
}

// Empty reports whether nothing of the tree is left. After the command's end it
// waits up to d for the reaper to say so, which takes it a few microseconds
// when it is so.
func (p *Process) Empty(d time.Duration) bool {
	if !p.isKnown() {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case p.reading <- struct{}{}:
	case <-timer.C: // WaitAll reads
		return false
	}
	defer func() { <-p.reading }()
	if p.empty || p.lost {
		return p.empty
	}
	if err := p.status.SetReadDeadline(time.Now().Add(d)); err != nil {
		return false
	}
	p.next()
	if err := p.status.SetReadDeadline(time.Time{}); err != nil {
		p.lost = true
	}
	return p.empty
}

// WaitAll blocks until nothing of the tree is left but, perhaps, the reaper on
// its way out: it has said that it has no more children. Close collects it.
func (p *Process) WaitAll() error {
	p.reading <- struct{}{}
	for !p.empty && !p.lost {
		p.next()
	}
	empty := p.empty
	<-p.reading
	if empty {
		return nil
	}
	return p.collect()
}

// collect waits for the reaper itself. The kernel lets it end only when
// everything in its process namespace has ended.
func (p *Process) collect() error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("launch: wait: %w", err)
	}
	if err := raw.Read(func(uintptr) bool { return p.tryReap() }); err != nil {
		return fmt.Errorf("launch: wait: %w", err)
	}
	return nil
}

// tryReap reports whether the reaper has been collected.
func (p *Process) tryReap() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return true
	}
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PIDFD, p.pidfd, &info, unix.WEXITED|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		// ECHILD: somebody else in this program collected it.
		p.gone = err != nil || info.Signo != 0
		return p.gone
	}
}

// reap collects a process that is known to be ending.
func (p *Process) reap() {
	for {
		err := unix.Waitid(unix.P_PIDFD, p.pidfd, nil, unix.WEXITED, nil)
		if err != unix.EINTR {
			p.gone = true
			return
		}
	}
}

// A Target says whom a signal is for.
type Target uint8

// Whom Signal can reach.
const (
	ToGroup Target = iota // the command's process group
	ToTree                // everything below the reaper; ToGroup where there is no own process namespace
	ToCommand
)

// carrier is the signal that brings the reaper a request, SIGRTMAX. A real-time
// signal is queued as often as it is sent, and the signal that the request is
// about may be one that nobody can wait for, such as SIGKILL.
const carrier = syscall.Signal(64)

// Signal asks the reaper to send sig. It is the reaper that sends it, inside,
// so a process id that was used again outside cannot be hit. It returns
// os.ErrProcessDone when the tree has ended, and EINVAL for a number that is no
// signal.
func (p *Process) Signal(sig syscall.Signal, to Target) error {
	if sig <= 0 || sig > carrier {
		return fmt.Errorf("launch: signal %d: %w", int(sig), unix.EINVAL)
	}
	whom := int32(-p.command)
	switch {
	case to == ToCommand:
		whom = int32(p.command)
	case to == ToTree && p.ownPID:
		whom = -1
	}
	// siginfo_t: signo, errno, code, padding, pid, uid, value. The value holds
	// two words: whom, and the signal.
	var info [128]byte
	le := binary.NativeEndian
	le.PutUint32(info[0:], uint32(carrier))
	var queue int32 = -1 // SI_QUEUE
	le.PutUint32(info[8:], uint32(queue))
	le.PutUint32(info[16:], uint32(os.Getpid()))
	le.PutUint32(info[20:], uint32(os.Getuid()))
	le.PutUint32(info[24:], uint32(whom))
	le.PutUint32(info[28:], uint32(sig))
	return p.send(carrier, (*unix.Siginfo)(unsafe.Pointer(&info)))
}

// Kill ends the whole tree, and the reaper with it, where there is an own
// process namespace. Elsewhere it kills the command's process group; the caller
// finds the rest.
func (p *Process) Kill() error {
	if !p.ownPID {
		return p.Signal(unix.SIGKILL, ToGroup)
	}
	return p.send(unix.SIGKILL, nil)
}

func (p *Process) send(sig syscall.Signal, info *unix.Siginfo) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.closed {
		return os.ErrProcessDone
	}
	err := unix.PidfdSendSignal(p.pidfd, sig, info, 0)
	if err == unix.ESRCH {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("launch: signal: %w", err)
	}
	return nil
}

// WhileThere calls f while the reaper cannot be collected, so that its number is
// nobody else's, and reports whether it did: not when the reaper has been collected.
// f must use none of the methods that signal, wait or close, which it would wait for.
func (p *Process) WhileThere(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	f()
	return true
}

// Close releases the process. The tree must have ended (WaitAll). The reaper,
// which may still be taking its namespaces down, is collected in the
// background; Launcher.Close waits for that.
func (p *Process) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	err := p.status.Close()
	if p.tryReap() { // where there are no namespaces to take down, it is usually over
		err = errors.Join(err, p.file.Close())
		p.owner.background(p.collected)
		return err
	}
	p.owner.background(func() {
		_ = p.collect() // there is nobody to tell, and nothing to lose
		p.file.Close()
		p.collected()
	})
	return err
}
