// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

// requirements reads the table rules of a managed file, which prompts or forbids:
//
//	[rules]
//	prefix_rules = [{pattern = [{token = "git"}, {any_of = ["push", "pull"]}], decision = "prompt"}]
func (r *fileReader) requirements(i *syntax.TOMLItem) error {
	switch {
	case len(i.Path) == 1:
		return nil
	case len(i.Path) > 2 || i.Path[1] != "prefix_rules":
		return r.fail(i.Pos, "unknown key %s; the table rules of a managed file has prefix_rules only",
			text.Word(i.Key()))
	case i.Value.Kind != syntax.Array || len(i.Value.List) == 0:
		return r.fail(i.Value.Pos,
			"%s is an array of tables that is not empty; leave it out for none", i.Key())
	}
	for _, v := range i.Value.List {
		q := rules.Requirement{Pos: rules.Pos{File: r.file, Line: v.Pos.Line, Col: v.Pos.Column}}
		err := r.members(&v, "a rule", []string{"pattern", "decision", "justification", "canonical_matching"},
			func(m *syntax.TOMLItem) error {
				kind := syntax.String
				switch m.Path[0] {
				case "pattern":
					var err error
					q.Pattern, err = r.pattern(&m.Value)
					return err
				case "canonical_matching":
					kind, q.Canonical = syntax.Bool, m.Value.Text == "true"
				case "decision":
					q.Decision = m.Value.Text
				default:
					q.Justification = m.Value.Text
				}
				return r.kind(&m.Value, kind, m.Path[0])
			})
		if err != nil {
			return err
		}
		r.l.required = append(r.l.required, q)
	}
	return nil
}

// pattern reads the words of a rule.
func (r *fileReader) pattern(v *syntax.TOMLValue) (words [][]string, err error) {
	if err := r.kind(v, syntax.Array, "pattern"); err != nil {
		return nil, err
	}
	for _, e := range v.List {
		var alternatives []string
		err := r.members(&e, "an element of pattern", []string{"token", "any_of"}, func(m *syntax.TOMLItem) error {
			list := []syntax.TOMLValue{m.Value}
			if m.Path[0] == "any_of" {
				if list = m.Value.List; m.Value.Kind != syntax.Array {
					return r.kind(&m.Value, syntax.Array, "any_of")
				}
			}
			for _, w := range list {
				if err := r.kind(&w, syntax.String, m.Path[0]); err != nil {
					return err
				}
				alternatives = append(alternatives, w.Text)
			}
			return nil
		})
		if err == nil && len(e.Items) != 1 {
			err = r.fail(e.Pos, "an element of pattern has either token or any_of")
		}
		if err != nil {
			return nil, err
		}
		words = append(words, alternatives)
	}
	return words, nil
}

// members reads the keys of a table in an array.
func (r *fileReader) members(v *syntax.TOMLValue, what string, known []string, read func(*syntax.TOMLItem) error) error {
	if v.Kind != syntax.Table {
		return r.fail(v.Pos, "%s is a table, such as { %s = ... }, not %s", what, known[0], v.Kind)
	}
	for n := range v.Items {
		m := &v.Items[n]
		if len(m.Path) > 1 || !slices.Contains(known, m.Path[0]) {
			return r.fail(m.Pos, "unknown key %s of %s%s", text.Word(m.Key()), what,
				syntax.NearestClause(m.Key(), known, ""))
		}
		if err := read(m); err != nil {
			return err
		}
	}
	return nil
}

// kind checks the kind of a value.
func (r *fileReader) kind(v *syntax.TOMLValue, want syntax.TOMLKind, name string) error {
	if v.Kind != want {
		return r.fail(v.Pos, "%s is %s, not %s", name, want, v.Kind)
	}
	return nil
}
