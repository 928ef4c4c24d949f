// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// hasIPv6 reports whether a new network namespace has IPv6.
func hasIPv6(t testing.TB, l *starter) bool {
	t.Helper()
	n := null(t)
	p, err := l.StartWith(listening(shStep(":"), "[::1]:15001"),
		Files{Stdin: n, Stdout: n, Stderr: n, Listen: handover(t).Theirs()})
	if err != nil {
		return false
	}
	finishAll(t, p)
	return true
}

// helperReach tries to reach addresses: "tcp ADDRESS", of which it prints what it reads, and "udp
// ADDRESS", for which it prints why its datagram was refused.
func helperReach(args []string) int {
	for _, to := range args {
		network, at, _ := strings.Cut(to, " ")
		c, err := net.DialTimeout(network, at, time.Minute)
		if err == nil && network == "udp" {
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			_, _ = c.Write([]byte("?"))
			b := make([]byte, 100)
			var n int
			if n, err = c.Read(b); err == nil {
				fmt.Printf("%s: %s\n", to, b[:n])
				continue
			}
		}
		var number syscall.Errno
		switch {
		case errors.As(err, &number):
			fmt.Printf("%s: %s\n", to, unix.ErrnoName(number))
		case err != nil:
			fmt.Printf("%s: %v\n", to, err)
		default:
			b, _ := io.ReadAll(c)
			fmt.Printf("%s: %s\n", to, b)
		}
	}
	return 0
}

// originalDestination returns where a connection that was redirected was going.
func originalDestination(c net.Conn) (at netip.AddrPort, err error) {
	tcp, isTCP := c.(*net.TCPConn)
	local, hasAddr := c.LocalAddr().(*net.TCPAddr)
	if !isTCP || !hasAddr {
		return at, errors.New("it is no connection of TCP")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return at, err
	}
	err2 := raw.Control(func(fd uintptr) {
		const originalDst = 80 // SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST
		if local.IP.To4() == nil {
			// struct sockaddr_in6 comes first
			info, e := unix.GetsockoptIPv6MTUInfo(int(fd), unix.IPPROTO_IPV6, originalDst)
			if err = e; e == nil {
				at = netip.AddrPortFrom(netip.AddrFrom16(info.Addr.Addr), info.Addr.Port>>8|info.Addr.Port<<8)
			}
			return
		}
		// 16 bytes of struct sockaddr_in
		m, e := unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, originalDst)
		if err = e; e == nil {
			b := m.Multiaddr
			at = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3]))
		}
	})
	return at, errors.Join(err, err2)
}

// TestRedirect: with messages of internal/linux/tasks every connection of a command comes to the socket
// that was made for it, with the address it was going to; a connection to its own loopback address
// does not, and datagrams are refused at once.
func TestRedirect(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	steps := []Step{{Op: OpLoopback}, {Op: OpNetlink, Value: unix.NETLINK_ROUTE,
		Data: tasks.Routes(unix.AF_INET)}}
	listen := []string{"127.0.0.1:15001"}
	// What a connection reads is the address that it was going to.
	same := []string{"tcp 192.0.2.1:80", "tcp 8.8.8.8:443", "tcp 127.0.0.1:3000", "tcp 127.0.0.1:15001",
		"tcp 10.0.0.1:53"}
	refused := []string{"tcp 127.0.0.1:4000", "udp 192.0.2.1:443", "udp 127.0.0.1:9", "udp 10.0.0.1:53"}
	l := launcher(t)
	if hasIPv6(t, l) {
		steps = append(steps, Step{Op: OpNetlink, Value: unix.NETLINK_ROUTE,
			Data: tasks.Routes(unix.AF_INET6)})
		listen = append(listen, "[::1]:15001")
		same = append(same, "tcp [2001:db8::1]:443", "tcp [::1]:3000")
		refused = append(refused, "tcp [::1]:4000", "udp [2001:db8::1]:443")
	}
	steps = append(steps, Step{Op: OpNetlink, Value: unix.NETLINK_NETFILTER,
		Data: tasks.Rules(tasks.Redirection{TCP: 15001, DNS: 15053, Local: []uint16{3000}})})
	want := ""
	for _, to := range same {
		_, at, _ := strings.Cut(to, " ")
		want += to + ": " + at + "\n"
	}
	for _, to := range refused {
		want += to + ": ECONNREFUSED\n"
	}
	for _, at := range listen {
		steps = append(steps, Step{Op: OpListen, Path: at})
	}
	s := script(own, helperStep(t, "reach", append(same, refused...)...))
	s.Namespaces |= NewNet
	sent := handover(t)
	r, w := pipe(t)
	p, err := l.StartWith(before(s, steps...), Files{Stdin: null(t), Stdout: w, Stderr: w,
		Listen: sent.Theirs()})
	var step *StepError
	if errors.As(err, &step) && step.Step.Op == OpNetlink && step.Step.Value == unix.NETLINK_NETFILTER {
		testenv.Lack(t, testenv.Redirect, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	var serving sync.WaitGroup
	var sockets []net.Listener
	for range listen {
		socket := received(t, sent)
		sockets = append(sockets, socket)
		serving.Go(func() { sayDestinations(socket) })
	}
	b, err := io.ReadAll(r)
	if string(b) != want || err != nil {
		t.Errorf("the command printed\n%s%v\nwant\n%s", b, err, want)
	}
	finishAll(t, p)
	for _, socket := range sockets {
		socket.Close()
	}
	serving.Wait()
}

// sayDestinations answers each connection with the address that it was going to.
func sayDestinations(socket net.Listener) {
	for {
		c, err := socket.Accept()
		if err != nil {
			return
		}
		if at, err := originalDestination(c); err != nil {
			fmt.Fprint(c, err)
		} else {
			fmt.Fprint(c, at)
		}
		c.Close()
	}
}

// TestNetlinkErrors: what the kernel does not acknowledge stops a launch, and so do messages that
// ask for no acknowledgment, or for several.
func TestNetlinkErrors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	route := tasks.Routes(unix.AF_INET)
	silent := bytes.Clone(route)
	silent[6] &^= unix.NLM_F_ACK
	wrong := bytes.Clone(route)
	wrong[unix.SizeofNlMsghdr] = 255 // no family
	for name, data := range map[string][]byte{
		"none": {}, "cut": route[:len(route)-4], "without an acknowledgment": silent, "two acknowledgments": append(bytes.Clone(route), route...),
		"refused": wrong, "exists already": append(silent, route...),
	} {
		t.Run(name, func(t *testing.T) {
			s := script(own, shStep(":"))
			s.Namespaces |= NewNet
			n := null(t)
			p, err := launcher(t).StartWith(before(s, Step{Op: OpLoopback},
				Step{Op: OpNetlink, Value: unix.NETLINK_ROUTE, Data: data}),
				Files{Stdin: n, Stdout: n, Stderr: n})
			if err == nil {
				finishAll(t, p)
				t.Error("the command ran")
			}
		})
	}
}

// BenchmarkRedirect guards: to redirect connections takes less than a tenth of a launch with a network
// namespace of its own.
func BenchmarkRedirect(b *testing.B) {
	testenv.NeedUserNS(b)
	l := launcher(b)
	n := null(b)
	for name, steps := range map[string][]Step{
		"without": {{Op: OpLoopback}},
		"with": {
			{Op: OpLoopback},
			{Op: OpNetlink, Value: unix.NETLINK_ROUTE, Data: tasks.Routes(unix.AF_INET)},
			{Op: OpNetlink, Value: unix.NETLINK_NETFILTER, Data: tasks.Rules(tasks.Redirection{TCP: 15001, DNS: 15053})},
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := script(own, shStep(":"))
			s.Namespaces |= NewNet
			s = before(s, steps...)
			for b.Loop() {
				p, err := l.StartWith(s, Files{Stdin: n, Stdout: n, Stderr: n})
				if err != nil {
					b.Fatal(err)
				}
				finishAll(b, p)
			}
		})
	}
}
