// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/diff"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	backupExt = ".sallyport-backup" // what the name of a backup ends with
	maxFile   = 16 << 20            // bytes
)

// A Change is what a file becomes. It is not written before Apply.
type Change struct {
	Path     string
	Old, New []byte // nil for no file

	within  string   // the project, in which no link is followed; "" for files of the user
	backup  []byte   // what the backup holds; nil if there is none
	created bool     // the file was created by us
	first   bool     // nothing of ours was in it: it gets a backup
	ends    bool     // nothing of ours is left in it
	made    []string // directories that Apply has created
}

// Changes reports whether there is something to write.
func (c *Change) Changes() bool {
	return !bytes.Equal(c.Old, c.New) || (c.Old == nil) != (c.New == nil)
}

func (c *Change) refuse(err error, format string, args ...any) error {
	return &RefusedError{Path: c.Path, Why: fmt.Sprintf(format, args...), Err: err}
}

// refused puts any error into the form that says which file is not changed.
func (c *Change) refused(err error) error {
	var done *RefusedError
	if errors.As(err, &done) && done.Path == "" {
		done.Path = c.Path
	}
	if err == nil || done != nil {
		return err
	}
	if errors.Is(err, safefile.ErrChanged) {
		return c.refuse(err, "%v", safefile.ErrChanged)
	}
	return c.refuse(err, "%v", err)
}

// open opens the project, or the nearest directory of a file of the user, and returns the name of the file
// in it. Directories on the way are no links. Those that are missing are created if create is true.
func (c *Change) open(create bool) (root *os.Root, name string, err error) {
	from := c.within
	if from == "" {
		for from = filepath.Dir(c.Path); filepath.Dir(from) != from; from = filepath.Dir(from) {
			if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
	}
	if name, err = filepath.Rel(from, c.Path); err != nil {
		return nil, "", err
	}
	if root, err = os.OpenRoot(from); err != nil {
		return nil, "", err
	}
	for i, b := range name {
		if !os.IsPathSeparator(uint8(b)) {
			continue
		}
		info, err := root.Lstat(name[:i])
		missing := errors.Is(err, fs.ErrNotExist)
		if missing && create {
			info, err = c.mkdir(root, name[:i])
		}
		switch path := text.Word(filepath.Join(from, name[:i])); {
		case missing && !create:
			return root, name, nil
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			err = c.refuse(nil, "%s is a symbolic link; put a directory in its place", path)
		case err == nil && !info.IsDir():
			err = c.refuse(nil, "%s is not a directory", path)
		}
		if err != nil {
			return nil, "", errors.Join(err, root.Close())
		}
	}
	return root, name, nil
}

// mkdir creates a directory, and marks it as ours.
func (c *Change) mkdir(root *os.Root, name string) (fs.FileInfo, error) {
	mode := fs.FileMode(0o700)
	if c.within != "" {
		mode = 0o755
	}
	if err := errors.Join(c.writable(root, filepath.Dir(name)), root.Mkdir(name, mode)); err != nil {
		return nil, err
	}
	c.made = append(c.made, filepath.Join(root.Name(), name))
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = safefile.Mark(f) // without the mark the directory stays
	return f.Stat()
}

// writable refuses what has been made read-only, which root could change all the same.
func (c *Change) writable(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Perm()&0o222 == 0 {
		return c.refuse(fs.ErrPermission, "%s is read-only; run chmod u+w on it",
			text.Word(filepath.Join(root.Name(), name)))
	}
	return err
}

// read reads the file and its backup.
func (c *Change) read() error {
	root, name, err := c.open(false)
	if err != nil {
		return err
	}
	defer root.Close()
	if c.Old, c.created, err = c.plain(root, name); err != nil {
		return err
	}
	c.New = c.Old
	c.backup, _, err = c.plain(root, name+backupExt)
	return err
}

// plain reads a regular file; it is nil if there is none. Marked says that we created it.
func (c *Change) plain(root *os.Root, name string) (txt []byte, marked bool, err error) {
	named, err := root.Lstat(name)
	it := text.Word(filepath.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, false, c.refuse(nil, "%s is a symbolic link; put a file in its place, or add this by "+
			"hand", it)
	case !named.Mode().IsRegular():
		return nil, false, c.refuse(safefile.ErrNotPlain, "%s is not a regular file", it)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if open, err := f.Stat(); err != nil || !os.SameFile(named, open) {
		return nil, false, errors.Join(err, safefile.ErrChanged)
	}
	if txt, err = io.ReadAll(io.LimitReader(f, maxFile+1)); len(txt) > maxFile {
		err = c.refuse(nil, "%s is larger than %d MiB", it, maxFile>>20)
	}
	return txt, safefile.Marked(f), err
}

// check returns the reason for which Apply would be refused, as far as it is known before.
func (c *Change) check() error {
	root, name, err := c.open(false)
	if err != nil {
		return err
	}
	defer root.Close()
	return errors.Join(c.writable(root, filepath.Dir(name)), c.writable(root, name))
}

// Apply writes the change: the backup first, then the file in one step. Where it fails, the file is as it
// was, and the error is a [*RefusedError].
func (c *Change) Apply() error {
	if !c.Changes() {
		return nil
	}
	err := c.write()
	if err != nil || c.New == nil {
		c.removeDirs()
	}
	return c.refused(err)
}

func (c *Change) write() error {
	if err := c.check(); err != nil {
		return err
	}
	root, name, err := c.open(true)
	if err != nil {
		return err
	}
	defer root.Close()
	backup, first := name+backupExt, c.first && c.backup == nil
	if first {
		if err := safefile.ReplaceIn(root, backup, nil, c.Old, 0o600, nil); err != nil {
			return err
		}
	}
	if c.New == nil {
		var now []byte
		if now, _, err = c.plain(root, name); err == nil && !bytes.Equal(now, c.Old) {
			err = safefile.ErrChanged
		}
		if err == nil {
			err = root.Remove(name)
		}
	} else {
		err = safefile.ReplaceIn(root, name, c.Old, c.New, 0o600, c.prepare)
	}
	if err != nil && first || err == nil && c.ends && c.backup != nil {
		err = errors.Join(err, root.Remove(backup))
	}
	return err
}

// prepare gives a new file its mode, whatever the umask, and marks it as ours.
func (c *Change) prepare(f *os.File) error {
	if c.Old == nil || c.created {
		_ = safefile.Mark(f) // ours is told by other things as well
	}
	if c.Old == nil && c.within != "" {
		return f.Chmod(0o644)
	}
	return f.Chmod(0o600)
}

// removeDirs removes the directories of the file that we created, if they are empty.
func (c *Change) removeDirs() {
	for dir := filepath.Dir(c.Path); dir != c.within && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		f, err := os.Open(dir)
		if err != nil {
			continue // it was not created
		}
		ours := safefile.Marked(f) || slices.Contains(c.made, dir)
		f.Close() // nothing was written
		if !ours || os.Remove(dir) != nil {
			return
		}
	}
}

// Diff returns the change as a unified diff of one file, and "" for no change.
func (c *Change) Diff() string {
	if !c.Changes() {
		return ""
	}
	name := func(txt []byte) string {
		if txt == nil {
			return "/dev/null"
		}
		return text.Word(c.Path)
	}
	return "--- " + name(c.Old) + "\n+++ " + name(c.New) + "\n" + string(diff.Hunks(c.Old, c.New))
}
