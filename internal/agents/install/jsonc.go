// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// The bounds of a file, and of how deep its values may be nested.
const (
	maxFile  = 16 << 20 // bytes
	maxDepth = 500
)

// bom is the byte order mark in UTF-8.
const bom = "\ufeff"

// A node is a value in JSON with comments, by its place in the text.
type node struct {
	kind       byte // '{', '[', '"', '0' for a number, 'b' for true and false, 'n'; 0 for none
	begin, end int
	items      []item // of an object or array, in order
}

// An item is a member of an object or an element of an array.
type item struct {
	name  string // decoded; of a member
	begin int    // of the name or of the element
	value node
	comma int // where the comma after it is; -1 for none
}

// kinds are the kinds of values as they stand in a sentence.
var kinds = map[byte]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number",
	'b': "true or false", 'n': "null"}

// A scanner reads JSON with comments and trailing commas, which editors and agents take for their settings.
type scanner struct {
	text []byte
	at   int
}

// parse returns the outermost value of a text; its kind is 0 where there are only blanks and comments.
// The error is a [*RefusedError] without a path.
func parse(text []byte) (root node, err error) {
	if !utf8.Valid(text) {
		return node{}, refusedAt(text, len(bytes.ToValidUTF8(text, nil)), "it is not UTF-8")
	}
	s := scanner{text: text}
	if bytes.HasPrefix(text, []byte(bom)) {
		s.at = len(bom)
	}
	if err = s.skip(); err != nil || s.at == len(text) {
		return node{begin: s.at, end: s.at}, err
	}
	if root, err = s.value(0); err != nil {
		return root, err
	}
	if err = s.skip(); err == nil && s.at < len(text) {
		err = s.fail("there is more after the value")
	}
	return root, err
}

func (s *scanner) fail(format string, args ...any) error {
	return refusedAt(s.text, s.at, "it is not valid JSON: "+fmt.Sprintf(format, args...))
}

// peek is the byte that comes next; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// skip goes over blanks and comments.
func (s *scanner) skip() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n':
			s.at++
		case bytes.HasPrefix(rest, []byte("//")):
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = len(s.text)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return s.fail("the comment has no end")
			}
			s.at += n + 4
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) value(depth int) (node, error) {
	n := node{kind: s.peek(), begin: s.at}
	var err error
	switch c := n.kind; {
	case depth > maxDepth:
		return n, s.fail("values are nested too deep")
	case c == '{' || c == '[':
		s.at++
		n.items, err = s.items(c, depth+1)
	case c == '"':
		err = s.string()
	default:
		n.kind, err = s.word()
	}
	n.end = s.at
	return n, err
}

// items reads what an object or array has, to its end.
func (s *scanner) items(kind byte, depth int) (items []item, err error) {
	for {
		if err := s.skip(); err != nil {
			return nil, err
		}
		if s.peek() == kind+2 { // the closing bracket, in ASCII
			s.at++
			return items, nil
		}
		if len(items) > 0 && items[len(items)-1].comma < 0 {
			return nil, s.fail("a comma is missing")
		}
		it := item{begin: s.at, comma: -1}
		if kind == '{' {
			if it.name, err = s.name(); err != nil {
				return nil, err
			}
		}
		if it.value, err = s.value(depth); err != nil {
			return nil, err
		}
		if err := s.skip(); err != nil {
			return nil, err
		}
		if s.peek() == ',' {
			it.comma = s.at
			s.at++
		}
		items = append(items, it)
	}
}

// name reads the name of a member and its colon.
func (s *scanner) name() (name string, err error) {
	begin := s.at
	if s.peek() != '"' {
		return "", s.fail("a name in quotes is missing")
	}
	if err = s.string(); err != nil {
		return "", err
	}
	name = decoded(s.text[begin:s.at])
	if err = s.skip(); err != nil {
		return "", err
	}
	if s.peek() != ':' {
		return "", s.fail("a colon is missing")
	}
	s.at++
	return name, s.skip()
}

// string goes over a string.
func (s *scanner) string() error {
	begin := s.at
	for s.at++; s.peek() != '"'; s.at++ {
		switch c := s.peek(); {
		case s.at >= len(s.text) || c < ' ':
			return s.fail("the string has no end on its line")
		case c == '\\':
			s.at++ // what follows is not the end
		}
	}
	s.at++
	if !json.Valid(s.text[begin:s.at]) {
		s.at = begin
		return s.fail("the string has an invalid escape")
	}
	return nil
}

// word goes over a number, true, false or null.
func (s *scanner) word() (kind byte, err error) {
	begin := s.at
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n,:[]{}\"/"), s.text[s.at]) < 0 {
		s.at++
	}
	word := s.text[begin:s.at]
	if !json.Valid(word) {
		s.at = begin
		return 0, s.fail("a value is missing")
	}
	switch word[0] {
	case 'n':
		return 'n', nil
	case 't', 'f':
		return 'b', nil
	}
	return '0', nil
}

// decoded is the text of a string that was read.
func decoded(quoted []byte) (s string) {
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}

// str is the text of a node that is a string, and "" of others.
func (n *node) str(text []byte) string {
	if n == nil || n.kind != '"' {
		return ""
	}
	return decoded(text[n.begin:n.end])
}

// member returns the value of a member, nil where there is none. A name that is there twice has no value
// that all programs agree on; it is an error.
func (n *node) member(text []byte, name string) (*node, error) {
	if i, err := n.index(text, name); i >= 0 || err != nil {
		return &n.items[max(i, 0)].value, err
	}
	return nil, nil
}

// index returns which item has a name; -1 for none.
func (n *node) index(text []byte, name string) (found int, err error) {
	found = -1
	for i := range n.items {
		if n.kind == '{' && n.items[i].name == name {
			if found >= 0 {
				err = refusedAt(text, n.items[i].begin, fmt.Sprintf("it has %q twice", name))
			}
			found = i
		}
	}
	return found, err
}
