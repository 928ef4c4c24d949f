// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// A Cache remembers the folders that [Scan] has read and what was in the indexes of
// repositories. A nil Cache and the zero value remember nothing yet; nothing is
// remembered in a nil Cache. What it says is believed only for a folder or index
// whose times, inode and device are still the same. It may be used from several
// goroutines at once; one waits for the other.
type Cache struct {
	mu      sync.Mutex
	trees   []*tree // the one used last comes last
	indexes []indexRecord
	known   map[string]knownRecord // by the path of .git
	changed bool
}

// A stamp is what changes with a folder or a file. Times are in nanoseconds since
// 1970; zero where the system has none.
type stamp struct {
	modified, changed int64
	inode, device     uint64
	size              int64 // of files alone
}

// racy reports whether something that was read at the time now, and had the stamp
// then, can change once more without its stamp changing: file systems count time
// in steps of up to two seconds (FAT).
func (s stamp) racy(now int64) bool {
	return now-s.modified < racyTime || now-s.changed < racyTime
}

const racyTime = 2e9 // nanoseconds

// A tree is what is known of the folders below a root. The first folder is the root
// itself, and every folder comes behind the one that it is in.
type tree struct {
	root    string
	folders []folder
	next    int // where checking went on to when it ran out of time
}

// A folder is one folder of a tree.
type folder struct {
	path   string // relative to the root; empty for the root
	parent int32
	state  folderState
	stamp  stamp // when it was read
}

// A folderState is a set of bits.
type folderState uint8

const (
	stateRead  folderState = 1 << iota // its names have been read, at the stamp
	stateRacy                          // it must be read again
	stateRepo                          // it holds .git
	stateBare                          // it is a bare repository
	stateHuge                          // not all of its names could be read
	stateGone                          // never saved: it is no longer there
	stateSaved = stateRead | stateRacy | stateRepo | stateBare | stateHuge
)

// An indexRecord is what was in an index.
type indexRecord struct {
	path  string
	hash  int
	stamp stamp
	names []string
}

// Limits of a cache file.
const (
	maxCacheBytes = 32 << 20
	maxFolders    = 200_000 // of all trees
	maxTrees      = 32
	maxIndexes    = 64
)

// cacheMark is how a cache file begins; its number changes with the format.
const cacheMark = "sallyport repo cache 2\n"

// Gitlinks is [Gitlinks] with a memory: an index that has not changed is not read. A
// nil Cache reads.
func (c *Cache) Gitlinks(index string, hash int) ([]string, error) {
	if c == nil {
		return Gitlinks(index, hash)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := lstatStamp(index)
	if err != nil {
		return Gitlinks(index, hash)
	}
	known := slices.IndexFunc(c.indexes, func(r indexRecord) bool { return r.path == index })
	if known >= 0 {
		if r := c.indexes[known]; r.stamp == st && r.hash == hash {
			return slices.Clone(r.names), nil
		}
		c.indexes = slices.Delete(c.indexes, known, known+1)
		c.changed = true
	}
	now := nowStamp()
	names, err := Gitlinks(index, hash)
	if err != nil || st.racy(now) || isLink(index) {
		return names, err
	}
	if after, err := lstatStamp(index); err != nil || after != st {
		return names, nil // it changes just now: it is not worth remembering
	}
	if len(c.indexes) == maxIndexes {
		c.indexes = slices.Delete(c.indexes, 0, 1)
	}
	c.indexes = append(c.indexes, indexRecord{path: index, hash: hash, stamp: st, names: slices.Clone(names)})
	c.changed = true
	return names, nil
}

// tree returns the tree of the root, an empty one if there was none.
func (c *Cache) tree(root string) *tree {
	t := &tree{root: root}
	if i := slices.IndexFunc(c.trees, func(t *tree) bool { return t.root == root }); i >= 0 {
		t = c.trees[i]
		c.trees = slices.Delete(c.trees, i, i+1)
	}
	c.trees = append(c.trees, t)
	if len(c.trees) > maxTrees {
		c.trees = slices.Delete(c.trees, 0, 1)
	}
	return t
}

// LoadCache reads what [Cache.Save] has written. A file that is missing, unreadable,
// too big, of another version or damaged in any way makes an empty cache: it only
// costs time.
func LoadCache(path string) *Cache {
	text, err := readFile(path, maxCacheBytes)
	if err != nil {
		return &Cache{}
	}
	c, ok := decodeCache(text)
	if !ok {
		return &Cache{}
	}
	return c
}

// Save writes the cache to the file, readable for its owner alone, in one step: a
// reader sees the old one or the new one. It does nothing if nothing has changed
// since [LoadCache], or for a nil Cache. The folder must exist.
func (c *Cache) Save(path string) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".repo-cache-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(c.encode())
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	c.changed = false
	return nil
}

// encode returns the cache as a file: the mark, the trees, the indexes, the plain
// repositories, and a checksum. Numbers are little-endian.
func (c *Cache) encode() []byte {
	w := []byte(cacheMark)
	room, first := maxFolders, len(c.trees)
	for first > 0 && room >= len(c.trees[first-1].folders) {
		first--
		room -= len(c.trees[first].folders)
	}
	trees := c.trees[first:]
	w = binary.LittleEndian.AppendUint32(w, uint32(len(trees)))
	for _, t := range trees {
		w = appendText(w, t.root)
		w = binary.LittleEndian.AppendUint32(w, uint32(t.next))
		w = binary.LittleEndian.AppendUint32(w, uint32(len(t.folders)))
		for i := range t.folders {
			f := &t.folders[i]
			w = appendText(w, f.path)
			w = binary.LittleEndian.AppendUint32(w, uint32(f.parent))
			w = append(w, byte(f.state&stateSaved))
			w = appendStamp(w, f.stamp)
		}
	}
	w = binary.LittleEndian.AppendUint32(w, uint32(len(c.indexes)))
	for _, r := range c.indexes {
		w = appendText(w, r.path)
		w = append(w, byte(r.hash))
		w = appendStamp(w, r.stamp)
		w = binary.LittleEndian.AppendUint32(w, uint32(len(r.names)))
		for _, name := range r.names {
			w = appendText(w, name)
		}
	}
	w = binary.LittleEndian.AppendUint32(w, uint32(len(c.known)))
	for _, link := range slices.Sorted(maps.Keys(c.known)) {
		k := c.known[link]
		w = appendText(w, link)
		for _, s := range [...]stamp{k.dir, k.config, k.hooks, k.index} {
			w = appendStamp(w, s)
		}
	}
	return binary.LittleEndian.AppendUint32(w, crc32.Checksum(w, crc32.IEEETable))
}

func appendText(w []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(w, uint32(len(text))), text...)
}

func appendStamp(w []byte, s stamp) []byte {
	for _, n := range [...]uint64{uint64(s.modified), uint64(s.changed), s.inode, s.device, uint64(s.size)} {
		w = binary.LittleEndian.AppendUint64(w, n)
	}
	return w
}

// A decoder reads what encode has written. After the first error all reads give
// zero.
type decoder struct {
	text string // a string, so that paths are pieces of it and not copies
	bad  bool
}

func (d *decoder) take(n uint64) string {
	if n > uint64(len(d.text)) {
		d.bad, d.text = true, ""
		return ""
	}
	piece := d.text[:n]
	d.text = d.text[n:]
	return piece
}

func (d *decoder) byte() byte {
	if s := d.take(1); s != "" {
		return s[0]
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	s := d.take(4)
	if s == "" {
		return 0
	}
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func (d *decoder) uint64() uint64 {
	low := d.uint32()
	return uint64(low) | uint64(d.uint32())<<32
}

// wire is the least that one thing takes in a file, so that a count that lies does
// not allocate.
func (d *decoder) count(wire, most int) int {
	n := d.uint32()
	if uint64(n)*uint64(wire) > uint64(len(d.text)) || uint64(n) > uint64(most) {
		d.bad, d.text = true, ""
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return d.take(uint64(d.uint32())) }

func (d *decoder) stamp() stamp {
	return stamp{modified: int64(d.uint64()), changed: int64(d.uint64()), inode: d.uint64(), device: d.uint64(), size: int64(d.uint64())}
}

// Least sizes in a file.
const (
	stampWire  = 5 * 8
	folderWire = 4 + 4 + 1 + stampWire
	treeWire   = 4 + 4 + 4
	indexWire  = 4 + 1 + stampWire + 4
	knownWire  = 4 + 4*stampWire
)

// decodeCache reads a cache file; it reports false unless the file is whole.
func decodeCache(text []byte) (*Cache, bool) {
	body := len(text) - 4
	if body < len(cacheMark) || string(text[:len(cacheMark)]) != cacheMark ||
		crc32.Checksum(text[:body], crc32.IEEETable) != binary.LittleEndian.Uint32(text[body:]) {
		return nil, false
	}
	return decodeBody(string(text[len(cacheMark):body]))
}

// decodeBody reads what is between the mark and the checksum.
func decodeBody(text string) (*Cache, bool) {
	d := decoder{text: text}
	c := &Cache{}
	for range d.count(treeWire, maxTrees) {
		t := &tree{root: d.string(), next: int(d.uint32())}
		t.folders = make([]folder, d.count(folderWire, maxFolders))
		for i := range t.folders {
			f := &t.folders[i]
			f.path, f.parent = d.string(), int32(d.uint32())
			f.state, f.stamp = folderState(d.byte())&stateSaved, d.stamp()
			if !validFolder(t.folders, i) {
				return nil, false
			}
		}
		if t.next < 0 || t.next > len(t.folders) {
			return nil, false
		}
		c.trees = append(c.trees, t)
	}
	for range d.count(indexWire, maxIndexes) {
		r := indexRecord{path: d.string(), hash: int(d.byte()), stamp: d.stamp()}
		r.names = make([]string, d.count(4, maxCacheBytes))
		for i := range r.names {
			r.names[i] = d.string()
		}
		c.indexes = append(c.indexes, r)
	}
	for range d.count(knownWire, maxKnown) {
		if c.known == nil {
			c.known = make(map[string]knownRecord)
		}
		link := d.string()
		c.known[link] = knownRecord{dir: d.stamp(), config: d.stamp(), hooks: d.stamp(), index: d.stamp()}
	}
	return c, !d.bad && d.text == ""
}

// validFolder reports whether the folder i can be where it is: directly in its
// parent, which comes before it.
func validFolder(folders []folder, i int) bool {
	f := &folders[i]
	if i == 0 {
		return f.path == "" && f.parent == 0
	}
	if f.parent < 0 || int(f.parent) >= i {
		return false
	}
	name := f.path
	if parent := folders[f.parent].path; parent != "" {
		if len(name) < len(parent)+2 || name[:len(parent)] != parent || !os.IsPathSeparator(name[len(parent)]) {
			return false
		}
		name = name[len(parent)+1:]
	}
	if name == "" || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		if os.IsPathSeparator(name[i]) || name[i] == 0 {
			return false
		}
	}
	return true
}
