// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
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

// ErrLost says that the reaper ended without reporting how the command ended, as it
// does when it was killed.
var ErrLost = errors.New("launch: the command's end was not reported")

// Process is a started command together with its reaper. Its methods may be
// called from several goroutines; Close ends it.
type Process struct {
	pid     int // the reaper, as this process sees it
	command int // the command, as the reaper sees it
	ownPID  bool
	pidfd   int
	file    *os.File // the pidfd, in the runtime's poller
	status  *os.File // records of the reaper
	owner   *Launcher

	// OnStop, if not nil, is called when the command itself was stopped by a signal, while
	// another goroutine is in Wait. It must be set before Wait and must not block.
	OnStop func()

	reading chan struct{} // holds a token while a goroutine reads records
	known   chan struct{} // closed when the command's end is known, or lost
	// The next four are the reader's.
	result syscall.WaitStatus
	ended  bool // the command's record was read
	empty  bool // the reaper reported that no process is left
	lost   bool // the reaper ended without that

	mu     sync.Mutex
	gone   bool // collected
	closed bool
	used   Usage
	then   []func() // called when the reaper has been collected
}

// PID is the process id of the reaper, the ancestor of everything that the
// command starts, as the caller sees it.
func (p *Process) PID() int { return p.pid }

// CommandPID is the process id of the command as its reaper sees it. Where the
// script makes no process namespace that is also how the caller sees it.
func (p *Process) CommandPID() int { return p.command }

// next reads one record of the reaper's. The caller holds the token.
func (p *Process) next() {
	var record [2]uint32 // process id and status; the reaper writes a record whole
	_, err := io.ReadFull(p.status, unsafe.Slice((*byte)(unsafe.Pointer(&record)), unsafe.Sizeof(record)))
	before := p.isKnown()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return
	case err != nil:
		p.lost = true
	case record[0] == 0:
		p.empty = true
		p.readUsage()
	case syscall.WaitStatus(record[1]).Stopped():
		if p.OnStop != nil {
			p.OnStop()
		}
		return
	case !before:
		p.result, p.ended = syscall.WaitStatus(record[1]), true
	}
	if !before {
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

// Wait blocks until the command itself has ended and returns its status. Processes
// that the command started may still run. It returns ErrLost when the tree was
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

// Empty reports whether no process of the tree is left. After the command's end it
// waits up to d for the reaper to report so, which takes it a few microseconds
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
	if !p.empty && !p.lost && p.status.SetReadDeadline(time.Now().Add(d)) == nil {
		p.next()
		if p.status.SetReadDeadline(time.Time{}) != nil {
			p.lost = true
		}
	}
	return p.empty
}

// WaitAll blocks until no process of the tree is left but, perhaps, the reaper on
// its way out: it has reported that it has no more children. Close collects it.
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
	if err == nil {
		err = raw.Read(func(uintptr) bool { return p.tryCollect() })
	}
	if err != nil {
		return fmt.Errorf("launch: wait: %w", err)
	}
	return nil
}

// tryCollect reports whether the reaper has been collected.
func (p *Process) tryCollect() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var info unix.Siginfo
	for !p.gone {
		err := unix.Waitid(unix.P_PIDFD, p.pidfd, &info, unix.WEXITED|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		p.gone = err != nil || info.Signo != 0 // ECHILD: other code of this program collected it
		break
	}
	return p.gone
}

// collectNow waits for a process that is ending, and closes its handle.
func collectNow(pidfd int) {
	for unix.Waitid(unix.P_PIDFD, pidfd, nil, unix.WEXITED, nil) == unix.EINTR {
	}
	unix.Close(pidfd)
}

// Target is the addressee of a signal.
type Target uint8

// The targets of Signal.
const (
	ToGroup Target = iota // the command's process group
	ToTree                // everything below the reaper; ToGroup where there is no own process namespace
	ToCommand
)

// carrier is the signal that brings the reaper a request, SIGRTMAX. A real-time
// signal is queued as often as it is sent, and the signal that the request is
// about may be one that no process can wait for, such as SIGKILL.
const carrier = syscall.Signal(64)

// Signal asks the reaper to send sig. It is the reaper that sends it, inside,
// so a process id that was used again outside cannot be hit. It returns
// os.ErrProcessDone when the tree has ended, and EINVAL for a number that is no
// signal.
func (p *Process) Signal(sig syscall.Signal, to Target) error {
	if sig <= 0 || sig > carrier {
		return fmt.Errorf("launch: signal %d: %w", int(sig), unix.EINVAL)
	}
	target := -p.command
	switch {
	case to == ToCommand:
		target = p.command
	case to == ToTree && p.ownPID:
		target = -1
	}
	// siginfo_t: signo, errno, code, padding, pid, uid, value. The value holds
	// two words: the target, and the signal.
	const queued = -1 // SI_QUEUE
	var info unix.Siginfo
	words := (*[8]int32)(unsafe.Pointer(&info))
	*words = [8]int32{int32(carrier), 0, queued, 0, int32(os.Getpid()), int32(os.Getuid()),
		int32(target), int32(sig)}
	return p.send(carrier, &info)
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

// KillTree kills everything below the reaper, which then reports how the command
// ended and what the tree used. It waits for d at most; what is not gone by then,
// the reaper included, is killed as by Kill. Another goroutine must be in Wait, or the
// command must have ended. Without an own process namespace it is Kill.
func (p *Process) KillTree(d time.Duration) error {
	if p.ownPID && p.Signal(unix.SIGKILL, ToTree) == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-p.known:
		case <-timer.C:
		}
		if p.Empty(d) {
			return nil
		}
	}
	return p.Kill()
}

func (p *Process) send(sig syscall.Signal, info *unix.Siginfo) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := error(unix.ESRCH)
	if !p.gone && !p.closed {
		err = unix.PidfdSendSignal(p.pidfd, sig, info, 0)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		return os.ErrProcessDone
	}
	return fmt.Errorf("launch: signal: %w", err)
}

// WhileThere calls f while the reaper cannot be collected, so that no other process
// gets its number, and reports whether it did: not when the reaper has been collected.
// f must use none of the methods that signal, wait or close, which it would wait for.
func (p *Process) WhileThere(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		f()
	}
	return !p.gone
}

// OnCollected has f called in the background when the reaper has been collected,
// which is after Close; Launcher.Close waits for it. It must be called before
// Close.
func (p *Process) OnCollected(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.then = append(p.then, f)
}

// Close releases the process. The tree must have ended (WaitAll). The reaper,
// which may still be taking its namespaces down, is collected in the
// background; Launcher.Close waits for that, and after it Close itself does.
func (p *Process) Close() error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	then := p.then
	p.then = nil
	p.mu.Unlock()
	if closed {
		return nil
	}
	p.owner.background(func() {
		_ = p.collect() // no caller is left, and nothing is lost
		p.file.Close()
		for _, f := range then {
			f()
		}
	})
	return p.status.Close()
}

// Usage is what the processes below a reaper used, those included that their own
// parents did not wait for, when all have ended (getrusage(2)). The zero Usage means
// that nothing is known, as when the reaper was killed: the kernel then drops
// the sums of what was below it.
type Usage struct {
	Known        bool
	User, System time.Duration // on processors
	// Peak is the largest resident memory that one process had, in bytes. A process
	// that began with the memory of another, as one that vfork(2) made, reports the
	// other's peak, so up to what the launching process ever had it says nothing.
	Peak int64
	// Read and Written are bytes that had to come from and go to storage.
	Read, Written int64
}

// Usage returns what the tree used. It is known after WaitAll.
func (p *Process) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// readUsage reads what follows the reaper's empty record. It came in one write, so
// nothing is waited for.
func (p *Process) readUsage() {
	r := new(unix.Rusage)
	err := p.status.SetReadDeadline(time.Time{})
	if err == nil {
		_, err = io.ReadFull(p.status, unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r)))
	}
	if err != nil {
		return
	}
	const block = 512 // for every file system
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = Usage{
		Known: true, User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()),
		Peak: r.Maxrss << 10, Read: r.Inblock * block, Written: r.Oublock * block,
	}
}
