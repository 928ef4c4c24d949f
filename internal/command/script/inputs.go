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

// An input is what is known of a descriptor from which a command reads.
type input struct {
	kind  inputKind
	texts []string       // of inText
	names []string       // of inFile
	from  []*syntax.Stmt // of inUnknown: what writes into the pipe
}

type inputKind int

const (
	inInherited inputKind = iota
	inUnknown             // a pipe
	inFile
	inText
)

// document returns the readings of the text of a here-document.
func (sc *scope) document(w *syntax.Word, quoted bool) []string {
	if quoted {
		return []string{w.Lit()}
	}
	return sc.texts(&syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: w.Parts}}})
}

// redirected is the place with what redirections open.
func (at place) redirected(redirs []*syntax.Redirect) place {
	for _, r := range redirs {
		fd := "0"
		if r.N != nil {
			fd = r.N.Value
		}
		in, ok := at.redirect(r)
		if !ok {
			continue
		}
		if fd == "0" {
			at.stdin = in
			continue
		}
		fds := maps.Clone(at.fds)
		if fds == nil {
			fds = map[string]input{}
		}
		fds[fd] = in
		at.fds = fds
	}
	return at
}

// redirect is the input that one redirection gives. It reports false for one that gives none.
func (at place) redirect(r *syntax.Redirect) (input, bool) {
	sc := at.scope
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		in := input{kind: inFile, names: sc.texts(r.Word)}
		if len(r.Word.Parts) == 1 {
			if sub, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok {
				in = input{kind: inUnknown, from: sub.Stmts}
				if texts, ok := sc.output(sub.Stmts); ok {
					in = input{kind: inText, texts: texts}
				}
			}
		}
		for _, name := range in.names {
			if other, ok := at.descriptor(name); ok {
				in = other
			}
		}
		return in, true
	case syntax.DplIn:
		texts := sc.texts(r.Word)
		if len(texts) != 1 || programs.Dynamic(texts[0]) {
			return input{kind: inUnknown}, true
		}
		in, ok := at.descriptor("/dev/fd/" + strings.TrimSuffix(texts[0], "-"))
		return in, ok
	case syntax.WordHdoc:
		return input{kind: inText, texts: sc.texts(r.Word)}, true
	case syntax.Hdoc, syntax.DashHdoc:
		in := input{kind: inText, texts: []string{""}}
		if r.Hdoc != nil {
			in.texts = sc.document(r.Hdoc, programs.Literal(r.Word) != r.Word.Lit())
		}
		return in, true
	}
	return input{}, false
}

// descriptor is what is known of a descriptor that a file name means. It reports false for names
// of other files.
func (at place) descriptor(name string) (input, bool) {
	var fd string
	switch {
	case name == "/dev/stdin":
		fd = "0"
	case strings.HasPrefix(name, "/dev/fd/"):
		fd = strings.TrimPrefix(name, "/dev/fd/")
	case strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/fd/"):
		fd = name[strings.LastIndexByte(name, '/')+1:]
	default:
		return input{}, false
	}
	if fd == "0" {
		return at.input(), true
	}
	if in, ok := at.fds[fd]; ok {
		return in, true
	}
	for sc := at.scope; sc != nil; sc = sc.outer {
		if in, ok := sc.opened[fd]; ok {
			return in, true
		}
	}
	return input{kind: inUnknown}, true // of the caller, or by a variable
}

// input is what is known of the standard input.
func (at place) input() input {
	if at.stdin.kind != inInherited {
		return at.stdin
	}
	for sc := at.scope; sc != nil; sc = sc.outer {
		if in, ok := sc.opened["0"]; ok {
			return in
		}
	}
	return input{}
}

// opened are the descriptors that exec opens for what follows.
func (at place) opened() map[string]input {
	all := maps.Clone(at.scope.top().opened)
	if all == nil {
		all = map[string]input{}
	}
	maps.Copy(all, at.fds)
	if at.stdin.kind != inInherited {
		all["0"] = at.stdin
	}
	return all
}

// producers are the statements whose output the words have, also by variables.
func (sc *scope) producers(words []*syntax.Word, depth int) []*syntax.Stmt {
	const deepest = 3 // variables in the values of variables
	var all []*syntax.Stmt
	for _, w := range words {
		if w == nil {
			continue
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				all = append(all, n.Stmts...)
			case *syntax.ProcSubst:
				all = append(all, n.Stmts...)
			case *syntax.ParamExp:
				if n.Param == nil || depth == deepest {
					break
				}
				if v, owner, _ := sc.find(n.Param.Value, 0); v != nil {
					for _, a := range v.assigned {
						all = append(all, owner.producers(append([]*syntax.Word{a.word},
							a.words...), depth+1)...)
					}
				}
			}
			return true
		})
	}
	return all
}

// printedBy returns what is known to be in the files that substitutions in words name.
func (sc *scope) printedBy(words []*syntax.Word) (all []string) {
	for _, w := range words {
		for _, p := range w.Parts {
			if sub, ok := p.(*syntax.ProcSubst); ok {
				texts, _ := sc.output(sub.Stmts)
				all = append(all, texts...)
			}
		}
	}
	return all
}

// sources notes the files that may hold what statements print, where that is code.
func (rd *reader) sources(at place, stmts []*syntax.Stmt) {
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Redirect:
				if n.Op == syntax.RdrIn {
					rd.mayHold(at.scope.texts(n.Word))
				}
			case *syntax.CallExpr:
				for _, words := range at.scope.commands(n.Args) {
					rd.mayHold(words[min(1, len(words)):])
				}
			}
			return true
		})
	}
}

// mayHold notes words that may be names of files with code.
func (rd *reader) mayHold(words []string) {
	for _, w := range words {
		if w != "" && !strings.HasPrefix(w, "-") && !strings.Contains(w, Gap) && w != Rest {
			rd.file(File{Names: []string{w}, Maybe: true})
		}
	}
}

// file notes a file that is read as code.
func (rd *reader) file(f File) {
	for _, old := range rd.reading.Files {
		if slices.Equal(old.Names, f.Names) && (f.Maybe || !old.Maybe) {
			return
		}
	}
	if len(rd.reading.Files) < maxUses {
		rd.reading.Files = append(rd.reading.Files, f)
	}
}
