// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Path is a place that must not change. The zero value names no place.
type Path struct {
	Path    string // absolute; symbolic links in the folder part are resolved
	Missing bool   // nothing stands there, and perhaps some of its folders are missing too
	Folder  bool   // a folder stands there; if Missing, an empty folder there does not disturb git
	Symlink bool   // a symbolic link stands there; what it leads to is a Path of its own
	Why     string // for people, "git hooks" for example
}

// A Repository is one work tree with its git folders. The zero value is none.
type Repository struct {
	Work   string // folder that holds .git, with symbolic links resolved; for a bare repository the git folder
	Link   string // .git in Work; empty for a bare repository
	Dir    string // git folder of this work tree, resolved: Link, or where Link points
	Common string // git folder that linked work trees share, resolved; Dir if there is no commondir

	Pointer       bool // Link is a file that names Dir
	Bare          bool // Work is a git folder itself
	DirMissing    bool // nothing stands at Dir; git refuses to work until something does
	CommonMissing bool // nothing stands at Common

	links []string // symbolic links on the way to Dir and Common
}

// A LinkError tells why the .git of a work tree, or a file that it leads to, cannot
// be understood. Git outside may refuse it too, or will once it has changed.
type LinkError struct {
	Path string // what cannot be understood
	Why  string // half a sentence
	Err  error  // the system's error, or nil
}

// Error returns one sentence with the path, the reason and the mend.
func (e *LinkError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("repo: %s %s: %v; mend it or move it away", e.Path, e.Why, e.Err)
	}
	return fmt.Sprintf("repo: %s %s; mend it or move it away", e.Path, e.Why)
}

// Unwrap returns the system's error, or nil.
func (e *LinkError) Unwrap() error { return e.Err }

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
)

// Open looks at the folder work: at its .git, or at the folder itself if that is a
// bare repository. It returns nil and no error if it is neither, or if there is no
// such folder; it does not look at the folders above. It returns a [*LinkError] if
// .git is a symbolic link or a device, or if a file that names another folder is
// unreadable, broken, or names a file (git does not follow chains). A folder that
// is named but missing is no error.
func Open(work string) (*Repository, error) {
	work, err := filepath.Abs(work)
	if err != nil {
		return nil, &LinkError{Path: work, Why: "has no absolute name", Err: err}
	}
	at, err := follow(work, "")
	if err != nil {
		return nil, &LinkError{Path: work, Why: "cannot be looked at", Err: err}
	}
	switch {
	case at.closed:
		return nil, &LinkError{Path: at.real, Why: "cannot be entered"}
	case at.missing || !at.mode.IsDir():
		return nil, nil
	}
	r := &Repository{Work: at.real, Link: join(at.real, linkName)}
	mode, err := lstat(r.Link)
	switch {
	case err != nil && absent(err):
		return openBare(at.real)
	case err != nil:
		return nil, &LinkError{Path: r.Link, Why: "cannot be looked at", Err: plain(err)}
	case mode.IsDir():
		r.Dir = r.Link
	case mode.IsRegular():
		r.Pointer = true
		if err := r.openPointer(); err != nil {
			return nil, err
		}
	case mode == fs.ModeSymlink:
		return nil, &LinkError{Path: r.Link, Why: "is a symbolic link, which can be turned elsewhere"}
	default:
		return nil, &LinkError{Path: r.Link, Why: "is neither a folder nor a file"}
	}
	if err := r.openCommon(); err != nil {
		return nil, err
	}
	return r, nil
}

// openBare returns the repository whose git folder is dir, which is resolved, or
// nil. What counts is what git's is_git_directory asks for: HEAD, and objects and
// refs, here or in the folder that commondir names.
func openBare(dir string) (*Repository, error) {
	if !stands(join(dir, headName)) {
		return nil, nil
	}
	if !stands(join(dir, commonName)) && (!stands(join(dir, "objects")) || !stands(join(dir, "refs"))) {
		return nil, nil
	}
	r := &Repository{Work: dir, Dir: dir, Bare: true}
	if err := r.openCommon(); err != nil {
		return nil, err
	}
	return r, nil
}

// openPointer reads the file Link and finds Dir.
func (r *Repository) openPointer() error {
	text, err := readFile(r.Link, pointerLimit)
	if err != nil {
		return &LinkError{Path: r.Link, Why: "cannot be read", Err: plain(err)}
	}
	target, why := parsePointer(text)
	if why != "" {
		return &LinkError{Path: r.Link, Why: why}
	}
	at, err := follow(r.Work, target)
	r.Dir, r.DirMissing = at.real, at.missing
	r.links = append(r.links, at.links...)
	return at.refuse(r.Link, err)
}

// openCommon finds Common.
func (r *Repository) openCommon() error {
	r.Common, r.CommonMissing = r.Dir, r.DirMissing
	if r.DirMissing {
		return nil
	}
	file := join(r.Dir, commonName)
	text, err := readFile(file, pointerLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &LinkError{Path: file, Why: "cannot be read", Err: plain(err)}
	}
	target, why := parseCommon(text)
	if why != "" {
		return &LinkError{Path: file, Why: why}
	}
	at, err := follow(r.Dir, target)
	r.Common, r.CommonMissing = at.real, at.missing
	r.links = append(r.links, at.links...)
	return at.refuse(file, err)
}

// pointerLimit is the size in bytes up to which git reads a .git file
// (max_file_size in read_gitfile_gently of its setup.c).
const pointerLimit = 1 << 20

// parsePointer reads the text of a .git file as git does: the mark, and all of the
// rest without the line ends at its end; spaces and line ends inside are part of
// the name. It returns the name, or what is wrong.
func parsePointer(text []byte) (target, why string) {
	rest, ok := strings.CutPrefix(string(text), "gitdir: ")
	if !ok {
		return "", `does not begin with "gitdir: "`
	}
	return parseName(rest)
}

// parseCommon reads the text of a commondir file, which is a name alone.
func parseCommon(text []byte) (target, why string) { return parseName(string(text)) }

func parseName(text string) (target, why string) {
	target = strings.TrimRight(text, "\r\n")
	switch {
	case target == "":
		return "", "names nothing"
	case strings.IndexByte(target, 0) >= 0:
		// Git stops reading there; the rest of the file can only deceive people.
		return "", "has a NUL byte in it"
	}
	return target, ""
}

// A trail is a path that was followed to its end.
type trail struct {
	real    string      // where it ends, without symbolic links
	links   []string    // the symbolic links on the way, each with its folder resolved
	mode    fs.FileMode // type of what stands at real; zero if missing
	missing bool        // nothing stands at real
	closed  bool        // real is a folder on the way that cannot be entered
}

// refuse returns why the folder that a file names, with the error of following it,
// can be no git folder, or nil.
func (t trail) refuse(file string, err error) error {
	switch {
	case err != nil:
		return &LinkError{Path: file, Why: "names a folder that cannot be looked at", Err: err}
	case t.closed:
		return &LinkError{Path: file, Why: "names a folder behind " + t.real + ", which cannot be entered"}
	case !t.missing && !t.mode.IsDir():
		return &LinkError{Path: file, Why: "names " + t.real + ", which is no folder"}
	}
	return nil
}

// maxLinks is how many symbolic links Linux follows in one path (MAXSYMLINKS).
const maxLinks = 40

// errTooManyLinks is what follow returns instead of ELOOP.
var errTooManyLinks = errors.New("too many symbolic links, perhaps in a circle")

// follow walks the path name, relative to the resolved folder start, as the kernel
// does: ".." leads up from where a symbolic link led to. A path that cannot be
// walked because a folder is unreadable ends at that folder.
func follow(start, name string) (trail, error) {
	return new(walker).follow(start, name)
}

// A walker follows paths at one moment: it asks only once whether a folder is one.
// The zero value knows none.
type walker struct {
	folders []string
}

// follow is [follow] with that memory.
func (w *walker) follow(start, name string) (trail, error) {
	at := trail{real: start, mode: fs.ModeDir}
	if name == "" {
		name = start
	}
	rest := at.restart(name)
	for {
		var element string
		element, rest = cutElement(rest)
		switch {
		case element == "":
			return at, nil
		case element == ".":
			continue
		case element == "..":
			at.up()
			continue
		case at.missing:
			at.real = join(at.real, element)
			continue
		}
		next := join(at.real, element)
		if slices.Contains(w.folders, next) {
			at.real, at.mode = next, fs.ModeDir
			continue
		}
		mode, err := lstat(next)
		switch {
		case err != nil && errors.Is(err, fs.ErrPermission):
			at.closed = true
			return at, nil
		case err != nil && !absent(err):
			return at, plain(err)
		case err != nil:
			at.real, at.missing, at.mode = next, true, 0
		case mode == fs.ModeSymlink:
			if len(at.links) == maxLinks {
				return at, errTooManyLinks
			}
			target, err := os.Readlink(next)
			if err != nil {
				return at, plain(err)
			}
			at.links = append(at.links, next)
			rest = at.restart(target + string(filepath.Separator) + rest)
		default:
			at.real, at.mode = next, mode
			if mode.IsDir() && len(w.folders) < maxWalked {
				w.folders = append(w.folders, next)
			}
		}
	}
}

// maxWalked is how many folders a walker remembers; more are looked up slower than
// they are asked for.
const maxWalked = 64

// restart goes to the root if the path is absolute, and returns the path from
// there.
func (t *trail) restart(path string) string {
	if filepath.IsAbs(path) {
		volume := filepath.VolumeName(path)
		t.real, t.mode, t.missing = volume+string(filepath.Separator), fs.ModeDir, false
		return path[len(volume):]
	}
	return path
}

// up goes to the folder that real is in.
func (t *trail) up() {
	t.real, t.mode = filepath.Dir(t.real), fs.ModeDir
	if t.missing {
		t.missing = !stands(t.real)
	}
}

// cutElement takes the first element from a path; both are empty at its end.
func cutElement(path string) (element, rest string) {
	for path != "" && os.IsPathSeparator(path[0]) {
		path = path[1:]
	}
	end := 0
	for end < len(path) && !os.IsPathSeparator(path[end]) {
		end++
	}
	return path[:end], path[end:]
}

// join puts one element behind a clean folder. Unlike filepath.Join it does not
// look through both again.
func join(dir, element string) string {
	if dir != "" && os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + element
	}
	return dir + string(filepath.Separator) + element
}

// stands reports whether something has the name path. What cannot be looked at
// counts as something.
func stands(path string) bool {
	_, err := lstat(path)
	return err == nil || !absent(err)
}

// plain takes the path, which is told anyway, out of the system's error.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// A list collects paths without naming one twice. The zero value is empty.
type list struct {
	walker
	paths []Path
	seen  map[string]bool
}

// listed is how many paths are compared one by one before a map is made.
const listed = 16

// add appends a path unless it is there.
func (l *list) add(p Path) {
	if l.seen == nil {
		if slices.ContainsFunc(l.paths, func(q Path) bool { return q.Path == p.Path }) {
			return
		}
		if l.paths = append(l.paths, p); len(l.paths) > listed {
			l.seen = make(map[string]bool, 4*listed)
			for _, q := range l.paths {
				l.seen[q.Path] = true
			}
		}
		return
	}
	if !l.seen[p.Path] {
		l.seen[p.Path] = true
		l.paths = append(l.paths, p)
	}
}

// follow appends the end of a path and the symbolic links on the way to it. The
// placeholder tells what p.Folder is if nothing stands there. It returns the end;
// one that cannot be found is named as it was written.
func (l *list) follow(start, name, why string, placeholder bool) trail {
	at, err := l.walker.follow(start, name)
	l.symlinks(at.links, why)
	if err != nil {
		return at // a circle: the links are all there is to keep
	}
	l.add(Path{Path: at.real, Missing: at.missing, Folder: at.mode.IsDir() || at.missing && placeholder, Why: why})
	return at
}

// symlinks appends links on the way to something.
func (l *list) symlinks(links []string, why string) {
	for _, link := range links {
		l.add(Path{Path: link, Symlink: true, Why: "symbolic link on the way to " + why})
	}
}

// isLink reports whether path is a symbolic link.
func isLink(path string) bool {
	mode, err := lstat(path)
	return err == nil && mode == fs.ModeSymlink
}

// within reports whether path is dir or lies below it; both are clean.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}
