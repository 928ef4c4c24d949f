// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// sharedTmp is where users whose home cannot hold a state directory have one. TMPDIR does not
// count: it may name a directory in which commands write, and could have made one of ours.
const sharedTmp = "/tmp"

// Candidates are where sallyport may keep what outlives a run, best first: the state
// directory of the XDG base directory rules and, for users whose home cannot hold it, a
// directory of their own in /tmp. A directory that was asked for by name has no substitute.
func Candidates() []string {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return []string{filepath.Join(d, "sallyport")}
	}
	return usual()
}

// usual are the candidates where none is asked for by name.
func usual() []string {
	var dirs []string
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local", "state", "sallyport"))
	}
	return append(dirs, fmt.Sprintf("%s/sallyport-%d", sharedTmp, os.Getuid()))
}

// Protected returns the state directories that exist, for no command may see or change one,
// also one that only runs with another XDG_STATE_HOME use, and the names of those that are
// missing or cannot be looked at, which no command may make. What stands at such a name and is
// no directory, for example a symbolic link that a command has made, is in neither list. One that
// others can enter counts, because its first use closes it. There may be links on the way.
func Protected() (dirs, missing []string) {
	all := append(Candidates(), usual()...)
	slices.Sort(all)
	for _, d := range slices.Compact(all) {
		switch info, err := os.Lstat(d); {
		case err != nil:
			missing = append(missing, d)
		case info.IsDir():
			dirs = append(dirs, d)
		}
	}
	return dirs, missing
}

// Dir returns the state directory, without symbolic links in its name. It is made if it is
// missing, for this user alone. The error is about the first candidate.
func Dir() (string, error) {
	return first(func(*safefile.Own, string) error { return nil })
}

// first makes the candidates, and returns the first for which f has no error.
func first(f func(root *safefile.Own, dir string) error) (string, error) {
	var why error
	for _, d := range Candidates() {
		var root *safefile.Own
		real, err := checkWay(d)
		if err == nil {
			root, err = safefile.MakeOwn(d)
		}
		if err == nil {
			if d = real; d == "" {
				d = realPath(root.Path)
			}
			err = f(root, d)
			_ = root.Close()
			if err == nil {
				return d, nil
			}
		}
		if why == nil {
			why = err
		}
	}
	return "", why
}

// Existing returns the state directories in which runs of this user may have left
// something, without symbolic links in their names. What is not closed to others, or a
// symbolic link itself, is not among them.
func Existing() []string {
	var out []string
	for _, d := range Candidates() {
		if safefile.CheckOwn(d) != nil {
			continue
		}
		if _, err := checkWay(d); err == nil {
			out = append(out, realPath(d))
		}
	}
	return out
}

// checkWay refuses a state directory of root's that another user could replace, because a
// directory on the way to it, or one that holds a link on the way, is that user's: as with a
// HOME that sudo(8) has kept. Other users trust those above them with more than this. It returns the
// directory without symbolic links in its name, or nothing where it has not looked.
func checkWay(dir string) (string, error) {
	if !systemRoot() {
		return "", nil
	}
	real, links, err := hostfacts.Walk(filepath.Dir(dir), nil)
	if err != nil {
		return "", err
	}
	ways := []string{real}
	for _, l := range links {
		ways = append(ways, filepath.Dir(l.Path))
	}
	for _, at := range ways {
		for ; at != "/"; at = filepath.Dir(at) {
			var st unix.Stat_t
			if err := unix.Lstat(at, &st); err == nil && st.Uid != 0 {
				return "", &safefile.ForeignError{Path: dir,
					Why: "another user owns " + at + " on the way to it"}
			}
		}
	}
	return filepath.Join(real, filepath.Base(dir)), nil
}

// realPath resolves the links on the way to a state directory, whose own name is none.
func realPath(dir string) string {
	return filepath.Join(hostfacts.RealPath(filepath.Dir(dir)), filepath.Base(dir))
}

// A Tmp is the directory that commands see as /tmp. It is locked as long as its owner
// lives, so that a later start can tell a crash from a run.
type Tmp struct {
	Path   string
	parent *os.File
	lock   *os.File
}

const (
	tmpDir    = "tmp"
	runPrefix = "run-" // of a private /tmp
	// stuckPrefix is that of one that could not be removed: starts do not try again.
	stuckPrefix = "stuck-"
)

// NewTmp makes a private /tmp in the first state directory that takes one, and returns
// both. The error is about the first candidate.
func NewTmp() (state string, tmp *Tmp, err error) {
	state, err = first(func(root *safefile.Own, dir string) (err error) {
		tmp, err = makeTmp(root, dir)
		return err
	})
	if err != nil {
		return "", nil, TmpError(err)
	}
	return state, tmp, nil
}

// TmpError says that there is no private /tmp.
func TmpError(err error) error {
	return fmt.Errorf("cannot create the private /tmp: %w; set XDG_STATE_HOME to a directory with room, or choose another directory for /tmp", err)
}

// makeTmp makes a private /tmp in the state directory dir, which is open, and removes those
// whose owner is dead.
func makeTmp(root *safefile.Own, dir string) (*Tmp, error) {
	own, err := root.Make(tmpDir)
	if err != nil {
		return nil, err
	}
	all := own.Into()
	tmp, err := newTmp(all, filepath.Join(dir, tmpDir))
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return tmp, nil
}

func newTmp(all *os.File, path string) (*Tmp, error) {
	new(Report).sweepSoon(all, path) // what cannot be removed is left for doctor --clean
	// The lock of the parent keeps a sweep from removing a directory that was created
	// but not yet locked.
	if err := safefile.WaitLock(all); err != nil {
		return nil, err
	}
	t := &Tmp{Path: filepath.Join(path, runPrefix+newID()), parent: all}
	err := t.make()
	return t, errors.Join(err, safefile.Lock(all, unix.LOCK_UN))
}

// make makes the directory and locks it.
func (t *Tmp) make() error {
	fd, name := int(t.parent.Fd()), filepath.Base(t.Path)
	if err := unix.Mkdirat(fd, name, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: t.Path, Err: err}
	}
	lock, err := safefile.OpenTreeDir(t.parent, name)
	if err == nil {
		err = safefile.Lock(lock, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(fd, name, unix.AT_REMOVEDIR))
	}
	t.lock = lock
	return nil
}

// Lock takes the lock of this user's processes that has a name, as [safefile.WaitLock] does, which bounds
// the wait. It ends when the file is closed. It lies in the state directory: a command can lock any
// file that it sees, and would hold up what waits for that.
func Lock(name string) (*os.File, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	root, err := safefile.OpenTreePath(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|safefile.NoWait, 0o600)
	if err != nil {
		return nil, err
	}
	if err := safefile.WaitLock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove removes the directory. It waits for no process: the commands that used it have
// ended.
func (t *Tmp) Remove() error {
	err := safefile.RemoveTreeIn(t.parent, filepath.Base(t.Path), nil)
	return errors.Join(err, t.lock.Close(), t.parent.Close())
}

// ours reports whether name is one that makeTmp or a sweep gives.
func ours(name string) bool {
	id, ok := strings.CutPrefix(name, runPrefix)
	if !ok {
		id, ok = strings.CutPrefix(name, stuckPrefix)
	}
	return ok && id != "" && strings.Trim(id, "0123456789abcdef") == ""
}

func newID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
