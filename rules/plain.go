// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"strings"

	"go.starlark.net/starlark"
)

// plain reads a text that is nothing but calls whose arguments are named and JSON as well as
// Starlark: strings without escapes, and lists of them. So are remembered rules and most that
// people write, and the interpreter takes four times as long. It reports whether the text is
// such a one without errors; else what the program has must be dropped.
func (p *program) plain(text string) bool {
	functions, rest, line := p.functions(), text, 1
	for {
		call := afterBlanks(rest)
		if call == "" {
			return true
		}
		line += strings.Count(rest[:len(rest)-len(call)], "\n")
		name, arguments, _ := strings.Cut(call, "(")
		kwargs, after, ok := plainArguments(arguments)
		before := text[:len(text)-len(call)]
		switch {
		case !ok, functions[name] == nil, before != "" && before[len(before)-1] != '\n':
			return false
		case functions[name](Pos{p.file, line, 1}, nil, kwargs) != nil:
			return false
		}
		line += strings.Count(call[:len(call)-len(after)], "\n")
		rest = after
	}
}

// afterBlanks skips blanks, line ends and comments.
func afterBlanks(text string) string {
	for {
		text = strings.TrimLeft(text, " \n")
		if !strings.HasPrefix(text, "#") {
			return text
		}
		_, text, _ = strings.Cut(text, "\n")
	}
}

// plainArguments reads the arguments of a call and its closing parenthesis.
func plainArguments(text string) (kwargs []starlark.Tuple, rest string, ok bool) {
	for {
		text = afterBlanks(text)
		if rest, ok = strings.CutPrefix(text, ")"); ok {
			return kwargs, rest, true
		}
		name, value, _ := strings.Cut(text, "=")
		var v any
		decoder := json.NewDecoder(strings.NewReader(value))
		if decoder.Decode(&v) != nil || strings.Contains(value[:decoder.InputOffset()], `\`) {
			return nil, "", false
		}
		arg := plainValue(v)
		text = afterBlanks(value[decoder.InputOffset():])
		if text, ok = strings.CutPrefix(text, ","); arg == nil || !ok && !strings.HasPrefix(text, ")") {
			return nil, "", false
		}
		kwargs = append(kwargs, starlark.Tuple{starlark.String(strings.Trim(name, " ")), arg})
	}
}

// plainValue returns a string or a list, and nil for others.
func plainValue(v any) starlark.Value {
	switch v := v.(type) {
	case string:
		return starlark.String(v)
	case []any:
		list := make([]starlark.Value, len(v))
		for i := range v {
			if list[i] = plainValue(v[i]); list[i] == nil {
				return nil
			}
		}
		return starlark.NewList(list)
	}
	return nil
}
