// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// listeners listens on the host in every way that a command could reach, and
// counts who comes.
func listeners(t *testing.T, a *arena) (kv []string, hits func() int) {
	t.Helper()
	var n atomic.Int64
	serve := func(key string, l net.Listener, err error) {
		t.Helper()
		must(t, err)
		t.Cleanup(func() { l.Close() })
		name := l.Addr().String()
		if key == "abstract" {
			name = name[1:]
		}
		kv = append(kv, key+"="+name)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				n.Add(1)
				c.Close()
			}
		}()
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	serve("tcp4", l, err)
	l, err = net.Listen("tcp6", "[::1]:0")
	serve("tcp6", l, err)
	l, err = net.Listen("unix", fmt.Sprintf("@sallyport-test-%d", os.Getpid()))
	serve("abstract", l, err)
	l, err = net.Listen("unix", a.out+"/s.sock")
	serve("path", l, err)
	must(t, os.Chmod(a.out+"/s.sock", 0o777))
	l, err = net.Listen("unix", a.ws+"/h.sock")
	serve("path-inside", l, err)
	packets := func(key, network, at string) {
		t.Helper()
		c, err := net.ListenPacket(network, at)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		kv = append(kv, key+"="+c.LocalAddr().String())
		go func() {
			b := make([]byte, 8)
			for {
				_, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				n.Add(1)
				if from != nil && network == "udp4" {
					_, _ = c.WriteTo([]byte("x"), from)
				}
			}
		}()
	}
	packets("udp4", "udp4", "127.0.0.1:0")
	packets("path-datagram", "unixgram", a.out+"/d.sock")
	packets("path-inside-datagram", "unixgram", a.ws+"/hd.sock")
	packets("abstract-datagram", "unixgram", fmt.Sprintf("@sallyport-test-datagrams-%d", os.Getpid()))
	if own := ownAddress(); own != "" {
		kv = append(kv, "own="+net.JoinHostPort(own, "9"))
	}
	return kv, func() int { return int(n.Load()) }
}

// ownAddress is an address of this machine other than loopback, if it has one.
func ownAddress() string {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	return ""
}

func TestNetwork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	t.Chdir(a.ws) // as the command line is: the observer must not take a name from there
	kv, hits := listeners(t, a)
	network, sockets := networkAttacks(), socketAttacks()
	delete(network, "own-loopback") // no attack
	delete(sockets, "pair-stream")
	own := []string{"own-path", "mptcp"} // nor these
	for _, name := range own {
		delete(sockets, name)
	}
	a.expect(t, wordDenied, &job{}, names(network, sockets, datagramAttacks()), kv...)
	a.expect(t, wordBreach, &job{}, own)
	if n := hits(); n != 0 {
		t.Errorf("the listeners outside were reached %d times", n)
	}
}

// TestWayOutByProcessOne: process 1 has a directory outside open where a toolchain has a cache,
// and the observer, which connects for the command, may use the links of process 1.
func TestWayOutByProcessOne(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	l, err := net.Listen("unix", c.out+"/s")
	must(t, err)
	defer l.Close()
	for _, link := range []string{"fd/3", "cwd", "root"} {
		path := "/proc/1/" + link + strings.Repeat("/..", 9) + c.out + "/s"
		c.expect(t, wordDenied, &job{env: c.env()}, []string{"path"}, "path="+path)
	}
}

// TestHandedInListener: a socket of the host in the workspace stays one when the command was
// given it.
func TestHandedInListener(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	host := a.policy().WithNetwork(sandbox.NetworkHost)
	for i, p := range []sandbox.Policy{a.policy(), host} {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		f := os.NewFile(uintptr(s), "handed in")
		defer f.Close()
		must(t, unix.Bind(s, &unix.SockaddrUnix{Name: fmt.Sprintf("%s/%d.sock", a.ws, i)}))
		nextTick(t) // on the host's network the age of the file tells
		a.expect(t, wordDenied, &job{policy: &p, stdin: f}, []string{"handed-in"})
	}
}

// TestHandedInDatagrams: a datagram socket of the host that the command was given leads nowhere
// but where it is connected.
func TestHandedInDatagrams(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	kv, hits := listeners(t, a)
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(s), "handed in")
	defer f.Close()
	a.expect(t, wordDenied, &job{stdin: f}, []string{"handed-in-inside", "handed-in-abstract"}, kv...)
	if n := hits(); n != 0 {
		t.Errorf("the listeners outside were reached %d times", n)
	}
}

// nextTick returns when the clock of file systems has passed this moment: the time of a new
// file can be ahead of that clock since Linux 6.13 (multigrain timestamps).
func nextTick(t *testing.T) {
	t.Helper()
	var now, coarse unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_REALTIME, &now))
	for coarse.Nano() <= now.Nano() {
		must(t, unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &coarse))
	}
}

// TestHostNetwork opens IP and nothing else.
func TestHostNetwork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	kv, _ := listeners(t, a)
	p := a.policy().WithNetwork(sandbox.NetworkHost)
	a.expect(t, wordBreach, &job{policy: &p}, []string{"tcp4", "tcp6", "udp4", "own-path"}, kv...)
	sockets := socketAttacks()
	delete(sockets, "pair-stream")
	delete(sockets, "own-path")
	delete(sockets, "icmp") // goes with the host's network
	delete(sockets, "mptcp")
	t.Run("sockets", func(t *testing.T) {
		a.expect(t, wordDenied, &job{policy: &p}, names(sockets, datagramAttacks()), kv...)
	})
	t.Run("unix allowed", func(t *testing.T) {
		// The name of the socket is in the host's network, and only Landlock's
		// scope keeps it out of reach.
		a.expect(t, wordDenied, &job{policy: &p, allow: []string{"unix"}}, []string{"abstract"}, kv...)
		a.expect(t, wordBreach, &job{policy: &p, allow: []string{"unix"}},
			[]string{"path", "path-inside", "own-path"}, kv...)
		// A thread of ours made the connection, and gave rights up for it.
		if sets := threadRights(t); len(sets) != 1 {
			t.Errorf("the threads of this program have different rights: %v", sets)
		}
	})
}

// TestListenerInside makes a port inside that nobody outside can reach.
func TestListenerInside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	l.Close()
	ready, tell := pipe(t)
	goOn, hold := pipe(t)
	defer hold.Close()
	j := &job{stdin: goOn, stdout: tell, args: []string{os.Getenv(programVar), partAttack, "listen",
		"addr=" + addr}}
	j.during = func(*Child) {
		tell.Close()
		b := make([]byte, 64)
		n, err := ready.Read(b)
		if err != nil || trimmed(string(b[:n])) != "listen READY" {
			t.Errorf("%q %v", b[:n], err)
		}
		if c, err := net.Dial("tcp4", addr); err == nil {
			c.Close()
			t.Error("a listener in the sandbox can be reached from outside")
		}
		hold.Close()
	}
	if res := mustRun(t, a, j); res.code != 0 {
		t.Errorf("%+v", res)
	}
	goOn.Close()
	ready.Close()
}

// TestSocketAsInput passes in a socket; it must not become a way to others.
func TestSocketAsInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	mine, theirs := os.NewFile(uintptr(p[0]), "mine"), os.NewFile(uintptr(p[1]), "theirs")
	defer mine.Close()
	defer theirs.Close()
	if _, err := mine.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	must(t, unix.Shutdown(p[0], unix.SHUT_WR))
	if res := mustRun(t, a, &job{stdin: theirs, args: sh(`cat`)}); res.out != "hello" {
		t.Errorf("%+v", res)
	}
}

// threadRights counts the threads of this program by their effective capabilities.
func threadRights(t *testing.T) map[string]int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/status")
	must(t, err)
	sets := make(map[string]int)
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), "\nCapEff:")
		set, _, _ := strings.Cut(rest, "\n")
		sets[strings.TrimSpace(set)]++
	}
	return sets
}
