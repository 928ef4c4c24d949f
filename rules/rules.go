// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules decides about commands by their first words: allow, prompt or forbid.
//
// Rules are written in Starlark, in files that call prefix_rule, host_executable and
// network_rule. [Load] reads such texts into a [Set]; [Set.Check] returns the rules that
// match a command, and the strictest decision among them. docs/rules.md describes
// the language.
//
// The package is pure: it reads no file, and knows the directory and the home of a user
// only as a [Host] that it is given. Package rules/files reads and changes files. It does
// not parse shell scripts either: a command is a list of words.
//
// Everything is closed by default: the zero [Decision] forbids, and a text that does not
// load makes every decision of its Set forbid.
package rules

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// A Decision says whether a command may run. They are ordered: the lower one is stricter.
// The zero Decision is Forbid.
type Decision uint8

// The decisions, strictest first.
const (
	Forbid Decision = iota
	Prompt
	Allow
)

// decisionNames are the words of rule files.
var decisionNames = [...]string{"forbidden", "prompt", "allow"}

// String returns the word that rule files use: forbidden, prompt or allow.
func (d Decision) String() string { return decisionNames[min(int(d), int(Allow))] }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// A Sandbox is what a rule says about where a command runs. They are ordered: of two that
// are said the lower one is stricter. The zero Sandbox is Unsaid.
type Sandbox uint8

// The places, strictest first. Only Outside takes a command out of the sandbox; an allow
// alone never does.
const (
	Unsaid Sandbox = iota // the policy of the run stays as it is
	ReadOnly
	WorkspaceWrite
	Outside
)

// sandboxNames are the words of rule files.
var sandboxNames = [...]string{"", "read-only", "workspace-write", "outside"}

// String returns the word that rule files use, and nothing for Unsaid.
func (s Sandbox) String() string { return sandboxNames[min(int(s), int(Outside))] }

// A Pos is a place in a rule file. Line and Col begin with 1 and count lines and
// characters; zero means that the place is not known.
type Pos struct {
	File      string
	Line, Col int
}

// A Host is what names of programs are resolved with. Without Dir relative names begin at
// the root directory; without Home names that begin with a tilde are relative.
type Host struct {
	Dir  string // the working directory, absolute
	Home string // the home directory, absolute
}

// A Match is one rule that matches a command.
type Match struct {
	Pos
	// Prefix holds the words of the command that the rule matched, as they were written. It
	// shares memory with the command.
	Prefix        []string
	Decision      Decision
	Sandbox       Sandbox
	Justification string // empty if the rule has none
	// Program is the absolute path of a program that the rule names by its base name. It is
	// empty if the first word itself matched.
	Program string
	// Listed says that a host_executable lists Program.
	Listed bool
}

// A Result is what the rules of a Set say about a command.
type Result struct {
	// Matches has all rules that match, in the order in which they were loaded.
	Matches []Match
	// Decision is the strictest of Matches. It is Forbid if there are none, and if Err is set.
	Decision Decision
	// Sandbox is the strictest that Matches say.
	Sandbox Sandbox
	// Err holds the sources that did not load, as [LoadError]s. Matches has what the others say.
	Err error
}

// A Set holds rules in the order in which they were loaded. It never changes and may be
// used by several goroutines. A nil Set has no rules.
type Set struct {
	rules    []rule
	index    map[string][]int32 // rules by their first word, folded
	hosts    map[string][]string
	networks []NetworkRule
	broken   []error
}

// rule is one prefix rule. The first element of its pattern has one alternative.
type rule struct {
	pos           Pos
	pattern       [][]string // alternatives by position; folded if canonical
	canonical     bool
	decision      Decision
	sandbox       Sandbox
	justification string
}

// Err returns the sources that did not load, as [LoadError]s, or nil.
func (s *Set) Err() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.broken...)
}

// Empty reports whether the Set has no rules about commands and all its sources did load.
func (s *Set) Empty() bool { return s == nil || len(s.rules) == 0 && len(s.broken) == 0 }

// Check returns the rules whose pattern the command argv begins with. A first word that is
// a path matches only rules that name this path.
func (s *Set) Check(argv []string) Result { return s.check(argv, nil) }

// Resolve is Check, and where no rule matches the first word as it is, its base name
// counts: /usr/bin/git is git. If a host_executable names the program, only the paths that
// it lists fall back to the base name.
func (s *Set) Resolve(argv []string, host Host) Result { return s.check(argv, &host) }

func (s *Set) check(argv []string, host *Host) Result {
	if s == nil || len(argv) == 0 {
		return Result{Err: s.Err()}
	}
	var few [16]int32
	ids, program, listed := s.find(few[:0], argv), "", false
	if len(ids) == 0 && host != nil {
		if full, name, ok := s.resolve(argv[0], *host); ok {
			argv = append([]string{name}, argv[1:]...)
			ids, program = s.find(ids, argv), full
			_, listed = s.hosts[name]
		}
	}
	res := Result{Err: s.Err()}
	if len(ids) == 0 {
		return res
	}
	res.Matches, res.Decision = make([]Match, len(ids)), Allow
	for i, id := range ids {
		r := &s.rules[id]
		n := len(r.pattern)
		res.Matches[i] = Match{r.pos, argv[:n:n], r.decision, r.sandbox, r.justification, program, listed}
		res.Decision = min(res.Decision, r.decision)
		if r.sandbox != Unsaid && (res.Sandbox == Unsaid || r.sandbox < res.Sandbox) {
			res.Sandbox = r.sandbox
		}
	}
	if res.Err != nil {
		res.Decision = Forbid
	}
	return res
}

// find appends the rules that match, in load order.
func (s *Set) find(ids []int32, argv []string) []int32 {
	var few [8]string
	folded := append(few[:0], fold(argv[0]))
	for _, id := range s.index[folded[0]] {
		r := &s.rules[id]
		words := argv
		if r.canonical {
			for n := len(folded); n < min(len(argv), len(r.pattern)); n++ {
				folded = append(folded, fold(argv[n]))
			}
			words = folded
		}
		n := 0
		for n < min(len(r.pattern), len(words)) && slices.Contains(r.pattern[n], words[n]) {
			n++
		}
		if n == len(r.pattern) {
			ids = append(ids, id)
		}
	}
	return ids
}

// resolve returns the absolute path of a program and its base name, and whether rules for
// that name count for it.
func (s *Set) resolve(word string, host Host) (full, name string, ok bool) {
	switch {
	case host.Home != "" && (word == "~" || strings.HasPrefix(word, "~/")):
		full = path.Join(host.Home, word[1:])
	case path.IsAbs(word):
		full = path.Clean(word)
	default:
		full = path.Join("/", host.Dir, word)
	}
	if full == "/" {
		return "", "", false
	}
	name = path.Base(full)
	paths, listed := s.hosts[name]
	return full, name, !listed || slices.Contains(paths, full)
}
