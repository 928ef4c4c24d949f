// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerOf returns the process that connected. The caller must call Close.
func PeerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Xucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL,
			unix.LOCAL_PEERCRED)
	}); cerr != nil {
		return Peer{}, cerr
	}
	if err != nil {
		return Peer{}, err
	}
	return Peer{uid: int(cred.Uid)}, nil
}

// A Peer is the process at the other end of a socket.
type Peer struct{ uid int }

// Close frees what a Peer holds.
func (p Peer) Close() {}

// Own reports whether the process is one of this user's.
func (p Peer) Own() bool { return p.uid == os.Geteuid() }

// Confined reports whether the process is in a sandbox in which this one is not. It is not known
// here: profiles deny the sockets.
func (p Peer) Confined() bool { return false }

// openDir are the flags that open the directory of a socket.
const openDir = unix.O_RDONLY | unix.O_DIRECTORY

// address returns the name of the socket. A long one is an error of bind and connect.
func (p place) address() string { return p.path }
