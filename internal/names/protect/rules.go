// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Why paths are protected, for the printed script and for reports.
const (
	whyPolicy = "policy"
	whyName   = "protected name"
	whyGitDir = "git directory"
	whyGrant  = "grant git"
	// whySettings is for what decides about later runs.
	whySettings = "settings of sallyport"
	whyShut     = "cannot be listed"
	whyHung     = "its server does not answer"
	whyLink     = "symbolic link on the way to what is closed"
	whyNewRepo  = "a new git repository, whose hooks run outside the sandbox"
)

// maxMatches bounds how many files the deny patterns of a policy may match.
const maxMatches = 8192

// hintLink is for a symbolic link that cannot be kept as it is.
const hintLink = "replace it by what it points to, or move it away"

// A ruleset collects rules for what exists at the paths of a policy. No path in them has a
// symbolic link.
//
// Where a sandbox judges by name, rules also hold for what is missing and created later,
// patterns are judged when a file is opened, and a path has the spelling that the volume
// stores. Otherwise something is mounted over what exists.
type ruleset struct {
	byName   bool
	fixes    bool // symbolic links can be kept as they are
	find     finder
	hung     func(dir string) []string // mounts below a directory that nothing may look at; nil is none
	roots    []string                  // writable roots
	resolved map[string]string         // the same, by their paths in the policy
	rules    map[string]plan.Rule

	patterns []plan.Pattern // by name only
	hidden   []string       //nolint:unused,nolintlint // grants for stores of secrets that rules hide, on Linux
	// copying says that copies can be mounted. Copies are of settings with secrets, by their
	// paths without links; rules deny these.
	copying bool
	copies  map[string]Copy
	// invisible are stores of secrets outside of what is listed. They need no rule, unless
	// they are visible at another path.
	invisible []plan.Rule
	entries   map[string][]string // the names in directories that were listed
	// Where only listed paths are visible, the links that lead to them have to be visible
	// as well.
	listed bool
	links  []plan.Link
}

// A finder is [git.Match], with a memory or without.
type finder func(root, key string, want git.Wanted, most int) ([]string, error)

// matchAnew remembers nothing.
func matchAnew(root, key string, want git.Wanted, most int) ([]string, error) {
	return git.Match(root, key, nil, want, most)
}

// newRuleset returns the rules for the entries of a policy. Protected names, which every
// policy has, are left to the caller. Fixes says that symbolic links can be kept as they are.
func newRuleset(policy *sandbox.Resolved, byName, fixes bool, find finder,
	hung func(string) []string) (*ruleset, error) {
	s := &ruleset{
		byName: byName, fixes: fixes, find: find, hung: hung,
		listed:   byName && policy.Root == sandbox.LevelDeny,
		resolved: map[string]string{}, rules: map[string]plan.Rule{}, entries: map[string][]string{},
		copies: map[string]Copy{},
	}
	for _, p := range policy.Paths {
		if p.Level == sandbox.LevelWrite {
			if err := s.addRoot(p); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range policy.Paths {
		if p.Level != sandbox.LevelWrite && !p.Auto {
			if err := s.restrict(p.Path, p.Level, whyPolicy); err != nil {
				return nil, err
			}
		}
	}
	return s, s.addPatterns(policy.Globs, policy.GlobDepth)
}

// sorted returns the rules in the order of their paths.
func (s *ruleset) sorted() []plan.Rule {
	rules := make([]plan.Rule, 0, len(s.rules))
	for _, r := range s.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b plan.Rule) int { return strings.Compare(a.Path, b.Path) })
	return rules
}

// add adds a rule, and reports whether it did: where two meet at one path, the stricter
// wins.
func (s *ruleset) add(r plan.Rule) bool {
	if old, ok := s.rules[r.Path]; ok && old.Level <= r.Level {
		return false
	}
	s.rules[r.Path] = r
	return true
}

// addRoot adds a writable root, at the target of a symbolic link.
func (s *ruleset) addRoot(p sandbox.PathRule) error {
	spot, err := s.look(p.Path, p.Level)
	switch {
	case err != nil:
		return err
	case spot.Kind == plan.KindMissing && p.SkipMissing:
		return nil
	case spot.Kind == plan.KindMissing:
		return &executor.RootError{Path: p.Path, Why: "does not exist, so it cannot be a writable root",
			Fix: "create it first, or leave it out"}
	case spot.Kind == plan.KindOther:
		return &executor.RootError{Path: p.Path,
			Why: "cannot be a writable root: it is neither a directory nor a regular file"}
	}
	s.roots = append(s.roots, spot.Path)
	s.resolved[p.Path] = spot.Path
	s.add(plan.Rule{Spot: spot, Level: sandbox.LevelWrite, Why: "writable"})
	return nil
}

// restrict adds a path that is read-only or denied. Where something is mounted over what
// exists, a missing path needs nothing.
func (s *ruleset) restrict(name string, level sandbox.Level, why string) error {
	spot, err := s.look(name, level)
	if err != nil || spot.Kind == plan.KindMissing && !s.byName {
		return err
	}
	s.add(plan.Rule{Spot: spot, Level: level, Why: why, Auto: level == sandbox.LevelRead && why != whyPolicy})
	return nil
}

// addPatterns adds deny patterns: by name as they are, below the directory that they begin
// with, and otherwise what they match now. What a matching link leads to is denied as it is
// now.
func (s *ruleset) addPatterns(patterns []string, depth int) error {
	groups := map[string][]sandbox.Glob{} // by that directory
	for _, pattern := range patterns {
		g, err := sandbox.CompileGlob(pattern)
		if err != nil {
			return err
		}
		groups[g.Base()] = append(groups[g.Base()], g)
	}
	for _, base := range slices.Sorted(maps.Keys(groups)) {
		if err := s.addGroup(base, groups[base], depth); err != nil {
			return err
		}
	}
	return nil
}

// addGroup adds patterns that begin with the same directory.
func (s *ruleset) addGroup(base string, globs []sandbox.Glob, depth int) error {
	if slices.ContainsFunc(globs, func(g sandbox.Glob) bool { return g.Match(base) }) && !s.byName {
		return s.match(base) // all that the others could match is below it
	}
	spot, err := s.look(base, sandbox.LevelDeny)
	if err != nil {
		return err
	}
	key := []string{spot.Path, base, strconv.Itoa(depth), strconv.FormatBool(s.byName)}
	for _, g := range globs {
		key = append(key, g.String())
		if s.byName {
			s.patterns = append(s.patterns, plan.Pattern{Glob: rebase(g.String(), base, spot.Path),
				Level: sandbox.LevelDeny})
		}
	}
	hung := s.below(spot.Path)
	want := func(below string, kind fs.FileMode) (keep, enter bool) {
		name := filepath.Join(base, below)
		if slices.Contains(hung, filepath.Join(spot.Path, below)) {
			return false, false
		}
		matches := slices.ContainsFunc(globs, func(g sandbox.Glob) bool { return g.Match(name) })
		deep := depth > 0 && strings.Count(below, "/")+1 >= depth
		return matches && (!s.byName || kind&fs.ModeSymlink != 0), !matches && !deep
	}
	most := maxMatches * len(globs)
	if s.byName {
		most = 0
	}
	found, err := s.find(spot.Path, strings.Join(slices.Concat(key, hung), "\x00"), want, most)
	switch {
	case errors.Is(err, git.ErrTooMany):
		return tooMany(strings.Join(key[4:], ", "), most)
	case err != nil:
		return &executor.RootError{Path: base, Why: "cannot be searched for " + strings.Join(key[4:], ", ") +
			": " + hostfacts.Reason(err)}
	}
	matches := make([]int, len(globs))
	for _, below := range found {
		if filepath.Base(below) == git.Shut {
			if !s.byName { // where names are judged, those in it are as well
				err = s.restrict(filepath.Join(spot.Path, below), sandbox.LevelDeny, whyShut+
					", so it cannot be searched for what a pattern denies")
			}
			if err != nil {
				return err
			}
			continue
		}
		for i, g := range globs {
			if g.Match(filepath.Join(base, below)) {
				matches[i]++
			}
			if matches[i] > maxMatches && !s.byName {
				return tooMany(g.String(), maxMatches)
			}
		}
		if err := s.match(filepath.Join(spot.Path, below)); err != nil {
			return err
		}
	}
	s.hide(hung)
	return nil
}

// hide denies mounts of which it is not known what matches there.
func (s *ruleset) hide(hung []string) {
	for _, at := range hung {
		s.add(plan.Rule{Spot: plan.Spot{Path: at, Kind: plan.KindDirectory}, Level: sandbox.LevelDeny,
			Why: whyHung, Auto: true})
	}
}

// below returns the mounts below a directory that nothing may look at.
func (s *ruleset) below(dir string) []string {
	if s.hung == nil {
		return nil
	}
	return s.hung(dir)
}

// tooMany is the error for patterns that match more files than can be denied one by one.
func tooMany(patterns string, most int) error {
	return &executor.RootError{Path: patterns, Why: fmt.Sprintf("matches more than %d files", most),
		Fix: "deny the directory that holds them instead"}
}

// match adds what matches a deny pattern.
func (s *ruleset) match(name string) error {
	st, err := os.Lstat(name)
	switch {
	case missing(err):
		return nil // it is gone
	case err != nil:
		return uninspected(name, err, "")
	case st.Mode()&fs.ModeSymlink == 0:
		return s.restrict(name, sandbox.LevelDeny, "deny pattern")
	}
	// The link itself holds no content; what it leads to does.
	real, _, err := s.resolve(name)
	var at *fs.PathError
	if errors.As(err, &at) && errors.Is(err, fs.ErrPermission) && openable(filepath.Dir(at.Path)) {
		return uninspected(at.Path, err, "") // it may lead to a file, which the command could read later
	}
	if err != nil {
		return nil //nolint:nilerr // a link that leads nowhere hides nothing
	}
	spot, err := s.lookAt(real)
	if err != nil {
		return uninspected(real, err, "")
	}
	if spot.Kind != plan.KindMissing || s.byName {
		s.add(plan.Rule{Spot: spot, Level: sandbox.LevelDeny,
			Why: "target of a link that a deny pattern matches"})
	}
	return nil
}

// look resolves a path for which a rule is to have a level, and says what exists there. A
// symbolic link on the way that a command could change is kept as it is for what denies; for what
// opens something it is an error, because an earlier command may have made it.
func (s *ruleset) look(name string, level sandbox.Level) (plan.Spot, error) {
	real, links, err := s.resolve(name)
	var spot plan.Spot
	if err == nil {
		spot, err = s.lookAt(real)
	}
	if err != nil {
		return spot, uninspected(name, err, "the sandbox must know what exists there")
	}
	if spot.Kind == plan.KindMissing && !s.byName {
		return spot, nil
	}
	if i := slices.IndexFunc(links, func(l plan.Link) bool { return s.inRoot(l.Path) }); i >= 0 {
		if level != sandbox.LevelDeny || !s.fixes {
			return spot, &sandbox.UnsupportedError{
				Need: "a fixed place for " + name,
				Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", links[i].Path),
				Hint: "name the directory or file itself",
			}
		}
		if err := s.fix(links, whyLink); err != nil {
			return spot, err
		}
	}
	if s.listed && level != sandbox.LevelDeny {
		s.links = append(s.links, links...)
	}
	return spot, nil
}

// lookAt says what exists at a path without symbolic links.
func (s *ruleset) lookAt(real string) (plan.Spot, error) {
	spot, err := hostfacts.Look(real)
	if missing(err) {
		return plan.Spot{Path: real, Kind: plan.KindMissing}, nil
	}
	if s.byName {
		spot.ID = launch.ID{} // what takes the place of a file has the same rule
	}
	return spot, err
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// nearest returns the rule for a path or for the nearest directory above it.
func (s *ruleset) nearest(name string) (plan.Rule, bool) {
	for at := name; ; at = filepath.Dir(at) {
		if r, ok := s.rules[at]; ok || at == "/" {
			return r, ok
		}
	}
}

// inRoot reports whether a command could replace what has this name.
func (s *ruleset) inRoot(name string) bool {
	return slices.ContainsFunc(s.roots, func(r string) bool { return name != r && hostfacts.Below(name, r) })
}

// resolve returns the name by which the kernel knows a path, and the symbolic links on the
// way to it. Of a path that does not exist, the part that does is resolved.
func (s *ruleset) resolve(name string) (string, []plan.Link, error) {
	if s.byName {
		return hostfacts.Walk(name, s.stored)
	}
	return hostfacts.Walk(name, nil)
}

// stored returns the name of a directory's entry as it is stored, which on a volume that
// ignores case may differ from the name that it was found by.
func (s *ruleset) stored(dir, name string, st fs.FileInfo) string {
	names, ok := s.entries[dir]
	if !ok {
		if f, err := os.Open(dir); err == nil {
			names, _ = f.Readdirnames(-1) // a directory that cannot be listed keeps what was given
			f.Close()
		}
		s.entries[dir] = names
	}
	if slices.Contains(names, name) {
		return name
	}
	for _, other := range names {
		if o, err := os.Lstat(filepath.Join(dir, other)); err == nil && os.SameFile(o, st) {
			return other
		}
	}
	return name
}

// rebase replaces the fixed beginning of a pattern.
func rebase(pattern, from, to string) string {
	if from == to {
		return pattern
	}
	rest := strings.FieldsFunc(pattern, func(r rune) bool { return r == '/' })
	rest = slices.DeleteFunc(rest, func(s string) bool { return s == "." })
	rest = rest[strings.Count(from, "/"):]
	var b strings.Builder
	for _, c := range []byte(to) {
		if strings.IndexByte(`*?[]{}\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	for _, r := range rest {
		b.WriteString("/" + r)
	}
	return b.String()
}

// fix keeps those of the symbolic links as they are that a command could change.
func (s *ruleset) fix(links []plan.Link, why string) error {
	for _, l := range links {
		if !s.inRoot(l.Path) {
			continue
		}
		spot, err := s.lookAt(l.Path)
		if err != nil {
			return uninspected(l.Path, err, "")
		}
		if s.byName {
			spot.Kind = plan.KindFile
		}
		if spot.Kind != plan.KindMissing {
			s.add(plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: why, Auto: true})
		}
	}
	return nil
}

// linked returns where a protected name that is a symbolic link leads, and keeps the links on the way as
// they are. It is empty where they go round in a circle.
func (s *ruleset) linked(name, why, hint string) (real string, err error) {
	if !s.fixes {
		return "", &sandbox.UnsupportedError{
			Need: "a directory or file at the protected name " + name,
			Have: "it is a symbolic link, which the command could change: " +
				"nothing can be mounted over it at this level",
			Hint: hint,
		}
	}
	real, links, err := s.resolve(name)
	if errors.Is(err, syscall.ELOOP) {
		real, err = "", nil
	}
	if err != nil {
		return "", uninspected(name, err, "")
	}
	return real, s.fix(links, why)
}

// notProtectable returns an error for a protected name at which neither a directory nor a
// file exists, nor a symbolic link, or nil.
func notProtectable(real string, mode fs.FileMode) error {
	if mode.IsDir() || mode.IsRegular() || mode&fs.ModeSymlink != 0 {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: "a directory or file at the protected name " + real, Have: "it is a " +
			hostfacts.KindWord(mode),
		Hint: "remove it, or move it away",
	}
}

// openable reports whether a directory is this user's, so that a command could open what is closed.
func openable(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// uninspected says that a path cannot be looked at.
func uninspected(path string, err error, fix string) error {
	return &executor.RootError{Path: path, Why: "cannot be inspected: " + hostfacts.Reason(err),
		Fix: fix, Err: err}
}
