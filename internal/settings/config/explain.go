// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Explain returns what is known of a key, a profile or a grant, for people.
func (e *Effective) Explain(name string) (string, error) {
	if f := FindFlag(name); f != nil {
		name = cmp.Or(f.Key, name)
	}
	if k := Find(name); k != nil {
		return e.explainKey(k), nil
	}
	if _, _, err := e.config.chain(Setting{Text: name}); err == nil {
		return e.explainProfile(name), nil
	}
	for _, g := range protect.NamedGrants() {
		if g.Name == name {
			return explainGrant(&g), nil
		}
	}
	known := e.config.Profiles()
	for _, k := range Keys() {
		known = append(known, k.Name)
	}
	for _, g := range protect.NamedGrants() {
		known = append(known, g.Name)
	}
	return "", fmt.Errorf("%s is not a key, profile or grant%s", quoted(name),
		syntax.NearestClause(name, known, "sallyport config schema lists the keys"))
}

// orders say how the project and the ceiling treat a key.
var orders = [...]string{
	None:       "a project and the managed configuration cannot set it",
	Words:      "a project and the managed configuration can only narrow it, towards the first value",
	Smaller:    "a project and the managed configuration can only make it smaller",
	TrueFirst:  "a project and the managed configuration can only set it to true",
	FalseFirst: "a project and the managed configuration can only set it to false",
	Narrows:    "all layers add to it",
	Fixes:      "a project cannot set it; in the managed configuration it is the value that holds",
	Opens:      "a project sets it below [project] only; in the managed configuration it lists what may be opened",
}

func (e *Effective) explainKey(k *Key) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", k.Name, k.Help)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, text)
		}
	}
	row("type", types[k.Type].shape)
	row("values", strings.Join(k.Words, ", "))
	row("default", k.Default)
	var flags []string
	for _, f := range k.Flags {
		flags = append(flags, f.Name())
	}
	row("flag", strings.Join(flags, ", "))
	row("variable", k.Variable())
	order := orders[k.Order]
	if k.Order == Opens && k.Project == "" {
		order = "a project cannot set it; in the managed configuration it lists what may be opened"
	}
	row("order", order)
	if k.Later != "" {
		row("state", "not supported in this version ("+k.Later+")")
		return b.String()
	}
	b.WriteString("\n")
	if l := e.Show(true).Values[k.Name]; l != nil {
		(&Shown{origin: true}).line(&b, k.Name, l)
	} else {
		b.WriteString("Nothing sets it.\n")
	}
	return b.String()
}

func (e *Effective) explainProfile(name string) string {
	mode, profiles, _ := e.config.chain(Setting{Text: name})
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a profile, on top of %s\n", text.Word(name), modes[mode])
	for _, p := range profiles {
		fmt.Fprintf(&b, "  %s (%s)", text.Word(p.name), p.origin.Place())
		if p.description != "" {
			b.WriteString(": " + text.Line(p.description))
		}
		b.WriteString("\n")
	}
	v := merged(profiles)
	for _, k := range Keys() {
		if len(v[k.Name]) > 0 {
			fmt.Fprintf(&b, "  %s = %s\n", k.Profile, text.Line(encode(k.data(Value{Settings: v[k.Name]}))))
		}
	}
	return b.String()
}

// modes are the modes in words.
var modes = map[string]string{
	NoBase:         "nothing: only the platform's own files can be read",
	ReadOnly:       "read-only: every file can be read and executed, none written",
	Minimal:        ":minimal: the platform's own files can be read, the workspace and a private /tmp written",
	WorkspaceWrite: "workspace-write: every file can be read and executed, the workspace and a private /tmp written",
	FullAccess:     "full-access: no sandbox",
}

func explainGrant(g *protect.NamedGrant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: a grant for %s\n\n  keeps closed: %s\n", g.Name, g.Opens, g.Keeps)
	for _, c := range g.Commands {
		fmt.Fprintf(&b, "  works with it: %s\n", c)
	}
	for _, c := range g.Refused {
		fmt.Fprintf(&b, "  does not work: %s\n", c)
	}
	if g.Warning != "" {
		fmt.Fprintf(&b, "\nWarning: %s.\n", g.Warning)
	}
	return b.String()
}
