// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An edit puts a text in the place of a part of another.
type edit struct {
	from, to int
	by       string
}

// splice makes edits, which do not overlap and are in order.
func splice(text []byte, edits ...edit) []byte {
	out := make([]byte, 0, len(text)) // never nil, which is no file
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.from]...), e.by...)
		at = e.to
	}
	return append(out, text[at:]...)
}

// eolOf is the line end of a text: that of its first line.
func eolOf(text []byte) string {
	if line, _, ok := bytes.Cut(text, []byte("\n")); ok && bytes.HasSuffix(line, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// A page is JSON with comments that is changed.
type page struct {
	text []byte
	root node
}

func newPage(text []byte) (*page, error) {
	root, err := parse(text)
	if err == nil && root.kind != '{' && root.kind != 0 {
		err = refusedAt(text, root.begin, "it is "+kinds[root.kind]+", not an object")
	}
	return &page{text, root}, err
}

// find follows names into objects, as far as they are there. Rest are those that are missing.
func (p *page) find(path []string) (n *node, rest []string, err error) {
	n = &p.root
	for i, name := range path {
		if n.kind != '{' && n.kind != 0 {
			return nil, nil, p.wrongKind(n, path[i-1], '{')
		}
		next, err := n.member(p.text, name)
		if next == nil || err != nil {
			return n, path[i:], err
		}
		n = next
	}
	return n, nil, nil
}

func (p *page) wrongKind(n *node, name string, want byte) error {
	return refusedAt(p.text, n.begin, fmt.Sprintf("%q is %s, not %s", name, kinds[n.kind], kinds[want]))
}

// array returns the array with a path, nil if it or what it is in is missing.
func (p *page) array(path []string) (*node, error) {
	n, rest, err := p.find(path)
	if err != nil || len(rest) > 0 {
		return nil, err
	}
	if n.kind != '[' {
		return nil, p.wrongKind(n, path[len(path)-1], '[')
	}
	return n, nil
}

// put adds a member with a path, or with list an element to the array with it, and the objects on the way.
// The member must not exist.
func (p *page) put(path []string, value string, list bool) ([]byte, error) {
	n, rest, err := p.find(path)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 && n.kind != '{' && n.kind != 0 {
		return nil, p.wrongKind(n, path[len(path)-len(rest)-1], '{')
	}
	if list && len(rest) > 0 {
		value = "[" + value + "]"
	}
	for len(rest) > 1 {
		value = "{" + quoteJSON(rest[len(rest)-1]) + ":" + value + "}"
		rest = rest[:len(rest)-1]
	}
	key := ""
	if len(rest) > 0 {
		key = quoteJSON(rest[0])
	}
	if n.kind != 0 {
		return p.insert(n, key, value), nil
	}
	// There is no value yet: blanks and comments at most.
	eol, at := eolOf(p.text), len(bytes.TrimRight(p.text, " \t\r\n"))
	s := p.render("", "{"+key+":"+value+"}", "")
	if at > len(bom) || at > 0 && !bytes.HasPrefix(p.text, []byte(bom)) {
		s = eol + s
	}
	if at == len(p.text) {
		s += eol
	}
	return splice(p.text, edit{at, at, s}), nil
}

// insert adds an item to the end of an object or array.
func (p *page) insert(in *node, key, value string) []byte {
	oneLine := func(n *node) bool {
		return len(n.items) > 0 && bytes.IndexByte(p.text[n.begin:n.end], '\n') < 0
	}
	base, eol := p.indent(in.begin), eolOf(p.text)
	if oneLine(in) || oneLine(&p.root) {
		return p.insertInLine(in, key, value)
	}
	if len(in.items) == 0 {
		at := p.lastComment(in)
		s := eol + base + p.unit() + p.render(key, value, base+p.unit())
		if bytes.IndexByte(p.text[at:in.end], '\n') < 0 {
			s += eol + base
		}
		return splice(p.text, edit{at, at, s})
	}
	last := in.items[len(in.items)-1]
	indent := base + p.unit()
	if p.beginsLine(last.begin) {
		indent = p.indent(last.begin)
	}
	s := eol + indent + p.render(key, value, indent)
	if last.comma >= 0 {
		at := p.afterComment(last.comma + 1)
		return splice(p.text, edit{at, at, s + ","})
	}
	at := p.afterComment(last.value.end)
	return splice(p.text, edit{last.value.end, last.value.end, ","}, edit{at, at, s})
}

// insertInLine is insert for what stands in one line.
func (p *page) insertInLine(in *node, key, value string) []byte {
	blank := ""
	if line := p.text[p.root.begin:p.root.end]; bytes.Contains(line, []byte(": ")) || bytes.Contains(line, []byte(", ")) {
		blank = " "
	}
	if key != "" {
		value = key + ":" + blank + value
	}
	if len(in.items) == 0 {
		return splice(p.text, edit{in.begin + 1, in.begin + 1, value})
	}
	last := in.items[len(in.items)-1]
	if last.comma >= 0 {
		return splice(p.text, edit{last.comma + 1, last.comma + 1, blank + value + ","})
	}
	return splice(p.text, edit{last.value.end, last.value.end, "," + blank + value})
}

// render writes an item over several lines. What is in it is indented behind indent.
func (p *page) render(key, value, indent string) string {
	var b bytes.Buffer
	_ = json.Indent(&b, []byte(value), indent, p.unit()) // it is valid
	s := strings.ReplaceAll(b.String(), "\n", eolOf(p.text))
	if key != "" {
		s = key + ": " + s
	}
	return s
}

// unit is by how much the first member of the text is indented: two blanks where nothing shows it.
func (p *page) unit() string {
	if len(p.root.items) > 0 && p.beginsLine(p.root.items[0].begin) {
		if in := p.indent(p.root.items[0].begin); in != "" {
			return in
		}
	}
	return "  "
}

func (p *page) lineBegin(at int) int {
	begin := bytes.LastIndexByte(p.text[:at], '\n') + 1
	if begin == 0 && bytes.HasPrefix(p.text, []byte(bom)) {
		begin = len(bom)
	}
	return begin
}

// indent is what the line of a place begins with.
func (p *page) indent(at int) string {
	line := p.text[p.lineBegin(at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// beginsLine reports whether only blanks are before a place in its line.
func (p *page) beginsLine(at int) bool {
	return len(bytes.TrimLeft(p.text[p.lineBegin(at):at], " \t")) == 0
}

// afterComment returns the place after the comments that end the line of a place; the place itself if
// something else is there.
func (p *page) afterComment(from int) int {
	s := scanner{text: p.text, at: from}
	at := from
	for {
		for s.peek() == ' ' || s.peek() == '\t' || s.peek() == '\r' {
			s.at++
		}
		switch s.peek() {
		case '\n':
			return at
		case '/':
			end := s.at + bytes.IndexByte(p.text[s.at:], '\n')
			if p.text[s.at+1] == '*' {
				end = s.at + 4 + bytes.Index(p.text[s.at+2:], []byte("*/"))
			} else if p.text[end-1] == '\r' {
				end--
			}
			s.at, at = end, end
		default:
			return from
		}
	}
}

// lastComment returns the place after the last comment in an object or array without items.
func (p *page) lastComment(in *node) int {
	return in.begin + 1 + len(bytes.TrimRight(p.text[in.begin+1:in.end-1], " \t\r\n"))
}

// cut removes an item with its comma, and its line if that has nothing else.
func (p *page) cut(in *node, i int) []byte {
	it := in.items[i]
	from, to := it.begin, it.value.end
	var edits []edit
	switch {
	case it.comma >= 0 && len(bytes.TrimSpace(p.text[to:it.comma])) == 0:
		to = it.comma + 1
	case it.comma >= 0: // a comment stands between
		edits = []edit{{it.comma, it.comma + 1, ""}}
	case i > 0:
		comma := in.items[i-1].comma
		edits = []edit{{comma, comma + 1, ""}}
	}
	lineEnd := len(p.text)
	if n := bytes.IndexByte(p.text[to:], '\n'); n >= 0 {
		lineEnd = to + n
	}
	if blank := len(bytes.TrimSpace(p.text[to:lineEnd])) == 0; p.beginsLine(from) && blank {
		from = max(p.lineBegin(from)-1, 0)
		if from > 0 && p.text[from-1] == '\r' {
			from--
		}
	} else if i > 0 {
		for p.text[from-1] == ' ' || p.text[from-1] == '\t' {
			from--
		}
	} else {
		for p.text[to] == ' ' {
			to++
		}
	}
	edits = append(edits, edit{from, to, ""})
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return splice(p.text, edits...)
}

func quoteJSON(s string) string { return encode(s) }

// encode writes a value as JSON in one line, as a person would: without escapes for HTML.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and numbers
	return strings.TrimSpace(b.String())
}
