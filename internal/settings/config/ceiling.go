// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
)

// bound applies the ceiling. What files and variables ask for beyond it is cut; a flag that
// does is an error.
func (e *Effective) bound() error {
	for _, m := range e.config.managed {
		for _, k := range Keys() {
			if err := cmp.Or(e.boundDenied(k, m), e.boundKey(k, m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// boundKey applies what a ceiling says of a key.
func (e *Effective) boundKey(k *Key, m *layer) error {
	set, ok := m.values[k.Name]
	switch {
	case k.Name == "sandbox":
	case k.Name == "tmp" && !ok:
		return e.boundTmp(k, m)
	case k.Order == Opens:
		return e.boundList(k, m, set, ok)
	case k.Name == "network.mode" && !ok && m.hosts() != nil:
		return e.boundValue(k, *m.hosts()) // with the network of the host nothing could be judged
	case !ok:
	case k.Order == Narrows:
		v := e.Values[k.Name]
		v.Settings = append(v.Settings, set...)
		e.Values[k.Name] = v
	default:
		return e.boundValue(k, set[0])
	}
	return nil
}

// boundDenied applies what a ceiling denies to places in it: of two entries of a policy the more specific
// one counts.
func (e *Effective) boundDenied(k *Key, m *layer) error {
	if !k.paths {
		return nil
	}
	return e.filter(k.Name, func(s Setting) (string, error) {
		by := e.reopens(s.Text, m)
		if by == nil {
			return "", nil
		}
		return "the managed configuration denies it (" + by.Origin.Place() + ")",
			&CeilingError{s, "deny", by.Origin}
	})
}

// filter cuts the elements of a list that refuse gives a reason against; empty is none. The first element of
// a flag that has an error, too, is that error.
func (e *Effective) filter(key string, refuse func(Setting) (why string, err error)) error {
	v := e.Values[key]
	var kept []Setting
	for _, s := range v.Settings {
		switch why, err := refuse(s); {
		case why == "":
			kept = append(kept, s)
		case err != nil && s.Origin.Layer == Flags:
			return err
		default:
			e.cut(&v, key, s, why)
		}
	}
	if len(kept) < len(v.Settings) {
		v.Settings = kept
		e.Values[key] = v
	}
	return nil
}

// notAllowed is why a setting beyond the ceiling was cut.
func notAllowed(by Origin) string {
	return "the managed configuration does not allow it (" + by.Place() + ")"
}

// reopens returns what denies a place that lies in it; nil if nothing does.
func (e *Effective) reopens(text string, m *layer) *Setting {
	at := reached(e.path(text))
	for _, s := range m.values["deny"] {
		if in := e.real(s.Text); at != in && below(at, in) {
			return &s
		}
	}
	return nil
}

// boundTmp applies a ceiling that does not name tmp: a directory is a place to write to.
func (e *Effective) boundTmp(k *Key, m *layer) error {
	at, mode := e.Values[k.Name].Text(), m.mode()
	if mode == nil || slices.Contains(k.Words, at) || e.withinAny(at, m.values["write"]) ||
		e.withinMode("write", at, bases[mode.Text]) {
		return nil
	}
	return e.boundValue(k, Setting{k.Default, mode.Origin})
}

// boundValue applies the ceiling for a key with one value.
func (e *Effective) boundValue(k *Key, by Setting) error {
	v := e.Values[k.Name]
	if !k.wider(v.Text(), by.Text) {
		return nil
	}
	if len(v.Settings) > 0 {
		s := v.Settings[0]
		if s.Origin.Layer == Flags {
			return &CeilingError{s, k.Name, by.Origin}
		}
		e.cut(&v, k.Name, s, ceiling(Setting{k.shown(by.Text), by.Origin}))
	}
	if k.Name == "tmp" {
		by.Text = k.Default // two places have nothing in common
	}
	v.Settings = []Setting{by}
	e.Values[k.Name] = v
	return nil
}

// boundList applies the ceiling for a list that opens. Where the ceiling does not have the list,
// but a mode, nothing may be added to that.
func (e *Effective) boundList(k *Key, m *layer, permitted []Setting, ok bool) error {
	mode, by := m.mode(), m.origin()
	switch {
	case len(permitted) > 0:
		by = permitted[0].Origin
	case ok:
	case k.Name == keyPublish && m.closesNetwork() != nil:
		by = *m.closesNetwork()
	case mode == nil || k.apart:
		return nil
	default:
		by = mode.Origin
	}
	return e.filter(k.Name, func(s Setting) (string, error) {
		if e.permits(k, s.Text, permitted, mode) {
			return "", nil
		}
		return notAllowed(by), &CeilingError{s, k.Name, by}
	})
}

// permits reports whether an element is among those that the ceiling lists, or opens no more
// than its mode, which may be nil.
func (e *Effective) permits(k *Key, text string, permitted []Setting, mode *Setting) bool {
	if k.covers != nil {
		return slices.ContainsFunc(permitted, func(p Setting) bool { return k.covers(p.Text, text) })
	}
	return e.withinAny(text, permitted) || mode != nil && e.withinMode(k.Name, text, bases[mode.Text])
}

// mode is the mode that a ceiling ends at; nil if it has none, or full access.
func (l *layer) mode() *Setting {
	if s := l.values["sandbox"]; len(s) > 0 && bases[s[0].Text] != FullAccess {
		return &s[0]
	}
	return nil
}

// hosts is the widest network.mode of a ceiling that lists hosts, also if none may be allowed; nil
// if it has no list.
func (l *layer) hosts() *Setting {
	allowed, lists := l.values["network.allow"]
	switch said := slices.Concat(allowed, l.values["network.deny"]); {
	case len(said) > 0:
		return &Setting{NetFull, said[0].Origin}
	case lists:
		return &Setting{NetFull, l.origin()}
	}
	return nil
}

// judgesNetwork reports whether a ceiling closes the network of the host, which is open outside of
// the sandbox.
func (l *layer) judgesNetwork() bool {
	mode := l.values["network.mode"]
	return l.hosts() != nil || len(mode) > 0 && mode[0].Text != NetHost
}

// closesNetwork is where a ceiling leaves no network at all; nil if it leaves one. A published port is
// a way in, and what comes in can carry data out.
func (l *layer) closesNetwork() *Origin {
	if mode := l.values["network.mode"]; len(mode) > 0 && mode[0].Text == NetNone {
		return &mode[0].Origin
	}
	return nil
}

// origin is the place of a layer that has an empty list.
func (l *layer) origin() Origin { return Origin{Layer: l.kind, File: l.file} }

// withinMode reports whether a place of a list is open in a mode anyway. What begins with a dot
// is not, nor anything in a home directory: a mode protects .git and hides the stores of secrets,
// and naming them opens them.
func (e *Effective) withinMode(list, name, mode string) bool {
	switch {
	case list == "write" && mode == ReadOnly:
		return false
	case name == placeWorkspace, list == "write" && name == placeTmp, list == "read" && name == placeMinimal:
		return true
	case !e.within(name, placeWorkspace) || e.holdsHome(placeWorkspace):
		return false
	}
	below := strings.TrimPrefix(e.real(name), strings.TrimSuffix(e.real(placeWorkspace), "/"))
	return !strings.Contains(below, "/.")
}

// withinAny reports whether a place lies in one of others.
func (e *Effective) withinAny(name string, roots []Setting) bool {
	return slices.ContainsFunc(roots, func(p Setting) bool { return e.within(name, p.Text) })
}

// within reports whether a place lies in another one, whatever links lead to it.
func (e *Effective) within(name, root string) bool {
	return below(e.real(name), e.real(root))
}

// real is the path of a place without links; empty if there is none.
func (e *Effective) real(name string) string {
	at, err := filepath.EvalSymlinks(e.path(name))
	if err != nil {
		return ""
	}
	return at
}

// path is the path of a place; empty if it has none.
func (e *Effective) path(name string) string {
	switch name {
	case placeWorkspace:
		name = e.config.in.Dir
	case placeTmp:
		name = "/tmp"
	case placeHome:
		name = "~"
	case placeMinimal:
		return ""
	}
	name = Expand(name, e.config.in.Home)
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.config.in.Dir, name)
	}
	return name
}

// reached is the path of a name without links, of which only the beginning may exist; empty for none, and
// for a link to nothing, which leads anywhere.
func reached(name string) string {
	if name == "" {
		return ""
	}
	for at, rest := filepath.Clean(name), ""; ; at, rest = filepath.Dir(at),
		filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		} else if _, err := os.Lstat(at); err == nil || filepath.Dir(at) == at {
			return ""
		}
	}
}

// openings are the keys of what requests for approval require.
var openings = map[string]string{
	approval.Outside: "sandbox", "write": "write", "read": "read", "grant": "grants", "allow": "allow",
	"host": "network.mode",
}

// Permits returns a [*CeilingError] for the first thing that no approval may open because of the
// ceiling. Required are words such as "outside" and "write:PATH", as in requests for approval. Nil
// means that the ceiling has nothing against them. A grant of hosts requires its hosts, too.
func (e *Effective) Permits(required []string) error {
	for _, word := range required {
		if err := e.permitsWord(word); err != nil {
			return err
		}
		grant, _ := strings.CutPrefix(word, "grant:")
		for _, host := range grants.Hosts(grant) {
			if err := e.permitsWord("host:" + host); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Effective) permitsWord(word string) error {
	what, at, _ := strings.Cut(word, ":")
	k := Find(openings[what])
	if k == nil {
		return nil
	}
	over := func(key string, by Origin) error {
		return &CeilingError{Setting{word, Origin{Layer: Flags, File: "an approval of"}}, key, by}
	}
	for _, m := range e.config.managed {
		mode, set := m.mode(), m.values[k.Name]
		origin, ok := m.origin(), true
		if k.paths {
			if by := e.reopens(at, m); by != nil {
				return over("deny", by.Origin)
			}
		}
		hosts := Find("network.allow")
		permitted, listsHosts := m.values[hosts.Name]
		switch _, listed := m.values[k.Name]; {
		case what == approval.Outside && (mode != nil || len(m.values["deny"]) > 0 || m.judgesNetwork()):
			ok = false
		case what == "host" && len(set) > 0 && k.wider(NetLimited, set[0].Text):
			ok = false
		case what == "host" && listsHosts:
			k, set = hosts, permitted
			ok = e.permits(k, at, set, mode)
		case k.Order == Opens && (listed || mode != nil):
			ok = e.permits(k, at, set, mode)
		}
		switch {
		case ok:
			continue
		case len(set) > 0:
			origin = set[0].Origin
		case mode != nil:
			origin = mode.Origin
		}
		return over(k.Name, origin)
	}
	return nil
}

// named reports whether a name is one, or matches a pattern.
func named(pattern, name string) bool {
	match, err := path.Match(pattern, name)
	return match && err == nil
}
