// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// Nothing in the kernel keeps a socket of the command from one of another program:
// a mount cannot, and a filter sees no names. So every connect is done here, on a
// duplicate of the socket and to the address that was read. Letting any connect go
// on would do: the socket behind a number, and the address behind a pointer, can
// both be others by the time the kernel looks at them.

// A connecting is one call to connect.
type connecting struct {
	s    *Supervisor
	l    *listener
	n    notification
	sock int
	addr *address
}

// judgeConnect answers a connect, or has it answered.
func (s *Supervisor) judgeConnect(l *listener, n *notification) (syscall.Errno, bool) {
	a, errno := s.address(n.pid, n.args[1], n.args[2])
	if s.cfg.NoSockets || s.cfg.UnixOpen {
		return s.judgeOpenConnect(l, n, a), false
	}
	if errno != 0 {
		return errno, false
	}
	if s.waiting.Load() >= maxWaiting {
		return unix.EAGAIN, false
	}
	sock, errno := s.take(n.pid, int32(n.args[0]))
	if errno != 0 {
		return errno, false
	}
	c := &connecting{s: s, l: l, n: *n, sock: sock, addr: a}
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		errno = unix.ENOTSOCK
	case !l.valid(n.id):
		errno = unix.EINTR // nobody hears it
	case domain == unix.AF_INET || domain == unix.AF_INET6:
		errno = c.internet()
	case domain == unix.AF_UNIX:
		errno = 0
	case domain == unix.AF_NETLINK:
		errno = c.netlink()
	default:
		errno = unix.EPERM
	}
	if errno != 0 {
		unix.Close(sock)
		return errno, false
	}
	if s.naive {
		return c.look(domain), false
	}
	c.begin(domain)
	return 0, true
}

// judgeOpenConnect is for commands that the walls, or somebody's wish, leave unix
// sockets to: what is said here only tells what the network refuses.
func (s *Supervisor) judgeOpenConnect(l *listener, n *notification, a *address) syscall.Errno {
	if a == nil || !s.cfg.PrivateNetwork {
		return 0
	}
	to, ok := a.peer()
	if !ok {
		return 0
	}
	errno := unreachable(to.Addr())
	if errno == 0 {
		return 0
	}
	_, name, isSocket := s.protocol(n.pid, n.args[0])
	if !isSocket {
		return 0
	}
	return s.deny(l, n, sandbox.Access{Op: sandbox.Connect, Addr: to.String(), Net: name}, errno)
}

// internet judges an internet address. What is refused stays so when the task has gone
// meanwhile: others may hold the same socket.
func (c *connecting) internet() syscall.Errno {
	to, ok := c.addr.peer()
	if !ok || !c.s.cfg.PrivateNetwork {
		return 0 // the kernel knows what to say
	}
	errno := unreachable(to.Addr())
	if foreign(c.sock) {
		errno = unix.EACCES
	}
	if errno != 0 {
		c.note(sandbox.Access{Op: sandbox.Connect, Addr: to.String(), Net: c.kind()}, errno)
	}
	return errno
}

// note writes a refusal down, if its task still waits for the answer.
func (c *connecting) note(a sandbox.Access, errno syscall.Errno) {
	if c.l.valid(c.n.id) {
		c.s.note(&c.n, sandbox.Denial{Access: a}, errno)
	}
}

func (c *connecting) kind() string {
	if kind, err := unix.GetsockoptInt(c.sock, unix.SOL_SOCKET, unix.SO_TYPE); err == nil && kind == unix.SOCK_DGRAM {
		return "udp"
	}
	return "tcp"
}

// foreign reports whether a socket belongs to our own network and not to one of the
// command's: it was handed in, and leads out. So does one that cannot be asked.
func foreign(sock int) bool {
	own, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(own)
	ours, err := unix.GetsockoptUint64(own, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return true
	}
	theirs, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err != nil || ours == theirs
}

// netlink lets a socket be bound to the kernel and to nobody else: for groups and
// other programs the kernel would ask for our rights, not the command's.
func (c *connecting) netlink() syscall.Errno {
	const size = 12 // struct sockaddr_nl
	if c.addr.family() == unix.AF_UNSPEC {
		return 0
	}
	if c.addr.len < size || binary.NativeEndian.Uint64(c.addr.raw[4:]) != 0 {
		return unix.EPERM
	}
	return 0
}

// look judges a connect without performing it.
func (c *connecting) look(domain int) syscall.Errno {
	defer unix.Close(c.sock)
	name := c.addr.unix()
	if domain != unix.AF_UNIX || c.addr.family() != unix.AF_UNIX || name == "" || name[0] == '@' {
		return 0
	}
	p, m := c.s.find(c.n.pid, atCwd, []byte(name), true)
	if m != nil {
		return m.errno
	}
	defer p.close()
	if c.s.objectWall(&p) != 0 {
		return unix.EACCES
	}
	return 0
}

// begin connects, at once where that cannot take long.
func (c *connecting) begin(domain int) {
	flags, err := unix.FcntlInt(uintptr(c.sock), unix.F_GETFL, 0)
	quick := err == nil && flags&unix.O_NONBLOCK != 0 || domain == unix.AF_NETLINK || c.kind() == "udp"
	if quick && domain != unix.AF_UNIX {
		c.finish(connect(c.sock, c.addr))
		return
	}
	c.s.waiting.Add(1)
	c.s.connects.Go(func() {
		defer c.s.waiting.Add(-1)
		select {
		case c.s.connected <- struct{}{}:
		case <-c.s.over:
			unix.Close(c.sock)
			return
		}
		defer func() { <-c.s.connected }()
		if domain == unix.AF_UNIX {
			c.finish(c.unix())
			return
		}
		c.finish(c.patiently(c.addr))
	})
}

// finish answers with what the kernel said.
func (c *connecting) finish(errno syscall.Errno) {
	unix.Close(c.sock)
	if err := c.l.send(&response{id: c.n.id, errno: -int32(errno)}); err != nil {
		c.s.fail(err)
	}
}

// slice is how long a connect waits in the kernel before it is looked whether
// anybody still wants it. Only a peer that does not accept makes one wait.
const slice = 50 * time.Millisecond

// patiently connects a socket that may block. The time-out for sending is the one
// that the kernel uses for connecting; it is put back.
func (c *connecting) patiently(a *address) syscall.Errno {
	flags, err := unix.FcntlInt(uintptr(c.sock), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return connect(c.sock, a)
	}
	old, err := unix.GetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return connect(c.sock, a)
	}
	limit := time.Duration(old.Nano())
	short := unix.NsecToTimeval(slice.Nanoseconds())
	if unix.SetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &short) != nil {
		return connect(c.sock, a)
	}
	defer func() { _ = unix.SetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, old) }()
	begin := time.Now()
	for {
		errno := connect(c.sock, a)
		if errno != unix.EAGAIN && errno != unix.EINPROGRESS && errno != unix.EALREADY {
			return errno
		}
		if limit > 0 && time.Since(begin) >= limit {
			return errno
		}
		select {
		case <-c.s.over:
			return unix.EINTR
		default:
		}
		if !c.l.valid(c.n.id) {
			return unix.EINTR
		}
	}
}

// unix connects to a unix socket that the command may reach: one in its own network
// by an abstract name, or one by a path that it may write to.
func (c *connecting) unix() syscall.Errno {
	if c.addr.family() != unix.AF_UNIX {
		return c.patiently(c.addr) // EINVAL, or the end of a connection
	}
	name := c.addr.unix()
	switch {
	case name == "":
		return c.patiently(c.addr) // EINVAL
	case name[0] == '@':
		if !c.s.cfg.PrivateNetwork || foreign(c.sock) {
			return c.refuse(name, unix.EPERM)
		}
		return c.patiently(c.addr)
	}
	runtime.LockOSThread()
	restore, errno := dropOverrides()
	if errno != 0 {
		runtime.UnlockOSThread() // nothing has changed
		return errno
	}
	defer func() {
		// A thread that could not be given its rights back ends with the goroutine.
		// Else it lives on: it may have launched something that the kernel would end.
		if restore() == 0 {
			runtime.UnlockOSThread()
		}
	}()
	target, errno := c.target(name)
	if errno != 0 {
		return errno
	}
	defer unix.Close(target)
	var a address
	const path = 2
	a.len = path + copy(a.raw[path:], "/proc/self/fd/"+strconv.Itoa(target)+"\x00")
	binary.NativeEndian.PutUint16(a.raw[:], unix.AF_UNIX)
	return c.patiently(&a)
}

// target opens the socket that a path leads to for the task.
func (c *connecting) target(name string) (int, syscall.Errno) {
	c.s.beginJudging()
	defer c.s.judging.Unlock()
	p, m := c.s.find(c.n.pid, atCwd, []byte(name), true)
	if m != nil {
		return -1, m.errno
	}
	defer p.close()
	switch {
	case !p.there:
		return -1, unix.ENOENT
	case !p.is.is(unix.S_IFSOCK):
		return -1, unix.ECONNREFUSED
	case !c.l.valid(c.n.id):
		return -1, unix.EINTR
	}
	at := c.s.pathOf(&p)
	errno := c.s.objectWall(&p)
	if errno == 0 && c.s.cfg.Judge != nil {
		errno = c.s.cfg.Judge.File(sandbox.Write, at, false)
	}
	if errno != 0 {
		return -1, c.refuse(at, unix.EACCES)
	}
	if !p.named() {
		fd := p.object
		p.object = -1
		return fd, 0
	}
	fd, errno := openat2(p.dir, p.name, pathFlags, 0)
	if errno != 0 {
		return -1, errno
	}
	var now facts
	if errno := c.s.stat(fd, "", &now); errno != 0 || now.ino != p.is.ino || now.dev != p.is.dev {
		unix.Close(fd)
		return -1, unix.ECONNREFUSED // another one by now, and not the one that was judged
	}
	return fd, 0
}

// refuse notes a unix socket that must not be reached.
func (c *connecting) refuse(name string, errno syscall.Errno) syscall.Errno {
	c.note(sandbox.Access{Op: sandbox.Connect, Addr: name, Net: "unix"}, errno)
	return errno
}

// dropOverrides takes from this thread the capabilities that let a real root pass by
// owners and modes: the command, which has none, is to get no further here than it
// would by itself. The goroutine is locked to the thread; restore gives them back.
func dropOverrides() (restore func() syscall.Errno, errno syscall.Errno) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return nil, unix.EPERM
	}
	set := func(effective uint32) syscall.Errno {
		data[0].Effective = effective
		if err := unix.Capset(&head, &data[0]); err != nil {
			return unix.EPERM
		}
		return 0
	}
	all := data[0].Effective
	const overrides = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if all&overrides == 0 {
		return func() syscall.Errno { return 0 }, 0
	}
	if errno := set(all &^ overrides); errno != 0 {
		return nil, errno
	}
	return func() syscall.Errno { return set(all) }, 0
}
