// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff writes unified diffs as git does. Its work is bounded: where two texts differ too much, the
// result is correct and longer than it has to be.
package diff

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git names contents by it
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// around is how many equal lines are shown before and after a change.
const around = 3

// The modes of files in git.
const (
	ModeFile       = 0o100644
	ModeExecutable = 0o100755
	ModeLink       = 0o120000
)

// A File is one side of a patch. The zero File is none.
type File struct {
	Mode uint32 // one of git's modes; 0 for no file
	Text []byte // of a link: where it leads
}

// Patch returns the patch of one file, as git apply and patch -p1 take it; nil if there is no difference.
// Name is the path, without "a/". A file that becomes a link, or a link that becomes a file, has two patches.
// Texts are taken for lines of bytes, whatever they hold.
func Patch(name string, old, now File) []byte {
	if old.Mode != 0 && now.Mode != 0 && (old.Mode == ModeLink) != (now.Mode == ModeLink) {
		return append(Patch(name, old, File{}), Patch(name, File{}, now)...)
	}
	hunks := Hunks(old.Text, now.Text)
	if old.Mode == now.Mode && hunks == nil {
		return nil
	}
	a, b := Quote("a/"+name), Quote("b/"+name)
	out := fmt.Appendf(nil, "diff --git %s %s\n", a, b)
	switch {
	case old.Mode == 0:
		out = fmt.Appendf(out, "new file mode %06o\n", now.Mode)
		a = "/dev/null"
	case now.Mode == 0:
		out = fmt.Appendf(out, "deleted file mode %06o\n", old.Mode)
		b = "/dev/null"
	case old.Mode != now.Mode:
		out = fmt.Appendf(out, "old mode %06o\nnew mode %06o\n", old.Mode, now.Mode)
	}
	if hunks != nil || old.Mode == 0 || now.Mode == 0 {
		// Patch(1) takes from it that a link is one, and that an empty file is deleted.
		if out = fmt.Appendf(out, "index %s..%s", object(old), object(now)); old.Mode == now.Mode {
			out = fmt.Appendf(out, " %06o", old.Mode)
		}
		out = append(out, '\n')
	}
	if hunks == nil {
		return out
	}
	end := func(label string) string { // patch(1) ends a name at a blank otherwise
		if label != "/dev/null" && strings.Contains(name, " ") {
			return "\t"
		}
		return ""
	}
	out = fmt.Appendf(out, "--- %s%s\n+++ %s%s\n", a, end(a), b, end(b))
	return append(out, hunks...)
}

// object is the name that git has for a content.
func object(f File) string {
	if f.Mode == 0 {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(f.Text))
	h.Write(f.Text)
	return hex.EncodeToString(h.Sum(nil))
}

// Quote returns a path as git writes it: in quotes, with escapes of C, where it has a byte that is no
// printable character of ASCII, a quote or a backslash.
func Quote(name string) string {
	odd := func(c byte) bool { return c < ' ' || c >= 0x7f || c == '"' || c == '\\' }
	plain := true
	for i := range len(name) {
		plain = plain && !odd(name[i])
	}
	if plain {
		return name
	}
	out := []byte{'"'}
	for i := range len(name) {
		c := name[i]
		at := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c)
		switch {
		case !odd(c):
			out = append(out, c)
		case at >= 0:
			out = append(out, '\\', `abtnvfr"\`[at])
		default:
			out = fmt.Appendf(out, `\%03o`, c)
		}
	}
	return string(append(out, '"'))
}

// Hunks returns the differences of two texts, each with three lines around it; nil if there are none.
func Hunks(old, now []byte) []byte {
	if bytes.Equal(old, now) {
		return nil
	}
	old, now, first := cut(old, now)
	a, b := split(old), split(now)
	if a == nil || b == nil {
		return whole(old, now, first)
	}
	var out []byte
	blocks := compare(a, b)
	for i := 0; i < len(blocks); {
		end := i + 1
		for end < len(blocks) && blocks[end].a-blocks[end-1].aEnd <= 2*around {
			end++
		}
		out = appendHunk(out, a, b, blocks[i:end], first)
		i = end
	}
	return out
}

// cut removes what two texts have in common at their beginnings and ends, but for the lines around. It
// returns how many lines it has removed at the beginnings.
func cut(old, now []byte) (a, b []byte, first int) {
	most := min(len(old), len(now))
	same := mismatch(old[:most], now[:most])
	begin := bytes.LastIndexByte(old[:same], '\n') + 1
	for range around {
		if begin > 0 {
			begin = bytes.LastIndexByte(old[:begin-1], '\n') + 1
		}
	}
	first = bytes.Count(old[:begin], []byte{'\n'})
	old, now = old[begin:], now[begin:]
	same = 0
	for same < min(len(old), len(now)) && old[len(old)-1-same] == now[len(now)-1-same] {
		same++
	}
	end := old[len(old)-same:]
	for range around + 1 { // the first one may be a part of a line
		next := bytes.IndexByte(end, '\n')
		if next < 0 {
			return old, now, first
		}
		end = end[next+1:]
	}
	return old[:len(old)-len(end)], now[:len(now)-len(end)], first
}

// mismatch returns how many bytes are equal at the beginnings of two texts of one length.
func mismatch(a, b []byte) int {
	const step = 1 << 10
	at := 0
	for at+step <= len(a) && bytes.Equal(a[at:at+step], b[at:at+step]) {
		at += step
	}
	for at < len(a) && a[at] == b[at] {
		at++
	}
	return at
}

// maxLines is how many lines of a text are compared.
const maxLines = 1 << 20

// split returns the lines of a text with their ends; nil if there are too many.
func split(s []byte) [][]byte {
	n := bytes.Count(s, []byte{'\n'}) + 1
	if n > maxLines {
		return nil
	}
	return slices.AppendSeq(make([][]byte, 0, n), bytes.Lines(s))
}

// whole returns a hunk that replaces all lines.
func whole(old, now []byte, first int) []byte {
	count := func(s []byte) int {
		n := bytes.Count(s, []byte{'\n'})
		if len(s) > 0 && s[len(s)-1] != '\n' {
			n++
		}
		return n
	}
	out := appendHead(make([]byte, 0, 2*(len(old)+len(now))), first, count(old), first, count(now))
	for line := range bytes.Lines(old) {
		out = appendLine(out, '-', line)
	}
	for line := range bytes.Lines(now) {
		out = appendLine(out, '+', line)
	}
	return out
}

// appendHunk appends the hunk of blocks that are near each other.
func appendHunk(out []byte, a, b [][]byte, blocks []block, first int) []byte {
	last := blocks[len(blocks)-1]
	above := min(around, blocks[0].a)
	below := min(around, len(a)-last.aEnd)
	from, to := blocks[0].a-above, blocks[0].b-above
	out = appendHead(out, first+from, last.aEnd+below-from, first+to, last.bEnd+below-to)
	for _, c := range blocks {
		out = appendLines(out, ' ', a[from:c.a])
		out = appendLines(out, '-', a[c.a:c.aEnd])
		out = appendLines(out, '+', b[c.b:c.bEnd])
		from = c.aEnd
	}
	return appendLines(out, ' ', a[from:from+below])
}

// appendHead appends the line that says where a hunk is; lines count from 0 here.
func appendHead(out []byte, a, as, b, bs int) []byte {
	out = append(out, "@@ -"...)
	for i, r := range [2][2]int{{a, as}, {b, bs}} {
		if i > 0 {
			out = append(out, " +"...)
		}
		switch r[1] {
		case 0: // it is behind the line
			out = fmt.Appendf(out, "%d,0", r[0])
		case 1:
			out = fmt.Appendf(out, "%d", r[0]+1)
		default:
			out = fmt.Appendf(out, "%d,%d", r[0]+1, r[1])
		}
	}
	return append(out, " @@\n"...)
}

func appendLines(out []byte, sign byte, lines [][]byte) []byte {
	for _, line := range lines {
		out = appendLine(out, sign, line)
	}
	return out
}

func appendLine(out []byte, sign byte, line []byte) []byte {
	out = append(append(out, sign), line...)
	if line[len(line)-1] != '\n' {
		out = append(out, "\n\\ No newline at end of file\n"...)
	}
	return out
}
