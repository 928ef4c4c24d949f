// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// starts appends where the lines of a text begin, which end with LF, CRLF or lone CR, and where it ends.
func starts(to []int, text string) []int {
	next := func(text string) int { return strings.IndexByte(text, '\n') }
	if strings.Contains(text, "\r") {
		next = func(text string) int { return strings.IndexAny(text, "\r\n") }
	}
	for at := 0; at < len(text); {
		to = append(to, at)
		i := next(text[at:])
		if i < 0 {
			break
		}
		if at += i + 1; text[at-1] == '\r' && at < len(text) && text[at] == '\n' {
			at++
		}
	}
	return append(to, len(text))
}

// An edit replaces lines of a file, from one index to another, by a text.
type edit struct {
	from, to int
	text     string
}

// A file is what chunks are looked for in. The forms of its lines are made when a pass needs them.
type file struct {
	path   string
	text   string
	starts []int // of its lines, and its length
	eol    string
	forms  [len(passes)][]string
	work   *work
}

// size is the number of lines.
func (f *file) size() int { return len(f.starts) - 1 }

// line returns a line and what ends it: empty for a last line that nothing ends.
func (f *file) line(i int) (text, end string) {
	whole := f.text[f.starts[i]:f.starts[i+1]]
	text = strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r")
	return text, whole[len(text):]
}

// ended returns lines with an end of the last one.
func (f *file) ended(from, to int) string {
	text := f.text[f.starts[from]:f.starts[to]]
	if text != "" && !strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\r") {
		text += f.eol
	}
	return text
}

// work is what was done for a patch.
type work struct {
	done   int // in lines that were compared
	stop   <-chan struct{}
	starts []int // of the last file
}

const (
	maxWork   = 1 << 28 // takes seconds
	splitWork = 16      // for a line that is read, in which time as many are compared
)

// errWork ends a search that would take too long: in the worst case it grows with the square of the size.
var errWork = errors.New("finding the places of the patch takes too long; split it, " +
	"or give its chunks lines that are in the file exactly and rarely")

// do adds to the work, and reports whether it is too much, as all is when stop is closed.
func (w *work) do(n int) (tooMuch bool) {
	const look = 1 << 16
	if before := w.done / look; (w.done+n)/look > before {
		select {
		case <-w.stop:
			n = maxWork
		default:
		}
	}
	w.done += n
	return w.done > maxWork
}

// passes are the ways to compare lines, from the strictest. The order is a contract: models rely on it.
var passes = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) },
	strings.TrimSpace,
	func(s string) string { return strings.Map(fold, strings.TrimSpace(s)) },
}

// fold replaces punctuation by what a keyboard has.
func fold(r rune) rune {
	switch {
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r == 0x00A0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}

// form returns a line as a pass compares it.
func (f *file) form(pass, i int) string {
	if pass == 0 {
		text, _ := f.line(i)
		return text
	}
	if f.forms[pass] == nil {
		f.forms[pass] = make([]string, f.size())
		for i := range f.size() {
			text, _ := f.line(i)
			f.forms[pass][i] = passes[pass](text)
		}
	}
	return f.forms[pass][i]
}

// seek returns where a run of lines begins, at or after from; -1 if nowhere, or where that is too much work.
func (f *file) seek(run []string, from int, end bool) int {
	last := f.size() - len(run)
	if end {
		from = max(from, last)
	}
	if from > last {
		return -1
	}
	want := make([]string, len(run))
	for pass, as := range passes {
		for i, text := range run {
			want[i] = as(text)
		}
		for at := from; at <= last; at++ {
			same := 0
			for same < len(want) && f.form(pass, at+same) == want[same] {
				same++
			}
			switch {
			case same == len(want):
				return at
			case f.work.do(same + 1):
				return -1
			}
		}
	}
	return -1
}

// old returns the lines that a chunk finds in the file.
func old(lines []Line) []string {
	var texts []string
	for _, l := range lines {
		if l.Op != '+' {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// withoutLast returns the lines of a chunk without its last old line, which is empty, and without a last
// new line that is empty.
func withoutLast(lines []Line) []Line {
	lines = slices.Clone(lines)
	drop := func(isOld bool) {
		out, kept := byte('+'), byte('-')
		if isOld {
			out, kept = '-', '+'
		}
		for i := len(lines) - 1; i >= 0; i-- {
			switch lines[i].Op {
			case kept:
				continue
			case out:
				lines = slices.Delete(lines, i, i+1)
			default:
				lines[i].Op = kept
			}
			return
		}
	}
	drop(true)
	for _, l := range slices.Backward(lines) {
		if l.Op != '-' {
			if l.Text == "" {
				drop(false)
			}
			break
		}
	}
	return lines
}

// A MatchError says that a chunk fits nowhere in a file.
type MatchError struct {
	Path    string
	Context string // the context that was not found
	Lines   []string
}

// Error returns the sentence that the tool prints.
func (e *MatchError) Error() string {
	if e.Lines == nil {
		return fmt.Sprintf("Failed to find context '%s' in %s", e.Context, e.Path)
	}
	return fmt.Sprintf("Failed to find expected lines in %s:\n%s", e.Path, strings.Join(e.Lines, "\n"))
}

// edits finds the places of all chunks, one after another.
func (f *file) edits(chunks []Chunk) ([]edit, error) {
	var edits []edit
	cursor := 0
	for _, c := range chunks {
		if c.HasContext {
			at := f.seek([]string{c.Context}, cursor, false)
			if at < 0 {
				return nil, &MatchError{Path: f.path, Context: c.Context}
			}
			cursor = at + 1
		}
		lines, run := c.Lines, old(c.Lines)
		at := f.size()
		if len(run) > 0 {
			at = f.seek(run, cursor, c.End)
			if at < 0 && run[len(run)-1] == "" {
				lines = withoutLast(lines)
				run = run[:len(run)-1]
				if at = f.size(); len(run) > 0 {
					at = f.seek(run, cursor, c.End)
				}
			}
			if at < 0 {
				return nil, &MatchError{Path: f.path, Lines: old(c.Lines)}
			}
			if len(run) > 0 {
				cursor = at + len(run)
			}
		}
		edits = append(edits, f.edit(at, len(run), lines))
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	return edits, nil
}

// edit returns what lines of a chunk do with the old ones, which begin at a line.
func (f *file) edit(at, old int, lines []Line) edit {
	var b strings.Builder
	e := edit{from: at, to: at + old}
	for _, l := range lines {
		switch l.Op {
		case '+':
			b.WriteString(l.Text + f.eol)
		case ' ':
			b.WriteString(f.ended(at, at+1))
			at++
		default:
			at++
		}
	}
	e.text = b.String()
	return e
}

// update returns the content of a file after the chunks. It keeps the end of each line that stays; a
// byte-order mark is a part of the first line.
func update(path, text string, chunks []Chunk, w *work) ([]byte, error) {
	if w.do(splitWork * (strings.Count(text, "\n") + strings.Count(text, "\r"))) {
		return nil, errWork
	}
	w.starts = starts(w.starts[:0], text)
	f := file{path: path, text: text, starts: w.starts, eol: "\n", work: w}
	if f.size() > 0 {
		_, end := f.line(0)
		f.eol = cmp.Or(end, f.eol)
	}
	edits, err := f.edits(chunks)
	if w.done > maxWork {
		return nil, errWork
	}
	if err != nil {
		return nil, err
	}
	size := len(text) + len(f.eol)
	for _, e := range edits {
		size += len(e.text)
	}
	b, at := make([]byte, 0, size), 0
	for _, e := range edits {
		b = append(append(b, f.ended(at, e.from)...), e.text...)
		at = e.to
	}
	return append(b, f.ended(at, f.size())...), nil
}
