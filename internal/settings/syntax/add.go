// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AddTOML writes a string as the value of a key of one or two parts or, with list, adds it to the
// array of the key unless it is an element already. A key that is missing is written, and its
// table if that is missing as well. Nothing else of the text changes: what was made is parsed
// again, and must say what the text said and the one thing more. The error is an [*Error]: the
// text is not valid, the key has a value of another kind, or the change has to be made by hand.
func AddTOML(text []byte, path []string, value string, list bool) ([]byte, error) {
	items, err := ParseTOML(text)
	if err != nil {
		return nil, err
	}
	e := editor{text: text, items: items, path: path, value: value, list: list, eol: "\n"}
	if line, _, ok := bytes.Cut(text, []byte("\n")); ok && bytes.HasSuffix(line, []byte("\r")) {
		e.eol = "\r\n"
	}
	if found := e.find(path); found != nil {
		return e.existing(found)
	}
	return e.missing()
}

type editor struct {
	text  []byte
	items []TOMLItem
	path  []string
	value string
	list  bool
	eol   string
}

// find returns the item of a path, or nil.
func (e *editor) find(path []string) *TOMLItem {
	if i := slices.IndexFunc(e.items, func(i TOMLItem) bool { return slices.Equal(i.Path, path) }); i >= 0 {
		return &e.items[i]
	}
	return nil
}

// line is the key with its value, as a line.
func (e *editor) line(key []string) string {
	if e.list {
		return JoinKeys(key) + " = [" + QuoteTOML(e.value) + "]"
	}
	return JoinKeys(key) + " = " + QuoteTOML(e.value)
}

// existing changes the value of a key.
func (e *editor) existing(i *TOMLItem) ([]byte, error) {
	v := &i.Value
	switch {
	case e.list && v.Kind != Array:
		return nil, &TOMLError{v.Pos, fmt.Sprintf("%s is %s, not an array; write it as one", i.Key(), v.Kind)}
	case !e.list && v.Kind != String:
		return nil, &TOMLError{v.Pos, fmt.Sprintf("%s is %s, not a string; write it as one", i.Key(), v.Kind)}
	case !e.list && v.Text == e.value:
		return e.text, nil
	case e.list && slices.ContainsFunc(v.List, func(o TOMLValue) bool {
		return o.Kind == String &&
			o.Text == e.value
	}):
		return e.text, nil
	}
	at := e.begin(i.end)
	switch {
	case !e.list:
		return e.checked(at, v.end, QuoteTOML(e.value))
	case len(v.List) == 0:
		end := e.lineEnd(at)
		if rest := bytes.TrimLeft(e.text[at+1:end], " \t"); end < len(e.text) &&
			(len(rest) == 0 || rest[0] == '#') {
			return e.checked(end, end, e.eol+"  "+QuoteTOML(e.value)+",")
		}
		return e.checked(at+1, at+1, QuoteTOML(e.value))
	}
	last := &v.List[len(v.List)-1]
	if last.end == 0 {
		return nil, e.byHand(i.Pos)
	}
	return e.append(last)
}

// append adds an element behind the last one of an array: on a line of its own if that one has
// one, after the comment there.
func (e *editor) append(last *TOMLValue) ([]byte, error) {
	begin, end := e.lineBegin(last.end), e.lineEnd(last.end)
	line := e.text[begin:]
	indent := string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
	rest := string(e.text[last.end:end])
	after := strings.TrimLeft(rest, " \t")
	behind, comma := strings.CutPrefix(after, ",")
	behind = strings.TrimLeft(behind, " \t")
	first := last.Pos == TOMLPos{bytes.Count(e.text[:begin], []byte("\n")) + 1, len(indent) + 1}
	switch quoted := QuoteTOML(e.value); {
	case !first || behind != "" && behind[0] != '#':
		return e.checked(last.end, last.end, ", "+quoted)
	case comma:
		return e.checked(end, end, e.eol+indent+quoted+",")
	default:
		return e.checked(last.end, end, ","+rest+e.eol+indent+quoted)
	}
}

// missing writes a key that there is not.
func (e *editor) missing() ([]byte, error) {
	above := e.path[:len(e.path)-1]
	if len(above) == 0 {
		return e.atTop()
	}
	if table := e.find(above); table != nil && table.Value.Kind == Table {
		return e.inTable(table)
	}
	root := e.root()
	for i := range root {
		if root[i].Path[0] == above[0] && len(root[i].Path) > 1 { // project.grants = [...]
			begin := e.lineBegin(root[i].end)
			return e.checked(begin, begin, e.line(e.path)+e.eol)
		}
	}
	return e.atEnd("[" + JoinKeys(above) + "]" + e.eol + e.line(e.path[len(above):]))
}

// inTable adds the key to a table that has a header or is written inline.
func (e *editor) inTable(table *TOMLItem) ([]byte, error) {
	line := e.line(e.path[len(e.path)-1:])
	if e.isHeader(table) {
		at := e.lineEnd(table.end)
		return e.checked(at, at, e.eol+line)
	}
	at := e.begin(table.end) + 1
	if bytes.HasPrefix(bytes.TrimLeft(e.text[at:], " \t"), []byte("}")) {
		return e.checked(at, at, " "+line+" ")
	}
	return e.checked(at, at, " "+line+",")
}

// atTop adds a line above the first header.
func (e *editor) atTop() ([]byte, error) {
	root := e.root()
	line := e.line(e.path)
	if len(root) == 0 {
		if len(e.items) == 0 {
			return e.atEnd(line)
		}
		at := e.lineBegin(e.items[0].end)
		for at > 0 && e.text[e.lineBegin(at-1)] == '#' { // the comment of that table
			at = e.lineBegin(at - 1)
		}
		return e.checked(at, at, line+e.eol+e.eol)
	}
	after := 0
	for i := range root {
		after = max(after, root[i].end, ends(&root[i].Value))
	}
	// The end of an array is not known: it is one of the next lines.
	const most = 32
	for range most {
		at := e.lineEnd(after)
		if out, err := e.checked(at, at, e.eol+line); err == nil {
			return out, nil
		}
		after = min(at+len(e.eol), len(e.text))
	}
	return nil, e.byHand(root[len(root)-1].Pos)
}

// atEnd adds lines at the end.
func (e *editor) atEnd(lines string) ([]byte, error) {
	before := ""
	if len(e.text) > 0 {
		if before = e.eol; e.text[len(e.text)-1] != '\n' {
			before += e.eol
		}
	}
	return e.checked(len(e.text), len(e.text), before+lines+e.eol)
}

// root returns the items above the first header.
func (e *editor) root() []TOMLItem {
	if i := slices.IndexFunc(e.items, func(i TOMLItem) bool { return e.isHeader(&i) }); i >= 0 {
		return e.items[:i]
	}
	return e.items
}

// isHeader reports whether an item is a [header].
func (e *editor) isHeader(i *TOMLItem) bool {
	return i.Value.Kind == Table && bytes.HasPrefix(bytes.TrimLeft(e.text[i.end:], " \t"), []byte("]"))
}

// ends returns the last offset of a value that is known; 0 if none is.
func ends(v *TOMLValue) int {
	last := v.end
	for i := range v.List {
		last = max(last, ends(&v.List[i]))
	}
	return last
}

// begin returns where the value of a key begins that ends at an offset.
func (e *editor) begin(key int) int {
	rest := bytes.TrimLeft(e.text[key:], " \t=")
	return len(e.text) - len(rest)
}

func (e *editor) lineBegin(at int) int { return bytes.LastIndexByte(e.text[:at], '\n') + 1 }

// lineEnd returns the offset of the end of a line, without its line end.
func (e *editor) lineEnd(at int) int {
	line, _, _ := bytes.Cut(e.text[at:], []byte("\n"))
	return at + len(bytes.TrimSuffix(line, []byte("\r")))
}

// byHand is the error for a text that cannot be changed alone.
func (e *editor) byHand(at TOMLPos) error {
	return &TOMLError{at, "the text is written in a way that cannot be added to; add this by hand: " +
		e.line(e.path)}
}

// checked puts a text in the place of a part, and returns the whole if it says one thing more.
func (e *editor) checked(from, to int, by string) ([]byte, error) {
	out := slices.Concat(e.text[:from], []byte(by), e.text[to:])
	items, err := ParseTOML(out)
	if err != nil || !e.says(items) {
		return nil, e.byHand(TOMLPos{1, 1})
	}
	return out, nil
}

// says reports whether items are those of the text and the one thing more.
func (e *editor) says(items []TOMLItem) bool {
	want, got := map[string]string{}, map[string]string{}
	for i := range items {
		got[joined(items[i].Path)] = said(items[i].Value)
	}
	if above := joined(e.path[:len(e.path)-1]); got[above] == said(TOMLValue{}) {
		want[above] = got[above] // the table may be new
	}
	for i := range e.items {
		want[joined(e.items[i].Path)] = said(e.items[i].Value)
	}
	value := TOMLValue{Kind: String, Text: e.value}
	if e.list {
		list := TOMLValue{Kind: Array}
		if old := e.find(e.path); old != nil {
			list.List = slices.Clone(old.Value.List)
		}
		list.List = append(list.List, value)
		value = list
	}
	want[joined(e.path)] = said(value)
	return maps.Equal(want, got)
}

// said is a value without its place, as a text that no other value has.
func said(v TOMLValue) string {
	text := fmt.Sprintf("%d%q", v.Kind, v.Text)
	for _, element := range v.List {
		text += "[" + said(element) + "]"
	}
	for _, i := range v.Items {
		text += fmt.Sprintf("{%q%s}", i.Path, said(i.Value))
	}
	return text
}
