// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Request is one command with everything that was found out about it.
type Request struct {
	// Level is the level to plan for; empty means LevelNative.
	Level string
	// Spec is the command as its caller describes it. Of its policy only the mode and
	// the network are read here: Root, Rules and Patterns say what the paths of the
	// policy are on this machine.
	Spec *executor.Spec
	Env  []string // Spec.Env with the changes that the caches of toolchains need

	Program string // absolute
	Dir     string // where the command starts, if that is not Spec.Dir
	Root    sandbox.Level
	Rules   []Rule      // unique paths, sorted
	Narrow  []Narrowing // the policy's own entries, for levels that cannot enforce them
	// Patterns are for systems whose sandbox matches by name; elsewhere the paths that
	// they match are among the Rules.
	Patterns []Pattern
	Tmp      *Tmp   // nil is the host's /tmp
	Links    []Link // unique paths
	Needs    []Need // counts where Root is denied
	// Overlays are directories of the host that the command may write to without
	// changing them. Every one fits; see [Request.Fits].
	Overlays []Overlay
	// Staged are the roots of the command's stage, sorted by path; nil for a command that has none. At
	// LevelNative every writable directory and file of the host is in one.
	Staged []Staged
	Stdio  [3]Stdio
	// Devices are device files of the host that the command gets beside the usual ones, by
	// their names below /dev. They exist.
	Devices []string
	Limits  []Limit
	Entry   Entry
	// Redirect is for a managed network; with nil Routed is what there is of it. With neither only programs
	// that know of the proxy reach hosts, and Unredirected says why.
	Redirect     *Redirect
	Routed       *Routed
	Unredirected string
	// Direct are the hosts that programs with proxy variables reach without the proxy: the command itself.
	Direct []string
	// Trust is for a command whose TLS is opened; nil for others.
	Trust *Trust
	// Copies are shown in the place of files, by the paths of these, which Rules make readable.
	Copies map[string]Spot
	// Publish is how many TCP sockets the launch hands out with which published ports are reached, for
	// each of the families; 0 for none. PublishIPv4 leaves out those for IPv6.
	Publish     int
	PublishIPv4 bool
	// Names are for a command without a network; with nil it is not seen which names it asks for.
	Names *Names
	// Shared is the shared sandbox in which the command starts, at LevelNative; nil for one of its own.
	Shared *Shared

	Bwrap *Bwrap // for LevelBwrap
	// Filter is the compiled seccomp filter for the network of the policy and Spec.Allow.
	Filter launch.Filter
	// Seal is installed when the command has passed the listener of Filter.
	Seal launch.Filter
	// Observe says that Filter asks a supervisor. Unobserved says why the command has
	// none although the level allows one; empty when the caller asked for none.
	Observe    bool
	Unobserved string
	// Guard is the filter around bubblewrap itself; nil where bubblewrap is set-uid and
	// could not start under one.
	Guard launch.Filter
}

// A Rule gives a spot a level, down to the next rule.
type Rule struct {
	Spot
	Level sandbox.Level `json:"level"`
	// Why says where the rule comes from, for the printed script.
	Why string `json:"why,omitempty"`
	// Auto says that the rule protects what every policy protects. A level that cannot
	// enforce it runs the command and says so; a rule that the caller asked for is
	// enforced or refused.
	Auto bool `json:"auto,omitempty"`
	// Pin says that the directory must stay where it is although it has no level of its
	// own: something in it is protected, and would not be after the directory was moved.
	// The price is that files cannot be renamed or linked across it.
	Pin bool `json:"pin,omitempty"`
	// Own says that the directory is one of ours, such as a private cache, which no stage holds.
	Own bool `json:"own,omitempty"`
}

// A Narrowing is an entry of the policy that takes something away, as it is written,
// whether or not the path exists.
type Narrowing struct {
	Path  string // or a pattern
	Level sandbox.Level
}

// A Pattern gives every path that it matches, and what is below, at most a level,
// whether the path exists or is created later. Patterns take precedence over rules.
type Pattern struct {
	Glob  string        // for [sandbox.CompileGlob]
	Level sandbox.Level // LevelDeny or LevelRead
}

// A Tmp is the directory that stands at /tmp.
type Tmp struct {
	At     string // the path that the command sees
	Source Spot
	Asked  bool // the caller chose the directory; else it is a private one
}

// A Link is a symbolic link of the host's on the way to something that the command may
// see. A directory of ours that covers the link's own directory gets a copy of it.
type Link struct {
	Path string // no symbolic link above it
	Dest string
}

// A Need is a path that a command cannot start without.
type Need struct {
	What string // "the program"
	Path string // no symbolic link above it; itself it may be one
	Dir  bool
}

// A Stdio is what is known about one of the three standard descriptors.
type Stdio struct {
	Writable  bool // it is open for writing
	File      bool // a regular file
	Device    bool // a character device such as a terminal
	Directory bool
	// Reopen, when set, is how the command gets a descriptor of its own for the same
	// file, through a mount that denies changes of its mode and times.
	Reopen *Reopen
}

// A Reopen is a file behind a standard descriptor that can be opened by name.
type Reopen struct {
	Spot
	Flags  uint64 // of open(2)
	Offset int64  // of the descriptor
}

// A Limit is a resource limit (RLIMIT_ numbers and units of setrlimit(2)).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// An Entry is the steps that the two tasks of a script begin with, such as those that
// resource limits need. The zero Entry has none.
type Entry struct {
	Reaper, Command []launch.Step
}

// A Bwrap is the system's bubblewrap, with the files that it needs.
type Bwrap struct {
	Program string // absolute
	Argv0   bool   // it knows --argv0 (version 0.9)
	// File and Directory are empty, have mode 000 and are mounted over what is denied.
	File, Directory string
}

// network is the network part of the policy.
func (r *Request) network() sandbox.Network { return r.Spec.Policy.Network() }

// unconfined reports whether the policy asks for no sandbox.
func (r *Request) unconfined() bool {
	mode := r.Spec.Policy.Mode()
	return mode == sandbox.Full || mode == sandbox.External && r.network() == sandbox.NetworkHost
}

// unproxied returns an error for a network that needs the proxy, where nothing makes the socket
// that leads there.
func (r *Request) unproxied(have string) error {
	if r.network() != sandbox.NetworkProxy {
		return nil
	}
	return unsupported("a proxy for the managed network", have,
		"use no network or the host's, or a Linux machine with the native level")
}

// argv returns the arguments as the program sees them.
func (r *Request) argv() []string {
	argv := slices.Clone(r.Spec.Args)
	if r.Spec.Arg0 != "" {
		argv[0] = r.Spec.Arg0
	}
	return argv
}

// execPath is the path to execute. One that is relative to the directory of the command stays so: it is what
// the kernel passes to the interpreter of a script, so that "usage: ./x" reads as without a sandbox.
func (r *Request) execPath() string {
	if name := r.Spec.Args[0]; strings.Contains(name, "/") && !path.IsAbs(name) {
		return name
	}
	return r.Program
}

// envWithTmp returns the environment with the variables for temporary files set to a
// directory.
func (r *Request) envWithTmp(dir string) []string {
	names := []string{"TMPDIR", "TMP", "TEMP"}
	env := slices.DeleteFunc(slices.Clone(r.environ()), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
	for _, name := range names {
		env = append(env, name+"="+dir)
	}
	return env
}

// stdio returns the standard descriptors as the command has them: its terminal is a
// device that it may write to.
func (r *Request) stdio() [3]Stdio {
	out := r.Stdio
	if r.Spec.TTY == nil {
		return out
	}
	for i := range out {
		if i < 2 || r.Spec.Stderr == nil {
			out[i] = Stdio{Writable: true, Device: true}
		}
	}
	return out
}

// within reports whether name is the directory dir or below it.
func within(name, dir string) bool { return safefile.Within(name, dir) }

func (r *Request) sortRules() {
	slices.SortFunc(r.Rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
}

// rule returns the rule for exactly this path, or nil.
func (r *Request) rule(name string) *Rule {
	i, ok := slices.BinarySearchFunc(r.Rules, name,
		func(u Rule, name string) int { return strings.Compare(u.Path, name) })
	if !ok {
		return nil
	}
	return &r.Rules[i]
}

// nearest returns the rule for a path or for the nearest directory above it, or nil.
func (r *Request) nearest(name string) *Rule {
	for at := name; ; at = path.Dir(at) {
		if u := r.rule(at); u != nil || at == "/" || at == "." {
			return u
		}
	}
}

// rulesOver yields the rules for a path and for the directories above it, nearest first.
func (r *Request) rulesOver(name string) iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		for at := name; ; at = path.Dir(at) {
			if u := r.rule(at); u != nil && !yield(u) || at == "/" || at == "." {
				return
			}
		}
	}
}

// rulesAbove yields the rules for the directories above a path, nearest first.
func (r *Request) rulesAbove(name string) iter.Seq[*Rule] {
	if name == "/" {
		return func(func(*Rule) bool) {}
	}
	return r.rulesOver(path.Dir(name))
}

// LevelAt returns the level that the rules give a path, before overlays and the
// directories of our own that cover the host's.
func (r *Request) LevelAt(name string) sandbox.Level {
	if u := r.nearest(name); u != nil {
		return u.Level
	}
	return r.Root
}

// denies reports whether the nearest rule over a path denies it, as opposed to a path that no rule
// is about.
func (r *Request) denies(name string) bool {
	u := r.nearest(name)
	return u != nil && u.Level == sandbox.LevelDeny
}

// levelAbove is LevelAt without a rule for the path itself.
func (r *Request) levelAbove(name string) sandbox.Level {
	if name == "/" {
		return r.Root
	}
	return r.LevelAt(path.Dir(name))
}

// shown reports whether a rule at or above a path, and below the directory at, brings
// the host's files back.
func (r *Request) shown(name, at string) bool {
	for u := range r.rulesOver(name) {
		if u.Path == at || !within(u.Path, at) {
			return false
		}
		if u.Level != sandbox.LevelDeny && u.Kind != KindMissing {
			return true
		}
	}
	return false
}

// reopened returns the first rule that makes something below a denied path visible again,
// or nil.
func (r *Request) reopened(denied string) *Rule {
	i := slices.IndexFunc(r.Rules, func(u Rule) bool {
		return u.Path != denied && within(u.Path, denied) && u.Level != sandbox.LevelDeny &&
			u.Kind != KindMissing
	})
	if i < 0 {
		return nil
	}
	return &r.Rules[i]
}

// Hides reports whether a path is in a directory of ours that covers the host's, and no
// rule between the two brings the host's files back.
func (r *Request) Hides(name string) bool {
	return slices.ContainsFunc(r.covers(), func(at string) bool {
		return within(name, at) &&
			!r.shown(name, at)
	})
}

// isTmp reports whether the private /tmp stands at a path.
func (r *Request) isTmp(name string) bool { return r.Tmp != nil && r.Tmp.At == name }

// covers are the directories that ours cover in any case.
func (r *Request) covers() []string {
	if r.Tmp != nil {
		return []string{"/run", r.Tmp.At}
	}
	return []string{"/run"}
}

func levelWord(l sandbox.Level) string {
	return [...]string{sandbox.LevelDeny: "unreadable", sandbox.LevelRead: "readable",
		sandbox.LevelWrite: "writable"}[l]
}
