// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Shown is what holds, for people and as JSON.
type Shown struct {
	Type     string           `json:"type"` // always "config"
	Mode     string           `json:"mode"` // of the sandbox, without what is added to it
	Values   map[string]*Line `json:"values"`
	Profiles []string         `json:"profiles"`
	Rules    []string         `json:"rules"` // files, the lowest layer first
	Notes    []string         `json:"notes"`

	origin bool
}

// A Line is one key.
type Line struct {
	Value   any       `json:"value"` // null if nothing holds
	Origins []*Source `json:"origins,omitempty"`
	Cut     []*Source `json:"cut,omitempty"`
}

// A Source is who set a value, or an element of one.
type Source struct {
	Value   string `json:"value"`
	Layer   string `json:"layer"`
	File    string `json:"file,omitempty"` // or the name of a variable
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Profile string `json:"profile,omitempty"`
	Why     string `json:"why,omitempty"` // it does not count
	place   string
}

func (k *Key) sourceOf(s Setting, why string) *Source {
	o := s.Origin
	return &Source{k.shown(s.Text), o.Layer.String(), o.File, o.Pos.Line, o.Pos.Column, o.Profile,
		why, o.Place()}
}

// Show returns what holds; with origin also who set it.
func (e *Effective) Show(origin bool) *Shown {
	s := &Shown{Type: "config", Mode: e.Base, Values: map[string]*Line{}, Profiles: e.config.Profiles(),
		Rules: []string{}, Notes: slices.Clone(e.Notes), origin: origin}
	if s.Notes == nil {
		s.Notes = []string{}
	}
	for _, r := range e.Rules() {
		s.Rules = append(s.Rules, r.Name)
	}
	if note := e.upstreamNote(); note != "" {
		s.Notes = append(s.Notes, note)
	}
	for _, k := range Keys() {
		v, ok := e.Values[k.Name]
		if !ok {
			continue
		}
		l := &Line{Value: k.data(v)}
		if k.Name == "approval" && v.Text() == "granular" {
			kinds := map[string]bool{}
			for _, q := range granular {
				kinds[q] = slices.Contains(e.Granular, q)
			}
			l.Value = kinds
		}
		if origin {
			for _, set := range v.Settings {
				l.Origins = append(l.Origins, k.sourceOf(set, ""))
			}
			for _, c := range v.Cut {
				l.Cut = append(l.Cut, k.sourceOf(c.Setting, c.Why))
			}
		}
		s.Values[k.Name] = l
	}
	return s
}

// data is a value as JSON has it.
func (k *Key) data(v Value) any {
	switch {
	case k.Type == List:
		return v.Texts()
	case k.Type == Map:
		m := map[string]string{}
		for _, t := range v.Texts() {
			name, value, _ := strings.Cut(t, "=")
			m[name] = value
		}
		return m
	case k.Type == Tables:
		return k.table.shown(v)
	case len(v.Settings) == 0:
		return nil
	case k.Type == Bool:
		return v.Text() == "true"
	case k.Type == Count || k.Type == CPUs:
		return json.Number(v.Text())
	}
	return k.shown(v.Text())
}

// String is TOML, with a comment for each value if origins were asked for.
func (s *Shown) String() string {
	var b strings.Builder
	table := ""
	for _, k := range Keys() {
		l := s.Values[k.Name]
		if l == nil || l.Value == nil && len(l.Cut) == 0 {
			continue
		}
		name := k.Name
		if above, last, ok := strings.Cut(k.Name, "."); ok {
			if name = last; above != table {
				fmt.Fprintf(&b, "\n[%s]\n", above)
				table = above
			}
		}
		s.line(&b, name, l)
	}
	var own []string
	for _, p := range s.Profiles {
		if Mode(p) == "" {
			own = append(own, p)
		}
	}
	b.WriteString("\n")
	for _, list := range []struct {
		what  string
		names []string
	}{{"profiles", own}, {"rule files", s.Rules}, {"notes", s.Notes}} {
		for i, name := range list.names {
			if i == 0 {
				fmt.Fprintf(&b, "# %s:\n", list.what)
			}
			fmt.Fprintf(&b, "#   %s\n", text.Line(name))
		}
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// line writes one key.
func (s *Shown) line(b *strings.Builder, name string, l *Line) {
	if l.Value != nil {
		txt := name + " = " + encode(l.Value)
		if s.origin && len(l.Origins) == 1 {
			txt = fmt.Sprintf("%-40s # %s", txt, l.Origins[0])
		}
		b.WriteString(text.Line(txt) + "\n")
	}
	if s.origin && len(l.Origins) > 1 {
		for _, o := range l.Origins {
			fmt.Fprintf(b, "    # %s: %s\n", text.Line(o.Value), o)
		}
	}
	for _, c := range l.Cut {
		fmt.Fprintf(b, "    # %s does not count (%s): %s\n", text.Line(c.Value), c, text.Line(c.Why))
	}
}

// String says who set a value.
func (s *Source) String() string {
	txt := s.Layer
	if s.place != "" {
		txt += ", " + s.place
	}
	if s.Profile != "" {
		txt += ", profile " + text.Word(s.Profile)
	}
	return txt
}

// encode writes a value as TOML.
func encode(v any) string {
	switch v := v.(type) {
	case []string:
		quotes := make([]string, len(v))
		for i := range v {
			quotes[i] = syntax.QuoteTOML(v[i])
		}
		return "[" + strings.Join(quotes, ", ") + "]"
	case map[string]string:
		return inline(v, syntax.QuoteTOML)
	case map[string]map[string]any:
		return inline(v, func(m map[string]any) string { return inline(m, encode) })
	case map[string]bool:
		return inline(v, func(b bool) string { return fmt.Sprint(b) })
	case string:
		return syntax.QuoteTOML(v)
	}
	return fmt.Sprint(v)
}

// inline writes a map as an inline table.
func inline[V any](m map[string]V, value func(V) string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, syntax.JoinKeys([]string{name})+" = "+value(m[name]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
