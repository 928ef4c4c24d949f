// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// Perhaps returns the commands that programs may run which are not known: those that begin at any
// of their later words, those of later words that are scripts, and those of texts in quotes in
// code of other languages. A caller with rules that forbid or prompt asks where one begins so.
// They are Maybe, and may be many.
func (r *Reading) Perhaps() []Command {
	p := perhaps{seen: map[string]bool{}, bytes: maxBytes}
	for _, u := range r.Uses {
		p.words(u, 0)
	}
	for _, c := range r.codes {
		p.language(Command{Line: c.at.line, Column: c.at.column, Through: c.by}, c.by, c.text)
	}
	return p.all
}

// A perhaps collects commands.
type perhaps struct {
	all   []Command
	seen  map[string]bool
	bytes int // of scripts that may still be read
}

// deepest is how many scripts in words in scripts are read.
const deepest = 3

// words adds what the words of a command may be.
func (p *perhaps) words(c Command, depth int) {
	if c.defined || len(c.Args) == 0 {
		return
	}
	from := programs.Open(c.Args)
	if from == 0 {
		return
	}
	c.Maybe, c.Form = true, false
	if c.Through == "" {
		c.Through = path.Base(c.Args[0])
	}
	for i := from; i < min(len(c.Args), from+maxStarts); i++ {
		w := c.Args[i]
		if named(w) {
			p.add(c, c.Args[i:])
		}
		p.script(c, w, depth)
		if depth == 0 && calls().MatchString(w) { // code
			p.language(c, "perl", w) // as others: its texts in quotes
		}
		if _, value, ok := strings.Cut(w, "="); ok {
			if named(value) {
				p.add(c, append([]string{value}, c.Args[i+1:]...))
			}
			p.script(c, value, depth)
		}
	}
}

// named reports whether a word may be the name of a program: no option, and no path of other files.
func named(w string) bool {
	if w == "" || w[0] == '-' || w[0] == '+' || programs.Dynamic(w) || strings.ContainsAny(w, " \t\n") {
		return false
	}
	dir, _ := path.Split(w)
	return dir == "" || path.IsAbs(dir) && slices.Contains([]string{"bin", "sbin", "libexec"}, path.Base(dir))
}

// add adds a command.
func (p *perhaps) add(c Command, args []string) {
	key := strings.Join(args, "\x00")
	if p.seen[key] || len(p.all) >= maxUses {
		return
	}
	p.seen[key] = true
	c.Args = args
	p.all = append(p.all, c)
}

// script adds the commands of a word that may be a script.
func (p *perhaps) script(c Command, text string, depth int) {
	if depth >= deepest || !strings.ContainsAny(text, " \t\n;|&$`!(<'\"") {
		return
	}
	if _, after, ok := strings.Cut(text, "!"); ok { // of editors, databases, debuggers
		p.read(c, after, depth)
	}
	p.read(c, text, depth)
}

// read adds the commands of a script.
func (p *perhaps) read(c Command, text string, depth int) {
	text = strings.Trim(text, "| \t\n") // a command from which a program reads, or to which it writes
	if p.bytes -= len(text); p.bytes < 0 || strings.TrimSpace(text) == "" {
		return
	}
	for i, u := range Read([]string{"sh", "-c", text}).Uses {
		if i == 0 {
			continue
		}
		u.Line, u.Column, u.Through, u.Maybe = c.Line, c.Column, c.Through, true
		p.add(u, u.Args)
		p.words(u, depth+1)
	}
}

// texts finds what stands in quotes in code, also as q(...), %w[...] and the like.
var texts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)\"((?:[^\"\\\\]|\\\\.)*)\"|'((?:[^'\\\\]|\\\\.)*)'|`((?:[^`\\\\]|\\\\.)*)`" +
		`|(?:\bq[qxw]?|%[qQxwWi])\s*(?:\(([^()]*)\)|\[([^\[\]]*)\]|\{([^{}]*)\}|/([^/]*)/|\|([^|]*)\|)`)
})

// calls finds what runs a text, in code.
var calls = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\\b(?:system|exec\\w*|[pP]open\\w*|spawn\\w*|run|call|cmd|shell\\w*)\\s*\\(\\s*\\[?[\"'`]")
})

// between may stand between the words of one command in code.
var between = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\s,=>\]\[()]*$`) })

// maxTexts is how many texts of one code are read.
const maxTexts = 256

// language adds the commands in texts of code, each by itself and those behind each other as words.
func (p *perhaps) language(c Command, by, text string) {
	c.Maybe = true
	if in, _ := programs.Language(by); in.First &&
		strings.HasSuffix(strings.TrimRight(by, "0123456789."), "sed") {
		p.sed(c, text)
		return
	}
	if in, ok := programs.Language(by); !ok || in.Settings || programs.Wordy(by) {
		// their code is commands with words
		for _, line := range strings.Split(text, "\n") {
			p.script(c, line+" ", 0)
			p.tails(c, strings.FieldsFunc(line,
				func(r rune) bool { return strings.ContainsRune(" \t()[]{}\"'`,;", r) }))
		}
	}
	var words []string
	end := 0
	for _, m := range texts().FindAllStringSubmatchIndex(text, maxTexts) {
		if !between().MatchString(text[end:m[0]]) {
			p.tails(c, words)
			words = nil
		}
		end = m[1]
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				word := text[m[g]:m[g+1]]
				p.read(c, word, 0)
				words = append(words, word)
			}
		}
	}
	p.tails(c, words)
}

// tails adds a command for each word of a list.
func (p *perhaps) tails(c Command, words []string) {
	for i, w := range words {
		if named(w) {
			p.add(c, words[i:])
		}
	}
}

// sedCommands finds the commands of sed that run something: e, and s with the flag e.
var sedCommands = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:(?:^|[;{}0-9$!])e|[/,\s]e\s)\s*([^\n]*)`)
})

// sed adds the commands that a script of sed runs.
func (p *perhaps) sed(c Command, text string) {
	for _, m := range sedCommands().FindAllStringSubmatch(text, maxTexts) {
		p.read(c, m[1], 0)
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != 's' || text[i+1] >= 'a' && text[i+1] <= 'z' || text[i+1] == ' ' {
			continue
		}
		parts := strings.SplitN(text[i+2:], text[i+1:i+2], 3)
		if len(parts) == 3 {
			flags, _, _ := strings.Cut(parts[2]+" ", " ")
			if strings.Contains(strings.SplitN(flags, ";", 2)[0], "e") {
				p.read(c, parts[1], 0)
			}
		}
	}
}
