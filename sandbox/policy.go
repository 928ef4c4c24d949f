// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Network says which hosts a sandboxed command reaches. The zero Network is NetworkNone.
type Network uint8

// The networks, strictest first.
const (
	NetworkNone  Network = iota // a private loopback
	NetworkProxy                // the same, and a proxy that asks about each host
	NetworkHost                 // the host's network
)

var networkWords = []string{"none", "proxy", "host"}

// String returns "none", "proxy" or "host".
func (n Network) String() string { return wordOf(networkWords, n) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (n Network) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and
// leaves n as it was.
func (n *Network) UnmarshalText(text []byte) error {
	return parseWord("network", networkWords, text, n)
}

// Mode says who builds the sandbox. The zero Mode is Managed.
type Mode uint8

// The modes.
const (
	Managed  Mode = iota // the executor, as the policy says
	External             // the caller, for files and processes; only the network part applies
	Full                 // there is none: the command may do what its user may
)

var modeWords = []string{"managed", "external", "disabled"}

// String returns "managed", "external" or "disabled", as in a permission profile.
func (m Mode) String() string { return wordOf(modeWords, m) }

// Policy says what a command may access. It is a value: copies are independent, methods
// return new policies, and slices given to it are copied.
//
// The zero Policy is the strictest one under which a system binary runs: it reads the files
// of the platform, writes nothing and has no network.
type Policy struct {
	mode    Mode
	net     Network
	open    bool     // managed, but every file may be written ("unrestricted")
	listed  bool     // entries is the whole list; otherwise ":minimal=read" comes before it
	entries []Entry  // never changed after construction
	hosts   []string // canonical granted hosts, sorted
	named   []string // named grants, sorted
	depth   int      // see GlobScanDepth

	c *compiled // nil only in the zero Policy
}

// ReadOnly returns a policy that reads everything, writes nothing and has no network.
func ReadOnly() Policy {
	return Policy{listed: true, entries: []Entry{SpecialEntry(TokenRoot, LevelRead)}}.seal()
}

// WorkspaceWrite returns a policy that reads everything and writes the roots (the
// workspaces, when none is given), /tmp and the directory of TMPDIR, without network.
// Protected names at the top of every writable directory stay read-only. [Policy.Bind] joins
// relative roots to its directory.
func WorkspaceWrite(roots ...string) Policy {
	es := []Entry{SpecialEntry(TokenRoot, LevelRead)}
	if len(roots) == 0 {
		es = append(es, SpecialEntry(TokenProjectRoots, LevelWrite))
	}
	for _, r := range roots {
		es = append(es, PathEntry(r, LevelWrite))
	}
	es = append(es, SpecialEntry(TokenSlashTmp, LevelWrite), SpecialEntry(TokenTmpDir, LevelWrite))
	return Policy{listed: true, entries: es}.seal()
}

// FullAccess returns a policy without a sandbox.
func FullAccess() Policy {
	return Policy{mode: Full, net: NetworkHost, listed: true}.seal()
}

// New returns a policy with exactly these entries; without entries nothing can be read. It
// returns a [*PolicyError] for an invalid entry, for entries in a mode that does not use
// them, and for Full with less than NetworkHost, which only a sandbox can enforce. Relative
// paths and special places are accepted until [Policy.Resolve].
func New(mode Mode, net Network, entries ...Entry) (Policy, error) {
	switch {
	case mode > Full:
		return Policy{}, &PolicyError{Reason: "the mode is unknown"}
	case net > NetworkHost:
		return Policy{}, &PolicyError{Reason: "the network is unknown"}
	case mode == Full && net != NetworkHost:
		return Policy{}, &PolicyError{Reason: "full access has no sandbox that could restrict the network; use managed mode"}
	case mode != Managed && len(entries) > 0:
		return Policy{}, &PolicyError{Entry: entries[0].String(), Reason: "entries need managed mode"}
	}
	for _, e := range entries {
		if err := e.Check(); err != nil {
			return Policy{}, err
		}
	}
	return Policy{mode: mode, net: net, listed: true, entries: slices.Clone(entries)}.seal(), nil
}

// unrestricted returns a managed policy under which every file may be written: its sandbox
// restricts the network and processes only.
func unrestricted(net Network) Policy {
	return Policy{net: net, open: true, listed: true}.seal()
}

// seal compiles the policy. Every constructor ends with it.
func (p Policy) seal() Policy {
	p.c = compile(p)
	return p
}

// compiled returns the compiled form, also for the zero Policy.
func (p Policy) compiled() *compiled {
	if p.c == nil {
		return compile(p)
	}
	return p.c
}

// list returns the entries without copying them.
func (p Policy) list() []Entry {
	switch {
	case p.mode != Managed:
		return nil
	case p.open:
		return []Entry{SpecialEntry(TokenRoot, LevelWrite)}
	case !p.listed:
		return append([]Entry{SpecialEntry(TokenMinimal, LevelRead)}, p.entries...)
	}
	return p.entries
}

// Mode returns who builds the sandbox.
func (p Policy) Mode() Mode { return p.mode }

// Network returns the network part.
func (p Policy) Network() Network { return p.net }

// Entries returns the file part; the slice belongs to the caller. It is empty for the modes
// External and Full, and ":root=write" for a managed policy that restricts no file.
func (p Policy) Entries() []Entry { return slices.Clone(p.list()) }

// Unrestricted returns whether the policy is managed and restricts no file.
func (p Policy) Unrestricted() bool { return p.mode == Managed && p.open }

// GlobScanDepth returns how many directories deep peers look for matches of deny globs when
// they start; 0 means that the policy does not say.
func (p Policy) GlobScanDepth() int { return p.depth }

// WithGlobScanDepth returns the policy with another GlobScanDepth.
func (p Policy) WithGlobScanDepth(depth int) Policy {
	p.depth = depth
	return p
}

// Hosts returns the hosts that grants allow, as "host:port" or "host"; the slice belongs to
// the caller. They apply with NetworkProxy only.
func (p Policy) Hosts() []string { return slices.Clone(p.hosts) }

// Named returns the named grants of the policy, sorted; the slice belongs to the caller.
func (p Policy) Named() []string { return slices.Clone(p.named) }

// WithNetwork returns the policy with another network part. A policy with full access that
// gets less than NetworkHost becomes a managed one that restricts no file, because only a
// sandbox can restrict the network. An unknown value counts as NetworkNone.
func (p Policy) WithNetwork(n Network) Policy {
	if n > NetworkHost {
		n = NetworkNone
	}
	if p.mode == Full {
		if n == NetworkHost {
			return p
		}
		return unrestricted(n)
	}
	p.net = n
	return p.seal()
}

// WithEntries returns the policy with more entries; their order does not matter. Unlike
// [Policy.With] it can also narrow. Entries make a policy that is not Managed so, with every
// other file writable, so that no restriction is lost. [Policy.Resolve] reports invalid
// entries, and until then they allow nothing.
func (p Policy) WithEntries(entries ...Entry) Policy {
	if len(entries) == 0 {
		return p
	}
	switch {
	case p.mode != Managed:
		p = Policy{net: p.net, listed: true, entries: []Entry{SpecialEntry(TokenRoot, LevelWrite)},
			hosts: p.hosts, named: p.named}
	case p.open:
		p.open = false
		p.entries = []Entry{SpecialEntry(TokenRoot, LevelWrite)}
	}
	p.entries = slices.Concat(p.entries, entries)
	return p.seal()
}

// peerProtected is a name that codex 0.169.0 adds to the read-only names of a workspace; a
// profile with it is still the workspace preset of that peer.
const peerProtected = ".aws"

// Name returns the preset that the policy equals apart from the network: "read-only",
// "workspace-write", "full-access", "external" or "custom". A policy with deny entries, or
// with read-only places inside writable ones, is "custom".
func (p Policy) Name() string {
	switch p.mode {
	case Full:
		return "full-access"
	case External:
		return "external"
	}
	root, rooted, writes, narrows := LevelDeny, false, false, false
	for _, e := range p.list() {
		name, ok := e.Place.Absolute()
		base := path.Base(name)
		if e.Place.Kind == PlaceSpecial {
			base = path.Base(e.Place.Subpath)
		}
		switch {
		case ok && name == "/":
			if !rooted || e.Level < root {
				root, rooted = e.Level, true
			}
		case e.Level == LevelWrite:
			writes = true
		case e.Level == LevelDeny:
			return "custom"
		case !isProtectedName(base) && base != peerProtected && e.Place.Token != TokenMinimal:
			narrows = true
		}
	}
	switch {
	case root != LevelRead:
		return "custom"
	case !writes:
		return "read-only"
	case narrows:
		return "custom"
	}
	return "workspace-write"
}

// String returns the name and the network, such as
// "workspace-write, network none".
func (p Policy) String() string { return p.Name() + ", network " + p.net.String() }

// Denies returns whether the policy has deny entries (other than for "/") or deny globs. No
// grant reopens them, and a command under them must never be offered to run without a
// sandbox.
func (p Policy) Denies() bool {
	return slices.ContainsFunc(p.list(), func(e Entry) bool {
		name, ok := e.Place.Absolute()
		return e.Level == LevelDeny && !(ok && name == "/")
	})
}

// Equal returns whether both policies have the same mode, network, entries in any order,
// granted hosts and named grants. Policies that allow the same by other entries are not
// equal; see [Policy.Covers].
func (p Policy) Equal(q Policy) bool {
	return p.mode == q.mode && p.net == q.net && p.open == q.open && p.depth == q.depth &&
		slices.Equal(p.hosts, q.hosts) && slices.Equal(p.named, q.named) &&
		slices.Equal(canonical(p.list()), canonical(q.list()))
}

// canonical returns the entries sorted and without duplicates.
func canonical(es []Entry) []Entry {
	es = slices.Clone(es)
	slices.SortFunc(es, compareEntries)
	return slices.Compact(es)
}

func compareEntries(a, b Entry) int {
	skip := func(e Entry) int {
		if e.SkipMissing {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.Place.Kind, b.Place.Kind),
		strings.Compare(a.Place.Path, b.Place.Path),
		strings.Compare(a.Place.Token, b.Place.Token),
		strings.Compare(a.Place.Subpath, b.Place.Subpath),
		strings.Compare(a.Place.Raw, b.Place.Raw),
		cmp.Compare(a.Level, b.Level),
		cmp.Compare(skip(a), skip(b)),
	)
}
