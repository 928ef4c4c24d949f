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

const (
	flagContinue = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	// syncWakeUp makes the kernel hand the processor over from task to supervisor and
	// back (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6).
	syncWakeUp = 1
)

// A listener is the supervisor's end of a filter.
type listener struct {
	fd int

	mu      sync.Mutex
	stopped bool
	waiter  *oneshot.Waiter // nil before the first sleep
}

func newListener(fd int) *listener {
	// Older kernels do without.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, syncWakeUp)
	return &listener{fd: fd}
}

// pollTime is how many milliseconds a supervisor waits in the kernel for the next call
// before it gives its thread back. A program that makes one call soon makes another.
const pollTime = 4

// poll waits in the kernel, and returns POLLIN when there is a notification, another
// event when no task is left under the filter, and zero after pollTime.
func (l *listener) poll() (int16, error) {
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(p, pollTime)
		if err == nil {
			return p[0].Revents, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("observer: poll: %w", err)
		}
	}
}

// sleep blocks without a thread until poll has an event. It returns false after stop.
func (l *listener) sleep() (bool, error) {
	w, err := l.newWaiter()
	if w == nil || err != nil {
		return false, err
	}
	if err := w.Wait(); errors.Is(err, os.ErrClosed) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("observer: %w", err)
	}
	return true, nil
}

// newWaiter returns the waiter of sleep, or nil after stop.
func (l *listener) newWaiter() (*oneshot.Waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.waiter != nil {
		return l.waiter, nil
	}
	w, err := oneshot.New(l.fd)
	if err != nil {
		return nil, fmt.Errorf("observer: %w", err)
	}
	l.waiter = w
	return w, nil
}

// stop ends sleep. A poll ends by itself, soon.
func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.waiter != nil {
		_ = l.waiter.Close() // an epoll descriptor has nothing to lose
		l.waiter = nil
	}
}

// ioctl makes a request that does not block, so the scheduler is not told of it: that
// would cost a tenth of a call.
func (l *listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
	return errno
}

// receive takes one notification. It returns false when its task has ended already.
func (l *listener) receive(n *notification) (bool, error) {
	*n = notification{}
	switch errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); errno {
	case 0:
		return true, nil
	case unix.ENOENT, unix.EINTR, unix.EAGAIN:
		return false, nil
	default:
		return false, fmt.Errorf("observer: receive: %w", errno)
	}
}

// send answers. A task that has ended needs no answer.
func (l *listener) send(r *response) error {
	errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
	if errno == 0 || errno == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("observer: answer: %w", errno)
}

// valid reports whether a task still waits for its answer.
func (l *listener) valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// An Inbox waits for the listener of one launch.
type Inbox struct {
	ours, theirs *os.File
}

// Listen makes the pair of sockets by which a launch sends its listener.
func Listen() (*Inbox, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("observer: socket: %w", err)
	}
	in := &Inbox{theirs: os.NewFile(uintptr(pair[1]), "observer")}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		in.Started()
		return nil, fmt.Errorf("observer: socket: %w", err)
	}
	in.ours = os.NewFile(uintptr(pair[0]), "listener")
	return in, nil
}

// Theirs returns the end for the launch script. The Inbox closes it.
func (in *Inbox) Theirs() *os.File { return in.theirs }

// Started closes the end that was for the child: the launch has ended, with or without
// success. It may be called twice.
func (in *Inbox) Started() {
	if in.theirs != nil {
		in.theirs.Close()
		in.theirs = nil
	}
}

// take waits for the listener. It returns an error when the launch ends without having
// sent one.
func (in *Inbox) take() (fd int, err error) {
	defer in.ours.Close()
	raw, err := in.ours.SyscallConn()
	if err != nil {
		return -1, err
	}
	if rerr := raw.Read(func(sock uintptr) bool {
		fd, err = receiveFD(int(sock))
		return !errors.Is(err, unix.EAGAIN)
	}); rerr != nil {
		return -1, rerr
	}
	return fd, err
}

// receiveFD reads a message that holds one descriptor.
func receiveFD(sock int) (int, error) {
	var data [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(sock, data[:], oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errNoListener, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errNoListener, err)
	}
	return fds[0], nil
}

var errNoListener = errors.New("observer: the launch sent no listener")
