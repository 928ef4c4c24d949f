// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Key is one setting: a row of the table. One without a name is a flag that concerns one run only.
type Key struct {
	Name    string // in a file, with dots: "limits.memory"
	Type    Type
	Words   []string // of a Word, or the usual ones of a Text or List
	Order   Order
	Default string // what holds where nothing sets it; empty for nothing
	Help    string // a sentence
	// Profile is the name in a profile, and Project that in [project]; empty if it cannot stand there.
	Profile, Project string
	// Later names what is not built yet: files that set the key are refused.
	Later string
	// Whole says that a List is one value: that of the last layer counts, and nothing is added.
	Whole bool
	// Flags are the flags of run that set it.
	Flags []Flag

	paths  bool // its elements are places that are opened
	apart  bool // it is no part of a mode: a ceiling that has a mode alone says nothing about it
	ofMode bool // files set it for the mode that they have: below a narrower one it does not count

	// covers reports whether an element of a ceiling permits one of a list that opens; nil for paths.
	covers func(pattern, text string) bool

	table *table              // of Tables
	check func(string) error  // of a text or an element, beyond its type; nil for none
	mask  func(string) string // of a text that may have a secret in it, as it is shown; nil for none
	to    func(*Run) any      // the member of a run that gets its value, for put; nil for none
}

// The modes of the sandbox, narrow ones first, as they are named in settings. Minimal and
// NoBase allow reading only the platform's own files; Minimal also writing in the workspace.
const (
	NoBase         = ":none" // of a profile that extends nothing
	ReadOnly       = "read-only"
	Minimal        = ":minimal"
	WorkspaceWrite = "workspace-write"
	FullAccess     = "full-access"
)

// bases are the names of modes, with their older spellings.
var bases = map[string]string{
	ReadOnly: ReadOnly, WorkspaceWrite: WorkspaceWrite, FullAccess: FullAccess, Minimal: Minimal,
	"danger-full-access": FullAccess,
	":read-only":         ReadOnly, ":workspace": WorkspaceWrite, ":danger-full-access": FullAccess,
}

// Mode returns the mode that a name means; empty if it is that of a profile.
func Mode(name string) string { return bases[name] }

// Networks are the values of network.mode.
const (
	NetNone    = "none"
	NetLimited = "limited"
	NetFull    = "full"
	NetHost    = "host"
)

// NetProxy is a word of --net: the managed network, in the mode that the settings have, or full where they
// have none.
const NetProxy = "proxy"

// BuiltinReadOnly is the rule set of commands that are known to only read.
const BuiltinReadOnly = "builtin:read-only"

// The places that settings name by a word.
const (
	placeWorkspace = ":workspace"
	placeTmp       = ":tmp"
	placeHome      = ":home"
	placeMinimal   = Minimal
)

var tokens = []string{placeWorkspace, placeTmp, placeHome, placeMinimal}

// granular are the members of the table of approval.
var granular = []string{"sandbox_approval", "rules", "request_permissions", "skill_approval",
	"mcp_elicitations"}

// Keys returns the rows of the table that have a name. They must not be changed.
var Keys = sync.OnceValue(func() (named []*Key) {
	for i := range keys {
		if keys[i].Name != "" {
			named = append(named, &keys[i])
		}
	}
	return named
})

// Find returns the key with a name, or nil.
func Find(name string) *Key { return findKey(func(k *Key) bool { return k.Name == name }) }

func findKey(match func(*Key) bool) *Key {
	if i := slices.IndexFunc(Keys(), match); i >= 0 {
		return Keys()[i]
	}
	return nil
}

// IsList reports whether a key has several values.
func (k *Key) IsList() bool { return k.Type == List || k.hasNames() }

// hasNames reports whether the values of a key have names.
func (k *Key) hasNames() bool { return k.Type == Map || k.Type == Tables }

// Check returns what is wrong with the text of a value, or of an element of a List or Map.
func (k *Key) Check(text string) error {
	var err error
	switch read := types[k.Type].number; {
	case k.Type == Word && !slices.Contains(k.Words, text):
		return fmt.Errorf("invalid value %s (%s)%s", quoted(text), strings.Join(k.Words, ", "),
			syntax.NearestClause(text, k.Words, ""))
	case k.Type == Bool && text != "true" && text != "false":
		return fmt.Errorf("invalid value %s (true, false)", quoted(text))
	case read != nil:
		_, err = read(text)
	case k.hasNames():
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			err = fmt.Errorf("%s names no variable; use K=V", quoted(text))
		}
	case text == "" && k.Type != Any:
		err = errEmpty
	}
	if err == nil && strings.ContainsRune(text, 0) {
		err = errNUL
	}
	if err == nil && k.check != nil {
		err = k.check(text)
	}
	return err
}

// rank orders values, the narrowest first. It is false where the key has no such order.
func (k *Key) rank(text string) (float64, bool) {
	switch k.Order {
	case Words:
		i := slices.Index(k.Words, text)
		switch {
		case k.Name == "approval" && i > 0 && i < len(k.Words)-1:
			i = 1 // these are one step
		}
		return float64(i), i >= 0
	case TrueFirst, FalseFirst:
		if (text == "true") == (k.Order == TrueFirst) {
			return 0, true
		}
		return 1, true
	case Smaller:
		n, err := types[k.Type].number(text)
		if n == 0 && k.Name == "limits.timeout" {
			n = math.Inf(1) // none, as with timeout(1)
		}
		return n, err == nil
	}
	return 0, false
}

// wider reports whether a value is wider than a bound. An empty value is that of a key that nothing sets: of
// a number none, which is the widest.
func (k *Key) wider(text, bound string) bool {
	switch {
	case text == "":
		return k.Order == Smaller || k.Order == Fixes || k.Order == TrueFirst
	case k.Order == Fixes:
		return text != bound
	case k.Name == "tmp": // each directory opens something else
		return text != bound && text != k.Default
	}
	a, ok := k.rank(text)
	b, also := k.rank(bound)
	return !ok || !also || a > b
}

func checkGrant(name string) error {
	if protect.Known(name) {
		return nil
	}
	var known []string
	for _, g := range protect.NamedGrants() {
		known = append(known, g.Name)
	}
	return fmt.Errorf("unknown name %s%s", quoted(name),
		syntax.NearestClause(name, known, "see sallyport grants"))
}

func checkOpening(name string) error {
	var known []string
	for _, o := range seccomp.Openings() {
		if o.Name == name {
			return nil
		}
		known = append(known, o.Name)
	}
	return fmt.Errorf("unknown name %s%s", quoted(name),
		syntax.NearestClause(name, known, "see sallyport doctor"))
}

// checkPlace checks a path that is opened.
func checkPlace(name string) error {
	if strings.HasPrefix(name, ":") && !slices.Contains(tokens, name) {
		return fmt.Errorf("unknown place %s (%s)%s", quoted(name), strings.Join(tokens, ", "),
			syntax.NearestClause(name, tokens, ""))
	}
	return nil
}

// checkDenied refuses the words of checkPlace, which would be names of files.
func checkDenied(name string) error {
	if strings.HasPrefix(name, ":") {
		return fmt.Errorf("%s is no path; name the directory, or write ./ before the name of a file", quoted(name))
	}
	return nil
}

// checkPattern checks a pattern of hosts.
func checkPattern(text string) error { return checkEntry(network.Entry{Pattern: text, Deny: true}) }

// checkUpstream checks the proxy by which hosts are reached.
func checkUpstream(text string) error {
	_, err := network.ParseUpstream(text, func(string) string { return "" })
	return err
}

// shown is the text of a value for people.
func (k *Key) shown(text string) string {
	if k.mask != nil {
		return k.mask(text)
	}
	return text
}

// checkAllowed refuses wildcards for names of all owners, too.
func checkAllowed(text string) error { return checkEntry(network.Entry{Pattern: text}) }

func checkEntry(e network.Entry) error {
	_, err := network.New(network.Config{Entries: []network.Entry{e}, PublicSuffix: intercept.IsPublicSuffix})
	var bad *network.EntryError
	if errors.As(err, &bad) {
		return errors.New(quoted(e.Pattern) + ": " + bad.Reason)
	}
	return err
}

// checkFile checks a file that is named by its whole path.
func checkFile(name string) error {
	if !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") {
		return fmt.Errorf("%s is not a whole path; begin it with / or ~/", quoted(name))
	}
	return nil
}

// checkAuditPath checks the directory of the audit log.
func checkAuditPath(name string) error {
	if name == AuditState || name == AuditOff {
		return nil
	}
	if err := checkFile(name); err != nil {
		return fmt.Errorf("%w, or use state or off", err)
	}
	return nil
}

func checkThreshold(text string) error {
	_, _, err := guardian.ParseThreshold(text)
	return err
}

func notZero(text string) error {
	n, err := ParseSize(text)
	if err == nil && n == 0 {
		err = errZeroLimit
	}
	return err
}

// Entry returns the entry of a policy for a value of read or write, whose relative names begin
// in the workspace.
func Entry(name, home string, level sandbox.Level) sandbox.Entry {
	switch name {
	case placeWorkspace:
		return sandbox.SpecialEntry(sandbox.TokenProjectRoots, level)
	case placeTmp:
		return sandbox.SpecialEntry(sandbox.TokenSlashTmp, level)
	case placeMinimal:
		return sandbox.SpecialEntry(sandbox.TokenMinimal, level)
	case placeHome:
		name = "~"
	}
	return sandbox.PathEntry(Expand(name, home), level)
}

// Expand puts the home directory in place of a leading "~". A name that begins so is written
// "./~".
func Expand(name, home string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	return name
}
