// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Hides reports whether a policy denies reading some files, so that calls that only
// read have to be observed too.
func Hides(p *sandbox.Resolved) bool {
	return p.Root == sandbox.LevelDeny || len(p.Globs) > 0 || deniesPath(p)
}

func deniesPath(p *sandbox.Resolved) bool {
	return slices.ContainsFunc(p.Paths,
		func(r sandbox.PathRule) bool { return r.Level == sandbox.LevelDeny && !r.Auto })
}

// Names lists the names below a command's writable roots that need a judge. All paths
// are absolute and free of symbolic links. The zero Names has none.
type Names struct {
	// Roots are the writable roots.
	Roots []string
	// Free are directories in them where the command may create any name.
	Free []string
	// Protected are the names that cannot be created.
	Protected []string
	// Git are git directories that the command may write to. Only files and directories
	// can be made in them.
	Git []string
	// Opened are paths in them where that does not hold.
	Opened []string
	// Ruled are the paths that a rule of the plan is about: a mount holds them.
	Ruled []string
	// Hung are hidden mounts whose server does not answer.
	Hung []string
	// Own are repositories that commands have made in earlier runs: they can be removed and moved, and
	// not changed. Commits says that they are open for commits.
	Own     []FileID
	Commits bool
	// Partial says that the search for repositories ended at its bound.
	Partial bool
	// NoMounts says that the level has no mounts of its own.
	NoMounts bool
}

// A PolicyJudge is a [Judge] that rules by a policy on what mounts cannot hold: names that
// do not exist yet, files that match a denied pattern and were made later, and repositories
// that were not known at the start.
type PolicyJudge struct {
	Names
	base        sandbox.Level
	entries     []sandbox.PathRule
	globs       []sandbox.Glob
	denies      bool            // an entry denies a path
	errno       syscall.Errno   // of a write to a protected name
	protected   map[string]bool // as Names.Protected
	protectedIn map[string]bool // their directories
	start       time.Time

	mu sync.Mutex // guards made: Made may be called while a call is judged
	// what the command itself has made: git directories, and directories with files of a bare one
	made map[string]bool
	// its files .git that have not been looked at, and the directories that these are in
	making map[string]FileID
	mine   map[FileID]bool // what was found there
	// repositories of earlier runs in which the command has written what the grant opens
	committed map[FileID]bool
}

// maxMade bounds how many of the command's own repositories are remembered. Those beyond
// it are denied like another program's, and are not among [PolicyJudge.Made].
const maxMade = 1 << 16

// searchTime is how long before a judge is made the search for repositories may have
// passed a directory. It is longer than a tick, in which file systems tell times.
const searchTime = 100 * time.Millisecond

// NewJudge returns the judge of one command. The policy was compiled before, so its
// patterns are valid.
func NewJudge(p *sandbox.Resolved, names Names) *PolicyJudge {
	j := &PolicyJudge{
		Names: names, base: p.Root, entries: p.Paths, denies: deniesPath(p), errno: unix.EROFS,
		start:     time.Now().Add(-searchTime),
		protected: map[string]bool{}, protectedIn: map[string]bool{}, made: map[string]bool{},
		making: map[string]FileID{}, mine: map[FileID]bool{}, committed: map[FileID]bool{},
	}
	for _, pattern := range p.Globs {
		if g, err := sandbox.CompileGlob(pattern); err == nil {
			j.globs = append(j.globs, g)
		}
	}
	if names.NoMounts {
		j.errno = unix.EACCES
	}
	for _, path := range names.Protected {
		j.protected[path], j.protectedIn[filepath.Dir(path)] = true, true
	}
	return j
}

// Rule implements [Judge].
func (j *PolicyJudge) Rule(a Access) Ruling {
	if j.denied(a.Path) && (a.Op == sandbox.Write || !j.above(a.Path)) {
		return Ruling{Errno: unix.EACCES}
	}
	if a.Special && j.granted(a.Path) {
		return Ruling{Errno: unix.EPERM} // as on a file system without links, for which git is prepared
	}
	if a.Op == sandbox.Write {
		j.settle()
		if j.inProtected(a.Path) || !j.keepsOwn(a) || !j.repository(a.Path, a.Creates) {
			return Ruling{Errno: j.errno}
		}
	}
	if a.Op == sandbox.Write && a.Creates {
		j.note(a.Path)
	}
	return Ruling{Allow: true}
}

// inProtected reports whether a path is a protected name, or lies in one: in settings that the user has
// allowed since.
func (j *PolicyJudge) inProtected(path string) bool {
	if len(j.protected) == 0 || !filepath.IsAbs(path) { // a path that is not known
		return false
	}
	for at := path; at != "/"; at = filepath.Dir(at) {
		if j.protected[at] {
			return true
		}
	}
	return false
}

// note remembers what looks like the making of a repository, whether or not it succeeds. The
// files of a git directory are none.
func (j *PolicyJudge) note(path string) {
	dir, name := filepath.Split(path)
	switch {
	case !git.Marks(name), !j.inRoot(path), strings.Contains(dir, "/.git/"):
		return
	case name != ".git":
		path = filepath.Clean(dir)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.made) >= maxMade {
		return
	}
	j.made[path] = true
	if name != ".git" {
		j.own(path)
	} else if at, known := identify(filepath.Clean(dir)); known {
		j.making[path] = at
	}
}

// settle looks at what the command was about to make. Where the directory is another one by now, what is in
// it may be of another program.
func (j *PolicyJudge) settle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for path, dir := range j.making {
		if at, known := identify(filepath.Dir(path)); known && at == dir {
			j.own(path)
		}
	}
	clear(j.making)
}

// own has what is at a path count as made by the command, unless it is older.
func (j *PolicyJudge) own(path string) {
	if id, known := identify(path); known && id.Born >= j.start.UnixNano() && !slices.Contains(j.Own, id) {
		j.mine[id] = true
	}
}

// keepsOwn reports whether a write leaves what is in repositories of earlier runs as it is, or
// takes them away. Names go away one by one, or all at once.
func (j *PolicyJudge) keepsOwn(a Access) bool {
	at, id := j.ownAt(a.Path)
	return at == "" || a.Removes || a.Moves && at == a.Path || j.Commits && j.commits(at, id, a.Path)
}

// commits reports whether the grant opens a path in a repository of an earlier run, which had no linked work
// trees and no submodules when the command started. Those of the command are looked at when it has ended.
// What was moved is not looked at, and stays as it is.
func (j *PolicyJudge) commits(at string, id FileID, path string) bool {
	if path == at || !slices.Contains(j.Git, at) || !committable(path[len(at)+1:]) {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.committed[id] = true
	return true
}

// ownAt returns the repository of an earlier run that is at a path or above it, or is empty.
func (j *PolicyJudge) ownAt(path string) (string, FileID) {
	for at := path; len(j.Own) > 0 && at != "/"; at = filepath.Dir(at) {
		if id, known := identify(at); known && slices.Contains(j.Own, id) {
			return at, id
		}
	}
	return "", FileID{}
}

// ownAbove reports whether a directory lies in a repository of an earlier run, or is one.
func (j *PolicyJudge) ownAbove(dir string) bool {
	at, _ := j.ownAt(dir)
	return at != ""
}

// Made returns where the command has tried to make repositories. The nil judge has seen none.
func (j *PolicyJudge) Made() Made {
	if j == nil {
		return Made{}
	}
	j.settle()
	j.mu.Lock()
	defer j.mu.Unlock()
	return Made{Places: slices.Sorted(maps.Keys(j.made)), IDs: slices.Collect(maps.Keys(j.mine)),
		Committed: slices.Collect(maps.Keys(j.committed))}
}

// EveryName implements [Judge].
func (j *PolicyJudge) EveryName(dir string) bool {
	return len(j.globs) > 0 || j.denies || j.protectedIn[dir] || j.inProtected(dir) ||
		strings.Contains(dir, "/.git") || j.ownAbove(dir) || j.bare(dir) != "" ||
		slices.ContainsFunc(j.Git, func(at string) bool { return hostfacts.Below(dir, at) })
}

// EveryDirectory implements [Judge].
func (j *PolicyJudge) EveryDirectory(name string) bool { return git.Marks(name) }

// granted reports whether a path lies in a git directory that the command may write to.
func (j *PolicyJudge) granted(path string) bool {
	return slices.ContainsFunc(j.Git, func(dir string) bool { return git.Inside(dir, path) }) &&
		!slices.ContainsFunc(j.Opened, func(at string) bool { return hostfacts.Below(path, at) })
}

// entry returns the level of the entry nearest to a path, and whether one covers it.
// Entries are sorted by path, so the last one that covers it is the nearest.
func (j *PolicyJudge) entry(path string) (e sandbox.PathRule, ok bool) {
	for _, e := range slices.Backward(j.entries) {
		if hostfacts.Below(path, e.Path) {
			return e, true
		}
	}
	return sandbox.PathRule{}, false
}

// denied reports whether an entry or a pattern of the policy denies a path. A path that
// no entry lists is not denied.
func (j *PolicyJudge) denied(path string) bool {
	if slices.ContainsFunc(j.globs, func(g sandbox.Glob) bool { return g.MatchTree(path) }) {
		return true
	}
	e, ok := j.entry(path)
	return ok && e.Level == sandbox.LevelDeny && !e.Auto
}

// above reports whether a directory leads to an entry that is visible under a root that
// is not: the directory is visible then, too.
func (j *PolicyJudge) above(path string) bool {
	return j.base == sandbox.LevelDeny && slices.ContainsFunc(j.entries, func(e sandbox.PathRule) bool {
		return e.Level != sandbox.LevelDeny && e.Path != path && hostfacts.Below(e.Path, path)
	})
}

// repository reports whether a write in or to a git directory may pass. Every write may
// in a directory that is known, since mounts protect it, and in one that the command has
// made.
func (j *PolicyJudge) repository(path string, creates bool) bool {
	const name = "/.git"
	for end := 0; ; {
		i := strings.Index(path[end:], name)
		if i < 0 {
			at := j.bare(filepath.Dir(path))
			return at == "" || j.gitDirectory(at, false)
		}
		end += i + len(name)
		if (end == len(path) || path[end] == '/') && j.inRoot(path[:end]) {
			return j.gitDirectory(path[:end], end == len(path) && creates)
		}
	}
}

// bare returns the bare repository that a directory is, or lies in, where the search may not have
// found it; else it is empty.
func (j *PolicyJudge) bare(dir string) string {
	for j.Partial && j.inRoot(dir) {
		if git.IsBare(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// inRoot reports whether a name lies in a writable root and in no free directory.
func (j *PolicyJudge) inRoot(name string) bool {
	inside := func(at string) bool { return name != at && hostfacts.Below(name, at) }
	return slices.ContainsFunc(j.Roots, inside) && !slices.ContainsFunc(j.Free, inside)
}

// gitDirectory reports whether a write to the git directory at, or to a file in it, may
// pass. Creates says that the write creates the directory.
func (j *PolicyJudge) gitDirectory(at string, creates bool) bool {
	covers := func(path string) bool { return hostfacts.Below(path, at) }
	if slices.ContainsFunc(j.Ruled, covers) || slices.ContainsFunc(j.Roots, covers) {
		return true
	}
	if creates {
		return true // and it is noted
	}
	id, known := identify(at)
	switch {
	case !known && !exists(at), slices.Contains(j.Own, id):
		return true // nothing exists to be protected, or it was asked about
	case !known || id.Born < j.start.UnixNano():
		return !j.Partial // the search has found it, or it is no repository
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mine[id]
}

// Hidden implements [Judge].
func (j *PolicyJudge) Hidden(op sandbox.Op, path string) bool {
	for _, at := range j.Hung {
		if hostfacts.Below(path, at) {
			return false // a warning names the mount; a look there would not return
		}
	}
	denied := j.denied(path)
	if !denied {
		e, ok := j.entry(path)
		if j.base != sandbox.LevelDeny || ok && e.Level != sandbox.LevelDeny {
			return false
		}
	}
	if denied && op == sandbox.Write {
		return true
	}
	_, err := os.Lstat(path)
	return err == nil
}
