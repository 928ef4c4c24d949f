// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan turns a sandbox policy and the facts of a host into a [Plan]:
// data that says, step by step, how a process is started so that the kernel
// keeps it to the policy.
//
// [Make] is a pure function. What it needs to know about the machine is in
// [Host], what it needs to know about the files that a policy names is in
// [Request]; both are gathered by package confine, and both can be written by
// hand, so that any machine can say what another one would do. The plan's
// script prints as a list that a person can read from top to bottom; that list
// is the documentation of the sandbox.
//
// Make never plans less than the policy asks for. Where the host cannot
// enforce it, Make returns a *sandbox.UnsupportedError that names the missing
// fact and what would help.
package plan

import (
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host is what is known about the machine. It is data: bug reports attach it.
type Host struct {
	System string `json:"system"` // as GOOS
	Arch   string `json:"arch"`   // as GOARCH
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`

	// Missing are the facts that the native level needs and this host lacks.
	// Empty means that it can be had.
	Missing []Missing `json:"missing,omitempty"`

	Blind bool `json:"blind,omitempty"` // no observer of system calls can be had

	LandlockABI int    `json:"landlock_abi"` // 0: none
	Caps        uint64 `json:"caps"`         // the capabilities that this process has
	LastCap     uint64 `json:"last_cap"`     // the highest capability the kernel knows

	Devices    []string `json:"devices"`     // device files of /dev that a command gets, by name
	ProcCovers []string `json:"proc_covers"` // what of /proc exists and is made read-only
	ProcMasks  []string `json:"proc_masks"`  // what of /proc exists and is hidden
	SysShows   []Spot   `json:"sys_shows"`   // what of /sys stays visible
	RunShows   []Spot   `json:"run_shows"`   // what of /run stays visible
}

// A Missing is a fact that this host lacks.
type Missing struct {
	Need string `json:"need"` // what the native level needs
	Have string `json:"have"` // what was seen instead
	Hint string `json:"hint"` // what would help
}

// A Kind is what stands at a path. The zero Kind is nothing.
type Kind uint8

// The kinds that matter for a plan.
const (
	KindMissing Kind = iota
	KindFolder
	KindFile  // regular file
	KindOther // device, pipe, socket
)

// A Spot is a path with what was found there. The path has no symbolic link
// in it.
type Spot struct {
	Path string    `json:"path"`
	Kind Kind      `json:"kind"`
	ID   launch.ID `json:"id,omitzero"`
}

// A Rule gives a spot a level, down to the next rule.
type Rule struct {
	Spot
	Level sandbox.Level `json:"level"`
	// Why says in words where the rule comes from, for the printed script.
	Why string `json:"why,omitempty"`
	// Auto says that nobody asked for the rule: it protects what every policy
	// protects. A level that cannot hold it says so and runs; a rule that was
	// asked for is held or refused.
	Auto bool `json:"auto,omitempty"`
	// Pin says that the folder must stay where it is although it has no level of
	// its own: something in it is protected, and moved away it would be found
	// no more. The price is that files cannot be renamed or linked across it.
	Pin bool `json:"pin,omitempty"`
}

// A Narrowing is an entry of the policy that takes something away, as it is
// written, whether or not anything stands there now.
type Narrowing struct {
	Path  string        `json:"path"` // or a pattern
	Level sandbox.Level `json:"level"`
}

// A Tmp is the folder that stands at /tmp.
type Tmp struct {
	At     string `json:"at"` // the path that the command sees
	Source Spot   `json:"source"`
	Asked  bool   `json:"asked,omitempty"` // somebody chose the folder; else it is a private one
}

// A Bwrap is the system's bubblewrap with what it needs of ours.
type Bwrap struct {
	Program string `json:"program"` // absolute
	Argv0   bool   `json:"argv0"`   // it knows --argv0 (version 0.9)
	// File and Folder are empty and of mode 000, and stand over what is denied.
	File   string `json:"file"`
	Folder string `json:"folder"`
}

// A Stdio is what is known about one of the three standard descriptors.
type Stdio struct {
	Writable bool `json:"writable"` // it is open for writing
	File     bool `json:"file"`     // a regular file
	Device   bool `json:"device"`   // a character device such as a terminal
	Folder   bool `json:"folder,omitempty"`
	// Reopen, when set, is how the command gets a descriptor of its own for the
	// same file, through a mount that lets nobody change its mode or times.
	Reopen *Reopen `json:"reopen,omitempty"`
}

// A Reopen is a file behind a standard descriptor that can be opened by name.
type Reopen struct {
	Spot
	Flags  uint64 `json:"flags"`  // of open(2)
	Offset int64  `json:"offset"` // where the descriptor stands
}

// A Limit is a resource limit (RLIMIT_ numbers and units of setrlimit(2)).
type Limit struct {
	Resource int    `json:"resource"`
	Soft     uint64 `json:"soft"`
	Hard     uint64 `json:"hard"`
}

// A Request is one command with everything that was found out about it.
type Request struct {
	// Level is the level to plan for; empty means LevelNative.
	Level string
	// Spec is the command as its caller describes it. Of its policy the mode and the
	// network count here; Root and Rules say what is found at the paths of the others.
	Spec   *executor.Spec
	Root   sandbox.Level
	Rules  []Rule      // unique paths, sorted
	Narrow []Narrowing // the policy's own entries, for levels that cannot hold them
	// Patterns are for systems whose sandbox judges by name; elsewhere what they
	// match is among the Rules.
	Patterns []Pattern
	Tmp      *Tmp
	Links    []Link // unique paths
	Needs    []Need // counts where Root is denied
	// Overlays are folders of the host that the command may write to without
	// changing them. Every one fits; see [Request.Fits].
	Overlays []Overlay
	Bwrap    *Bwrap // for LevelBwrap
	// Filter is the compiled seccomp filter for the policy's network and Spec.Allow.
	Filter launch.Filter
	// Observe says that Filter asks a supervisor, which must be there before the
	// command is.
	Observe bool
	// Guard is the filter around bubblewrap itself; nil where that could not
	// start under one, because it is set-uid.
	Guard launch.Filter

	Program string   // absolute
	Env     []string // Spec.Env, with what the caches of toolchains change
	Stdio   [3]Stdio
	Limits  []Limit
	Entry   Entry
}

// Entry is what the reaper's task and the command's task begin with, such as the steps
// that resource limits need. The zero Entry is nothing.
type Entry struct {
	Reaper, Command []launch.Step
}

// network is the network part of the policy.
func (r *Request) network() sandbox.Network { return r.Spec.Policy.Network() }

// unconfined reports whether no sandbox is built.
func (r *Request) unconfined() bool {
	mode := r.Spec.Policy.Mode()
	return mode == sandbox.Full || mode == sandbox.External && r.network() == sandbox.NetworkHost
}

// argv are the arguments as the program sees them.
func (r *Request) argv() []string {
	argv := slices.Clone(r.Spec.Args)
	if r.Spec.Arg0 != "" {
		argv[0] = r.Spec.Arg0
	}
	return argv
}

// stdio are the standard descriptors as the command has them: its terminal is a
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

// A Plan is how one process is started.
type Plan struct {
	Level     string   `json:"level"`     // one of the Level constants
	Mechanism []string `json:"mechanism"` // what enforces it
	Weaker    []string `json:"weaker,omitempty"`
	Points    []Point  `json:"points,omitempty"`
	// Pipes says that the standard descriptors that are not pipes must be
	// replaced by pipes: nothing at this level keeps the command from opening
	// them anew with more rights.
	Pipes  bool          `json:"pipes,omitempty"`
	Script launch.Script `json:"script"`
	// Observe says that the script hands out a listener, and needs somebody to take it.
	Observe bool  `json:"observe,omitempty"`
	Exec    *Exec `json:"exec,omitempty"` // instead of the script, on other systems than Linux
}

// HasTerminal reports whether the script makes a terminal, and needs somebody to take
// its master end.
func (p *Plan) HasTerminal() bool {
	return slices.ContainsFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == launch.OpTerminal })
}

// A Point is a mount point that must exist in a folder of ours before the
// launch. It is never one in a folder of the user's.
type Point struct {
	Below  string `json:"below"` // the folder of ours, absolute
	Path   string `json:"path"`  // relative to it
	Folder bool   `json:"folder"`
}

// The levels of a plan, strongest first. LevelNone is full access.
const (
	LevelNative   = "native"
	LevelBwrap    = "bwrap"
	LevelLandlock = "landlock"
	LevelNone     = "none"
)
