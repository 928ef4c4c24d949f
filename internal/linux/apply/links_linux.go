// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"

	"golang.org/x/sys/unix"
)

// linksName is the file of a stage with [lasting].
const linksName = "links"

// maxLinks bounds it, in bytes.
const maxLinks = 64 << 20

// lasting says where the host has files of which the stage still has other names, by their inodes in the
// stage: applied later, those become names of the same file, unless one of both was changed meanwhile.
type lasting map[uint64]lastingPlace

type lastingPlace struct {
	Layer int    `json:"layer"`
	Path  []byte `json:"path"`           // below the root
	Born  int64  `json:"born,omitempty"` // of the stage's file: inodes are used again
}

// recall reads what earlier calls have noted. Without it, names become files of their own.
func (w *work) recall() {
	text, more, err := safefile.Read(filepath.Join(w.stage.Dir, linksName), maxLinks)
	if err != nil || more || json.Unmarshal(text, &w.earlier) != nil {
		w.earlier = nil
	}
}

// remember notes the files that were applied by some of their names only, before those leave the stage.
func (w *work) remember() error {
	left := map[inode]bool{}
	for _, n := range w.entries {
		if !n.done && n.entry.File == "file" {
			left[inodeOf(&n.entry.New)] = true
		}
	}
	noted := false
	for _, n := range w.entries {
		f := &n.entry.New
		if !n.done || f.Nlink < 2 || n.entry.File != "file" || !left[inodeOf(f)] {
			continue
		}
		born, err := w.stagedBorn(n)
		if err != nil {
			continue // its directory cannot be entered: the other name becomes a file of its own
		}
		if w.earlier == nil {
			w.earlier = lasting{}
		}
		w.earlier[f.Ino], noted = lastingPlace{n.entry.Layer, []byte(n.entry.Path), born}, true
	}
	if !noted {
		return nil
	}
	text, err := json.Marshal(w.earlier)
	if err != nil {
		return err
	}
	return safefile.Replace(filepath.Join(w.stage.Dir, linksName), text)
}

// stagedBorn returns when a file of the stage was made, as born does.
func (w *work) stagedBorn(n *node) (int64, error) {
	dir, name, ok := cutLast(n.entry.Path)
	if !ok {
		dir = "."
	}
	at, done, err := w.way(w.layers[n.entry.Layer], true, dir)
	if err != nil {
		return 0, err
	}
	defer done()
	return born(at, name)
}

// born returns when a file was made, in nanoseconds since 1970; 0 where the file system does not tell. The
// name is empty for an open file.
func born(fd int, name string) (int64, error) {
	var st unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_EMPTY_PATH
	if err := unix.Statx(fd, name, flags, unix.STATX_BTIME, &st); err != nil {
		return 0, err
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return 0, nil
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec), nil
}

// linked reports whether a file of the stage has or had other names, of which the host may have one.
func (w *work) linked(f *changes.Facts) bool {
	_, earlier := w.earlier[f.Ino]
	return f.Nlink > 1 || earlier
}

// link makes another name of a file that was applied before, or that the host has already, where the
// stage has both as hard links. It reports false where the file has to be copied.
func (w *work) link(n *node, at int, name string, from int) (bool, error) {
	f := &n.entry.New
	l := w.layers[n.entry.Layer]
	var path string
	earlier := false // by an earlier call
	if source := w.links[inodeOf(f)]; source != nil {
		l, path = w.layers[source.entry.Layer], source.hostPath()
	} else if same, ok := w.unchanged(l, f); ok {
		path = same
	} else if p, ok := w.earlier[f.Ino]; ok && p.Layer >= 0 && p.Layer < len(w.layers) {
		l, path, earlier = w.layers[p.Layer], string(p.Path), true
	} else {
		return false, nil
	}
	dir, base, ok := cutLast(path)
	if !ok {
		dir = "."
	}
	fd, done, err := w.way(l, false, dir)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer done()
	old, err := unix.Openat(fd, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer unix.Close(old)
	var st unix.Stat_t
	if unix.Fstat(old, &st) != nil || st.Mode != f.Mode || st.Size != f.Size {
		return false, nil // another program has replaced it
	}
	if earlier && (unix.TimespecToNsec(st.Mtim) != f.Mtime || !w.stillSame(f, old, from) ||
		w.stage.Closed(filepath.Join(l.Root.Root, path)) != nil) {
		return false, nil // one of both was changed since
	}
	err = w.replace(func() error {
		return unix.Linkat(unix.AT_FDCWD, proc(old), at, name, unix.AT_SYMLINK_FOLLOW)
	}, at)
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMLINK) {
		return false, nil
	}
	return err == nil, err
}

// stillSame compares what an earlier call has put on the host, open with O_PATH, with an open file of the
// stage.
func (w *work) stillSame(f *changes.Facts, host, staged int) bool {
	at, err := born(staged, "")
	return err == nil && at == w.earlier[f.Ino].Born && equal(host, staged, f.Size)
}

// equal compares the contents and attributes of two regular files of a size, one of them open with O_PATH.
// What cannot be read is different.
func equal(place, file int, size int64) bool {
	a, err := unix.Open(proc(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(a)
	mine, err1 := changes.Attrs(a)
	theirs, err2 := changes.StagedAttrs(file)
	if errors.Join(err1, err2) != nil || !maps.Equal(mine, theirs) {
		return false
	}
	var bufs [2][smallFile]byte
	for at := int64(0); at < size; {
		n, err1 := unix.Pread(a, bufs[0][:], at)
		m, err2 := unix.Pread(file, bufs[1][:], at)
		if err1 != nil || err2 != nil || n <= 0 || !bytes.Equal(bufs[0][:n], bufs[1][:m]) {
			return false
		}
		at += int64(n)
	}
	return true
}

// unchanged returns the path of a file of the stage with several names which is no change, so that the host
// has it.
func (w *work) unchanged(l *layer, f *changes.Facts) (path string, ok bool) {
	if f.Nlink > 1 && l.same == nil {
		l.same = map[inode]string{}
		listed := map[string]bool{}
		l.top.each(func(n *node) { listed[n.entry.Path] = true })
		_ = scan(l.upper, "", func(path string, st *unix.Stat_t) error { // what cannot be read is copied
			if st.Nlink > 1 && st.Mode&unix.S_IFMT == unix.S_IFREG && !listed[path] {
				l.same[inode{st.Dev, st.Ino}] = path
			}
			return nil
		})
	}
	path, ok = l.same[inodeOf(f)]
	return path, ok
}
