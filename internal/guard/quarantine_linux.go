// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The quarantine is the folder State/quarantine. Each thing has a box, a folder
// named TIME-ID, with the thing under its own name in it, and the note
// TIME-ID.json beside it.
const (
	quarantineDir = "quarantine"
	noteSuffix    = ".json"
	boxTime       = "20060102T150405Z"
	asidePrefix   = ".sallyport-quarantine-"
)

// Bounds of the quarantine.
const (
	maxQuarantine = 256 << 20
	maxAge        = 30 * 24 * time.Hour
	youngAge      = time.Hour // so that nobody loses what he was just told about
)

// boxes is the open quarantine.
type boxes struct {
	dir  int
	path string
	step func(string)
	now  func() time.Time
	max  int64
}

// A note says where a quarantined thing comes from.
type note struct {
	Path  string   `json:"path"`
	Bytes []byte   `json:"path_bytes,omitempty"` // where the path is not UTF-8
	When  string   `json:"when"`
	Why   []string `json:"why,omitempty"`
	Kind  Kind     `json:"kind"`
	Mode  string   `json:"mode"` // as it was, in octal
	Left  int      `json:"not_copied,omitempty"`
}

// openBoxes opens the quarantine below state; make makes a missing one.
func openBoxes(state string, create bool, step func(string)) (*boxes, error) {
	top, err := openRetry(unix.AT_FDCWD, state, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(top)
	if create {
		if err := unix.Mkdirat(top, quarantineDir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
	}
	dir, err := openRetry(top, quarantineDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &boxes{dir: dir, path: filepath.Join(state, quarantineDir), step: step, now: time.Now, max: maxQuarantine}, nil
}

func (b *boxes) shut() { unix.Close(b.dir) }

func (b *boxes) at(point string) {
	if b.step != nil {
		b.step(point)
	}
}

// box makes an empty box and returns its name.
func (b *boxes) box() (string, error) {
	for {
		name := b.now().UTC().Format(boxTime) + "-" + newID()
		if err := unix.Mkdirat(b.dir, name, 0o700); !errors.Is(err, unix.EEXIST) {
			b.at("box made")
			return name, err
		}
	}
}

// drop removes an empty box.
func (b *boxes) drop(box string) { _ = unix.Unlinkat(b.dir, box, unix.AT_REMOVEDIR) }

// tag writes the note of a box. The thing is safe without it, and its folder's
// name has the time, so a failure is not told.
func (b *boxes) tag(box string, n *watched, l look, left int) {
	about := note{Path: n.path, When: b.now().UTC().Format(time.RFC3339Nano), Why: n.whys(), Kind: l.kind(),
		Mode: fmt.Sprintf("%o", l.mode&0o7777), Left: left}
	if !utf8.ValidString(n.path) {
		about.Bytes = []byte(n.path)
	}
	data, err := json.Marshal(about)
	if err != nil {
		return
	}
	fd, err := openRetry(b.dir, box+noteSuffix, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = writeAll(fd, append(data, '\n'))
	unix.Close(fd)
	b.at("note written")
}

// openQuarantine opens the quarantine at the first need. k.mu is held.
func (k *keeper) openQuarantine() (*boxes, error) {
	if k.boxes == nil {
		b, err := openBoxes(k.state, true, k.step)
		if err != nil {
			return nil, err
		}
		k.boxes = b
	}
	return k.boxes, nil
}

// quarantine renames what stands at n in the folder fd into a new box, and returns
// where it is then. EXDEV: the state folder is on another file system. ENOENT: it
// is gone. k.mu is held.
func (k *keeper) quarantine(fd int, n *watched, l look) (string, error) {
	n.moves++
	b, err := k.openQuarantine()
	if err != nil {
		return "", err
	}
	box, err := b.box()
	if err != nil {
		return "", err
	}
	target := box + "/" + n.name
	if err = k.failing("rename"); err == nil {
		err = renameNew(fd, n.name, b.dir, target)
	}
	if errors.Is(err, unix.EACCES) && l.isFolder() && openUp(fd, n.name) == nil {
		// A folder that changes its parent is written to, so a closed one resists.
		err = renameNew(fd, n.name, b.dir, target)
	}
	if err != nil {
		b.drop(box)
		return "", err
	}
	b.at("moved")
	b.tag(box, n, l, 0)
	return filepath.Join(b.path, target), nil
}

// carry copies what stands at n in the folder fd into a new box and removes the
// original. What is too much to copy, or cannot be read, is an error, and nothing
// is removed then. left counts what cannot be copied at all. k.mu is held.
func (k *keeper) carry(fd int, n *watched, l look) (to string, left int, err error) {
	before := copier{bytes: maxCopyBytes, entries: maxCopyEntries}
	if err := before.measure(fd, n.name, 0); err != nil {
		return "", 0, err
	}
	b, err := k.openQuarantine()
	if err != nil {
		return "", 0, err
	}
	box, err := b.box()
	if err != nil {
		return "", 0, err
	}
	into, err := openRetry(b.dir, box, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return "", 0, err
	}
	defer unix.Close(into)
	c := copier{bytes: maxCopyBytes, entries: maxCopyEntries}
	err = c.copy(fd, n.name, into, n.name, 0)
	if err == nil {
		b.at("copied")
		err = removeAll(fd, n.name)
	}
	if err != nil {
		return "", 0, errors.Join(err, removeAll(b.dir, box))
	}
	b.tag(box, n, l, c.left)
	return filepath.Join(b.path, box, n.name), c.left, nil
}

// setAside renames what stands at name in the folder fd, which is dir, to a name
// that no tool looks for. It is what is left when it cannot be moved to
// quarantine.
func setAside(fd int, dir, name string, l look) (string, error) {
	aside := asidePrefix + newID()
	err := renameNew(fd, name, fd, aside)
	if errors.Is(err, unix.EACCES) && l.isFolder() && openUp(fd, name) == nil {
		err = renameNew(fd, name, fd, aside)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, aside), nil
}

// renameNew renames without replacing anything. File systems that do not know the
// flag get a plain rename: the new name is random, or in a new folder.
func renameNew(from int, name string, to int, target string) error {
	for {
		err := unix.Renameat2(from, name, to, target, unix.RENAME_NOREPLACE)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
			return unix.Renameat(from, name, to, target)
		}
		return err
	}
}

// openUp gives the owner all rights to the folder name in dir, if this user is the
// owner. No link is followed.
func openUp(dir int, name string) error {
	fd, err := openRetry(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = openClosed(fd)
	return err
}

// openClosed gives the owner all rights to the folder fd, if this user is the
// owner and lacks some. The function it returns gives them back.
func openClosed(fd int) (restore func(), err error) {
	l, err := lookAt(fd, "")
	if err != nil {
		return nil, err
	}
	mode := uint32(l.mode) & 0o7777
	if mode&0o700 == 0o700 || l.uid != uint32(unix.Geteuid()) {
		return func() {}, nil
	}
	if err := unix.Chmod(fdPath(fd), mode|0o700); err != nil {
		return nil, err
	}
	return func() { _ = unix.Chmod(fdPath(fd), mode) }, nil
}

// removeAll removes name in the folder dir with everything in it. Folders without
// rights are opened up first; no link is followed.
func removeAll(dir int, name string) error {
	root, err := os.OpenRoot(fdPath(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err = root.RemoveAll(name); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	openTree(dir, name, 0)
	return root.RemoveAll(name)
}

// openTree gives the owner all rights to the folders of a tree, as deep as copies
// go. What resists is found again by the caller.
func openTree(dir int, name string, depth int) {
	if depth > maxCopyDepth || openUp(dir, name) != nil {
		return
	}
	f, err := openDir(dir, name)
	if err != nil {
		return
	}
	defer f.Close()
	entries, _ := f.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			openTree(int(f.Fd()), e.Name(), depth+1)
		}
	}
}

// openDir opens the folder name in dir to be listed.
func openDir(dir int, name string) (*os.File, error) {
	fd, err := openRetry(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// A bounded says what bound did and what is left.
type bounded struct {
	discarded []string
	count     int
	bytes     int64
}

// bound removes boxes that are too old and then, oldest first, what is too much.
// Boxes of the last hour stay.
func (b *boxes) bound() (bounded, error) {
	var r bounded
	dir, err := openDir(b.dir, ".")
	if err != nil {
		return r, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return r, err
	}
	slices.Sort(names) // the time comes first in a name
	type box struct {
		name string
		made time.Time
		size int64
	}
	var list []box
	for _, name := range names {
		stamp, id, ok := strings.Cut(name, "-")
		made, err := time.Parse(boxTime, stamp)
		if !ok || err != nil || !goodHolder(id) {
			continue // a note, or nothing of ours
		}
		size := treeSize(b.dir, name, 0)
		r.bytes += size
		list = append(list, box{name, made, size})
	}
	r.count = len(list)
	var errs []error
	for _, x := range list {
		age := b.now().Sub(x.made)
		if age <= maxAge && r.bytes <= b.max || age < youngAge {
			continue
		}
		if err := removeAll(b.dir, x.name); err != nil {
			errs = append(errs, fmt.Errorf("guard: %s: %w", filepath.Join(b.path, x.name), err))
			continue
		}
		_ = unix.Unlinkat(b.dir, x.name+noteSuffix, 0)
		r.discarded = append(r.discarded, filepath.Join(b.path, x.name))
		r.bytes -= x.size
		r.count--
	}
	return r, errors.Join(errs...)
}
