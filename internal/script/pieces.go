// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A piece is a stretch of a word.
type piece struct {
	text string
	part syntax.WordPart // an expansion; nil for text
	kind pieceKind
}

type pieceKind int

const (
	plainText  pieceKind = iota
	quotedText           // also where it is empty
	bracePunct           // {, comma, } or .. outside quotes
	globText             // a pattern of file names
	quotedPart           // an expansion in double quotes
	barePart             // an expansion outside quotes
)

// piecesOf splits a word at quotes, expansions, braces and patterns.
func piecesOf(w *syntax.Word) []piece {
	var ps []piece
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			ps = barePieces(ps, part.Value)
		case *syntax.SglQuoted:
			text := part.Value
			if part.Dollar {
				text = ansiC(text)
			}
			ps = append(ps, piece{text: text, kind: quotedText})
		case *syntax.DblQuoted:
			if len(part.Parts) == 0 {
				ps = append(ps, piece{kind: quotedText})
			}
			for _, in := range part.Parts {
				if lit, ok := in.(*syntax.Lit); ok {
					ps = append(ps, piece{text: unescape(lit.Value), kind: quotedText})
				} else {
					ps = append(ps, piece{part: in, kind: quotedPart})
				}
			}
		default:
			ps = append(ps, piece{part: part, kind: barePart})
		}
	}
	return ps
}

// barePieces splits a text outside quotes.
func barePieces(ps []piece, text string) []piece {
	if !strings.ContainsAny(text, "\\{},.*?["+Gap) { // the usual case
		return append(ps, piece{text: text})
	}
	var run strings.Builder
	flush := func() {
		if run.Len() > 0 {
			ps = append(ps, piece{text: run.String()})
			run.Reset()
		}
	}
	special := func(text string, kind pieceKind) { flush(); ps = append(ps, piece{text: text, kind: kind}) }
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			_, size := utf8.DecodeRuneInString(text[i+1:])
			special(text[i+1:i+1+size], quotedText)
			i += size
		case c == '{' || c == '}' || c == ',':
			special(text[i:i+1], bracePunct)
		case strings.HasPrefix(text[i:], ".."):
			special("..", bracePunct)
			i++
		case c == '*' || c == '?':
			special(text[i:i+1], globText)
		case c == '[' && strings.IndexByte(text[i:], ']') > 1:
			end := i + strings.LastIndexByte(text[i:], ']')
			special(text[i:end+1], globText)
			i = end
		case strings.HasPrefix(text[i:], Gap): // a script with an unknown part
			flush()
			ps = append(ps, piece{kind: barePart})
			i += len(Gap) - 1
		default:
			run.WriteByte(c)
		}
	}
	flush()
	return ps
}

// unescape removes the backslashes that mean something in double quotes.
func unescape(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`\n", text[i+1]) >= 0 {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// ansiEscapes are the escapes of one letter in $'..', each before its value.
const ansiEscapes = "a\ab\be\x1bE\x1bf\fn\nr\rt\tv\v\\\\''\"\"??"

// ansiC decodes the escapes of $'..', which printf and echo -e share.
func ansiC(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		digits := func(from, most, base int) {
			end := from
			for end < len(text) && end < from+most && isDigit(text[end], base) {
				end++
			}
			if n, err := strconv.ParseUint(text[from:end], base, 32); err != nil {
				b.WriteString(text[i-1 : end])
			} else if most > 3 {
				b.WriteRune(rune(n))
			} else if byte(n) != 0 { // a NUL ends nothing that matters here
				b.WriteByte(byte(n))
			}
			i = end - 1
		}
		switch c := text[i]; {
		case strings.IndexByte(ansiEscapes, c)%2 == 0:
			b.WriteByte(ansiEscapes[strings.IndexByte(ansiEscapes, c)+1])
		case c == 'x':
			digits(i+1, 2, 16)
		case c == 'u':
			digits(i+1, 4, 16)
		case c == 'U':
			digits(i+1, 8, 16)
		case isDigit(c, 8):
			if c == '0' && i+3 < len(text) && isDigit(text[i+3], 8) {
				i++ // printf and echo take three more
			}
			digits(i, 3, 8)
		case c == 'c' && i+1 < len(text):
			i++
			b.WriteByte(text[i] & 0x1f)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '9':
		return int(c-'0') < base
	case base == 16:
		return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}

// braces performs brace expansion. It reports false for more words than the limit.
func braces(ps []piece) ([][]piece, bool) {
	for from := range ps {
		if !ps[from].punct("{") {
			continue
		}
		depth, cuts, dots := 0, []int{from}, 0
		for i := from; i < len(ps); i++ {
			switch {
			case ps[i].punct("{"):
				depth++
			case ps[i].punct("}"):
				depth--
			case ps[i].punct(",") && depth == 1:
				cuts = append(cuts, i)
			case ps[i].punct("..") && depth == 1:
				dots++
			}
			if depth > 0 {
				continue
			}
			var middle [][]piece
			switch cuts = append(cuts, i); {
			case len(cuts) > 2:
				for j := range cuts[1:] {
					all, ok := braces(ps[cuts[j]+1 : cuts[j+1]])
					if !ok {
						return nil, false
					}
					middle = append(middle, all...)
				}
			case dots > 0:
				middle = sequence(ps[from+1 : i])
			}
			if middle == nil {
				break // no expansion: an inner one may be
			}
			return join(ps[:from], middle, ps[i+1:])
		}
	}
	return [][]piece{ps}, true
}

func (p *piece) punct(text string) bool { return p.kind == bracePunct && p.text == text }

// join puts each of the middles between what stands before and the expansions of what follows.
func join(before []piece, middle [][]piece, after []piece) ([][]piece, bool) {
	if len(before) > 0 && before[len(before)-1].kind == barePart {
		if pe, ok := before[len(before)-1].part.(*syntax.ParamExp); ok && pe.Short {
			return nil, false // the names $xa and $xb in $x{a,b}
		}
	}
	rest, ok := braces(after)
	if !ok || len(middle)*len(rest) > maxSequence {
		return nil, false
	}
	var all [][]piece
	for _, m := range middle {
		for _, r := range rest {
			word := append(append(append([]piece{}, before...), m...), r...)
			all = append(all, word)
		}
	}
	return all, true
}

// ranges is what stands between the braces of {a..z} and {1..9..2}.
var ranges = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(-?[0-9]+|[A-Za-z])\.\.(-?[0-9]+|[A-Za-z])(\.\.-?[0-9]+)?$`)
})

// sequence is the expansion of a range, as placeholders; nil where it is none.
func sequence(ps []piece) [][]piece {
	var text strings.Builder
	for _, p := range ps {
		if p.part != nil {
			return nil
		}
		text.WriteString(p.text)
	}
	if !ranges().MatchString(text.String()) {
		return nil
	}
	return [][]piece{{{text: Gap, kind: quotedText}}, {{text: Rest}}}
}
