// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
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
	fd     int
	waiter *tasks.Waiter // waits without a thread
}

// newListener takes over a descriptor.
func newListener(fd int) (*listener, error) {
	// Older kernels do without.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, syncWakeUp)
	w, err := tasks.NewWaiter(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("observer: %w", err)
	}
	return &listener{fd: fd, waiter: w}, nil
}

func (l *listener) close() {
	_ = l.waiter.Close() // it may be closed already
	unix.Close(l.fd)
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

// ioctl makes a request that does not block for long, so the scheduler is not told of it: that
// would cost a tenth of a call. The kernel's lock over all notifications may be taken, and a signal,
// such as those of the Go runtime, ends the wait for it: nothing has happened then. Receiving may find
// no call any more, and ends by a signal.
func (l *listener) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
		if errno != unix.EINTR || request == unix.SECCOMP_IOCTL_NOTIF_RECV {
			return errno
		}
	}
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

// An Inbox waits for the listener of one launch.
type Inbox struct {
	ours, theirs *os.File
}

// Listen makes the pair of sockets by which a launch sends its listener.
func Listen() (*Inbox, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("observer: socket: %w", err)
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

// take waits for the listener. It returns an error when the launch ends without having
// sent one.
func (in *Inbox) take() (*listener, error) {
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
	return -1, errors.New("observer: the launch sent no listener")
}

// WritablePlaces returns the paths that the Landlock rulesets of a script make writable.
func WritablePlaces(s *launch.Script) []string {
	out := []string{}
	for _, st := range s.Steps {
		if st.Ruleset == nil {
			continue
		}
		for _, rule := range st.Ruleset.Rules {
			if rule.Path != "" {
				out = append(out, rule.Path)
			}
		}
	}
	return out
}
