// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"

	"golang.org/x/sys/unix"
)

// scan calls f for all below an open directory, O_PATH or not, with paths relative to it. A mount or a
// directory that cannot be read is an error.
func scan(dir int, path string, f func(path string, st *unix.Stat_t) error) error {
	d, err := reader(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		at := filepath.Join(path, name)
		if err == nil {
			err = f(at, &st)
		}
		if err == nil && isDir(st.Mode) {
			err = scanIn(dir, name, at, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func scanIn(at int, name, path string, f func(path string, st *unix.Stat_t) error) error {
	sub, err := openDir(at, name)
	if err != nil {
		return ignoreVanished(err)
	}
	defer unix.Close(sub)
	return scan(sub, path, f)
}

func ignoreVanished(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// A stays says what must stay in a directory that is to go.
type stays struct{ why string }

func (s *stays) Error() string { return s.why }

// closedBelow returns what in a directory of the host, which would be removed, a command could not have
// removed.
func (w *work) closedBelow(n *node) (why string, err error) {
	l := w.layers[n.entry.Layer]
	dir, name, below := cutLast(n.entry.Path)
	if !below {
		dir = "."
	}
	at, done, err := w.way(l, false, dir)
	if err != nil {
		return "", err
	}
	defer done()
	path := w.path(n)
	n.below = 0
	err = scanIn(at, name, "", func(rel string, st *unix.Stat_t) error {
		n.below += fingerprint(rel, st)
		now := changes.Facts{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Ino: st.Ino,
			Nlink: uint64(st.Nlink), //nolint:unconvert // it has another type on other processors
			Size:  st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}
		was := w.stage.Base.Lookup(&l.Layer, filepath.Join(n.entry.Path, rel))
		if n.entry.Newer == "" && was.Conflict(&now) != "" { // since the changes were read
			n.entry.Newer = filepath.Join(n.entry.Path, rel)
		}
		full := filepath.Join(path, rel)
		if len(full) >= unix.PathMax {
			return &stays{"paths in it are longer than programs can use"}
		}
		if err := w.stage.Closed(full); err != nil {
			return &stays{"the policy of the stage does not allow to remove what is in it: " + err.Error()}
		}
		return nil
	})
	var s *stays
	switch {
	case errors.As(err, &s):
		return s.why, nil
	case errors.Is(err, unix.EXDEV):
		return "another file system is mounted in it", nil
	case errors.Is(err, unix.EACCES):
		return "", nil // it cannot be removed either, unless it is empty
	case errors.Is(err, unix.ENOTDIR):
		return "", nil // a conflict, if it is no directory any more
	}
	return "", err
}

// unchangedBelow looks whether a directory that has the temporary name has what it had in closedBelow.
func (w *work) unchangedBelow(n *node, host int) error {
	sum := uint64(0)
	err := scanIn(host, w.temp, "", func(path string, st *unix.Stat_t) error { // which fails at a mount
		sum += fingerprint(path, st)
		return nil
	})
	switch {
	case errors.Is(err, unix.EACCES):
		return nil // no other program of the user could
	case err == nil && !w.force && sum != n.below:
		return errMeanwhile
	}
	return err
}

// fingerprint is a number for a file as it is. Their sum is that of a tree.
func fingerprint(path string, st *unix.Stat_t) uint64 {
	b := []byte(path)
	for _, v := range []int64{int64(st.Ino), int64(st.Mode), st.Size, st.Mtim.Nano()} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	h := fnv.New64a()
	_, _ = h.Write(b) // never fails
	return h.Sum64()
}

func (n *node) hostName() string {
	if n.now != "" {
		return n.now
	}
	return n.name
}

// hostPath returns the path at which the host has a node at the moment.
func (n *node) hostPath() string {
	if n.up == nil {
		return "."
	}
	var names []string
	for at := n; at.up != nil; at = at.up {
		names = append(names, at.hostName())
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/")
}
