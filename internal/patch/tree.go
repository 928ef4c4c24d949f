// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// mostLinks is how many links are followed for one name, as on Linux.
const mostLinks = 40

// An OutsideError says that a patch names a file that may not be changed. Nothing was changed.
type OutsideError struct{ Path string }

// Error returns one sentence.
func (e *OutsideError) Error() string {
	return fmt.Sprintf("patch rejected: %s lies outside of what may be written", text.Word(e.Path))
}

// A tree is open directories. Everything is reached through descriptors from the top on, and no link is
// followed: where a directory is swapped for a link, the way ends there.
type tree struct {
	top  string
	open map[string]*os.Root
	same map[string]*os.File // some of them once more
	done int64               // bytes that were read

	content []byte // of the last file that was read
}

// openTree opens the top of the file system, or of the volume, of an absolute path.
func openTree(path string) (*tree, error) {
	top := topOf(path)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	return &tree{top: top, open: map[string]*os.Root{top: root}, same: map[string]*os.File{}}, nil
}

func topOf(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

func (r *tree) close() error {
	var errs []error
	for _, root := range r.open {
		errs = append(errs, root.Close())
	}
	for _, d := range r.same {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// dir opens the directory path, which has no links on its way.
func (r *tree) dir(path string) (*os.Root, error) {
	if d := r.open[path]; d != nil {
		return d, nil
	}
	if path == topOf(path) {
		return nil, &OutsideError{path} // another volume
	}
	parent, err := r.dir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	d, err := child(parent, path)
	if err != nil {
		return nil, err
	}
	r.open[path] = d
	return d, nil
}

// files opens the directory path as a file, for what a Root does not do.
func (r *tree) files(path string) (*os.File, error) {
	if f := r.same[path]; f != nil {
		return f, nil
	}
	d, err := r.dir(path)
	if err != nil {
		return nil, err
	}
	f, err := d.Open(".")
	if err == nil {
		r.same[path] = f
	}
	return f, err
}

// child opens a directory of parent, and no link.
func child(parent *os.Root, path string) (*os.Root, error) {
	name := filepath.Base(path)
	named, err := parent.Lstat(name)
	if err == nil && !named.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	d, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := d.Stat(".")
	if err == nil && !os.SameFile(named, info) {
		err = &fs.PathError{Op: "open", Path: path, Err: errMoved}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

var errMoved = errors.New("it was replaced meanwhile")

// lstat looks at what has a name.
func (r *tree) lstat(path string) (fs.FileInfo, error) {
	d, err := r.dir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return d.Lstat(filepath.Base(path))
}

// maxRead is how many bytes the files have that a patch updates, all together. A file is held in memory.
const maxRead = 256 << 20

// read reads the regular file that lstat found, and follows no link to it. The next read overwrites the
// content.
func (r *tree) read(path string, info fs.FileInfo) ([]byte, fs.FileInfo, error) {
	if !info.Mode().IsRegular() {
		return nil, nil, safefile.ErrNotPlain
	}
	d, err := r.dir(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	f, err := d.OpenFile(filepath.Base(path), os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = errMoved
	}
	if left := maxRead - r.done; err == nil && now.Size() > left {
		err = errTooLarge
	}
	if err != nil {
		return nil, nil, err
	}
	size := int(now.Size())
	r.content = slices.Grow(r.content[:0], size)[:size]
	if _, err = io.ReadFull(f, r.content); errors.Is(err, io.ErrUnexpectedEOF) {
		err = errMoved
	}
	r.done += now.Size()
	return r.content, now, err
}

// errTooLarge is for files that are larger than a patch can be about.
var errTooLarge = fmt.Errorf("the files of a patch may have %d MiB in all", maxRead>>20)

// resolve returns the name without links of an absolute clean path: what is not there keeps its name.
// It only computes; what it finds is opened without links later. known has paths that are no links, whatever
// is on disk, and gets directories.
func resolve(path string, followLast bool, known map[string]bool) (string, error) {
	top := topOf(path)
	at, rest := top, path[len(top):]
	if dir := filepath.Dir(path); known[dir] {
		at, rest = dir, filepath.Base(path)
	}
	for links := 0; rest != ""; {
		name, after, _ := strings.Cut(rest, string(filepath.Separator))
		rest = after
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if last := strings.Trim(rest, string(filepath.Separator)) == ""; last && !followLast || known[next] {
			at = next
			continue
		}
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next // an error is found again where it is opened
			if err == nil && info.IsDir() {
				known[next] = true
			}
			continue
		}
		if links++; links > mostLinks {
			return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			at = top
			to = to[len(filepath.VolumeName(to)):]
		}
		rest = filepath.Join(to, rest+string(filepath.Separator))
	}
	return at, nil
}
