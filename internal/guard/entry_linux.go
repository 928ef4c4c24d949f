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
//	sallyport guard 1 "/w/.codex"   the path, as a Go string in quotes
//	+ 0123456789abcdef              this keeper holds it
//	make                            the folder is about to be made
//	folder 2049 1234 1700000000     it was made: device, inode, time of birth
//	- 0123456789abcdef              that keeper does not hold it any more
//
// The last line may lack its end, because its writer was killed: it does not
// count, for what it announces had not been done. Lines are added with one
// write(2) each, under the journal's lock.
const (
	entryMagic = "sallyport guard 1 "
	lineMake   = "make\n"

	// maxEntry bounds what is read of an entry: a path of 4096 bytes takes four
	// times as much in quotes, and the rest is room for holders.
	maxEntry = 1 << 20
	// longEntry is where an entry is written anew without what is past.
	longEntry = 16 << 10
)

// An ident tells one folder from every other that was ever at its name: device
// and inode, and the time of birth in nanoseconds, because a removed folder's
// inode is used again. Zero for the time means that the file system has none.
type ident struct {
	dev, ino uint64
	born     int64
}

// same reports whether a and b are one folder.
func (a ident) same(b ident) bool {
	return a.dev == b.dev && a.ino == b.ino && (a.born == b.born || a.born == 0 || b.born == 0)
}

// An entry is what the lines of an entry file add up to.
type entry struct {
	path    string
	holders []string // of living and dead keepers
	making  bool     // the folder may or may not have been made
	folder  ident    // of the folder when making is false
	made    bool     // there was a line about a folder at all
	torn    bool     // the last line is incomplete
	size    int      // bytes of the file
}

// errTorn is an entry whose writer was killed before its first line was
// complete: nothing had been made then.
var errTorn = errors.New("the first line is incomplete")

// entryName returns the file name of the entry for path.
func entryName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "e-" + hex.EncodeToString(sum[:16])
}

// decodeEntry reads an entry. It refuses everything that encode and the line
// functions do not write; errTorn is the one refusal that means nothing.
func decodeEntry(data []byte) (entry, error) {
	e := entry{size: len(data)}
	if len(data) > maxEntry {
		return e, fmt.Errorf("longer than %d bytes", maxEntry)
	}
	first, rest, complete := bytes.Cut(data, []byte("\n"))
	if !complete {
		n := min(len(first), len(entryMagic))
		if string(first[:n]) == entryMagic[:n] {
			return e, errTorn
		}
		return e, errors.New("not an entry of this journal")
	}
	quoted, ok := strings.CutPrefix(string(first), entryMagic)
	if !ok {
		return e, errors.New("not an entry of this journal")
	}
	path, err := strconv.Unquote(quoted)
	if err != nil || strconv.Quote(path) != quoted || !goodPath(path) {
		return e, errors.New("the path makes no sense")
	}
	e.path = path
	for len(rest) > 0 {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		if !complete {
			e.torn = true
			break
		}
		if err := e.line(string(line)); err != nil {
			return e, err
		}
		rest = after
	}
	return e, nil
}

// line adds one line after the first.
func (e *entry) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "+":
		if !goodHolder(rest) {
			return errors.New("a holder makes no sense")
		}
		e.add(rest)
	case "-":
		if !goodHolder(rest) {
			return errors.New("a holder makes no sense")
		}
		e.drop(rest)
	case "make":
		if rest != "" || line != "make" {
			return errors.New("a line makes no sense")
		}
		e.making, e.made, e.folder = true, false, ident{}
	case "folder":
		var id ident
		if n, err := fmt.Sscanf(rest, "%d %d %d", &id.dev, &id.ino, &id.born); n != 3 || err != nil || lineFolder(id) != line+"\n" {
			return errors.New("a folder makes no sense")
		}
		e.making, e.made, e.folder = false, true, id
	default:
		return errors.New("a line makes no sense")
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
		b = append(b, lineFolder(e.folder)...)
	}
	return b
}

func lineAdd(holder string) string { return "+ " + holder + "\n" }

func lineDrop(holder string) string { return "- " + holder + "\n" }

func lineFolder(id ident) string {
	return fmt.Sprintf("folder %d %d %d\n", id.dev, id.ino, id.born)
}

// goodHolder reports whether s is a holder as newID makes them; it becomes part
// of a file name.
func goodHolder(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// goodPath reports whether p is absolute, clean, and names something in a folder.
func goodPath(p string) bool {
	return filepath.IsAbs(p) && p != "/" && filepath.Clean(p) == p && !strings.Contains(p, "\x00")
}
