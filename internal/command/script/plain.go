// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A parsed is a script with its syntax tree.
type parsed struct {
	text string
	file *syntax.File // nil if the text cannot be parsed at all; without what follows an error
	why  Reason       // why it could not be parsed; "" if it could
}

// parse parses a script as bash does.
func parse(text string) (sh parsed) {
	defer func() {
		if recover() != nil { // an error of the parser must not end the program
			sh = parsed{text, nil, Syntax}
		}
	}()
	if why := usable(text); why != "" {
		return parsed{text, nil, why}
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(text), "")
	if err == nil {
		return parsed{text, file, ""}
	}
	file = new(syntax.File) // bash runs the lines before the error
	for s, err := range parser.StmtsSeq(strings.NewReader(text)) {
		if err == nil { // no break: the parser goes on where its caller has left
			file.Stmts = append(file.Stmts, s)
		}
	}
	return parsed{text, file, Syntax}
}

// plain returns the commands of a script that consists of simple commands with literal words,
// or why it does not.
func (sh *parsed) plain() ([]Command, Reason) {
	text, file := sh.text, sh.file
	switch {
	case sh.why != "":
		return nil, sh.why
	case strings.ContainsAny(text, "\r"+Gap+Rest):
		return nil, Character // shells differ about a carriage return
	case len(file.Last) > 0:
		return nil, Comment
	case len(file.Stmts) == 0:
		return nil, Empty
	}
	p := plainReader{text: text}
	for _, s := range file.Stmts {
		p.stmt(s)
	}
	if p.why != "" {
		return nil, p.why
	}
	return p.commands, ""
}

type plainReader struct {
	text     string
	commands []Command
	why      Reason // the first
}

func (p *plainReader) refuse(why Reason) {
	if p.why == "" {
		p.why = why
	}
}

func (p *plainReader) stmt(s *syntax.Stmt) {
	if p.why != "" {
		return
	}
	switch {
	case len(s.Comments) > 0:
		p.refuse(Comment)
	case s.Negated:
		p.refuse(Negation)
	case s.Background || s.Coprocess || s.Disown:
		p.refuse(Background)
	case len(s.Redirs) > 0:
		p.refuse(Redirection)
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		p.call(cmd)
	case *syntax.BinaryCmd:
		if cmd.Op != syntax.AndStmt && cmd.Op != syntax.OrStmt && cmd.Op != syntax.Pipe {
			p.refuse(Operator)
		}
		p.stmt(cmd.X)
		p.stmt(cmd.Y)
	case *syntax.FuncDecl:
		p.refuse(Function)
	case *syntax.DeclClause:
		p.refuse(Declaration)
	default:
		p.refuse(Compound)
	}
}

// number is what shells take for a number where a command name stands.
var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(0x)?[0-9]+(#[0-9A-Za-z@_]+)?$`) })

func (p *plainReader) call(call *syntax.CallExpr) {
	if len(call.Assigns) > 0 {
		p.refuse(Assignment)
		return
	}
	args := make([]string, len(call.Args))
	for i, w := range call.Args {
		args[i] = p.word(w)
	}
	switch name, literal := call.Args[0].Parts[0].(*syntax.Lit); {
	case !literal || len(call.Args[0].Parts) > 1:
		p.refuse(Quoting)
	case strings.ContainsAny(name.Value, "%@=!") || number().MatchString(name.Value) ||
		syntax.IsKeyword(name.Value):
		p.refuse(CommandName)
	case name.Value == "unset":
		p.refuse(Declaration)
	}
	p.commands = append(p.commands, Command{Args: args, Line: int(call.Pos().Line()),
		Column: int(call.Pos().Col())})
}

// word returns the text of a word of literal parts.
func (p *plainReader) word(w *syntax.Word) string {
	if len(w.Parts) == 1 { // the usual case, without a copy
		if lit, ok := w.Parts[0].(*syntax.Lit); ok {
			p.bare(lit.Value, true)
			return lit.Value
		}
	}
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			p.bare(part.Value, i == 0)
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				p.refuse(Quoting)
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar || strings.Contains(p.text[part.Pos().Offset():part.End().Offset()], "\\\n") {
				p.refuse(Quoting)
			}
			for _, in := range part.Parts {
				lit, ok := in.(*syntax.Lit)
				switch {
				case !ok || strings.ContainsAny(lit.Value, "$`"):
					p.refuse(Expansion)
				case escapes(lit.Value):
					p.refuse(Quoting)
				default:
					b.WriteString(lit.Value)
				}
			}
		default:
			p.refuse(Expansion)
		}
	}
	return b.String()
}

// escapes reports whether a text in double quotes has a backslash that means something.
func escapes(text string) bool {
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		text = text[at+1:]
		if text == "" || strings.IndexByte("\"\\$`\n", text[0]) >= 0 {
			return true
		}
	}
}

// bare checks the characters of an unquoted text.
func (p *plainReader) bare(text string, first bool) {
	if first && strings.HasPrefix(text, "=") {
		p.refuse(Character)
	}
	for _, r := range text {
		if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!strings.ContainsRune("%+,-./:=@_!", r) {
			p.refuse(Character)
		}
	}
}
