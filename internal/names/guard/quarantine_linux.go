// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// The quarantine is the directory State/quarantine. Each thing has an item, a directory
// named TIME-ID with the thing under its own name in it, and the note TIME-ID.json.
const (
	quarantineDir = "quarantine"
	noteSuffix    = ".json"
	itemTime      = "20060102T150405Z"
	asidePrefix   = ".sallyport-quarantine-"
)

// Bounds of the quarantine.
const (
	maxQuarantine = 256 << 20
	maxAge        = 30 * 24 * time.Hour
	youngAge      = time.Hour // a user may not have read the report yet
)

// A quarantine is the open directory.
type quarantine struct {
	dir  *os.Root
	path string
	now  func() time.Time
	max  int64
}

// A note says where a quarantined thing comes from.
type note struct {
	Path      string   `json:"path"`
	PathBytes []byte   `json:"path_bytes,omitempty"` // where the path is not UTF-8
	When      string   `json:"when"`
	Why       []string `json:"why,omitempty"`
	Kind      Kind     `json:"kind"`
	Mode      string   `json:"mode"` // as it was, in octal
	NotCopied int      `json:"not_copied,omitempty"`
}

// openQuarantine opens the quarantine below the state directory, and creates its directory
// if create is true.
func openQuarantine(state string, create bool) (*quarantine, error) {
	dir, err := openBelow(state, quarantineDir, create)
	if err != nil {
		return nil, err
	}
	return &quarantine{dir: dir, path: filepath.Join(state, quarantineDir), now: time.Now,
		max: maxQuarantine}, nil
}

func (q *quarantine) close() { q.dir.Close() }

// item creates an empty item and returns its name.
func (q *quarantine) item() (string, error) {
	for {
		name := q.now().UTC().Format(itemTime) + "-" + newID()
		if err := q.dir.Mkdir(name, 0o700); !errors.Is(err, unix.EEXIST) {
			return name, err
		}
	}
}

// writeNote writes the note of an item. The thing is safe without it, and its directory's
// name has the time, so a failure is not reported.
func (q *quarantine) writeNote(item string, n *watched, s status, notCopied int) {
	about := note{
		Path: n.path, When: q.now().UTC().Format(time.RFC3339Nano),
		Why:  slices.Compact(slices.Sorted(maps.Values(n.holds))),
		Kind: s.kind(), Mode: fmt.Sprintf("%o", s.mode&0o7777), NotCopied: notCopied,
	}
	if !utf8.ValidString(n.path) {
		about.PathBytes = []byte(n.path)
	}
	if data, err := json.Marshal(about); err == nil {
		_ = q.dir.WriteFile(item+noteSuffix, append(data, '\n'), 0o600)
	}
}

// store calls put to move or copy what exists at n into a new item, and returns where it
// is then. Put counts what it has not copied. After an error nothing is left of the item.
func (k *Protector) store(n *watched, s status,
	put func(item *os.Root) (notCopied int, err error)) (string, error) {
	if k.quarantine == nil {
		q, err := openQuarantine(k.State, true)
		if err != nil {
			return "", err
		}
		k.quarantine = q
	}
	q := k.quarantine
	item, err := q.item()
	if err != nil {
		return "", err
	}
	dir, err := q.dir.OpenRoot(item)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	notCopied, err := put(dir)
	if err != nil {
		return "", errors.Join(err, safefile.RemoveTree(q.dir, item))
	}
	q.writeNote(item, n, s, notCopied)
	return filepath.Join(q.path, item, n.name), nil
}

// rename renames what exists at n in the directory fd into quarantine, and returns where
// it is then. EXDEV: the state directory is on another file system. ENOENT: it is gone.
func (k *Protector) rename(fd int, n *watched, s status) (string, error) {
	n.moves++
	return k.store(n, s, func(item *os.Root) (int, error) {
		if err := k.failing("rename"); err != nil {
			return 0, err
		}
		to, err := item.Open(".")
		if err != nil {
			return 0, err
		}
		defer to.Close()
		return 0, renameNew(fd, n.name, int(to.Fd()), n.name, s)
	})
}

// renameAside renames what exists at n in the directory fd to a name that no tool looks
// for. It is the last resort, when it cannot be moved to quarantine.
func renameAside(fd int, n *watched, s status) (string, error) {
	aside := asidePrefix + newID()
	if err := renameNew(fd, n.name, fd, aside, s); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(n.path), aside), nil
}

// renameNew renames without replacing anything. A directory that changes its parent is
// written to, so a closed one is opened up. File systems that do not know the flag get a
// plain rename: the new name is random, or in a new directory.
func renameNew(from int, name string, to int, target string, s status) error {
	rename := func() error { return unix.Renameat2(from, name, to, target, unix.RENAME_NOREPLACE) }
	err := retry(rename)
	if errors.Is(err, unix.EACCES) && s.isDir() {
		if fd, e := openAt(from, name, unix.O_PATH|unix.O_DIRECTORY); e == nil {
			if _, e = openUp(fd); e == nil {
				err = retry(rename)
			}
			unix.Close(fd)
		}
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return unix.Renameat(from, name, to, target)
	}
	return err
}

// openUp gives the owner all rights to the directory fd, if this user is the owner and
// lacks some. The function it returns gives them back.
func openUp(fd int) (restore func(), err error) {
	s, err := statAt(fd, "")
	if err != nil {
		return nil, err
	}
	mode := uint32(s.mode) & 0o7777
	if mode&0o700 == 0o700 || !s.owned() {
		return func() {}, nil
	}
	if err := unix.Chmod(fdPath(fd), mode|0o700); err != nil {
		return nil, err
	}
	return func() { _ = unix.Chmod(fdPath(fd), mode) }, nil
}

// bound removes items that are too old and then, oldest first, what is too much, and
// reports that and what is left. Items of the last hour stay.
func (q *quarantine) bound(r *Report) error {
	names, err := listRoot(q.dir) // the time comes first in a name
	if err != nil {
		return err
	}
	sizes := map[string]int64{}
	for _, name := range names {
		stamp, id, _ := strings.Cut(name, "-")
		if _, err := time.Parse(itemTime, stamp); err != nil || !validHolder(id) {
			continue // a note, or nothing of sallyport
		}
		sizes[name], _ = treeSize(filepath.Join(q.path, name), math.MaxInt)
		r.QuarantineBytes += sizes[name]
	}
	var errs []error
	for _, name := range names {
		size, ok := sizes[name]
		made, _ := time.Parse(itemTime, strings.SplitN(name, "-", 2)[0])
		if age := q.now().Sub(made); !ok || age < youngAge || age <= maxAge && r.QuarantineBytes <= q.max {
			continue
		}
		if err := safefile.RemoveTree(q.dir, name); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove %s from quarantine: %w", name, err))
			continue
		}
		_ = q.dir.Remove(name + noteSuffix)
		r.Discarded = append(r.Discarded, filepath.Join(q.path, name))
		r.QuarantineBytes -= size
		delete(sizes, name)
	}
	r.Quarantined = len(sizes)
	return errors.Join(errs...)
}

// treeSize adds up the first files of a tree, as far as it can be opened, and counts them.
// Directories and links have a size too, so that many of them are not free.
func treeSize(top string, most int) (size int64, entries int) {
	const each = 1 << 10
	_ = filepath.WalkDir(top, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be opened is not counted
		}
		if entries++; entries > most {
			return fs.SkipAll
		}
		size += each
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				size += st.Blocks * 512
			}
		}
		return nil
	})
	return size, entries
}
