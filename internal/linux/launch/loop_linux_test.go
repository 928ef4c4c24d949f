// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestLoop drives the assembly loop by itself: lists of harmless calls that end
// in a program, or stop before it. It asks for no namespaces and for nothing but
// the exit code, so it also runs where the kernel is an emulator's.
func TestLoop(t *testing.T) {
	const ran, stopped = 42, 1
	word := uint64(0xff00ff)
	at := unsafe.Pointer(&word)
	closeBad := func(l *lowering) *call { return l.call("close", unix.SYS_CLOSE, num(1<<30)) }
	ignoring := func(c *call, errno syscall.Errno) {
		c.flags |= flagIgnoreOne
		c.want = uintptr(errno)
	}
	cases := []struct {
		name string
		add  func(l *lowering)
		want int
	}{
		{"nothing", func(*lowering) {}, ran},
		{"an error", func(l *lowering) { closeBad(l) }, stopped},
		{"an error to ignore", func(l *lowering) { closeBad(l).flags |= flagIgnore }, ran},
		{"the error to ignore", func(l *lowering) { ignoring(closeBad(l), unix.EBADF) }, ran},
		{"another error to ignore", func(l *lowering) { ignoring(closeBad(l), unix.EPERM) }, stopped},
		{"a wanted result", func(l *lowering) {
			l.call("umask", unix.SYS_UMASK, num(0))
			l.call("umask", unix.SYS_UMASK, num(0)).expect(0)
		}, ran},
		{"an unwanted result", func(l *lowering) {
			l.call("umask", unix.SYS_UMASK, num(7))
			l.call("umask", unix.SYS_UMASK, num(0)).expect(0)
		}, stopped},
		{"a wanted result after an error", func(l *lowering) {
			c := closeBad(l)
			c.flags |= flagIgnore | flagWant
			c.want = ^uintptr(0)
		}, ran},
		{"an equal word", func(l *lowering) { l.compare(at, 0xff00ff) }, ran},
		{"another word", func(l *lowering) { l.compare(at, 0xff) }, stopped},
		{"an end of the list", func(l *lowering) { l.call("jump", 0).flags |= flagJump }, stopped},
		{"a wait that is over", func(l *lowering) {
			closeBad(l).flags |= flagAwait
			l.calls[0].args[0] = uintptr(at)
		}, ran},
		{"a wait that ends", func(l *lowering) {
			pre := &Preforked{over: make(chan struct{})}
			close(pre.over)
			l.call("futex", unix.SYS_FUTEX, pin(l, &pre.word), num(128), num(0), num(0)).flags |= flagAwait
			go pre.wake()
		}, ran},
		{"a slot in each place", func(l *lowering) {
			s := make([]slot, 5)
			for i := range s {
				s[i] = l.newSlot()
				*s[i] = uint64(i)
			}
			// dup3(a, b, flags): a is duplicated to b, and the result is b.
			*s[0], *s[1], *s[2] = 1, 77, unix.O_CLOEXEC
			dup := l.call("dup3", unix.SYS_DUP3, held(s[0]), held(s[1]), held(s[2]))
			dup.store(s[3])
			dup.expect(77)
			l.call("fcntl", unix.SYS_FCNTL, held(s[3]), num(unix.F_GETFD)).expect(unix.FD_CLOEXEC)
			// pread64(fd, buffer, count, offset) of a place that does not exist.
			*s[4] = ^uint64(0)
			ignoring(l.call("pread64", unix.SYS_PREAD64, num(77), num(0), num(0), held(s[4])), unix.EINVAL)
		}, ran},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLowering(fds{}, 8)
			c.add(l)
			step := shStep("exit 42")
			l.inCommand = true
			l.lowerStep(&step)
			status := loop(t, l)
			if got := status.ExitStatus(); !status.Exited() || got != c.want {
				t.Errorf("status %#x, want exit code %d", uint32(status), c.want)
			}
		})
	}
	runtime.KeepAlive(&word)
}

// loop performs a list as a child and returns how the child ended.
func loop(t *testing.T, l *lowering) unix.WaitStatus {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := &context{script: &l.calls[0], nr: unix.SYS_CLONE}
	c.args[0] = unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD)
	pid := spawnBlocked(c)
	runtime.KeepAlive(l)
	if pid < 0 {
		t.Fatalf("clone: %v", syscall.Errno(-pid))
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(int(pid), &status, 0, nil); err != unix.EINTR {
			if err != nil {
				t.Fatal(err)
			}
			return status
		}
	}
}
