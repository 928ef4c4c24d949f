// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// An edit puts a text in the place of a part of another.
type edit struct {
	from, to int
	by       string
}

// splice makes edits that do not overlap. The result is never nil, which is no file.
func splice(txt []byte, edits ...edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	out := make([]byte, 0, len(txt))
	at := 0
	for _, e := range edits {
		out = append(append(out, txt[at:e.from]...), e.by...)
		at = e.to
	}
	return append(out, txt[at:]...)
}

// eolOf is the line end of a text: that of its first line.
func eolOf(txt []byte) string {
	if line, _, ok := bytes.Cut(txt, []byte("\n")); ok && bytes.HasSuffix(line, []byte("\r")) {
		return "\r\n"
	}
	return "\n"
}

// lineBegin and lineEnd are the places of the line of a place, without its end.
func (p *page) lineBegin(at int) int { return bytes.LastIndexByte(p.plain[:at], '\n') + 1 }

func (p *page) lineEnd(at int) int {
	line, _, _ := bytes.Cut(p.plain[at:], []byte("\n"))
	return at + len(bytes.TrimSuffix(line, []byte("\r")))
}

// indent is what the line of a place begins with, and whether that is all before the place.
func (p *page) indent(at int) (indent string, all bool) {
	line := bytes.TrimPrefix(p.text[p.lineBegin(at):at], []byte(bom))
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0
}

// unit is by how much the first member is indented: two blanks where nothing shows it.
func (p *page) unit() string {
	if items := p.items(p.root); len(items) > 0 {
		if in, all := p.indent(items[0].begin); all && in != "" {
			return in
		}
	}
	return "  "
}

// isLine reports whether an object or array has something and is in one line.
func (p *page) isLine(n node) bool {
	return bytes.IndexByte(p.text[n.begin:n.end], '\n') < 0 && len(p.items(n)) > 0
}

// render writes a value over several lines, indented behind indent.
func (p *page) render(value, indent string) string {
	var b bytes.Buffer
	_ = json.Indent(&b, []byte(value), indent, p.unit()) // it is valid
	return strings.ReplaceAll(b.String(), "\n", eolOf(p.text))
}

// put adds the member with a path, which must not exist, or with list an element of the array with it.
// Objects on the way are added as well.
func (p *page) put(value string, list bool, path ...string) ([]byte, error) {
	n, rest, err := p.find(path...)
	if err != nil {
		return nil, err
	}
	if i := len(path) - len(rest) - 1; i >= 0 {
		kind := byte('{')
		if len(rest) == 0 {
			kind = '['
		}
		if err := p.mustBe(kind, n, encode(path[i])); err != nil {
			return nil, err
		}
	}
	if list && len(rest) > 0 {
		value = "[" + value + "]"
	}
	for len(rest) > 1 || len(rest) == 1 && n.begin == n.end {
		value = "{" + encode(rest[len(rest)-1]) + ":" + value + "}"
		rest = rest[:len(rest)-1]
	}
	if n.begin < n.end {
		return p.insert(n, strings.Join(rest, ""), value), nil
	}
	// There are blanks and comments at most.
	at := len(bytes.TrimRight(p.text, " \t\r\n"))
	s, eol := p.render(value, ""), eolOf(p.text)
	if len(bytes.TrimPrefix(p.text[:at], []byte(bom))) > 0 {
		s, at = eol+s, p.lineEnd(at)
	}
	if at == len(p.text) {
		s += eol
	}
	return splice(p.text, edit{at, at, s}), nil
}

// insert adds an item to the end of an object or array; key is "" for an element.
func (p *page) insert(in node, key, value string) []byte {
	items, eol, colon := p.items(in), eolOf(p.text), ": "
	line := p.isLine(in) || p.isLine(p.root)
	blank := " " // between items of a line
	if line && !bytes.Contains(p.plain[p.root.begin:p.root.end], []byte(": ")) {
		colon, blank = ":", ""
	}
	if key != "" {
		key = encode(key) + colon
	}
	base, _ := p.indent(in.begin)
	indent, at := base+p.unit(), in.begin+1
	end := ""
	var before []edit
	if len(items) > 0 {
		last := items[len(items)-1]
		if own, all := p.indent(last.begin); all {
			indent = own
		}
		if at = last.value.end; last.comma >= 0 {
			at, end = last.comma+1, ","
		} else {
			before = []edit{{at, at, ","}}
		}
	}
	switch {
	case line:
		if len(items) == 0 {
			blank = ""
		}
		return splice(p.text, append(before, edit{at, at, blank + key + value + end})...)
	case len(items) > 0: // behind the comments that end the line
		rest := p.text[at:p.lineEnd(at)]
		open := bytes.LastIndex(rest, []byte("/*")) > bytes.LastIndex(rest, []byte("*/"))
		if len(bytes.TrimSpace(p.plain[at:at+len(rest)])) == 0 && !open {
			at += len(rest)
		}
	default: // behind the comments
		at += len(bytes.TrimRight(p.text[at:in.end-1], " \t\r\n"))
		if stop := p.lineEnd(at); stop < in.end {
			at = stop
		} else {
			end = eol + base
		}
	}
	return splice(p.text, append(before, edit{at, at, eol + indent + key + p.render(value, indent) + end})...)
}

// replacing is the edit that puts a value in the place of another, in as many lines.
func (p *page) replacing(n node, value string) edit {
	if bytes.IndexByte(p.text[n.begin:n.end], '\n') >= 0 {
		indent, _ := p.indent(n.begin)
		value = p.render(value, indent)
	}
	return edit{n.begin, n.end, value}
}

// cut removes an item with its comma, and its line if that has nothing else.
func (p *page) cut(in node, i int) []byte {
	items := p.items(in)
	it := items[i]
	from, to := it.begin, it.value.end
	var edits []edit
	if it.comma >= 0 {
		edits = append(edits, edit{it.comma, it.comma + 1, ""})
	} else if i > 0 {
		edits = append(edits, edit{items[i-1].comma, items[i-1].comma + 1, ""})
	}
	_, begins := p.indent(from)
	if rest := p.text[to:p.lineEnd(to)]; begins && len(bytes.TrimSpace(bytes.TrimPrefix(rest,
		[]byte(",")))) == 0 {
		from = p.lineEnd(p.lineBegin(p.lineBegin(from) - 1)) // with the end of the line before
	} else {
		from -= len(p.text[:from]) - len(bytes.TrimRight(p.text[:from], " \t"))
	}
	return splice(p.text, append(edits, edit{from, to, ""})...)
}

// cutMember removes the member with a path, which must exist.
func (p *page) cutMember(path ...string) ([]byte, error) {
	name := path[len(path)-1]
	if _, _, err := p.find(path...); err != nil {
		return nil, err
	}
	in, _, err := p.find(path[:len(path)-1]...)
	return p.cut(in, slices.IndexFunc(p.items(in), func(it item) bool { return it.name == name })), err
}
