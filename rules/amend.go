// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// ErrTooWide is the error of a proposal to allow what could be any command: a shell, an
// interpreter, a program that starts others, with the words in front of what it is to run. A
// person may still write such a rule.
var ErrTooWide = errors.New("the prefix is too wide to be remembered: it would allow any command")

// An AmendError reports a rule that cannot be added.
type AmendError struct {
	Rule string // as a person would type it
	Err  error  // ErrTooWide, or what is invalid
}

// Error names the rule and the reason.
func (e *AmendError) Error() string {
	return fmt.Sprintf("cannot add a rule for %s: %v", e.Rule, e.Err)
}

// Unwrap returns the reason.
func (e *AmendError) Unwrap() error { return e.Err }

// Amend returns the Set with a rule that allows commands beginning with prefix, and the
// line for a rule file that says the same, without a line end. The Set is s itself if it
// has such a rule. The error is an [AmendError].
func (s *Set) Amend(prefix []string) (*Set, string, error) {
	fail := func(err error) (*Set, string, error) {
		return s, "", &AmendError{JoinWords(prefix), err}
	}
	switch {
	case len(prefix) == 0:
		return fail(errEmptyPattern)
	case wide(prefix):
		return fail(ErrTooWide)
	}
	list := make([]string, len(prefix))
	pattern := make([][]string, len(prefix))
	for i, word := range prefix {
		text, err := quoteString(word)
		if err != nil {
			return fail(err)
		}
		list[i], pattern[i] = text, []string{word}
	}
	line := fmt.Sprintf(`prefix_rule(pattern=[%s], decision="allow")`, strings.Join(list, ", "))
	for _, m := range s.Check(prefix).Matches {
		if m.Decision == Allow {
			return s, line, nil
		}
	}
	next := s.copy()
	next.rules = append(next.rules, rule{pattern: pattern, decision: Allow})
	next.build()
	return next, line, nil
}

// AmendNetwork returns the Set with a network rule, and the line for a rule file that says
// the same, without a line end. The host may be written as in a file. The error is an
// [AmendError].
func (s *Set) AmendNetwork(r NetworkRule) (*Set, string, error) {
	decision := r.Decision.String()
	if r.Decision == Forbid {
		decision = "deny"
	}
	added, err := networkRule(r.Host, r.Protocol, decision, optional{r.Justification != "", r.Justification})
	var list [5]string
	for i, word := range []string{added.Host, added.Protocol, decision, added.Justification, r.Host} {
		if err == nil {
			list[i], err = quoteString(word)
		}
	}
	if err != nil {
		return s, "", &AmendError{quoteWord(r.Host), err}
	}
	line := fmt.Sprintf("network_rule(host=%s, protocol=%s, decision=%s", list[0], list[1], list[2])
	if added.Justification != "" {
		line += ", justification=" + list[3]
	}
	next := s.copy()
	next.networks = append(next.networks, added)
	return next, line + ")", nil
}

// copy returns a Set to which rules can be appended.
func (s *Set) copy() *Set {
	if s == nil {
		s = &Set{}
	}
	next := *s
	next.rules, next.networks = slices.Clip(s.rules), slices.Clip(s.networks)
	return &next
}

// quoteString returns a string of Starlark, which is one of JSON.
func quoteString(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", errors.New("a word is not valid UTF-8 or has a NUL byte; write the rule by hand")
	}
	return strict.Quote(s), nil
}
