// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// LevelSeatbelt is the level of a plan for macOS: the kernel's Seatbelt module allows or
// denies every operation by a profile.
const LevelSeatbelt = "seatbelt"

// SandboxExec is the program that puts itself under a profile and then becomes the command
// (sandbox-exec(1)). The path is fixed, so that PATH has no influence.
const SandboxExec = "/usr/bin/sandbox-exec"

// dataVolume is where macOS mounts the volume that holds everything but the system itself.
// Directories of it appear at / too, as firm links.
const dataVolume = "/System/Volumes/Data"

// loader are the paths that no program starts without: the dynamic linker's caches, the
// choice of /bin/sh, and the table of time zones.
var loader = []string{"/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select"}

// macPath returns the one spelling of a path by which the kernel knows it.
func macPath(name string) string {
	if rest, ok := strings.CutPrefix(name, dataVolume); ok && rest != "" && rest[0] == '/' {
		for _, top := range []string{"/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt",
			"/private", "/usr/local"} {
			if within(rest, top) {
				name = rest
				break
			}
		}
	}
	for _, link := range []string{"/etc", "/tmp", "/var"} {
		if within(name, link) {
			return "/private" + name
		}
	}
	return name
}

// macGlob is macPath for a pattern, which may have backslashes in it.
func macGlob(pattern string) string {
	g, err := sandbox.CompileGlob(pattern)
	if err == nil && macPath(g.Base()) == "/private"+g.Base() {
		return "/private/" + strings.TrimLeft(pattern, "/")
	}
	return macPath(pattern)
}

// A Param is a value that a profile takes by name. No text of a user's is in the profile
// itself, so none can end a string in it.
type Param struct{ Key, Value string }

// A seatbelt is one profile while it is made.
type seatbelt struct {
	req      Request // with canonical paths, and rules for the private /tmp and the system
	patterns []boundPattern
	tmp      string   // the private directory; empty without one
	devices  []string // below /dev, those that the policy does not deny

	params []Param
	text   strings.Builder
}

// A boundPattern is a pattern with its level.
type boundPattern struct {
	pathExpr
	level sandbox.Level
}

// A region is a part of the tree that has at least some level, without those parts of it
// that have less.
type region struct {
	Rule
	except []Rule
}

// groupOnly is what no level stops on systems where only the process group holds a process
// tree together.
const groupOnly = "what leaves the command's process group is neither found nor ended"

// seatbelted plans a command for macOS.
func seatbelted(h *Host, r *Request) (*Plan, error) {
	if r.Spec.Policy.Mode() != sandbox.Managed {
		return nil, unsupported("a private network without a sandbox for files (external-sandbox)",
			"macOS has no private networks",
			"use the host's network, or a policy that confines files too")
	}
	if err := h.missing(); err != nil {
		return nil, err
	}
	if err := r.unproxied("macOS has no private network in which only the proxy is reached"); err != nil {
		return nil, err
	}
	if len(r.Spec.Allow) > 0 {
		return nil, unsupported("the opening "+r.Spec.Allow[0],
			"it changes the system call filter of Linux",
			"leave it out, or run it with full access")
	}
	if r.Root > sandbox.LevelWrite {
		return nil, unsupported("a policy that this version knows", "it has a level beyond the known ones",
			"use a newer version")
	}
	s := &seatbelt{req: *r}
	if err := s.bind(); err != nil {
		return nil, err
	}
	return s.plan(), nil
}

// bind brings the rules and patterns of the request into canonical spelling.
func (s *seatbelt) bind() error {
	levels := map[string]Rule{}
	set := func(r Rule) {
		if old, ok := levels[r.Path]; !ok || r.Level < old.Level {
			levels[r.Path] = r
		}
	}
	if t := s.req.Tmp; t != nil {
		s.tmp = macPath(t.Source.Path)
		set(Rule{Spot: Spot{Path: s.tmp, Kind: t.Source.Kind}, Level: sandbox.LevelWrite})
	}
	s.devices = []string{"null", "zero", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr"}
	for _, r := range s.req.Rules {
		r.Path = macPath(r.Path)
		if within(r.Path, "/dev") {
			if err := s.device(r); err != nil {
				return err
			}
			continue
		}
		if t := s.req.Tmp; t != nil && r.Path == macPath(t.At) && r.Level == sandbox.LevelWrite {
			continue // the private directory takes its place
		}
		if r.Path == "/" {
			s.req.Root = min(s.req.Root, r.Level)
			continue
		}
		set(r)
	}
	s.req.Rules = slices.Collect(maps.Values(levels))
	s.req.sortRules()
	if s.req.Root == sandbox.LevelDeny {
		s.addLoader()
	}
	for _, p := range s.req.Patterns {
		e, err := globExpr(macGlob(p.Glob))
		if err != nil {
			return err
		}
		s.patterns = append(s.patterns, boundPattern{e, p.Level})
	}
	return nil
}

// addLoader makes readable what no program starts without, unless the policy has a rule
// for it.
func (s *seatbelt) addLoader() {
	var add []Rule
	for _, name := range loader {
		ruled := false
		for range s.req.rulesOver(name) {
			ruled = true
		}
		if !ruled {
			add = append(add, Rule{Spot: Spot{Path: name, Kind: KindDirectory}, Level: sandbox.LevelRead})
		}
	}
	s.req.Rules = append(s.req.Rules, add...)
	s.req.sortRules()
}

// device applies a rule for /dev or below it. A policy can only take from the devices that
// a command gets.
func (s *seatbelt) device(r Rule) error {
	name := strings.TrimPrefix(r.Path, "/dev/")
	switch {
	case r.Level == sandbox.LevelRead:
		return nil
	case r.Level == sandbox.LevelDeny && slices.Contains(s.devices, name):
		s.devices = slices.DeleteFunc(s.devices, func(d string) bool { return d == name })
		return nil
	case r.Level == sandbox.LevelDeny && r.Path != "/dev":
		return nil // it is denied anyway
	}
	return unsupported("rules outside the system's own directories",
		fmt.Sprintf("%s cannot be made %s", r.Path, levelWord(r.Level)),
		"leave /dev out of the policy")
}

// regions lists the parts of the tree that have at least a level.
func (s *seatbelt) regions(least sandbox.Level) []region {
	var out []region
	if s.req.Root >= least {
		out = append(out, region{Rule: Rule{Spot: Spot{Path: "/", Kind: KindDirectory}, Level: s.req.Root}})
	}
	for _, r := range s.req.Rules {
		if r.Level >= least && s.req.levelAbove(r.Path) < least {
			out = append(out, region{Rule: r})
		}
	}
	for _, r := range s.req.Rules {
		if r.Level >= least || s.req.levelAbove(r.Path) < least {
			continue
		}
		at := -1
		for i := range out { // sorted, so the last one is the nearest
			if within(r.Path, out[i].Path) {
				at = i
			}
		}
		out[at].except = append(out[at].except, r)
	}
	return out
}

// pins lists the directories whose names decide which paths a rule is about. Moved, they
// would take what is in them out of the rule, so they stay where they are.
func (s *seatbelt) pins() []string {
	set := map[string]bool{}
	for _, g := range s.regions(sandbox.LevelWrite) {
		set[g.Path] = true
	}
	for _, r := range s.req.Rules {
		for at := path.Dir(r.Path); at != "/"; at = path.Dir(at) {
			if s.req.LevelAt(at) == sandbox.LevelWrite {
				set[at] = true
			}
		}
	}
	delete(set, "/")
	return slices.Sorted(maps.Keys(set))
}

// hides returns the expressions for what patterns deny of a level: the patterns themselves
// and, for what follows a "**", the same below every writable root, because a command
// could move a directory there.
func (s *seatbelt) hides(least sandbox.Level) []string {
	var out []string
	for _, p := range s.patterns {
		if p.level >= least {
			continue
		}
		out = append(out, p.tree)
		if p.tail != "" {
			out = append(out, s.belowRoots(p.tail+reBelow)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// belowRoots puts the writable directories before an expression.
func (s *seatbelt) belowRoots(tail string) []string {
	var out []string
	for _, g := range s.regions(sandbox.LevelWrite) {
		if g.Kind != KindFile {
			out = append(out, reStart+anyCase(strings.TrimSuffix(g.Path, "/"))+tail)
		}
	}
	return out
}

// patternPins returns the expressions for directories that patterns need by name.
func (s *seatbelt) patternPins() []string {
	if len(s.belowRoots("")) == 0 {
		return nil // nothing can be moved
	}
	var out []string
	for _, p := range s.patterns {
		out = append(out, p.pins...)
		for _, t := range p.tailPins {
			out = append(out, s.belowRoots(t)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plan writes the profile and the launch.
func (s *seatbelt) plan() *Plan {
	s.write()
	e := direct(&s.req)
	e.Path = SandboxExec
	e.Args = []string{SandboxExec, "-p", s.text.String()}
	for _, p := range s.params {
		e.Args = append(e.Args, "-D"+p.Key+"="+p.Value)
	}
	e.Args = append(append(e.Args, "--", s.req.Program), s.req.Spec.Args[1:]...)
	if s.tmp != "" {
		e.Env = s.req.envWithTmp(s.tmp)
	}
	return &Plan{
		Level: LevelSeatbelt, Mechanism: []string{"seatbelt", "process-group"}, Exec: e,
		Weaker: []string{groupOnly,
			"POSIX semaphores are shared with programs outside that use the same names"},
	}
}
