// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strings"
)

// A profile is a Seatbelt profile as a small model reads it. The model knows
// the forms that this package writes and refuses every other one. The last rule
// that matches decides; a rule for "file-write*" is about every operation whose
// name begins with "file-write".
type profile struct {
	rules  []profileRule
	params map[string]string
	exprs  map[string]*regexp.Regexp
}

type profileRule struct {
	allow   bool
	ops     []string
	filters []form // none: always
}

// A form is a list, an atom or a string.
type form struct {
	list []form
	atom string
	text bool // a string
}

// head is the first atom of a list.
func (f form) head() string {
	if len(f.list) == 0 || f.list[0].text {
		return ""
	}
	return f.list[0].atom
}

// readForms reads a whole text.
func readForms(s string) ([]form, error) {
	r := &formReader{s: s}
	var out []form
	for r.space(); r.s != ""; r.space() {
		f, err := r.form()
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

type formReader struct{ s string }

// space skips white space and comments.
func (r *formReader) space() {
	for {
		r.s = strings.TrimLeft(r.s, " \n")
		if !strings.HasPrefix(r.s, ";") {
			return
		}
		_, r.s, _ = strings.Cut(r.s, "\n")
	}
}

func (r *formReader) form() (form, error) {
	switch {
	case r.s == "":
		return form{}, fmt.Errorf("the text ends too soon")
	case r.s[0] == '(':
		r.s = r.s[1:]
		var f form
		for r.space(); !strings.HasPrefix(r.s, ")"); r.space() {
			one, err := r.form()
			if err != nil {
				return form{}, err
			}
			f.list = append(f.list, one)
		}
		r.s = r.s[1:]
		return f, nil
	case r.s[0] == '"':
		text, rest, ok := strings.Cut(r.s[1:], `"`)
		if !ok || strings.Contains(text, `\`) {
			return form{}, fmt.Errorf("a string that this model does not read: %.40q", r.s)
		}
		r.s = rest
		return form{atom: text, text: true}, nil
	}
	n := strings.IndexAny(r.s, " \n()\";")
	if n <= 0 {
		return form{}, fmt.Errorf("what is %.40q", r.s)
	}
	f := form{atom: r.s[:n]}
	r.s = r.s[n:]
	return f, nil
}

// readProfile reads the profile of a launch.
func readProfile(e *Exec) (*profile, error) {
	if e == nil || len(e.Args) < 3 || e.Path != SandboxExec || e.Args[0] != SandboxExec || e.Args[1] != "-p" {
		return nil, fmt.Errorf("no profile in %+v", e)
	}
	p := &profile{params: map[string]string{}, exprs: map[string]*regexp.Regexp{}}
	i := 3
	for ; i < len(e.Args) && strings.HasPrefix(e.Args[i], "-D"); i++ {
		key, value, ok := strings.Cut(e.Args[i][2:], "=")
		if _, twice := p.params[key]; !ok || twice {
			return nil, fmt.Errorf("parameter %q", e.Args[i])
		}
		p.params[key] = value
	}
	if i >= len(e.Args)-1 || e.Args[i] != "--" {
		return nil, fmt.Errorf("no command after the parameters: %q", e.Args[3:])
	}
	forms, err := readForms(e.Args[2])
	if err != nil {
		return nil, err
	}
	for i, f := range forms {
		switch head := f.head(); {
		case i == 0 && head == "version", i == 1 && head == "deny" && f.list[1].atom == "default":
		case i > 1 && (head == "allow" || head == "deny"):
			rule := profileRule{allow: head == "allow"}
			for _, part := range f.list[1:] {
				if part.list == nil {
					rule.ops = append(rule.ops, part.atom)
					continue
				}
				rule.filters = append(rule.filters, part)
			}
			p.rules = append(p.rules, rule)
		default:
			return nil, fmt.Errorf("form %d is %q", i, head)
		}
	}
	return p, nil
}

// allows reports whether an operation on a path goes through.
func (p *profile) allows(op, name string) bool {
	for i := len(p.rules) - 1; i >= 0; i-- {
		r := p.rules[i]
		if !r.about(op) {
			continue
		}
		if len(r.filters) == 0 {
			return r.allow
		}
		for _, f := range r.filters {
			if p.matches(f, name) {
				return r.allow
			}
		}
	}
	return false
}

func (r profileRule) about(op string) bool {
	for _, o := range r.ops {
		if stem, wild := strings.CutSuffix(o, "*"); o == op || wild && strings.HasPrefix(op, stem) {
			return true
		}
	}
	return false
}

// value is a string or a parameter.
func (p *profile) value(f form) string {
	if f.text {
		return f.atom
	}
	v, ok := p.params[f.list[1].atom]
	if f.head() != "param" || !ok || v == "" {
		panic(fmt.Sprintf("no value in %v", f))
	}
	return v
}

func (p *profile) matches(f form, name string) bool {
	switch head, args := f.head(), f.list[1:]; head {
	case "literal":
		return name == p.value(args[0])
	case "subpath":
		return within(name, p.value(args[0]))
	case "regex":
		return p.expr(p.value(args[0])).MatchString(bytesAsRunes(name))
	case "require-all":
		for _, a := range args {
			if !p.matches(a, name) {
				return false
			}
		}
		return true
	case "require-not":
		return !p.matches(args[0], name)
	case "vnode-type":
		return args[0].atom == "DIRECTORY" // tests ask about directories
	case "extension", "remote", "local", "sysctl-name", "sysctl-name-prefix", "global-name",
		"local-name", "target":
		return false
	default:
		panic("the model does not know " + head)
	}
}

func (p *profile) expr(s string) *regexp.Regexp {
	if p.exprs[s] == nil {
		p.exprs[s] = byteExpr(s)
	}
	return p.exprs[s]
}

// byteExpr compiles an expression so that it matches bytes, for texts that
// bytesAsRunes has made.
func byteExpr(s string) *regexp.Regexp { return regexp.MustCompile(bytesAsRunes(s)) }

// bytesAsRunes makes a character of every byte.
func bytesAsRunes(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}
