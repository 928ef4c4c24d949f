// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Words returns the words of a script that is one simple command of literal words, exactly as every shell
// reads them. It is false for every other script, and where shells may differ.
//
// Other than in [Reading.Plain], words may have quotes with a backslash before them, which is how quotes
// stand in single quotes, and texts in single quotes are taken as they are, carriage returns included,
// which the parser drops.
func Words(text string) ([]string, bool) {
	sh := parse(text)
	if sh.why != "" || len(sh.file.Last) > 0 || len(sh.file.Stmts) != 1 {
		return nil, false
	}
	s := sh.file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns)+len(s.Redirs)+len(s.Comments) > 0 || s.Negated ||
		s.Background || s.Coprocess || s.Disown {
		return nil, false
	}
	p := plainReader{text: text}
	words, returns := make([]string, len(call.Args)), 0
	for i, w := range call.Args {
		words[i] = p.exact(w)
		returns += strings.Count(words[i], "\r")
	}
	// a carriage return outside of single quotes is white space or a part of a word
	return words, p.why == "" && returns == strings.Count(text, "\r")
}

// exact is word for one that may have escaped quotes.
func (p *plainReader) exact(w *syntax.Word) string {
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			p.bare(strings.ReplaceAll(part.Value, `\'`, ""), i == 0)
			b.WriteString(strings.ReplaceAll(part.Value, `\'`, "'"))
		case *syntax.SglQuoted:
			if part.Dollar {
				p.refuse(Quoting)
			}
			b.WriteString(p.text[part.Pos().Offset()+1 : part.End().Offset()-1])
		default:
			one := *w
			one.Parts = w.Parts[i : i+1]
			b.WriteString(p.word(&one))
		}
	}
	return b.String()
}
