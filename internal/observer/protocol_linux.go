// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/oneshot"
)

// A notification is struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id    uint64
	pid   uint32 // the thread
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// A response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// The requests of a listener, from linux/seccomp.h.
const (
	ioctlReceive  = unix.SECCOMP_IOCTL_NOTIF_RECV
	ioctlSend     = unix.SECCOMP_IOCTL_NOTIF_SEND
	ioctlValid    = unix.SECCOMP_IOCTL_NOTIF_ID_VALID
	ioctlSetFlags = unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS

	flagContinue = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	// syncWakeUp makes the kernel hand the processor over from task to supervisor and
	// back (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6).
	syncWakeUp = 1
)

// A listener is the supervisor's end of a filter.
type listener struct {
	fd int

	mu     sync.Mutex
	closed bool
	rest   *oneshot.Waiter // once it was idle
}

func newListener(fd int) *listener {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlSetFlags, syncWakeUp) // older kernels do without
	return &listener{fd: fd}
}

// warm is how long a supervisor stays in the kernel waiting for the next call before
// it gives its thread back. A program that asks once asks again soon.
const warm = 4 // milliseconds

// A turn is what came of a wait. The zero value says that nobody is left who could ask.
type turn uint8

const (
	turnOver  turn = iota
	turnAsked      // there is a notification
	turnCalm       // nobody has asked for a while
)

// wait waits for a notification in the kernel, not for long.
func (l *listener) wait() (turn, error) {
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, warm)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return turnOver, fmt.Errorf("observer: poll: %w", err)
		case n > 0 && p[0].Revents&unix.POLLIN != 0:
			return turnAsked, nil
		case n > 0: // POLLHUP: the last task under the filter has ended
			return turnOver, nil
		}
		return turnCalm, nil
	}
}

// sleep blocks without a thread until something happens, and reports false when nothing
// will any more.
func (l *listener) sleep() (bool, error) {
	rest, err := l.resting()
	if rest == nil || err != nil {
		return false, err
	}
	if err := rest.Wait(); errors.Is(err, os.ErrClosed) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("observer: %w", err)
	}
	return true, nil
}

// resting returns what waits without a thread, or nil after stop.
func (l *listener) resting() (*oneshot.Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.rest != nil {
		return l.rest, nil
	}
	w, err := oneshot.New(l.fd)
	if err != nil {
		return nil, fmt.Errorf("observer: %w", err)
	}
	l.rest = w
	return w, nil
}

// stop ends a wait without a thread. One in the kernel ends by itself, soon.
func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.rest != nil {
		_ = l.rest.Close() // an epoll descriptor has nothing to lose
		l.rest = nil
	}
}

// The three requests below do not block, so the scheduler is not told of them: what
// that costs is worth a tenth of them.

// receive takes one notification, which must be there. False means that its task was gone already.
func (l *listener) receive(n *notification) (bool, error) {
	*n = notification{}
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlReceive, uintptr(unsafe.Pointer(n)))
	switch errno {
	case 0:
		return true, nil
	case unix.ENOENT, unix.EINTR, unix.EAGAIN:
		return false, nil
	}
	return false, fmt.Errorf("observer: receive: %w", errno)
}

// send answers. A task that is gone needs none.
func (l *listener) send(r *response) error {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlSend, uintptr(unsafe.Pointer(r)))
	if errno == 0 || errno == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("observer: answer: %w", errno)
}

// valid reports whether a task still waits for its answer, so that what was read
// from it before was its own.
func (l *listener) valid(id uint64) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlValid, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}

// An Inbox waits for the listener of one launch.
type Inbox struct {
	ours, theirs *os.File
}

// Listen makes the pair of sockets by which a listener comes out of a launch.
func Listen() (*Inbox, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("observer: socket: %w", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return nil, fmt.Errorf("observer: socket: %w", err)
	}
	return &Inbox{os.NewFile(uintptr(pair[0]), "listener"), os.NewFile(uintptr(pair[1]), "observer")}, nil
}

// Theirs is the end for the launch script. The Inbox closes it.
func (in *Inbox) Theirs() *os.File { return in.theirs }

// Started closes the end that was for the child: the launch is over, whatever
// became of it. It may be called twice.
func (in *Inbox) Started() {
	if in.theirs != nil {
		in.theirs.Close()
		in.theirs = nil
	}
}

// errNone says that a launch ended without having sent a listener.
var errNone = errors.New("observer: the launch sent no listener")

// take waits for the listener. It blocks until the launch has sent it, or ends.
func (in *Inbox) take() (int, error) {
	defer in.ours.Close()
	raw, err := in.ours.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("observer: listener: %w", err)
	}
	fd := -1
	var got error
	err = raw.Read(func(n uintptr) bool {
		var data [1]byte
		oob := make([]byte, unix.CmsgSpace(4))
		_, oobn, _, _, rerr := unix.Recvmsg(int(n), data[:], oob, unix.MSG_CMSG_CLOEXEC)
		if rerr == unix.EAGAIN || rerr == unix.EINTR {
			return false
		}
		if rerr != nil || oobn == 0 {
			got = errors.Join(errNone, rerr)
			return true
		}
		fd, got = rights(oob[:oobn])
		return true
	})
	if err = errors.Join(err, got); err != nil {
		return -1, err
	}
	return fd, nil
}

// rights takes the one descriptor out of a control message.
func rights(oob []byte) (int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		return -1, errors.Join(errNone, err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errNone, err)
	}
	return fds[0], nil
}
