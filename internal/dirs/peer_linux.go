// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// PeerOf returns the process that connected. The caller must call Close.
func PeerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	p := Peer{handle: -1}
	if cerr := raw.Control(func(fd uintptr) {
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		p.uid, p.pid = int(cred.Uid), int(cred.Pid)
		// Before Linux 6.5 there is none: then the number alone says who it is.
		if p.handle, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); errors.Is(err,
			unix.ENOPROTOOPT) {
			p.handle, err = -1, nil
		}
	}); cerr != nil {
		return Peer{}, cerr
	}
	return p, err
}

// A Peer is the process at the other end of a socket.
type Peer struct {
	uid, pid int
	handle   int // a descriptor of the process; -1 for none
}

// Close frees what a Peer holds.
func (p Peer) Close() {
	if p.handle >= 0 {
		_ = unix.Close(p.handle) // it was read only
	}
}

// Own reports whether the process is one of this user's.
func (p Peer) Own() bool { return p.uid == os.Geteuid() }

// Confined reports whether the process is in a sandbox in which this one is not: it cannot gain
// rights by exec, and has more filters of system calls. Commands have both at every level, and
// cannot undo it. One that has ended, or that cannot be looked at, counts as confined.
func (p Peer) Confined() bool {
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return true
	}
	its, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return true
	}
	if p.handle >= 0 && unix.PidfdSendSignal(p.handle, 0, nil, 0) != nil {
		return true // another process may have its number
	}
	return number(its, "NoNewPrivs") > 0 && number(its, "Seccomp_filters") > number(own, "Seccomp_filters") ||
		number(its, "NoNewPrivs") > number(own, "NoNewPrivs")
}

// number returns a number of a status file; -1 if it is not there.
func number(status []byte, name string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name+":"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil {
		return -1
	}
	return n
}

// openDir are the flags that open the directory of a socket, also one that cannot be read.
const openDir = unix.O_PATH | unix.O_DIRECTORY

// address returns a name for the socket that fits into an address, however long its path is.
func (p place) address() string { return fmt.Sprintf("/proc/self/fd/%d/%s", p.dir.Fd(), p.name()) }
