// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// A table is what the tables of a key of type Tables have.
type table struct {
	what     string // "a credential"
	members  []member
	required []string
}

// A member is a string or, with list, an array of strings.
type member struct {
	name, help string
	list       bool
	words      []string // of the elements of a list; nil for all
}

// listSep is between the elements of a list in the text of a setting. No element has it.
const listSep = "\n"

var errMember = errors.New("unknown member")

// cutMember splits the text of a setting. Values of a list are its elements.
func cutMember(text string) (name, member string, values []string) {
	name, value, _ := strings.Cut(text, "=")
	name, member, _ = strings.Cut(name, ".")
	return name, member, strings.Split(value, listSep)
}

// find returns a member, or nil.
func (t *table) find(name string) *member {
	i := slices.IndexFunc(t.members, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return &t.members[i]
}

// names are the members in a sentence.
func (t *table) names() string {
	var names []string
	for _, m := range t.members {
		names = append(names, m.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// check checks the text of one member.
func (t *table) check(text string) error {
	name, member, values := cutMember(text)
	m := t.find(member)
	switch {
	case name == "" || m == nil || !m.list && len(values) > 1:
		return fmt.Errorf("%s: %w of %s", quoted(text), errMember, t.what)
	case slices.Contains(values, ""):
		return errEmpty
	}
	return nil
}

// member reads a member of one of the tables of a key.
func (r *fileReader) member(k *Key, rest []string, i *syntax.TOMLItem, add func(string, syntax.TOMLPos) error) error {
	v := &i.Value
	if len(rest) < 2 {
		return r.fail(v.Pos, "%s is a table; write [%s.NAME] and %s below", i.Key(), k.Name,
			strings.Join(k.table.required, " and "))
	}
	m := k.table.find(rest[1])
	switch {
	case strings.Trim(rest[0], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "":
		return r.fail(i.Pos, "%s: the name %s has other characters than letters, digits, - and _; leave them out", k.Name, quoted(rest[0]))
	case m == nil || len(rest) > 2:
		return r.fail(i.Pos, "unknown key %s; %s has the members %s", i.Key(), k.table.what, k.table.names())
	case !m.list && v.Kind != syntax.String:
		return r.fail(v.Pos, "%s is a string, not %s", i.Key(), v.Kind)
	case m.list && v.Kind != syntax.Array:
		return r.fail(v.Pos, "%s is an array of strings, not %s", i.Key(), v.Kind)
	}
	text := v.Text
	if m.list {
		var all []string
		for _, e := range v.List {
			if e.Kind != syntax.String || e.Text == "" || strings.Contains(e.Text, listSep) {
				return r.fail(e.Pos, "%s is an array of strings of one line", i.Key())
			}
			all = append(all, e.Text)
		}
		if text = strings.Join(all, listSep); text == "" {
			return r.fail(v.Pos, "%s is empty; leave it out, or name something", i.Key())
		}
	}
	return add(rest[0]+"."+rest[1]+"="+text, i.Pos)
}

// shown are the tables as they were written.
func (t *table) shown(v Value) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, text := range v.Texts() {
		name, member, values := cutMember(text)
		if out[name] == nil {
			out[name] = map[string]any{}
		}
		if out[name][member] = strings.Join(values, listSep); t.find(member).list {
			out[name][member] = values
		}
	}
	return out
}

// schema is the schema of one table.
func (t *table) schema() node {
	n := object(strings.ToUpper(t.what[:1]) + t.what[1:] + ".")
	for _, m := range t.members {
		items := node{"type": "string"}
		if m.words != nil {
			items = node{"enum": m.words}
		}
		if m.list {
			n.put(m.name, node{"type": "array", "description": m.help, "items": items})
		} else {
			n.put(m.name, node{"type": "string", "description": m.help})
		}
	}
	n["required"] = t.required
	return n
}
