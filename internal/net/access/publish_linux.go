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
	"slices"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/network"
)

// MaxPublished is how many connections to published ports of one command are open at once. Others wait.
const MaxPublished = 32

// Own is how many connections of the proxy to a command's own servers are open at once, where no port is
// published. Further ones are refused.
const Own = 12

// ErrBusy is the end of a connection for which no socket is free.
var ErrBusy = errors.New("too many connections to the command's own servers; " +
	"connect without the proxy, as NO_PROXY says")

// Published serves the published ports of one command, and connects to its servers. The nil Published serves
// none.
type Published struct {
	ports     []network.Publish
	listeners []net.Listener
	sockets   chan inside // that are free
	over      chan struct{}
	serving   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// An inside is a pair of sockets of the command's own network, which connect again and again: who
// connects needs no right there that the socket has not.
type inside struct{ four, six *os.File } // six is nil where the machine has no IPv6

// Publish listens at the ports of this machine, of which there may be none. The error is for people; it
// names a port in use.
func Publish(ports []network.Publish) (*Published, error) {
	p := &Published{ports: slices.Clone(ports), sockets: make(chan inside, MaxPublished),
		over: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	for i, one := range ports {
		p.ports[i].HostPort = one.Host()
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(one.Host()))))
		if err != nil {
			p.Close()
			if errors.Is(err, unix.EADDRINUSE) {
				return nil, fmt.Errorf("port %d of this machine is in use, so port %d of the command cannot be published there; choose another port with --publish %d:HOSTPORT", one.Host(), one.Port, one.Port)
			}
			return nil, fmt.Errorf("port %d cannot be published: %w", one.Port, err)
		}
		p.listeners = append(p.listeners, l)
	}
	return p, nil
}

// Ports returns the ports; nil for a nil Published.
func (p *Published) Ports() []network.Publish {
	if p == nil {
		return nil
	}
	return slices.Clone(p.ports)
}

// Serve begins to serve with the sockets that the launch has made: those for IPv4, and as many for IPv6
// or none. It owns them.
func (p *Published) Serve(four, six []*os.File) {
	for i, f := range four {
		s := inside{four: f}
		if i < len(six) {
			s.six = six[i]
		}
		p.sockets <- s
	}
	for i, l := range p.listeners {
		p.serving.Go(func() { p.accept(l, p.ports[i].Port) })
	}
}

// Close ends all connections and frees the ports. It can be called again.
func (p *Published) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.over)
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.serving.Wait()
	for {
		select {
		case s := <-p.sockets:
			s.close()
		default:
			return
		}
	}
}

func (s inside) close() {
	_ = s.four.Close()
	if s.six != nil {
		_ = s.six.Close()
	}
}

// accept accepts connections at one port while there are free sockets.
func (p *Published) accept(l net.Listener, port uint16) {
	for {
		var s inside
		select {
		case s = <-p.sockets:
		case <-p.over:
			return
		}
		c, err := l.Accept()
		if err != nil {
			p.sockets <- s
			var short unix.Errno
			if !errors.As(err, &short) || short != unix.EMFILE && short != unix.ENFILE &&
				short != unix.ECONNABORTED {
				return // closed
			}
			select {
			case <-p.over:
				return
			case <-time.After(time.Second): // until descriptors are free again
			}
			continue
		}
		p.serving.Go(func() {
			if tcp, ok := c.(*net.TCPConn); ok {
				p.serve(tcp, s, port)
			}
			p.sockets <- s
		})
	}
}

// serve joins a connection with one to the port inside.
func (p *Published) serve(c *net.TCPConn, s inside, port uint16) {
	defer func() { _ = c.Close() }()
	if !p.add(c) {
		return
	}
	defer p.remove(c)
	server, used, err := p.server(s, port)
	if err != nil {
		_ = c.SetLinger(0) // reset, as where nothing listens
		return
	}
	var back sync.WaitGroup
	back.Go(func() { join(c, server) })
	join(server, c)
	back.Wait()
	p.remove(server)
	_ = server.Close()
	disconnect(used)
}

// server connects to a port of the loopback interface inside, by IPv4 or else IPv6, with one of the sockets.
func (p *Published) server(s inside, port uint16) (c *net.TCPConn, used *os.File, err error) {
	used = s.four
	c, err = p.connect(used, unix.AF_INET, port)
	if err != nil && s.six != nil {
		used = s.six
		c, err = p.connect(used, unix.AF_INET6, port)
	}
	return c, used, err
}

// Dial connects to a port of the loopback interface inside. It does not wait for a socket that is free.
func (p *Published) Dial(port uint16) (net.Conn, error) {
	var s inside
	select {
	case s = <-p.sockets:
	default:
		return nil, ErrBusy
	}
	c, used, err := p.server(s, port)
	if err != nil {
		p.free(s)
		return nil, err
	}
	return &dialed{TCPConn: c, end: sync.OnceFunc(func() {
		p.remove(c)
		_ = c.Close()
		disconnect(used)
		p.free(s)
	})}, nil
}

// free gives back a socket.
func (p *Published) free(s inside) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.close()
		return
	}
	p.sockets <- s
}

// dialed is a connection whose socket connects again when it is closed.
type dialed struct {
	*net.TCPConn
	end func()
}

// Close implements [net.Conn].
func (c *dialed) Close() error {
	c.end()
	return nil
}

// join copies until the source ends, and tells the other side. An error ends both.
func join(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.SetLinger(0)
		_, _ = to.SetDeadline(time.Unix(1, 0)), from.SetDeadline(time.Unix(1, 0))
	}
	_ = to.CloseWrite()
}

func (p *Published) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

func (p *Published) remove(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// connect connects a socket to a port of the loopback interface of its network.
func (p *Published) connect(f *os.File, family int, port uint16) (*net.TCPConn, error) {
	generic, err := net.FileConn(f) // a copy of the descriptor
	if err != nil {
		return nil, err
	}
	c, ok := generic.(*net.TCPConn)
	if !ok || !p.add(c) {
		return nil, errors.Join(net.ErrClosed, generic.Close())
	}
	err = connectTo(c, loopback(family, port))
	if err == nil {
		return c, nil
	}
	p.remove(c)
	_ = c.Close()
	disconnect(f)
	return nil, err
}

func loopback(family int, port uint16) unix.Sockaddr {
	if family == unix.AF_INET6 {
		return &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()}
	}
	return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
}

// connectTo connects, for as long as a server may need to accept.
func connectTo(c *net.TCPConn, to unix.Sockaddr) error {
	const patience = 10 * time.Second
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	controlErr := raw.Control(func(fd uintptr) { err = unix.Connect(int(fd), to) })
	if controlErr != nil || err == nil || !errors.Is(err, unix.EINPROGRESS) {
		return errors.Join(controlErr, err)
	}
	waitErr := raw.Write(func(fd uintptr) bool {
		var code int
		if code, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil {
			return true
		}
		if code != 0 {
			err = unix.Errno(code)
			return true
		}
		_, peerErr := unix.Getpeername(int(fd))
		return peerErr == nil
	})
	if waitErr != nil || err != nil {
		return errors.Join(waitErr, err)
	}
	return c.SetWriteDeadline(time.Time{})
}

// disconnect ends what is left of a connection, so that the socket can connect again (connect(2), AF_UNSPEC).
func disconnect(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		_, _, _ = unix.Syscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
		_, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR) // of the old connection
	})
}
