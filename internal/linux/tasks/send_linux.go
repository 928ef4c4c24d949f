// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxDatagram is the longest message of a socket that keeps messages apart. A socket
	// whose buffers have the usual size takes no longer ones.
	maxDatagram = 256 << 10
	// part is how much of a stream is copied at once, and the memory that a buffer keeps.
	part = 64 << 10

	maxTries = 8  // sends at once that do not wait
	maxWaits = 16 // sends at once that the kernel has wait; others queue without a buffer
)

// safeFlags are the flags of a send that is made for another process. Others have the kernel
// keep the buffer (MSG_ZEROCOPY), or connect (MSG_FASTOPEN).
const safeFlags = unix.MSG_OOB | unix.MSG_DONTROUTE | unix.MSG_DONTWAIT | unix.MSG_EOR | unix.MSG_CONFIRM | unix.MSG_NOSIGNAL | unix.MSG_MORE

// NotNow is the result of a [Send] that would wait. It goes on when it is sent again.
const NotNow = unix.EINPROGRESS

// A Sender makes the sends of one process tree. Whatever the tree does, it holds a bounded
// number of buffers, threads and descriptors.
type Sender struct {
	tries, waits chan []byte   // the buffers; nil ones are made when they are needed
	rights       chan struct{} // holds a token while descriptors of a task are held
	queued       atomic.Int32  // sends that wait for one of waits
}

// NewSender returns a Sender, which holds nothing yet.
func NewSender() *Sender {
	s := &Sender{tries: make(chan []byte, maxTries), waits: make(chan []byte, maxWaits),
		rights: make(chan struct{}, 1)}
	for range maxTries {
		s.tries <- nil
	}
	for range maxWaits {
		s.waits <- nil
	}
	return s
}

// A Send is one message that is sent for a task. All fields are needed except To.
type Send struct {
	Task         uint32 // the thread
	Sock         int    // a duplicate of its socket
	Domain, Kind int    // AF_ and SOCK_
	Message      *Message
	To           *Address // the address in the place of the message's; nil is none
	Flags        int      // of sendmsg(2)
	Now          bool     // the result is NotNow where something has to be waited for

	// Credentials returns those to send for what the task says of itself; nil where it says nothing. A nil
	// result leaves them out, and the kernel fills in those of this process for receivers that ask.
	Credentials func(named *unix.Ucred) (*unix.Ucred, syscall.Errno)
	// Transmit makes a sendmsg(2) that does not wait, with such credentials, as another process. It
	// returns false where this process has to make it. May be nil.
	Transmit func(h *unix.Msghdr, flags int) (n int, errno syscall.Errno, ok bool)
	// Waits reports whether the task still waits, so that what was read before is its own.
	Waits func() bool
	// Signal returns the error of a call that a signal interrupts; zero while none does.
	// Limited says that the socket has a time limit.
	Signal func(limited bool) syscall.Errno
	// Duplicate duplicates a descriptor of the task.
	Duplicate func(fd int32) (int, syscall.Errno)
	// As calls f with the rights that the task has.
	As func(f func() syscall.Errno) syscall.Errno

	control control
	named   bool // the message says who sends it
	sent    int  // by earlier calls
}

// Send sends a message, and waits where the task's own call would. It returns how many bytes
// went, and the error of the kernel; EINTR also when ctx ends or the task does not wait any
// more.
func (s *Sender) Send(ctx context.Context, d *Send) (sent int, errno syscall.Errno) {
	stream := d.Kind == unix.SOCK_STREAM
	switch {
	case d.Flags&^safeFlags != 0:
		return 0, unix.EOPNOTSUPP
	case !stream && d.Message.size > maxDatagram:
		return 0, unix.EMSGSIZE
	}
	if d.control, errno = d.Message.parse(d.Domain); errno != 0 {
		return 0, errno
	}
	for {
		size := d.Message.size - d.sent
		if stream {
			size = min(size, part)
		}
		var n int
		n, errno = s.try(ctx, d, size)
		if errno == unix.EAGAIN && d.blocks() {
			errno = NotNow
			if !d.Now {
				n, errno = s.wait(ctx, d, size)
			}
		}
		d.sent += n
		switch {
		case errno == NotNow:
			return 0, NotNow
		case errno != 0 && d.sent > 0:
			return d.sent, 0
		case errno != 0 || n == 0 || d.sent >= d.Message.size || !stream || n < size && !d.blocks():
			return d.sent, errno
		}
	}
}

// blocks reports whether the task's own call would wait.
func (d *Send) blocks() bool {
	if d.Flags&unix.MSG_DONTWAIT != 0 {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(d.Sock), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NONBLOCK == 0
}

// try sends a part of a message where that is possible at once.
func (s *Sender) try(ctx context.Context, d *Send, size int) (int, syscall.Errno) {
	return s.attempt(ctx, s.tries, d, size, func(h *unix.Msghdr, flags int) (int, syscall.Errno) {
		for {
			if n, errno, ok := d.transmit(h, flags); ok {
				return n, errno
			}
			if n, errno := sendmsg(d.Sock, h, flags|unix.MSG_DONTWAIT); errno != unix.EINTR {
				return n, errno
			}
		}
	})
}

// wait sends a part of a message as soon as that is possible. The kernel waits, holding a
// thread and a buffer; where others queue for these, it gives them up after a while and queues
// itself.
func (s *Sender) wait(ctx context.Context, d *Send, size int) (int, syscall.Errno) {
	var limit time.Duration
	if t, err := unix.GetsockoptTimeval(d.Sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil {
		limit = time.Duration(t.Nano())
	}
	for begin := time.Now(); ; {
		n, errno := s.attempt(ctx, s.waits, d, size, func(h *unix.Msghdr, flags int) (int, syscall.Errno) {
			return s.block(ctx, d, h, flags, limit > 0)
		})
		if errno != unix.EINTR {
			return n, errno
		}
		if ctx.Err() != nil || !d.Waits() {
			return 0, unix.EINTR
		}
		if errno = d.Signal(limit > 0); errno != 0 {
			return 0, errno
		}
		if limit > 0 && time.Since(begin) >= limit {
			return 0, unix.EAGAIN
		}
	}
}

// block has the kernel wait until a message is sent, with the time limit of the socket. The
// result is EINTR when it should not wait any more. A call that a signal interrupts starts
// again by itself, so its argument is spoiled before.
func (s *Sender) block(ctx context.Context, d *Send, h *unix.Msghdr, flags int,
	limited bool) (n int, errno syscall.Errno) {
	if n, errno, ok := d.transmit(h, flags); ok {
		if errno == unix.EAGAIN {
			awaitRoom(ctx, d.Sock)
			errno = unix.EINTR
		}
		return n, errno
	}
	spoiled := false
	Interruptible(func() { n, errno = sendmsg(d.Sock, h, flags) }, func() bool {
		over := ctx.Err() != nil || !d.Waits() || s.queued.Load() > 0 || len(d.control.descriptors) > 0 ||
			d.Signal(limited) != 0
		if over {
			h.Iovlen = maxPieces + 1 // EMSGSIZE
			spoiled = true
		}
		return over
	})
	if spoiled && errno == unix.EMSGSIZE {
		errno = unix.EINTR
	}
	return n, errno
}

// transmit has a message that says who sends it made by another process; false where this one makes it.
func (d *Send) transmit(h *unix.Msghdr, flags int) (int, syscall.Errno, bool) {
	if !d.named || d.Transmit == nil {
		return 0, 0, false
	}
	return d.Transmit(h, flags)
}

// awaitRoom waits until a socket takes messages, for an Interval at most. A socket that is not connected
// says always that it does, whatever the queue of its receiver: the next try is made a little later.
func awaitRoom(ctx context.Context, sock int) {
	begin := time.Now()
	p := []unix.PollFd{{Fd: int32(sock), Events: unix.POLLOUT}}
	_, _ = unix.Poll(p, int(Interval/time.Millisecond))
	const least = 2 * time.Millisecond
	if rest := least - time.Since(begin); rest > 0 {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// attempt copies a part of a message into a buffer of a pool and has it sent.
func (s *Sender) attempt(ctx context.Context, pool chan []byte, d *Send, size int,
	send func(*unix.Msghdr, int) (int, syscall.Errno)) (int, syscall.Errno) {
	data, errno := s.take(ctx, pool, d, size)
	if errno != 0 {
		return 0, errno
	}
	defer give(pool, data)
	if got := gather(d.Task, d.Message.pieces, d.sent, data); got < size {
		if got == 0 || d.Kind != unix.SOCK_STREAM {
			return 0, unix.EFAULT
		}
		data = data[:got]
	}
	flags := d.Flags | unix.MSG_NOSIGNAL
	if d.sent+len(data) < d.Message.size {
		flags &^= unix.MSG_OOB | unix.MSG_EOR // of the last byte
	}
	h := unix.Msghdr{}
	if len(data) > 0 {
		h.Iov = &unix.Iovec{Base: &data[0], Len: uint64(len(data))}
		h.Iovlen = 1
	}
	if d.To != nil {
		h.Name, h.Namelen = &d.To.Raw[0], uint32(d.To.Len)
	}
	var n int
	errno = s.withControl(d, func(control []byte) (errno syscall.Errno) {
		if len(control) > 0 {
			h.Control, h.Controllen = &control[0], uint64(len(control))
		}
		if !d.Waits() {
			return unix.EINTR
		}
		n, errno = send(&h, flags)
		return errno
	})
	return n, errno
}

// take returns a buffer of a pool, as soon as there is one.
func (s *Sender) take(ctx context.Context, pool chan []byte, d *Send, size int) ([]byte, syscall.Errno) {
	const least = 4 << 10
	switch {
	case pool == s.waits:
		s.queued.Add(1)
		defer s.queued.Add(-1)
	case d.Now && len(pool) == 0:
		return nil, NotNow
	}
	select {
	case b := <-pool:
		if cap(b) < size {
			b = make([]byte, max(size, least))
		}
		return b[:size], 0
	case <-ctx.Done():
		return nil, unix.EINTR
	}
}

// give gives a buffer back. Large ones are not kept.
func give(pool chan []byte, b []byte) {
	if cap(b) > part {
		b = nil
	}
	pool <- b
}

// withControl calls f, as the task, with the control data of a message, for which it holds
// duplicates of the task's descriptors. Only the first part of a message has any; each says who sends.
func (s *Sender) withControl(d *Send, f func(control []byte) syscall.Errno) syscall.Errno {
	var b []byte
	if d.sent == 0 {
		b = d.control.plain
	}
	own, errno := d.Credentials(d.control.credentials)
	if errno != 0 {
		return errno
	}
	if d.named = own != nil; d.named {
		b = message(b, unix.SCM_CREDENTIALS, unsafe.Slice((*byte)(unsafe.Pointer(own)), unix.SizeofUcred))
	}
	if d.sent == 0 && len(d.control.descriptors) > 0 {
		s.rights <- struct{}{}
		var own []int
		defer func() {
			Interruptible(func() {
				for _, fd := range own {
					unix.Close(fd)
				}
			}, func() bool { return true })
			<-s.rights
		}()
		var numbers []byte
		for _, fd := range d.control.descriptors {
			duplicate, errno := d.Duplicate(fd)
			if errno != 0 {
				return errno
			}
			own = append(own, duplicate)
			numbers = binary.NativeEndian.AppendUint32(numbers, uint32(duplicate))
		}
		b = message(b, unix.SCM_RIGHTS, numbers)
	}
	return d.As(func() syscall.Errno { return f(b) })
}

func sendmsg(sock int, h *unix.Msghdr, flags int) (int, syscall.Errno) {
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(sock), uintptr(unsafe.Pointer(h)), uintptr(flags))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
