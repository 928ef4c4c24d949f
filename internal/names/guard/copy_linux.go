// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Bounds of what is copied to a quarantine on another file system. What is more stays in
// its directory under another name.
const (
	maxCopyBytes   = 64 << 20
	maxCopyEntries = 20_000
	maxCopyDepth   = 200
)

// errTooMuch is a tree beyond those bounds.
var errTooMuch = errors.New("too much to copy")

// copy copies what exists at n in the directory fd to quarantine, removes the original,
// and returns where the copy is. What is too much to copy, or cannot be read, is an error,
// and nothing is removed then.
func (k *Protector) copy(fd int, n *watched, s status) (string, error) {
	if _, entries := treeSize(filepath.Join(fdPath(fd), n.name), maxCopyEntries); entries > maxCopyEntries {
		return "", errTooMuch
	}
	from, err := os.OpenRoot(fdPath(fd))
	if err != nil {
		return "", err
	}
	defer from.Close()
	return k.store(n, s, func(item *os.Root) (int, error) {
		c := copier{from: from, to: item, bytes: maxCopyBytes, entries: maxCopyEntries}
		if err := c.copy(n.name, 0); err != nil {
			return 0, err
		}
		return c.left, safefile.RemoveTree(from, n.name)
	})
}

// A copier copies one tree, as long as its bounds last.
type copier struct {
	from, to *os.Root
	bytes    int64
	entries  int
	left     int // pipes, sockets and devices, which are not copied
}

// copy copies name to the same name. Links are copied as links.
func (c *copier) copy(name string, depth int) error {
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	if c.entries--; c.entries < 0 || depth > maxCopyDepth {
		return errTooMuch
	}
	switch info.Mode().Type() {
	case 0:
		return c.file(name, info)
	case fs.ModeDir:
		return c.dir(name, info, depth)
	case fs.ModeSymlink:
		target, err := c.from.Readlink(name)
		if err != nil {
			return err
		}
		return c.to.Symlink(target, name)
	}
	c.left++
	return nil
}

// open opens what Lstat has described, also where the command has closed it to its owner:
// it is going to be removed.
func (c *copier) open(name string, info fs.FileInfo) (*os.File, error) {
	need := fs.FileMode(0o400)
	if info.IsDir() {
		need = 0o700
	}
	if perm := info.Mode().Perm(); perm&need != need {
		c.openUp(name, info, perm|need)
	}
	f, err := c.from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it could have become a pipe
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		f.Close()
		return nil, errors.Join(errors.New("it changes while it is copied"), err)
	}
	return f, nil
}

// openUp sets the permissions of what Lstat has described, and of nothing that has replaced it.
// Another user's resists, and may be readable.
func (c *copier) openUp(name string, info fs.FileInfo, perm fs.FileMode) {
	f, err := c.from.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if now, err := f.Stat(); err == nil && os.SameFile(now, info) {
		_ = unix.Chmod(fdPath(int(f.Fd())), uint32(perm))
	}
}

func (c *copier) file(name string, info fs.FileInfo) error {
	if info.Size() > c.bytes {
		return errTooMuch
	}
	in, err := c.open(name, info)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()&0o700|0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.bytes+1))
	if c.bytes -= n; err == nil && c.bytes < 0 {
		err = errTooMuch
	}
	return errors.Join(err, out.Close())
}

func (c *copier) dir(name string, info fs.FileInfo, depth int) error {
	f, err := c.open(name, info)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.to.Mkdir(name, 0o700); err != nil {
		return err
	}
	names, err := f.Readdirnames(c.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, n := range names {
		if err := c.copy(filepath.Join(name, n), depth+1); err != nil {
			return err
		}
	}
	return nil
}
