// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Launcher starts processes. The zero Launcher is ready to use. Its methods
// may be called from several goroutines at once.
//
// The kernel ties a parent-death signal to the thread that cloned, so a
// Launcher keeps a few operating-system threads (at most twice the number of
// processors, made as they are needed) until Close.
type Launcher struct {
	mu       sync.Mutex
	work     chan func() // jobs for threads
	threads  int
	jobs     int            // waiting for a thread or performed by one
	serving  sync.WaitGroup // threads
	launches sync.WaitGroup // under way
	reapers  sync.WaitGroup // being collected
	closed   bool
	ready    bool

	self   int         // pidfd of this process
	reaper int         // the reaper's image
	old    atomic.Bool // the kernel has no clone3(2)
}

// Start performs a script with these files. It returns when the command's
// program has been executed, or when a step failed, with a *StepError; it blocks
// for about as long as the kernel needs (a millisecond).
//
// pre may be nil. A preforked task that fits the script performs it; one that does not
// is dropped.
func (l *Launcher) Start(pre *Preforked, s *Script, f Files) (*Process, error) {
	defer pre.Drop()
	if len(s.Steps) == 0 {
		return nil, &ScriptError{Reason: "the script is empty"}
	}
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.launches.Done()
	p, err := pre.start(s, f)
	if !errors.Is(err, errNotPreforked) {
		return p, err
	}
	pre.Drop() // it occupies a thread
	own, release, err := l.duplicate(s, f)
	if err != nil {
		return nil, err
	}
	defer release()
	return withStatus(own, func(own fds) (p *Process, err error) {
		l.run(func() { p, err = l.launch(s, own) })
		return p, err
	})
}

// withStatus starts a process with a pipe for the records of its reaper.
func withStatus(f fds, start func(fds) (*Process, error)) (*Process, error) {
	status, end, err := statusPipe()
	if err != nil {
		return nil, err
	}
	defer unix.Close(end)
	f.status = end
	p, err := start(f)
	if err != nil {
		status.Close()
		return nil, err
	}
	p.status = status
	return p, nil
}

// enter counts a launch, which Close waits for, and makes what all launches share.
func (l *Launcher) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enterLocked()
}

func (l *Launcher) enterLocked() error {
	if l.closed {
		return ErrClosed
	}
	if !l.ready {
		self, err := unix.PidfdOpen(os.Getpid(), 0)
		if err != nil {
			return fmt.Errorf("launch: pidfd_open: %w (needs Linux 5.3 or newer)", err)
		}
		if self, err = raise(self); err != nil {
			return err
		}
		image, err := reaperFile()
		if err != nil {
			unix.Close(self)
			return err
		}
		l.self, l.reaper, l.ready = self, image, true
		l.work = make(chan func(), mostThreads())
	}
	l.launches.Add(1)
	return nil
}

// run performs f on one of the launcher's threads and waits for it.
func (l *Launcher) run(f func()) {
	done := make(chan struct{})
	l.mu.Lock()
	job := l.jobLocked(f, done)
	l.mu.Unlock()
	l.work <- job
	<-done
}

// jobLocked returns a job for the caller to send to work, and makes a thread for it
// when all are occupied. The job performs f and closes done.
func (l *Launcher) jobLocked(f func(), done chan<- struct{}) func() {
	if l.jobs++; l.threads < l.jobs && l.threads < mostThreads() {
		l.threads++
		l.serving.Add(1)
		go l.thread()
	}
	return func() {
		f()
		l.mu.Lock()
		l.jobs--
		l.mu.Unlock()
		close(done)
	}
}

func mostThreads() int { return 2 * runtime.GOMAXPROCS(0) }

// thread serves on a locked thread. Returning while locked ends the
// thread, and with it every process that it started. That is not so
// for the main thread, which Go parks instead; so the main thread is held until
// another one has taken the work.
func (l *Launcher) thread() {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		l.serve()
		return
	}
	taken := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(taken)
		l.serve()
	}()
	<-taken
	runtime.UnlockOSThread()
}

func (l *Launcher) serve() {
	defer l.serving.Done()
	for f := range l.work {
		f()
	}
}

// background performs f without blocking anybody but Close, or at once after Close.
func (l *Launcher) background(f func()) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.reapers.Go(f)
	}
	l.mu.Unlock()
	if closed {
		f()
	}
}

// Close ends the launcher's threads; processes that are still running are
// killed, as by [OpDieWithParent]. It waits for launches that are under way and for preforked tasks, and
// may be called twice.
func (l *Launcher) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	ready := l.ready
	l.mu.Unlock()
	if ready {
		l.launches.Wait()
		close(l.work)
		l.serving.Wait()
		l.reapers.Wait()
		unix.Close(l.self)
		unix.Close(l.reaper)
	}
	return nil
}
