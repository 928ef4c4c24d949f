// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// ParseLegacy parses the older form: an object whose type is "danger-full-access",
// "read-only", "workspace-write" or "external-sandbox". Errors are a [*ParseError].
//
// The result of workspace-write needs [sandbox.Policy.Bind]: the form means the working
// directory, /tmp and TMPDIR without naming them. Writable roots that do not exist are
// skipped, as the form prescribes.
func ParseLegacy(data []byte) (sandbox.Policy, error) {
	return parse(formLegacy, data, object.legacy)
}

func (o object) legacy() sandbox.Policy {
	switch typ := o.text("type"); typ {
	case "danger-full-access":
		return sandbox.FullAccess()
	case "external-sandbox":
		net := sandbox.NetworkNone
		if o.has("network_access") {
			net = o.network("network_access")
		}
		return o.policy(sandbox.External, net)
	case "read-only":
		return o.legacyManaged("access", nil)
	case "workspace-write":
		return o.legacyManaged("read_only_access", o.legacyWrites())
	default:
		o.fail("type", "unknown policy "+strconv.Quote(typ))
	}
	return sandbox.Policy{}
}

// legacyManaged combines the read part, the write part and the network.
func (o object) legacyManaged(readMember string, writes []sandbox.Entry) sandbox.Policy {
	net := sandbox.NetworkNone
	if o.flag("network_access", false) {
		net = sandbox.NetworkHost
	}
	// In this form a readable root inside a writable one has no effect, so it must not
	// become a carve-out.
	reads := slices.DeleteFunc(o.legacyReads(readMember), func(r sandbox.Entry) bool {
		name, ok := r.Place.Absolute()
		return ok && slices.ContainsFunc(writes, func(w sandbox.Entry) bool {
			root, ok := w.Place.Absolute()
			return ok && (name == root || strings.HasPrefix(name, strings.TrimSuffix(root, "/")+"/"))
		})
	})
	return o.policy(sandbox.Managed, net, append(reads, writes...)...)
}

// legacyReads returns the read part. Older versions of the form had a member that
// limits it; ignoring it would widen the policy.
func (o object) legacyReads(name string) []sandbox.Entry {
	all := []sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelRead)}
	if !o.has(name) {
		return all
	}
	a := o.object(name)
	switch typ := a.text("type"); typ {
	case "full-access":
		return all
	case "restricted":
		var reads []sandbox.Entry
		if a.flag("include_platform_defaults", true) {
			reads = append(reads, sandbox.SpecialEntry(sandbox.TokenMinimal, sandbox.LevelRead))
		}
		return append(reads, a.roots("readable_roots", sandbox.LevelRead)...)
	default:
		a.fail("type", "unknown kind of read access "+strconv.Quote(typ))
	}
	return nil
}

// legacyWrites returns the write part of workspace-write.
func (o object) legacyWrites() []sandbox.Entry {
	writes := []sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelWrite)}
	writes = append(writes, o.roots("writable_roots", sandbox.LevelWrite)...)
	if !o.flag("exclude_slash_tmp", false) {
		writes = append(writes, sandbox.SpecialEntry(sandbox.TokenSlashTmp, sandbox.LevelWrite))
	}
	if !o.flag("exclude_tmpdir_env_var", false) {
		writes = append(writes, sandbox.SpecialEntry(sandbox.TokenTmpDir, sandbox.LevelWrite))
	}
	return writes
}

// roots returns an array of absolute paths as entries; absent is empty.
func (o object) roots(name string, level sandbox.Level) []sandbox.Entry {
	var entries []sandbox.Entry
	for i, v := range o.list(name) {
		e := sandbox.PathEntry(o.path(name+"["+strconv.Itoa(i)+"]", v), level)
		e.SkipMissing = true
		entries = append(entries, e)
	}
	return entries
}

// legacyJSON has the members of the form in the order in which peers write them.
type legacyJSON struct {
	Type            string          `json:"type"`
	WritableRoots   []string        `json:"writable_roots,omitempty"`
	NetworkAccess   json.RawMessage `json:"network_access,omitempty"` // a word or a boolean, depending on the type
	ExcludeTmpDir   bool            `json:"exclude_tmpdir_env_var,omitempty"`
	ExcludeSlashTmp bool            `json:"exclude_slash_tmp,omitempty"`
}

// MarshalLegacy returns the older form of a policy; see [ParseLegacy]. It returns a
// [*LossyError] for a policy with deny entries, globs, named grants, limited reads, or
// read-only places that are not protected names, and for a writable policy without the
// workspaces: the form always adds the working directory, so marshal before
// [sandbox.Policy.Bind]. NetworkProxy is written as no network, which is what the kernel
// enforces; the proxy and its hosts travel separately.
func MarshalLegacy(p sandbox.Policy) ([]byte, error) {
	var j legacyJSON
	switch {
	case len(p.Named()) > 0:
		return nil, lossyLegacy("named grants need direct enforcement")
	case p.Mode() == sandbox.Full:
		j.Type = "danger-full-access"
	case p.Mode() == sandbox.External:
		j.Type = "external-sandbox"
		j.NetworkAccess = json.RawMessage(strconv.Quote(networkWord(p.Network())))
	case p.Unrestricted():
		return nil, lossyLegacy("a sandbox that restricts no file needs direct enforcement")
	default:
		if err := j.files(p.Entries()); err != nil {
			return nil, err
		}
		if p.Network() == sandbox.NetworkHost {
			j.NetworkAccess = json.RawMessage("true")
		}
	}
	return json.Marshal(j)
}

func lossyLegacy(reason string) error { return &LossyError{Form: formLegacy, Reason: reason} }

// files fills in the file part of a managed policy.
func (j *legacyJSON) files(entries []sandbox.Entry) error {
	var root, workspaces, tmp, slashTmp bool
	var readable []sandbox.Entry
	for _, e := range entries {
		name, absolute := e.Place.Absolute()
		switch special := e.Place.Kind == sandbox.PlaceSpecial; {
		case e.Level == sandbox.LevelDeny:
			return lossyLegacy("entry " + e.String() + " denies, which needs direct enforcement")
		case absolute && name == "/":
			if e.Level == sandbox.LevelWrite {
				return lossyLegacy("entry " + e.String() + " needs direct enforcement")
			}
			root = true
		case e.Level == sandbox.LevelRead:
			readable = append(readable, e)
		case absolute && utf8.ValidString(name):
			j.WritableRoots = append(j.WritableRoots, name)
		case special && e.Place.Token == sandbox.TokenProjectRoots && e.Place.Subpath == "":
			workspaces = true
		case special && e.Place.Token == sandbox.TokenTmpDir:
			tmp = true
		case special && e.Place.Token == sandbox.TokenSlashTmp:
			slashTmp = true
		default:
			return lossyLegacy("entry " + e.String() + " has no counterpart")
		}
	}
	writes := workspaces || tmp || slashTmp || len(j.WritableRoots) > 0
	switch {
	case !root:
		return lossyLegacy("limited reads need direct enforcement")
	case !writes:
		j.Type = "read-only"
	case !workspaces:
		return lossyLegacy("the form always makes the working directory writable, and the policy does not")
	default:
		j.Type, j.ExcludeTmpDir, j.ExcludeSlashTmp = "workspace-write", !tmp, !slashTmp
	}
	for _, e := range readable {
		if !writes && e.Place.Kind == sandbox.PlaceSpecial && !e.Place.Known() {
			return lossyLegacy("entry " + e.String() + " has no counterpart")
		}
		if writes && !j.protects(e) && e.Place.Token != sandbox.TokenMinimal {
			return lossyLegacy("entry " + e.String() + " is read-only, which needs direct enforcement")
		}
	}
	return nil
}

// protects returns whether a read entry only says what the form does by itself: it
// protects names at the top of the workspaces and of the writable roots.
func (j *legacyJSON) protects(e sandbox.Entry) bool {
	if !e.SkipMissing {
		return false
	}
	if e.Place.Kind == sandbox.PlaceSpecial {
		return e.Place.Token == sandbox.TokenProjectRoots && slices.Contains(sandbox.ProtectedNames(), e.Place.Subpath)
	}
	name, ok := e.Place.Absolute()
	return ok && slices.Contains(sandbox.ProtectedNames(), path.Base(name)) && slices.Contains(j.WritableRoots, path.Dir(name))
}
