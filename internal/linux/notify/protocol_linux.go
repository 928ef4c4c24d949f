// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A Notification is struct seccomp_notif of linux/seccomp.h.
type Notification struct {
	ID    uint64
	PID   uint32 // the thread
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// A Response is struct seccomp_notif_resp.
type Response struct {
	ID    uint64
	Val   int64
	Errno int32 // negative
	Flags uint32
}

// Continue has the kernel make the call ([Response.Flags]).
const Continue = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// syncWakeUp makes the kernel hand the processor over from task to supervisor and
// back (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6).
const syncWakeUp = 1

// A Listener is the supervisor's end of a filter.
type Listener struct {
	fd     int
	waiter *tasks.Waiter // waits without a thread
}

// newListener takes over a descriptor.
func newListener(fd int) (*Listener, error) {
	// Older kernels do without.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, syncWakeUp)
	w, err := tasks.NewWaiter(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("notify: %w", err)
	}
	return &Listener{fd: fd, waiter: w}, nil
}

// Close ends [Listener.Wait], and the listener: a task that still calls gets ENOSYS.
func (l *Listener) Close() {
	l.Stop()
	unix.Close(l.fd)
}

// Stop ends [Listener.Wait]; it may be called several times.
func (l *Listener) Stop() { _ = l.waiter.Close() } // it may be closed already

// Wait waits without a thread until there is something to poll, or the listener is stopped.
func (l *Listener) Wait() error { return l.waiter.Wait() }

// Valid reports whether the call with an id still waits.
func (l *Listener) Valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// PollTime is how many milliseconds a supervisor waits in the kernel for the next call
// before it gives its thread back. A program that makes one call soon makes another.
const PollTime = 4

// Poll waits in the kernel, and returns POLLIN when there is a notification, another
// event when no task is left under the filter, and zero after PollTime.
func (l *Listener) Poll() (int16, error) {
	p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(p, PollTime)
		if err == nil {
			return p[0].Revents, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("notify: poll: %w", err)
		}
	}
}

// ioctl makes a request that does not block for long, so the scheduler is not told of it: that
// would cost a tenth of a call. The kernel's lock over all notifications may be taken, and a signal,
// such as those of the Go runtime, ends the wait for it: nothing has happened then. Receiving may find
// no call any more, and ends by a signal.
func (l *Listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
		if errno != unix.EINTR || request == unix.SECCOMP_IOCTL_NOTIF_RECV {
			return errno
		}
	}
}

// Receive takes one notification. It returns false when its task has ended already.
func (l *Listener) Receive(n *Notification) (bool, error) {
	*n = Notification{}
	switch errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); errno {
	case 0:
		return true, nil
	case unix.ENOENT, unix.EINTR, unix.EAGAIN:
		return false, nil
	default:
		return false, fmt.Errorf("notify: receive: %w", errno)
	}
}

// Send answers. A task that has ended needs no answer.
func (l *Listener) Send(r *Response) error {
	errno := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r))
	if errno == 0 || errno == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("notify: answer: %w", errno)
}

// An Inbox waits for the Listener of one launch.
type Inbox struct {
	ours, theirs *os.File
}

// Listen makes the pair of sockets by which a launch sends its listener.
func Listen() (*Inbox, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("notify: socket: %w", err)
	}
	return &Inbox{os.NewFile(uintptr(pair[0]), "listener"), os.NewFile(uintptr(pair[1]), "observer")}, nil
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

// Close gives the Inbox up, where no listener is taken.
func (in *Inbox) Close() { in.ours.Close() }

// Take waits for the listener. It returns an error when the launch ends without having
// sent one.
func (in *Inbox) Take() (*Listener, error) {
	defer in.ours.Close()
	raw, err := in.ours.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if rerr := raw.Read(func(sock uintptr) bool {
		fd, err = receiveFD(int(sock))
		return !errors.Is(err, unix.EAGAIN)
	}); rerr != nil || err != nil {
		return nil, errors.Join(rerr, err)
	}
	return newListener(fd)
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
	if err == nil && len(messages) == 1 {
		if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("notify: the launch sent no listener")
}

// AddFD puts a copy of a descriptor into the process whose call has an id. It waits until the
// task, which waits itself, has taken it.
func (l *Listener) AddFD(id uint64, fd int, flags uint64) (int, syscall.Errno) {
	const request = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD of linux/seccomp.h
	add := struct {
		id                             uint64
		flags, source, target, newFlag uint32
	}{id: id, source: uint32(fd), newFlag: uint32(flags)}
	for {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(unsafe.Pointer(&add)))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
