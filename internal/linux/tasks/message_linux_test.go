// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// TestReadMessage: a struct msghdr is read with the errors of the kernel.
func TestReadMessage(t *testing.T) {
	name := unix.RawSockaddrUnix{Family: unix.AF_UNIX, Path: [108]int8{'/', 's'}}
	data := []byte("data")
	pieces := []unix.Iovec{{Base: &data[0], Len: 2}, {}, {Base: &data[2], Len: 2}}
	control := make([]byte, maxControl+1)
	good := unix.Msghdr{
		Name: (*byte)(unsafe.Pointer(&name)), Namelen: 5, Iov: &pieces[0], Iovlen: 3, Control: &control[0],
		Controllen: 16,
	}
	for _, c := range []struct {
		name   string
		change func(h *unix.Msghdr)
		want   syscall.Errno
	}{
		{"good", func(*unix.Msghdr) {}, 0},
		{"longest name", func(h *unix.Msghdr) { h.Namelen = 1 << 20 }, 0},
		{"negative name", func(h *unix.Msghdr) { h.Namelen = 1 << 31 }, unix.EINVAL},
		{"too many pieces", func(h *unix.Msghdr) { h.Iovlen = maxPieces + 1 }, unix.EMSGSIZE},
		{"pieces that are not there", func(h *unix.Msghdr) { h.Iov = nil }, unix.EFAULT},
		{"a piece of negative size", func(h *unix.Msghdr) { h.Iov = &unix.Iovec{Len: 1 << 63}; h.Iovlen = 1 }, unix.EINVAL},
		{"much control data", func(h *unix.Msghdr) { h.Controllen = maxControl + 1 }, unix.ENOBUFS},
		{"control data without an address", func(h *unix.Msghdr) { h.Control = nil }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good
			c.change(&h)
			m, errno := ReadMessage(uint32(os.Getpid()), uint64(addressOf(&h)))
			if errno != c.want {
				t.Fatalf("%v, want %v", errno, c.want)
			}
			if errno != 0 {
				return
			}
			got := make([]byte, m.size)
			if gather(uint32(os.Getpid()), m.pieces, 0, got); m.To.Unix() != "/s" || string(got) != "data" {
				t.Errorf("%q to %q", got, m.To.Unix())
			}
		})
	}
	if _, errno := ReadMessage(uint32(os.Getpid()), 8); errno != unix.EFAULT {
		t.Errorf("%v", errno)
	}
	runtime.KeepAlive(data)
}

// TestControl: what is known is passed on, everything else is refused.
func TestControl(t *testing.T) {
	rights := func(n int) []byte { return message(nil, unix.SCM_RIGHTS, make([]byte, 4*n)) }
	level := func(level, kind byte) []byte {
		b := message(nil, int32(kind), make([]byte, 4))
		b[8] = level
		return b
	}
	for _, c := range []struct {
		name    string
		domain  int
		control []byte
		want    syscall.Errno
		rights  int
		named   bool
	}{
		{"descriptors", unix.AF_UNIX, rights(3), 0, 3, false},
		{"most descriptors", unix.AF_UNIX, rights(maxPassed), 0, maxPassed, false},
		{"too many", unix.AF_UNIX, rights(maxPassed + 1), unix.EINVAL, 0, false},
		{"too many in two", unix.AF_UNIX, append(rights(200), rights(200)...), unix.EINVAL, 0, false},
		{"credentials", unix.AF_UNIX, message(rights(1), unix.SCM_CREDENTIALS, make([]byte, 12)), 0, 1, true},
		{"short credentials", unix.AF_UNIX, message(nil, unix.SCM_CREDENTIALS, make([]byte, 11)), unix.EINVAL, 0, false},
		{"unknown", unix.AF_UNIX, message(nil, 77, nil), unix.EINVAL, 0, false},
		{"of packets, on a unix socket", unix.AF_UNIX, level(unix.SOL_IP, unix.IP_TOS), unix.EINVAL, 0, false},
		{"of packets", unix.AF_INET6, level(unix.SOL_IPV6, unix.IPV6_TCLASS), 0, 0, false},
		{"a mark", unix.AF_INET, level(unix.SOL_SOCKET, unix.SO_MARK), unix.EINVAL, 0, false},
		{"descriptors, on an internet socket", unix.AF_INET, rights(1), unix.EINVAL, 0, false},
		{"on netlink", unix.AF_NETLINK, level(unix.SOL_IP, 1), unix.EINVAL, 0, false},
		{"longer than it is", unix.AF_UNIX, append([]byte{99}, rights(1)[1:]...), unix.EINVAL, 0, false},
		{"shorter than its head", unix.AF_UNIX, append([]byte{15}, rights(1)[1:]...), unix.EINVAL, 0, false},
		{"a rest", unix.AF_UNIX, append(rights(1), 1, 2, 3), 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errno := (&Message{control: c.control}).parse(c.domain)
			if errno != c.want || len(got.descriptors) != c.rights || (got.credentials != nil) != c.named {
				t.Errorf("%+v, %v", got, errno)
			}
		})
	}
}

// FuzzControl: whatever control data is parsed, what is passed on is bounded.
func FuzzControl(f *testing.F) {
	f.Add(message(message(nil, unix.SCM_RIGHTS, []byte{1, 0, 0, 0}), unix.SCM_CREDENTIALS, make([]byte, 12)))
	f.Add(unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: 1}))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, domain := range []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			c, errno := (&Message{control: b}).parse(domain)
			switch {
			case errno != 0:
			case len(c.descriptors) > maxPassed, len(c.plain) > align(len(b)), len(c.plain) > 0 &&
				domain == unix.AF_UNIX,
				(len(c.descriptors) > 0 || c.credentials != nil) && domain != unix.AF_UNIX:
				t.Errorf("%+v", c)
			}
		}
	})
}

// FuzzGather compares with copying from all pieces.
func FuzzGather(f *testing.F) {
	f.Add([]byte("abcdefgh"), []byte{3, 0, 2}, 2, 4)
	f.Fuzz(func(t *testing.T, data, cuts []byte, from, size int) {
		if size < 0 || size > 1<<16 || from < 0 || len(cuts) > maxPieces {
			return
		}
		var pieces []unix.RemoteIovec
		var all []byte
		for rest := data; len(cuts) > 0; cuts = cuts[1:] {
			n := min(int(cuts[0]), len(rest))
			p := unix.RemoteIovec{Len: n}
			if n > 0 {
				p.Base = addressOf(&rest[0])
			}
			pieces, all, rest = append(pieces, p), append(all, rest[:n]...), rest[n:]
		}
		got := make([]byte, size)
		n := gather(uint32(os.Getpid()), pieces, from, got)
		want := all[min(from, len(all)):]
		want = want[:min(size, len(want))]
		if n != len(want) || !bytes.Equal(got[:n], want) {
			t.Errorf("%d, %q, want %q", n, got[:n], want)
		}
		runtime.KeepAlive(data)
	})
}
