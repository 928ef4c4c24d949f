// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/network"
)

// published serves a port with sockets of this network, and returns where.
func published(t *testing.T, port uint16) (*Published, string) {
	t.Helper()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	p, err := Publish([]network.Publish{{Port: port, HostPort: portOf(free)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	serve(t, p)
	return p, at
}

// serve has p serve with MaxPublished sockets of this network.
func serve(t *testing.T, p *Published) {
	t.Helper()
	var all [2][]*os.File
	for i, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for range MaxPublished {
			fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], os.NewFile(uintptr(fd), "test"))
		}
	}
	p.Serve(all[0], all[1])
}

// portOf returns the port at which a listener is, or was.
func portOf(l net.Listener) uint16 { return netip.MustParseAddrPort(l.Addr().String()).Port() }

// echo answers what it gets, when its client has sent all.
func echo(t *testing.T, address string) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				text, _ := io.ReadAll(c)
				_, _ = c.Write(text)
			})
		}
	})
	return portOf(l)
}

// exchange sends a text and returns what comes back.
func exchange(at, text string) (string, error) {
	c, err := net.Dial("tcp4", at)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return "", net.ErrClosed
	}
	if err := half.CloseWrite(); err != nil {
		return "", err
	}
	got, err := io.ReadAll(c)
	return string(got), err
}

// TestPublished: connections reach the server, one after the other and at once, far more often than
// there are sockets, and also a server that only has IPv6.
func TestPublished(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			_, at := published(t, echo(t, address))
			var all sync.WaitGroup
			for i := range 5 * MaxPublished {
				all.Go(func() {
					text := strings.Repeat(fmt.Sprint("text ", i, "\n"), 10000)
					if got, err := exchange(at, text); err != nil || got != text {
						t.Errorf("%d: %d bytes of %d, %v", i, len(got), len(text), err)
					}
				})
			}
			all.Wait()
			for i := range 3 * MaxPublished {
				if got, err := exchange(at, "again"); err != nil || got != "again" {
					t.Fatalf("%d: %q, %v", i, got, err)
				}
			}
		})
	}
}

// TestPublishedNothing: where nothing listens inside, the connection is reset, and later ones succeed.
func TestPublishedNothing(t *testing.T) {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside := free.Addr().String()
	port := portOf(free)
	_ = free.Close()
	_, at := published(t, port)
	for range 2 * MaxPublished {
		if got, err := exchange(at, "x"); err == nil {
			t.Fatalf("%q", got)
		}
	}
	echo(t, inside)
	if got, err := exchange(at, "x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPublishedClose: the end of the command ends connections that are open, and frees the port.
func TestPublishedClose(t *testing.T) {
	p, at := published(t, echo(t, "127.0.0.1:0"))
	c, err := net.Dial("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := exchange(at, "x"); err != nil { // c was accepted before
		t.Fatal(err)
	}
	p.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the connection goes on: %v", err)
	}
	l, err := net.Listen("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := portOf(l)
	if _, err := Publish([]network.Publish{{Port: 3000, HostPort: port}}); err == nil ||
		!strings.Contains(err.Error(), "is in use") ||
		!strings.Contains(err.Error(), "--publish 3000:HOSTPORT") {
		t.Errorf("%v", err)
	}
}

// TestDial: connections of the proxy to servers inside share the sockets, give them back, and do not wait for
// one.
func TestDial(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		port := echo(t, address)
		p, err := Publish(nil) // a listener would hold a socket as soon as it runs
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		serve(t, p)
		for range 3 { // each socket connects again
			var conns []net.Conn
			for range MaxPublished {
				c, err := p.Dial(port)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				conns = append(conns, c)
			}
			if _, err := p.Dial(port); !errors.Is(err, ErrBusy) {
				t.Errorf("one more: %v", err)
			}
			for _, c := range conns {
				_ = c.Close()
				_ = c.Close()
			}
		}
		if c, err := p.Dial(1); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("nothing listens: %v, %v", c, err)
		}
		last, err := p.Dial(port)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		if _, err := last.Write([]byte("x")); err == nil {
			t.Error("a connection outlives its command")
		}
		_ = last.Close()
	}
}
