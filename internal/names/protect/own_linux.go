// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A repository that a command made below the workspace is known again by later runs, by the file
// .git itself and not by its name, as long as nothing in it is new or has changed since: what
// people do in a repository makes it theirs. Nothing is mounted over one or keeps its directories
// in place, so it can be removed and moved as a whole, and the judge denies all else in it. With the
// grant for git it leaves open what that opens anywhere.

// A FileID names a file for good: the number of one that was removed is used again, but not with
// the time at which it was created. The zero FileID names none.
type FileID struct {
	Dev, Ino uint64
	Born     int64 // in nanoseconds
}

// identify returns what names the file at a path, which no link may be. It is false where nothing
// is there, and on a file system that keeps no times of creation.
func identify(path string) (FileID, bool) {
	const want = unix.STATX_INO | unix.STATX_BTIME
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, want, &st) != nil || st.Mask&want != want {
		return FileID{}, false
	}
	return FileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino,
		st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}, true
}

const (
	// maxContents is how many names a git directory may have that is known again; objects do not
	// count. A clone has about 50.
	maxContents = 4096
	// maxOwn is how many repositories are remembered. The oldest ones are forgotten, and closed.
	maxOwn = 1000
)

// contents returns a line for each name in a git directory but those of objects, which differs
// when the file does, or one line for a file .git. Directories differ only by their numbers, so
// that what is removed changes nothing but its own line. Names that committed reports are left out.
func contents(at string, committed func(name string) bool) (lines []string, ok bool) {
	err := filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := strings.TrimPrefix(path, at+"/"); name != path && committed(name) {
			return nil
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		line := fmt.Sprintf("%q %o %d", strings.TrimPrefix(path, at), st.Mode, st.Ino)
		if !e.IsDir() {
			line += fmt.Sprintf(" %d %d", st.Size, unix.TimespecToNsec(unix.Timespec(st.Ctim)))
		}
		if lines = append(lines, line); len(lines) > maxContents {
			return fs.ErrInvalid
		}
		if e.IsDir() && e.Name() == "objects" && exists(filepath.Join(filepath.Dir(path), "HEAD")) {
			return fs.SkipDir
		}
		return nil
	})
	return lines, err == nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// name returns the name of the file about the repository.
func (id FileID) name() string {
	sum := sha256.Sum256(fmt.Append(nil, id))
	return hex.EncodeToString(sum[:16])
}

// owned calls f with the directory of files about repositories that commands have made.
func (s *Scans) owned(f func(dir string)) {
	if s == nil {
		return
	}
	if dir, err := s.open("own"); err == nil {
		defer func() { _ = dir.Close() }()
		f(fmt.Sprintf("/proc/self/fd/%d", dir.FD))
	}
}

// nothing is for [contents] of all names.
func nothing(string) bool { return false }

// unchanged reports whether nothing in the git directory, or in the file, at a path is new or has changed
// since its lines were written to a file, but for names that committed reports.
func unchanged(at, file string, committed func(name string) bool) bool {
	text, err := safefile.ReadSystem(file)
	if err != nil {
		return false
	}
	old := map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		old[line] = true
	}
	lines, ok := contents(at, committed)
	return ok && !slices.ContainsFunc(lines, func(line string) bool { return !old[line] })
}

// An ownRepository is one that a command made in an earlier run.
type ownRepository struct {
	work string
	at   string // .git, or a bare one
	id   FileID
	repo *git.Repository
}

// ownAmong returns those of the repositories that were found that commands made and that can be
// left to the judge: all that git obeys because of them is in them, or closed.
func (g *inspection) ownAmong(found []string) []ownRepository {
	if !g.judged || len(found) == 0 {
		return nil
	}
	var own []ownRepository
	g.scans.owned(func(dir string) {
		entries, _ := os.ReadDir(dir) // sorted; what cannot be listed knows none
		for _, work := range found {
			o := ownRepository{work: work, at: filepath.Join(work, ".git")}
			if !exists(o.at) {
				o.at = work
			}
			var known bool
			if o.id, known = identify(o.at); !known {
				continue
			}
			_, listed := slices.BinarySearchFunc(entries, o.id.name(),
				func(e os.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
			if !listed || !unchanged(o.at, filepath.Join(dir, o.id.name()), nothing) {
				continue
			}
			r, err := git.Open(work)
			if o.repo = r; err == nil && r != nil && !r.DirMissing && !r.CommonMissing {
				own = append(own, o)
			}
		}
	})
	return own
}

// contained reports whether the judge alone can hold what git obeys because of a repository that a
// command made.
func (g *inspection) contained(o ownRepository, own []ownRepository) bool {
	for name := range g.rules {
		if hostfacts.Below(name, o.at) {
			return false // an entry of the policy, or what another repository obeys
		}
	}
	inside := func(path string) bool { return inOwn(own, path) != "" }
	paths, err := o.repo.Protected(g.outside)
	if err != nil || slices.ContainsFunc(paths, func(p git.Path) bool {
		return p.Symlink && inside(p.Path) || !inside(p.Path) && !submodule(p) && g.writable(p.Path)
	}) {
		return false
	}
	if !g.git {
		return true
	}
	// The judge goes by names: it keeps nothing shut whose name the grant opens, and knows nothing of the
	// other git directories in this one.
	if !inside(o.repo.Dir) || exists(o.at+"/worktrees") || exists(o.at+"/modules") {
		return false
	}
	paths, err = o.repo.Shut(g.outside)
	if g.ungrantable(o.repo, false, paths, err) != "" {
		return false
	}
	return !slices.ContainsFunc(paths, func(p git.Path) bool {
		at := inOwn(own, p.Path)
		return at != "" && p.Path != at && git.Writable(p.Path[len(at)+1:])
	})
}

// committable reports whether a name in a repository of an earlier run is open with the grant. As there are
// no linked work trees at the start, their pointers are. Nothing can make "modules", so nothing is in it.
func committable(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	base := filepath.Base(name)
	return git.Writable(name) || first == "worktrees" && (base == "commondir" || base == "gitdir")
}

// inOwn returns the repository of an earlier run that a path is in, or is; else it is empty.
func inOwn(own []ownRepository, path string) string {
	for _, o := range own {
		if hostfacts.Below(path, o.at) {
			return o.at
		}
	}
	return ""
}

// submodule reports whether a path is the missing .git of a submodule, which is claimed. One made at
// another place is a new repository.
func submodule(p git.Path) bool { return p.Missing && filepath.Base(p.Path) == ".git" }

// protectFound protects what a search has found below a root, the ones higher up first, and leaves those
// to the judge that commands made.
func (g *inspection) protectFound(found []string) error {
	own := g.ownAmong(found)
	for _, work := range found {
		if slices.ContainsFunc(own, func(o ownRepository) bool { return o.work == work }) {
			continue
		}
		if err := g.protectOne(work); err != nil {
			return err
		}
	}
	for i := 0; i < len(own); i++ {
		if g.contained(own[i], own) {
			continue
		}
		if err := g.protectOne(own[i].work); err != nil {
			return err
		}
		own, i = slices.Delete(own, i, i+1), -1 // the others may lead there
	}
	for _, o := range own {
		paths, _ := o.repo.Protected(g.outside) // contained has read them without an error
		paths = slices.DeleteFunc(paths, func(p git.Path) bool { return !submodule(p) })
		if err := g.close(paths); err != nil {
			return err
		}
		if g.level(o.at) == sandbox.LevelWrite {
			g.seen.own = append(g.seen.own, o)
		}
		if g.git {
			g.granted = append(g.granted, *g.workTree(o.work))
		}
	}
	return nil
}

// keep remembers the repositories that the command has made, for later runs.
func (s *seen) keep(names []string, made *Made) {
	if made == nil || len(names) == 0 {
		return // nothing tells who made them
	}
	s.scans.owned(func(dir string) {
		for _, name := range names {
			id, known := identify(name)
			if !known || !slices.Contains(made.IDs, id) {
				continue
			}
			remember(dir, name, id)
		}
		prune(dir, maxOwn)
	})
}

// remember writes down what is in a repository that commands have made.
func remember(dir, at string, id FileID) {
	if lines, ok := contents(at, nothing); ok {
		_ = safefile.Replace(filepath.Join(dir, id.name()), []byte(strings.Join(lines, "\n")))
	}
}

// changed returns those of the repositories of earlier runs that are other ones by now, or have something
// new in them, and reports whether some are not where they were. One in which only the command has committed
// stays a repository that commands have made.
func (s *seen) changed(made *Made) (names []string, gone bool) {
	committed := nothing
	if slices.Contains(s.granted, GrantGit) {
		committed = git.Writable
	}
	s.scans.owned(func(dir string) {
		for _, o := range s.own {
			id, _ := identify(o.at)
			gone = gone || id != o.id
			switch {
			case !exists(o.at):
			case id != o.id || !unchanged(o.at, filepath.Join(dir, id.name()), committed):
				names = append(names, o.at)
			case slices.Contains(made.Committed, id):
				remember(dir, o.at, id)
			}
		}
	})
	return names, gone
}
