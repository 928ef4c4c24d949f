// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
)

// Sizes in bytes of the names of objects.
const (
	sha1Size   = 20
	sha256Size = 32
)

// maxIndex is the size in bytes of the biggest index that is read: some five
// million files.
const maxIndex = 1 << 30

// IndexError reports an index that cannot be understood.
type IndexError struct {
	Path string
	Why  string // a clause without its subject
	Err  error  // the system's error, or nil

	outside bool // a name in it leads out of the work tree, or into .git
}

// Error returns the path, the reason and the fix.
func (e *IndexError) Error() string {
	return message(e.Path, e.Why, e.Err, "run git reset in the work tree")
}

// Unwrap returns the system's error, or nil.
func (e *IndexError) Unwrap() error { return e.Err }

// readGitlinks returns the names of the gitlinks, which are the submodules, in the
// index file of a repository, sorted and relative to the work tree. The names of
// objects have hash bytes. It reads the versions 2, 3 and 4 of git's index-format, and
// the shared index beside a split one. It does not look into directories that a
// sparse index has collapsed; git does not collapse those with gitlinks. The error is
// an [*IndexError], or one that matches [fs.ErrNotExist].
func readGitlinks(index string, hash int) ([]string, error) {
	names, shared, err := readIndex(index, hash)
	if err != nil {
		return nil, err
	}
	if shared != "" {
		// Git ends if it is missing.
		more, _, err := readIndex(join(filepath.Dir(index), "sharedindex."+shared), hash)
		if err != nil && !absent(err) {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// readIndex returns the gitlinks in one index file and, for a split one, the name of
// the shared index.
func readIndex(path string, hash int) (names []string, shared string, err error) {
	text, err := ReadFile(path, maxIndex)
	if absent(err) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", &IndexError{Path: path, Why: "cannot be read", Err: cause(err)}
	}
	names, shared, why := parseIndex(text, hash)
	if why != "" {
		return nil, "", &IndexError{Path: path, Why: why, outside: strings.HasPrefix(why, whyOutside)}
	}
	return names, shared, nil
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

// parseIndex returns the names of the gitlinks in an index and, for a split one, the
// name of the shared index; or why it cannot be understood.
func parseIndex(text []byte, hash int) (names []string, shared, why string) {
	if len(text) < indexHeader+hash || string(text[:4]) != "DIRC" {
		return nil, "", "is not an index"
	}
	p := indexParser{text: text[:len(text)-hash], at: indexHeader, hash: hash,
		version: binary.BigEndian.Uint32(text[4:])}
	if p.version < 2 || p.version > 4 {
		return nil, "", fmt.Sprintf("has the unknown version %d", p.version)
	}
	for range binary.BigEndian.Uint32(text[8:]) {
		if !p.entry() {
			return nil, "", "ends within an entry"
		}
	}
	if p.outside != "" {
		return nil, "", fmt.Sprintf("%s: %q", whyOutside, p.outside)
	}
	shared, why = p.extensions()
	if why == "" && p.nameless {
		// A split index changes the mode of an entry whose name is in the shared
		// index alone.
		why = "turns a file of the shared index into a submodule, which cannot be followed"
	}
	return p.names, shared, why
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
	outside  string // a name that git would refuse to add
}

// whyOutside begins what is wrong with an index that has such a name. Git checks names
// when it adds them, and not when it reads an index.
const whyOutside = "has a name that leads out of the work tree or into .git"

// check looks at the name of an entry. A split index has empty ones.
func (p *indexParser) check(name []byte) {
	if len(name) == 0 || name[0] != '.' && name[0] != '/' && !bytes.Contains(name, []byte("/.")) {
		return // most names
	}
	if text := gitstate.CString(name); !gitstate.InsideName(text) {
		p.outside = text
	}
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
	p.check(p.text[at : at+size])
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
	p.check(p.last)
	if gitlink {
		p.keep(p.last)
	}
	p.at = at + end + 1
	return true
}

// keep keeps a name as C sees it: git copies all of it, and uses what is in front of
// a NUL byte.
func (p *indexParser) keep(name []byte) {
	if text := gitstate.CString(name); text != "" {
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

// extensions reads what follows the entries. It returns the name of the shared index,
// or what is wrong.
func (p *indexParser) extensions() (shared, why string) {
	for rest := p.text[p.at:]; len(rest) > 0; {
		if len(rest) < 8 || uint64(binary.BigEndian.Uint32(rest[4:])) > uint64(len(rest)-8) {
			return "", "ends within an extension"
		}
		body := rest[8 : 8+binary.BigEndian.Uint32(rest[4:])]
		if string(rest[:4]) == "link" {
			if len(body) < p.hash {
				return "", "names no shared index"
			}
			if name := body[:p.hash]; !bytes.Equal(name, make([]byte, p.hash)) {
				shared = hex.EncodeToString(name)
			}
		}
		rest = rest[8+len(body):]
	}
	return shared, ""
}
