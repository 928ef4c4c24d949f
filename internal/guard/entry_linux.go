// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An entry is a file of lines, each a fact that was true when it was added:
//
//	sallyport guard 1 "/w/.codex"   the path, as a quoted Go string
//	+ 0123456789abcdef              this keeper holds it
//	make                            the directory is about to be created
//	made 2049 1234 1700000000       it was created: device, inode, time of birth
//	- 0123456789abcdef              that keeper does not hold it any more
//
// The last line may lack its end, because its writer was killed: it does not count, for
// what it announces had not been done. Lines are added with one write(2) each, under the
// journal's lock.
const (
	entryMagic = "sallyport guard 1 "
	lineMake   = "make\n"

	// maxEntry bounds what is read of an entry: a path of 4096 bytes takes four times as
	// much in quotes, and the rest is room for holders.
	maxEntry = 1 << 20
	// longEntry is the size from which an entry is rewritten without what is past.
	longEntry = 16 << 10
)

// An entry is what the lines of an entry file add up to.
type entry struct {
	path    string
	holders []string // living and dead keepers
	making  bool     // the directory may or may not have been created
	made    bool     // the directory is id; not set while making
	id      ident
	torn    bool // the last line is incomplete
	size    int  // bytes of the file
}

// errTorn is an entry whose writer was killed before its first line was complete: nothing
// had been created then.
var errTorn = errors.New("the first line is incomplete")

// entryName returns the file name of the entry for path.
func entryName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return entryPrefix + hex.EncodeToString(sum[:16])
}

// decodeEntry reads an entry. It refuses everything that encode and the line functions do
// not write. An entry that is errTorn is safe to remove.
func decodeEntry(data []byte) (entry, error) {
	e := entry{size: len(data)}
	first, rest, complete := bytes.Cut(data, []byte("\n"))
	if !complete && bytes.HasPrefix([]byte(entryMagic), first[:min(len(first), len(entryMagic))]) {
		return e, errTorn
	}
	quoted, ok := strings.CutPrefix(string(first), entryMagic)
	if !complete || !ok {
		return e, errors.New("not an entry of this journal")
	}
	path, err := strconv.Unquote(quoted)
	if err != nil || strconv.Quote(path) != quoted || !validPath(path) {
		return e, errors.New("invalid path")
	}
	e.path = path
	for len(rest) > 0 && !e.torn {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		if e.torn = !complete; complete {
			err = e.apply(string(line) + "\n")
		}
		if err != nil {
			return e, err
		}
		rest = after
	}
	return e, nil
}

// apply adds one line after the first.
func (e *entry) apply(line string) error {
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch {
	case word == "+" && validHolder(rest):
		e.add(rest)
	case word == "-" && validHolder(rest):
		e.drop(rest)
	case line == lineMake:
		e.making, e.made, e.id = true, false, ident{}
	case word == "made":
		var id ident
		if n, err := fmt.Sscanf(rest, "%d %d %d", &id.dev, &id.ino, &id.born); n != 3 || err != nil || lineMade(id) != line {
			return errors.New("invalid identity of a directory")
		}
		e.making, e.made, e.id = false, true, id
	default:
		return fmt.Errorf("invalid line %q", line)
	}
	return nil
}

func (e *entry) add(holder string) {
	if !slices.Contains(e.holders, holder) {
		e.holders = append(e.holders, holder)
	}
}

func (e *entry) drop(holder string) {
	e.holders = slices.DeleteFunc(e.holders, func(h string) bool { return h == holder })
}

// owns reports whether s can be the directory that e is about.
func (e *entry) owns(s status) bool {
	if e.making {
		return s.closed() && s.owned()
	}
	return e.made && s.isDir() && e.id.same(s.ident)
}

// encode returns the whole file for what the entry says.
func (e *entry) encode() []byte {
	b := strconv.AppendQuote([]byte(entryMagic), e.path)
	b = append(b, '\n')
	for _, h := range e.holders {
		b = append(b, lineAdd(h)...)
	}
	switch {
	case e.making:
		b = append(b, lineMake...)
	case e.made:
		b = append(b, lineMade(e.id)...)
	}
	return b
}

func lineAdd(holder string) string { return "+ " + holder + "\n" }

func lineDrop(holder string) string { return "- " + holder + "\n" }

func lineMade(id ident) string {
	return fmt.Sprintf("made %d %d %d\n", id.dev, id.ino, id.born)
}

// validHolder reports whether s is a holder as newID returns them; it becomes part of a
// file name.
func validHolder(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// validPath reports whether p is absolute, clean, and names something in a directory.
func validPath(p string) bool {
	return filepath.IsAbs(p) && p != "/" && filepath.Clean(p) == p && !strings.Contains(p, "\x00")
}
