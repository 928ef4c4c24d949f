// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"slices"
)

// Holders returns which of some trees of processes have a socket open that is bound to a local port and does
// not listen: of TCP, or of UDP. The trees are in one network namespace. The answer may have several, where
// several sockets have the port, or processes have a socket in common; it is empty where that is not known.
func Holders(trees [][]int, udp bool, port uint16) (holders []int) {
	var inodes []uint64
	for _, pid := range slices.Concat(trees...) {
		p, err := openProcess(pid)
		if err != nil {
			continue
		}
		inodes, err = p.bound(udp, port)
		p.close()
		if err == nil {
			break
		}
	}
	for i, pids := range trees {
		open := map[uint64]bool{}
		for _, pid := range pids {
			if openSockets(pid, open) != nil {
				continue // it has ended; or nothing can be said of it
			}
		}
		if slices.ContainsFunc(inodes, func(n uint64) bool { return open[n] }) {
			holders = append(holders, i)
		}
	}
	return holders
}

// bound returns the sockets that are bound to a local port and do not listen, by their inodes.
func (p *process) bound(udp bool, port uint16) ([]uint64, error) {
	names := []string{"net/tcp", "net/tcp6"}
	if udp {
		names = []string{"net/udp", "net/udp6"}
	}
	var out []uint64
	for _, name := range names {
		f, err := p.open(name, 0)
		if errors.Is(err, errGone) {
			continue // without version 6 there is no such file
		}
		if err != nil {
			return nil, err
		}
		err = eachSocket(f, func(s socket, listens bool) {
			if s.port == int(port) && !listens && s.inode != 0 {
				out = append(out, s.inode)
			}
		})
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
