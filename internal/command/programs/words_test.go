// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// word parses a word as bash does.
func word(t *testing.T, text string) *syntax.Word {
	t.Helper()
	var w *syntax.Word
	for got, err := range syntax.NewParser().WordsSeq(strings.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		w = got
	}
	return w
}

// TestBraces takes words apart and puts their texts together again: "$" is an expansion, "*" a
// pattern, "…" what is not known.
func TestBraces(t *testing.T) {
	for text, want := range map[string]string{
		`abc`: "abc", `a\bc`: "abc", `'a b'"c\"d"`: `a bc"d`, `$'\x61\t'`: "a\t", `"$x"y`: "$y",
		`a*[bc]?`: "a**[bc]*?",
		`a{b,c}d`: "abd acd", `{a,b}{c,d}`: "ac ad bc bd", `{a,{b,c}}`: "a b c", `{a}`: "{a}",
		`'{a,b}'`: "{a,b}", `\{a,b}`: "{a,b}",
		`x{1..3}`: "x… x…", `{a..}`: "{a..}", `$x{a,b}`: "too many",
	} {
		var got []string
		words, ok := Braces(SplitWord(word(t, text)))
		for _, pieces := range words {
			var b strings.Builder
			for _, p := range pieces {
				switch {
				case p.Part != nil:
					b.WriteString("$")
				case p.Kind == GlobText:
					b.WriteString("*" + strings.TrimPrefix(p.Text, "*"))
				default:
					b.WriteString(strings.NewReplacer(Gap, "…", Rest, "…").Replace(p.Text))
				}
			}
			got = append(got, b.String())
		}
		if !ok {
			got = []string{"too many"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if _, ok := Braces(SplitWord(word(t, strings.Repeat("{a,b}", 7)))); ok {
		t.Error("128 words of one: want a limit")
	}
}

// TestLiteral: only a word without expansions has a text.
func TestLiteral(t *testing.T) {
	for text, want := range map[string]struct {
		literal string
		fixed   bool
	}{
		`rm`: {"rm", true}, `r\m`: {"rm", true}, `"r"'m'`: {"rm", true}, `$'\x72m'`: {"rm", true},
		`r$x`: {"", false}, `"$x"`: {"", false}, `a*`: {"a*", true},
	} {
		if w := word(t, text); Literal(w) != want.literal || Fixed(w) != want.fixed {
			t.Errorf("%s: %q, fixed %v; want %+v", text, Literal(w), Fixed(w), want)
		}
	}
}

// TestQuote: a shell reads the words again, with unknown ones as an unknown text.
func TestQuote(t *testing.T) {
	if got, want := QuoteWords([]string{"a", "b c", "it's", "", Rest}), `'a' 'b c' 'it'\''s' '' `+
		Gap; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Dynamic("a") || !Dynamic("a"+Gap) || !Dynamic(Rest) {
		t.Error("placeholders are what is not known")
	}
}
