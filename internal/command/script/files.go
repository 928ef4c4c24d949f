// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// A File is one that a program reads as code, or as settings that run code.
type File struct {
	// Names are where it is looked up: the first that exists is read. They may contain Gap.
	Names []string
	// Maybe says that it is a file whose content may be taken for code, or may not.
	Maybe bool
	// Project says that the program reads it without being told.
	Project bool
}

// A code is a text in the language of a program that is not a shell.
type code struct {
	text string
	by   string
	at   place
}

// Codes returns the texts in languages of other programs than shells that are on the command line, or
// in its scripts.
func (r *Reading) Codes() []string {
	all := make([]string, len(r.codes))
	for i, c := range r.codes {
		all[i] = c.text
	}
	return all
}

// interpreter notes the code and the files of an interpreter.
func (rd *reader) interpreter(at place, name string, args []string) {
	in, ok := programs.Language(name)
	if !ok {
		if programs.Open(args) > 0 || programs.Wordy(name) { // it may take its input for code
			for _, text := range at.input().texts {
				rd.code(at, name, text)
			}
		}
		if programs.Wordy(name) {
			rd.mayHold(at.input().names)
		}
		return
	}
	t := in.Tell(name, args)
	for _, text := range t.Codes {
		rd.code(at, name, text)
	}
	for _, f := range t.Files {
		rd.codeFile(at, name, f)
	}
	rd.data(at, name, args, &in, &t)
	for _, m := range t.Modules {
		dir := strings.ReplaceAll(m, ".", "/")
		rd.file(File{Names: []string{dir + ".py", dir + "/__main__.py", dir + "/__init__.py"}})
	}
	if len(t.Codes)+len(t.Files)+len(t.Modules) > 0 && !in.Settings || in.First {
		return
	}
	switch stdin := at.input(); stdin.kind {
	case inText:
		for _, text := range stdin.texts {
			rd.code(at, name, text)
		}
	case inFile:
		if in.Settings {
			rd.mayHold(stdin.names)
		} else {
			rd.file(File{Names: stdin.names})
		}
	case inUnknown:
		if !in.Settings {
			rd.sources(at, stdin.from)
		}
	}
}

// codeFile notes a file that a program reads as code: its text, where that is known, or its name.
func (rd *reader) codeFile(at place, name, file string) {
	other, ok := at.descriptor(file)
	if file == "-" {
		other, ok = at.input(), true
	}
	switch {
	case ok && other.kind == inText:
	case strings.Contains(file, Gap) && len(at.printed) > 0: // <(...)
		other.texts = at.printed
	case name == "cargo" && strings.Contains(file, "="): // a setting
		other.texts = []string{file}
	default:
		rd.file(File{Names: []string{file}})
		return
	}
	for _, text := range other.texts {
		rd.code(at, name, text)
	}
}

// data notes the words, and the input, of code that may run what it is given.
func (rd *reader) data(at place, name string, args []string, in *programs.Interpreter, t *programs.Told) {
	if !slices.ContainsFunc(t.Codes, func(text string) bool { return programs.Executes(name, text) }) {
		if len(t.Modules) == 0 || !slices.Contains(consoles, t.Modules[0]) {
			return
		}
	} else if in.First {
		for _, w := range args[1:] {
			if _, value, ok := strings.Cut(w, "="); ok {
				w = value
			}
			if strings.Contains(w, " ") && !slices.Contains(t.Codes, w) {
				rd.code(at, name+" argument", w)
			}
		}
	}
	for _, text := range at.input().texts {
		rd.code(at, name, text)
		rd.code(at, name+" input", text)
	}
}

// consoles are modules of Python that read code from the standard input.
var consoles = []string{"code", "pdb", "asyncio"}

// code notes a text in another language.
func (rd *reader) code(at place, by, text string) {
	if text == "" || len(rd.reading.codes) >= maxStarts || len(text) > maxScript {
		return
	}
	if programs.Dynamic(text) {
		rd.doubts++ // its sources count
	}
	if loads().MatchString(text) {
		rd.mayHold(strings.FieldsFunc(text,
			func(r rune) bool { return strings.ContainsRune(" \t\n()[]{}\"'`,;:", r) }))
		for _, m := range imports().FindAllStringSubmatch(text, maxTexts) {
			rd.mayHold([]string{strings.ReplaceAll(m[1], ".", "/") + ".py"})
		}
	}
	at.maybe = true
	rd.reading.codes = append(rd.reading.codes, code{text, by, at})
}

// loads finds what reads other files as code, in code; imports are those of Python.
var loads = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:exec|execfile|eval|do|require|import|source|so|load|include|use|run_path|dofile|loadfile)\b|\.read\s`)
})
var imports = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:import|from)\s+([A-Za-z_][\w.]*)`) })

// inPath notes the files that a bare name may mean by a PATH that the script sets.
func (rd *reader) inPath(at place, name string) {
	if v, _, _ := at.scope.find("PATH", at.offset); v == nil || strings.Contains(name, "/") ||
		programs.Dynamic(name) {
		return
	}
	texts, _, _ := at.scope.lookup("PATH", at.offset)
	for _, text := range texts {
		for _, dir := range strings.Split(text, ":") {
			if !strings.HasPrefix(dir, "/") {
				rd.mayHold([]string{path.Join(dir, name)})
			}
		}
	}
}

// project notes what a program reads that is not named by its operands.
func (rd *reader) project(at place, name string, args []string) {
	if programs.RunsFiles(name) {
		rd.mayHold(args[1:])
	}
	named, found := programs.ProjectFiles(name, args)
	for _, f := range named {
		rd.codeFile(at, name, f)
	}
	if len(found) > 0 {
		rd.file(File{Names: found, Project: true})
	}
}
