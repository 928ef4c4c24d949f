// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// The kernel notes for an accepted socket who has connected: this process, where it has connected for a
// task. No process can connect as another one, so the supervisor answers the question who it was
// (SO_PEERCRED, SO_PEERPIDFD) in these cases. All others go on to the kernel.

// maxConnected is how many connections are remembered. A server asks who connected as soon as it
// accepts.
const maxConnected = 1024

// A client is the process for which a socket was connected.
type client struct {
	ids   []string // as of processes
	space uint64   // its process namespace
}

// clients are those of the latest connections, by the number of the connected socket.
type clients struct {
	mu    sync.Mutex
	of    map[uint32]client
	order []uint32
}

func (t *clients) add(ino uint32, c client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[uint32]client)
	}
	if _, known := t.of[ino]; !known {
		if t.order = append(t.order, ino); len(t.order) > maxConnected {
			delete(t.of, t.order[0])
			t.order = t.order[1:]
		}
	}
	t.of[ino] = c
}

func (t *clients) find(ino uint32) (client, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.of[ino]
	return c, ok
}

// noteClient remembers for whom a unix socket is about to be connected: the server may ask before the
// connect returns.
func (c *connecting) noteClient() {
	var st unix.Stat_t
	if ids := c.processes(); len(ids) > 0 && unix.Fstat(c.sock, &st) == nil {
		c.clients.add(uint32(st.Ino), client{ids, c.processSpace()})
	}
}

// processSpace returns the number of the task's process namespace; 0 when it is not known.
func (r *request) processSpace() uint64 {
	var st unix.Stat_t
	if unix.Fstatat(r.proc, strconv.Itoa(int(r.n.pid))+"/ns/pid", &st, 0) != nil {
		return 0
	}
	return st.Ino
}

// judgePeer answers the question who has connected, where this process has for a task.
func (r *request) judgePeer() syscall.Errno {
	if r.cfg.NoSockets || r.cfg.UnixOpen {
		return 0
	}
	sock, errno := r.duplicate(int32(r.n.args[0]))
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
	by, ok := r.clients.find(ino)
	if !ok {
		return 0
	}
	if uint32(r.n.args[2]) == unix.SO_PEERPIDFD {
		return r.tellProcess(by)
	}
	pid, ok := r.numberOf(by)
	if !ok {
		return 0
	}
	b := binary.NativeEndian.AppendUint32(nil, uint32(pid))
	b = binary.NativeEndian.AppendUint32(b, mappedID(r.idMap("uid_map"), ucred.Uid))
	b = binary.NativeEndian.AppendUint32(b, mappedID(r.idMap("gid_map"), ucred.Gid))
	return r.tellOption(b)
}

// numberOf returns the number of a client in the process namespace of the task that asks.
func (r *request) numberOf(by client) (int, bool) {
	level := len(r.processes()) - 1
	if level < 0 || level >= len(by.ids) || level != r.ownLevel() && by.space != r.processSpace() {
		return 0, false
	}
	pid, err := strconv.Atoi(by.ids[level])
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
	network, err := relatedSpace(sock, siocGSKNS)
	if err != nil {
		return -1
	}
	defer unix.Close(network)
	user, ok := ownerOf(network)
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
	if peek(r.n.pid, r.n.args[4], b[:]) != len(b) {
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
	if !r.poke(r.n.args[3], value) || !r.poke(r.n.args[4], b[:]) {
		return unix.EFAULT
	}
	r.made = true
	return 0
}

// tellProcess answers with a descriptor of a process, or as for one that has ended.
func (r *request) tellProcess(by client) syscall.Errno {
	pid, err := strconv.Atoi(by.ids[0])
	if err != nil {
		return 0
	}
	own, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return unix.ESRCH
	}
	defer unix.Close(own)
	was := *r
	was.n.pid = uint32(pid)
	// The number may be that of a process outside by now. One that has the same numbers in the same
	// namespaces, and is still there afterwards, is the command's.
	if was.processSpace() != by.space || !slices.Equal(was.processes(), by.ids) ||
		unix.PidfdSendSignal(own, 0, nil, 0) != nil {
		return unix.ESRCH
	}
	n, errno := r.l.addFD(r.n.id, own, unix.O_CLOEXEC)
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
	n, err := unix.ProcessVMWritev(int(r.n.pid), []unix.Iovec{local},
		[]unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	return err == nil && n == len(b)
}

// idMap returns a table of ids of the task: a number inside, that of this process, and how many.
func (r *request) idMap(name string) string { return string(r.about(int(r.n.pid), "/"+name)) }

// mappedID returns what an id of this process is in a table; the overflow id where it is not there.
func mappedID(table string, id uint32) uint32 {
	const overflow = 65534
	for line := range strings.Lines(table) {
		var n [3]uint64
		for i, word := range strings.Fields(line) {
			if i < len(n) {
				n[i], _ = strconv.ParseUint(word, 10, 32)
			}
		}
		if own := uint64(id); own >= n[1] && own < n[1]+n[2] {
			return uint32(n[0] + own - n[1])
		}
	}
	return overflow
}
