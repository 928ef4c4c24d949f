// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// values returns what an expansion may yield. A nil part is an unknown part of a script.
func (sc *scope) values(part syntax.WordPart) ([]value, origin) {
	switch part := part.(type) {
	case *syntax.ParamExp:
		return sc.param(part)
	case *syntax.CmdSubst:
		if texts, ok := sc.output(part.Stmts); ok {
			for i := range texts {
				texts[i] = strings.TrimRight(texts[i], "\n")
			}
			return scalars(texts), known
		}
	case *syntax.ArithmExp, *syntax.ProcSubst:
		return scalars([]string{Gap}), known
	case *syntax.ExtGlob:
		return scalars([]string{Gap}), known
	}
	return nil, computed
}

func scalars(texts []string) []value {
	values := make([]value, len(texts))
	for i, t := range texts {
		values[i] = value{words: []string{t}}
	}
	return values
}

// param returns the values of a parameter expansion.
func (sc *scope) param(pe *syntax.ParamExp) ([]value, origin) {
	switch {
	case pe.Param == nil || pe.Excl || pe.Width || pe.IsSet || pe.Flags != nil || pe.NestedParam != nil ||
		pe.Slice != nil || pe.Repl != nil || pe.Names != 0 || len(pe.Modifiers) > 0:
		return nil, computed
	case pe.Length:
		return scalars([]string{Gap}), known // a number
	}
	values, from := sc.named(pe)
	if pe.Exp == nil {
		return values, from
	}
	switch pe.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return append(scalars(sc.texts(pe.Exp.Word)), value{words: []string{""}}), known
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return append(values, scalars(sc.texts(pe.Exp.Word))...), from
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values, from
	}
	return nil, computed
}

// named returns the values of a parameter with a name, a number or a special character.
func (sc *scope) named(pe *syntax.ParamExp) ([]value, origin) {
	name := pe.Param.Value
	switch name {
	case "@", "*":
		return sc.spread(sc.arguments(), name == "*"), known
	case "0":
		for s := sc; s != nil; s = s.outer {
			if s.self != "" {
				return scalars([]string{s.self}), known
			}
		}
		return nil, inherited
	case "#", "?", "$", "!", "-":
		return scalars([]string{Gap}), known
	case "_":
		return nil, computed
	}
	if n, err := strconv.Atoi(name); err == nil {
		return sc.argument(n)
	}
	texts, lists, from := sc.lookup(name, pe.Pos().Offset())
	w, ok := pe.Index.(*syntax.Word)
	if !ok || programs.Literal(w) != "@" && programs.Literal(w) != "*" {
		return scalars(texts), from
	}
	for _, t := range texts { // it may be no array
		lists = append(slices.Clip(lists), []string{t})
	}
	if from != known {
		lists = append(slices.Clip(lists), []string{Rest})
	}
	return sc.spread(lists, programs.Literal(w) == "*"), known
}

// spread are the values of "$@" or, joined, "$*".
func (sc *scope) spread(lists [][]string, joined bool) []value {
	var all []value
	for _, l := range lists {
		all = append(all, value{words: l, list: true})
		if joined {
			for _, separators := range sc.separators() {
				between := separators[:min(1, len(separators))]
				if separators == Gap {
					between = Gap
				}
				all = append(all, scalars([]string{joinWords(l, between)})...)
			}
		}
	}
	return all
}

// argument returns the values of a positional parameter.
func (sc *scope) argument(n int) ([]value, origin) {
	var texts []string
	from := known
	for _, list := range sc.arguments() {
		text := ""
		for i := range min(n, len(list)) {
			if list[i] == Rest {
				from = computed
			} else if i == n-1 {
				text = list[i]
			}
		}
		texts = append(texts, text)
	}
	return scalars(unique(texts)), from
}

// output returns the readings of what statements print, if they are one echo or printf, or a
// command that prints what it was given.
func (sc *scope) output(stmts []*syntax.Stmt) ([]string, bool) {
	if len(stmts) != 1 || stmts[0].Negated || stmts[0].Background {
		return nil, false
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return nil, false
	}
	if programs.Literal(call.Args[0]) == "cat" && len(call.Args) == 1 && !sc.defined("cat") {
		in := place{scope: sc}.redirected(stmts[0].Redirs).stdin
		return append(slices.Clip(in.texts), ""), in.kind == inText // nothing where there is no cat
	}
	if len(stmts[0].Redirs) > 0 {
		return nil, false
	}
	var all []string
	for _, words := range sc.commands(call.Args) {
		texts, ok := printed(words)
		if !ok || len(words) > 0 && sc.defined(words[0]) {
			return nil, false
		}
		all = append(all, texts...)
	}
	return unique(all), true
}

// defined reports whether a name may be a function or an alias.
func (sc *scope) defined(name string) bool {
	for s := sc; s != nil; s = s.outer {
		if len(s.funcs[name]) > 0 || len(s.calls["alias"]) > 0 {
			return true
		}
	}
	return false
}

// printed is what a command prints; shells differ about the escapes of echo.
func printed(words []string) ([]string, bool) {
	if len(words) == 0 {
		return []string{""}, true
	}
	name, args := words[0], words[1:]
	switch name {
	case "echo":
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
			args = args[1:]
		}
		text := joinWords(args, " ")
		return unique([]string{text, programs.AnsiC(text)}), true
	case "printf":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && !slices.Contains(args, Rest) {
			text, ok := format(programs.AnsiC(args[0]), args[1:])
			return []string{text}, ok
		}
	case "mktemp", "pwd":
		if strings.Trim(strings.Join(args, ""), "-dqutLP") == "" {
			return []string{"/" + Gap, ""}, true
		}
	case "which", "command", "type":
		if len(args) > 0 && !slices.Contains(args, Rest) &&
			(name == "which" || strings.HasPrefix(args[0], "-")) {
			return []string{args[len(args)-1], ""}, !strings.HasPrefix(args[len(args)-1], "-")
		}
	}
	return nil, false
}

// format is what printf prints for a format with %s only.
func format(text string, args []string) (string, bool) {
	var b strings.Builder
	for round := 0; round == 0 || len(args) > 0; round++ {
		before, rest := len(args), text
		for {
			at := strings.IndexByte(rest, '%')
			if at < 0 || at+1 == len(rest) {
				b.WriteString(rest)
				break
			}
			b.WriteString(rest[:at])
			switch verb := rest[at+1]; {
			case verb == '%':
				b.WriteByte('%')
			case strings.IndexByte("sbq", verb) < 0:
				return "", false
			case len(args) > 0 && verb == 'b':
				b.WriteString(programs.AnsiC(args[0]))
				args = args[1:]
			case len(args) > 0:
				b.WriteString(args[0])
				args = args[1:]
			}
			rest = rest[at+2:]
		}
		if len(args) == before || b.Len() > maxWordBytes {
			break
		}
	}
	return b.String(), b.Len() <= maxWordBytes
}
