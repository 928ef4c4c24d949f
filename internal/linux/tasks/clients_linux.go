// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"strconv"
	"strings"
	"sync"
)

// maxClients is how many connections are remembered. A server asks who connected as soon as it
// accepts.
const maxClients = 1024

// A Client is the process for which a socket was connected.
type Client struct {
	IDs   []string // its numbers, from those of this process's namespace to those of its own
	Space uint64   // the number of its process namespace
}

// Clients are those of the latest connections, by the number of the connected socket. The zero Clients are
// ready; their methods may be called from several goroutines at once.
type Clients struct {
	mu    sync.Mutex
	of    map[uint32]Client
	order []uint32
}

// Add remembers a client, in the place of the oldest one.
func (t *Clients) Add(ino uint32, c Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[uint32]Client)
	}
	if _, known := t.of[ino]; !known {
		if t.order = append(t.order, ino); len(t.order) > maxClients {
			delete(t.of, t.order[0])
			t.order = t.order[1:]
		}
	}
	t.of[ino] = c
}

// Find returns the client of a socket.
func (t *Clients) Find(ino uint32) (Client, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.of[ino]
	return c, ok
}

// MappedID returns what an id of this process is in a table; the overflow id where it is not there.
func MappedID(table string, id uint32) uint32 {
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
