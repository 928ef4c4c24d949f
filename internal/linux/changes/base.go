// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Base is the record of what the host's files were when a stage first met them. It is not safe for concurrent
// use. The lock of the stage must be held for Update and Applied.
type Base struct {
	file  string
	roots map[rootKey]map[string]Seen // by path relative to the root
	dirty bool                        // the file lacks something
}

// A rootKey is what stays of a layer over the runs of a stage.
type rootKey struct{ root, name string }

func (l *Layer) key() rootKey { return rootKey{l.Root, l.Name} }

// A BaseError says that the record of a stage cannot be used.
type BaseError struct {
	Path string
	Why  string
}

// Error returns one sentence with the fix.
func (e *BaseError) Error() string {
	return fmt.Sprintf("the record %s of a stage is damaged: %s; discard the stage, or remove the file: changes "+
		"that others made before now are no conflicts then", text.Word(e.Path), e.Why)
}

// maxBase bounds the file of a record, in bytes.
const maxBase = 1 << 30

// OpenBase reads the record in a file; a missing file is the empty record. A file that was truncated or edited
// is a [*BaseError].
func OpenBase(path string) (*Base, error) {
	b := &Base{file: path, roots: map[rootKey]map[string]Seen{}}
	data, more, err := safefile.Read(path, maxBase)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	why := "it is too large"
	if !more {
		b.roots, why = parseBase(data)
	}
	if why != "" {
		return nil, &BaseError{Path: path, Why: why}
	}
	return b, nil
}

// Lookup returns what is known of a path of a layer, relative to its root: its own record, or what the
// directories above it say. A nil Base knows nothing.
func (b *Base) Lookup(l *Layer, path string) Seen {
	if b == nil {
		return Seen{}
	}
	paths := b.roots[l.key()]
	if s, ok := paths[path]; ok {
		return s
	}
	for path != "." {
		slash := strings.LastIndexByte(path, '/')
		if path = path[:max(slash, 0)]; slash < 0 {
			path = "."
		}
		s, ok := paths[path]
		switch {
		case ok && !s.IsDir(): // nothing was below it
			return Seen{Known: true, At: s.At}
		case ok && s.Hides:
			return Seen{Known: true, Below: true, At: s.At}
		}
	}
	return Seen{}
}

// AnyCtime has the time of a file's last change of attributes not count for a path of a layer: the user is told to
// change them, so that it can be applied. [Base.Applied] saves it.
func (b *Base) AnyCtime(l *Layer, path string) {
	if s, ok := b.roots[l.key()][path]; ok && s.Exists() {
		s.Ctime = 0
		b.roots[l.key()][path], b.dirty = s, true
	}
}

func (b *Base) save() error {
	if !b.dirty {
		return nil
	}
	if err := safefile.Replace(b.file, b.encode()); err != nil {
		return fmt.Errorf("record what the stage has seen: %w", err)
	}
	b.dirty = false
	return nil
}

// The form of the file: baseHeader, the number of roots, and for each its two names, the number of its paths,
// and these in order. A path is given by how many bytes it has in common with the one before, and the rest.
// Numbers are varints, and names have their length in front. The last four bytes are a checksum of all
// before them.
const baseHeader = "sallyport base 1\n"

// The flags of a path.
const (
	flagLate = 1 << iota
	flagHides
	flagExists
	flagsEnd
)

func (b *Base) encode() []byte {
	out := []byte(baseHeader)
	keys := slices.SortedFunc(maps.Keys(b.roots), func(x, y rootKey) int {
		return strings.Compare(x.root+"\x00"+x.name, y.root+"\x00"+y.name)
	})
	out = binary.AppendUvarint(out, uint64(len(keys)))
	for _, key := range keys {
		paths := b.roots[key]
		out = appendName(appendName(out, key.root), key.name)
		out = binary.AppendUvarint(out, uint64(len(paths)))
		last := ""
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			common := 0
			for common < min(len(last), len(path)) && last[common] == path[common] {
				common++
			}
			out = appendName(binary.AppendUvarint(out, uint64(common)), path[common:])
			s := paths[path]
			out = s.append(out)
			last = path
		}
	}
	return sum(out)
}

// sum appends the checksum.
func sum(out []byte) []byte { return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out)) }

func appendName(out []byte, name string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(name))), name...)
}

func (s *Seen) append(out []byte) []byte {
	flags := uint64(0)
	if s.Late {
		flags |= flagLate
	}
	if s.Hides {
		flags |= flagHides
	}
	if s.Exists() {
		flags |= flagExists
	}
	out = binary.AppendVarint(binary.AppendUvarint(out, flags), s.At)
	if !s.Exists() {
		return out
	}
	for _, n := range []uint64{uint64(s.Mode), uint64(s.UID), uint64(s.GID), s.Ino, s.Nlink} {
		out = binary.AppendUvarint(out, n)
	}
	for _, n := range []int64{s.Size, s.Mtime, s.Ctime - s.Mtime} {
		out = binary.AppendVarint(out, n)
	}
	return out
}

// A decoder reads a record; the first mistake stays in why.
type decoder struct {
	rest []byte
	why  string
}

// parseBase returns why it is no record, else "".
func parseBase(data []byte) (roots map[rootKey]map[string]Seen, why string) {
	body, ok := bytes.CutPrefix(data, []byte(baseHeader))
	switch {
	case !ok:
		return nil, "it does not begin as this version writes it"
	case len(body) < crc32.Size:
		return nil, "it is incomplete"
	}
	end := len(data) - crc32.Size
	if !bytes.Equal(sum(data[:end:end]), data) {
		return nil, "its checksum is wrong"
	}
	d := &decoder{rest: body[:len(body)-crc32.Size]}
	roots = map[rootKey]map[string]Seen{}
	for range d.uint(1 << 20) {
		key := rootKey{d.name(""), d.name("")}
		if _, twice := roots[key]; twice || !strings.HasPrefix(key.root, "/") {
			d.fail("it has an invalid root")
		}
		if roots[key] = d.paths(); d.why != "" {
			return nil, d.why
		}
	}
	if len(d.rest) > 0 {
		d.fail("it goes on behind its end")
	}
	if d.why != "" {
		return nil, d.why
	}
	return roots, ""
}

func (d *decoder) paths() map[string]Seen {
	out, last := map[string]Seen{}, ""
	for n := d.uint(uint64(len(d.rest))); n > 0 && d.why == ""; n-- {
		common := d.uint(uint64(len(last)))
		path := d.name(last[:min(common, uint64(len(last)))])
		if path <= last || path != "." && !validPath(path) {
			d.fail("it has an invalid path")
		}
		out[path] = d.seen()
		last = path
	}
	return out
}

// validPath is fs.ValidPath, also for names that are not UTF-8.
func validPath(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.Contains(name, "\x00") {
			return false
		}
	}
	return true
}

func (d *decoder) seen() (s Seen) {
	flags := d.uint(flagsEnd - 1)
	s.Known, s.Late, s.Hides, s.At = true, flags&flagLate != 0, flags&flagHides != 0, d.int()
	if flags&flagExists == 0 {
		return s
	}
	const most = 1<<32 - 1
	s.Mode, s.UID, s.GID = uint32(d.uint(most)), uint32(d.uint(most)), uint32(d.uint(most))
	s.Ino, s.Nlink = d.uint(1<<64-1), d.uint(1<<64-1)
	s.Size, s.Mtime = d.int(), d.int()
	if s.Ctime = s.Mtime + d.int(); s.Mode&typeMask == 0 || s.Size < 0 {
		d.fail("it has an invalid file")
	}
	return s
}

func (d *decoder) fail(why string) {
	if d.why == "" {
		d.why = why
	}
}

// uint reads a number that is not more than most; 0 after a mistake.
func (d *decoder) uint(most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.why != "" || n <= 0 || v > most {
		d.fail("it has an invalid number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if d.why != "" || n <= 0 {
		d.fail("it has an invalid number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// name reads a name that begins with what is given.
func (d *decoder) name(begin string) string {
	n := d.uint(uint64(len(d.rest)))
	if n > uint64(len(d.rest)) { // the number has taken some bytes itself
		d.fail("it has an invalid number")
		return begin
	}
	s := begin + string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
