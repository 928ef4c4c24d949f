// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Path is a place that must not change. The zero value names no place.
type Path struct {
	Path    string // absolute; symbolic links in the directory part are resolved
	Missing bool   // nothing exists there, and perhaps some of its directories are missing too
	IsDir   bool   // a directory exists there
	Symlink bool   // a symbolic link exists there; its target is a Path of its own
	Why     string // for people, such as "git hooks"
}

// A Repository is one work tree with its git directories. The zero value is none.
type Repository struct {
	// directory that contains .git, with symbolic links resolved; for a bare repository the git
	// directory
	Work   string
	Link   string // .git in Work; empty for a bare repository
	Dir    string // git directory of this work tree, resolved: Link, or where Link points
	Common string // git directory that linked work trees share, resolved; Dir if there is no commondir

	Pointer       bool // Link is a file that names Dir, or a symbolic link
	Bare          bool // Work is a git directory itself
	DirMissing    bool // nothing exists at Dir; git refuses to work until something does
	CommonMissing bool // nothing exists at Common

	links []string // symbolic links on the way to Dir and Common
}

// LinkError reports that the .git of a work tree, or a file that it leads to, cannot
// be understood. Git outside may refuse it too, or will once it has changed.
type LinkError struct {
	Path string // what cannot be understood
	Why  string // a clause without its subject
	Err  error  // the system's error, or nil
}

// Error returns the path, the reason and the fix.
func (e *LinkError) Error() string { return message(e.Path, e.Why, e.Err, "fix it or move it away") }

// Unwrap returns the system's error, or nil.
func (e *LinkError) Unwrap() error { return e.Err }

// message is the text of the package's errors.
func message(path, why string, err error, fix string) string {
	path, why = text.Word(path), text.Line(why)
	if err != nil {
		return fmt.Sprintf("git: %s %s: %s; %s", path, why, text.Line(err.Error()), fix)
	}
	return fmt.Sprintf("git: %s %s; %s", path, why, fix)
}

// Names that git looks for.
const (
	linkName      = ".git"
	headName      = "HEAD"
	commonName    = "commondir"
	gitdirName    = "gitdir"
	configName    = "config"
	worktreeName  = "config.worktree"
	worktreesName = "worktrees"
	indexName     = "index"
	hooksName     = "hooks"
)

// Open looks at the directory work: at its .git, or at the directory itself if that
// is a bare repository. It returns nil and no error if it is neither, or if the
// directory does not exist; it does not look at the directories above. It returns a
// [*LinkError] if .git is a device, or if a file that names
// another directory is unreadable, broken, or names a file (git does not follow
// chains). A directory that is named but missing is no error.
func Open(work string) (*Repository, error) {
	at, err := followAbs(work)
	if err != nil {
		return nil, &LinkError{Path: work, Why: "cannot be read", Err: err}
	}
	switch {
	case at.closed:
		return nil, &LinkError{Path: at.real, Why: "cannot be entered", Err: fs.ErrPermission}
	case at.missing || !at.mode.IsDir():
		return nil, nil
	}
	return OpenReal(at.real)
}

// OpenReal is [Open] for a directory that is known to exist, by a path without symbolic links.
func OpenReal(work string) (*Repository, error) {
	r := &Repository{Work: work, Link: join(work, linkName)}
	mode, err := lstat(r.Link)
	switch {
	case err != nil && absent(err):
		return openBare(work)
	case err != nil:
		return nil, &LinkError{Path: r.Link, Why: "cannot be read", Err: cause(err)}
	case mode.IsDir():
		r.Dir = r.Link
	case mode.IsRegular():
		r.Pointer = true
		if r.Dir, r.DirMissing, err = r.pointed(r.Work, linkName, "gitdir: "); err != nil {
			return nil, err
		}
	case mode == fs.ModeSymlink:
		r.Pointer = true
		if err := r.linked(); err != nil {
			return nil, err
		}
	default:
		return nil, &LinkError{Path: r.Link, Why: "is neither a directory nor a file"}
	}
	return r.withCommon()
}

// linked finds Dir where Link is a symbolic link, which git follows.
func (r *Repository) linked() error {
	at, err := follow(r.Work, linkName)
	r.links = append(r.links, at.links...)
	switch {
	case err != nil:
		return &LinkError{Path: r.Link, Why: "is a symbolic link that cannot be followed", Err: err}
	case at.closed:
		return &LinkError{Path: r.Link, Why: "leads behind " + at.real + ", which cannot be entered",
			Err: fs.ErrPermission}
	case !at.missing && at.mode.IsRegular():
		r.Dir, r.DirMissing, err = r.pointed(r.Work, linkName, "gitdir: ")
		return err
	case !at.missing && !at.mode.IsDir():
		return &LinkError{Path: r.Link, Why: "leads to what is neither a directory nor a file"}
	}
	r.Dir, r.DirMissing = at.real, at.missing
	return nil
}

// openBare returns the repository whose git directory is dir, which is resolved, or
// nil.
func openBare(dir string) (*Repository, error) {
	if !IsBare(dir) {
		return nil, nil
	}
	return (&Repository{Work: dir, Dir: dir, Bare: true}).withCommon()
}

// Usable reports whether git takes .git for a git directory (is_git_directory in its setup.c). If
// it does not, git obeys the work tree itself where that is a bare repository. A .git that is a file
// ends that search in any case.
func (r *Repository) Usable() bool {
	if r.Pointer || r.Bare {
		return true
	}
	known, _ := gitstate.LookUp(headName)
	text, err := ReadFile(join(r.Dir, headName), pointerLimit)
	if err != nil || len(text) == 0 || len(known.Form(text)) > 0 {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(join(r.Common, name)); err != nil || !info.IsDir() ||
			info.Mode()&0o100 == 0 {
			return false
		}
	}
	return true
}

// withCommon returns r with Common, which the file commondir in Dir names.
func (r *Repository) withCommon() (*Repository, error) {
	r.Common, r.CommonMissing = r.Dir, r.DirMissing
	if r.DirMissing || !exists(join(r.Dir, commonName)) {
		return r, nil
	}
	var err error
	if r.Common, r.CommonMissing, err = r.pointed(r.Dir, commonName, ""); err != nil {
		return nil, err
	}
	return r, nil
}

// pointerLimit is the size in bytes up to which git reads a .git file
// (max_file_size in read_gitfile_gently of its setup.c).
const pointerLimit = 1 << 20

// pointed returns the directory that a file in dir names behind a prefix, and whether
// it is missing.
func (r *Repository) pointed(dir, name, prefix string) (target string, missing bool, err error) {
	file := join(dir, name)
	text, err := ReadFile(file, pointerLimit)
	if err != nil {
		return "", false, &LinkError{Path: file, Why: "cannot be read", Err: cause(err)}
	}
	target, why := parsePointer(text, prefix)
	if why != "" {
		return "", false, &LinkError{Path: file, Why: why}
	}
	at, err := follow(dir, target)
	switch {
	case err != nil:
		return "", false, &LinkError{Path: file, Why: "names a directory that cannot be read", Err: err}
	case at.closed:
		return "", false, &LinkError{Path: file, Why: "names a directory behind " + at.real +
			", which cannot be entered", Err: fs.ErrPermission}
	case !at.missing && !at.mode.IsDir():
		return "", false, &LinkError{Path: file, Why: "names " + at.real + ", which is not a directory"}
	}
	r.links = append(r.links, at.links...)
	return at.real, at.missing, nil
}

// parsePointer reads the text of a .git or commondir file as git does: the prefix,
// and the rest without the line ends at its end. Spaces and line ends inside are part
// of the name. It returns the name, or what is wrong.
func parsePointer(text []byte, prefix string) (target, why string) {
	rest, ok := strings.CutPrefix(string(text), prefix)
	target = strings.TrimRight(rest, "\r\n")
	switch {
	case !ok:
		return "", fmt.Sprintf("does not begin with %q", prefix)
	case target == "":
		return "", "names nothing"
	case strings.IndexByte(target, 0) >= 0:
		// Git stops reading there; the rest of the file can only deceive people.
		return "", "contains a NUL byte"
	}
	return target, ""
}
