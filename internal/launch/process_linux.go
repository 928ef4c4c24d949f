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
	status  *os.File

	mu   sync.Mutex
	gone bool // reaped
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

// Wait blocks until the command itself has ended and returns its status. What
// the command left behind may still run. It returns ErrLost when the tree was
// killed before the command ended by itself. It must be called once.
func (p *Process) Wait() (syscall.WaitStatus, error) {
	var record [8]byte
	_, err := io.ReadFull(p.status, record[:])
	if err != nil {
		return 0, ErrLost
	}
	return syscall.WaitStatus(binary.NativeEndian.Uint32(record[4:])), nil
}

// WaitAll blocks until nothing of the tree is left and reaps it.
func (p *Process) WaitAll() error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("launch: wait: %w", err)
	}
	err = raw.Read(func(uintptr) bool { return p.tryReap() })
	if err != nil {
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

// Signal asks the reaper to send sig. It is the reaper that sends it, inside,
// so a process id that was used again outside cannot be hit. It does nothing,
// and returns os.ErrProcessDone, when the tree has ended.
func (p *Process) Signal(sig syscall.Signal, to Target) error {
	whom := int32(-p.command)
	switch {
	case to == ToCommand:
		whom = int32(p.command)
	case to == ToTree && p.ownPID:
		whom = -1
	}
	// siginfo_t: signo, errno, code, padding, pid, uid, value.
	var info [128]byte
	le := binary.NativeEndian
	le.PutUint32(info[0:], uint32(sig))
	var queue int32 = -1 // SI_QUEUE
	le.PutUint32(info[8:], uint32(queue))
	le.PutUint32(info[16:], uint32(os.Getpid()))
	le.PutUint32(info[20:], uint32(os.Getuid()))
	le.PutUint32(info[24:], uint32(whom))
	return p.send(sig, (*unix.Siginfo)(unsafe.Pointer(&info)))
}

// Kill ends the whole tree where there is an own process namespace. Elsewhere
// it kills the command's process group; [Process.Descendants] finds the rest.
func (p *Process) Kill() error {
	if !p.ownPID {
		return p.Signal(unix.SIGKILL, ToGroup)
	}
	return p.send(unix.SIGKILL, nil)
}

func (p *Process) send(sig syscall.Signal, info *unix.Siginfo) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
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

// Close releases the descriptors. The tree must have ended, or it is killed
// when the Launcher closes.
func (p *Process) Close() error {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	return errors.Join(p.status.Close(), p.file.Close())
}
