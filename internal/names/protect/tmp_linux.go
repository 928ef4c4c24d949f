// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// whyState is the reason of rules for directories of sallyport's own.
const whyState = "sallyport's own state"

// hideState denies the records of sallyport and the private directories of other runs,
// wherever they lie and whatever is mounted at /tmp. It refuses links on the way to them that a
// command could replace: later runs would take a directory of its making for sallyport's own.
func (g *inspection) hideState(dirs, missing []string) error {
	for _, d := range slices.Concat(dirs, missing) {
		for _, l := range hostfacts.Links(filepath.Dir(d)) {
			if g.inRoot(l.Path) {
				return &sandbox.UnsupportedError{
					Need: "a fixed place for sallyport's own state in " + d,
					Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", l.Path),
					Hint: "replace the link by the directory itself, or make only directories below writable",
				}
			}
		}
	}
	for _, d := range dirs {
		at := hostfacts.RealPath(d)
		for path, rule := range g.rules {
			if path != at && hostfacts.Below(path, at) && rule.Level != sandbox.LevelDeny {
				return &executor.RootError{Path: path,
					Why: "lies in " + whyState + ", which no command may see",
					Fix: "leave it out, and run the command in another directory"}
			}
		}
		g.hideDir(at)
	}
	return nil
}

// claimState keeps the command from making a directory that later runs would take for
// sallyport's own, and refuses one that nothing hides and the command could write to. Where one
// can be hidden it is made, as a run that uses it would do: to quarantine what appears would take
// it from such a run.
func (g *inspection) claimState(r *Request) error {
	within := func(path string) bool {
		return (g.tmpAt == "" || !hostfacts.Below(path, g.tmpAt)) &&
			g.level(filepath.Dir(path)) == sandbox.LevelWrite
	}
	for _, path := range r.State {
		if !g.mounts && within(hostfacts.RealPath(path)) {
			return &sandbox.UnsupportedError{
				Need: "sallyport's own state in " + path + " out of reach of the command",
				Have: "it lies in a writable root, and nothing can be mounted over it at this level",
				Hint: "make only directories beside it writable",
			}
		}
	}
	for _, path := range r.NoState {
		path = hostfacts.Deepest(path)
		_, err := os.Lstat(path)
		switch {
		case !within(path):
		case err != nil && !missing(err): // an earlier command may have closed what is above
			return uninspected(path, err,
				"sallyport's own state in a writable place must be known; change the mode of the directories on the way")
		case g.mounts && r.Protector != nil && g.makeState(path):
		default:
			g.claimMissing(git.Path{Path: path, Missing: true, Why: whyState})
		}
	}
	return nil
}

// makeState makes a state directory in one that exists, hides it, and reports whether it has.
func (g *inspection) makeState(path string) bool {
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return false
	}
	defer parent.Close()
	own, err := safefile.MakeDir(parent, filepath.Base(path))
	if err != nil {
		return false
	}
	own.Close()
	return g.hideDir(path)
}

// hideDir denies a directory of sallyport's own, and reports whether it is one.
func (g *inspection) hideDir(path string) bool {
	s, err := hostfacts.Look(path)
	if err != nil || s.Kind != plan.KindDirectory {
		return false
	}
	g.rules[path] = plan.Rule{Spot: s, Level: sandbox.LevelDeny, Why: whyState, Auto: true}
	return true
}

// chooseTmp decides what is mounted at /tmp. Nothing leaves the host's.
func (g *inspection) chooseTmp(r *Request) error {
	at := hostfacts.RealPath("/tmp")
	if rule, ok := g.rules[at]; ok && rule.Level == sandbox.LevelDeny || r.Tmp == "host" {
		return nil
	}
	private := r.Tmp == "" || r.Tmp == "private"
	dir := r.PrivateTmp
	if !private {
		dir = hostfacts.RealPath(r.Tmp)
	}
	source, err := hostfacts.Look(dir)
	switch {
	case private && err != nil:
		return fmt.Errorf("the private /tmp was removed while it is in use: %w",
			&fs.PathError{Op: "lstat", Path: dir, Err: err})
	case !private && !filepath.IsAbs(r.Tmp):
		return &executor.RootError{Path: r.Tmp, Why: "cannot be mounted at /tmp",
			Fix: "use private, host, or an absolute path"}
	case err != nil || source.Kind != plan.KindDirectory:
		return &executor.RootError{Path: r.Tmp,
			Why: "cannot be mounted at /tmp, because it is not a directory", Fix: "create it first"}
	}
	g.tmp, g.tmpAt = &plan.Tmp{At: at, Source: source, Asked: !private}, at
	return nil
}

// showDir makes the working directory readable where a directory of the sandbox's own hides it, such as
// the private /tmp: the policy permits the command to read it. What it denies there stays denied.
func (g *inspection) showDir() error {
	hides := func(own string) bool { return own != "" && g.dir != own && hostfacts.Below(g.dir, own) }
	if !g.mounts || !g.unseen(g.dir) || g.level(g.dir) == sandbox.LevelDeny ||
		!slices.ContainsFunc([]string{"/run", "/dev/shm", g.tmpAt}, hides) {
		return nil
	}
	spot, err := hostfacts.Look(g.dir)
	if err != nil {
		return uninspected(g.dir, err, "")
	}
	g.rules[g.dir] = plan.Rule{Spot: spot, Level: sandbox.LevelRead, Why: "the working directory"}
	return nil
}

// checkTmp looks at a directory of the user's that is to be mounted at /tmp. The command
// may write everywhere in it, and no rule for its own path holds there: so nothing may be
// in it that the policy denies to the command, and no command may have chosen it.
func (g *inspection) checkTmp(name string, spot plan.Spot) error {
	refuse := func(fix, format string, args ...any) error {
		return &executor.RootError{Path: name, Why: "cannot be mounted at /tmp: " +
			fmt.Sprintf(format, args...), Fix: fix}
	}
	const another, own = "name another directory", "name a directory of your own"
	for _, l := range hostfacts.Links(name) {
		if g.inRoot(l.Path) {
			return refuse("name the directory itself",
				"it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", l.Path)
		}
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if hostfacts.Below(spot.Path, system) && !hostfacts.Below(spot.Path, "/dev/shm") {
			return refuse(own, "it belongs to the system")
		}
	}
	if spot.Path == "/" {
		return refuse(own, "it is the whole disk")
	}
	for _, r := range g.sorted() {
		if r.Path != spot.Path && hostfacts.Below(r.Path, spot.Path) && r.Level != sandbox.LevelWrite {
			return refuse(another, "the policy restricts %s in it, which would not hold there", r.Path)
		}
	}
	if r, ok := g.nearest(spot.Path); ok && r.Level == sandbox.LevelDeny {
		return refuse(another, "the policy denies it")
	}
	for _, c := range slices.Concat(g.claims, g.unreachable) {
		if hostfacts.Below(c.Path, spot.Path) {
			return refuse(another, "the policy protects the name %s in it, which would not hold there", c.Path)
		}
	}
	if protected := g.claimInTmp(spot.Path); protected != "" {
		return refuse(another, "%s is protected, and would not be there", protected)
	}
	return nil
}

// claimInTmp protects a directory that is mounted at /tmp, where no rule can hold for its
// names: it returns a protected path that exists there, and claims those that are missing.
// Repositories further below are not searched for: commands create them there.
func (g *inspection) claimInTmp(dir string) (protected string) {
	paths, _ := g.outside.Protected() // what is wrong there is reported elsewhere
	for _, n := range sandbox.ProtectedNames() {
		at := filepath.Join(dir, n)
		_, err := os.Lstat(at)
		paths = append(paths, git.Path{Path: at, Missing: errors.Is(err, fs.ErrNotExist), Why: whyName})
	}
	names, _ := grants.LookForTools(dir) // as above
	g.seen.names = append(g.seen.names, names...)
	for _, at := range names {
		if at.Stat != nil && !slices.Contains(g.seen.granted, at.Grant) {
			paths = append(paths, git.Path{Path: at.Path, Why: whyLater + at.Grant})
		}
	}
	for at := dir; ; at = filepath.Dir(at) {
		paths = append(paths, g.workTree(at).paths...)
		if at == "/" {
			break
		}
	}
	for _, p := range paths {
		switch {
		case !p.Missing && (hostfacts.Below(p.Path, dir) || p.IsDir && hostfacts.Below(dir, p.Path)):
			return fmt.Sprintf("%s (%s)", p.Path, p.Why)
		case hostfacts.Below(p.Path, dir):
			g.claimMissing(p)
		}
	}
	return ""
}
