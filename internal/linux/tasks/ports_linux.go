// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bounds of [ListeningPorts].
const (
	maxSockets     = 64 << 20 // bytes of one table; a line has 150
	maxDescriptor  = 1 << 20  // descriptors of one process, the kernel's default for fs.nr_open
	maxTableLine   = 512      // bytes of a line
	socketListens  = 0x0a     // TCP_LISTEN in include/net/tcp_states.h
	socketLinkSize = 64       // of "socket:[INODE]"
)

// ListeningPorts returns the TCP ports, of both versions of IP, that a tree of
// processes listens on, in ascending order and each once; none is an empty list.
//
// pids are the processes of the tree as this process sees them. With ownNetwork the tree
// has a network namespace to itself, and every listening socket in the namespace of the
// first living process is its own; without, only those count that one of the processes
// has open. It reads tables of the kernel and does not block on the network.
//
// The error wraps [os.ErrProcessDone] if none of the processes lives. If a process
// cannot be looked into, or a table is too long or not in the kernel's format, the ports
// that were found come with an error: there can be more.
func ListeningPorts(pids []int, ownNetwork bool) ([]int, error) {
	sockets, err := listening(pids)
	if sockets == nil {
		return nil, err
	}
	problems := []error{err}
	if !ownNetwork && len(sockets) > 0 {
		open := map[uint64]bool{}
		for _, pid := range pids {
			if err := openSockets(pid, open); err != nil && !errors.Is(err, errGone) {
				problems = append(problems, fmt.Errorf("inputwait: sockets of process %d: %w", pid, err))
			}
		}
		sockets = slices.DeleteFunc(sockets, func(s socket) bool { return !open[s.inode] })
	}
	ports := make([]int, 0, len(sockets))
	for _, s := range sockets {
		ports = append(ports, s.port)
	}
	slices.Sort(ports)
	return slices.Compact(ports), errors.Join(problems...)
}

// A socket is one that listens.
type socket struct {
	port     int
	loopback bool // connections to the loopback interface come to it
	inode    uint64
}

// listening returns the listening sockets in the network namespace of the first living
// process; nil if there is none.
func listening(pids []int) ([]socket, error) {
	for _, pid := range pids {
		if pid <= 0 {
			continue
		}
		p, err := openProcess(pid)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inputwait: process %d: %w", pid, err)
		}
		sockets, err := p.listening()
		p.close()
		if sockets != nil {
			return sockets, err
		}
	}
	return nil, fmt.Errorf("inputwait: ports: %w", os.ErrProcessDone)
}

// listening returns the listening sockets in the network namespace of the process; nil
// if it has ended.
func (p *process) listening() ([]socket, error) {
	if restOf(p.leader.state) == ended && p.leader.threads <= 1 {
		return nil, nil
	}
	sockets := []socket{}
	var problems []error
	found := false
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		f, err := p.open(name, 0)
		if errors.Is(err, errGone) {
			continue // without version 6 there is no such file
		}
		found = true
		if err == nil {
			sockets, err = parseSockets(f, sockets)
			f.Close()
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("inputwait: table %s of process %d: %w", name, p.pid, err))
		}
	}
	if !found {
		return nil, nil
	}
	return sockets, errors.Join(problems...)
}

// parseSockets appends the listening sockets in a table of /proc/net (proc_pid_net(5))
// to list. A table of more than maxSockets bytes is an error.
func parseSockets(table io.Reader, list []socket) ([]socket, error) {
	err := eachSocket(table, func(s socket, listens bool) {
		if listens {
			list = append(list, s)
		}
	})
	return list, err
}

// eachSocket calls f for each socket in a table.
func eachSocket(table io.Reader, f func(s socket, listens bool)) error {
	r := bufio.NewReaderSize(table, 16<<10)
	size := 0
	for header := true; ; header = false {
		line, err := r.ReadSlice('\n')
		size += len(line)
		switch {
		case size > maxSockets:
			return errBounds
		case errors.Is(err, io.EOF) && len(line) == 0 && !header:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return errFormat
		case err != nil:
			return classify(err)
		case header:
			continue
		}
		s, listens, err := parseSocket(line)
		if err != nil {
			return err
		}
		f(s, listens)
	}
}

// parseSocket reads one line of a table: number, local and remote address, state,
// queues, timer, retransmits, user, timeout, inode, and more.
// It reports whether the socket listens.
func parseSocket(line []byte) (socket, bool, error) {
	fields := bytes.Fields(line)
	if len(line) > maxTableLine || len(fields) < 10 || !bytes.HasSuffix(fields[0], []byte(":")) {
		return socket{}, false, errFormat
	}
	state, err := strconv.ParseUint(string(fields[3]), 16, 8)
	if err != nil {
		return socket{}, false, errFormat
	}
	address, port, ok := bytes.Cut(fields[1], []byte(":"))
	if !ok || len(address) != 8 && len(address) != 32 || len(port) != 4 {
		return socket{}, false, errFormat
	}
	number, err := strconv.ParseUint(string(port), 16, 16)
	if err != nil {
		return socket{}, false, errFormat
	}
	inode, err := decimal(fields[9])
	if err != nil {
		return socket{}, false, err
	}
	s := socket{port: int(number), loopback: atLoopback(string(address)), inode: inode}
	return s, state == socketListens, nil
}

// openSockets adds the inodes of the sockets that a process has open to the set.
func openSockets(pid int, set map[uint64]bool) error {
	if pid <= 0 {
		return nil
	}
	p, err := openProcess(pid)
	if err != nil {
		return err
	}
	defer p.close()
	names, err := p.names("fd", maxDescriptor)
	if err != nil {
		return err
	}
	for _, name := range names {
		var link [socketLinkSize]byte
		n, err := unix.Readlinkat(p.dir, "fd/"+name, link[:])
		if errors.Is(err, unix.ENOENT) {
			continue // closed meanwhile
		}
		if err != nil {
			return classify(err)
		}
		if inode, ok := parseSocketLink(link[:n]); ok {
			set[inode] = true
		}
	}
	return nil
}

// parseSocketLink returns the inode in the target of a descriptor's link, and whether it
// is a socket. The path of a file begins with a slash.
func parseSocketLink(text []byte) (uint64, bool) {
	inner, ok := bytes.CutPrefix(text, []byte("socket:["))
	if !ok {
		return 0, false
	}
	inner, ok = bytes.CutSuffix(inner, []byte("]"))
	inode, err := decimal(inner)
	return inode, ok && err == nil && inode > 0
}
