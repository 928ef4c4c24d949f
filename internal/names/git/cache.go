// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A Cache remembers the directories that [Scan] has read below one root, the
// gitlinks of indexes, and which repositories are plain. The zero value remembers
// nothing; a nil Cache never does. It trusts what it remembers only while times,
// inode and device of a directory or file are the same. It may be used from several
// goroutines at once; one waits for the other.
type Cache struct {
	mu      sync.Mutex
	root    string
	dirs    []dir // the root is the first; a directory comes after the one that it is in
	next    int   // where the next scan begins to check
	indexes map[string]indexRecord
	plain   map[string]plainRecord // by the path of .git
	warned  bool                   // a user knows that not every directory is known
	changed bool
}

// A dir is one directory below the root.
type dir struct {
	path  string // relative to the root; empty for the root
	state dirState
	stamp stamp // when it was read; zero if that failed and it must be read again
}

// A dirState is a set of bits.
type dirState uint8

const (
	dirRead  dirState = 1 << iota // its names have been read
	dirStale                      // it has changed since, and was not read again
	dirRepo                       // it contains .git
	dirBare                       // it is a bare repository
	dirHuge                       // not all of its names could be read
	dirGone                       // it does not exist; such ones are not kept
	dirShut                       // it may not be listed
	dirRacy                       // it was read so soon after a change that a later one may have no other stamp
)

// An indexRecord is what was in an index.
type indexRecord struct {
	hash  int
	stamp stamp
	names []string
}

// A stamp is what changes with a directory or a file. Times are in nanoseconds since
// 1970.
type stamp struct {
	modified, changed int64
	inode, device     uint64
	size              int64
}

// racy reports whether something that was read at the time now, and had the stamp
// then, can change once more without a new stamp: file systems count time in steps
// of up to two seconds (FAT).
func (s stamp) racy(now int64) bool {
	return now-s.modified < racyTime || now-s.changed < racyTime
}

const racyTime = 2e9 // nanoseconds

// nowStamp returns the time in the unit of stamps.
func nowStamp() int64 { return time.Now().UnixNano() }

// Limits of what is remembered. A map that is full is emptied.
const (
	maxCacheBytes = 32 << 20
	maxDirs       = 200_000
	maxIndexes    = 64
	maxPlain      = 4096
)

// gitlinks is [readGitlinks] with the cache's memory.
func (c *Cache) gitlinks(index string, hash int) ([]string, error) {
	if c == nil {
		return readGitlinks(index, hash)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, err := lstatStamp(index)
	if err != nil {
		return readGitlinks(index, hash)
	}
	if known, ok := c.indexes[index]; ok && known.stamp == before && known.hash == hash {
		return slices.Clone(known.names), nil
	}
	now := nowStamp()
	names, err := readGitlinks(index, hash)
	if err != nil || before.racy(now) || isLink(index) {
		return names, err
	}
	if after, err := lstatStamp(index); err == nil && after == before {
		remember(&c.indexes, index, indexRecord{hash: hash, stamp: before, names: slices.Clone(names)}, maxIndexes)
		c.changed = true
	}
	return names, nil
}

// remember adds an entry to a map of at most so many.
func remember[V any](m *map[string]V, key string, value V, most int) {
	if *m == nil || len(*m) >= most {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}

// LoadCache reads what [Cache.Save] has written. A file that is missing, unreadable,
// too big, of another version or damaged gives an empty cache, which only costs time.
func LoadCache(path string) *Cache {
	if text, err := ReadFile(path, maxCacheBytes); err == nil {
		if c, ok := decodeCache(text); ok {
			return c
		}
	}
	return &Cache{}
}

// Changed reports whether there is something to save. A nil cache has nothing.
func (c *Cache) Changed() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Save writes the cache to a file that only its owner can read, in one step: a
// reader sees the old one or the new one. It does nothing if nothing has changed
// since [LoadCache], or for a nil Cache. The directory must exist.
func (c *Cache) Save(path string) error {
	if !c.Changed() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := safefile.Replace(path, c.encode()); err != nil {
		return err
	}
	c.changed = false
	return nil
}

// Warned reports whether [Cache.Warn] was last called with true. A nil cache was not.
func (c *Cache) Warned() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warned
}

// Warn remembers whether a user was told that not every directory is known yet.
func (c *Cache) Warn(warned bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = c.changed || c.warned != warned
	c.warned = warned
}

// cacheMark begins a cache file. Its number changes with the format.
const cacheMark = "sallyport git cache 5\n"

// encode returns the cache as a file: the mark, the directories, the indexes, the
// plain repositories, and a checksum.
func (c *Cache) encode() []byte {
	e := encoder{text: []byte(cacheMark)}
	dirs := c.dirs
	if len(dirs) > maxDirs {
		dirs = nil
	}
	e.string(c.root)
	e.number(uint64(c.next))
	e.number(map[bool]uint64{true: 1}[c.warned])
	e.number(uint64(len(dirs)))
	for i := range dirs {
		e.string(dirs[i].path)
		e.number(uint64(dirs[i].state))
		e.stamp(dirs[i].stamp)
	}
	e.number(uint64(len(c.indexes)))
	for _, path := range slices.Sorted(maps.Keys(c.indexes)) {
		r := c.indexes[path]
		e.string(path)
		e.number(uint64(r.hash))
		e.stamp(r.stamp)
		e.number(uint64(len(r.names)))
		for _, name := range r.names {
			e.string(name)
		}
	}
	e.number(uint64(len(c.plain)))
	for _, link := range slices.Sorted(maps.Keys(c.plain)) {
		e.string(link)
		for _, s := range c.plain[link] {
			e.stamp(s)
		}
	}
	return binary.LittleEndian.AppendUint32(e.text, crc32.ChecksumIEEE(e.text))
}

// decodeCache reads a cache file. It reports false if the file is not whole.
func decodeCache(text []byte) (*Cache, bool) {
	body := len(text) - 4
	if body < len(cacheMark) || string(text[:len(cacheMark)]) != cacheMark ||
		crc32.ChecksumIEEE(text[:body]) != binary.LittleEndian.Uint32(text[body:]) {
		return nil, false
	}
	d := decoder{text: text[len(cacheMark):body]}
	d.same = string(d.text)
	c := &Cache{root: d.string(), next: int(d.number()), warned: d.number() == 1}
	c.dirs = make([]dir, d.count(stampBytes+2))
	for i := range c.dirs {
		c.dirs[i] = dir{path: d.string(), state: dirState(d.number()) &^ dirGone, stamp: d.stamp()}
		if path := c.dirs[i].path; (path == "") != (i == 0) || i > 0 && !filepath.IsLocal(path) {
			return nil, false
		}
	}
	for range d.count(stampBytes + 3) {
		path, r := d.string(), indexRecord{hash: int(d.number()), stamp: d.stamp()}
		r.names = make([]string, d.count(1))
		for i := range r.names {
			r.names[i] = d.string()
		}
		remember(&c.indexes, path, r, maxIndexes)
	}
	for range d.count(4*stampBytes + 1) {
		link, r := d.string(), plainRecord{}
		for i := range r {
			r[i] = d.stamp()
		}
		remember(&c.plain, link, r, maxPlain)
	}
	return c, !d.bad && len(d.text) == 0 && c.next >= 0 && c.next <= len(c.dirs)
}

// stampBytes is how much a stamp takes in a file at least.
const stampBytes = 5

// An encoder appends values to a text.
type encoder struct{ text []byte }

func (e *encoder) number(n uint64) { e.text = binary.AppendUvarint(e.text, n) }

func (e *encoder) string(s string) {
	e.number(uint64(len(s)))
	e.text = append(e.text, s...)
}

func (e *encoder) stamp(s stamp) {
	for _, n := range [...]uint64{uint64(s.modified), uint64(s.changed), s.inode, s.device, uint64(s.size)} {
		e.number(n)
	}
}

// A decoder reads what an encoder has written. After the first error all values are
// zero.
type decoder struct {
	text []byte
	same string // the end of it is text: strings are parts of it and not copies
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.text)
	if size <= 0 {
		d.bad, d.text = true, nil
		return 0
	}
	d.text = d.text[size:]
	return n
}

// count reads how many things follow, each of at least so many bytes, so that a false
// number does not allocate.
func (d *decoder) count(least uint64) int {
	n := d.number()
	if n > uint64(len(d.text))/least {
		d.bad, d.text = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) string() string {
	n := d.count(1)
	at := len(d.same) - len(d.text)
	d.text = d.text[n:]
	return d.same[at : at+n]
}

func (d *decoder) stamp() stamp {
	return stamp{modified: int64(d.number()), changed: int64(d.number()), inode: d.number(), device: d.number(), size: int64(d.number())}
}
