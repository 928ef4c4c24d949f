// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// KnownSecrets is what searches by content have found below one home directory: files that have no line in
// the table, which only their owner can read and which begin with a private key or a token, and copies that
// editors and people leave beside a store. The zero value knows nothing. It may be used from several
// goroutines at once.
//
// A search looks at the names in the home directory, in the directories in it, and in those whose names
// begin with a dot down to searchDepth. What was found is trusted as long as the times of the directory
// and of each candidate are the same, and for maxAge, because a mode can change without them. So that a
// search costs a start little, it looks at those times in the first two levels, and at mostDeeper others
// beginning at a random one.
type KnownSecrets struct {
	mu      sync.Mutex
	home    *node
	since   int64 // when the search began anew, in nanoseconds since 1970
	changed bool
}

const (
	// mostDirectories, mostNames and mostLooks bound one search: directories whose times are looked at, names
	// that are read, and files that are looked into. What is beyond is not searched.
	mostDirectories = 2000
	mostNames       = 40_000
	mostLooks       = 1000
	mostDeeper      = 64
)

// A node is a directory.
type node struct {
	path  string // below the home; empty for the home
	stamp stamp  // the zero value: it must be read again
	depth int
	files []candidate
	dirs  []node
}

// A candidate is a file that may be a store, or is one.
type candidate struct {
	path   string // below the home
	copyOf string // the path below the home of a store that it is a copy of; empty for another file
	stamp  stamp
	secret bool
}

// A stamp changes with a directory or a file.
type stamp struct {
	changed int64 // in nanoseconds since 1970
	inode   uint64
}

// Changed reports whether [KnownSecrets.Bytes] has more than when they were read.
func (k *KnownSecrets) Changed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Bytes returns what is known, for [ReadKnownSecrets].
func (k *KnownSecrets) Bytes() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = false
	if k.home == nil {
		return nil
	}
	var body []byte
	var dirs, files uint64
	for queue := []*node{k.home}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		dirs, files = dirs+1, files+uint64(len(n.files))
		body = n.append(body)
		for i := range n.dirs {
			queue = append(queue, &n.dirs[i])
		}
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(k.since))
	b = binary.AppendUvarint(binary.AppendUvarint(b, dirs), files)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// append appends a directory. Those in it follow later, all of them together.
func (n *node) append(b []byte) []byte {
	b = n.stamp.append(appendText(b, n.path))
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(n.dirs))), uint64(len(n.files)))
	for i := range n.files {
		f := &n.files[i]
		b = f.stamp.append(appendText(appendText(b, f.path), f.copyOf))
		b = append(b, map[bool]byte{true: 1}[f.secret])
	}
	return b
}

func (s stamp) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(s.changed)), s.inode)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ReadKnownSecrets is the inverse of [KnownSecrets.Bytes]. What is not whole knows nothing.
func ReadKnownSecrets(b []byte) *KnownSecrets {
	k := new(KnownSecrets)
	if len(b) < 12 {
		return k
	}
	sum := len(b) - 4
	if crc32.ChecksumIEEE(b[:sum]) != binary.LittleEndian.Uint32(b[sum:]) {
		return k
	}
	r := &reader{text: string(b[8:sum])} // paths are parts of it
	if home := r.home(); home != nil {
		k.since, k.home = int64(binary.LittleEndian.Uint64(b)), home
	}
	return k
}

type reader struct {
	text string
	bad  bool
}

// home returns the home directory with all that is in it; nil for a text that is not whole.
func (r *reader) home() *node {
	dirs, files := r.number(), r.number()
	if dirs == 0 || dirs > mostDirectories || files > mostNames {
		return nil
	}
	nodes, all := make([]node, dirs), make([]candidate, files)
	below := nodes[1:]
	for i := range nodes {
		n := &nodes[i]
		n.path, n.stamp = r.take(r.number()), r.stamp()
		d, f := r.number(), r.number()
		if r.bad || d > uint64(len(below)) || f > uint64(len(all)) {
			return nil
		}
		n.dirs, below = below[:d:d], below[d:]
		n.files, all = all[:f:f], all[f:]
		for j := range n.dirs {
			n.dirs[j].depth = n.depth + 1
		}
		for j := range n.files {
			n.files[j] = candidate{r.take(r.number()), r.take(r.number()), r.stamp(), r.take(1) == "\x01"}
		}
	}
	if r.bad || r.text != "" || len(below) > 0 || len(all) > 0 {
		return nil
	}
	return &nodes[0]
}

// take returns the next n bytes; with fewer of them nothing, and all that follows is bad.
func (r *reader) take(n uint64) string {
	if n > uint64(len(r.text)) {
		r.bad, r.text = true, ""
		return ""
	}
	s := r.text[:n]
	r.text = r.text[n:]
	return s
}

func (r *reader) number() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		c := r.take(1)
		if c == "" {
			return 0
		}
		n |= uint64(c[0]&0x7f) << shift
		if c[0] < 0x80 {
			return n
		}
	}
	r.bad = true
	return 0
}

func (r *reader) fixed() (n uint64) {
	s := r.take(8)
	for i := len(s) - 1; i >= 0; i-- {
		n = n<<8 | uint64(s[i])
	}
	return n
}

func (r *reader) stamp() stamp { return stamp{int64(r.fixed()), r.fixed()} }
