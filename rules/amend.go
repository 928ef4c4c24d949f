// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// ErrTooWide is the error of a proposal to allow what could be any command: a shell, an
// interpreter, a program that starts others. A person may still write such a rule.
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
	case tooWide(prefix):
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
	next.exact = index(next.rules, next.numbers(false))
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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// Programs that run what their arguments say. A prefix of these words and nothing behind
// them would allow everything.
var wide = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"bash": shellFlags, "sh": shellFlags, "zsh": shellFlags, "dash": shellFlags, "ksh": shellFlags, "fish": shellFlags,
		"python": {"-c", "-m"}, "python2": {"-c", "-m"}, "python3": {"-c", "-m"}, "pypy": {"-c", "-m"}, "pypy3": {"-c", "-m"},
		"node": {"-e", "--eval", "-p", "--print"}, "bun": {"-e", "--eval", "run", "x"}, "deno": {"eval", "run"},
		"ruby": {"-e"}, "perl": {"-e", "-E"}, "php": {"-r"}, "lua": {"-e"}, "julia": {"-e", "--eval"},
		"Rscript": {"-e"}, "osascript": {"-e"},
		"env": {"-i", "-S", "--"}, "sudo": {"-n", "-E", "-u", "--"}, "doas": nil, "su": {"-c"},
		"xargs": nil, "exec": nil, "eval": nil, "command": nil, "nice": nil, "nohup": nil, "time": nil, "timeout": nil,
		"git": nil, "rm": {"-r", "-f", "-rf", "-fr"}, "ssh": nil, "find": nil,
		"cmd": {"/c", "/C", "/k"}, "powershell": powerFlags, "pwsh": powerFlags,
		"npm": {"run", "exec"}, "pnpm": {"run", "exec", "dlx"}, "yarn": {"run", "exec", "dlx"}, "npx": nil, "bunx": nil, "uvx": nil,
	}
})

var (
	shellFlags = []string{"-c", "-lc", "-l", "-i", "-ic"}
	powerFlags = []string{"-Command", "-command", "-c", "-NoProfile", "-nologo", "-EncodedCommand", "-File"}
)

// tooWide reports whether prefix has no more than such a program and flags of it. Python
// and its kin have versions in their names.
func tooWide(prefix []string) bool {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(prefix[0], `\`, "/")), ".exe")
	flags, ok := wide()[name]
	if !ok {
		flags, ok = wide()[strings.TrimRight(name, "0123456789.")]
	}
	if !ok {
		return false
	}
	for _, word := range prefix[1:] {
		if !slices.Contains(flags, word) {
			return false
		}
	}
	return true
}
