// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/programs"
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
		return
	}
	t := in.Tell(name, args)
	for _, text := range t.Codes {
		rd.code(at, name, text)
	}
	for _, f := range t.Files {
		if other, ok := at.descriptor(f); ok && other.kind == inText {
			for _, text := range other.texts {
				rd.code(at, name, text)
			}
			continue
		}
		rd.file(File{Names: []string{f}})
	}
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
		if !in.Settings {
			rd.file(File{Names: stdin.names})
		}
	case inUnknown:
		if !in.Settings {
			rd.sources(at, stdin.from)
		}
	}
}

// code notes a text in another language.
func (rd *reader) code(at place, by, text string) {
	if text == "" || len(rd.reading.codes) >= maxStarts || len(text) > maxScript {
		return
	}
	at.maybe = true
	rd.reading.codes = append(rd.reading.codes, code{text, by, at})
}

// project notes what a program reads that is not named by its operands.
func (rd *reader) project(name string, args []string) {
	named, found := programs.ProjectFiles(name, args)
	for _, f := range named {
		rd.file(File{Names: []string{f}})
	}
	if len(found) > 0 {
		rd.file(File{Names: found, Project: true})
	}
}
