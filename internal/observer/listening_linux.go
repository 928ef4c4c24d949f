// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket in a place that the command may write to can belong to a program outside: a
// tmux server in /tmp runs what its clients say. A stream socket takes connections only
// after listen(2). So the supervisor keeps the files of the sockets on which tasks have
// called it, and connects to no other file.

// A listening is the file of a socket on which a task has called listen(2).
type listening struct {
	fd       int // holds the file, so that no other one gets its number
	dev, ino uint64
}

// maxListening bounds how many are kept. Beyond it the oldest go, after those without a
// name.
const maxListening = 128

// A binding is a name that a task was about to bind a socket to, and has not listened since.
type binding struct {
	tid      uint32
	dev, ino uint64 // of the directory
	name     string
}

// maxBindings bounds how many are remembered.
const maxBindings = 16

// binds remembers a name that a task is about to bind a socket to.
func (r *request) binds(p *place) {
	if len(r.bindings) == maxBindings {
		r.bindings = slices.Delete(r.bindings, 0, 1)
	}
	r.bindings = append(r.bindings, binding{r.n.pid, p.parent.dev, p.parent.ino, p.name})
}

// isBinding reports whether a name is one that a socket was bound to just now.
func (s *Supervisor) isBinding(p *place) bool {
	return p.named() && slices.ContainsFunc(s.bindings, func(b binding) bool {
		return b.dev == p.parent.dev && b.ino == p.parent.ino && b.name == p.name
	})
}

// judgeListen keeps the file of the socket. The call goes on when the duplicate is closed:
// with it, the port of a socket would still be taken after the task's own close.
func (r *request) judgeListen() syscall.Errno {
	sock, errno := r.duplicate(int32(r.n.args[0]))
	if errno != 0 {
		return 0 // EBADF, or so many connects at once that this socket stays unknown
	}
	r.keep(sock)
	r.bindings = slices.DeleteFunc(r.bindings, func(b binding) bool { return b.tid == r.n.pid })
	l, id := r.l, r.n.id
	r.answers.Go(func() {
		r.closeForeign(sock)
		if err := l.send(&response{id: id, flags: flagContinue}); err != nil {
			r.fail(err)
		}
	})
	return later
}

// keep keeps the file that a socket of the command is bound to, where it can be sure of it.
//
// A socket that was handed in is not the command's, so its file is not kept. In a private
// network it shows by its network; on the host's, by its file, which is older than the
// command.
func (r *request) keep(sock int) {
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX || r.cfg.PrivateNetwork && handedIn(sock) {
		return
	}
	fd, errno := boundFile(sock)
	if errno == unix.EPERM {
		fd, errno = r.boundName(sock)
	}
	if errno != 0 {
		return
	}
	var f facts
	if r.stat(fd, "", &f) != 0 || r.listens(&f) || !r.cfg.PrivateNetwork && !r.young(fd) {
		unix.Close(fd)
		return
	}
	r.makeRoom()
	r.listening = append(r.listening, listening{fd, f.dev, f.ino})
}

// listens reports whether a file is that of a socket on which a task has called listen(2).
func (s *Supervisor) listens(f *facts) bool {
	return slices.ContainsFunc(s.listening, func(l listening) bool { return l.dev == f.dev && l.ino == f.ino })
}

// makeRoom forgets files where there are too many.
func (s *Supervisor) makeRoom() {
	if len(s.listening) < maxListening {
		return
	}
	s.listening = slices.DeleteFunc(s.listening, func(l listening) bool {
		var st unix.Stat_t
		if unix.Fstat(l.fd, &st) == nil && st.Nlink > 0 {
			return false
		}
		unix.Close(l.fd)
		return true
	})
	if len(s.listening) == maxListening {
		unix.Close(s.listening[0].fd)
		s.listening = slices.Delete(s.listening, 0, 1)
	}
}

// fileTime returns the time as file systems tell it, in ticks of some milliseconds.
func fileTime() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}

// young reports whether a file was made after the supervision began, or in the tick before.
func (s *Supervisor) young(fd int) bool {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	return err == nil && st.Mask&unix.STATX_BTIME != 0 && !time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(s.began)
}

// boundFile opens the file that a unix socket is bound to. The error is ENOENT where there
// is none, and EPERM where the user does not own the socket's network.
func boundFile(sock int) (int, syscall.Errno) {
	const siocUnixFile = 0x89e0 // SIOCUNIXFILE of linux/un.h
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(sock), siocUnixFile, 0)
	return int(fd), errno
}

// boundName is boundFile for a socket of this process's own network: it opens the name that
// the socket was bound to. The command can have put another file there, so device and number
// are compared with those that the kernel has noted for the socket.
func (r *request) boundName(sock int) (int, syscall.Errno) {
	dev, ino, ok := unixDiag(sock)
	if !ok {
		return -1, unix.ENOENT
	}
	p, lerr := r.find(atCwd, []byte(boundTo(sock)), false)
	if lerr != nil {
		return -1, lerr.errno
	}
	defer p.close()
	if !p.named() {
		return -1, unix.ENOENT
	}
	fd, errno := openat2(p.dir, p.name, pathFlags, 0)
	if errno != 0 {
		return -1, errno
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || uint32(st.Ino) != ino || !r.onDevice(fd, dev) {
		unix.Close(fd)
		return -1, unix.ENOENT
	}
	return fd, 0
}

// boundTo returns the name that a unix socket was bound to, as [address.unix] does; empty
// where there is none.
func boundTo(sock int) string {
	var a address
	size := uint32(len(a.raw))
	if _, _, errno := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(sock), uintptr(unsafe.Pointer(&a.raw)), uintptr(unsafe.Pointer(&size))); errno == 0 {
		a.len = min(int(size), len(a.raw))
	}
	return a.unix()
}

// onDevice reports whether an open file of the task lies on a file system with a device
// number as the kernel has it: that of stat(2) is another one on some file systems.
func (r *request) onDevice(fd int, dev string) bool {
	m := r.mountOf(fd)
	return m != nil && m.Device == dev
}

// unixDiag asks the kernel for the file that a unix socket of this network is bound to: the
// device, and the low half of the number.
func unixDiag(sock int) (dev string, ino uint32, ok bool) {
	var st unix.Stat_t
	cookie, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil || unix.Fstat(sock, &st) != nil {
		return "", 0, false
	}
	link, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return "", 0, false
	}
	defer unix.Close(link)
	if unix.Sendto(link, diagRequest(uint32(st.Ino), cookie), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return "", 0, false
	}
	answer := make([]byte, pageSize)
	n, _, err := unix.Recvfrom(link, answer, unix.MSG_DONTWAIT) // it was made while the request was sent
	if err != nil {
		return "", 0, false
	}
	return diagAnswer(answer[:n])
}

// diagRequest is a struct nlmsghdr with a struct unix_diag_req, of linux/netlink.h and
// linux/unix_diag.h.
func diagRequest(ino uint32, cookie uint64) []byte {
	const (
		size    = unix.SizeofNlMsghdr + 24
		showVFS = 2 // UDIAG_SHOW_VFS
	)
	e := binary.NativeEndian
	b := e.AppendUint32(make([]byte, 0, size), size)
	b = e.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = e.AppendUint16(b, unix.NLM_F_REQUEST)
	b = e.AppendUint64(b, 0) // the number of the message, and the sender
	b = append(b, unix.AF_UNIX, 0, 0, 0)
	b = e.AppendUint32(b, ^uint32(0)) // in every state
	b = e.AppendUint32(b, ino)
	b = e.AppendUint32(b, showVFS)
	b = e.AppendUint32(b, uint32(cookie))
	return e.AppendUint32(b, uint32(cookie>>32))
}

// diagAnswer reads a struct nlmsghdr with a struct unix_diag_msg and attributes, of which
// UNIX_DIAG_VFS has the number and the device.
func diagAnswer(b []byte) (dev string, ino uint32, ok bool) {
	const (
		head      = unix.SizeofNlMsghdr + 16
		attrVFS   = 1
		minorBits = 20 // of the kernel's own device numbers
	)
	e := binary.NativeEndian
	if len(b) < head || e.Uint16(b[4:]) != unix.SOCK_DIAG_BY_FAMILY {
		return "", 0, false
	}
	for b = b[head:]; len(b) >= unix.SizeofNlAttr; {
		size := int(e.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		if e.Uint16(b[2:]) == attrVFS && size == unix.SizeofNlAttr+8 {
			dev := e.Uint32(b[8:])
			return fmt.Sprintf("%d:%d", dev>>minorBits, dev&(1<<minorBits-1)), e.Uint32(b[4:]), true
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return "", 0, false
}

// unknown answers a connect to the file of a socket that no task listens on. A file without
// a socket is refused as the kernel does it, and so is a socket that the command has bound
// and does not listen on yet: programs try again then. Everything else is denied.
func (c *connecting) unknown(p *place, at string) syscall.Errno {
	if errno := probe(p.object); errno != 0 && errno != unix.EPROTOTYPE {
		return errno
	}
	if c.isBinding(p) {
		return unix.ECONNREFUSED
	}
	return c.refuse(at, unix.EACCES)
}

// probe connects a datagram socket to the file of a socket, which a stream socket there does
// not notice. The result is EPROTOTYPE where there is one, 0 where there is a datagram
// socket, ECONNREFUSED where there is none.
func probe(fd int) syscall.Errno {
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(sock)
	return connect(sock, fileAddress(fd))
}
