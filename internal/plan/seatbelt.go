// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// LevelSeatbelt is the level of a plan for macOS: the kernel's Seatbelt module
// judges every operation by a profile.
const LevelSeatbelt = "seatbelt"

// SandboxExec is the program that puts itself under a profile and then becomes
// the command (sandbox-exec(1)). The path is fixed, so that PATH has no say.
const SandboxExec = "/usr/bin/sandbox-exec"

// dataVolume is where macOS mounts the volume that holds everything but the
// system itself. Folders of it appear at / too, as firm links.
const dataVolume = "/System/Volumes/Data"

// loader are the paths that no program starts without: the dynamic linker's
// caches, what /bin/sh is, and the table of time zones.
var loader = []string{"/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select"}

// macPath brings a path into the one spelling that the kernel knows it by.
func macPath(name string) string {
	if rest, ok := strings.CutPrefix(name, dataVolume); ok && rest != "" && rest[0] == '/' {
		for _, top := range []string{"/Applications", "/Library", "/Users", "/Volumes", "/cores", "/opt", "/private", "/usr/local"} {
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

// macGlob does the same for a pattern, which may have backslashes in it.
func macGlob(pattern string) string {
	g, err := sandbox.CompileGlob(pattern)
	if err == nil && macPath(g.Base()) == "/private"+g.Base() {
		return "/private/" + strings.TrimLeft(pattern, "/")
	}
	return macPath(pattern)
}

// A Param is a value that a profile takes by name. No text of a user's stands
// in the profile itself, so none can end a string in it.
type Param struct{ Key, Value string }

// A seatbelt is one profile in the making.
type seatbelt struct {
	req      *Request
	root     sandbox.Level
	rules    []Rule // canonical paths, unique, sorted
	patterns []boundPattern
	tmp      string   // the private folder; empty without one
	devices  []string // below /dev, those that the policy does not deny

	params []Param
	text   strings.Builder
}

// A boundPattern is a pattern with its level.
type boundPattern struct {
	globExpr
	level sandbox.Level
}

// A region is a part of the tree that has at least some level, without those
// parts of it that have less.
type region struct {
	Rule
	except []Rule
}

// planSeatbelt plans one command for macOS.
func planSeatbelt(h *Host, r *Request) (*Plan, error) {
	switch {
	case r.unconfined():
		return &Plan{Level: LevelNone, Mechanism: []string{"process-group"}, Weaker: []string{groupOnly}, Exec: direct(r)}, nil
	case r.Spec.Policy.Mode() != sandbox.Managed:
		return nil, &sandbox.UnsupportedError{
			Need: "a network of its own for a command that is confined elsewhere", Have: "macOS has no private networks",
			Hint: "use the host's network, or a policy that confines files too",
		}
	}
	if len(h.Missing) > 0 {
		m := h.Missing[0]
		return nil, &sandbox.UnsupportedError{Need: m.Need, Have: m.Have, Hint: m.Hint}
	}
	switch {
	case r.network() == sandbox.NetworkProxy:
		return nil, &sandbox.UnsupportedError{
			Need: "the managed proxy", Have: "this version does not have it", Hint: "use no network, or the host's",
		}
	case r.Root > sandbox.LevelWrite:
		return nil, &sandbox.UnsupportedError{Need: "a policy that this version knows", Have: "it has a level beyond the known ones", Hint: "use a newer version"}
	case len(r.Spec.Allow) > 0:
		return nil, &sandbox.UnsupportedError{
			Need: "the opening " + r.Spec.Allow[0], Have: "such openings belong to the system call filter of Linux",
			Hint: "leave it out, or run it with full access",
		}
	}
	s := &seatbelt{req: r, root: r.Root}
	if err := s.bind(); err != nil {
		return nil, err
	}
	return s.plan(), nil
}

// groupOnly is what no level stops on systems where a tree of processes is held
// together by its process group alone.
const groupOnly = "what leaves the command's process group is neither found nor ended"

// bind takes over what the request says, in canonical spelling.
func (s *seatbelt) bind() error {
	levels := map[string]Rule{}
	set := func(r Rule) {
		if old, ok := levels[r.Path]; !ok || r.Level < old.Level {
			levels[r.Path] = r
		}
	}
	if t := s.req.Tmp; t != nil {
		s.tmp = macPath(t.Source.Path)
		set(Rule{Spot: Spot{Path: s.tmp, Kind: t.Source.Kind}, Level: sandbox.LevelWrite, Why: "private folder for temporary files"})
	}
	s.devices = deviceNames()
	for _, r := range s.req.Rules {
		r.Path = macPath(r.Path)
		if within(r.Path, "/dev") {
			if err := s.device(r); err != nil {
				return err
			}
			continue
		}
		if t := s.req.Tmp; t != nil && r.Path == macPath(t.At) && r.Level == sandbox.LevelWrite {
			continue // the private folder takes its place
		}
		if r.Path == "/" {
			s.root = min(s.root, r.Level)
			continue
		}
		set(r)
	}
	if s.root == sandbox.LevelDeny {
		for _, name := range loader {
			if !hasWord(levels, name) {
				set(Rule{Spot: Spot{Path: name, Kind: KindFolder}, Level: sandbox.LevelRead, Why: "system"})
			}
		}
	}
	for _, r := range levels {
		s.rules = append(s.rules, r)
	}
	slices.SortFunc(s.rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	for _, p := range s.req.Patterns {
		e, err := globToExpr(macGlob(p.Glob))
		if err != nil {
			return err
		}
		s.patterns = append(s.patterns, boundPattern{e, p.Level})
	}
	return nil
}

// hasWord reports whether a policy has a word about a path, or about a folder
// above it other than the root.
func hasWord(levels map[string]Rule, name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		if _, ok := levels[name]; ok {
			return true
		}
	}
	return false
}

// device takes a rule for /dev or below it. What a command gets there is fixed;
// a policy can only take from it.
func (s *seatbelt) device(r Rule) error {
	name := strings.TrimPrefix(r.Path, "/dev/")
	switch {
	case r.Level == sandbox.LevelRead:
		return nil
	case r.Level == sandbox.LevelDeny && slices.Contains(s.devices, name):
		s.devices = slices.DeleteFunc(s.devices, func(d string) bool { return d == name })
		return nil
	case r.Level == sandbox.LevelDeny && r.Path != "/dev":
		return nil // nothing of it is given
	}
	return &sandbox.UnsupportedError{
		Need: "rules outside the system's own folders", Have: fmt.Sprintf("%s cannot be made %s", r.Path, levelWord(r.Level)),
		Hint: "leave /dev out of the policy",
	}
}

// level is the level of a path by the rules at and above it.
func (s *seatbelt) level(name string, above bool) sandbox.Level {
	level := s.root
	for _, r := range s.rules { // sorted, so the last one is the nearest
		if within(name, r.Path) && !(above && r.Path == name) {
			level = r.Level
		}
	}
	return level
}

// regions lists the parts of the tree that have at least a level.
func (s *seatbelt) regions(least sandbox.Level) []region {
	var out []region
	if s.root >= least {
		out = append(out, region{Rule: Rule{Spot: Spot{Path: "/", Kind: KindFolder}, Level: s.root}})
	}
	for _, r := range s.rules {
		if r.Level >= least && s.level(r.Path, true) < least {
			out = append(out, region{Rule: r})
		}
	}
	for _, r := range s.rules {
		if r.Level >= least || s.level(r.Path, true) < least {
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

// pins are the folders whose names decide what a rule is about. Moving one
// would take what is in it out of the rule, so they stay where they are.
func (s *seatbelt) pins() []string {
	set := map[string]bool{}
	for _, g := range s.regions(sandbox.LevelWrite) {
		set[g.Path] = true
	}
	names := []string{}
	for _, r := range s.rules {
		names = append(names, r.Path)
	}
	for _, name := range names {
		for at := path.Dir(name); at != "/"; at = path.Dir(at) {
			if s.level(at, false) == sandbox.LevelWrite {
				set[at] = true
			}
		}
	}
	delete(set, "/")
	out := []string{}
	for name := range sorted(set) {
		out = append(out, name)
	}
	return out
}

// hides are the expressions for what patterns keep from a level: the patterns
// themselves and, for what follows a "**", the same below every writable root,
// because a command could move a folder there.
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

// belowRoots puts the writable folders before an expression.
func (s *seatbelt) belowRoots(tail string) []string {
	var out []string
	for _, g := range s.regions(sandbox.LevelWrite) {
		if g.Kind != KindFile {
			out = append(out, reStart+anyCase(strings.TrimSuffix(g.Path, "/"))+tail)
		}
	}
	return out
}

// patternPins are the expressions for folders that patterns need by name.
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
	e := direct(s.req)
	e.Path = SandboxExec
	e.Args = []string{SandboxExec, "-p", s.text.String()}
	for _, p := range s.params {
		e.Args = append(e.Args, "-D"+p.Key+"="+p.Value)
	}
	e.Args = append(append(e.Args, "--", s.req.Program), s.req.Spec.Args[1:]...)
	if s.tmp != "" {
		for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
			e.Env = setVar(e.Env, name, s.tmp)
		}
	}
	return &Plan{
		Level: LevelSeatbelt, Mechanism: []string{"seatbelt", "process-group"}, Exec: e,
		Weaker: []string{groupOnly, "POSIX semaphores are shared with programs outside that use the same names"},
	}
}
