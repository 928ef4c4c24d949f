// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Bounds of what is copied to a quarantine on another file system. What is more
// stays in its folder under another name.
const (
	maxCopyBytes   = 64 << 20
	maxCopyEntries = 20_000
	maxCopyDepth   = 200
)

// errTooMuch is a tree beyond those bounds.
var errTooMuch = errors.New("too much to copy")

// A copier copies one tree, as long as its bounds last.
type copier struct {
	bytes   int64
	entries int
	left    int // pipes, sockets and devices, which are not copied
}

// copy copies name in the folder from to the new name target in the folder to.
// Links are copied as links.
func (c *copier) copy(from int, name string, to int, target string, depth int) error {
	l, err := lookAt(from, name)
	if err != nil {
		return err
	}
	if c.entries--; c.entries < 0 || depth > maxCopyDepth {
		return errTooMuch
	}
	switch l.kind() {
	case KindFile:
		return c.file(from, name, to, target)
	case KindFolder:
		return c.folder(from, name, to, target, depth)
	case KindLink:
		text, err := readLink(from, name)
		if err != nil {
			return err
		}
		return unix.Symlinkat(text, to, target)
	}
	c.left++
	return nil
}

// measure finds out, before anything is copied, whether the bounds would last.
func (c *copier) measure(dir int, name string, depth int) error {
	l, err := lookAt(dir, name)
	if err != nil {
		return err
	}
	c.bytes -= l.size
	if c.entries--; c.entries < 0 || c.bytes < 0 || depth > maxCopyDepth {
		return errTooMuch
	}
	if !l.isFolder() {
		return nil
	}
	if err := openUp(dir, name); err != nil {
		return err
	}
	f, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := c.measure(int(f.Fd()), n, depth+1); err != nil {
				return err
			}
		}
	}
}

func (c *copier) file(from int, name string, to int, target string) error {
	// Not blocking: it could have become a pipe meanwhile.
	fd, err := openRetry(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EACCES) {
		// The command has closed it, and it is to be removed anyway.
		if p, e := openRetry(from, name, unix.O_PATH|unix.O_NOFOLLOW, 0); e == nil {
			if unix.Chmod(fdPath(p), 0o600) == nil {
				fd, err = openRetry(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
			}
			unix.Close(p)
		}
	}
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(fd), name)
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it changes while it is copied")
	case info.Size() > c.bytes:
		return errTooMuch
	}
	fd, err = openRetry(to, target, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(info.Mode().Perm())&0o700|0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), target)
	n, err := io.Copy(out, io.LimitReader(in, c.bytes+1))
	c.bytes -= n
	if err == nil && c.bytes < 0 {
		err = errTooMuch
	}
	return errors.Join(err, out.Close())
}

func (c *copier) folder(from int, name string, to int, target string, depth int) error {
	if err := openUp(from, name); err != nil {
		return err
	}
	dir, err := openDir(from, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Mkdirat(to, target, 0o700); err != nil {
		return err
	}
	into, err := openRetry(to, target, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(into)
	for {
		names, err := dir.Readdirnames(1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := c.copy(int(dir.Fd()), n, into, n, depth+1); err != nil {
				return err
			}
		}
	}
}

// readLink reads a symbolic link.
func readLink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// treeSize adds up the files of a tree, as deep as it can be opened. Folders and
// links count a little, so that many of them are not free.
func treeSize(dir int, name string, depth int) int64 {
	const each = 1 << 10
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	size := int64(each) + st.Blocks*512
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || depth > maxCopyDepth {
		return size
	}
	f, err := openDir(dir, name)
	if err != nil {
		return size
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, n := range names {
		size += treeSize(int(f.Fd()), n, depth+1)
	}
	return size
}
