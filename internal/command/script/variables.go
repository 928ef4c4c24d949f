// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// assign lists what a script sets by an assignment that runs code.
func (rd *reader) assign(at place, a *syntax.Assign) {
	switch {
	case a.Name == nil && a.Value != nil: // of export, "NAME=VALUE"
		for _, text := range at.scope.texts(a.Value) {
			if name, value, ok := strings.Cut(text, "="); ok {
				rd.value(at, name, value)
			}
		}
	case a.Name == nil:
	case a.Index != nil && (a.Name.Value == "functions" || a.Name.Value == "aliases"): // of zsh
		for _, text := range at.scope.texts(a.Value) {
			rd.nested(at, a.Name.Value, text, nil)
		}
	case a.Value != nil && programs.Holds(a.Name.Value) != programs.NoCode:
		for _, text := range at.scope.texts(a.Value) {
			rd.value(at, a.Name.Value, text)
		}
	}
}

// value lists what a variable that runs code runs.
func (rd *reader) value(at place, name, text string) {
	in := at.deeper(name)
	switch programs.Holds(name) {
	case programs.ACommand:
		in.scope = &scope{outer: at.scope, at: at.offset}
		rd.script(in, text)
	case programs.APrompt:
		rd.prompt(in, text)
		if name == "PS4" && strings.Contains(text, Gap) {
			rd.unknown(at, DynamicScript)
		}
	case programs.AStartup:
		rd.prompt(in, text)
		if programs.Dynamic(text) {
			rd.unknown(at, DynamicScript)
		} else if text != "" {
			rd.startup(in, text)
		}
	case programs.AFile:
		if programs.HoldsCode(name) {
			rd.code(in, name, text)
		}
		for _, f := range strings.Split(text, ":") {
			if f != "" {
				rd.file(File{Names: []string{f}})
			}
		}
	case programs.SomeOptions:
		if program := programs.OptionsOf(name); program != "" {
			rd.through(in, program, append([]string{program}, strings.Fields(text)...))
			if strings.ContainsAny(text, `"'\\`) {
				for _, words := range in.words(program + " " + text) {
					rd.through(in, program, words)
				}
			}
		}
	case programs.AFunction:
		rd.nested(in, name, "f "+text, nil)
	case programs.GitSettings:
		rd.gitVariable(in, name, text)
	}
}

// words returns the words of a text, as shells take it apart.
func (at place) words(text string) (all []choice) {
	sh := parse(text)
	if sh.file == nil || sh.why != "" {
		return nil
	}
	for _, s := range sh.file.Stmts {
		if call, ok := s.Cmd.(*syntax.CallExpr); ok {
			all = append(all, at.scope.commands(call.Args)...)
		}
	}
	return all
}

// startup lists what shells read at their start, where that is a descriptor.
func (rd *reader) startup(at place, name string) {
	if in, ok := at.descriptor(name); ok {
		at.stdin = in
		rd.input(at, at.through, nil)
		return
	}
	rd.file(File{Names: []string{name}})
}

// prompt lists the commands in a text in which a shell performs expansions.
func (rd *reader) prompt(at place, text string) {
	for _, t := range unique([]string{text, programs.AnsiC(text)}) {
		if !strings.ContainsAny(t, "$`") {
			continue
		}
		end := "_"
		for strings.Contains(t, end) {
			end += "_"
		}
		sh := parse(": <<" + end + "\n" + strings.ReplaceAll(t, Rest, Gap) + "\n" + end + "\n")
		if sh.why != "" {
			rd.unknown(at, sh.why)
		}
		if sh.file == nil {
			continue
		}
		in := at
		in.scope = &scope{outer: at.scope, at: at.offset}
		for _, s := range sh.file.Stmts {
			for _, r := range s.Redirs {
				rd.inner(in, r)
			}
		}
	}
}

// prompted lists the commands of a variable that is expanded as a prompt.
func (rd *reader) prompted(at place, pe *syntax.ParamExp) {
	if pe.Exp == nil || pe.Exp.Op != syntax.OtherParamOps || pe.Param == nil {
		return
	}
	if word := pe.Exp.Word; word == nil || programs.Literal(word) != "P" {
		return
	}
	values, from := at.scope.named(pe)
	if pe.Excl || from == computed {
		rd.unknown(at, DynamicScript)
	}
	for _, v := range values {
		for _, text := range v.words {
			if programs.Dynamic(text) {
				rd.unknown(at, DynamicScript)
			}
			rd.prompt(at.deeper("@P"), text)
		}
	}
}

// variables lists what variables run that a script sets otherwise than by an assignment.
func (rd *reader) variables(at place) {
	for _, name := range slices.Sorted(maps.Keys(at.scope.vars)) {
		if programs.Holds(name) == programs.NoCode {
			continue
		}
		for _, a := range at.scope.vars[name].assigned {
			if a.unknown && a.word == nil && !a.list || a.unknown && a.list && !a.each {
				rd.unknown(at, DynamicScript)
			}
			for _, w := range a.words {
				for _, text := range at.scope.texts(w) {
					rd.value(at, name, text)
				}
			}
			for _, text := range a.fixed {
				rd.value(at, name, text)
			}
		}
	}
}
