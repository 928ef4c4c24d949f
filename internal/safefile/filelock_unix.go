// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// LockPatience is how long [WaitLock] waits. Processes of ours hold the locks for milliseconds.
const LockPatience = 10 * time.Second

// A HeldError says that another process held a lock for all of [LockPatience].
type HeldError struct {
	Path string        // the name by which the file was opened
	Time time.Duration // how long was waited
}

// Error returns the file, the reason and the fix.
func (e *HeldError) Error() string {
	return fmt.Sprintf("cannot lock %s: another process has held the lock for %v; end the process that lslocks names",
		text.Word(e.Path), e.Time)
}

// WaitLock takes the exclusive lock of an open file, which ends with the file. It blocks for at most
// [LockPatience]; the error is a [*HeldError] then, and also of later calls for f as long as the other
// process holds the lock: it is not taken behind the caller's back.
//
// A command can lock any file that it can open, for ever: what is waited for lies where no command
// sees it.
func WaitLock(f *os.File) error { return waitLock(f, LockPatience, unix.LOCK_EX) }

// Unlock gives a lock back, also where a process that was forked meanwhile has a copy of the descriptor.
func Unlock(f *os.File) { _ = flock(int(f.Fd()), unix.LOCK_UN) } // it ends with the file at the latest

// Lock is Wait where how is LOCK_EX or LOCK_SH. It does not block where how is LOCK_UN, or has LOCK_NB.
func Lock(f *os.File, how int) error { return waitLock(f, LockPatience, how) }

// late has the files for which waiting is over, and the kernel still waits.
var late sync.Map

func waitLock(f *os.File, patience time.Duration, how int) error {
	if _, waits := late.Load(f); waits {
		return &HeldError{Path: f.Name(), Time: patience}
	}
	err := flock(int(f.Fd()), how|unix.LOCK_NB)
	if how&unix.LOCK_NB != 0 || !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	// A descriptor of its own: f may be closed while the kernel waits.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	taken, over := make(chan error), make(chan struct{})
	go func() {
		defer unix.Close(fd) // nothing was written
		err := flock(fd, how)
		select {
		case taken <- err:
		case <-over:
			_ = flock(fd, unix.LOCK_UN) // f may be open still
			late.Delete(f)
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err = <-taken:
		return err
	case <-timer.C:
		late.Store(f, nil)
		close(over)
		return &HeldError{Path: f.Name(), Time: patience}
	}
}

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
