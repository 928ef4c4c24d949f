// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// aliasWorkingDirectory is the older wire name of TokenProjectRoots.
const aliasWorkingDirectory = "current_working_directory"

// ParseProfile reads the newer wire form, PermissionProfile of the Codex
// protocol: an object whose type is "managed", "disabled" or "external". Paths
// are absolute, or "file:" URIs as on the exec-server's wire. Special tokens that
// this version does not know are kept as they are. Other members that are not
// known are ignored. Repeated members, wrong types, unknown words and relative
// paths are a [*WireError].
func ParseProfile(data []byte) (Policy, error) {
	o, err := parseObject(formProfile, data)
	if err != nil {
		return Policy{}, err
	}
	typ, err := o.text("type")
	if err != nil {
		return Policy{}, err
	}
	switch typ {
	case "disabled":
		return FullAccess(), nil
	case "external":
		net, err := o.network("network")
		if err != nil {
			return Policy{}, err
		}
		return Policy{mode: External, net: net, listed: true}.seal(), nil
	case "managed":
		return o.profileManaged()
	}
	return Policy{}, o.bad("type", "it is not a known profile: "+strconv.Quote(typ))
}

func (o object) profileManaged() (Policy, error) {
	net, err := o.network("network")
	if err != nil {
		return Policy{}, err
	}
	fs, err := o.object("file_system")
	if err != nil {
		return Policy{}, err
	}
	typ, err := fs.text("type")
	if err != nil {
		return Policy{}, err
	}
	switch typ {
	case "unrestricted":
		return unrestricted(net), nil
	case "restricted":
	default:
		return Policy{}, fs.bad("type", "it must be restricted or unrestricted, not "+strconv.Quote(typ))
	}
	depth, err := fs.scanDepth()
	if err != nil {
		return Policy{}, err
	}
	if _, err := fs.need("entries"); err != nil {
		return Policy{}, err
	}
	list, err := fs.list("entries")
	if err != nil {
		return Policy{}, err
	}
	var entries []Entry
	for i, v := range list {
		e, err := fs.profileEntry("entries["+strconv.Itoa(i)+"]", v)
		if err != nil {
			return Policy{}, err
		}
		entries = append(entries, e)
	}
	return Policy{net: net, listed: true, entries: entries, depth: depth}.seal(), nil
}

// scanDepth reads glob_scan_max_depth, 0 when it is absent.
func (o object) scanDepth() (int, error) {
	const name = "glob_scan_max_depth"
	v, ok := o.raw(name)
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(v), 10, 32)
	if err != nil || n < 1 {
		return 0, o.bad(name, "it must be a whole number of at least 1")
	}
	return int(n), nil
}

func (o object) profileEntry(name string, v json.RawMessage) (Entry, error) {
	eo, err := o.sub(name, v)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if e.Place, err = eo.profilePlace(); err != nil {
		return Entry{}, err
	}
	word, err := eo.text("access")
	if err != nil {
		return Entry{}, err
	}
	if e.Level, err = ParseLevel(word); err != nil {
		return Entry{}, eo.bad("access", "it must be read, write or deny, not "+strconv.Quote(word))
	}
	if _, ok := eo.raw("missing_path_behavior"); ok {
		word, err := eo.text("missing_path_behavior")
		if err != nil {
			return Entry{}, err
		}
		if word != "skip" {
			return Entry{}, eo.bad("missing_path_behavior", "it must be skip, not "+strconv.Quote(word))
		}
		e.SkipMissing = true
	}
	if err := e.check(); err != nil {
		return Entry{}, eo.bad("path", reasonOf(err))
	}
	return e, nil
}

// profilePlace reads the member path of an entry.
func (o object) profilePlace() (Place, error) {
	po, err := o.object("path")
	if err != nil {
		return Place{}, err
	}
	typ, err := po.text("type")
	if err != nil {
		return Place{}, err
	}
	switch typ {
	case "path":
		v, err := po.need("path")
		if err != nil {
			return Place{}, err
		}
		name, err := po.path("path", v)
		return Place{Kind: PlacePath, Path: name}, err
	case "glob_pattern":
		pattern, err := po.text("pattern")
		return Place{Kind: PlaceGlob, Path: pattern}, err
	case "special":
		return po.special()
	}
	return Place{}, po.bad("type", "it must be path, glob_pattern or special, not "+strconv.Quote(typ))
}

// special reads the member value of a special path.
func (o object) special() (Place, error) {
	v, err := o.need("value")
	if err != nil {
		return Place{}, err
	}
	so, err := o.sub("value", v)
	if err != nil {
		return Place{}, err
	}
	pl := Place{Kind: PlaceSpecial}
	if pl.Token, err = so.text("kind"); err != nil {
		return Place{}, err
	}
	if pl.Token == aliasWorkingDirectory {
		pl.Token = TokenProjectRoots
	}
	if !pl.known() {
		return so.unknown(pl.Token, string(v))
	}
	if _, ok := so.raw("subpath"); ok {
		sub, err := so.text("subpath")
		if err != nil {
			return Place{}, err
		}
		pl.Subpath = sub
		if err := (Entry{Place: pl}).checkSpecial(); err != nil {
			return Place{}, so.bad("subpath", reasonOf(err))
		}
		if pl.Subpath = path.Clean(sub); pl.Subpath == "." {
			pl.Subpath = ""
		}
	}
	return pl, nil
}

// unknown keeps a token of a newer version. Peers wrap one that they read from
// configuration as kind "unknown" with the text in path.
func (o object) unknown(token, raw string) (Place, error) {
	pl := Place{Kind: PlaceSpecial, Token: token, Raw: raw}
	if token == "unknown" {
		if s, err := o.text("path"); err == nil && s != "" {
			pl.Token = strings.TrimPrefix(s, ":")
		}
	}
	if pl.Token == "" || pl.known() || (Place{Token: token}).known() {
		return Place{}, o.bad("kind", "it is not a usable token")
	}
	if s, err := o.text("subpath"); err == nil {
		pl.Subpath = s
	}
	return pl, nil
}

// MarshalProfile writes the newer wire form with plain absolute paths; see
// [ParseProfile]. A policy that the form cannot express is a [*LossyError]:
// entries that cannot be used, relative paths, paths that are not UTF-8, named
// grants. NetworkProxy is written as "restricted", which is what the kernel
// enforces under it; the proxy and its hosts travel apart.
func (p Policy) MarshalProfile() ([]byte, error) {
	return p.marshalProfile(func(name string) (string, bool) { return name, utf8.ValidString(name) })
}

// MarshalProfileURI is [Policy.MarshalProfile] with paths as "file:" URIs, as
// the exec-server's wire has them. It can express every path.
func (p Policy) MarshalProfileURI() ([]byte, error) {
	return p.marshalProfile(func(name string) (string, bool) { return fileURI(name), true })
}

func (p Policy) marshalProfile(spell func(string) (string, bool)) ([]byte, error) {
	if len(p.named) > 0 {
		return nil, lossyProfile("named grants cannot be expressed")
	}
	switch p.mode {
	case Full:
		return []byte(`{"type":"disabled"}`), nil
	case External:
		return []byte(`{"type":"external","network":"` + wireNetwork(p.net) + `"}`), nil
	}
	b := jsonText(`{"type":"managed","file_system":`)
	if p.open {
		b = b.raw(`{"type":"unrestricted"}`)
	} else {
		b = b.raw(`{"type":"restricted","entries":[`)
		for i, e := range p.list() {
			if i > 0 {
				b = b.raw(",")
			}
			var err error
			if b, err = b.entry(e, spell); err != nil {
				return nil, err
			}
		}
		b = b.raw("]")
		if p.depth > 0 {
			b = b.raw(`,"glob_scan_max_depth":` + strconv.Itoa(p.depth))
		}
		b = b.raw("}")
	}
	return b.raw(`,"network":"` + wireNetwork(p.net) + `"}`), nil
}

func lossyProfile(reason string) error { return &LossyError{Form: formProfile, Reason: reason} }

// entry appends one entry.
func (b jsonText) entry(e Entry, spell func(string) (string, bool)) (jsonText, error) {
	if err := e.check(); err != nil {
		return nil, lossyProfile("the entry " + e.String() + " cannot be used")
	}
	pl := e.Place
	if !utf8.ValidString(pl.Token+pl.Subpath) || pl.Kind == PlaceGlob && !utf8.ValidString(pl.Path) {
		return nil, lossyProfile("the entry " + e.String() + " is not UTF-8")
	}
	b = b.raw(`{"path":{"type":`)
	switch pl.Kind {
	case PlacePath:
		if !path.IsAbs(pl.Path) {
			return nil, lossyProfile("the entry " + e.String() + " is relative; bind the policy to a directory first")
		}
		name, ok := spell(path.Clean(pl.Path))
		if !ok {
			return nil, lossyProfile("the entry " + e.String() + " is not UTF-8")
		}
		b = b.raw(`"path","path":`).str(name)
	case PlaceGlob:
		b = b.raw(`"glob_pattern","pattern":`).str(pl.Path)
	default:
		if pl.Raw != "" && !pl.rawFits() {
			return nil, lossyProfile("the entry " + e.String() + " has raw JSON that is of another place")
		}
		b = b.raw(`"special","value":`).special(pl)
	}
	b = b.raw(`},"access":"` + e.Level.String() + `"`)
	if e.SkipMissing {
		b = b.raw(`,"missing_path_behavior":"skip"`)
	}
	return b.raw("}"), nil
}

// rawFits reports whether Raw is what this very place was read from. Without
// the check, an entry that is ignored here could be a grant for the next reader.
func (pl Place) rawFits() bool {
	o, err := parseObject(formProfile, []byte(pl.Raw))
	if err != nil {
		return false
	}
	kind, err := o.text("kind")
	if err != nil || kind == aliasWorkingDirectory {
		return false
	}
	read, err := o.unknown(kind, pl.Raw)
	return err == nil && read == pl
}

// special appends the value of a special place; an unknown one as it arrived.
func (b jsonText) special(pl Place) jsonText {
	switch {
	case pl.known():
		b = b.raw(`{"kind":"` + pl.Token + `"`)
	case pl.Raw != "":
		return b.raw(pl.Raw) // rawFits has been asked
	default:
		b = b.raw(`{"kind":"unknown","path":`).str(":" + pl.Token)
	}
	if pl.Subpath != "" {
		b = b.raw(`,"subpath":`).str(pl.Subpath)
	}
	return b.raw("}")
}
