// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// A reader lists what may run.
type reader struct {
	reading *Reading
	seen    map[string]bool // commands and unknown places that are listed
	bytes   int             // of scripts that may still be read
	wrapped parsed          // the script of the wrapper
	steps   int             // commands that were followed
	stopped bool            // a limit of size was reached
	doubts  int             // how often something was unknown
	key     []byte
}

// A place is where a command stands.
type place struct {
	scope        *scope
	depth        int
	line, column int
	through      string
	maybe        bool // see Command.Maybe
	stdin        input
	fds          map[string]input // of the other descriptors that redirections open
	printed      []string         // by substitutions that are words of the command, and files
	offset       uint             // in the script of scope
}

// deeper is the place of what a command runs.
func (at place) deeper(through string) place {
	at.depth++
	if at.through == "" {
		at.through = through
	}
	return at
}

func (rd *reader) unknown(at place, why Reason) {
	if at.maybe {
		return // what runs there is not known anyway
	}
	rd.doubts++
	u := Unknown{Why: why, Line: at.line, Column: at.column}
	if !slices.Contains(rd.reading.Unknown, u) {
		rd.reading.Unknown = append(rd.reading.Unknown, u)
	}
}

// limit gives up: the script is opaque, what was found stays.
func (rd *reader) limit(at place, why Reason) {
	rd.unknown(at, why)
	rd.stopped = rd.stopped || why != TooDeep
	if rd.reading.Opaque == "" {
		rd.reading.Plain, rd.reading.Opaque = nil, why
	}
}

// list adds a command. It reports false for one that is listed, and for one too many.
func (rd *reader) list(at place, args []string, form bool) bool {
	rd.key = rd.key[:0]
	for _, a := range args {
		rd.key = append(append(rd.key, a...), 0)
	}
	seen := rd.seen[string(rd.key)]
	if at.maybe {
		rd.key = append(rd.key, 2)
		seen = seen || rd.seen[string(rd.key)]
	}
	switch {
	case seen:
		return false
	case len(rd.reading.Uses) >= maxUses:
		rd.limit(at, TooMany)
		return false
	}
	rd.seen[string(rd.key)] = true
	rd.reading.Uses = append(rd.reading.Uses, Command{
		Args: args, Line: at.line, Column: at.column, Through: at.through, Form: form, Maybe: at.maybe,
		defined: at.scope.own(args[0]),
	})
	return true
}

// again reports whether a command was followed before with the same input and arguments.
func (rd *reader) again(at place, args []string) bool {
	rd.key = append(rd.key[:0], byte(at.stdin.kind), 1)
	if at.maybe {
		rd.key = append(rd.key, 2)
	}
	add := func(words []string) {
		for _, w := range words {
			rd.key = append(append(rd.key, w...), 0)
		}
		rd.key = append(rd.key, 1)
	}
	add(args)
	add(at.stdin.texts)
	for _, p := range at.scope.params {
		add(p)
	}
	if rd.seen[string(rd.key)] {
		return true
	}
	rd.seen[string(rd.key)] = true
	return false
}

// script lists the commands of a script, in a scope of its own.
func (rd *reader) script(at place, text string) {
	if rd.bytes -= len(text); rd.bytes < 0 {
		rd.limit(at, TooLong)
		return
	}
	if strings.Contains(text, Rest) {
		text = strings.ReplaceAll(text, Rest, Gap)
	}
	sh := rd.wrapped
	if sh.text != text || sh.file == nil {
		sh = parse(text)
	}
	switch why := sh.why; {
	case why == TooLong || why == TooDeep:
		rd.limit(at, why)
	case why != "":
		rd.unknown(at, why)
	case strings.Contains(text, Gap):
		rd.unknown(at, DynamicScript)
	}
	if sh.file == nil {
		return
	}
	at.scope.collect(sh.file.Stmts)
	rd.variables(at)
	for _, s := range sh.file.Stmts {
		rd.stmt(at, s)
	}
	rd.uncalled(at)
}

// uncalled lists the commands of functions that the script itself does not call.
func (rd *reader) uncalled(at place) {
	for _, name := range slices.Sorted(maps.Keys(at.scope.funcs)) {
		for _, f := range at.scope.funcs[name] {
			if !at.scope.called[f] {
				rd.function(at, f, []string{Rest})
			}
		}
	}
}

// function lists the commands of a function for one list of arguments.
func (rd *reader) function(at place, f *syntax.FuncDecl, args []string) {
	owner := at.scope.top()
	if owner.called == nil {
		owner.called = map[*syntax.FuncDecl]bool{}
	}
	owner.called[f] = true
	if at.depth++; at.depth > maxDepth {
		rd.limit(at, TooDeep)
		return
	}
	at.scope = &scope{outer: owner, call: true, params: [][]string{args}}
	rd.stmt(at, f.Body)
}

// stmt lists the commands of a statement.
func (rd *reader) stmt(at place, s *syntax.Stmt) {
	at.offset = s.Pos().Offset()
	if at.through == "" {
		at.line, at.column = int(s.Pos().Line()), int(s.Pos().Col())
	}
	at = at.redirected(s.Redirs)
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 1 &&
		programs.Literal(call.Args[0]) == "exec" {
		at.scope.top().opened = at.opened() // for all commands behind it
	}
	for _, r := range s.Redirs {
		rd.inner(at, r)
	}
	switch cmd := s.Cmd.(type) {
	case nil, *syntax.FuncDecl: // read where it is called
	case *syntax.CallExpr:
		rd.call(at, cmd)
	case *syntax.BinaryCmd:
		rd.stmt(at, cmd.X)
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			at.stdin = input{kind: inUnknown, from: []*syntax.Stmt{cmd.X}}
			if texts, ok := at.scope.output([]*syntax.Stmt{cmd.X}); ok {
				at.stdin = input{kind: inText, texts: texts}
			}
		}
		rd.stmt(at, cmd.Y)
	case *syntax.DeclClause:
		words := []string{cmd.Variant.Value}
		if len(cmd.Args) > 0 {
			words = append(words, Rest)
		}
		rd.list(at, words, false)
		rd.inner(at, cmd)
	case *syntax.TimeClause:
		rd.time(at, cmd)
	default:
		rd.inner(at, s.Cmd)
	}
}

// inner lists the commands of the statements in a node: of compound commands and of
// substitutions in words.
func (rd *reader) inner(at place, node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			rd.stmt(at, n)
			return false
		case *syntax.Assign:
			rd.assign(at, n)
		case *syntax.ParamExp:
			rd.prompted(at, n)
		case *syntax.SglQuoted:
			rd.index(at, n.Value)
		case *syntax.Lit:
			if strings.IndexByte(n.Value, '\\') >= 0 {
				rd.index(at, strings.ReplaceAll(n.Value, "\\", ""))
			}
		}
		return true
	})
}

// index lists the commands in a text which arithmetic, or a builtin that sets or tests a variable,
// would take for the name of an element and expand.
func (rd *reader) index(at place, text string) {
	if i := strings.IndexByte(text, '['); i >= 0 &&
		(strings.Contains(text[i:], "$(") || strings.Contains(text[i:], "`")) {
		at = at.deeper("[ ]")
		at.maybe = true
		rd.prompt(at, text)
	}
}

// time lists the command behind the reserved word time. Shells that have no such word run the
// program, which has options that bash takes for the command.
func (rd *reader) time(at place, clause *syntax.TimeClause) {
	if clause.Stmt == nil {
		return
	}
	rd.stmt(at, clause.Stmt)
	call, ok := clause.Stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || !strings.HasPrefix(programs.Literal(call.Args[0]), "-") {
		return
	}
	for _, words := range at.scope.commands(call.Args) {
		rd.command(at, append([]string{"time"}, words...))
	}
}

// call lists a simple command.
func (rd *reader) call(at place, call *syntax.CallExpr) {
	if !bare(call) {
		rd.inner(at, call)
		at.printed = at.scope.printedBy(call.Args)
	}
	if len(call.Args) == 0 {
		return
	}
	before, codes := rd.doubts, len(rd.reading.codes)
	for _, words := range at.scope.commands(call.Args) {
		rd.command(at, words)
	}
	if rd.doubts != before {
		rd.sources(at, at.scope.producers(call.Args, 0))
	}
	if slices.ContainsFunc(rd.reading.codes[codes:],
		func(c code) bool { return programs.Executes(c.by, c.text) }) {
		for _, a := range call.Assigns { // which the code may run
			for _, text := range at.scope.texts(a.Value) {
				rd.code(at, "variable", text)
			}
		}
	}
}

// bare reports whether a command has no substitution, which would hold commands, and no
// assignment.
func bare(call *syntax.CallExpr) bool {
	return len(call.Assigns) == 0 && !slices.ContainsFunc(call.Args,
		func(w *syntax.Word) bool { return !bareParts(w.Parts) })
}

func bareParts(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '[') >= 0 && strings.IndexByte(p.Value, '\\') >= 0 {
				return false
			}
		case *syntax.SglQuoted:
			if strings.IndexByte(p.Value, '[') >= 0 {
				return false
			}
		case *syntax.DblQuoted:
			if !bareParts(p.Parts) {
				return false
			}
		case *syntax.ParamExp:
			if p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil ||
				p.NestedParam != nil || p.Excl {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// command lists a command and what it runs.
func (rd *reader) command(at place, args []string) {
	if len(args) == 0 {
		return
	}
	rd.list(at, args, false)
	if rd.steps++; rd.steps > 2*maxUses {
		rd.limit(at, TooMany)
	}
	if rd.stopped || rd.again(at, args) {
		return
	}
	if at.depth > maxDepth {
		rd.limit(at, TooDeep)
		return
	}
	if args[0] == "--" { // of the reserved word time
		rd.command(at, args[1:])
	}
	if strings.HasPrefix(args[0], "=") && len(args[0]) > 1 { // zsh: the path of a program
		rd.command(at, append([]string{args[0][1:]}, args[1:]...))
	}
	for sc := at.scope; sc != nil; sc = sc.outer {
		for _, f := range sc.funcs[args[0]] {
			in := at
			in.scope = sc
			rd.function(in, f, args[1:])
		}
		for _, text := range sc.aliases[args[0]] {
			rd.nested(at, "alias", text+" "+programs.QuoteWords(args[1:]), nil)
		}
	}
	name := path.Base(args[0])
	if programs.Dynamic(name) {
		rd.unknown(at, DynamicName)
	}
	rd.inPath(at, args[0])
	if stem := strings.TrimSuffix(name, path.Ext(name)); programs.IsShell(stem) ||
		strings.HasSuffix(name, ".exe") {
		name = stem // bash.exe, as in wrapperScript
	}
	rd.through(at, name, args)
}

// nested lists the commands of a script that a command runs in a shell of its own. The words
// after it are $0, $1 and so on; nil is those outside.
func (rd *reader) nested(at place, through, text string, words []string) {
	in := at.deeper(through)
	if at.depth == 0 && at.line == 0 {
		in.through = "" // the outermost script
	}
	in.scope = &scope{outer: at.scope, at: at.offset}
	if words != nil {
		in.scope.params = [][]string{words[min(1, len(words)):]}
		if len(words) > 0 {
			in.scope.self = words[0]
		}
	}
	rd.script(in, text)
}
