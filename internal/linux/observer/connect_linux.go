// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Nothing in the kernel separates a socket of the command from one of another program: a
// mount cannot, and a filter sees no names. So the supervisor makes every connect itself,
// on a duplicate of the socket and to the address that it has read. A connect that went
// on could use another socket and another address than those judged, because a task can
// change what a descriptor and a pointer lead to.

// A connecting is a connect that the supervisor makes.
type connecting struct {
	*request
	sock   int // a duplicate of the task's
	domain int
	addr   *tasks.Address

	quick  bool        // a send must not wait
	unsent *tasks.Send // one that would have waited
}

// judgeConnect answers a connect, or has it answered.
func (r *request) judgeConnect() syscall.Errno {
	if r.cfg.NoSockets || r.cfg.UnixOpen {
		return r.judgeNames()
	}
	a, errno := r.message(0)
	if errno != 0 {
		return errno
	}
	sock, errno := r.duplicate(int32(r.n.Args[0]))
	if errno != 0 {
		return errno
	}
	c := &connecting{request: r, sock: sock, addr: a}
	if errno := c.check(); errno != 0 {
		r.release(sock)
		return errno
	}
	if r.naive != nil {
		defer r.release(sock)
		return r.naive(c)
	}
	c.start()
	return later
}

// check returns the error of a connect that is denied by its socket or an internet
// address.
func (c *connecting) check() syscall.Errno {
	domain, err := unix.GetsockoptInt(c.sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	c.domain = domain
	switch {
	case err != nil:
		return unix.ENOTSOCK
	case !c.valid():
		return unix.EINTR // no task waits for it
	case domain == unix.AF_INET || domain == unix.AF_INET6:
		return c.internet()
	case domain == unix.AF_UNIX:
		return 0
	case domain == unix.AF_NETLINK:
		return c.netlink()
	}
	return unix.EPERM
}

// internet judges an internet address. It denies also when the task has ended meanwhile,
// because other tasks may hold the same socket.
func (c *connecting) internet() syscall.Errno {
	to, ok := c.addr.Internet()
	if !ok || !c.cfg.PrivateNetwork {
		return 0 // the kernel knows the error
	}
	errno := c.unreachable(to)
	if tasks.HandedIn(c.sock) {
		errno = unix.EACCES
	}
	if errno != 0 {
		_, name, _ := tasks.Protocol(c.sock)
		_ = c.denySocket(sandbox.Connect, to.String(), name, errno) // denied also when the task has ended
	}
	return errno
}

// unreachable returns the error of the command's private network for an address, and 0 for one that it
// has, or that leads to the proxy or the name server.
func (r *request) unreachable(to netip.AddrPort) syscall.Errno {
	if r.cfg.Redirected || to == r.cfg.Names || slices.Contains(r.cfg.Routed, to.Port()) {
		return 0
	}
	return tasks.Unreachable(to)
}

// netlink allows binding a socket to the kernel only: for groups and other programs the
// kernel would check the rights of this process, not the command's.
func (c *connecting) netlink() syscall.Errno {
	const size = 12 // struct sockaddr_nl
	if c.addr.Family() == unix.AF_UNSPEC {
		return 0
	}
	if c.addr.Len < size || binary.NativeEndian.Uint64(c.addr.Raw[4:]) != 0 {
		return unix.EPERM
	}
	return 0
}

// nameNetlink gives a netlink socket that has no number yet that of the task's process, as the kernel does
// for a call of the task's own. Where another socket has it, the kernel chooses one.
func (c *connecting) nameNetlink() {
	to := unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	own, err := unix.Getsockname(c.sock)
	if at, ok := own.(*unix.SockaddrNetlink); err != nil || !ok || at.Pid != 0 {
		return
	}
	if ids := c.processes(); len(ids) > 0 {
		pid, _ := strconv.ParseUint(ids[len(ids)-1], 10, 32)
		to.Pid = uint32(pid)
		_ = unix.Bind(c.sock, &to)
	}
}

// start connects in a goroutine of its own, because the command can make also such a call
// wait that usually does not.
func (c *connecting) start() {
	own := *c.request
	own.scratch = new(scratch)
	c.request = &own
	c.answers.Go(func() {
		errno := c.attempt()
		if errno == later {
			errno = c.settle(c.attempt)
		}
		c.noteService(errno)
		c.finish(errno)
	})
}

// attempt connects, where that can take long when a thread is free. It returns later when
// the judge asks first.
func (c *connecting) attempt() syscall.Errno {
	kind, _, _ := tasks.Protocol(c.sock)
	if c.domain == unix.AF_NETLINK {
		c.nameNetlink()
	}
	quick := c.nonblocking() || c.domain == unix.AF_NETLINK || kind == unix.SOCK_DGRAM
	if quick && c.domain != unix.AF_UNIX {
		return tasks.Connect(c.sock, c.addr)
	}
	select {
	case c.connecting <- struct{}{}:
	case <-c.ctx.Done():
		return unix.EINTR
	}
	defer func() { <-c.connecting }()
	if c.domain == unix.AF_UNIX {
		return c.unix()
	}
	return c.wait(c.addr)
}

// finish answers with the kernel's result.
func (c *connecting) finish(errno syscall.Errno) {
	c.closeForeign(c.sock)
	if err := c.l.Send(&notify.Response{ID: c.n.ID, Errno: -int32(errno)}); err != nil {
		c.fail(err)
	}
}

func (c *connecting) nonblocking() bool {
	flags, err := unix.FcntlInt(uintptr(c.sock), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NONBLOCK != 0
}

// wait connects a socket that may block, and looks every interval whether the task
// still waits. The time limit for sending is the one that the kernel uses for connecting;
// it is put back. The command can change it in between, since it has the socket, too.
func (c *connecting) wait(a *tasks.Address) (errno syscall.Errno) {
	old, err := unix.GetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil || c.nonblocking() || c.limit() != nil {
		return tasks.Connect(c.sock, a)
	}
	defer func() { _ = unix.SetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, old) }()
	tasks.Interruptible(func() { errno = c.poll(a, time.Duration(old.Nano())) }, func() bool {
		return !c.needed() && c.limit() == nil // the interrupted call starts again, with the limit
	})
	return errno
}

// limit has the kernel connect for one interval at most.
func (c *connecting) limit() error {
	short := unix.NsecToTimeval(tasks.Interval.Nanoseconds())
	return unix.SetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &short)
}

// needed reports whether a task still waits for the connection.
func (c *connecting) needed() bool { return c.ctx.Err() == nil && c.valid() }

// poll connects again and again until the connection is there, has failed, took longer than
// limit, unless that is zero, or is not needed any more.
func (c *connecting) poll(a *tasks.Address, limit time.Duration) syscall.Errno {
	begin := time.Now()
	for {
		errno := tasks.TryConnect(c.sock, a)
		switch {
		case errno != unix.EAGAIN && errno != unix.EINPROGRESS && errno != unix.EALREADY &&
			errno != unix.EINTR:
			return errno
		case limit > 0 && time.Since(begin) >= limit:
			return errno
		case !c.needed():
			return unix.EINTR
		}
	}
}

// unix connects to a unix socket that the command may reach.
func (c *connecting) unix() syscall.Errno {
	return perform.AsCommand(func() syscall.Errno {
		to, file, errno := c.reach()
		if errno != 0 {
			return errno
		}
		if file >= 0 {
			defer unix.Close(file)
		}
		c.noteClient()
		return c.wait(to)
	})
}

// reach returns where a unix socket is that the command may reach: one in its own network by an
// abstract name, or one by a path that it may write to and that belongs to one of its tasks. The
// file is to be closed; -1 is none.
func (c *connecting) reach() (to *tasks.Address, file int, errno syscall.Errno) {
	name := c.addr.Unix()
	switch {
	case c.addr.Family() != unix.AF_UNIX || name == "":
		return c.addr, -1, 0 // EINVAL, or the end of a connection
	case name[0] == '@':
		if !c.cfg.PrivateNetwork || tasks.HandedIn(c.sock) {
			return nil, -1, c.refuse(name, unix.EPERM)
		}
		if !c.reachesName() {
			return nil, -1, c.refuse(name, unix.EACCES)
		}
		return c.addr, -1, 0
	}
	c.lookAtPeers()
	if file, errno = c.target(name); errno != 0 {
		return nil, -1, errno
	}
	return tasks.FileAddress(file), file, 0
}

// target opens the socket that a path leads to for the task. What is judged is what was
// opened, and not what the path leads to a moment before or after.
func (c *connecting) target(name string) (int, syscall.Errno) {
	c.judging.Lock()
	defer c.judging.Unlock()
	p, lerr := c.find(atCwd, []byte(name), true)
	if lerr != nil {
		return -1, c.absent(name, lerr.errno)
	}
	defer p.close()
	if !p.exists {
		return -1, c.absent(name, unix.ENOENT)
	}
	if p.named() {
		var errno syscall.Errno
		if p.object, errno = openat2(p.dir, p.name, pathFlags, 0); errno != 0 {
			return -1, errno
		}
		if errno = c.stat(p.object, "", &p.facts); errno != 0 {
			return -1, errno
		}
	}
	switch {
	case !p.is(unix.S_IFSOCK):
		return -1, c.absent(name, unix.ECONNREFUSED)
	case !c.sees(p.object):
		return -1, c.refuse(c.pathOf(&p), unix.EACCES)
	case !c.valid():
		return -1, unix.EINTR
	}
	if to := c.granted(&p.facts); to >= 0 {
		return to, 0
	}
	at := c.pathOf(&p)
	errno := c.fileWall(&p)
	if errno == 0 && !c.listens(&p.facts) {
		c.keepBound(true)
	}
	if errno == 0 && !c.listens(&p.facts) && !c.reachesFile(&p.facts) {
		if errno = c.unknown(&p); errno != 0 {
			return -1, errno
		}
		errno = unix.EACCES
	}
	if errno == 0 && c.cfg.Judge != nil {
		errno = c.rule(sandbox.Write, at, false)
	}
	if errno != 0 && errno != later {
		errno = c.closed(&p, at)
	}
	if errno != 0 {
		return -1, errno
	}
	fd := p.object
	p.object = -1
	return fd, 0
}

// refuse notes the denial of a unix socket, and denies also when the task has ended.
func (c *connecting) refuse(name string, errno syscall.Errno) syscall.Errno {
	_ = c.denySocket(sandbox.Connect, name, "unix", errno)
	return errno
}
