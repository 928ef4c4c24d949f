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

	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/nearest"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/internal/suffixes"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Type is what the value of a key is. As a text, of a flag or a variable, a Bool is "true" or
// "false", a List has commas between its elements, an element of a Map is "K=V", and one of
// Tables "NAME.MEMBER=V".
type Type uint8

// The types. Size, Duration, Count and CPUs are strings with a unit or numbers.
const (
	Word     Type = iota // one of Key.Words
	Text                 // a string that is not empty
	Bool                 // true or false
	Size                 // bytes: "512MiB" or a number
	Duration             // "30s" or a number of seconds
	Count                // a whole number
	CPUs                 // a number such as 1.5
	List                 // an array of strings
	Map                  // a table of strings
	Tables               // a table of tables by name, which have the members of Key.table
)

// An Order says which of two values is the narrower one. The project and the ceiling move values
// towards narrow only; keys without an order cannot be set by them.
type Order uint8

// The orders.
const (
	None       Order = iota
	Words            // earlier in Key.Words
	Smaller          // the smaller number; none at all is the widest
	TrueFirst        // true
	FalseFirst       // false
	Narrows          // a list that takes away: all layers add to it
	Opens            // a list that opens: the ceiling lists what may be in it
	Fixes            // the value of the ceiling holds; a project cannot set it
)

// A Key is one setting.
type Key struct {
	Name    string // in a file, with dots: "limits.memory"
	Type    Type
	Words   []string // of a Word, or the usual ones of a Text or List
	Order   Order
	Default string // what holds where nothing sets it; empty for nothing
	Help    string // a sentence
	// Profile is the name in a profile, and InProject whether it may stand in [project].
	Profile   string
	InProject bool
	// Later names what is not built yet: files that set the key are refused.
	Later string

	// Whole says that a List is one value: that of the last layer counts, and nothing is added.
	Whole bool

	table *table              // of Tables
	check func(string) error  // of a text or an element, beyond its type; nil for none
	mask  func(string) string // of a text that may have a secret in it, as it is shown; nil for none
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
	ReadOnly: ReadOnly, WorkspaceWrite: WorkspaceWrite, FullAccess: FullAccess, Minimal: Minimal, "danger-full-access": FullAccess,
	":read-only": ReadOnly, ":workspace": WorkspaceWrite, ":danger-full-access": FullAccess,
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

// keys is the table of all settings. Flags of run, the schema, the environment and the messages
// are made from it.
var keys = []Key{
	{
		Name: "sandbox", Type: Text, Words: []string{ReadOnly, WorkspaceWrite, FullAccess, Minimal}, Order: Words, Default: WorkspaceWrite,
		Help: "What commands may touch: read-only, workspace-write, full-access (no sandbox), :minimal, or the name of a profile.",
	},
	{Name: "approval_wait", Type: Duration, Default: "0s", Help: "How long a question without a terminal waits for sallyport approve or deny: 30s, or seconds."},
	{
		Name: "approval", Type: Word, Words: []string{"untrusted", "granular", "on-request", "on-failure", "never"}, Order: Words, Default: "on-request",
		Help: "When to ask. Without a terminal and approval_wait the default is never. A table of sandbox_approval, rules, request_permissions, skill_approval and mcp_elicitations is granular.",
	},
	{Name: "level", Type: Word, Words: []string{"native", "bwrap", "landlock"}, Order: Words, Default: "bwrap", Help: "The least level of the sandbox that is accepted."},
	{
		Name: "rules", Type: List, Words: []string{BuiltinReadOnly}, Order: Narrows, Default: BuiltinReadOnly,
		Help: "Rule files beside those in the directory rules. builtin:read-only lets commands that only read run without approval.",
	},
	{Name: "read", Profile: "read", InProject: true, Type: List, Words: tokens, Order: Opens, check: checkPlace, Help: "Paths to read and not to write: paths, :workspace, :tmp, :home, :minimal."},
	{Name: "write", Profile: "write", InProject: true, Type: List, Words: tokens, Order: Opens, check: checkPlace, Help: "Paths to write below: paths, :workspace, :tmp, :home."},
	{Name: "deny", Profile: "deny", InProject: true, Type: List, Order: Narrows, check: checkDenied, Help: "Paths and globs, such as **/.env, that are neither read nor written. Deny wins."},
	{Name: "grants", Profile: "grants", InProject: true, Type: List, Order: Opens, check: checkGrant, Help: "Named grants, such as git, cache:npm or net:npm. sallyport doctor lists them."},
	{Name: "allow", Profile: "allow", InProject: true, Type: List, Order: Opens, check: checkOpening, Help: "Things that are closed by default, such as unix or userns. sallyport doctor lists them."},
	{Name: "tmp", Type: Text, Words: []string{"private", "host"}, Order: Words, Default: "private", Help: "What commands see as /tmp: private (removed afterwards), host, or a directory."},
	{Name: "caches", Type: Bool, Order: FalseFirst, Default: "true", Help: "Private layers over the caches of toolchains."},
	{Name: "observer", Type: Bool, Order: TrueFirst, Default: "true", Help: "Observe system calls, so that denials are known."},
	{Name: "protect_hard_links", Type: Bool, Order: TrueFirst, Default: "false", Help: "Deny writing to files that have names elsewhere."},
	{Name: "ownership", Type: Word, Words: []string{"error", "ignore"}, Order: Words, Default: "ignore", Help: "What changes of owners by root do, which the sandbox cannot make: ignore or error."},
	{Name: "shell", Type: Text, Words: []string{"bash", "zsh", "sh", "pwsh"}, Help: "The shell for scripts. By default $SHELL."},
	{Name: "login", Type: Bool, Default: "false", Help: "Run scripts in a login shell."},
	{Name: "tty", Type: Bool, Help: "Give commands a terminal of their own. By default where stdin and stdout are terminals."},
	{Name: "max_output", Type: Size, Default: "1MiB", Help: "Bytes of each stream that a result keeps."},
	{Name: "quiet", Type: Bool, Default: "false", Help: "Print no messages."},
	{Name: "verbose", Type: Bool, Default: "false", Help: "Print the launch script, limits and usage."},

	{Name: "limits.timeout", Profile: "limits.timeout", Type: Duration, Order: Smaller, Help: "How long a command may run."},
	{Name: "limits.kill_after", Profile: "limits.kill_after", Type: Duration, Order: Smaller, Default: "2s", Help: "Time between SIGTERM and SIGKILL when a command is stopped."},
	{Name: "limits.memory", Profile: "limits.memory", Type: Size, Order: Smaller, check: notZero, Help: "Memory of a command and all that it starts."},
	{Name: "limits.cpus", Profile: "limits.cpus", Type: CPUs, Order: Smaller, Help: "Processors, such as 1.5."},
	{Name: "limits.pids", Profile: "limits.pids", Type: Count, Order: Smaller, Help: "Processes and threads at once."},
	{Name: "limits.disk", Profile: "limits.disk", Type: Size, Order: Smaller, check: notZero, Help: "Growth of the writable directories, /tmp included."},
	{Name: "limits.output", Profile: "limits.output", Type: Size, Order: Smaller, check: notZero, Help: "Bytes on stdout and stderr, which are pipes then."},

	{
		Name: "network.mode", Profile: "network", InProject: true, Type: Word, Words: []string{NetNone, NetLimited, NetFull, NetHost}, Order: Words,
		Help: "none, host, or the managed network: limited (reading requests only) or full. By default none, and host with full-access.",
	},
	{Name: "network.allow", Type: List, Order: Opens, check: checkAllowed, Help: "Patterns of hosts that may be reached, such as *.example.com:443. Without network.mode the mode is full."},
	{Name: "network.deny", Type: List, Order: Narrows, check: checkPattern, Help: "Patterns of hosts that may not be reached. Deny wins."},
	{Name: "network.allow_private", Type: Bool, Order: FalseFirst, Default: "false", Help: "Let allowed names have private addresses, but not those of cloud metadata."},
	{Name: "network.allow_local_binding", Type: Bool, Order: FalseFirst, Default: "false", Help: "Have programs that use the proxy reach servers of their own command at localhost (NO_PROXY)."},
	{Name: "network.require_sni", Type: Bool, Order: TrueFirst, Default: "false", Help: "Refuse TLS without a server name."},
	{Name: "network.ask", Type: Bool, Default: "false", Help: "Ask about hosts that no pattern names, while the command runs that wants to reach them."},
	{Name: keyPublish, Type: List, Order: Opens, check: checkPublish, Help: "Ports of commands that this machine reaches at its 127.0.0.1: PORT, or PORT:HOSTPORT."},
	{
		Name: "network.upstream", Type: Text, Words: []string{network.UpstreamEnvironment, network.UpstreamNone}, Order: Fixes, Default: network.UpstreamEnvironment,
		check: checkUpstream, mask: network.MaskUpstream,
		Help: "The proxy by which allowed hosts are reached: http://[USER:PASSWORD@]HOST:PORT, https://..., socks5h://..., none, or environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY).",
	},
	{Name: "network.mitm.exclude", Type: List, Order: Narrows, check: checkPattern, Help: "Patterns of hosts whose TLS is not opened. The mode limited refuses TLS to them."},
	{Name: "network.mitm.extra_ca", Type: List, check: checkFile, Help: "Files of certificates (PEM) that servers are verified by, beside those of the system, where TLS is opened."},
	{
		Name: "network.mitm.rules", Type: Tables, table: requestRules, check: checkRequestRule,
		Help: "Rules by name that permit some requests to hosts, and no others: hosts, and optionally methods, paths, query, headers, strip, set.",
	},
	{
		Name: "network.credentials", Type: Tables, table: credentials, check: checkCredential,
		Help: "Credentials by name that commands use and do not get: env, hosts, and optionally file, find, form, where, shape.",
	},

	{Name: "environment.inherit", Type: Word, Words: []string{"none", "core", "all"}, Order: Words, Default: "all", Help: "Which variables commands get: all, core or none, except what looks like a secret."},
	{Name: "environment.exclude", Type: List, Order: Narrows, Help: "Patterns of names that commands do not get."},
	{Name: "environment.include_only", Type: List, Help: "Patterns of the only names that commands get."},
	{Name: "environment.pass", Profile: "environment.pass", InProject: true, Type: List, Order: Opens, Help: "Names of variables to pass on, also if they look like secrets."},
	{Name: "environment.set", Profile: "environment.set", InProject: true, Type: Map, Help: "Variables to set."},
	{Name: "environment.ignore_default_excludes", Type: Bool, Order: FalseFirst, Default: "false", Help: "Pass on what looks like a secret, too."},

	{Name: "hooks.approver", Type: List, Whole: true, Help: "A program, and its arguments, that is asked for approval before a person."},
	{Name: "hooks.approver_timeout", Type: Duration, Default: "60s", Help: "How long it may take."},
	{Name: "hooks.approver_failure", Type: Word, Words: []string{"deny", "none"}, Default: "deny", Help: "What its failure means: deny, or none, which asks the next approver."},
	{
		Name: "reviewer.base_url", Type: Text, check: guardian.CheckURL,
		Help: "The address of the API of the reviewing model, such as https://api.openai.com/v1.",
	},
	{Name: "reviewer.model", Type: Text, Help: "The model that reviews before a person is asked, with on-request and granular."},
	{Name: "reviewer.api_key_env", Type: Text, Help: "The variable with its key, which commands get only by environment.pass."},
	{Name: "reviewer.timeout", Type: Duration, Default: "90s", Help: "How long a review may take."},
	{
		Name: "reviewer.thresholds", Type: Map, check: checkThreshold,
		Help: "The authorization that a risk needs, such as high = \"medium\"; deny denies it always.",
	},
	{Name: "reviewer.strict", Type: Bool, Order: TrueFirst, Default: "false", Help: "Have the model review every command, each time anew, also those that need no approval."},
	{Name: "reviewer.shadow", Type: Bool, Default: "false", Help: "Ask the model, print what it says, and decide without it."},
	{Name: "audit.path", Type: Text, Later: "the audit log", Help: "Where the audit log is."},
	{Name: "audit.checkpoint_key_file", Type: Text, Later: "the audit log", Help: "The key of its checkpoints."},
	{Name: "audit.retention", Type: Duration, Later: "the audit log", Help: "How long it is kept."},
	{Name: "telemetry.enabled", Type: Bool, Later: "telemetry", Help: "Send traces and metrics, as the OTEL_ variables say."},
	{Name: "sessions.max", Type: Count, Later: "sessions of the command line", Help: "How many sessions may be alive."},
	{Name: "sessions.spill", Type: Size, Later: "sessions of the command line", Help: "Output of a session that is kept in a file."},
	{Name: "sessions.detached_for", Type: Duration, Later: "sessions of the command line", Help: "How long a session lives without a client."},
	{Name: "remote", Type: Text, Later: "running on other machines", Help: "The exec-server to run on."},
}

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
var granular = []string{"sandbox_approval", "rules", "request_permissions", "skill_approval", "mcp_elicitations"}

// Keys returns the table. It must not be changed.
func Keys() []Key { return keys }

// Find returns the key with a name, or nil.
func Find(name string) *Key { return findKey(func(k *Key) bool { return k.Name == name }) }

func findKey(match func(*Key) bool) *Key {
	for i := range keys {
		if match(&keys[i]) {
			return &keys[i]
		}
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
	switch k.Type {
	case Word:
		if !slices.Contains(k.Words, text) {
			return fmt.Errorf("invalid value %s (%s)%s", quoted(text), strings.Join(k.Words, ", "), nearest.Clause(text, k.Words, ""))
		}
	case Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("invalid value %s (true, false)", quoted(text))
		}
	case Size:
		_, err = ParseSize(text)
	case Duration:
		_, err = ParseDuration(text)
	case Count:
		_, err = ParsePIDs(text)
	case CPUs:
		_, err = ParseCPUs(text)
	case Map, Tables:
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			err = fmt.Errorf("%s names no variable; use K=V", quoted(text))
		}
	default:
		if text == "" {
			err = errEmpty
		}
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
		switch k.Type {
		case Size:
			n, err := ParseSize(text)
			return float64(n), err == nil
		case Duration:
			n, err := ParseDuration(text)
			if n == 0 && k.Name == "limits.timeout" {
				return math.Inf(1), err == nil // none, as with timeout(1)
			}
			return float64(n), err == nil
		default:
			n, err := ParseCPUs(text)
			return n, err == nil
		}
	}
	return 0, false
}

// wider reports whether a value is wider than a bound. An empty value of a number is none, which
// is the widest.
func (k *Key) wider(text, bound string) bool {
	switch {
	case text == "":
		return k.Order == Smaller
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
	return fmt.Errorf("unknown name %s%s", quoted(name), nearest.Clause(name, known, "see sallyport doctor"))
}

func checkOpening(name string) error {
	var known []string
	for _, o := range seccomp.Openings() {
		if o.Name == name {
			return nil
		}
		known = append(known, o.Name)
	}
	return fmt.Errorf("unknown name %s%s", quoted(name), nearest.Clause(name, known, "see sallyport doctor"))
}

// checkPlace checks a path that is opened.
func checkPlace(name string) error {
	if strings.HasPrefix(name, ":") && !slices.Contains(tokens, name) {
		return fmt.Errorf("unknown place %s (%s)%s", quoted(name), strings.Join(tokens, ", "), nearest.Clause(name, tokens, ""))
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
	_, err := network.New(network.Config{Entries: []network.Entry{e}, PublicSuffix: suffixes.IsPublic})
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

func checkThreshold(text string) error {
	_, _, err := guardian.ParseThreshold(text)
	return err
}

func notZero(text string) error {
	_, err := ParseLimit(text)
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
