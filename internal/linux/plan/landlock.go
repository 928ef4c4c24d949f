// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// LandlockLeast is the oldest Landlock that can be the only wall around files. Version 3
// (Linux 6.2) brought the right to truncate; without it a command could empty any file
// of the user's.
const LandlockLeast = 3

// landlocked plans a command without namespaces: Landlock restricts writes, and a system
// call filter restricts what namespaces would, as far as it can. What the policy asks
// for and this level cannot enforce is refused; the plan names the usual walls that are
// missing.
func landlocked(h *Host, r *Request) (*Plan, error) {
	if err := landlockable(h, r); err != nil {
		return nil, err
	}
	p := &Plan{
		Level: LevelLandlock, Mechanism: []string{"landlock", "seccomp", "subreaper", "process-group"},
		Weaker: weaker(h, r),
	}
	p.add(subreaper(r)...)
	if h.Caps&capSetpcap != 0 {
		p.add(
			launch.Step{Op: launch.OpSecureBits, Value: secureBits},
			launch.Step{Op: launch.OpDropBounding, Value: h.LastCap})
	}
	p.add(
		launch.Step{Op: launch.OpClearAmbient},
		launch.Step{Op: launch.OpNoNewPrivs},
		launch.Step{Op: launch.OpCaps, Label: "none left"},
		launch.Step{Op: launch.OpLandlock, Ruleset: landlockRules(h, r)})
	// For the real root the kernel checks the user, not capabilities.
	p.add(refuseSettings()...)
	if !r.Observe {
		p.add(launch.Step{Op: launch.OpSeccomp, Filter: r.Filter})
	}
	inside := *r
	if r.Tmp != nil {
		inside.Env = r.envWithTmp(r.Tmp.Source.Path) // /tmp itself is the host's, and not writable
	}
	p.add(command(&inside)...)
	p.observe(r)
	return p, nil
}

// landlockable returns an error that names the entry that this level cannot enforce.
func landlockable(h *Host, r *Request) error {
	if h.Arch != "amd64" && h.Arch != "arm64" {
		return unsupported("amd64 or arm64", "this is "+h.Arch,
			"run it with full access inside another sandbox")
	}
	if err := h.landlockFrom(LandlockLeast, "6.2"); err != nil {
		return err
	}
	if err := r.unproxied("the landlock level has no private network in which only the proxy is reached"); err != nil {
		return err
	}
	no := func(need, hint string) error {
		return unsupported(need,
			"the landlock level cannot enforce it", hint)
	}
	const leave = "leave it out, or use a machine with the native level"
	if r.Root == sandbox.LevelDeny {
		return no("a root that shows only listed paths",
			"use a machine with the native level, or the read-only policy")
	}
	if r.Tmp != nil && r.Tmp.Asked {
		return no("the directory "+r.Tmp.Source.Path+" at /tmp", "use a private /tmp, or the host's")
	}
	for _, o := range r.Spec.Allow {
		if r.network() == sandbox.NetworkNone &&
			slices.Contains([]string{seccomp.OpenICMP, "netlink", "io_uring"}, o) {
			return no(fmt.Sprintf("a private network for the opening %s", o),
				"leave it out, or use the host's network")
		}
	}
	for _, n := range r.Narrow {
		if n.Level == sandbox.LevelDeny {
			return no(fmt.Sprintf("the entry %s=deny", n.Path), leave)
		}
		if n.Level == sandbox.LevelRead && r.writableAbove(n.Path) {
			return no(fmt.Sprintf("the entry %s=read below a writable directory", n.Path),
				"leave it out, or name the writable directories beside it")
		}
	}
	for _, u := range r.Rules {
		if u.Auto || u.Kind == KindMissing {
			continue
		}
		if u.Level == sandbox.LevelDeny || u.Level == sandbox.LevelRead && r.writableAbove(u.Path) {
			return no(fmt.Sprintf("the entry %s=%s", u.Path, u.Level), leave)
		}
	}
	return nil
}

// writableAbove reports whether what is above a path is writable at the landlock level.
// /tmp is not, where the private directory takes its place: nothing can be mounted over
// it.
func (r *Request) writableAbove(name string) bool {
	for u := range r.rulesAbove(name) {
		if u.Kind != KindMissing {
			return u.Level == sandbox.LevelWrite && !r.isTmp(u.Path)
		}
	}
	return false
}

// refuseSettings proves that the settings of the kernel cannot be written.
func refuseSettings() []launch.Step {
	return []launch.Step{
		{Op: launch.OpRefuseWrite, Path: "/proc/sys/kernel/core_pattern", Label: "proof that kernel settings are read-only"},
		{Op: launch.OpRefuseWrite, Path: "/proc/sysrq-trigger"},
	}
}

// landlockRules opens the usual devices beside the writable directories. /proc has no
// rule: one for the whole of it would open the kernel's settings to the real root.
func landlockRules(h *Host, r *Request) *launch.Ruleset {
	abi := launch.LandlockABI(h.LandlockABI)
	var own []launch.Rule
	if t := r.Tmp; t != nil {
		own = append(own, launch.Rule{Path: t.Source.Path, ID: t.Source.ID, Access: abi.Writes()})
	}
	for _, d := range slices.Concat(h.Devices, r.Devices) {
		own = append(own, launch.Rule{Path: "/dev/" + d, Access: abi.FileWrites()})
	}
	return ruleset(h, r, true, own)
}

// ruleset denies every write except to the writable paths of the policy, with checked
// only if they are the files that were planned for, to own, and through the standard
// descriptors that are writable.
func ruleset(h *Host, r *Request, checked bool, own []launch.Rule) *launch.Ruleset {
	abi := launch.LandlockABI(h.LandlockABI)
	set := &launch.Ruleset{Handled: abi.Writes(), Scoped: r.Shared.scopes(abi, r.network())}
	for _, u := range r.Rules {
		if u.Level != sandbox.LevelWrite || u.Kind == KindMissing || u.Pin || r.isTmp(u.Path) {
			continue
		}
		rule := launch.Rule{Path: u.Path, Access: abi.FileWrites()}
		if u.Kind == KindDirectory {
			rule.Access = abi.Writes()
		}
		if r.Spec.ProtectHardLinks && !r.staged(u.Path) {
			rule.Access &^= contentWrites
		}
		if rule.Access == 0 {
			continue // the kernel takes no such rule
		}
		if checked {
			rule.ID = u.ID
		}
		set.Rules = append(set.Rules, rule)
	}
	set.Rules = append(set.Rules, own...)
	for i, s := range r.stdio() {
		if s.Writable && (s.File || s.Device) {
			set.Rules = append(set.Rules, launch.Rule{Stdio: i + 1, Access: abi.FileWrites()})
		}
	}
	return set
}

// weaker returns a sentence for each wall of the native level that is missing.
func weaker(h *Host, r *Request) []string {
	var out []string
	for _, w := range Walls() {
		g := w.gap(r.Level)
		if g.Refused || g.holds(h) {
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

// unprotected lists the automatic rules below a writable directory.
func unprotected(r *Request) []string {
	var names []string
	for _, u := range r.Rules {
		if u.Auto && u.Level == sandbox.LevelRead && u.Kind != KindMissing && r.writableAbove(u.Path) {
			names = append(names, u.Path)
		}
	}
	return names
}
