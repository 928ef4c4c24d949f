// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Sizes in bytes of the names of objects.
const (
	sha1Size   = 20
	sha256Size = 32
)

// maxIndex is the size in bytes of the biggest index that is read: some five
// million files.
const maxIndex = 1 << 30

// An IndexError is an index that cannot be understood.
type IndexError struct {
	Path string // the file; empty for text without one
	Why  string // half a sentence
	Err  error  // the system's error, or nil
}

// Error returns one sentence with the path, the reason and the mend.
func (e *IndexError) Error() string {
	name := e.Path
	if name == "" {
		name = "the index"
	}
	if e.Err != nil {
		return fmt.Sprintf("repo: %s %s: %v; run git reset in the work tree", name, e.Why, e.Err)
	}
	return fmt.Sprintf("repo: %s %s; run git reset in the work tree", name, e.Why)
}

// Unwrap returns the system's error, or nil.
func (e *IndexError) Unwrap() error { return e.Err }

// Gitlinks returns the names of the gitlinks, which are the submodules, in the index
// file of a repository, sorted and relative to the work tree. The names of objects
// have hash bytes, 20 or 32; zero means 20. It reads the versions 2, 3 and 4 of
// git's index-format, and the shared index beside a split one. Folders that a sparse
// index has collapsed are not looked into; git does not collapse those with
// gitlinks. The error is a [*IndexError], or one that matches [fs.ErrNotExist].
func Gitlinks(index string, hash int) ([]string, error) {
	if hash == 0 {
		hash = sha1Size
	}
	names, shared, err := readIndex(index, hash)
	if err != nil {
		return nil, err
	}
	if shared != "" {
		// One that is missing makes git end.
		more, _, err := readIndex(join(filepath.Dir(index), "sharedindex."+shared), hash)
		if err != nil && !absent(err) {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// readIndex reads one index file.
func readIndex(path string, hash int) (names []string, shared string, err error) {
	text, err := readFile(path, maxIndex)
	if absent(err) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", &IndexError{Path: path, Why: "cannot be read", Err: plain(err)}
	}
	names, shared, err = parseIndex(text, hash)
	var broken *IndexError
	if errors.As(err, &broken) {
		broken.Path = path
	}
	return names, shared, err
}

// The format of an index, from gitformat-index.
const (
	indexHeader   = 12 // "DIRC", version, number of entries
	indexModeAt   = 24 // behind two times, device and inode
	indexObjectAt = 40 // behind mode, user, group and size
	flagExtended  = 1 << 14
	flagName      = 1<<12 - 1
	modeType      = 0o170000
	modeGitlink   = 0o160000
	indexAlign    = 8 // entries before version 4 end at a multiple of it
)

// parseIndex returns the names of the gitlinks in an index and, for a split one,
// the name of the shared index.
func parseIndex(text []byte, hash int) (names []string, shared string, err error) {
	p := indexParser{text: text, hash: hash}
	if len(text) < indexHeader+hash || string(text[:4]) != "DIRC" {
		return nil, "", &IndexError{Why: "is no index"}
	}
	switch p.version = binary.BigEndian.Uint32(text[4:]); p.version {
	case 2, 3, 4:
	default:
		return nil, "", &IndexError{Why: fmt.Sprintf("has version %d, which is unknown", p.version)}
	}
	p.text = text[:len(text)-hash] // the checksum
	p.at = indexHeader
	for range binary.BigEndian.Uint32(text[8:]) {
		if !p.entry() {
			return nil, "", &IndexError{Why: "ends within an entry"}
		}
	}
	shared, err = p.extensions()
	if err == nil && p.nameless {
		// A split index changes the mode of an entry whose name is in the shared
		// index alone.
		err = &IndexError{Why: "turns a file of the shared index into a submodule, which cannot be followed"}
	}
	return p.names, shared, err
}

// An indexParser walks through the entries of an index.
type indexParser struct {
	text     []byte
	at       int
	hash     int
	version  uint32
	names    []string
	nameless bool
	last     []byte // version 4: name of the entry before
}

// entry reads one entry and keeps its name if it is a gitlink.
func (p *indexParser) entry() bool {
	start := p.at
	at := start + indexObjectAt + p.hash
	if at+2 > len(p.text) {
		return false
	}
	flags := binary.BigEndian.Uint16(p.text[at:])
	at += 2
	if flags&flagExtended != 0 && p.version > 2 {
		at += 2
	}
	gitlink := binary.BigEndian.Uint32(p.text[start+indexModeAt:])&modeType == modeGitlink
	if p.version == 4 {
		return p.compressed(at, gitlink)
	}
	size := int(flags & flagName)
	if at+size >= len(p.text) {
		return false
	}
	if size == flagName {
		more := bytes.IndexByte(p.text[at+size:], 0)
		if more < 0 {
			return false
		}
		size += more
	}
	if p.text[at+size] != 0 {
		return false // git ends a name there in memory; what comes next would differ
	}
	if gitlink {
		p.keep(p.text[at : at+size])
	}
	p.at = start + (at+size-start+indexAlign)/indexAlign*indexAlign // one to eight NUL bytes
	return p.at <= len(p.text)
}

// compressed reads a name of version 4 at the offset: how many bytes of the name
// before are dropped, and what comes in their place up to a NUL byte.
func (p *indexParser) compressed(at int, gitlink bool) bool {
	drop, n := varint(p.text[min(at, len(p.text)):])
	if n == 0 || drop > uint64(len(p.last)) {
		return false
	}
	at += n
	end := bytes.IndexByte(p.text[at:], 0)
	if end < 0 {
		return false
	}
	p.last = append(p.last[:len(p.last)-int(drop)], p.text[at:at+end]...)
	if gitlink {
		p.keep(p.last)
	}
	p.at = at + end + 1
	return true
}

// keep keeps a name as C sees it: git copies all of it, and uses what is in front of
// a NUL byte.
func (p *indexParser) keep(name []byte) {
	if text := cString(name); text != "" {
		p.names = append(p.names, text)
		return
	}
	p.nameless = true
}

// varint reads a number as git's decode_varint does: seven bits a byte, the highest
// first, and one added for every byte that follows. It returns how many bytes that
// took, 0 if there is no number.
func varint(text []byte) (value uint64, n int) {
	for i, c := range text {
		if i == 9 {
			return 0, 0
		}
		if i > 0 {
			value = (value + 1) << 7
		}
		value |= uint64(c & 0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// extensions walks through what follows the entries and returns the name of the
// shared index.
func (p *indexParser) extensions() (shared string, err error) {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		if len(rest) < 8 {
			return "", &IndexError{Why: "ends within an extension"}
		}
		size := uint64(binary.BigEndian.Uint32(rest[4:]))
		body := rest[8:]
		if size > uint64(len(body)) {
			return "", &IndexError{Why: "ends within an extension"}
		}
		if string(rest[:4]) == "link" {
			if size < uint64(p.hash) {
				return "", &IndexError{Why: "names no shared index"}
			}
			if name := body[:p.hash]; !bytes.Equal(name, make([]byte, p.hash)) {
				shared = hex.EncodeToString(name)
			}
		}
		p.at += 8 + int(size)
	}
	return shared, nil
}
