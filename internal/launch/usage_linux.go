// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"io"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Usage is what the processes below a reaper used, those included that their own
// parents did not wait for, when all have ended (getrusage(2)). The zero Usage is
// nothing known, which is also so when the reaper was killed: the kernel then drops
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

// readSpent reads what follows the reaper's empty record. It came in one write, so
// nothing is waited for.
func (p *Process) readSpent() {
	if err := p.status.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	r := new(unix.Rusage)
	if _, err := io.ReadFull(p.status, unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))); err != nil {
		return
	}
	const block = 512 // whatever the file system's own
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = Usage{
		Known: true, User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()),
		Peak: r.Maxrss << 10, Read: r.Inblock * block, Written: r.Oublock * block,
	}
}

// Usage returns what the tree used. It is there after WaitAll.
func (p *Process) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// KillTree kills everything below the reaper, which then tells how the command
// ended and what the tree used. It waits for d at most; what is not gone by then,
// the reaper included, is killed as by Kill. Somebody must be in Wait, or the
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
