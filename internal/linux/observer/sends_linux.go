// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A message of a datagram socket goes where its address leads, whatever the socket is
// connected to. A send that went on could use another socket, address and memory than those
// judged, as a connect could. So the supervisor makes every send of a command that may have
// such sockets, also those of streams: the filter cannot tell them apart.

// judgeSend answers a send, or has it made.
func (r *request) judgeSend() syscall.Errno {
	if r.cfg.NoSockets || r.cfg.UnixOpen {
		return r.judgeNames()
	}
	sock, errno := r.duplicate(int32(r.n.Args[0]))
	switch errno {
	case 0:
	case unix.EAGAIN:
		return unix.ENOBUFS // too many are held
	default:
		return errno
	}
	own := *r
	own.scratch = nil // most sends name no path
	c := &connecting{request: &own, sock: sock, quick: true}
	if r.naive != nil {
		defer r.release(sock)
		return r.naive(c)
	}
	if sent, errno := c.send(); errno != later {
		c.answerSend(sent, errno)
		return later
	}
	c.quick = false
	r.answers.Go(func() { c.answerSend(c.send()) })
	return later
}

// answerSend answers with the kernel's result.
func (c *connecting) answerSend(sent int, errno syscall.Errno) {
	c.closeForeign(c.sock)
	if err := c.l.Send(&notify.Response{ID: c.n.ID, Val: int64(sent), Errno: -int32(errno)}); err != nil {
		c.fail(err)
	}
}

// send makes the sends of the call and returns how many bytes, or messages, went. A quick one
// that may have to wait gives later, and is to be called again.
func (c *connecting) send() (int, syscall.Errno) {
	domain, err := unix.GetsockoptInt(c.sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch c.domain = domain; {
	case err != nil:
		return 0, unix.ENOTSOCK
	case !c.valid():
		return 0, unix.EINTR // no task waits for it
	case c.quick && (domain != unix.AF_UNIX || c.kind != kindSendMsg):
		return 0, later
	case c.unsent != nil:
		c.unsent.Now = false
		return c.transmit(c.unsent)
	}
	if domain == unix.AF_NETLINK {
		c.nameNetlink()
	}
	args := &c.n.Args
	switch c.kind {
	case kindSendTo:
		m, errno := tasks.ReadBuffer(c.n.PID, args[1], args[2], args[4], args[5])
		return c.sendMessage(m, errno, int(int32(args[3])))
	case kindSendMsg:
		m, errno := tasks.ReadMessage(c.n.PID, args[1])
		return c.sendMessage(m, errno, int(int32(args[2])))
	}
	count := int(min(args[2]&0xffffffff, tasks.MaxMessages))
	for i := range count {
		at := args[1] + uint64(i)*tasks.MessageSize
		m, errno := tasks.ReadMessage(c.n.PID, at)
		n, errno := c.sendMessage(m, errno, int(int32(args[3])))
		if errno == 0 {
			errno = c.tell(at+tasks.SentAt, n)
		}
		switch {
		case errno != 0 && i > 0:
			return i, 0
		case errno != 0:
			return 0, errno
		}
	}
	return count, 0
}

// tell writes how much of a message went to the task.
func (c *connecting) tell(at uint64, n int) syscall.Errno {
	b := binary.NativeEndian.AppendUint32(nil, uint32(n))
	if !c.valid() {
		return unix.EINTR
	}
	if !c.poke(at, b) {
		return unix.EFAULT
	}
	return 0
}

// sendMessage sends one message, to where its address leads, unless it could not be read.
func (c *connecting) sendMessage(m *tasks.Message, errno syscall.Errno, flags int) (int, syscall.Errno) {
	switch {
	case errno != 0:
		return 0, errno
	case c.quick && !m.Plain():
		return 0, later
	}
	kind, _, _ := tasks.Protocol(c.sock)
	c.addr = m.To
	c.unsent = &tasks.Send{
		Task: c.n.PID, Sock: c.sock, Domain: c.domain, Kind: kind, Message: m, Flags: flags, Now: c.quick,
		Credentials: c.credentials, Transmit: c.transmitAs, Waits: c.valid, Signal: c.signal,
		Duplicate: c.descriptorOf, As: c.asSender,
	}
	return c.transmit(c.unsent)
}

// transmit judges the address of a message, and sends it.
func (c *connecting) transmit(d *tasks.Send) (n int, errno syscall.Errno) {
	attempt := func() (errno syscall.Errno) {
		to, file, errno := c.receiver(d.Kind)
		if errno != 0 {
			return errno
		}
		if file >= 0 {
			defer unix.Close(file)
		}
		d.To = to
		n, errno = c.sender.Send(c.ctx, d)
		return errno
	}
	errno = attempt()
	switch errno {
	case tasks.NotNow:
		return 0, later
	case later:
		errno = c.settle(attempt)
	}
	if errno == unix.EPIPE && c.valid() && d.Kind == unix.SOCK_STREAM && d.Flags&unix.MSG_NOSIGNAL == 0 {
		_ = unix.Tgkill(c.pid(), int(c.n.PID), unix.SIGPIPE) // it gets this one with the answer
	}
	return n, errno
}

// receiver judges the address of a message and returns the one to use; nil is none. The file is
// to be closed; -1 is none.
func (c *connecting) receiver(kind int) (to *tasks.Address, file int, errno syscall.Errno) {
	switch {
	case c.addr.Len == 0:
		return nil, -1, 0
	case c.domain == unix.AF_INET || c.domain == unix.AF_INET6:
		at, ok := c.addr.Internet()
		if ok && c.cfg.PrivateNetwork && kind == unix.SOCK_DGRAM { // a stream ignores it
			if errno = c.unreachable(at); errno != 0 {
				_ = c.denySocket(sandbox.Connect, at.String(), "udp", errno)
			}
		}
		return c.addr, -1, errno
	case c.domain == unix.AF_NETLINK:
		// With an address the kernel would ask for the rights of this process only, and not
		// for those of the task that has made the socket.
		return nil, -1, c.netlink()
	case c.domain != unix.AF_UNIX:
		return nil, -1, unix.EPERM
	case kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET:
		return c.addr, -1, 0 // the kernel ignores it, or gives its error
	}
	if c.scratch == nil {
		c.scratch = new(scratch)
	}
	errno = perform.AsCommand(func() (errno syscall.Errno) {
		to, file, errno = c.reach()
		return errno
	})
	return to, file, errno
}

// asSender calls f without rights, but for the one to name the task as the sender.
func (c *connecting) asSender(f func() syscall.Errno) syscall.Errno {
	if c.domain == unix.AF_UNIX {
		return perform.WithoutRights(^uint32(1<<unix.CAP_SYS_ADMIN), f)
	}
	return perform.WithoutRights(^uint32(0), f)
}

// descriptorOf duplicates a descriptor that the task sends.
func (c *connecting) descriptorOf(fd int32) (int, syscall.Errno) {
	pidfd, errno := c.pidfd()
	if errno != 0 {
		return -1, errno
	}
	defer unix.Close(pidfd)
	own, err := unix.PidfdGetfd(pidfd, int(fd), 0)
	return own, asErrno(err)
}

// restart is ERESTARTSYS: the kernel returns EINTR in its place, or makes the call again,
// depending on the handler of the signal.
const restart = syscall.Errno(512)

// signal returns the error of a call that waits, where a signal interrupts it; the kernel
// delivers none before the answer. A signal for the whole process is the first thread's, as a
// rule; another thread would not have noticed, and could not start the call again.
func (c *connecting) signal(limited bool) syscall.Errno {
	bits := func(name string) uint64 {
		n, _ := strconv.ParseUint(c.status(name), 16, 64)
		return n
	}
	pending := bits("SigPnd:")
	if c.pid() == int(c.n.PID) {
		pending |= bits("ShdPnd:")
	}
	switch {
	case pending&^bits("SigBlk:") == 0:
		return 0
	case limited:
		return unix.EINTR
	}
	return restart
}
