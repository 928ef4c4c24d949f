// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package script reads which commands a command line runs, without running anything.
//
// [Read] takes the words of a command. Where they hand a script to a shell, the script is
// parsed. The answer has two lists with opposite errors:
//
//   - [Reading.Plain] is complete and exact, or empty with a reason: simple commands with
//     literal words, joined by &&, ||, ;, | and newlines. It alone may support an allow.
//   - [Reading.Uses] is everything that may run: the commands of any valid script, of
//     functions, substitutions and here-documents, and the commands that other programs
//     (env, sudo, xargs, find, sh -c) are told to run. It may name a command that never runs,
//     and serves rules that forbid or prompt. Where it may lack one, [Reading.Unknown] says so.
//
// The package looks at no file, variable or clock: the same words give the same answer
// everywhere. It does not read files of scripts. Of the languages of other programs (awk, perl,
// python) it sees the texts in quotes.
//
//   - [Reading.Perhaps] is what programs may run that are not known: a command that begins at any
//     later word. [Reading.Files] are the files that are read as code.
package script

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// Placeholders in the words of [Reading.Uses].
const (
	// Gap is a part of a word that is not known, of any length.
	Gap = programs.Gap
	// Rest, which is a word of its own, is any number of unknown words, none included.
	Rest = programs.Rest
)

// Limits of a reading. What is larger is opaque.
const (
	maxScript    = 128 << 10 // bytes of a script; the size of one argument in Linux
	maxBytes     = 512 << 10 // bytes of all scripts of one command, with those inside others
	maxNesting   = 200       // open brackets in a script
	maxDepth     = 8         // programs and scripts that run each other
	maxUses      = 4096      // commands
	maxPieces    = 4096      // of a word
	maxStarts    = 256       // later words of a command that may be one
	maxChoices   = 16        // readings of one word
	maxReadings  = 32        // readings of one command
	maxWordBytes = 64 << 10  // of the readings of one command
)

// A Reason is a word or two for why something is not known.
type Reason string

// Reasons for a script that is opaque, and for an [Unknown].
const (
	Syntax        Reason = "syntax error"
	Empty         Reason = "no command"
	Encoding      Reason = "not UTF-8 text"
	TooLong       Reason = "too long"
	TooDeep       Reason = "too deeply nested"
	TooMany       Reason = "too many commands"
	Redirection   Reason = "redirection"
	Background    Reason = "background job"
	Negation      Reason = "negation"
	Compound      Reason = "compound command"
	Function      Reason = "function"
	Declaration   Reason = "declaration"
	Assignment    Reason = "assignment"
	Comment       Reason = "comment"
	Expansion     Reason = "expansion"
	Quoting       Reason = "quoting"
	Character     Reason = "special character"
	Operator      Reason = "operator"
	CommandName   Reason = "command name"
	DynamicName   Reason = "command name from an expansion"
	DynamicScript Reason = "script from an expansion"
	StandardInput Reason = "script from standard input"
)

// A Command is one command that may run.
type Command struct {
	// Args are the words; the first is the program. Words of Reading.Plain are exact. Those
	// of Reading.Uses may contain placeholders, see Gap and Rest.
	Args []string
	// Line and Column are where the command stands in the outermost script, from 1, or where
	// the one stands that runs it. Columns count bytes. Both are 0 without a script.
	Line, Column int
	// Through is what runs the command when the script itself does not, such as "env" or
	// "sh -c"; "" else.
	Through string
	// Form says that this is another spelling of a command that is listed too, which means
	// the same to its program: git without the options in front of its command.
	Form bool
	// Maybe says that it is not sure that the command runs on this machine, whatever is known of
	// its words: in a container, on another machine, or as a word of a program that is not known.
	Maybe bool

	defined bool // a function or an alias of the script
}

// Unknown is a place where commands may run that Reading.Uses does not list.
type Unknown struct {
	Why          Reason
	Line, Column int // as in Command
}

// A Reading is what a command line runs.
type Reading struct {
	// Argv are the words that were read.
	Argv []string
	// Wrapper reports whether Argv hands one script to a shell as "bash -lc TEXT" does.
	Wrapper bool
	// Plain are the commands of the script, or Argv itself where that is no wrapper. Nil
	// where the script is opaque; then nothing but a rule for Argv may allow it.
	Plain []Command
	// Opaque is why Plain is nil; "" where it is not.
	Opaque Reason
	// Uses are all commands that may run, Argv first, then in the order of the script. Each
	// command of Plain is among them.
	Uses []Command
	// Unknown are the places behind which other commands may run. A caller with rules that
	// forbid or prompt cannot rule them out there.
	Unknown []Unknown
	// Files are the files that programs read as code, or as settings that run code. Programs
	// themselves are the first words of Uses.
	Files []File

	codes []code // texts in other languages
}

// Read returns what argv would run. It never fails: what it does not understand is opaque or
// unknown.
func Read(argv []string) *Reading {
	r := &Reading{Argv: argv}
	if len(argv) == 0 {
		r.Opaque = Empty
		return r
	}
	text, wrapper := wrapperScript(argv)
	r.Wrapper = wrapper
	rd := reader{reading: r, seen: map[string]bool{}, bytes: maxBytes}
	if wrapper {
		rd.wrapped = parse(text)
		r.Plain, r.Opaque = rd.wrapped.plain()
	} else {
		r.Plain = []Command{{Args: argv}}
	}
	rd.command(place{scope: new(scope)}, argv)
	return r
}

// wrapperScript returns the script of a wrapper: bash, sh or zsh with -c or -lc and one script.
func wrapperScript(argv []string) (string, bool) {
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return "", false
	}
	name := path.Base(argv[0])
	if stem := strings.TrimSuffix(name, path.Ext(name)); stem != "" {
		name = stem
	}
	return argv[2], name == "bash" || name == "sh" || name == "zsh"
}

// Exact reports whether all words of the command are known.
func (c *Command) Exact() bool {
	for _, w := range c.Args {
		if programs.Dynamic(w) {
			return false
		}
	}
	return true
}

// Words returns the words for people, with "…" for what is not known.
func (c *Command) Words() []string {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = placeholders.Replace(w)
	}
	return words
}

var placeholders = strings.NewReplacer(Gap, "…", Rest, "…")

// Certainty is how sure an answer is.
type Certainty int

// Answers of Begins.
const (
	No Certainty = iota
	Maybe
	Yes
)

// Begins reports whether the command begins with the words of a pattern, each of which has one
// or more alternatives. Words are compared by equal; nil means ==. Maybe is the answer where
// that depends on what is not known.
func (c *Command) Begins(pattern [][]string, equal func(token, word string) bool) Certainty {
	if equal == nil {
		equal = func(token, word string) bool { return token == word }
	}
	answer := begins(pattern, c.Args, equal)
	if name := path.Base(c.Args[0]); answer == No && programs.Dynamic(c.Args[0]) && name != c.Args[0] {
		// in an unknown directory
		answer = min(Maybe, begins(pattern, append([]string{name}, c.Args[1:]...), equal))
	}
	if c.Maybe {
		answer = min(Maybe, answer)
	}
	return answer
}

func begins(pattern [][]string, words []string, equal func(token, word string) bool) Certainty {
	if len(pattern) == 0 {
		return Yes
	}
	if len(words) == 0 {
		return No
	}
	if words[0] == Rest {
		return min(Maybe, max(begins(pattern, words[1:], equal), begins(pattern[1:], words, equal)))
	}
	here := No
	for _, token := range pattern[0] {
		switch {
		case !programs.Dynamic(words[0]):
			if equal(token, words[0]) {
				here = Yes
			}
		case fits(strings.Split(words[0], Gap), token):
			here = max(here, Maybe)
		}
	}
	if here == No {
		return No
	}
	return min(here, begins(pattern[1:], words[1:], equal))
}

// fits reports whether text is the parts in their order with any text between them.
func fits(parts []string, text string) bool {
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, p := range parts[1:last] {
		at := strings.Index(text, p)
		if at < 0 {
			return false
		}
		text = text[at+len(p):]
	}
	return strings.HasSuffix(text, parts[last])
}

// usable is the reason why a text cannot be parsed at all, or "".
func usable(text string) Reason {
	switch {
	case len(text) > maxScript:
		return TooLong
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return Encoding
	case strings.ContainsAny(text, "\u0080\u0081"):
		return Character // the parser takes them for the end of the text, and for a continued line
	}
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	if deepest > maxNesting {
		return TooDeep
	}
	return ""
}

// Dangerous reports whether the command itself destroys without asking: rm with force. What
// other programs run is listed in [Reading.Uses].
func (c *Command) Dangerous() bool {
	if name := path.Base(c.Args[0]); name != "rm" && name != "grm" || c.Maybe {
		return false
	}
	_, force, _ := programs.RmOptions(c.Args)
	return force
}

// Dangerous reports whether the command line may run such a command.
func (r *Reading) Dangerous() bool {
	return slices.ContainsFunc(r.Uses, func(c Command) bool { return c.Dangerous() })
}
