// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

// A Layer is where a setting comes from.
type Layer uint8

// The layers, the lowest first.
const (
	BuiltIn Layer = iota
	Managed
	User
	Project
	Environment
	Flags
)

var layerNames = []string{"built in", "managed", "user", "project", "environment", "flag"}

// String is the layer as people read it.
func (l Layer) String() string { return layerNames[l] }

// An Origin is who set a value.
type Origin struct {
	Layer Layer
	// File and Pos are its place; File is the name of a variable or a flag in those layers.
	File string
	Pos  syntax.TOMLPos
	// Profile is the profile that has it; empty if none has.
	Profile string
	// Grant is the named grant that the value is part of; empty for one that was written itself.
	Grant string
}

// Place is where the value was set: "FILE:LINE:COL", the name of a variable or of a flag. Behind it
// is the named grant that the value is part of: "--grant net:npm".
func (o Origin) Place() string {
	place := text.Line(o.File)
	if o.Pos != (syntax.TOMLPos{}) {
		place = fmt.Sprintf("%s:%d:%d", place, o.Pos.Line, o.Pos.Column)
	}
	if o.Grant != "" {
		place += " " + o.Grant
	}
	return place
}

// A Setting is the text of a value, or of an element of a List or Map, and who set it.
type Setting struct {
	Text   string
	Origin Origin
}

// Values are settings by the name of their key.
type Values map[string][]Setting

// A layer is what one source says.
type layer struct {
	kind     Layer
	file     string
	values   Values
	opened   Values // by [project]
	profiles map[string]*profile
	// allowRules lets what the rule files of the project allow count.
	allowRules bool
	// required are the rules of a managed file.
	required []rules.Requirement
}

// A profile is a table of [profiles].
type profile struct {
	name        string
	origin      Origin
	extends     *Setting
	description string
	values      Values
}

// A FileError is what is wrong with a file of settings, and where.
type FileError struct {
	File string
	Pos  syntax.TOMLPos // the zero Pos if it is about the whole file
	Text string         // a clause, with the fix
	Err  error          // of the system; nil for none
}

// fail returns the error for what was set there.
func (o Origin) fail(format string, args ...any) error {
	return &FileError{File: o.File, Pos: o.Pos, Text: fmt.Sprintf(format, args...)}
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

func (e *FileError) Error() string {
	return Origin{File: e.File, Pos: e.Pos}.Place() + ": " + e.Text
}

// fileReader makes a layer of the items of a file.
type fileReader struct {
	file string
	home string // "~" in a managed file, which HOME shall not decide about
	l    *layer
}

// readFile returns what a file says.
func readFile(kind Layer, file string, text []byte, home string) (*layer, error) {
	items, err := syntax.ParseTOML(text)
	var bad *syntax.TOMLError
	if errors.As(err, &bad) {
		return nil, &FileError{File: file, Pos: bad.TOMLPos, Text: bad.Text}
	}
	r := fileReader{file, home, &layer{kind: kind, file: file, values: Values{}, opened: Values{},
		profiles: map[string]*profile{}}}
	for i := range items {
		if err := r.item(&items[i]); err != nil {
			return nil, err
		}
	}
	return r.l, nil
}

func (r *fileReader) fail(at syntax.TOMLPos, format string, args ...any) error {
	return Origin{File: r.file, Pos: at}.fail(format, args...)
}

func (r *fileReader) origin(at syntax.TOMLPos) Origin {
	return Origin{Layer: r.l.kind, File: r.file, Pos: at}
}

// item reads one key.
func (r *fileReader) item(i *syntax.TOMLItem) error {
	switch i.Path[0] {
	case "profiles":
		return r.inProfiles(i)
	case "project":
		return r.inProject(i)
	case "approval":
		return r.approval(i)
	}
	if i.Path[0] == "rules" && r.l.kind == Managed && (len(i.Path) > 1 || i.Value.Kind == syntax.Table) {
		return r.requirements(i)
	}
	return r.key(i, i.Path, func(k *Key) string { return k.Name }, r.l.values, "", "")
}

// key reads the key that a path names, in a table that has some of the keys, by names of their own. Where is
// what messages call the table; empty for the top of the file.
func (r *fileReader) key(i *syntax.TOMLItem, path []string, name func(*Key) string, to Values, where,
	profile string) error {
	k, rest := keyOf(path, name)
	if k == nil {
		return r.table(i, path, name, where)
	}
	if err := r.allowed(k, i); where == "" && err != nil {
		return err
	}
	return r.set(to, k, rest, i, profile)
}

// keyOf returns the key that a path names, and what follows it in a Map.
func keyOf(path []string, name func(*Key) string) (*Key, []string) {
	full := syntax.JoinKeys(path) // a part with a dot is quoted, and no key
	if k := findKey(func(k *Key) bool { return name(k) == full && full != "" }); k != nil {
		return k, nil
	}
	for n := len(path) - 1; n > 0; n-- {
		above := syntax.JoinKeys(path[:n])
		if k := findKey(func(k *Key) bool { return k.hasNames() && name(k) == above }); k != nil {
			return k, path[n:]
		}
	}
	return nil, nil
}

// table accepts the header of a table that holds keys, and refuses what is no key.
func (r *fileReader) table(i *syntax.TOMLItem, path []string, name func(*Key) string, where string) error {
	full := syntax.JoinKeys(path)
	var known []string
	for _, k := range Keys() {
		n := name(k)
		if n == "" {
			continue
		}
		if strings.HasPrefix(n, full+".") {
			if i.Value.Kind == syntax.Table {
				return nil
			}
			return r.fail(i.Pos, "%s is a table; write [%s] and its keys below", i.Key(), i.Key())
		}
		known = append(known, n)
	}
	if where != "" && where != "[project]" {
		known = append(known, "extends", "description")
	}
	return r.fail(i.Pos, "unknown key %s%s", text.Word(i.Key()), elsewhere(path, known, where))
}

// elsewhere is the clause about a key that is unknown where it stands.
func elsewhere(path, known []string, where string) string {
	full, last := syntax.JoinKeys(path), path[len(path)-1]
	if where == "" && slices.Contains([]string{"extends", "description"}, full) {
		return "; it is a key of profiles, below [profiles.NAME]"
	}
	for _, k := range Keys() {
		switch {
		case where != "" && k.Name == full:
			return "; it cannot stand in " + where + ", but at the top of the file"
		case where == "" && len(path) == 1 && strings.HasSuffix(k.Name, "."+last):
			return fmt.Sprintf("; it is a key of [%s]", strings.TrimSuffix(k.Name, "."+last))
		}
	}
	return syntax.NearestClause(full, known, "sallyport config schema lists the keys")
}

// allowed refuses keys that this layer cannot set.
func (r *fileReader) allowed(k *Key, i *syntax.TOMLItem) error {
	switch {
	case k.Later != "":
		return r.fail(i.Pos, "%s is not supported in this version (%s); remove it", i.Key(), k.Later)
	case r.l.kind == Project && k.Order == Opens && k.Project != "":
		as := ""
		if k.Project != k.Name {
			as = ", as " + k.Project
		}
		return r.fail(i.Pos, "a project opens things below [project] only; move %s there%s", i.Key(), as)
	case r.l.kind == Project && (k.Order == None || k.Order == Opens || k.Order == Fixes):
		return r.fail(i.Pos, "a project cannot set %s; set it in the user's configuration", i.Key())
	case r.l.kind == Managed && k.Order == None:
		return r.fail(i.Pos, "%s has no order from narrow to wide, so it cannot be a ceiling; remove it", i.Key())
	}
	return nil
}

// inProfiles reads what stands below [profiles].
func (r *fileReader) inProfiles(i *syntax.TOMLItem) error {
	if r.l.kind == Project {
		return r.fail(i.Pos, "a project has no profiles; write what it opens below [project], and profiles into the user's configuration")
	}
	if len(i.Path) < 3 && i.Value.Kind != syntax.Table {
		return r.fail(i.Pos, "%s is a table; write [profiles.NAME] and its keys below", i.Key())
	}
	if len(i.Path) == 1 {
		return nil
	}
	name := i.Path[1]
	p := r.l.profiles[name]
	if p == nil {
		if _, taken := bases[name]; taken || name == "" || strings.HasPrefix(name, ":") {
			return r.fail(i.Pos, "%s cannot be the name of a profile; choose another one", quoted(name))
		}
		p = &profile{name: name, origin: r.origin(i.Pos), values: Values{}}
		r.l.profiles[name] = p
	}
	if len(i.Path) == 2 {
		return nil
	}
	path := i.Path[2:]
	if own := strings.Join(path, "."); own == "extends" || own == "description" {
		if i.Value.Kind != syntax.String || i.Value.Text == "" {
			return r.fail(i.Value.Pos, "%s is a string that is not empty, not %s", i.Key(), i.Value.Kind)
		}
		if own == "description" {
			p.description = i.Value.Text
		} else {
			p.extends = &Setting{i.Value.Text, r.origin(i.Value.Pos)}
		}
		return nil
	}
	return r.key(i, path, func(k *Key) string { return k.Profile }, p.values, "a profile", name)
}

// inProject reads what stands below [project].
func (r *fileReader) inProject(i *syntax.TOMLItem) error {
	if r.l.kind != Project {
		return r.fail(i.Pos, "[project] belongs into .sallyport/config.toml of a project; write its keys at the top of this file")
	}
	if len(i.Path) == 1 {
		if i.Value.Kind != syntax.Table {
			return r.fail(i.Pos, "project is a table; write [project] and its keys below")
		}
		return nil
	}
	path := i.Path[1:]
	if strings.Join(path, ".") == "allow_rules" {
		if i.Value.Kind != syntax.Bool {
			return r.fail(i.Value.Pos, "%s is true or false, not %s", i.Key(), i.Value.Kind)
		}
		r.l.allowRules = i.Value.Text == "true"
		return nil
	}
	return r.key(i, path, func(k *Key) string { return k.Project }, r.l.opened, "[project]", "")
}

// approval reads the word or the table of approval.
func (r *fileReader) approval(i *syntax.TOMLItem) error {
	key, table := Find("approval"), len(i.Path) == 1 && i.Value.Kind == syntax.Table
	switch {
	case table:
	case len(i.Path) == 1:
		return r.set(r.l.values, key, nil, i, "")
	case !slices.Contains(granular, i.Path[1]) || len(i.Path) > 2:
		return r.fail(i.Pos, "unknown key %s%s", text.Word(i.Key()),
			syntax.NearestClause(i.Path[1], granular, "it is one of "+strings.Join(granular, ", ")))
	case i.Value.Kind != syntax.Bool:
		return r.fail(i.Value.Pos, "%s is true or false, not %s", i.Key(), i.Value.Kind)
	}
	if len(r.l.values[key.Name]) == 0 {
		r.l.values[key.Name] = []Setting{{"granular", r.origin(i.Pos)}}
	}
	if !table && i.Value.Text == "true" {
		r.l.values[Granular] = append(r.l.values[Granular], Setting{i.Path[1], r.origin(i.Pos)})
	}
	return nil
}

// Granular is the name under which the members of the table of approval that are true stand.
const Granular = "approval.granular"

// set reads the value of a key.
func (r *fileReader) set(to Values, k *Key, rest []string, i *syntax.TOMLItem, profile string) error {
	add := func(text string, at syntax.TOMLPos) error {
		text, err := r.element(k, text, profile)
		if err != nil {
			return r.fail(at, "%s: %v", i.Key(), err)
		}
		o := r.origin(at)
		o.Profile = profile
		to[k.Name] = append(to[k.Name], Setting{text, o})
		return nil
	}
	v := &i.Value
	switch {
	case k.Type == Map && len(rest) == 0 && v.Kind == syntax.Table:
		return nil
	case k.Type == Tables && len(rest) < 2 && v.Kind == syntax.Table:
		return nil
	case k.Type == Tables:
		return r.member(k, rest, i, add)
	case k.Type == Map && (len(rest) != 1 || v.Kind != syntax.String), len(types[k.Type].kinds) > 0 &&
		!slices.Contains(types[k.Type].kinds, v.Kind):
		return r.fail(v.Pos, "%s is %s, not %s", i.Key(), types[k.Type].shape, v.Kind)
	case k.Type == Map && strings.Contains(rest[0], "="):
		return r.fail(i.Pos, "%s: the name %s has a =; leave it out", k.Name, quoted(rest[0]))
	case k.Type == Map:
		return add(rest[0]+"="+v.Text, i.Pos)
	case k.Type != List:
		return add(v.Text, v.Pos)
	}
	to[k.Name] = []Setting{} // an empty list says something, too
	for _, e := range v.List {
		if e.Kind != syntax.String {
			return r.fail(e.Pos, "%s is %s; an element is %s", i.Key(), types[List].shape, e.Kind)
		}
		if err := add(e.Text, e.Pos); err != nil {
			return err
		}
	}
	return nil
}

// element returns the text of a value, or of an element, as it counts.
func (r *fileReader) element(k *Key, text, profile string) (string, error) {
	place := k.paths
	pattern, err := strings.ContainsAny(text, "*?"), k.Check(text)
	switch {
	case pattern && place:
		return "", fmt.Errorf("%s is a pattern, and a pattern can only deny; name a directory", quoted(text))
	case k.Name == "network.allow" && r.l.kind == Managed: // a ceiling may be wide
		return text, checkPattern(text)
	case pattern && r.l.kind == Managed && k.Order == Opens && profile == "":
		return text, nil // of names that are permitted
	case err != nil:
		return "", err
	case k.Name == "rules" && r.l.kind == Project && text != BuiltinReadOnly:
		return "", fmt.Errorf("the rule files of a project are those in .sallyport/rules; move %s there", quoted(text))
	case k.Name == "rules" && r.l.kind == Managed && text == BuiltinReadOnly:
		return "", fmt.Errorf("%s lets commands run, and a ceiling only narrows; remove it", text)
	case r.l.kind != Managed || !place && k.Name != "deny" && k.Name != "rules" && k.Name != "tmp":
		return text, nil
	case place && text == placeHome:
		text = "~"
	}
	if text != "~" && !strings.HasPrefix(text, "~/") {
		return text, nil
	}
	if r.home == "" {
		return "", fmt.Errorf("this user has no home directory in the user database; write %s in full", quoted(text))
	}
	return Expand(text, r.home), nil
}
