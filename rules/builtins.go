// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

var (
	errEmptyPattern      = errors.New("invalid pattern element: pattern cannot be empty")
	errEmptyAlternatives = errors.New("invalid pattern element: pattern alternatives cannot be empty")
	errJustification     = errors.New("invalid rule: justification cannot be empty")
)

// A function is one that files call. It is told where the call is.
type function func(at Pos, args starlark.Tuple, kwargs []starlark.Tuple) error

// functions returns the functions that make rules.
func (p *program) functions() map[string]function {
	return map[string]function{"prefix_rule": p.prefixRule, "host_executable": p.hostExecutable,
		"network_rule": p.networkRule}
}

// builtins returns what a file can call beyond the universe of Starlark.
func (p *program) builtins() starlark.StringDict {
	known := starlark.StringDict{"range": starlark.NewBuiltin("range", boundedRange),
		product: starlark.NewBuiltin(product, multiply)}
	for name, fn := range p.functions() {
		known[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin,
			args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, fn(p.callPos(t.CallFrame(1).Pos), args, kwargs)
		})
	}
	return known
}

// optional is an argument that may be left out, but not be None.
type optional struct {
	given bool
	text  string
}

// Unpack takes the argument; it is called by package starlark.
func (o *optional) Unpack(v starlark.Value) error {
	s, ok := starlark.AsString(v)
	if !ok {
		return fmt.Errorf("got %s, want string", v.Type())
	}
	o.given, o.text = true, s
	return nil
}

// justification returns the text, which is empty if it was left out.
func (o *optional) justification() (string, error) {
	if o.given && strings.TrimSpace(o.text) == "" {
		return "", errJustification
	}
	return o.text, nil
}

func (p *program) prefixRule(at Pos, args starlark.Tuple, kwargs []starlark.Tuple) error {
	const positional = 6 // the rest by name only, so that what others add to the language can follow
	if len(args) > positional {
		return fmt.Errorf("prefix_rule: got %d positional arguments, want at most %d", len(args), positional)
	}
	var pattern, match, notMatch *starlark.List
	var decision, justification, sandbox optional
	r := rule{decision: Allow, pos: at}
	err := starlark.UnpackArgs("prefix_rule", args, kwargs, "pattern", &pattern, "decision?", &decision,
		"match?", &match, "not_match?", &notMatch,
		"justification?", &justification, "canonical_matching?", &r.canonical, "sandbox?", &sandbox)
	if err != nil {
		return err
	}
	if decision.given {
		if r.decision, err = ruleDecision(decision.text); err != nil {
			return err
		}
	}
	if r.justification, err = justification.justification(); err != nil {
		return err
	}
	if sandbox.given {
		place := slices.Index(sandboxNames[1:], sandbox.text) + 1
		if r.sandbox = Sandbox(place); r.sandbox == Unsaid {
			return fmt.Errorf("invalid rule: sandbox must be one of %s (got %s)",
				strings.Join(sandboxNames[1:], ", "), sandbox.text)
		}
	}
	if r.pattern, err = p.pattern(pattern); err != nil {
		return err
	}
	e := examples{pos: r.pos, first: len(p.rules)}
	if e.match, err = p.exampleList(match); err != nil {
		return err
	}
	if e.notMatch, err = p.exampleList(notMatch); err != nil {
		return err
	}
	p.rules = append(p.rules, r.expand()...)
	if e.end = len(p.rules); len(e.match)+len(e.notMatch) > 0 {
		p.examples = append(p.examples, e)
	}
	return nil
}

func ruleDecision(text string) (Decision, error) {
	i := slices.Index(decisionNames[:], text)
	if i < 0 {
		return Forbid, fmt.Errorf("invalid decision: %s", text)
	}
	return Decision(i), nil
}

// take counts words towards the limits of a file.
func (p *program) take(words ...string) error {
	p.words += len(words)
	for _, word := range words {
		p.bytes += len(word)
	}
	if p.words > maxItems || p.bytes > maxBytes {
		return fmt.Errorf("the rules and examples of the file have more than %d words or %d MiB; split the file", maxItems, maxBytes>>20)
	}
	return nil
}

// pattern returns the alternatives of each position.
func (p *program) pattern(list *starlark.List) ([][]string, error) {
	if list.Len() == 0 {
		return nil, errEmptyPattern
	}
	if list.Len() > maxWords {
		return nil, fmt.Errorf("invalid pattern element: pattern has more than %d elements", maxWords)
	}
	pattern := make([][]string, list.Len())
	for i := range pattern {
		switch v := list.Index(i).(type) {
		case starlark.String:
			pattern[i] = []string{string(v)}
		case *starlark.List:
			if v.Len() == 0 {
				return nil, errEmptyAlternatives
			}
			words, bad := stringList(v)
			if bad != nil {
				return nil, fmt.Errorf("invalid pattern element: pattern alternative must be a string (got %s)", bad.Type())
			}
			pattern[i] = words
		default:
			return nil, fmt.Errorf("invalid pattern element: pattern element must be a string or list of strings (got %s)", v.Type())
		}
		if err := p.take(pattern[i]...); err != nil {
			return nil, err
		}
	}
	// Each alternative of the first word becomes a rule of its own with all words.
	return pattern, p.take(make([]string, (len(pattern[0])-1)*len(pattern))...)
}

// stringList returns the strings of a list, or the first element that is none.
func stringList(list *starlark.List) (words []string, bad starlark.Value) {
	words = make([]string, list.Len())
	for i := range words {
		s, ok := starlark.AsString(list.Index(i))
		if !ok {
			return nil, list.Index(i)
		}
		words[i] = s
	}
	return words, nil
}

// exampleList returns the commands of a list of examples. The list may be nil.
func (p *program) exampleList(list *starlark.List) ([][]string, error) {
	if list == nil {
		return nil, nil
	}
	all := make([][]string, list.Len())
	for i := range all {
		words, problem := example(list.Index(i))
		if problem != "" {
			return nil, errors.New("invalid example: " + problem)
		}
		if err := p.take(words...); err != nil {
			return nil, err
		}
		all[i] = words
	}
	return all, nil
}

func example(v starlark.Value) (words []string, problem string) {
	switch v := v.(type) {
	case starlark.String:
		words, err := splitWords(string(v))
		switch {
		case err != nil:
			return nil, "example string has invalid shell syntax"
		case len(words) == 0:
			return nil, "example cannot be an empty string"
		}
		return words, ""
	case *starlark.List:
		if v.Len() == 0 {
			return nil, "example cannot be an empty list"
		}
		words, bad := stringList(v)
		if bad != nil {
			return nil, fmt.Sprintf("example tokens must be strings (got %s)", bad.Type())
		}
		return words, ""
	}
	return nil, fmt.Sprintf("example must be a string or list of strings (got %s)", v.Type())
}

// examples are those of one call, which made the rules from first to end.
type examples struct {
	pos             Pos
	first, end      int
	match, notMatch [][]string
}

// checkExamples checks each call's examples against its own rules.
func (p *program) checkExamples(host Host, hosts map[string][]string) error {
	for _, e := range p.examples {
		s := &Set{rules: p.rules[e.first:e.end], hosts: hosts}
		s.build()
		for _, argv := range e.notMatch {
			if hit := s.Resolve(argv, host).Matches; len(hit) > 0 {
				return &LoadError{Pos: e.pos, Text: fmt.Sprintf("expected example to not match rule `%s`: %s",
					JoinWords(hit[0].Prefix), JoinWords(argv))}
			}
		}
		var missed []string
		for _, argv := range e.match {
			if len(s.Resolve(argv, host).Matches) == 0 {
				missed = append(missed, strconv.Quote(JoinWords(argv)))
			}
		}
		if len(missed) > 0 {
			return &LoadError{Pos: e.pos,
				Text: fmt.Sprintf("expected every example to match at least one rule. rules: [%s]; unmatched examples: [%s]", s.describe(), strings.Join(missed, ", "))}
		}
	}
	return nil
}

// describe returns the patterns of a few rules.
func (s *Set) describe() string {
	const most = 20
	var all []string
	for _, r := range s.rules[:min(len(s.rules), most)] {
		words := make([]string, len(r.pattern))
		for i, alternatives := range r.pattern {
			words[i] = quoteWord(alternatives[0])
			if len(alternatives) > 1 {
				words[i] = "[" + JoinWords(alternatives[:min(len(alternatives), most)]) + "]"
			}
		}
		all = append(all, strconv.Quote(strings.Join(words, " ")))
	}
	return strings.Join(all, ", ")
}

// narrow drops what a source that may only narrow cannot say.
func (p *program) narrow() {
	p.rules = slices.DeleteFunc(p.rules, func(r rule) bool { return r.decision == Allow })
	for i := range p.rules {
		if p.rules[i].sandbox == Outside {
			p.rules[i].sandbox = Unsaid
		}
	}
	p.networks = slices.DeleteFunc(p.networks, func(r NetworkRule) bool { return r.Decision == Allow })
	p.hosts = nil
}

func (p *program) hostExecutable(_ Pos, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var name string
	var list *starlark.List
	if err := starlark.UnpackArgs("host_executable", args, kwargs, "name", &name, "paths",
		&list); err != nil {
		return err
	}
	switch {
	case name == "":
		return errors.New("invalid rule: host_executable name cannot be empty")
	case name == "." || name == ".." || strings.Contains(name, "/"):
		return fmt.Errorf("invalid rule: host_executable name must be a bare executable name (got %s)", name)
	}
	paths := []string{}
	for i := range list.Len() {
		raw, ok := starlark.AsString(list.Index(i))
		switch {
		case !ok:
			return fmt.Errorf("invalid rule: host_executable paths must be strings (got %s)",
				list.Index(i).Type())
		case !path.IsAbs(raw):
			return fmt.Errorf("invalid rule: host_executable paths must be absolute (got %s)", raw)
		case path.Base(path.Clean(raw)) != name:
			return fmt.Errorf("invalid rule: host_executable path `%s` must have basename `%s`", raw, name)
		}
		paths = append(paths, path.Clean(raw))
		if err := p.take(raw); err != nil {
			return err
		}
	}
	slices.Sort(paths)
	p.hosts[name] = slices.Compact(paths)
	return nil
}

func (p *program) networkRule(at Pos, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var host, protocol, decision string
	var justification optional
	if err := starlark.UnpackArgs("network_rule", args, kwargs, "host", &host, "protocol", &protocol,
		"decision", &decision, "justification?", &justification); err != nil {
		return err
	}
	r, err := networkRule(host, protocol, decision, justification)
	if err != nil {
		return err
	}
	r.Pos = at
	p.networks = append(p.networks, r)
	return p.take(host)
}

// networkRule returns a rule of these words.
func networkRule(host, protocol, decision string, justification optional) (r NetworkRule, err error) {
	var ok bool
	if r.Protocol, ok = protocols[protocol]; !ok {
		return r, fmt.Errorf("invalid rule: network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got %s)", protocol)
	}
	if decision == "deny" {
		decision = Forbid.String()
	}
	if r.Decision, err = ruleDecision(decision); err != nil {
		return r, err
	}
	if r.Justification, err = justification.justification(); err != nil {
		return r, err
	}
	host, problem := normalHost(host)
	if problem != "" {
		return r, errors.New("invalid rule: network_rule host " + problem)
	}
	r.Host = host
	return r, nil
}

// boundedRange is range with an end that fits into memory.
func boundedRange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
	kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxRange {
		return nil, fmt.Errorf("range of %d elements: a loop over it takes more than %d steps", n, maxSteps)
	}
	return v, nil
}

// multiply is the operator * with a result that fits into memory.
func multiply(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple,
	_ []starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	if _, ok := x.(starlark.Int); ok {
		x, y = y, x
	}
	times, ok := y.(starlark.Int)
	if !ok {
		return starlark.Binary(syntax.STAR, args[0], args[1])
	}
	size, most := starlark.Len(x), maxItems
	switch x := x.(type) {
	case starlark.String, starlark.Bytes:
		most = maxBytes
	case starlark.Int:
		if big := x.BigInt().BitLen() + times.BigInt().BitLen(); big > maxIntBits {
			return nil, fmt.Errorf("the product has more than %d bits", maxIntBits)
		}
	}
	if n, ok := times.Int64(); size > 0 && times.Sign() > 0 && (!ok || n > int64(most/size)) {
		return nil, fmt.Errorf("the product has more than %d elements", most)
	}
	return starlark.Binary(syntax.STAR, args[0], args[1])
}
