// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// The expressions of this file are in the part of the extended syntax that
// Seatbelt's matcher and every other one share: literals, backslash before a
// special character, classes, groups, alternatives, "*", "?" and the two
// anchors. They match bytes.

// special are the characters that a backslash makes plain.
const special = `\.+*?()|[]{}^$`

// The pieces of patterns.
const (
	reRun  = `[^/]*`      // any characters of one component
	reSome = `[^/]+`      // one component
	reDeep = `/([^/]+/)*` // any number of components, also none
	// The path itself and everything below it. A dot would be shorter, but
	// matchers differ on whether it takes a newline.
	reBelow = `(/([^/]|/)*)?$`
	reOdd   = `[^ -~]` // a byte that is not printable ASCII
	reOdds  = reOdd + reOdd + `?` + reOdd + `?` + reOdd + `?`
	reChar  = `([ -.0-~]|` + reOdds + `)`
	reStart = `^`
	reEnd   = `$`
)

// treeExpr matches a path and everything below it, in every spelling that a
// volume takes for the same one when it ignores case.
func treeExpr(name string) string { return reStart + anyCase(strings.TrimSuffix(name, "/")) + reBelow }

// anyCase matches a text in every case. It follows the simple case folding of
// Unicode, as APFS does: the name ".agentſ" is ".agents" there.
func anyCase(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size <= 1 {
			b.WriteByte(s[0]) // not a character, so it has one case
		} else {
			writeFolded(&b, r)
		}
		s = s[max(size, 1):]
	}
	return b.String()
}

// writeFolded writes an expression for a character in every case.
func writeFolded(b *strings.Builder, r rune) {
	orbit, plain := []rune{r}, r < utf8.RuneSelf
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		orbit = append(orbit, f)
		plain = plain && f < utf8.RuneSelf
	}
	slices.Sort(orbit)
	switch {
	case len(orbit) == 1:
		writeLiteral(b, r)
	case plain: // letters only, none of which is special in a class
		fmt.Fprintf(b, "[%s]", string(orbit))
	default:
		for i, f := range orbit {
			b.WriteString([]string{"(", "|"}[min(i, 1)])
			writeLiteral(b, f)
		}
		b.WriteByte(')')
	}
}

func writeLiteral(b *strings.Builder, r rune) {
	if r < utf8.RuneSelf && strings.ContainsRune(special, r) {
		b.WriteByte('\\')
	}
	b.WriteRune(r)
}

// A pathExpr is a pattern as expressions.
type pathExpr struct {
	tree string // matches what the pattern denies
	// pins match the directories whose names decide whether something in them is
	// matched: it would not be, if they were renamed.
	pins []string
	// tail is the pattern from the first "**" on, which has to be found in
	// whatever directory it is moved to; empty when there is none. tailPins are as
	// pins. Both lack what they begin with.
	tail     string
	tailPins []string
}

// globExpr translates a pattern. What it matches is never less than what the
// pattern matches. It is more in two ways: case is ignored, and a "?" or a set
// takes up to four bytes that are not ASCII for one character.
func globExpr(pattern string) (pathExpr, error) {
	if _, err := sandbox.CompileGlob(pattern); err != nil {
		return pathExpr{}, err
	}
	var parts []string
	for part := range strings.SplitSeq(pattern, "/") {
		if part == "" || part == "." || part == "**" && len(parts) > 0 && parts[len(parts)-1] == "**" {
			continue
		}
		parts = append(parts, part)
	}
	var e pathExpr
	at, tail, deep := "", "", false
	for i, part := range parts {
		if part == "**" {
			// At the end it stands for at least one component.
			piece := reDeep
			if i == len(parts)-1 {
				piece += reSome
			}
			at += piece
			if deep {
				tail += piece
			} else {
				deep, tail = true, piece
			}
			continue
		}
		piece := componentExpr(part)
		if i == 0 || parts[i-1] != "**" {
			piece = "/" + piece
		}
		at += piece
		if deep {
			tail += piece
		}
		if i == len(parts)-1 {
			break
		}
		e.pins = append(e.pins, reStart+at+reEnd)
		if deep {
			e.tailPins = append(e.tailPins, tail+reEnd)
		}
	}
	e.tree, e.tail = reStart+at+reBelow, tail
	return e, nil
}

// componentExpr translates one component, which sandbox.CompileGlob has taken.
func componentExpr(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); {
		switch c := part[i]; c {
		case '*':
			b.WriteString(reRun)
			i++
		case '?':
			b.WriteString(reChar)
			i++
		case '[':
			n := setLen(part[i:])
			b.WriteString(setExpr(part[i : i+n]))
			i += n
		default:
			if c == '\\' {
				i++
			}
			_, size := utf8.DecodeRuneInString(part[i:])
			b.WriteString(anyCase(part[i : i+size]))
			i += size
		}
	}
	return b.String()
}

// setLen is the length of a set with both brackets.
func setLen(s string) int {
	i := 1
	if s[i] == '!' || s[i] == '^' {
		i++
	}
	for first := true; s[i] != ']' || first; first = false {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	return i + 1
}

// setExpr translates a set into the list of the printable ASCII characters that
// it takes in any case, and everything else if it could take anything else.
func setExpr(set string) string {
	glob, err := sandbox.CompileGlob("/base/" + set)
	takes := func(c string) bool { return err == nil && glob.Match("/base/"+c) }
	odd := set[1] == '!' || set[1] == '^'
	var b strings.Builder
	for c := rune(1); c < utf8.RuneSelf; c++ {
		switch s := string(c); {
		case c == '/' || !takes(strings.ToLower(s)) && !takes(strings.ToUpper(s)):
		case c < ' ' || c > '~':
			odd = true
		default:
			if b.Len() > 0 {
				b.WriteByte('|')
			}
			writeLiteral(&b, c)
		}
	}
	odd = odd || strings.ContainsFunc(set, func(r rune) bool { return r >= utf8.RuneSelf })
	if odd || b.Len() == 0 {
		if b.Len() > 0 {
			b.WriteByte('|')
		}
		b.WriteString(reOdds)
	}
	return "(" + b.String() + ")"
}
