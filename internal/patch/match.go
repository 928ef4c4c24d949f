// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A fileLine is a line of a file with what ends it: empty for a last line that nothing ends.
type fileLine struct{ text, end string }

// appendLines splits at LF, CRLF and lone CR.
func appendLines(lines []fileLine, text string) []fileLine {
	next := func() int { return strings.IndexByte(text, '\n') }
	if strings.Contains(text, "\r") {
		next = func() int { return strings.IndexAny(text, "\r\n") }
	}
	for text != "" {
		i := next()
		if i < 0 {
			return append(lines, fileLine{text, ""})
		}
		end := text[i : i+1]
		if strings.HasPrefix(text[i:], "\r\n") {
			end = "\r\n"
		}
		lines = append(lines, fileLine{text[:i], end})
		text = text[i+len(end):]
	}
	return lines
}

// An edit replaces lines of a file, from one index to another, by new ones.
type edit struct {
	from, to int
	lines    []fileLine
}

// A file is what chunks are looked for in. The forms of its lines are made when a pass needs them.
type file struct {
	path  string
	lines []fileLine
	forms [len(passes)][]fileLine
	work  *work
}

// work is what was done for a patch.
type work struct {
	done  int // in lines that were compared
	stop  <-chan struct{}
	lines []fileLine // of the last file
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

func (f *file) form(pass int) []fileLine {
	if pass == 0 {
		return f.lines
	}
	if f.forms[pass] == nil {
		f.forms[pass] = make([]fileLine, len(f.lines))
		for i, l := range f.lines {
			f.forms[pass][i].text = passes[pass](l.text)
		}
	}
	return f.forms[pass]
}

// seek returns where a run of lines begins, at or after from; -1 if nowhere, or where that is too much work.
func (f *file) seek(run []string, from int, end bool) int {
	last := len(f.lines) - len(run)
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
		have := f.form(pass)
		for at := from; at <= last; at++ {
			same := 0
			for same < len(want) && have[at+same].text == want[same] {
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
	eol := "\n"
	if len(f.lines) > 0 && f.lines[0].end != "" {
		eol = f.lines[0].end
	}
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
		at := len(f.lines)
		if len(run) > 0 {
			at = f.seek(run, cursor, c.End)
			if at < 0 && run[len(run)-1] == "" {
				lines = withoutLast(lines)
				run = run[:len(run)-1]
				if at = len(f.lines); len(run) > 0 {
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
		e := edit{from: at, to: at + len(run)}
		for _, l := range lines {
			switch l.Op {
			case '+':
				e.lines = append(e.lines, fileLine{l.Text, eol})
			case ' ':
				e.lines = append(e.lines, f.lines[at])
				at++
			default:
				at++
			}
		}
		edits = append(edits, e)
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	return edits, nil
}

// update returns the content of a file after the chunks. It keeps the end of each line that stays; a
// byte-order mark is a part of the first line.
func update(path, text string, chunks []Chunk, w *work) ([]byte, error) {
	if w.do(splitWork * (strings.Count(text, "\n") + strings.Count(text, "\r"))) {
		return nil, errWork
	}
	w.lines = appendLines(w.lines[:0], text)
	f := file{path: path, lines: w.lines, work: w}
	edits, err := f.edits(chunks)
	if w.done > maxWork {
		return nil, errWork
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(text))
	eol := "\n"
	if len(f.lines) > 0 && f.lines[0].end != "" {
		eol = f.lines[0].end
	}
	put := func(lines []fileLine) {
		for _, l := range lines {
			b = append(b, l.text...)
			if l.end == "" {
				l.end = eol
			}
			b = append(b, l.end...)
		}
	}
	at := 0
	for _, e := range edits {
		put(f.lines[at:e.from])
		put(e.lines)
		at = e.to
	}
	put(f.lines[at:])
	return b, nil
}
