// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A place is where a socket is: a name in an open directory, which must be closed.
type place struct {
	dir  *os.File
	path string
}

func open(path string) (place, error) {
	dir, err := os.OpenFile(filepath.Dir(path), openDir, 0) //nolint:forbidigo // nothing is made
	return place{dir, path}, err
}

func (p place) name() string { return filepath.Base(p.path) }

// is returns ErrNotExist if nothing is there, and a *ForeignError for what is no socket, such as a
// link, or with mine another user's.
func (p place) is(mine bool) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(p.dir.Fd()), p.name(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: p.path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || mine && int(st.Uid) != os.Geteuid() {
		return &ForeignPeerError{p.path}
	}
	return nil
}

func (p place) dial(ctx context.Context, mine bool) (*net.UnixConn, error) {
	if err := p.is(mine); err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", p.address())
	if err != nil {
		return nil, p.named(err)
	}
	return c.(*net.UnixConn), nil //nolint:errcheck,forcetypeassert // of this network
}

// named returns an error of package net with the path in the place of the address.
func (p place) named(err error) error {
	var of *net.OpError
	if errors.As(err, &of) {
		return &net.OpError{Op: of.Op, Net: of.Net,
			Addr: &net.UnixAddr{Name: p.path, Net: "unix"}, Err: of.Err}
	}
	return err
}

// tidy removes a socket at which no process listens, and reports whether there is none.
func (p place) tidy() bool {
	c, err := p.dial(context.Background(), false) // to connect does not block
	if err == nil {
		_ = c.Close() // one does
		return false
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		err = unix.Unlinkat(int(p.dir.Fd()), p.name(), 0)
	}
	return err == nil || errors.Is(err, os.ErrNotExist)
}

// ListenSocket makes a socket to which this user's processes connect, and no others: a sandbox must not
// lead to what acts outside of it. A socket at which no process listens any more is replaced. On Linux
// the path may be as long as any.
func ListenSocket(path string) (net.Listener, error) {
	p, err := open(path)
	if err != nil {
		return nil, err
	}
	l, err := p.listen()
	if err != nil {
		return nil, errors.Join(err, p.dir.Close())
	}
	l.SetUnlinkOnClose(false) // the address may lead elsewhere then
	return &ownSocket{UnixListener: l, remove: sync.OnceFunc(func() {
		_ = unix.Unlinkat(int(p.dir.Fd()), p.name(), 0) // a stale one is replaced
		p.dir.Close()
	})}, nil
}

// lock keeps others of this user's from making or removing a socket: between bind(2) and listen(2)
// one looks as if no process listened. It is not a lock of the directory, which a command may see.
func lock() (*os.File, error) { return Lock("sockets") }

func (p place) listen() (*net.UnixListener, error) {
	held, err := lock()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	address := &net.UnixAddr{Name: p.address(), Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if errors.Is(err, unix.EADDRINUSE) && p.tidy() {
		l, err = net.ListenUnix("unix", address)
	}
	if err != nil {
		return nil, p.named(err)
	}
	if err := p.narrow(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// narrow closes the socket to other users. Where others may write to its directory, the name may be
// something else by now.
func (p place) narrow() error {
	if err := p.is(true); err != nil {
		return err
	}
	return safefile.Chmod(int(p.dir.Fd()), p.name(), 0o600)
}

// DialSocket connects to a socket of this user's. Nothing is sent before it is known that the process
// which listens is this user's and, with outside, that neither is in a sandbox in which the other is
// not; else the error is a *ForeignError. It is ErrNotExist where there is no socket.
func DialSocket(ctx context.Context, path string, outside bool) (*net.UnixConn, error) {
	p, err := open(path)
	if err != nil {
		return nil, err
	}
	defer p.dir.Close()
	c, err := p.dial(ctx, true)
	if err != nil {
		return nil, err
	}
	who, err := PeerOf(c)
	if err == nil {
		if !who.Own() || outside && who.Confined() {
			err = &ForeignPeerError{path}
		}
		who.Close()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// SocketGone reports whether no process listens at a socket, and removes what is left of one that was
// killed.
func SocketGone(path string) bool {
	p, err := open(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer p.dir.Close()
	held, err := lock()
	if err != nil {
		return false
	}
	defer held.Close()
	return p.tidy()
}

// OwnListener returns a listener for a socket of another's making, as that of Listen.
func OwnListener(l *net.UnixListener) net.Listener {
	return &ownSocket{UnixListener: l, remove: func() {}}
}

// An own listener accepts connections of this user's processes outside of sandboxes. Others are
// closed without a word.
type ownSocket struct {
	*net.UnixListener
	remove func()
}

// Accept implements net.Listener.
func (l *ownSocket) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if who, err := PeerOf(c); err == nil {
			welcome := who.Own() && !who.Confined()
			who.Close()
			if welcome {
				return c, nil
			}
		}
		_ = c.Close() // nothing was written
	}
}

// Close implements net.Listener. The name goes first: after that, another process may take it.
func (l *ownSocket) Close() error {
	l.remove()
	return l.UnixListener.Close()
}
