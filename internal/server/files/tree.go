// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxEntries is how many entries ReadDirectory returns.
const maxEntries = 50_000

// An Entry is something in a directory.
type Entry struct {
	Name                string
	IsDirectory, IsFile bool // of what a link leads to
}

// Canonicalize returns the path without links.
func Canonicalize(path string) (string, error) { return filepath.EvalSymlinks(path) }

// ReadDirectory returns what is in a directory, without links that lead nowhere. Of more than
// 50,000 entries none is returned.
func ReadDirectory(path string) ([]Entry, error) {
	names, more, err := list(path, maxEntries)
	switch {
	case err != nil:
		return nil, err
	case more:
		return nil, invalidf("directory `%s` has more than %d entries; use fs/walk", path, maxEntries)
	}
	entries := make([]Entry, 0, len(names))
	for _, d := range names {
		mode := d.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(path, d.Name()))
			if err != nil {
				continue
			}
			mode = info.Mode()
		}
		entries = append(entries, Entry{Name: d.Name(), IsDirectory: mode.IsDir(), IsFile: mode.IsRegular()})
	}
	return entries, nil
}

// list returns what is in a directory, sorted by name, and whether there is more than most.
func list(path string, most int) (entries []fs.DirEntry, more bool, err error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|openDirectory, 0)
	if err != nil {
		return nil, false, err
	}
	defer dir.Close()
	entries, err = dir.ReadDir(most + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(entries) > most {
		entries, more = entries[:most], true
	}
	entries = slices.DeleteFunc(entries,
		func(d fs.DirEntry) bool { return isOurs(filepath.Join(path, d.Name()), d.Type()) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// The bounds of a walk.
const (
	maxDepth       = 64
	maxDirectories = 10_000
	maxWalkBytes   = 4 << 20 // of paths and messages
	// maxNames is how many entries of one directory are looked at.
	maxNames = 200_000
)

// WalkOptions bound a walk. All numbers but MaxDepth must be above 0; MaxDepth 0 is the
// directory alone.
type WalkOptions struct {
	MaxDepth, MaxDirectories, MaxEntries uint64
	FollowDirectorySymlinks              bool
	PruneHiddenDirectories               bool // they are returned, and what is in them is not
}

func (o WalkOptions) check() error {
	switch {
	case o.MaxDepth > maxDepth || o.MaxDirectories > maxDirectories || o.MaxEntries > maxEntries:
		return invalidf("filesystem walk limits exceed maximums: depth=%d, directories=%d, entries=%d",
			maxDepth, maxDirectories, maxEntries)
	case o.MaxDirectories == 0 || o.MaxEntries == 0:
		return invalidf("filesystem walk limits must be greater than zero")
	}
	return nil
}

// A WalkEntry is a directory or a regular file below the root of a walk.
type WalkEntry struct {
	Path        string
	IsDirectory bool
}

// A WalkError is a directory that could not be read.
type WalkError struct {
	Path string
	Err  error
}

// A WalkResult is what a walk found.
type WalkResult struct {
	Entries   []WalkEntry
	Errors    []WalkError
	Truncated bool // there is more than the bounds allow
}

// Walk returns the directories and regular files below a directory, breadth first, those of one
// directory by name. It reads each directory once, and follows no link to a file. A root that is
// no directory has nothing below it. The end of ctx ends the walk.
func Walk(ctx context.Context, root string, o WalkOptions) (*WalkResult, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	w := &walk{options: o, seen: map[string]bool{}}
	if info.IsDir() {
		w.add(root, 0)
	}
	for len(w.queue) > 0 && !w.full {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.read(next)
	}
	w.result.Truncated = w.result.Truncated || w.full
	return &w.result, nil
}

// A walk is the work of one Walk.
type walk struct {
	options     WalkOptions
	queue       []waiting
	seen        map[string]bool // canonical paths of directories; empty unless links are followed
	directories uint64          // that were queued
	size        int             // bytes in result
	full        bool
	result      WalkResult
}

// waiting is a directory that is to be read.
type waiting struct {
	path  string
	depth uint64
}

// add queues a directory.
func (w *walk) add(path string, depth uint64) {
	if depth > w.options.MaxDepth {
		return
	}
	if w.options.FollowDirectorySymlinks {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || w.seen[real] {
			return
		}
		w.seen[real] = true
	}
	if w.directories == w.options.MaxDirectories {
		w.result.Truncated = true
		return
	}
	w.directories++
	w.queue = append(w.queue, waiting{path, depth})
}

// read reads a directory.
func (w *walk) read(dir waiting) {
	names, more, err := list(dir.path, maxNames)
	if err != nil {
		if w.fits(dir.path) {
			w.result.Errors = append(w.result.Errors, WalkError{Path: dir.path, Err: err})
		}
		return
	}
	w.result.Truncated = w.result.Truncated || more
	for _, d := range names {
		path := filepath.Join(dir.path, d.Name())
		isDir := d.IsDir()
		if d.Type()&fs.ModeSymlink != 0 && w.options.FollowDirectorySymlinks {
			info, err := os.Stat(path)
			isDir = err == nil && info.IsDir()
		}
		if !isDir && !d.Type().IsRegular() {
			continue
		}
		if uint64(len(w.result.Entries)) == w.options.MaxEntries || !w.fits(path) {
			w.full = true
			return
		}
		w.result.Entries = append(w.result.Entries, WalkEntry{Path: path, IsDirectory: isDir})
		if isDir && !(w.options.PruneHiddenDirectories && strings.HasPrefix(d.Name(), ".")) {
			w.add(path, dir.depth+1)
		}
	}
}

// fits reports whether the result has room for one more path.
func (w *walk) fits(path string) bool {
	const others = 64 // bytes around a path
	w.size += len(path) + others
	w.full = w.full || w.size > maxWalkBytes
	return !w.full
}

// Copy copies a file, a link as a link, or with recursive a directory with all of these that are
// in it. A file that exists is overwritten and gets the mode of the source. The end of ctx ends
// the copying; what was copied stays.
func Copy(ctx context.Context, source, destination string, recursive bool) error {
	info, err := os.Lstat(source)
	switch {
	case err != nil:
		return err
	case info.IsDir() && !recursive:
		return invalidf("fs/copy requires recursive: true when sourcePath is a directory")
	case info.IsDir():
		inside, err := isInside(source, destination)
		if err == nil && inside {
			err = invalidf("fs/copy cannot copy a directory to itself or one of its descendants")
		}
		if err != nil {
			return err
		}
		return copyDirectory(ctx, source, destination)
	case info.Mode().IsRegular():
		return copyFile(ctx, source, destination)
	case info.Mode()&fs.ModeSymlink != 0:
		return copyLink(source, destination)
	}
	return invalidf("fs/copy only supports regular files, directories, and symlinks")
}

// isInside reports whether a destination, of which only the beginning may exist, is a directory
// or in it.
func isInside(dir, destination string) (bool, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	rest := ""
	for at := destination; ; at = parent(at) {
		real, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) && parent(at) != at {
			rest = filepath.Join(filepath.Base(at), rest)
			continue
		}
		real = filepath.Join(real, rest)
		return real == dir || strings.HasPrefix(real,
			strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)), err
	}
}

// copyDirectory copies what is in a directory, but no special files.
func copyDirectory(ctx context.Context, source, destination string) error {
	if err := makeAll(destination, Target{}); err != nil {
		return err
	}
	dir, err := os.OpenFile(source, os.O_RDONLY|openDirectory, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, d := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			from, to := filepath.Join(source, d.Name()), filepath.Join(destination, d.Name())
			var err error
			switch {
			case isOurs(from, d.Type()):
			case d.IsDir():
				err = copyDirectory(ctx, from, to)
			case d.Type().IsRegular():
				err = copyFile(ctx, from, to)
			case d.Type()&fs.ModeSymlink != 0:
				err = copyLink(from, to)
			}
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// copyStep is how many bytes of a file are copied between two looks whether that is still wanted.
const copyStep = 16 << 20

func copyFile(ctx context.Context, source, destination string) error {
	in, err := openToRead(Target{Path: source})
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(destination); err == nil && os.SameFile(info, there) {
		return invalidf("fs/copy cannot copy a file to itself")
	}
	out, err := openEmpty(Target{Path: destination}, info.Mode().Perm())
	if err != nil {
		return err
	}
	if err = copyContent(ctx, out, in, info); err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	return errors.Join(err, out.Close())
}

// copyPart copies what follows, at most most bytes. At the end of the file it returns io.EOF.
func copyPart(ctx context.Context, out, in *os.File, most int64) error {
	for most > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(out, in, min(most, copyStep)) // which the kernel does where it can
		if err != nil {
			return err
		}
		most -= n
	}
	return nil
}

// copyAll copies what follows, and takes holes for zeros.
func copyAll(ctx context.Context, out, in *os.File) error {
	if err := copyPart(ctx, out, in, math.MaxInt64); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func copyLink(source, destination string) error {
	to, err := os.Readlink(source)
	if err != nil {
		return err
	}
	return os.Symlink(to, destination)
}
