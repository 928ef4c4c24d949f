// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import "bytes"

// An Entry is one variable of a git configuration, in the order of the file.
type Entry struct {
	Key   string // section, subsection and name with dots; only the subsection keeps its case
	Value string // with quotes and escapes resolved
	Plain bool   // there was no "=" behind the name, which git reads as true
	Line  int    // line of its name, from 1
}

// ParseConfig reads a git configuration as git 2.39 does (git_parse_source and its
// callees in git's config.c): a NUL byte ends a key or a value, a run of blanks inside
// a value is one blank, and a variable may follow its section on the same line. It
// returns the variables up to the first error and the line of that, from 1, or 0 where
// there is none. Git obeys those variables before it reports the error.
func ParseConfig(text []byte) (entries []Entry, broken int) {
	p := configParser{text: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), line: 1}
	var prefix []byte // "section.subsection."
	comment := false
	for {
		c := p.next()
		switch {
		case c == '\n':
			if p.end {
				return entries, 0
			}
			comment = false
		case comment || blank(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			var ok bool
			if prefix, ok = p.section(prefix[:0]); !ok {
				return entries, p.last
			}
		default:
			entry := Entry{Line: p.line}
			if !letter(c) || !p.variable(c, prefix, &entry) {
				return entries, p.last
			}
			entries = append(entries, entry)
		}
	}
}

// A configParser walks through the bytes of a configuration.
type configParser struct {
	text []byte
	at   int
	line int  // of the next byte
	end  bool // the last byte returned was the line end that git adds to a file
	last int  // line of the last byte returned
	buf  []byte
}

// next returns the next byte, with CR LF as one line end and a line end at the end.
func (p *configParser) next() byte {
	p.last = p.line
	if p.at >= len(p.text) {
		p.end = true
		return '\n'
	}
	c := p.text[p.at]
	p.at++
	if c == '\r' && p.at < len(p.text) && p.text[p.at] == '\n' {
		c = '\n'
		p.at++
	}
	if c == '\n' {
		p.line++
	}
	return c
}

// section reads a heading behind its bracket and appends it with a dot to name.
func (p *configParser) section(name []byte) ([]byte, bool) {
	for {
		c := p.next()
		switch {
		case p.end:
			return nil, false
		case c == ']':
			return append(name, '.'), true
		case blank(c):
			return p.subsection(name, c)
		case !keyByte(c) && c != '.':
			return nil, false
		}
		name = append(name, lower(c))
	}
}

// subsection reads the quoted part of a heading behind the blank c.
func (p *configParser) subsection(name []byte, c byte) ([]byte, bool) {
	for blank(c) {
		if c == '\n' {
			return nil, false
		}
		c = p.next()
	}
	if c != '"' {
		return nil, false
	}
	name = append(name, '.')
	for {
		switch c = p.next(); c {
		case '\n':
			return nil, false
		case '"':
			return append(name, '.'), p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' {
				return nil, false
			}
		}
		name = append(name, c)
	}
}

// variable reads a name that begins with c, and its value.
func (p *configParser) variable(c byte, prefix []byte, entry *Entry) bool {
	key := append(p.buf[:0], prefix...)
	for keyByte(c) {
		key = append(key, lower(c))
		c = p.next()
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	entry.Key = CString(key)
	p.buf = key
	switch c {
	case '\n':
		entry.Plain = true
		return true
	case '=':
		return p.value(entry)
	}
	return false
}

// value reads behind "=" to the end of the line.
func (p *configParser) value(entry *Entry) bool {
	value := p.buf[:0]
	quoted, comment := false, false
	for blanks := 0; ; {
		c := p.next()
		switch {
		case c == '\n':
			entry.Value = CString(value)
			p.buf = value
			return !quoted
		case comment:
			continue
		case blank(c) && !quoted:
			if len(value) > 0 {
				blanks++
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			comment = true
			continue
		}
		for ; blanks > 0; blanks-- {
			value = append(value, ' ')
		}
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			var ok bool
			if c, ok = p.escape(); !ok {
				return false
			}
			if c == 0 {
				continue
			}
		}
		value = append(value, c)
	}
}

// escape returns the byte that stands for the one behind a backslash, or zero for a
// line that goes on.
func (p *configParser) escape() (byte, bool) {
	switch c := p.next(); c {
	case '\n':
		return 0, true
	case 't':
		return '\t', true
	case 'b':
		return '\b', true
	case 'n':
		return '\n', true
	case '\\', '"':
		return c, true
	}
	return 0, false
}

// CString returns the bytes as C sees them.
func CString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// The classes of git's sane_ctype, which know ASCII alone.

func blank(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func keyByte(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || c == '-'
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
