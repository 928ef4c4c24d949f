// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package sigpipe

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sigaction is the kernel's (struct kernel_sigaction of both architectures; arm64
// leaves the restorer alone).
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	ignored    = 1          // SIG_IGN
	onStack    = 0x08000000 // SA_ONSTACK: goroutines have no room for a frame of the kernel's
	restart    = 0x10000000 // SA_RESTART, as the Go runtime has it
	hasRestore = 0x04000000 // SA_RESTORER, which amd64 needs
	lastSignal = 64
)

// The way of a signal: handler writes its number to end, as one byte.
var end int32 = -1

// hub is shared by everybody who listens in this process.
var hub struct {
	change    sync.Mutex // held while listeners come and go, so that none comes while the last one goes
	mu        sync.Mutex // guards listeners
	listeners map[*listener]bool
	read      *os.File // nil before the first listener; never closed, because a handler may be about to write
	was       map[syscall.Signal]sigaction
	reading   sync.WaitGroup
}

type listener struct {
	c    chan<- os.Signal
	want map[syscall.Signal]bool
}

func notify(c chan<- os.Signal, signals []os.Signal) (func(), error) {
	l := &listener{c: c, want: make(map[syscall.Signal]bool)}
	hub.change.Lock()
	defer hub.change.Unlock()
	if err := openLocked(); err != nil {
		return nil, err
	}
	for _, s := range signals {
		n, ok := s.(syscall.Signal)
		if !ok || n <= 0 || n > lastSignal {
			continue
		}
		if err := catchLocked(n); err != nil {
			if len(hub.listeners) == 0 {
				restoreLocked()
			}
			return nil, err
		}
		l.want[n] = true
	}
	hub.mu.Lock()
	hub.listeners[l] = true
	first := len(hub.listeners) == 1
	hub.mu.Unlock()
	if first {
		_ = hub.read.SetReadDeadline(time.Time{}) // a pipe takes deadlines
		hub.reading.Go(pump)
	}
	return sync.OnceFunc(func() { drop(l) }), nil
}

// openLocked makes the pipe.
func openLocked() error {
	if hub.read != nil {
		return nil
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("sigpipe: %w", err)
	}
	for i, n := range p {
		if n > 2 {
			continue
		}
		// A program that was started without standard files gets those numbers.
		up, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			_ = unix.Close(p[0])
			_ = unix.Close(p[1])
			return fmt.Errorf("sigpipe: %w", err)
		}
		_ = unix.Close(n)
		p[i] = up
	}
	end = int32(p[1])
	hub.read = os.NewFile(uintptr(p[0]), "signals")
	hub.listeners, hub.was = make(map[*listener]bool), make(map[syscall.Signal]sigaction)
	return nil
}

// catchLocked has the kernel call handler for a signal, unless that is ignored.
func catchLocked(n syscall.Signal) error {
	if _, ok := hub.was[n]; ok {
		return nil
	}
	var was sigaction
	if err := act(n, nil, &was); err != nil {
		return err
	}
	if was.handler == ignored {
		return nil
	}
	now := sigaction{handler: handlerPC(), flags: onStack | restart, mask: ^uint64(0)}
	if pc := restorerPC(); pc != 0 {
		now.restorer, now.flags = pc, now.flags|hasRestore
	}
	if err := act(n, &now, nil); err != nil {
		return err
	}
	hub.was[n] = was
	return nil
}

func restoreLocked() {
	for n, was := range hub.was {
		_ = act(n, &was, nil) // it was so before
	}
	clear(hub.was)
}

// drop ends one listener, and the listening with the last one.
func drop(l *listener) {
	hub.change.Lock()
	defer hub.change.Unlock()
	hub.mu.Lock()
	delete(hub.listeners, l)
	last := len(hub.listeners) == 0
	hub.mu.Unlock()
	if last {
		restoreLocked()
		_ = hub.read.SetReadDeadline(time.Unix(1, 0))
		hub.reading.Wait()
	}
}

// pump hands on what the pipe says, until the last listener has gone.
func pump() {
	var buf [64]byte
	for {
		n, err := hub.read.Read(buf[:])
		if err != nil {
			return
		}
		hub.mu.Lock()
		for _, b := range buf[:n] {
			send(syscall.Signal(b))
		}
		hub.mu.Unlock()
	}
}

func send(s syscall.Signal) {
	for l := range hub.listeners {
		if !l.want[s] {
			continue
		}
		select {
		case l.c <- s:
		default:
		}
	}
}

// act is rt_sigaction(2).
func act(n syscall.Signal, now, was *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(was)), 8, 0, 0)
	if errno != 0 {
		return fmt.Errorf("sigpipe: rt_sigaction %d: %w", int(n), errno)
	}
	return nil
}

// handlerPC is the address of the handler, restorerPC of what follows it; 0 where
// the kernel has that itself.
func handlerPC() uintptr
func restorerPC() uintptr
