// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"slices"
	"sync"
)

// An indexes remembers the gitlinks of indexes that are looked at again and again while a command
// runs. The nil one never does. It trusts what it remembers only while times, inode and device of a
// file are the same. It may be used from several goroutines at once; one waits for the other.
type indexes struct {
	mu    sync.Mutex
	known map[string]indexRecord
}

// An indexRecord is what was in an index.
type indexRecord struct {
	hash  int
	stamp stamp
	names []string
}

// maxIndexes is how many indexes are remembered.
const maxIndexes = 64

// gitlinks is [readGitlinks] with that memory.
func (c *indexes) gitlinks(index string, hash int) ([]string, error) {
	if c == nil {
		return readGitlinks(index, hash)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, err := lstatStamp(index)
	if err != nil {
		return readGitlinks(index, hash)
	}
	if known, ok := c.known[index]; ok && known.stamp == before && known.hash == hash {
		return slices.Clone(known.names), nil
	}
	now := nowStamp()
	names, err := readGitlinks(index, hash)
	if err != nil || before.racy(now) || isLink(index) {
		return names, err
	}
	if after, err := lstatStamp(index); err == nil && after == before {
		if c.known == nil || len(c.known) >= maxIndexes {
			c.known = make(map[string]indexRecord)
		}
		c.known[index] = indexRecord{hash: hash, stamp: before, names: slices.Clone(names)}
	}
	return names, nil
}
