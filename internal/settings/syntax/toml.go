// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// MaxTOML is the size of the largest text that is read, in bytes.
const MaxTOML = 256 << 10

// maxDepth is how deep a key or a value may be nested: no key of ours is deeper than 3.
const maxDepth = 16

// A TOMLPos is a place in a text: line and column from 1, in characters. The zero Pos is none.
type TOMLPos struct{ Line, Column int }

// TOMLKind is what a value is.
type TOMLKind uint8

// The kinds.
const (
	Table  TOMLKind = iota // [header] or {...}; Items holds the keys of one in an array
	String                 // Text is the string itself
	Number                 // Text is as it was written, without underscores
	Bool                   // Text is "true" or "false"
	Array                  // List holds the elements
	Date                   // a date, a time or both
)

// String is the kind as it stands in a sentence.
func (k TOMLKind) String() string {
	return [...]string{"a table", "a string", "a number", "true or false", "an array", "a date"}[k]
}

// A TOMLValue is a value and its place.
type TOMLValue struct {
	Kind TOMLKind
	Text string
	List []TOMLValue
	// Items are the keys of a table in an array, their paths relative to it. Those of other
	// tables are items of the text.
	Items []TOMLItem
	Pos   TOMLPos // of an array that of its key

	end int // offset after it, of scalars only; for Add
}

// An TOMLItem is a key with its value. A table has an item of its own, before those of its keys;
// inline tables and dotted keys give the same items as headers.
type TOMLItem struct {
	Path  []string
	Pos   TOMLPos // of the last part of the key
	Value TOMLValue

	end int // offset after the key; for Add
}

// Key is the path with dots between. Parts that are no bare keys are quoted.
func (i *TOMLItem) Key() string { return JoinKeys(i.Path) }

// JoinKeys writes a path as a dotted key.
func JoinKeys(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		if parts[i] = p; !bare(p) {
			parts[i] = QuoteTOML(p)
		}
	}
	return strings.Join(parts, ".")
}

func bare(key string) bool {
	return key != "" && strings.Trim(key,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// An TOMLError is what is wrong with a text, and where.
type TOMLError struct {
	TOMLPos
	Text string // a clause
}

func (e *TOMLError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

// ParseTOML returns the items of a text, in its order. The error is an [*Error].
func ParseTOML(text []byte) ([]TOMLItem, error) {
	r := reader{text: text, seen: map[string]*node{}}
	if len(text) > MaxTOML {
		return nil, &TOMLError{TOMLPos{1, 1}, fmt.Sprintf("the file is larger than %d KiB", MaxTOML>>10)}
	}
	if at := InvalidUTF8(text); at >= 0 {
		return nil, &TOMLError{r.pos(at), "the text is not UTF-8"}
	}
	if text := strings.TrimPrefix(string(text), "\ufeff"); len(text) < len(r.text) {
		return nil, &TOMLError{TOMLPos{1, 1}, "the text begins with a byte order mark; remove it"}
	}
	r.parser.Reset(text)
	for r.parser.NextExpression() {
		if err := r.expression(r.parser.Expression()); err != nil {
			return nil, err
		}
	}
	var bad *unstable.ParserError
	switch err := r.parser.Error(); {
	case errors.As(err, &bad):
		return nil, &TOMLError{r.pos(r.offset(bad.Highlight)), bad.Message}
	case err != nil:
		return nil, &TOMLError{TOMLPos{1, 1}, err.Error()}
	}
	return r.items, nil
}

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func InvalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// A state says how a key was defined, and so what may be added.
type state uint8

const (
	implied state = iota // a table, because a header names one below it
	headed               // a table with a header of its own
	dotted               // a table that dotted keys have made: no header may name it
	closed               // a value or an inline table
)

// A node is a key that was defined.
type node struct {
	pos   TOMLPos
	state state
}

type reader struct {
	parser unstable.Parser
	text   []byte
	table  []string // of the last header
	items  []TOMLItem
	seen   map[string]*node

	at   int     // the offset that was asked for last
	here TOMLPos // its place
}

// pos returns the place of an offset.
func (r *reader) pos(offset int) TOMLPos {
	if offset < r.at || r.here.Line == 0 {
		r.at, r.here = 0, TOMLPos{1, 1}
	}
	for ; r.at < offset; r.at++ {
		switch c := r.text[r.at]; {
		case c == '\n':
			r.here = TOMLPos{r.here.Line + 1, 1}
		case utf8.RuneStart(c):
			r.here.Column++
		}
	}
	return r.here
}

// offset returns where a part of the text begins.
func (r *reader) offset(part []byte) int { return int(r.parser.Range(part).Offset) }

// expression reads one line: a header, or a key with its value.
func (r *reader) expression(e *unstable.Node) error {
	switch e.Kind {
	case unstable.KeyValue:
		return r.pair(e, r.table, 0)
	case unstable.ArrayTable:
		key, err := r.key(e.Key(), nil)
		if err != nil {
			return err
		}
		return &TOMLError{key.Pos, fmt.Sprintf("[[%s]] makes an array of tables, and no key is one; write [%s]",
			key.Key(), key.Key())}
	}
	key, err := r.key(e.Key(), nil)
	if err != nil {
		return err
	}
	r.table = key.Path
	return r.define(key, 0, headed)
}

// key reads a dotted key below a table.
func (r *reader) key(it unstable.Iterator, table []string) (TOMLItem, error) {
	item := TOMLItem{Path: slices.Clone(table)}
	for it.Next() {
		n := it.Node()
		item.Path = append(item.Path, string(n.Data))
		item.Pos = r.pos(int(n.Raw.Offset))
		item.end = int(n.Raw.Offset + n.Raw.Length)
	}
	if len(item.Path) > maxDepth {
		return item, &TOMLError{item.Pos, fmt.Sprintf("the key has more than %d parts", maxDepth)}
	}
	return item, nil
}

// pair reads a key below a table, with its value.
func (r *reader) pair(e *unstable.Node, table []string, depth int) error {
	item, err := r.key(e.Key(), table)
	if err != nil {
		return err
	}
	v := e.Value()
	if v.Kind != unstable.InlineTable {
		if item.Value, err = r.value(v, item.Pos, depth); err != nil {
			return err
		}
		return r.define(item, len(table), closed)
	}
	if err := r.define(item, len(table), dotted); err != nil {
		return err
	}
	if err := r.pairs(v, item.Pos, item.Path, depth); err != nil {
		return err
	}
	r.seen[joined(item.Path)].state = closed
	return nil
}

// pairs reads the keys of an inline table.
func (r *reader) pairs(v *unstable.Node, at TOMLPos, table []string, depth int) error {
	if depth > maxDepth {
		return &TOMLError{at, "tables are nested too deep"}
	}
	for it := v.Children(); it.Next(); {
		if err := r.pair(it.Node(), table, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// joined is a path as a key of a map.
func joined(path []string) string { return strings.Join(path, "\x00") }

// define adds an item, unless its key is defined already or lies in what cannot be added to.
// Its path begins with a table of that many parts.
func (r *reader) define(item TOMLItem, table int, as state) error {
	for i := 1; i < len(item.Path); i++ {
		above := joined(item.Path[:i])
		n, own := r.seen[above], as != headed && i > table // a dotted key has named it
		switch {
		case n == nil && own:
			r.seen[above] = &node{item.Pos, dotted}
		case n == nil:
			r.seen[above] = &node{item.Pos, implied}
		case n.state == closed, own && n.state != dotted:
			return &TOMLError{item.Pos, fmt.Sprintf("nothing can be added to %s here, line %d has it; write its keys there", JoinKeys(item.Path[:i]), n.pos.Line)}
		}
	}
	name := joined(item.Path)
	if n := r.seen[name]; n != nil && (as != headed || n.state != implied) {
		return &TOMLError{item.Pos, fmt.Sprintf("%s is defined twice, first in line %d; remove one",
			item.Key(), n.pos.Line)}
	}
	r.seen[name] = &node{item.Pos, as}
	if as != closed {
		item.Value.Pos = item.Pos
	}
	r.items = append(r.items, item)
	return nil
}

// value reads a value that is no table, or one in an array.
func (r *reader) value(n *unstable.Node, at TOMLPos, depth int) (TOMLValue, error) {
	v := TOMLValue{Text: string(n.Data), Pos: at}
	if n.Raw.Length > 0 {
		v.Pos, v.end = r.pos(int(n.Raw.Offset)), int(n.Raw.Offset+n.Raw.Length)
	}
	switch n.Kind {
	case unstable.String:
		v.Kind = String
	case unstable.Integer, unstable.Float:
		v.Kind, v.Text = Number, strings.ReplaceAll(v.Text, "_", "")
	case unstable.Bool:
		v.Kind = Bool
	case unstable.Array:
		v.Kind, v.Text = Array, ""
		if depth > maxDepth {
			return v, &TOMLError{at, "arrays are nested too deep"}
		}
		for it := n.Children(); it.Next(); {
			element, err := r.value(it.Node(), v.Pos, depth+1)
			if err != nil {
				return v, err
			}
			v.List = append(v.List, element)
		}
	case unstable.InlineTable:
		v.Kind, v.Text = Table, ""
		items, seen := r.items, r.seen
		r.items, r.seen = nil, map[string]*node{}
		err := r.pairs(n, v.Pos, nil, depth)
		v.Items = r.items
		r.items, r.seen = items, seen
		return v, err
	default:
		v.Kind = Date
	}
	return v, nil
}

// QuoteTOML writes a string as a TOML basic string.
func QuoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
