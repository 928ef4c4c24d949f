// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ParseLegacy reads the older wire form, SandboxPolicy of the Codex protocol:
// an object whose type is "danger-full-access", "read-only",
// "workspace-write" or "external-sandbox". Members that are not known are
// ignored. Repeated members, wrong types, unknown words and roots that are not
// absolute are a [*WireError].
//
// The result of workspace-write needs [Policy.Bind]: the form means the
// working directory, /tmp and TMPDIR without naming them. Writable roots that do
// not exist are skipped, as the form prescribes.
func ParseLegacy(data []byte) (Policy, error) {
	o, err := parseObject(formLegacy, data)
	if err != nil {
		return Policy{}, err
	}
	typ, err := o.text("type")
	if err != nil {
		return Policy{}, err
	}
	switch typ {
	case "danger-full-access":
		return FullAccess(), nil
	case "external-sandbox":
		net := NetworkNone
		if _, ok := o.raw("network_access"); ok {
			if net, err = o.network("network_access"); err != nil {
				return Policy{}, err
			}
		}
		return Policy{mode: External, net: net, listed: true}.seal(), nil
	case "read-only":
		return o.legacyManaged("access", nil)
	case "workspace-write":
		writes, err := o.legacyWrites()
		if err != nil {
			return Policy{}, err
		}
		return o.legacyManaged("read_only_access", writes)
	}
	return Policy{}, o.bad("type", "it is not a known policy: "+strconv.Quote(typ))
}

// legacyManaged puts the read part, the write part and the network together.
func (o object) legacyManaged(readMember string, writes []Entry) (Policy, error) {
	reads, err := o.legacyReads(readMember)
	if err != nil {
		return Policy{}, err
	}
	net := NetworkNone
	enabled, err := o.flag("network_access", false)
	if err != nil {
		return Policy{}, err
	}
	if enabled {
		net = NetworkHost
	}
	// A readable root inside a writable one meant nothing in this form; it
	// must not become a carve-out.
	reads = slices.DeleteFunc(reads, func(r Entry) bool {
		name, ok := r.Place.concrete()
		return ok && slices.ContainsFunc(writes, func(w Entry) bool {
			root, ok := w.Place.concrete()
			return ok && within(root, name)
		})
	})
	return New(Managed, net, append(reads, writes...)...)
}

// within reports whether name is root or lies below it.
func within(root, name string) bool {
	for ; name != root; name = path.Dir(name) {
		if name == "/" {
			return false
		}
	}
	return true
}

// legacyReads returns the read part. Older versions of the form had a member
// that limits it; ignoring that one would widen the policy.
func (o object) legacyReads(name string) ([]Entry, error) {
	all := []Entry{SpecialEntry(TokenRoot, LevelRead)}
	if _, ok := o.raw(name); !ok {
		return all, nil
	}
	a, err := o.object(name)
	if err != nil {
		return nil, err
	}
	typ, err := a.text("type")
	if err != nil {
		return nil, err
	}
	switch typ {
	case "full-access":
		return all, nil
	case "restricted":
		var reads []Entry
		minimal, err := a.flag("include_platform_defaults", true)
		if err != nil {
			return nil, err
		}
		if minimal {
			reads = append(reads, SpecialEntry(TokenMinimal, LevelRead))
		}
		roots, err := a.roots("readable_roots", LevelRead)
		return append(reads, roots...), err
	}
	return nil, a.bad("type", "it is not a known kind of read access: "+strconv.Quote(typ))
}

// legacyWrites returns the write part of workspace-write.
func (o object) legacyWrites() ([]Entry, error) {
	roots, err := o.roots("writable_roots", LevelWrite)
	if err != nil {
		return nil, err
	}
	writes := append([]Entry{SpecialEntry(TokenProjectRoots, LevelWrite)}, roots...)
	for _, tmp := range []struct{ member, token string }{
		{"exclude_slash_tmp", TokenSlashTmp},
		{"exclude_tmpdir_env_var", TokenTmpDir},
	} {
		out, err := o.flag(tmp.member, false)
		if err != nil {
			return nil, err
		}
		if !out {
			writes = append(writes, SpecialEntry(tmp.token, LevelWrite))
		}
	}
	return writes, nil
}

// roots reads an array of absolute paths. Absent is empty.
func (o object) roots(name string, level Level) ([]Entry, error) {
	list, err := o.list(name)
	if err != nil {
		return nil, err
	}
	var es []Entry
	for i, v := range list {
		root, err := o.path(name+"["+strconv.Itoa(i)+"]", v)
		if err != nil {
			return nil, err
		}
		e := PathEntry(root, level)
		e.SkipMissing = true
		es = append(es, e)
	}
	return es, nil
}

// legacyJSON has the members of the form in the order in which peers write them.
type legacyJSON struct {
	Type            string          `json:"type"`
	WritableRoots   []string        `json:"writable_roots,omitempty"`
	NetworkAccess   json.RawMessage `json:"network_access,omitempty"` // a word or a boolean, by type
	ExcludeTmpDir   bool            `json:"exclude_tmpdir_env_var,omitempty"`
	ExcludeSlashTmp bool            `json:"exclude_slash_tmp,omitempty"`
}

// MarshalLegacy writes the older wire form; see [ParseLegacy]. A policy that
// the form cannot express exactly is a [*LossyError]: deny entries, globs, reads
// that are not of everything, read-only places that are not protected names, a
// writable policy without the workspaces (the form always adds the working
// directory; so marshal before [Policy.Bind]), named grants. NetworkProxy is
// written as no network, which is what the kernel enforces under it; the proxy
// and its hosts travel apart.
func (p Policy) MarshalLegacy() ([]byte, error) {
	var j legacyJSON
	switch {
	case len(p.named) > 0:
		return nil, lossyLegacy("named grants need direct enforcement")
	case p.mode == Full:
		j.Type = "danger-full-access"
	case p.mode == External:
		j.Type = "external-sandbox"
		j.NetworkAccess = json.RawMessage(strconv.Quote(wireNetwork(p.net)))
	case p.open:
		return nil, lossyLegacy("a sandbox that restricts no file needs direct enforcement")
	default:
		if err := p.legacyFiles(&j); err != nil {
			return nil, err
		}
		if p.net == NetworkHost {
			j.NetworkAccess = json.RawMessage("true")
		}
	}
	return json.Marshal(j)
}

func lossyLegacy(reason string) error { return &LossyError{Form: formLegacy, Reason: reason} }

// legacyFiles fills in the file part of a managed policy.
func (p Policy) legacyFiles(j *legacyJSON) error {
	var root, workspaces, tmp, slashTmp bool
	var carved []Entry
	for _, e := range p.list() {
		name, concrete := e.Place.concrete()
		switch special := e.Place.Kind == PlaceSpecial; {
		case e.Level == LevelDeny:
			return lossyLegacy("the entry " + e.String() + " denies, which needs direct enforcement")
		case concrete && name == "/":
			if e.Level == LevelWrite {
				return lossyLegacy("the entry " + e.String() + " needs direct enforcement")
			}
			root = true
		case e.Level == LevelRead:
			carved = append(carved, e)
		case concrete && utf8.ValidString(name):
			j.WritableRoots = append(j.WritableRoots, name)
		case special && e.Place.Token == TokenProjectRoots && e.Place.Subpath == "":
			workspaces = true
		case special && e.Place.Token == TokenTmpDir:
			tmp = true
		case special && e.Place.Token == TokenSlashTmp:
			slashTmp = true
		default:
			return lossyLegacy("the entry " + e.String() + " has no counterpart")
		}
	}
	writes := workspaces || tmp || slashTmp || len(j.WritableRoots) > 0
	switch {
	case !root:
		return lossyLegacy("reads that are not of everything need direct enforcement")
	case !writes:
		j.Type = "read-only"
	case !workspaces:
		return lossyLegacy("the form always makes the working directory writable, the policy does not")
	default:
		j.Type, j.ExcludeTmpDir, j.ExcludeSlashTmp = "workspace-write", !tmp, !slashTmp
	}
	for _, e := range carved {
		if !writes && e.Place.Kind == PlaceSpecial && !e.Place.known() {
			return lossyLegacy("the entry " + e.String() + " has no counterpart")
		}
		if writes && !automatic(e, j.WritableRoots) && e.Place.Token != TokenMinimal {
			return lossyLegacy("the entry " + e.String() + " is read-only, which needs direct enforcement")
		}
	}
	return nil
}

// automatic reports whether a read entry says what the protection of names at
// the top of the workspaces and of these roots says by itself.
func automatic(e Entry, roots []string) bool {
	if !e.SkipMissing {
		return false
	}
	if e.Place.Kind == PlaceSpecial {
		return e.Place.Token == TokenProjectRoots && isProtectedName(e.Place.Subpath)
	}
	name, ok := e.Place.concrete()
	return ok && isProtectedName(path.Base(name)) && slices.Contains(roots, path.Dir(name))
}

// wireNetwork returns the word of both wire forms. A proxied network is a
// restricted one in the kernel.
func wireNetwork(n Network) string {
	if n == NetworkHost {
		return "enabled"
	}
	return "restricted"
}
