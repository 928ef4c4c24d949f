// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"sync"
)

// A cache remembers the digests of programs that commands cannot change, for the questions of one
// process.
type cache struct {
	mu   sync.Mutex
	kept map[string]kept // by path
}

type kept struct {
	info os.FileInfo
	sum  string
}

// digests are those of this process.
var digests cache

// of returns the digest of an open file; empty if it cannot be read.
func (c *cache) of(f *file) string {
	c.mu.Lock()
	old, ok := c.kept[f.real]
	c.mu.Unlock()
	if ok && unchanged(old.info, f.info) {
		return old.sum
	}
	sum, err := f.read()
	if err != nil {
		return ""
	}
	const most = 256
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= most {
		c.kept = map[string]kept{}
	}
	c.kept[f.real] = kept{f.info, sum}
	return sum
}
