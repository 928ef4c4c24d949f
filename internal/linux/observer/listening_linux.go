// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A socket in a place that the command may write to can belong to a program outside: a
// tmux server in /tmp runs what its clients say. A stream socket takes connections only
// after listen(2). So the supervisor keeps the files of the sockets on which tasks have
// called it, and connects to no other file. A datagram socket takes messages as soon as it is
// bound; its file is kept with the next call of the thread, or when a message is for it.

// A listening is the file of a socket that a task has bound, and called listen(2) on where
// that is needed.
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
	pidfd    int   // of its process
	sock     int32 // its descriptor there
	looked   bool  // at what it was bound to
	tries    int
	dev, ino uint64 // of the directory
	name     string
}

// maxBindings bounds how many are remembered.
const maxBindings = 16

// binds remembers a name that a task is about to bind a socket to.
func (r *request) binds(p *place) {
	r.remember(binding{dev: p.parent.dev, ino: p.parent.ino, name: p.name})
}

// bindsName does the same for an abstract name, which counts where other commands are in the network.
func (r *request) bindsName() {
	if r.cfg.Peers != nil {
		r.remember(binding{})
	}
}

func (r *request) remember(b binding) {
	pidfd, err := unix.PidfdOpen(r.pid(), 0)
	if err != nil || !r.valid() {
		return
	}
	b.tid, b.pidfd, b.sock = r.n.PID, pidfd, int32(r.n.Args[0])
	if len(r.bindings) == maxBindings {
		unix.Close(r.bindings[0].pidfd)
		r.bindings = slices.Delete(r.bindings, 0, 1)
	}
	defer func() { r.pending.Store(int32(len(r.bindings))) }()
	r.bindings = append(r.bindings, b)
}

// keepBound keeps the files of the sockets that tasks have bound. A bind is over when its thread
// makes its next call; others look before a few times, because the process may end meanwhile and
// leave the socket to a child. Wanted says that a message is for one of them.
func (r *request) keepBound(wanted bool) {
	const tries = 8
	for i := range r.bindings {
		b := &r.bindings[i]
		over := b.tid == r.n.PID
		if b.looked || !over && !wanted && b.tries >= tries {
			continue
		}
		b.looked, b.tries = over, b.tries+1
		sock, errno := r.duplicateFrom(b.pidfd, b.sock)
		if errno != 0 {
			sock, errno = r.duplicate(b.sock)
		}
		if errno == 0 {
			b.looked = r.keep(sock) || over
			r.closeForeign(sock) // now, or the task's own close would not be the last
		}
	}
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
	sock, errno := r.duplicate(int32(r.n.Args[0]))
	if errno != 0 {
		return 0 // EBADF, or so many connects at once that this socket stays unknown
	}
	r.keep(sock)
	r.tellPort(sock)
	r.bindings = slices.DeleteFunc(r.bindings, func(b binding) bool {
		if b.tid == r.n.PID {
			unix.Close(b.pidfd)
		}
		return b.tid == r.n.PID
	})
	r.pending.Store(int32(len(r.bindings)))
	l, id := r.l, r.n.ID
	r.answers.Go(func() {
		r.closeForeign(sock)
		if err := l.Send(&notify.Response{ID: id, Flags: notify.Continue}); err != nil {
			r.fail(err)
		}
	})
	return later
}

// keep keeps the file that a socket of the command is bound to, where it can be sure of it. It
// reports whether it has.
//
// A socket that was handed in is not the command's, so its file is not kept. In a private
// network it shows by its network; on the host's, by its file, which is older than the
// command.
func (r *request) keep(sock int) bool {
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX || r.cfg.PrivateNetwork && tasks.HandedIn(sock) {
		return false
	}
	if r.publishName(sock) {
		return true
	}
	fd, errno := tasks.BoundFile(sock)
	if errno == unix.EPERM {
		fd, errno = r.boundName(sock)
	}
	if errno != 0 {
		return false
	}
	var f facts
	if r.stat(fd, "", &f) != 0 || r.listens(&f) || !r.cfg.PrivateNetwork && !r.young(fd) {
		unix.Close(fd)
		return r.listens(&f)
	}
	r.makeRoom()
	own := listening{fd, f.dev, f.ino}
	r.listening = append(r.listening, own)
	r.publish(own)
	return true
}

// listens reports whether a file is that of a socket of the command.
func (s *Supervisor) listens(f *facts) bool {
	return slices.ContainsFunc(s.listening, func(l listening) bool {
		return l.dev == f.dev &&
			l.ino == f.ino
	})
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
		s.forgetSocket(l)
		return true
	})
	if len(s.listening) == maxListening {
		s.forgetSocket(s.listening[0])
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
	return err == nil && st.Mask&unix.STATX_BTIME != 0 &&
		!time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(s.began)
}

// boundName is sockets.BoundFile for a socket of this process's own network: it opens the name that
// the socket was bound to. The command can have put another file there, so device and number
// are compared with those that the kernel has noted for the socket.
func (r *request) boundName(sock int) (int, syscall.Errno) {
	dev, ino, ok := tasks.Bound(sock)
	if !ok {
		return -1, unix.ENOENT
	}
	p, lerr := r.find(atCwd, []byte(tasks.BoundTo(sock)), false)
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

// onDevice reports whether an open file of the task lies on a file system with a device
// number as the kernel has it: that of stat(2) is another one on some file systems.
func (r *request) onDevice(fd int, dev string) bool {
	m := r.mountOf(fd)
	return m != nil && m.Device == dev
}

// unknown answers a connect to the file of a socket that no task listens on. A file without
// a socket is refused as the kernel does it, and so is a socket that the command has bound
// and does not listen on yet: programs try again then. Everything else is zero, and to be denied.
func (c *connecting) unknown(p *place) syscall.Errno {
	if errno := tasks.Probe(p.object); errno != 0 && errno != unix.EPROTOTYPE {
		return errno
	}
	if c.isBinding(p) {
		return unix.ECONNREFUSED
	}
	return 0
}
