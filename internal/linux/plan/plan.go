// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan turns a sandbox policy and the facts of a host into a [Plan]: data that
// says, step by step, how a process is started so that the kernel enforces the policy.
//
// [Make] is a pure function. What it must know about the machine is in [Host]; what it
// must know about one command, and about the files that its policy names, is in
// [Request]. The host packages (linux, darwin, windows) gather both. Both can be written
// by hand, so that any machine can tell what another one would do. A plan is complete:
// nothing is added to it before it is performed. Its script prints as a list that reads
// from top to bottom and documents the sandbox.
//
// Make never plans less than the policy asks for. Where the host cannot enforce the
// policy, it returns a *sandbox.UnsupportedError that names the missing fact and a fix.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The levels of a plan for Linux, strongest first. LevelNone is full access.
const (
	LevelNative   = "native"
	LevelBwrap    = "bwrap"
	LevelLandlock = "landlock"
	LevelNone     = "none"
)

// A Plan is how one process is started.
type Plan struct {
	Level     string   `json:"level"`     // one of the Level constants
	Mechanism []string `json:"mechanism"` // what enforces it
	Weaker    []string `json:"weaker,omitempty"`
	Points    []Point  `json:"points,omitempty"`
	// Pipes says that standard descriptors that are not pipes must be replaced by
	// pipes: at this level the command could reopen them with more rights.
	Pipes  bool          `json:"pipes,omitempty"`
	Script launch.Script `json:"script"`
	// Tree is the part of a script in a shared sandbox that makes the mounts with which other
	// commands can begin; nil where these cannot. Known is the one of Shared.Trees that the
	// script begins with, counted from 1; 0 for none.
	Tree  []launch.Step `json:"-"`
	Known int           `json:"-"`
	Exec  *Exec         `json:"exec,omitempty"` // instead of the script, on other systems than Linux
}

// A Point is a mount point that must exist in a directory of ours before the launch.
// It is never in a directory of the user's.
type Point struct {
	Below string `json:"below"` // the directory of ours, absolute
	Path  string `json:"path"`  // relative to it
	Dir   bool   `json:"dir"`
}

// Has reports whether the script has a step with the operation.
func (p *Plan) Has(op launch.Op) bool {
	return slices.ContainsFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == op })
}

// Sandbox describes what the plan enforces. It prints the launch, and sums it up, as the Spec says.
func (p *Plan) Sandbox(spec *executor.Spec) executor.Sandbox {
	s := executor.Sandbox{Level: p.Level, Mechanism: p.Mechanism, Weaker: p.Weaker}
	if !spec.Explain && !spec.Digest {
		return s
	}
	var script string
	if p.Exec != nil {
		script = p.Exec.String()
	} else {
		script = p.Script.String()
	}
	if spec.Explain {
		s.Script = script
	}
	if spec.Digest {
		sum := sha256.Sum256([]byte(script))
		s.Plan = hex.EncodeToString(sum[:])
	}
	return s
}

func (p *Plan) add(steps ...launch.Step) { p.Script.Steps = append(p.Script.Steps, steps...) }

// Make plans one command. It returns a *sandbox.UnsupportedError when the host cannot
// enforce the policy, and a *sandbox.HiddenError when the policy hides what the command
// needs to start.
func Make(h *Host, r *Request) (*Plan, error) {
	if err := r.linksProtectable(h); err != nil {
		return nil, err
	}
	if len(r.Spec.Files) > 0 && h.System != "linux" {
		return nil, unsupported("descriptors beyond the three standard ones", "only Linux passes them on",
			"leave them out")
	}
	if err := r.publishable(h); err != nil {
		return nil, err
	}
	if r.unconfined() {
		return unconfined(h, r), nil
	}
	switch h.System {
	case "linux":
	case "darwin":
		return seatbelted(h, r)
	case "windows":
		return nil, windowsRefusal(r)
	default:
		return nil, unsupported("Linux", "this is "+h.System,
			"run it with full access, or on a Linux machine")
	}
	switch {
	case r.Spec.Policy.Mode() != sandbox.Managed:
		return nil, unsupported("a private network without a sandbox for files (external-sandbox)",
			"this version confines files and network together",
			"use the host's network, or a policy that confines files too")
	case r.Root >= sandbox.LevelWrite:
		return nil, unsupported("a writable root directory inside a sandbox",
			"the whole disk cannot be a writable root",
			"name the directories to write to, or ask for full access")
	}
	switch r.Level {
	case LevelLandlock:
		return landlocked(h, r)
	case LevelBwrap:
		return bwrapped(h, r)
	}
	return native(h, r)
}

// publishable returns an error for published ports where nothing reaches them.
func (r *Request) publishable(h *Host) error {
	const need = "published ports"
	switch {
	case len(r.Spec.Publish) == 0:
		return nil
	case r.unconfined() || r.network() == sandbox.NetworkHost:
		return unsupported(need,
			"the command uses the network of this machine, where its ports are reachable already",
			"leave out --publish")
	case h.System != "linux" || r.Level != "" && r.Level != LevelNative:
		return unsupported(need, "only the native level on Linux has them",
			"use a Linux machine with the native level")
	}
	return nil
}

// unconfined plans a command without a sandbox. On Linux it has the same reaper, which
// finds the processes that the command leaves behind.
func unconfined(h *Host, r *Request) *Plan {
	switch h.System {
	case "linux":
		p := &Plan{Level: LevelNone, Mechanism: []string{"subreaper", "process-group"}}
		p.add(subreaper(r)...)
		p.add(command(r)...)
		return p
	case "windows":
		return &Plan{Level: LevelNone, Mechanism: []string{"job-object"}, Exec: direct(r)}
	}
	return &Plan{Level: LevelNone, Mechanism: []string{"process-group"}, Weaker: []string{groupOnly},
		Exec: direct(r)}
}

// missing returns the error for the first fact that the host lacks, or nil.
func (h *Host) missing() error {
	if len(h.Missing) == 0 {
		return nil
	}
	return unsupported(h.Missing[0].Need, h.Missing[0].Have, h.Missing[0].Hint)
}

// landlockFrom returns an error when the host's Landlock is older than the least version,
// which came with a version of Linux.
func (h *Host) landlockFrom(least int, linux string) error {
	if h.LandlockABI >= least {
		return nil
	}
	have := "this kernel has none"
	if h.LandlockABI > 0 {
		have = fmt.Sprintf("this kernel has version %d", h.LandlockABI)
	}
	return unsupported(fmt.Sprintf("Landlock, version %d or newer", least), have,
		"use Linux "+linux+" or newer with landlock in the kernel's lsm= list")
}

func unsupported(need, have, hint string) error {
	return &sandbox.UnsupportedError{Need: need, Have: have, Hint: hint}
}
