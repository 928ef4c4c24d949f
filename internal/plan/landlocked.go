// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/landlock"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// LandlockLeast is the oldest Landlock that can be the only wall around files.
// Version 3 (Linux 6.2) brought the right to truncate; without it any file of
// the user's could be emptied.
const LandlockLeast = 3

// landlocked plans a run without namespaces: Landlock keeps writes in, a system
// call filter keeps the rest of what namespaces would, as far as it can. What the
// policy asks for and this level cannot hold is refused; which of the usual walls
// are missing is said in the plan.
func landlocked(h *Host, r *Request) (*Plan, error) {
	if err := landlockable(h, r); err != nil {
		return nil, err
	}
	p := &Plan{
		Level: LevelLandlock, Mechanism: []string{"landlock", "seccomp", "subreaper", "process-group"},
		Weaker: weaker(h, r),
	}
	add := func(s ...launch.Step) { p.Script.Steps = append(p.Script.Steps, s...) }
	add(
		launch.Step{Op: launch.OpDieWithParent, Signal: sigUsr2, Label: "the reaper ends the command's group"},
		launch.Step{Op: launch.OpSubreaper, Label: "find what the command leaves behind"},
		launch.Step{Op: launch.OpStartCommand})
	add(session(r, hostMultiplexer)...)
	if h.Caps&capSetpcap != 0 {
		add(
			launch.Step{Op: launch.OpSecureBits, Value: secureBits},
			launch.Step{Op: launch.OpDropBounding, Value: h.LastCap})
	}
	add(
		launch.Step{Op: launch.OpClearAmbient},
		launch.Step{Op: launch.OpNoNewPrivs},
		launch.Step{Op: launch.OpCaps, Label: "none left"},
		launch.Step{Op: launch.OpLandlock, Ruleset: landlockRules(h, r)},
		// For the real root the kernel asks for the user, not for capabilities.
		launch.Step{Op: launch.OpRefuseWrite, Path: "/proc/sys/kernel/core_pattern", Label: "proof that kernel settings are read-only"},
		launch.Step{Op: launch.OpRefuseWrite, Path: "/proc/sysrq-trigger"})
	if !r.Observe {
		add(launch.Step{Op: launch.OpSeccomp, Filter: r.Filter})
	}
	inside := *r
	inside.Env = privateEnv(r)
	add(body(&inside)...)
	p.watched(r)
	return p, nil
}

// landlockable refuses what this level cannot enforce. It names the entry.
func landlockable(h *Host, r *Request) error {
	no := func(need, have, hint string) error {
		return &sandbox.UnsupportedError{Need: need, Have: have, Hint: hint}
	}
	const cannot = "the landlock level cannot hold it"
	switch {
	case h.Arch != "amd64" && h.Arch != "arm64":
		return no("amd64 or arm64", "this is "+h.Arch, "run it with full access inside another sandbox")
	case h.LandlockABI < LandlockLeast:
		return no(fmt.Sprintf("Landlock, version %d or newer", LandlockLeast), landlockHave(h.LandlockABI),
			"use Linux 6.2 or newer with landlock in the kernel's lsm= list")
	case r.Root == sandbox.LevelDeny:
		return no("a root that shows only listed paths", cannot, "use a machine with the native level, or the read-only policy")
	case r.Tmp != nil && r.Tmp.Asked:
		return no("the folder "+r.Tmp.Source.Path+" at /tmp", cannot, "use a private /tmp, or the host's")
	}
	for _, o := range r.Spec.Allow {
		if r.network() == sandbox.NetworkNone && slices.Contains([]string{"icmp", "netlink", "io_uring"}, o) {
			return no(fmt.Sprintf("a network of the command's own for --allow %s", o), cannot, "leave it out, or use the host's network")
		}
	}
	for _, n := range r.Narrow {
		if n.Level == sandbox.LevelDeny {
			return no(fmt.Sprintf("the entry %s=deny", n.Path), cannot, "leave it out, or use a machine with the native level")
		}
		if n.Level == sandbox.LevelRead && writableOver(r, n.Path) {
			return no(fmt.Sprintf("the entry %s=read below a writable folder", n.Path), cannot, "leave it out, or name the writable folders beside it")
		}
	}
	for _, u := range r.Rules {
		if u.Auto || u.Kind == KindMissing {
			continue
		}
		if u.Level == sandbox.LevelDeny || u.Level == sandbox.LevelRead && writableOver(r, u.Path) {
			return no(fmt.Sprintf("the entry %s=%s", u.Path, u.Level), cannot, "leave it out, or use a machine with the native level")
		}
	}
	return supported(r)
}

// landlockHave says which Landlock a host has.
func landlockHave(abi int) string {
	if abi <= 0 {
		return "this kernel has none"
	}
	return fmt.Sprintf("this kernel has version %d", abi)
}

// levelOver is the level that a path has by the rules above it.
func levelOver(r *Request, name string) sandbox.Level {
	level := r.Root
	for _, u := range r.Rules { // sorted, so the last one is the nearest
		if u.Path != name && within(name, u.Path) {
			level = u.Level
		}
	}
	return level
}

// writableOver reports whether what is above a path is writable at the landlock
// level. /tmp is not where the private folder takes its place: nothing can be
// put over it.
func writableOver(r *Request, name string) bool {
	writable := false
	for _, u := range r.Rules {
		if u.Path != name && u.Kind != KindMissing && within(name, u.Path) {
			writable = u.Level == sandbox.LevelWrite && (r.Tmp == nil || u.Path != r.Tmp.At)
		}
	}
	return writable
}

// landlockRules are the wall: nothing may be written except below the writable
// places, to the usual devices, and through the standard descriptors that are
// writable. /proc has no rule: one for the whole of it would open the kernel's
// settings to the real root.
func landlockRules(h *Host, r *Request) *launch.Ruleset {
	abi := landlock.ABI(h.LandlockABI)
	set := &launch.Ruleset{Handled: abi.Writes(), Scoped: abi.Scopes()}
	add := func(at string, id launch.ID, rights uint64) {
		set.Rules = append(set.Rules, launch.Rule{Path: at, Access: rights, ID: id})
	}
	for _, u := range r.Rules {
		if u.Level != sandbox.LevelWrite || u.Kind == KindMissing || u.Pin || r.Tmp != nil && u.Path == r.Tmp.At {
			continue
		}
		if u.Kind == KindFolder {
			add(u.Path, u.ID, abi.Writes())
		} else {
			add(u.Path, u.ID, abi.FileWrites())
		}
	}
	if r.Tmp != nil {
		add(r.Tmp.Source.Path, r.Tmp.Source.ID, abi.Writes())
	}
	for _, d := range h.Devices {
		add("/dev/"+d, launch.ID{}, abi.FileWrites())
	}
	for i, s := range r.stdio() {
		if s.Writable && (s.File || s.Device) {
			set.Rules = append(set.Rules, launch.Rule{Stdio: i + 1, Access: abi.FileWrites()})
		}
	}
	return set
}

// privateEnv is the environment with the names of the temporary folder leading
// to the private one: /tmp itself is the host's, and not writable.
func privateEnv(r *Request) []string {
	if r.Tmp == nil {
		return r.Env
	}
	names := []string{"TMPDIR", "TMP", "TEMP"}
	env := slices.DeleteFunc(slices.Clone(r.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
	for _, n := range names {
		env = append(env, n+"="+r.Tmp.Source.Path)
	}
	return env
}

// weaker says which walls of the native level are missing, a sentence for each.
func weaker(h *Host, r *Request) []string {
	var out []string
	for _, w := range Walls() {
		g := w.gap(r.Level)
		if g.Lacks == "" || g.Refused || g.holds(h) {
			continue
		}
		if w.Name == wallProtected {
			if names := unprotected(r); len(names) > 0 {
				out = append(out, "protected names can be changed here: "+strings.Join(names, ", "))
				continue
			}
		}
		out = append(out, g.Lacks)
	}
	return out
}

// unprotected are the automatic rules that lie below a writable place.
func unprotected(r *Request) []string {
	var names []string
	for _, u := range r.Rules {
		if u.Auto && u.Level == sandbox.LevelRead && u.Kind != KindMissing && writableOver(r, u.Path) {
			names = append(names, u.Path)
		}
	}
	return names
}
