// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/peer"
	"github.com/sallyport-dev/sallyport/internal/state"
)

// listenUnix makes a socket to which this user's processes connect, and no others: a sandbox
// must not lead to a server that runs processes outside of it. A socket at which no process
// listens any more is replaced.
func listenUnix(path string) (net.Listener, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the path of the socket %q is not absolute: %w", path, errAddress)
	}
	lock, err := state.Lock("serve") // between a look and a removal, no server may start
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	address := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if errors.Is(err, unix.EADDRINUSE) && dead(address) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = net.ListenUnix("unix", address)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return ownListener{l}, nil
}

// dead reports whether a path is a socket at which no process listens.
func dead(address *net.UnixAddr) bool {
	st, err := os.Lstat(address.Name)
	if err != nil || st.Mode().Type() != os.ModeSocket {
		return false
	}
	c, err := net.DialUnix("unix", nil, address)
	if err == nil {
		_ = c.Close() // one does
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// An ownListener accepts connections of this user's processes outside of sandboxes. Others are
// closed without a word.
type ownListener struct{ *net.UnixListener }

func (l ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if who, err := peer.Of(c); err == nil {
			welcome := who.Own() && !who.Confined()
			who.Close()
			if welcome {
				return c, nil
			}
		}
		_ = c.Close() // nothing was written
	}
}
