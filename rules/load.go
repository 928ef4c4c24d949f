// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// MaxFile is how many bytes the text of a source may have.
const MaxFile = 4 << 20

// A Source is one text of rules, or the requirements of an administrator.
type Source struct {
	// Name is the name of the file, for messages.
	Name string
	// Text is what the file holds. It is not looked at if Err is set.
	Text []byte
	// Required are rules that need no text, see [Requirement]. They count after Text.
	Required []Requirement
	// Err is why the file could not be read.
	Err error
	// Narrow says that the source may only make decisions stricter: what it allows, its
	// host_executable entries and its sandbox "outside" do not count.
	Narrow bool
}

// A LoadError reports a source that did not load.
type LoadError struct {
	Pos
	// Unread says that the file could not be read; Text is then the reason.
	Unread bool
	Text   string
	// Stack has the calls that led to the error, the outermost first. It may be empty; of
	// more than 20 calls it has the first and the last 10.
	Stack []Frame
	Err   error // the error of the reader, or nil
}

// A Frame is one call in a rule file.
type Frame struct {
	Pos
	Function string // the function that was being executed
}

// Error returns one line: FILE:LINE:COL: TEXT.
func (e *LoadError) Error() string { return e.String() + ": " + e.Text }

// Unwrap returns the error of the reader.
func (e *LoadError) Unwrap() error { return e.Err }

// String returns FILE:LINE:COL, without the numbers that are not known.
func (p Pos) String() string {
	text := p.File
	for _, n := range []int{p.Line, p.Col} {
		if n > 0 {
			text += ":" + strconv.Itoa(n)
		}
	}
	return text
}

// Load reads sources in order, the lowest layer first. A source that does not load
// contributes nothing and is part of [Set.Err]; the others count as ever. Host resolves the
// programs in examples.
func Load(host Host, sources ...Source) *Set {
	s := &Set{hosts: map[string][]string{}}
	for _, source := range sources {
		if err := s.add(host, source); err != nil {
			s.broken = append(s.broken, err)
		}
	}
	s.build()
	return s
}

// Parse reads one text. The name is for messages. If the text does not load, the error is
// a [LoadError] and the Set is nil.
func Parse(name string, text []byte) (*Set, error) {
	s := Load(Host{}, Source{Name: name, Text: text})
	if len(s.broken) > 0 {
		return nil, s.broken[0]
	}
	return s, nil
}

// add adds what a source says, or nothing and returns why.
func (s *Set) add(host Host, source Source) error {
	if source.Err != nil {
		return &LoadError{Pos: Pos{File: source.Name}, Unread: true, Text: source.Err.Error(),
			Err: source.Err}
	}
	said, err := execute(source.Name, source.Text)
	if err != nil {
		return err
	}
	hosts := maps.Clone(s.hosts)
	maps.Copy(hosts, said.hosts)
	if err := said.checkExamples(host, hosts); err != nil {
		return err
	}
	if source.Narrow {
		said.narrow()
	}
	required, err := requirements(source)
	if err != nil {
		return err
	}
	s.rules = append(append(s.rules, said.rules...), required...)
	s.networks = append(s.networks, said.networks...)
	maps.Copy(s.hosts, said.hosts)
	return nil
}

// build makes the index.
func (s *Set) build() {
	s.index = map[string][]int32{}
	for i, r := range s.rules {
		word := fold(r.pattern[0][0]) // the only alternative
		s.index[word] = append(s.index[word], int32(i))
	}
}

// A Requirement is one element of prefix_rules in a managed requirements file.
type Requirement struct {
	Pos
	// Pattern has the alternatives of each position.
	Pattern [][]string
	// Decision is prompt or forbidden; allow is an error.
	Decision      string
	Justification string // empty means none
	Canonical     bool
}

// requirements returns the rules of a managed requirements file.
func requirements(source Source) ([]rule, error) {
	var rules []rule
	for i, q := range source.Required {
		pos := q.Pos
		pos.File = source.Name
		fail := func(format string, args ...any) ([]rule, error) {
			return nil, &LoadError{Pos: pos, Text: fmt.Sprintf("rules.prefix_rules[%d]: ",
				i) + fmt.Sprintf(format, args...)}
		}
		r := rule{pos: pos, pattern: q.Pattern, canonical: q.Canonical, justification: q.Justification}
		switch q.Decision {
		case "prompt":
			r.decision = Prompt
		case "forbidden":
			r.decision = Forbid
		case "":
			return fail("decision is missing; give prompt or forbidden")
		default:
			return fail("invalid decision %q; requirements can only prompt or forbid", q.Decision)
		}
		if len(q.Pattern) == 0 {
			return fail("%v", errEmptyPattern)
		}
		for _, alternatives := range q.Pattern {
			if len(alternatives) == 0 {
				return fail("%v", errEmptyAlternatives)
			}
		}
		if q.Justification != "" && strings.TrimSpace(q.Justification) == "" {
			return fail("%v", errJustification)
		}
		rules = append(rules, r.expand()...)
	}
	return rules, nil
}

// expand returns the rules of a call: one for each alternative of the first word. Words of
// canonical rules are folded.
func (r rule) expand() []rule {
	if r.canonical {
		folded := make([][]string, len(r.pattern))
		for i, alternatives := range r.pattern {
			for _, word := range alternatives {
				folded[i] = append(folded[i], fold(word))
			}
		}
		r.pattern = folded
	}
	if len(r.pattern[0]) == 1 {
		return []rule{r}
	}
	all := make([]rule, 0, len(r.pattern[0]))
	for i := range r.pattern[0] {
		one := r
		one.pattern = append([][]string{r.pattern[0][i : i+1]}, r.pattern[1:]...)
		all = append(all, one)
	}
	return all
}
