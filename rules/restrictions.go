// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

// A Restriction is a rule that prompts, forbids or gives a command a narrower sandbox (then it
// may be one that allows), for callers that know a command only in part.
type Restriction struct {
	// Match is what a command is told that the rule matches; it has no Prefix and no Program.
	Match
	// Pattern has the alternatives of each position.
	Pattern [][]string
	// Equal reports whether a word of a command is one of the alternatives.
	Equal func(alternative, word string) bool
}

// Restrictions returns the rules that prompt, forbid or give a narrower sandbox, in the order in
// which they were loaded. They share memory with the Set.
func (s *Set) Restrictions() []Restriction {
	if s == nil {
		return nil
	}
	var all []Restriction
	for _, r := range s.rules {
		if r.decision == Allow && (r.sandbox == Unsaid || r.sandbox == Outside) {
			continue
		}
		equal := func(alternative, word string) bool { return alternative == word }
		if r.canonical {
			equal = func(alternative, word string) bool { return alternative == fold(word) }
		}
		m := Match{Pos: r.pos, Decision: r.decision, Sandbox: r.sandbox, Justification: r.justification}
		all = append(all, Restriction{m, r.pattern, equal})
	}
	return all
}
