// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// aliasWorkingDirectory is the older name of sandbox.TokenProjectRoots.
const aliasWorkingDirectory = "current_working_directory"

// ParseProfile parses a PermissionProfile: an object whose type is "managed", "disabled" or
// "external". Paths are absolute, or "file:" URIs as on the exec-server's wire. Special
// tokens that this version does not know are kept as they are. Errors are a
// [*ParseError].
func ParseProfile(data []byte) (sandbox.Policy, error) {
	in := new(input)
	p := in.outermost(data).profile()
	if in.err != nil {
		return sandbox.Policy{}, in.err
	}
	return p, nil
}

func (o object) profile() sandbox.Policy {
	switch typ := o.text("type"); typ {
	case "disabled":
		return sandbox.FullAccess()
	case "external":
		return o.policy(sandbox.External, o.network("network"))
	case "managed":
		return o.profileManaged()
	default:
		o.fail("type", "unknown profile "+strconv.Quote(typ))
	}
	return sandbox.Policy{}
}

func (o object) profileManaged() sandbox.Policy {
	net := o.network("network")
	fs := o.object("file_system")
	switch typ := fs.text("type"); typ {
	case "unrestricted":
		return sandbox.FullAccess().WithNetwork(sandbox.NetworkNone).WithNetwork(net)
	case "restricted":
	default:
		fs.fail("type", "must be restricted or unrestricted, not "+strconv.Quote(typ))
	}
	depth := fs.scanDepth()
	fs.need("entries")
	var entries []sandbox.Entry
	for i, v := range fs.list("entries") {
		entries = append(entries, fs.sub("entries["+strconv.Itoa(i)+"]", v).entry())
	}
	if o.in.err != nil {
		return sandbox.Policy{}
	}
	return o.policy(sandbox.Managed, net, entries...).WithGlobScanDepth(depth)
}

// scanDepth returns glob_scan_max_depth, 0 when it is absent.
func (o object) scanDepth() int {
	const name = "glob_scan_max_depth"
	v, ok := o.raw(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 32)
	if err != nil || n < 1 {
		o.fail(name, "must be a whole number of at least 1")
	}
	return int(n)
}

func (o object) entry() sandbox.Entry {
	e := sandbox.Entry{Place: o.place()}
	word := o.text("access")
	var err error
	if e.Level, err = sandbox.ParseLevel(word); err != nil {
		o.fail("access", "must be read, write or deny, not "+strconv.Quote(word))
	}
	if o.has("missing_path_behavior") {
		e.SkipMissing = true
		if word := o.text("missing_path_behavior"); word != "skip" {
			o.fail("missing_path_behavior", "must be skip, not "+strconv.Quote(word))
		}
	}
	if err := e.Check(); err != nil {
		o.fail("path", reasonOf(err))
	}
	return e
}

// place returns the member path of an entry.
func (o object) place() sandbox.Place {
	p := o.object("path")
	switch typ := p.text("type"); typ {
	case "path":
		return sandbox.Place{Kind: sandbox.PlacePath, Path: p.path("path", p.need("path"))}
	case "glob_pattern":
		return sandbox.Place{Kind: sandbox.PlaceGlob, Path: p.text("pattern")}
	case "special":
		return p.object("value").special(string(p.need("value")))
	default:
		p.fail("type", "must be path, glob_pattern or special, not "+strconv.Quote(typ))
	}
	return sandbox.Place{}
}

// special returns the place of a special value, whose text is raw.
func (o object) special(raw string) sandbox.Place {
	p := sandbox.Place{Kind: sandbox.PlaceSpecial, Token: o.text("kind")}
	if p.Token == aliasWorkingDirectory {
		p.Token = sandbox.TokenProjectRoots
	}
	if !p.Known() {
		return o.unknown(p.Token, raw)
	}
	if o.has("subpath") {
		p.Subpath = o.text("subpath")
		if err := (sandbox.Entry{Place: p}).Check(); err != nil {
			o.fail("subpath", reasonOf(err))
		}
		if p.Subpath = path.Clean(p.Subpath); p.Subpath == "." {
			p.Subpath = ""
		}
	}
	return p
}

// unknown keeps a token of a newer version. Peers wrap one that they read from
// configuration as kind "unknown" with the text in path.
func (o object) unknown(token, raw string) sandbox.Place {
	p := sandbox.Place{Kind: sandbox.PlaceSpecial, Token: token, Raw: raw}
	if s := o.optional("path"); token == "unknown" && s != "" {
		p.Token = strings.TrimPrefix(s, ":")
	}
	if p.Token == "" || p.Known() {
		o.fail("kind", "not a usable token")
	}
	p.Subpath = o.optional("subpath")
	return p
}

// optional returns a member of an unknown token, or "" when it is not a usable string.
func (o object) optional(name string) string {
	own := object{in: new(input), m: o.m} // errors in it do not count
	s := own.text(name)
	if own.in.err != nil {
		return ""
	}
	return s
}

// MarshalProfile returns the JSON form of a policy with plain absolute paths; see
// [ParseProfile]. It is an error to give it a policy with invalid entries, relative
// paths, paths that are not UTF-8, or named grants. NetworkProxy is written as
// "restricted", which is what the kernel enforces; the proxy and its hosts travel
// separately.
func MarshalProfile(p sandbox.Policy) ([]byte, error) {
	return marshalProfile(p, func(name string) (string, bool) { return name, utf8.ValidString(name) })
}

// MarshalProfileURI is [MarshalProfile] with paths as "file:" URIs, as the exec-server's
// wire has them. It can express every path.
func MarshalProfileURI(p sandbox.Policy) ([]byte, error) {
	return marshalProfile(p, func(name string) (string, bool) {
		return (&url.URL{Scheme: "file", Path: name}).String(), true
	})
}

// marshalProfile builds the text by hand, because encoding/json rewrites values that
// have to be passed on as they arrived.
func marshalProfile(p sandbox.Policy, spell func(string) (string, bool)) ([]byte, error) {
	network := `"network":"` + networkWord(p.Network()) + `"}`
	switch {
	case len(p.Named()) > 0:
		return nil, lossy("named grants cannot be expressed")
	case p.Mode() == sandbox.Full:
		return []byte(`{"type":"disabled"}`), nil
	case p.Mode() == sandbox.External:
		return []byte(`{"type":"external",` + network), nil
	case p.Unrestricted():
		return []byte(`{"type":"managed","file_system":{"type":"unrestricted"},` + network), nil
	}
	var entries []string
	for _, e := range p.Entries() {
		text, reason := entryText(e, spell)
		if reason != "" {
			return nil, lossy("entry " + e.String() + " " + reason)
		}
		entries = append(entries, text)
	}
	depth := ""
	if n := p.GlobScanDepth(); n > 0 {
		depth = `,"glob_scan_max_depth":` + strconv.Itoa(n)
	}
	return []byte(`{"type":"managed","file_system":{"type":"restricted","entries":[` +
		strings.Join(entries, ",") + "]" + depth + "}," + network), nil
}

// entryText returns the JSON text of an entry, or why it cannot be expressed.
func entryText(e sandbox.Entry, spell func(string) (string, bool)) (text, reason string) {
	p := e.Place
	switch {
	case e.Check() != nil:
		return "", "is invalid"
	case !utf8.ValidString(p.Token+p.Subpath) || p.Kind == sandbox.PlaceGlob && !utf8.ValidString(p.Path):
		return "", "is not UTF-8"
	}
	switch p.Kind {
	case sandbox.PlacePath:
		if !path.IsAbs(p.Path) {
			return "", "is relative; bind the policy to a directory first"
		}
		name, ok := spell(path.Clean(p.Path))
		if !ok {
			return "", "is not UTF-8"
		}
		text = `"path","path":` + strict.Quote(name)
	case sandbox.PlaceGlob:
		text = `"glob_pattern","pattern":` + strict.Quote(p.Path)
	default:
		if p.Raw != "" && !rawFits(p) {
			return "", "has raw JSON of another place"
		}
		text = `"special","value":` + specialText(p)
	}
	text = `{"path":{"type":` + text + `},"access":"` + e.Level.String() + `"`
	if e.SkipMissing {
		text += `,"missing_path_behavior":"skip"`
	}
	return text + "}", ""
}

// rawFits returns whether Raw is the text that this place was read from. Without the
// check, an entry that is ignored here could be a grant for the next reader.
func rawFits(p sandbox.Place) bool {
	in := new(input)
	o := in.outermost([]byte(p.Raw))
	kind := o.text("kind")
	return kind != aliasWorkingDirectory && o.unknown(kind, p.Raw) == p && in.err == nil
}

// specialText returns the value of a special place; an unknown one as it arrived.
func specialText(p sandbox.Place) string {
	var text string
	switch {
	case p.Known():
		text = `{"kind":"` + p.Token + `"`
	case p.Raw != "":
		return p.Raw // rawFits was checked
	default:
		text = `{"kind":"unknown","path":` + strict.Quote(":"+p.Token)
	}
	if p.Subpath != "" {
		text += `,"subpath":` + strict.Quote(p.Subpath)
	}
	return text + "}"
}
