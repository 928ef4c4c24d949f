// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A line is a line of the output of a run as it is to be read: without control sequences, and drawn once.
type line struct {
	number int    // from 1, among those of the stream that are retained
	text   []byte // without its newline; valid until the next line
	whole  bool   // a newline ends it
	start  uint64 // offsets of the output
	end    uint64
}

// maxLine is how long a line is before it is taken for several.
const maxLine = 1 << 20

// A lineReader cuts the output of a run into lines.
type lineReader struct {
	plain  text.Plain
	line   []byte
	number int
	start  uint64 // of the line
	given  bool   // bytes of the line came
	back   bool   // a carriage return came: what follows replaces the line
	yield  func(line) bool
	done   bool
}

// take takes bytes that end at an offset.
func (l *lineReader) take(p []byte, end uint64) {
	for len(p) > 0 && !l.done {
		n, clean, same := l.plain.Next(p)
		p = p[n:]
		for len(clean) > 0 && !l.done {
			i := bytes.IndexAny(clean, "\r\n")
			part := clean
			if i >= 0 {
				part = clean[:i]
			}
			l.draw(part)
			if i < 0 {
				break
			}
			ends, rest := clean[i], clean[i+1:]
			if clean = rest; ends == '\r' {
				l.back = true
				continue
			}
			if !same { // they stand for other bytes
				rest = nil
			}
			l.finish(true, end-uint64(len(p)+len(rest)))
		}
		if len(l.line) > maxLine {
			l.finish(false, end-uint64(len(p)))
		}
	}
}

// draw adds to the line, or draws it anew.
func (l *lineReader) draw(part []byte) {
	if len(part) == 0 {
		return
	}
	if l.back {
		l.line, l.back = l.line[:0], false
	}
	l.line, l.given = append(l.line, part...), true
}

// finish ends a line at an offset.
func (l *lineReader) finish(whole bool, end uint64) {
	l.number++
	l.done = !l.yield(line{l.number, l.line, whole, l.start, end})
	l.line, l.start, l.given, l.back = l.line[:0], end, false, false
}

// everyStream reads the output of all streams.
const everyStream = "output"

// lines calls yield with the lines of what a stream has printed from an offset to another one, and
// returns the bytes of it, and how many of them are not retained any more. It does not wait.
func lines(r *runs.Run, stream string, from, to uint64, yield func(line) bool) (total, missing uint64) {
	l := lineReader{plain: text.Plain{Returns: true}, start: from, yield: yield}
	for at := from; at < to && !l.done; {
		page := r.Page(at, min(to-at, output.DefaultBytes))
		for _, c := range page.Chunks {
			if total, missing = total+c.Missing, missing+c.Missing; c.Missing > 0 {
				l.take([]byte(output.Marker(c.Missing)), c.Offset+c.Missing)
			}
			if stream == everyStream || c.Stream.String() == stream {
				total += uint64(len(c.Data))
				l.take(c.Data, c.End())
			}
		}
		if page.Next <= at {
			break
		}
		at = page.Next
	}
	if l.given && !l.done {
		l.finish(false, to)
	}
	return total, missing
}

// An excerpt is what an answer shows of an output.
type excerpt struct {
	text      string
	bytes     uint64 // of the output that it is about
	omitted   uint64 // of them that are not shown
	truncated bool
}

// excerptOf returns the beginning and the end of the output from an offset to another one, with a line for
// what is between, so that its JSON form has no more than so many bytes beside that line.
func excerptOf(r *runs.Run, from, to uint64, most int) excerpt {
	kept, count := output.NewBuffer(max(most, 0)), 0
	total, missing := lines(r, everyStream, from, to, func(l line) bool {
		_, _ = kept.Write(l.text) // it takes everything
		if count++; l.whole {
			_, _ = kept.Write([]byte{'\n'})
		}
		return true
	})
	s := kept.Snapshot()
	head, tail := text.Whole(s.Head, s.Tail)
	h, t := text.Decode(head), text.Decode(tail)
	if s.Omitted == 0 {
		h, t = text.Decode(s.Bytes()), ""
	}
	if s.Omitted == 0 && quoted(h) <= most {
		return excerpt{text: h, bytes: total, omitted: missing, truncated: missing > 0}
	}
	if s.Omitted == 0 {
		middle := len(h) / 2
		for !utf8.RuneStart(h[middle]) {
			middle++
		}
		h, t = h[:middle], h[middle:]
	}
	h, t = first(h, most/2), last(t, most/2)
	left := s.Total - min(s.Total, uint64(len(h)+len(t)))
	e := excerpt{bytes: total, omitted: left + missing, truncated: true}
	if most > 0 {
		hidden := count - strings.Count(h, "\n") - strings.Count(t, "\n")
		e.text = fmt.Sprintf(
			"%s\n[%d bytes, %d lines left out; read them with read and search, or start_line]\n%s",
			strings.TrimSuffix(h, "\n"), e.omitted, max(hidden, 0), t)
	}
	return e
}

// first returns the beginning of a text whose JSON form has at most so many bytes.
func first(s string, most int) string {
	for i, r := range s {
		if most -= quotedRune(r); most < 0 {
			return s[:i]
		}
	}
	return s
}

// last returns the end of a text whose JSON form has at most so many bytes.
func last(s string, most int) string {
	for i := len(s); i > 0; {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if most -= quotedRune(r); most < 0 {
			return s[i:]
		}
		i -= n
	}
	return s
}

// quoted returns how many bytes a text has in JSON, without its quotes.
func quoted(s string) (n int) {
	for _, r := range s {
		n += quotedRune(r)
	}
	return n
}

// quotedRune is quoted for a character, as package encoding/json writes it.
func quotedRune(r rune) int {
	const escaped = 6 // \u0000
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', r == 0x7f, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return escaped
	}
	return utf8.RuneLen(r)
}
