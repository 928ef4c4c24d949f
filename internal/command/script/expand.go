// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// A choice is one reading of a word: the words it becomes, which may be none.
type choice []string

// value is what an expansion yields: a text, or words that stay apart in quotes.
type value struct {
	words []string
	list  bool
}

// A partial is a word that is being read: the words before, and the open one.
type partial struct {
	done []string
	open string
	any  bool // whether there is an open word; it may be empty
	torn bool // unknown words came before: what follows is glued to the last one
}

func (p partial) add(text string) partial {
	if p.torn {
		p.open, p.torn = Gap, false
	}
	p.open += text
	p.any = true
	return p
}

func (p partial) end() partial {
	if p.any {
		p.done = append(slices.Clip(p.done), p.open)
	}
	return partial{done: p.done}
}

// tear adds unknown words.
func (p partial) tear() partial {
	if p.any {
		p = p.add(Gap).end()
	}
	p.done = append(slices.Clip(p.done), Rest)
	p.torn = true
	return p
}

// split adds a text from an expansion outside quotes.
func (p partial) split(text, separators string) partial {
	for {
		at := strings.IndexAny(text, separators)
		if at < 0 {
			break
		}
		if at > 0 {
			p = p.add(text[:at])
		}
		p, text = p.end(), text[at+1:]
	}
	if text != "" {
		p = p.add(text)
	}
	return p
}

// choices returns the readings of a word of a command.
func (sc *scope) choices(w *syntax.Word) []choice {
	ps := programs.SplitWord(w)
	words, ok := programs.Braces(ps)
	if !ok || len(ps) > maxPieces {
		return []choice{{Rest}}
	}
	all := []choice{{}}
	for _, word := range words {
		all = product(all, sc.read(word, len(word) == 1), maxChoices)
	}
	return all
}

// read returns the readings of the pieces of one word. Alone says that an unknown one is the
// whole word of a command: then it is not read as nothing.
func (sc *scope) read(ps []programs.Piece, alone bool) []choice {
	states := []partial{{}}
	for i, p := range ps {
		var next []partial
		switch {
		case p.Text == Rest:
			next = each(states, partial.tear)
		case p.Kind == programs.GlobText:
			next = each(states, func(s partial) partial { return s.add(Gap) })
		case p.Part == nil && p.Kind != programs.BarePart:
			next = each(states, func(s partial) partial { return s.add(p.Text) })
		default:
			next = sc.expansion(states, p, alone, beside(ps, i))
		}
		if len(next) > maxChoices {
			next = []partial{{done: []string{Rest}, torn: true}}
		}
		states = next
	}
	glob := slices.ContainsFunc(ps, func(p programs.Piece) bool { return p.Kind == programs.GlobText })
	var all []choice
	for _, s := range states {
		words := s.end().done
		if glob {
			words = append(slices.Clip(words), Rest) // more files than one
		}
		if words = compact(words); !slices.ContainsFunc(all,
			func(c choice) bool { return slices.Equal(c, words) }) {
			all = append(all, words)
		}
	}
	return all
}

// compact joins neighboring placeholders for any number of words.
func compact(words []string) []string {
	return slices.CompactFunc(words, func(a, b string) bool { return a == Rest && b == Rest })
}

func each(states []partial, f func(partial) partial) []partial {
	next := make([]partial, len(states))
	for i, s := range states {
		next[i] = f(s)
	}
	return next
}

// beside reports whether a slash stands at the piece: it is a directory in a path.
func beside(ps []programs.Piece, i int) bool {
	return i > 0 && strings.HasSuffix(ps[i-1].Text, "/") || i+1 < len(ps) &&
		strings.HasPrefix(ps[i+1].Text, "/")
}

// expansion adds the values of an expansion to each state.
func (sc *scope) expansion(states []partial, p programs.Piece, alone, slash bool) []partial {
	values, origin := sc.values(p.Part)
	var next []partial
	for _, s := range states {
		for _, v := range values {
			next = append(next, sc.insert(s, v, p.Kind == programs.QuotedPart)...)
		}
		if origin == known {
			continue
		}
		if p.Kind == programs.QuotedPart {
			if !alone && !slash {
				next = append(next, s.add(""))
			}
			next = append(next, s.add(Gap))
			continue
		}
		if !slash {
			next = append(next, s)
		}
		// A variable that the script does not set is one word where it is part of a word.
		if !alone {
			next = append(next, s.add(Gap))
		}
		if alone || origin == computed || sc.anything() {
			next = append(next, s.tear())
		}
	}
	return next
}

// insert adds one value.
func (sc *scope) insert(s partial, v value, quoted bool) []partial {
	if v.list {
		states := []partial{s}
		for i, w := range v.words {
			if i > 0 {
				states = each(states, partial.end)
			}
			switch {
			case w == Rest && s.any && i == 0: // none or one of them too
				states = []partial{s.tear(), s.add(Gap)}
			case w == Rest:
				states = each(states, partial.tear)
			case quoted:
				states = each(states, func(s partial) partial { return s.add(w) })
			default:
				states = each(states, func(s partial) partial { return s.split(w, blanks) })
			}
		}
		return states
	}
	text := v.words[0]
	if quoted {
		return []partial{s.add(text)}
	}
	var next []partial
	for _, separators := range sc.separators() {
		if separators == Gap {
			next = append(next, s.tear())
		} else {
			next = append(next, s.split(text, separators))
		}
	}
	if at := strings.Index(text, Gap); at >= 0 { // the unknown part may have blanks
		torn := s.split(text[:at], blanks).tear()
		if rest := text[strings.LastIndex(text, Gap)+len(Gap):]; rest != "" {
			torn = torn.split(rest, blanks)
		}
		next = append(next, torn)
	}
	return next
}

// texts returns the readings of a word as one text, as in an assignment.
func (sc *scope) texts(w *syntax.Word) []string {
	if w == nil {
		return []string{""}
	}
	ps := programs.SplitWord(w)
	if len(ps) > maxPieces {
		return []string{Gap}
	}
	for i := range ps {
		switch ps[i].Kind {
		case programs.BarePart:
			ps[i].Kind = programs.QuotedPart
		case programs.GlobText:
			ps[i].Kind = programs.QuotedText
		}
	}
	var all []string
	for _, words := range sc.read(ps, false) {
		text := joinWords(words, " ")
		if len(text) > maxWordBytes {
			return []string{Gap}
		}
		all = append(all, text)
	}
	return unique(all)
}

// joinWords returns one text of words. Unknown words may be none, without a separator.
func joinWords(words []string, between string) string {
	text := strings.Join(words, between)
	for _, rest := range []string{between + Rest, Rest + between, Rest} {
		text = strings.ReplaceAll(text, rest, Gap)
	}
	return text
}

func unique(all []string) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// product appends each reading of a word to each of what came before. Where that is more than
// the limit, the word becomes a placeholder.
func product(before, word []choice, limit int) []choice {
	if len(word) == 1 && len(before) == 1 { // the usual case
		before[0] = append(before[0], word[0]...)
		return before
	}
	if len(before)*len(word) > limit {
		text := Gap
		if slices.ContainsFunc(word, func(c choice) bool { return len(c) != 1 || c[0] == Rest }) {
			text = Rest
		}
		word = []choice{{text}}
	}
	var all []choice
	for _, b := range before {
		for _, w := range word {
			all = append(all, append(slices.Clip(b), w...))
		}
	}
	return all
}

// simple returns the text of a word that is nothing but text.
func simple(w *syntax.Word) (string, bool) {
	if len(w.Parts) == 1 {
		lit, ok := w.Parts[0].(*syntax.Lit)
		if ok && !strings.ContainsAny(lit.Value, "\\{*?["+Gap) {
			return lit.Value, true
		}
	}
	return "", false
}

// commands returns the readings of the words of a command.
func (sc *scope) commands(words []*syntax.Word) []choice {
	all := []choice{make(choice, 0, len(words))}
	size := 0
	for i, w := range words {
		if text, ok := simple(w); ok {
			for j := range all {
				all[j] = append(all[j], text)
			}
			continue
		}
		word := sc.choices(w)
		if i+1 == len(words) && len(word) == 2 && len(word[0]) == 0 && slices.Equal(word[1], choice{Rest}) {
			word = word[1:] // without words after it, none says no more
		}
		if all = product(all, word, maxReadings); len(all) > 1 {
			size += len(word) * 64
		}
		for _, c := range word {
			for _, text := range c {
				size += len(text) * len(all)
			}
		}
		if size > 4*maxWordBytes { // long values many times over
			return []choice{append(slices.Clip(all[0][:min(1, len(all[0]))]), Rest), {Rest}}
		}
	}
	return all
}
