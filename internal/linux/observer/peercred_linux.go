// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// The kernel notes for an accepted socket who has connected: this process, where it has connected for a
// task. No process can connect as another one, so the supervisor answers the question who it was
// (SO_PEERCRED, SO_PEERPIDFD) in these cases. All others go on to the kernel.

// noteClient remembers for whom a unix socket is about to be connected: the server may ask before the
// connect returns.
func (c *connecting) noteClient() {
	var st unix.Stat_t
	if ids := c.processes(); len(ids) > 0 && unix.Fstat(c.sock, &st) == nil {
		c.clients.Add(uint32(st.Ino), tasks.Client{IDs: ids, Space: c.processSpace()})
	}
}

// processSpace returns the number of the task's process namespace; 0 when it is not known.
func (r *request) processSpace() uint64 {
	var st unix.Stat_t
	if unix.Fstatat(r.proc, strconv.Itoa(int(r.n.PID))+"/ns/pid", &st, 0) != nil {
		return 0
	}
	return st.Ino
}

// judgePeer answers the question who has connected, where this process has for a task.
func (r *request) judgePeer() syscall.Errno {
	if r.cfg.NoSockets || r.cfg.UnixOpen {
		return 0
	}
	sock, errno := r.duplicate(int32(r.n.Args[0]))
	if errno != 0 {
		return 0 // EBADF
	}
	defer r.release(sock)
	ucred, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(ucred.Pid) != os.Getpid() {
		return 0
	}
	ino, ok := r.peer(sock)
	if !ok {
		return 0
	}
	by, ok := r.clients.Find(ino)
	if !ok {
		return 0
	}
	if uint32(r.n.Args[2]) == unix.SO_PEERPIDFD {
		return r.tellProcess(by)
	}
	pid, ok := r.numberOf(by)
	if !ok {
		return 0
	}
	b := binary.NativeEndian.AppendUint32(nil, uint32(pid))
	b = binary.NativeEndian.AppendUint32(b, tasks.MappedID(r.idMap("uid_map"), ucred.Uid))
	b = binary.NativeEndian.AppendUint32(b, tasks.MappedID(r.idMap("gid_map"), ucred.Gid))
	return r.tellOption(b)
}

// numberOf returns the number of a client in the process namespace of the task that asks.
func (r *request) numberOf(by tasks.Client) (int, bool) {
	level := len(r.processes()) - 1
	if level < 0 || level >= len(by.IDs) || level != r.ownLevel() && by.Space != r.processSpace() {
		return 0, false
	}
	pid, err := strconv.Atoi(by.IDs[level])
	return pid, err == nil
}

// peer returns the number of the socket that one is connected to.
func (r *request) peer(sock int) (uint32, bool) {
	if r.diag < 0 {
		r.diag = r.diagnose(sock)
	}
	own, err := unix.GetsockoptUint64(r.diag, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, false
	}
	theirs, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil || own != theirs {
		return 0, false // of another network, which was handed in or made inside
	}
	return tasks.PeerOf(r.diag, sock)
}

// diagnose opens a socket that asks the kernel about sockets of the command's network; -1 is none.
func (r *request) diagnose(sock int) int {
	const family, kind, protocol = unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG
	if !r.cfg.PrivateNetwork {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return -1
		}
		return fd
	}
	network, err := tasks.RelatedSpace(sock, tasks.SocketNS)
	if err != nil {
		return -1
	}
	defer unix.Close(network)
	user, ok := tasks.OwnerOf(network)
	if !ok {
		return -1
	}
	defer unix.Close(user)
	fd, err := launch.SocketInside(user, network, family, kind, protocol)
	if err != nil {
		return -1
	}
	return fd
}

// tellOption answers a getsockopt(2).
func (r *request) tellOption(value []byte) syscall.Errno {
	var b [4]byte
	if tasks.Peek(r.n.PID, r.n.Args[4], b[:]) != len(b) {
		return unix.EFAULT
	}
	size := int(int32(binary.NativeEndian.Uint32(b[:])))
	if size < 0 {
		return unix.EINVAL
	}
	value = value[:min(size, len(value))]
	if !r.valid() {
		return unix.EINTR
	}
	binary.NativeEndian.PutUint32(b[:], uint32(len(value)))
	if !r.poke(r.n.Args[3], value) || !r.poke(r.n.Args[4], b[:]) {
		return unix.EFAULT
	}
	r.made = true
	return 0
}

// tellProcess answers with a descriptor of a process, or as for one that has ended.
func (r *request) tellProcess(by tasks.Client) syscall.Errno {
	pid, err := strconv.Atoi(by.IDs[0])
	if err != nil {
		return 0
	}
	own, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return unix.ESRCH
	}
	defer unix.Close(own)
	was := *r
	was.n.PID = uint32(pid)
	// The number may be that of a process outside by now. One that has the same numbers in the same
	// namespaces, and is still there afterwards, is the command's.
	if was.processSpace() != by.Space || !slices.Equal(was.processes(), by.IDs) ||
		unix.PidfdSendSignal(own, 0, nil, 0) != nil {
		return unix.ESRCH
	}
	n, errno := r.l.AddFD(r.n.ID, own, unix.O_CLOEXEC)
	if errno != 0 {
		return errno
	}
	return r.tellOption(binary.NativeEndian.AppendUint32(nil, uint32(n)))
}

// poke writes memory of the task, and reports whether it could.
func (r *request) poke(at uint64, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	n, err := unix.ProcessVMWritev(int(r.n.PID), []unix.Iovec{local},
		[]unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	return err == nil && n == len(b)
}

// idMap returns a table of ids of the task: a number inside, that of this process, and how many.
func (r *request) idMap(name string) string { return string(r.about(int(r.n.PID), "/"+name)) }
