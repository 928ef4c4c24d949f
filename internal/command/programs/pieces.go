// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A Piece is a stretch of a word. The zero Piece is an empty text outside quotes.
type Piece struct {
	Text string
	Part syntax.WordPart // an expansion; nil for text
	Kind WordKind
}

// A WordKind is what a [Piece] is.
type WordKind int

// Kinds of pieces.
const (
	PlainText  WordKind = iota
	QuotedText          // also where it is empty
	BracePunct          // {, comma, } or .. outside quotes
	GlobText            // a pattern of file names
	QuotedPart          // an expansion in double quotes
	BarePart            // an expansion outside quotes
)

// SplitWord splits a word at quotes, expansions, braces and patterns.
func SplitWord(w *syntax.Word) []Piece {
	var ps []Piece
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			ps = barePieces(ps, part.Value)
		case *syntax.SglQuoted:
			text := part.Value
			if part.Dollar {
				text = AnsiC(text)
			}
			ps = append(ps, Piece{Text: text, Kind: QuotedText})
		case *syntax.DblQuoted:
			if len(part.Parts) == 0 {
				ps = append(ps, Piece{Kind: QuotedText})
			}
			for _, in := range part.Parts {
				if lit, ok := in.(*syntax.Lit); ok {
					ps = append(ps, Piece{Text: unescape(lit.Value), Kind: QuotedText})
				} else {
					ps = append(ps, Piece{Part: in, Kind: QuotedPart})
				}
			}
		default:
			ps = append(ps, Piece{Part: part, Kind: BarePart})
		}
	}
	return ps
}

// barePieces splits a text outside quotes.
func barePieces(ps []Piece, text string) []Piece {
	if !strings.ContainsAny(text, "\\{},.*?["+Gap) { // the usual case
		return append(ps, Piece{Text: text})
	}
	var run strings.Builder
	flush := func() {
		if run.Len() > 0 {
			ps = append(ps, Piece{Text: run.String()})
			run.Reset()
		}
	}
	special := func(text string, kind WordKind) { flush(); ps = append(ps, Piece{Text: text, Kind: kind}) }
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			_, size := utf8.DecodeRuneInString(text[i+1:])
			special(text[i+1:i+1+size], QuotedText)
			i += size
		case c == '{' || c == '}' || c == ',':
			special(text[i:i+1], BracePunct)
		case strings.HasPrefix(text[i:], ".."):
			special("..", BracePunct)
			i++
		case c == '*' || c == '?':
			special(text[i:i+1], GlobText)
		case c == '[' && strings.IndexByte(text[i:], ']') > 1:
			end := i + strings.LastIndexByte(text[i:], ']')
			special(text[i:end+1], GlobText)
			i = end
		case strings.HasPrefix(text[i:], Gap): // a script with an unknown part
			flush()
			ps = append(ps, Piece{Kind: BarePart})
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

// AnsiC decodes the escapes of $'..', which printf and echo -e share.
func AnsiC(text string) string {
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

// maxSequence is how many words one brace expansion may have.
const maxSequence = 64

// Braces performs brace expansion. It reports false for more words than the limit.
func Braces(ps []Piece) ([][]Piece, bool) {
	for from := range ps {
		if !ps[from].Punct("{") {
			continue
		}
		depth, cuts, dots := 0, []int{from}, 0
		for i := from; i < len(ps); i++ {
			switch {
			case ps[i].Punct("{"):
				depth++
			case ps[i].Punct("}"):
				depth--
			case ps[i].Punct(",") && depth == 1:
				cuts = append(cuts, i)
			case ps[i].Punct("..") && depth == 1:
				dots++
			}
			if depth > 0 {
				continue
			}
			var middle [][]Piece
			switch cuts = append(cuts, i); {
			case len(cuts) > 2:
				for j := range cuts[1:] {
					all, ok := Braces(ps[cuts[j]+1 : cuts[j+1]])
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
	return [][]Piece{ps}, true
}

func (p *Piece) Punct(text string) bool { return p.Kind == BracePunct && p.Text == text }

// join puts each of the middles between what stands before and the expansions of what follows.
func join(before []Piece, middle [][]Piece, after []Piece) ([][]Piece, bool) {
	if len(before) > 0 && before[len(before)-1].Kind == BarePart {
		if pe, ok := before[len(before)-1].Part.(*syntax.ParamExp); ok && pe.Short {
			return nil, false // the names $xa and $xb in $x{a,b}
		}
	}
	rest, ok := Braces(after)
	if !ok || len(middle)*len(rest) > maxSequence {
		return nil, false
	}
	var all [][]Piece
	for _, m := range middle {
		for _, r := range rest {
			word := append(append(append([]Piece{}, before...), m...), r...)
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
func sequence(ps []Piece) [][]Piece {
	var text strings.Builder
	for _, p := range ps {
		if p.Part != nil {
			return nil
		}
		text.WriteString(p.Text)
	}
	if !ranges().MatchString(text.String()) {
		return nil
	}
	return [][]Piece{{{Text: Gap, Kind: QuotedText}}, {{Text: Rest}}}
}
