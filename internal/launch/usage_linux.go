// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Usage is what the processes below a reaper used, those included that their own
// parents did not wait for, once they have ended. The zero Usage is nothing known.
type Usage struct {
	// CPU says that User and System are known: the time on processors.
	CPU          bool
	User, System time.Duration
	// Peak is the largest resident memory that one process had, in bytes, or 0. A
	// process that began with the memory of another, as one that vfork(2) made,
	// reports the other's peak, so up to what the launching process ever had it
	// says nothing.
	Peak int64
	// Storage says that Read and Written are known: bytes that had to come from and
	// go to storage, as in /proc/PID/io (proc_pid_io(5)).
	Storage       bool
	Read, Written uint64
}

// storage is the part of Usage that only the file of a process in /proc tells.
type storage struct {
	known         bool
	read, written uint64
}

// readSpent reads what follows the reaper's empty record. It came in one write, so
// nothing is waited for.
func (p *Process) readSpent() {
	if err := p.status.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	spent := new(unix.Rusage)
	if _, err := io.ReadFull(p.status, unsafe.Slice((*byte)(unsafe.Pointer(spent)), unsafe.Sizeof(*spent))); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent, p.used = *spent, true
}

// collectSpent collects a reaper that has ended. It is called with mu held.
func (p *Process) collectSpent() error {
	if !p.disk.known {
		p.disk = storageOf(p.pid)
	}
	for {
		var spent unix.Rusage
		err := unix.Waitid(unix.P_PIDFD, p.pidfd, nil, unix.WEXITED, &spent)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && !p.used {
			p.spent, p.used = spent, true
		}
		return err
	}
}

// Usage returns what the tree used. It is complete after WaitAll and before Close.
func (p *Process) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.disk.known && !p.gone && !p.closed {
		// The reaper counts for those that it has collected, and is not collected
		// itself, so the number is still its own.
		p.disk = storageOf(p.pid)
	}
	u := Usage{Storage: p.disk.known, Read: p.disk.read, Written: p.disk.written}
	if p.used {
		u.CPU = true
		u.User, u.System = time.Duration(p.spent.Utime.Nano()), time.Duration(p.spent.Stime.Nano())
		u.Peak = p.spent.Maxrss << 10
	}
	return u
}

// storageOf reads the counters of a process. They are closed to us where it is not
// dumpable and in no namespace of ours, until it has ended.
func storageOf(pid int) (s storage) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return s
	}
	s.read, s.written, s.known = parseIO(string(b))
	return s
}

// OnCollected has f called in the background when the reaper has been collected,
// which is after Close; Launcher.Close waits for it. It must be called before
// Close.
func (p *Process) OnCollected(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.then = append(p.then, f)
}

func (p *Process) collected() {
	p.mu.Lock()
	then := p.then
	p.then = nil
	p.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// parseIO reads the text of /proc/PID/io: a name and a number on each line. Both
// numbers must be there.
func parseIO(text string) (read, written uint64, ok bool) {
	var haveRead, haveWritten bool
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "read_bytes":
			read, haveRead = n, true
		case "write_bytes":
			written, haveWritten = n, true
		}
	}
	return read, written, haveRead && haveWritten
}
