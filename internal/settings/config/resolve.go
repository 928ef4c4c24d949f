// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

// A Value is what holds for a key.
type Value struct {
	// Settings is one value, or the elements of a List or Map. None means that nothing is set.
	Settings []Setting
	// Cut are settings that do not count, and why.
	Cut []Cut
}

// Text is the value of a key that is no List or Map; empty if nothing is set.
func (v Value) Text() string {
	if len(v.Settings) == 0 {
		return ""
	}
	return v.Settings[0].Text
}

// Texts are the elements of a List or Map.
func (v Value) Texts() []string {
	texts := make([]string, len(v.Settings))
	for i, s := range v.Settings {
		texts[i] = s.Text
	}
	return texts
}

// Forget removes the elements of a key that are a name, or begin with it and "=".
func (v Values) Forget(key, name string) {
	v[key] = slices.DeleteFunc(v[key], func(s Setting) bool {
		return s.Text == name ||
			strings.HasPrefix(s.Text, name+"=")
	})
}

// A Cut is a setting that does not count.
type Cut struct {
	Setting
	Why string // a clause
}

// Effective is what holds for one run.
type Effective struct {
	// Values has a value for every key that something is set for.
	Values map[string]Value
	// Base is the mode: one of the constants.
	Base string
	// Granular are the kinds of questions that may be asked when approval is granular.
	Granular []string
	// Notes are sentences about what was cut or is not used.
	Notes []string

	config *Config
	layers []*layer
	asked  string         // the mode before the ceiling
	before string         // the mode that SALLYPORT_PROFILE found; empty if that is not set
	rules  []rules.Source // that were read; nil before
	named  []source       // those that may open hosts, after one that turned the network off; nil for all
}

// A FlagError is what is wrong with a flag, in view of the files.
type FlagError struct{ Text string }

func (e *FlagError) Error() string { return e.Text }

// A CeilingError says that a flag asks for more than the ceiling allows.
type CeilingError struct {
	Wish Setting
	Key  string
	By   Origin
}

func (e *CeilingError) Error() string {
	if e.By.File == RequireSandboxFlag {
		return fmt.Sprintf("%s %s is not allowed, because the server was started with %s; "+
			"ask for a sandbox within workspace-write", e.Wish.Origin.File, text.Word(e.Wish.Text), e.By.File)
	}
	return fmt.Sprintf("%s %s is more than the managed configuration allows (%s: %s)", e.Wish.Origin.File,
		text.Word(e.Wish.Text), e.By.Place(), e.Key)
}

// ExitCode is that of a run.
func (e *CeilingError) ExitCode() int { return 122 }

// Resolve says what holds for a run with these flags. The error is a [*FlagError], a
// [*CeilingError], or a [*FileError]
func (c *Config) Resolve(flags Values) (*Effective, error) {
	e := &Effective{Values: map[string]Value{}, config: c, Notes: slices.Clone(c.notes)}
	e.layers = append(slices.Clone(c.layers), &layer{kind: Flags, values: flags})
	stack, err := e.choose()
	if err != nil {
		return nil, err
	}
	for _, k := range Keys() {
		switch {
		case k.Name == "sandbox":
		case k.IsList():
			e.gather(k, stack)
			if k.Name != "grants" {
				continue
			}
			if err := e.boundHosts(); err != nil { // before network.mode, which they imply
				return nil, err
			}
		default:
			e.pick(k, stack)
		}
	}
	if e.Base == NoBase && e.asked != NoBase { // two modes met
		v := e.Values["read"]
		v.Settings = append(v.Settings, Setting{placeWorkspace, e.Values["sandbox"].Settings[0].Origin})
		e.Values["read"] = v
	}
	e.onlyNamed()
	if err := e.bound(); err != nil {
		return nil, err
	}
	e.openHosts()
	e.noteAsk()
	e.questions()
	e.noteEnvironment()
	return e, nil
}

// A source is what one layer, or the profile that was chosen, says. Mode is that at this place.
type source struct {
	kind   Layer
	values Values
	mode   string
	past   bool // of a profile that a later layer replaced: nothing in it makes anything wider
}

// choose decides about the mode, and returns the sources in the order in which they count.
func (e *Effective) choose() ([]source, error) {
	holds, at := Setting{Text: WorkspaceWrite}, -1
	mode, own, modes := WorkspaceWrite, WorkspaceWrite, make([]string, len(e.layers))
	var profiles []*profile
	replaced := make([]Values, len(e.layers)) // by later layers
	var v Value
	for i, l := range e.layers {
		modes[i] = mode
		if len(l.values["sandbox"]) == 0 {
			continue
		}
		s := l.values["sandbox"][0]
		base, ps, err := e.config.chain(s)
		if err != nil {
			return nil, err
		}
		switch {
		case l.kind != Project:
			if at >= 0 {
				replaced[at] = merged(profiles).denials()
			}
			if l.kind == Environment {
				e.before = mode
			}
			holds, at, mode, own, profiles, modes[i] = s, i, base, base, ps, base
		case covers(mode, base): // the profile stays: it may deny and limit
			holds, mode, modes[i] = s, base, base
		default:
			e.cut(&v, "sandbox", s, "a project can only narrow, and "+text.Word(holds.Text)+" holds")
		}
	}
	e.asked = mode
	for _, m := range e.config.managed {
		s := m.values["sandbox"]
		if len(s) == 0 || covers(bases[s[0].Text], mode) {
			continue
		}
		if holds.Origin.Layer == Flags {
			return nil, &CeilingError{holds, "sandbox", s[0].Origin}
		}
		e.cut(&v, "sandbox", holds, ceiling(s[0]))
		holds, mode = s[0], narrower(bases[s[0].Text], mode)
	}
	e.Base = mode
	v.Settings = []Setting{holds}
	e.Values["sandbox"] = v
	var stack []source
	for i, l := range e.layers {
		said := []source{{kind: l.kind, values: l.values, mode: modes[i]},
			{kind: User, values: l.opened, mode: modes[i]}}
		profile := source{kind: User, values: merged(profiles), mode: own}
		switch {
		case at != i:
			stack = append(append(stack, said...), source{kind: User, values: replaced[i],
				mode: modes[i], past: true})
		case l.kind == Flags: // a flag beside -P counts more than the profile
			stack = append(append(stack, profile), said...)
		default:
			stack = append(append(stack, said...), profile)
		}
	}
	return stack, nil
}

// ceiling is why a setting was cut by the ceiling.
func ceiling(by Setting) string {
	return fmt.Sprintf("the managed configuration allows %s (%s)", text.Word(by.Text), by.Origin.Place())
}

// cut notes that a setting does not count.
func (e *Effective) cut(v *Value, key string, s Setting, why string) {
	v.Cut = append(v.Cut, Cut{s, why})
	if s.Origin.Layer != BuiltIn {
		e.Notes = append(e.Notes, fmt.Sprintf("%s: %s = %s does not count: %s", s.Origin.Place(), key,
			text.Word(Find(key).shown(s.Text)), why))
	}
}

// builtIn is the value of a key that nothing sets.
func (e *Effective) builtIn(k *Key, stack []source) string {
	switch {
	case k.Name == "network.mode" && e.Base == FullAccess:
		return NetHost
	case k.Name == "network.mode":
		return NetNone
	case k.Name == "approval" && !e.config.in.Terminal && !e.waits() && !programAsked(stack):
		return "never"
	}
	return k.Default
}

// waits reports whether a question without a terminal waits for an answer. The keys stand before
// those that ask.
func (e *Effective) waits() bool {
	v := e.Values["approval_wait"]
	d, err := ParseDuration(v.Text())
	return err == nil && d > 0 || e.Values["ask_in_console"].Text() == "true"
}

// programAsked reports whether a program answers questions, without a terminal as well.
func programAsked(stack []source) bool {
	return slices.ContainsFunc(stack, func(from source) bool {
		return !from.past && len(from.values["hooks.approver"]) > 0
	})
}

// pick finds the value of a key that has one.
func (e *Effective) pick(k *Key, stack []source) {
	s := Setting{Text: e.builtIn(k, stack)}
	var v Value
	reads := false // the managed network that was said last is limited
	for i, from := range stack {
		set := from.values[k.Name]
		implied := len(set) == 0
		if implied && k.Name == "network.mode" && s.Text != NetLimited {
			set = e.impliedMode(from, s, reads)
		}
		if len(set) == 0 {
			continue
		}
		next := set[len(set)-1]
		if next.Text == NetProxy {
			next.Text = e.proxied(reads)
		}
		if reads = reads || next.Text == NetLimited; from.past && k.wider(next.Text, s.Text) {
			continue
		}
		if from.kind == Project && s.Text != "" && (k.wider(next.Text, s.Text) || k.Name == "approval" &&
			s.Text == "granular" && next.Text != "untrusted") {
			e.cut(&v, k.Name, next, "a project can only narrow, and "+text.Word(s.Text)+" holds")
			continue
		}
		if k.Name == "network.mode" {
			reads = reads && next.Text != NetFull
			switch {
			case !implied:
				e.named = nil
			case s.Text == NetNone && s.Origin.Layer != BuiltIn:
				e.named = stack[i:]
			}
		}
		s = next
	}
	if s.Text != "" {
		v.Settings = []Setting{s}
	}
	if len(v.Settings)+len(v.Cut) > 0 {
		e.Values[k.Name] = v
	}
}

// gather adds the elements of a List or Map.
func (e *Effective) gather(k *Key, stack []source) {
	var v Value
	if k.Default != "" {
		v.Settings = []Setting{{Text: k.Default}}
	}
	said := false
	for _, from := range stack {
		set, ok := from.values[k.Name]
		held := v.Texts()
		if ok && !said && from.kind != Flags {
			said, v.Settings = true, nil // in place of the default
		}
		for _, s := range set {
			switch {
			case s.Text == BuiltinReadOnly && from.kind == Project && !slices.Contains(held, s.Text):
				e.cut(&v, k.Name, s, "a project can only narrow")
			case k.ofMode && !covers(e.asked, from.mode):
				v.Cut = append(v.Cut, Cut{s, "it was set for " + from.mode + ", and " + e.asked + " holds"})
			case k.Whole: // below
			case k.hasNames():
				name, _, _ := strings.Cut(s.Text, "=")
				v.Settings = append(slices.DeleteFunc(v.Settings,
					func(o Setting) bool { return strings.HasPrefix(o.Text, name+"=") }), s)
			case !slices.ContainsFunc(v.Settings, func(o Setting) bool { return o.Text == s.Text }):
				v.Settings = append(v.Settings, s)
			}
		}
		if k.Whole && ok {
			v.Settings = set
		}
	}
	if said || len(v.Settings)+len(v.Cut) > 0 {
		e.Values[k.Name] = v
	}
}

// questions finds the kinds of questions that granular approval allows: those of the layer that
// set it, without those that a ceiling leaves out.
func (e *Effective) questions() {
	for _, m := range e.config.managed {
		by, v := m.values["approval"], e.Values["approval"]
		if at := v.Text(); len(by) > 0 && by[0].Text == "granular" &&
			(at == "on-request" || at == "on-failure") {
			e.cut(&v, "approval", v.Settings[0], ceiling(by[0]))
			v.Settings = by
			e.Values["approval"] = v
		}
	}
	if e.Values["approval"].Text() != "granular" {
		return
	}
	o := e.Values["approval"].Settings[0].Origin
	for _, l := range slices.Concat(e.config.managed, e.layers) {
		for _, s := range l.values[Granular] {
			if s.Origin.File == o.File {
				e.Granular = append(e.Granular, s.Text)
			}
		}
	}
	if o.Layer == Flags || o.Layer == Environment {
		e.Granular = slices.Clone(granular) // the word alone
	}
	for _, m := range e.config.managed {
		if len(m.values["approval"]) > 0 && m.values["approval"][0].Text == "granular" {
			e.Granular = slices.DeleteFunc(e.Granular, func(q string) bool {
				return !slices.ContainsFunc(m.values[Granular], func(s Setting) bool { return s.Text == q })
			})
		}
	}
}
