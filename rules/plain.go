// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"go.starlark.net/starlark"
)

// A plainReader reads texts that are nothing but calls with strings and lists of strings, as
// remembered rules are and most that people write. It is five times as fast as the
// interpreter. It knows no errors: what it does not understand is the interpreter's.
type plainReader struct {
	text string
	at   int
	line int // from 1
}

// plain executes a text if it is one for a plainReader and has no errors. Else what the
// program has must be dropped.
func (p *program) plain(text string) bool {
	r := &plainReader{text: text, line: 1}
	functions := p.functions()
	for {
		r.space()
		if r.at == len(text) {
			return true
		}
		if r.at > 0 && text[r.at-1] != '\n' {
			return false
		}
		pos := Pos{p.file, r.line, 1}
		call := functions[r.name()]
		args, kwargs, ok := r.arguments()
		if !ok || call == nil || call(pos, args, kwargs) != nil {
			return false
		}
		r.at += len(text[r.at:]) - len(strings.TrimLeft(text[r.at:], " "))
		if r.at < len(text) && text[r.at] != '\n' && text[r.at] != '#' {
			return false
		}
	}
}

// space skips blanks, line ends and comments.
func (r *plainReader) space() {
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case ' ':
		case '\n':
			r.line++
		case '#':
			n := strings.IndexByte(r.text[r.at:], '\n')
			if n < 0 {
				n = len(r.text) - r.at
			}
			r.at += n - 1 // the line end is next
		default:
			return
		}
	}
}

// name reads a name, which may be empty.
func (r *plainReader) name() string {
	begin := r.at
	for r.at < len(r.text) && r.text[r.at] < 0x80 && word(r.text[r.at]) {
		r.at++
	}
	return r.text[begin:r.at]
}

// take skips a byte if it is next.
func (r *plainReader) take(c byte) bool {
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// arguments reads the parentheses of a call.
func (r *plainReader) arguments() (args starlark.Tuple, kwargs []starlark.Tuple, ok bool) {
	if !r.take('(') {
		return nil, nil, false
	}
	for {
		r.space()
		if r.take(')') {
			return args, kwargs, true
		}
		name := r.name()
		if name != "" {
			if r.space(); !r.take('=') {
				return nil, nil, false
			}
			r.space()
		}
		v := r.value(0)
		switch {
		case v == nil, name == "" && kwargs != nil:
			return nil, nil, false
		case name == "":
			args = append(args, v)
		default:
			kwargs = append(kwargs, starlark.Tuple{starlark.String(name), v})
		}
		if r.space(); !r.take(',') && (r.at == len(r.text) || r.text[r.at] != ')') {
			return nil, nil, false
		}
	}
}

// value reads a string, a list or a truth value, and returns nil for others.
func (r *plainReader) value(depth int) starlark.Value {
	switch {
	case r.take('"'):
		return r.quoted('"')
	case r.take('\''):
		return r.quoted('\'')
	case !r.take('['):
		switch r.name() {
		case "True":
			return starlark.True
		case "False":
			return starlark.False
		}
		return nil
	case depth > 1:
		return nil
	}
	list := []starlark.Value{}
	for {
		r.space()
		if r.take(']') {
			return starlark.NewList(list)
		}
		v := r.value(depth + 1)
		if v == nil {
			return nil
		}
		list = append(list, v)
		if r.space(); !r.take(',') && (r.at == len(r.text) || r.text[r.at] != ']') {
			return nil
		}
	}
}

// quoted reads the rest of a string.
func (r *plainReader) quoted(quote byte) starlark.Value {
	rest := r.text[r.at:]
	n := strings.IndexByte(rest, quote)
	if n < 0 || strings.ContainsAny(rest[:n], "\\\n") {
		return nil
	}
	r.at += n + 1
	return starlark.String(rest[:n])
}
