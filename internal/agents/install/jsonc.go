// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// bom is the byte order mark in UTF-8.
const bom = "\ufeff"

// A page is JSON with comments that is changed: an object, or nothing but blanks and comments.
type page struct {
	text     []byte
	plain    []byte // the text with blanks for its comments, trailing commas and byte order mark
	trailing []int  // where the trailing commas are
	root     node   // empty if there is none
	err      error  // why the text is refused, without a path: then there is no root
}

// A node is a value, by its place.
type node struct{ begin, end int }

// An item is a member of an object or an element of an array.
type item struct {
	name  string // decoded; of a member
	begin int    // of the name or of the element
	value node
	comma int // where the comma after it is; -1 for none
}

// newPage reads a text.
func newPage(txt []byte) *page {
	p := &page{text: txt, plain: bytes.Clone(txt)}
	if at := syntax.InvalidUTF8(txt); at >= 0 {
		p.err = refusedAt(txt, at, "it is not UTF-8")
	} else if p.err = p.blank(); p.err == nil {
		end := len(bytes.TrimRight(p.plain, " \t\r\n"))
		root := node{end - len(bytes.TrimLeft(p.plain[:end], " \t\r\n")), end}
		var all json.RawMessage
		var bad *json.SyntaxError
		if root.begin == end {
			return p
		} else if p.err = json.Unmarshal(p.plain, &all); errors.As(p.err, &bad) {
			p.err = refusedAt(txt, max(int(bad.Offset)-1, 0), "it is not valid JSON: "+bad.Error())
		} else if p.err = p.mustBe('{', root, "the file"); p.err == nil {
			p.root = root
		}
	}
	return p
}

// blank puts blanks in the place of all that JSON does not have.
func (p *page) blank() error {
	fill := func(from, to int) int {
		for i := from; i < to; i++ {
			if c := p.plain[i]; c != '\n' && c != '\r' {
				p.plain[i] = ' '
			}
		}
		return to
	}
	at := 0
	if bytes.HasPrefix(p.text, []byte(bom)) {
		at = fill(0, len(bom))
	}
	comma, last := -1, byte('[') // the comma that nothing follows yet, what came before
	for at < len(p.text) {
		c, rest := p.text[at], p.text[at:]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
			continue
		case bytes.HasPrefix(rest, []byte("//")):
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			at = fill(at, at+len(line))
			continue
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return refusedAt(p.text, at, "it is not valid JSON: the comment has no end")
			}
			at = fill(at, at+n+4)
			continue
		case c == '"':
			for at++; at < len(p.text) && p.text[at] != '"' && p.text[at] != '\n'; at++ {
				if p.text[at] == '\\' {
					at++
				}
			}
		case (c == '}' || c == ']') && comma >= 0:
			p.trailing = append(p.trailing, comma)
			fill(comma, comma+1)
		}
		comma = -1
		if c == ',' && strings.IndexByte("{[,:", last) < 0 {
			comma = at
		}
		last = c
		at++
	}
	return nil
}

// kind is the first byte of a value.
func (p *page) kind(n node) byte { return p.plain[n.begin] }

// mustBe refuses a value of another kind. The name is that of the value.
func (p *page) mustBe(kind byte, n node, name string) error {
	kinds := map[byte]string{'{': "an object", '[': "an array", '"': "a string", 't': "true", 'f': "false",
		'n': "null"}
	if p.kind(n) == kind {
		return nil
	}
	is, ok := kinds[p.kind(n)]
	if !ok {
		is = "a number"
	}
	return refusedAt(p.text, n.begin, fmt.Sprintf("%s is %s, not %s", name, is, kinds[kind]))
}

// items returns what is in an object or array; nothing of another value.
func (p *page) items(n node) (items []item) {
	data := p.plain[n.begin:n.end]
	if len(data) == 0 || data[0] != '{' && data[0] != '[' {
		return nil
	}
	skip := func(at int) int { return at + len(p.plain[at:]) - len(bytes.TrimLeft(p.plain[at:], " \t\r\n")) }
	next := n.begin + 1
	for name, value := range strict.Members(data) {
		begin := n.begin + cap(data) - cap(value) // it is a part of data
		it := item{string(name), skip(next), node{begin, begin + len(value)}, -1}
		if at := skip(it.value.end); p.plain[at] == ',' {
			it.comma, next = at, at+1
		}
		items = append(items, it)
	}
	if i := len(items) - 1; i >= 0 {
		at, _ := slices.BinarySearch(p.trailing, items[i].value.end)
		if at < len(p.trailing) && p.trailing[at] < n.end {
			items[i].comma = p.trailing[at]
		}
	}
	return items
}

// str is the text of a string; "" of another value.
func (p *page) str(n node) (s string) {
	if n.begin < n.end && p.kind(n) == '"' {
		_ = json.Unmarshal(p.plain[n.begin:n.end], &s) // it is valid
	}
	return s
}

// member returns the value of a member, which is empty if there is none.
func (p *page) member(n node, name string) (value node) {
	for _, it := range p.items(n) {
		if it.name == name {
			value = it.value
		}
	}
	return value
}

// find follows names into objects as far as they are there; rest are those that are missing. A name that is
// there twice has no value that all programs agree on, and is refused.
func (p *page) find(path ...string) (n node, rest []string, err error) {
	if n = p.root; p.err != nil {
		return n, nil, p.err
	}
	for i, name := range path {
		if n.begin == n.end {
			return n, path[i:], nil
		}
		if i > 0 {
			if err := p.mustBe('{', n, fmt.Sprintf("%q", path[i-1])); err != nil {
				return n, nil, err
			}
		}
		same := slices.DeleteFunc(p.items(n), func(it item) bool { return it.name != name })
		switch len(same) {
		case 0:
			return n, path[i:], nil
		case 1:
			n = same[0].value
		default:
			return n, nil, refusedAt(p.text, same[1].begin, fmt.Sprintf("it has %q twice", name))
		}
	}
	return n, nil, nil
}

// encode writes a value as JSON in one line, without escapes for HTML.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and numbers
	return strings.TrimSpace(b.String())
}
