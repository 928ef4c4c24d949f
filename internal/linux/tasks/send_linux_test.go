// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair returns two connected sockets.
func pair(t *testing.T, kind int) (int, int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

// sendOf is a send of this process, for itself.
func sendOf(sock, kind int, m *Message) *Send {
	return &Send{
		Task: uint32(os.Getpid()), Sock: sock, Domain: unix.AF_UNIX, Kind: kind, Message: m,
		Waits:       func() bool { return true },
		Signal:      func(bool) syscall.Errno { return 0 },
		Credentials: func(*unix.Ucred) (*unix.Ucred, syscall.Errno) { return nil, 0 },
		Duplicate: func(fd int32) (int, syscall.Errno) {
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return -1, unix.EBADF
			}
			return own, 0
		},
		As: func(f func() syscall.Errno) syscall.Errno { return f() },
	}
}

// messageOf is a message with data in pieces.
func messageOf(pieces ...[]byte) *Message {
	m := &Message{To: &Address{}}
	for _, p := range pieces {
		r := unix.RemoteIovec{Len: len(p)}
		if len(p) > 0 {
			r.Base = addressOf(&p[0])
		}
		m.pieces = append(m.pieces, r)
		m.size += len(p)
	}
	return m
}

// fill sends to a socket until no more fits.
func fill(t *testing.T, sock int) (n int) {
	t.Helper()
	for {
		switch err := unix.Sendto(sock, []byte("full"), unix.MSG_DONTWAIT, nil); {
		case errors.Is(err, unix.EAGAIN):
			return n
		case err != nil:
			t.Fatal(err)
		}
		n++
	}
}

// whole fails when a sender still holds something.
func whole(t *testing.T, s *Sender) {
	t.Helper()
	if len(s.tries) != maxTries || len(s.waits) != maxWaits || len(s.rights) != 0 || s.queued.Load() != 0 {
		t.Errorf("%d and %d buffers are there, %d tokens taken, %d queue", len(s.tries), len(s.waits),
			len(s.rights), s.queued.Load())
	}
	for _, pool := range []chan []byte{s.tries, s.waits} {
		for range cap(pool) {
			b := <-pool
			if cap(b) > part {
				t.Errorf("a buffer of %d bytes is kept", cap(b))
			}
			pool <- b
		}
	}
}

// TestSendStream: a long message of a stream goes as a whole, whatever its pieces, with little
// memory.
func TestSendStream(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := NewSender()
	from, to := pair(t, unix.SOCK_STREAM)
	data := make([]byte, 10<<20)
	_, _ = rand.Read(data)
	got := make(chan []byte)
	go func() {
		b := make([]byte, 0, len(data))
		for len(b) < len(data) {
			n, err := unix.Read(to, b[len(b):cap(b)])
			if n <= 0 || err != nil {
				break
			}
			b = b[:len(b)+n]
		}
		got <- b
	}()
	n, errno := s.Send(context.Background(), sendOf(from, unix.SOCK_STREAM,
		messageOf(data[:7], nil, data[7:5<<20], data[5<<20:])))
	if n != len(data) || errno != 0 || !bytes.Equal(<-got, data) {
		t.Errorf("%d bytes, %v", n, errno)
	}
	whole(t, s)
}

// TestSendKernelErrors: a send ends as the task's own would.
func TestSendKernelErrors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	limited := func(t *testing.T, sock int) {
		limit := unix.NsecToTimeval(int64(20 * time.Millisecond))
		must(t, unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
	}
	for _, c := range []struct {
		name   string
		kind   int
		full   bool
		flags  int
		size   int
		with   func(t *testing.T, sock int)
		change func(d *Send)
		n      int
		want   syscall.Errno
	}{
		{name: "empty", kind: unix.SOCK_DGRAM},
		{name: "one", kind: unix.SOCK_DGRAM, size: 5, n: 5},
		{name: "seqpacket", kind: unix.SOCK_SEQPACKET, size: 5, n: 5},
		{name: "too long for the socket", kind: unix.SOCK_DGRAM, size: 230 << 10, want: unix.EMSGSIZE},
		{name: "too long at all", kind: unix.SOCK_DGRAM, size: maxDatagram + 1, want: unix.EMSGSIZE},
		{name: "MSG_DONTWAIT", kind: unix.SOCK_DGRAM, full: true, flags: unix.MSG_DONTWAIT, size: 1, want: unix.EAGAIN},
		{name: "O_NONBLOCK", kind: unix.SOCK_DGRAM, full: true, size: 1, want: unix.EAGAIN, with: func(t *testing.T, sock int) { must(t, unix.SetNonblock(sock, true)) }},
		{name: "part of a stream", kind: unix.SOCK_STREAM, flags: unix.MSG_DONTWAIT, size: 10 << 20, n: -1},
		{name: "SO_SNDTIMEO", kind: unix.SOCK_DGRAM, full: true, size: 1, with: limited, want: unix.EAGAIN},
		{name: "signal", kind: unix.SOCK_DGRAM, full: true, size: 1, want: 512, change: func(d *Send) { d.Signal = func(bool) syscall.Errno { return 512 } }},
		{name: "signal with a time limit", kind: unix.SOCK_DGRAM, full: true, size: 1, want: unix.EINTR, with: func(t *testing.T, sock int) {
			limit := unix.Timeval{Sec: 3600}
			must(t, unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
		}, change: func(d *Send) {
			d.Signal = func(limited bool) syscall.Errno {
				if limited {
					return unix.EINTR
				}
				return 512
			}
		}},
		{name: "MSG_ZEROCOPY", kind: unix.SOCK_STREAM, flags: unix.MSG_ZEROCOPY, size: 1, want: unix.EOPNOTSUPP},
		{name: "MSG_FASTOPEN", kind: unix.SOCK_STREAM, flags: unix.MSG_FASTOPEN, size: 1, want: unix.EOPNOTSUPP},
		{name: "memory that is not there", kind: unix.SOCK_DGRAM, size: 1, want: unix.EFAULT, change: func(d *Send) { d.Message.pieces[0].Base = 8 }},
		{name: "a task that has gone", kind: unix.SOCK_DGRAM, size: 1, want: unix.EINTR, change: func(d *Send) { d.Waits = func() bool { return false } }},
		{name: "a descriptor that is not open", kind: unix.SOCK_DGRAM, size: 1, want: unix.EBADF, change: func(d *Send) {
			d.Message.control = message(nil, unix.SCM_RIGHTS, []byte{0xff, 0xff, 0xff, 0})
		}},
		{name: "another's credentials", kind: unix.SOCK_DGRAM, size: 1, want: unix.EPERM, change: func(d *Send) {
			d.Message.control = message(nil, unix.SCM_CREDENTIALS, make([]byte, unix.SizeofUcred))
			d.Credentials = func(*unix.Ucred) (*unix.Ucred, syscall.Errno) { return nil, unix.EPERM }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSender()
			from, _ := pair(t, c.kind)
			if c.full {
				fill(t, from)
			}
			if c.with != nil {
				c.with(t, from)
			}
			data := bytes.Repeat([]byte("x"), c.size)
			d := sendOf(from, c.kind, messageOf(data))
			d.Flags = c.flags
			if c.change != nil {
				c.change(d)
			}
			n, errno := s.Send(context.Background(), d)
			runtime.KeepAlive(data)
			if errno != c.want || n != c.n && (c.n != -1 || n == 0 || n == c.size) {
				t.Errorf("%d, %v; want %d, %v", n, errno, c.n, c.want)
			}
			whole(t, s)
		})
	}
}

// TestManySends: two hundred sends of 64 KiB to a socket that is full hold few buffers, and all of
// them go when there is room, or end with their tasks.
func TestManySends(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const count, size = 200, 64 << 10 // 12.5 MiB
	for _, drained := range []bool{true, false} {
		t.Run(fmt.Sprintf("drained %v", drained), func(t *testing.T) {
			s := NewSender()
			from, to := pair(t, unix.SOCK_DGRAM)
			full := fill(t, from)
			data := make([]byte, size)
			var before, during runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			results := make(chan syscall.Errno, count)
			var tried atomic.Int64
			all := make(chan struct{})
			for range count {
				d := sendOf(from, unix.SOCK_DGRAM, messageOf(data))
				asked := false
				d.Waits = func() bool {
					if !asked { // by the first try
						asked = true
						if tried.Add(1) == count {
							close(all)
						}
					}
					return true
				}
				go func() {
					_, errno := s.Send(ctx, d)
					results <- errno
				}()
			}
			<-all
			runtime.GC()
			runtime.ReadMemStats(&during)
			if more := int64(during.HeapAlloc) - int64(before.HeapAlloc); more > 24*size+2<<20 {
				t.Errorf("%d bytes more", more)
			}
			want := unix.EINTR
			if drained {
				want = 0
				for range full + count {
					if _, err := unix.Read(to, make([]byte, size)); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				cancel()
			}
			for range count {
				if errno := <-results; errno != want {
					t.Errorf("%v, want %v", errno, want)
				}
			}
			runtime.KeepAlive(data)
			whole(t, s)
		})
	}
}

// TestSendDescriptors: descriptors are passed on, and nothing of them is left here.
func TestSendDescriptors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := NewSender()
	from, to := pair(t, unix.SOCK_DGRAM)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	m := messageOf([]byte("x"))
	m.control = unix.UnixRights(int(w.Fd()))
	m.control = m.control[:len(m.control):len(m.control)]
	if _, errno := s.Send(context.Background(), sendOf(from, unix.SOCK_DGRAM, m)); errno != 0 {
		t.Fatal(errno)
	}
	w.Close()
	oob := make([]byte, 100)
	_, n, _, _, err := unix.Recvmsg(to, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	must(t, err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	must(t, err)
	fds, err := unix.ParseUnixRights(&messages[0])
	must(t, err)
	_, err = unix.Write(fds[0], []byte("through"))
	must(t, err)
	unix.Close(fds[0])
	if text, err := io.ReadAll(r); string(text) != "through" || err != nil { // it ends: no copy is open
		t.Errorf("%q, %v", text, err)
	}
	whole(t, s)
}
