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
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// backupExt is what the name of a backup ends with.
const backupExt = ".sallyport-backup"

// The modes of files and directories that are created, of the user and of a project.
const (
	userFile, userDir       fs.FileMode = 0o600, 0o700
	projectFile, projectDir fs.FileMode = 0o644, 0o755
)

// A Change is what a file becomes. It is not written before Apply.
type Change struct {
	Path     string
	Old, New []byte // nil for no file
	// Note says what is to be known about the file as it is, in a sentence; it may be empty.
	Note string

	within  string // the project; "" for files of the user
	backup  []byte // what the backup holds; nil if there is none
	created bool   // the file was created by us
	first   bool   // nothing of ours was in it: it gets a backup
	ends    bool   // nothing of ours is left in it
}

// Changes reports whether there is something to write.
func (c *Change) Changes() bool {
	return !bytes.Equal(c.Old, c.New) || (c.Old == nil) != (c.New == nil)
}

func (c *Change) refuse(why string, err error) error {
	return &RefusedError{Path: c.Path, Why: why, Err: err}
}

// system is the refusal by the system.
func (c *Change) system(err error) error {
	var failed *fs.PathError
	var link *os.LinkError
	why := err.Error()
	if errors.As(err, &failed) {
		why = failed.Op + " " + failed.Path + ": " + failed.Err.Error()
	} else if errors.As(err, &link) {
		why = link.Err.Error()
	}
	return c.refuse(why, err)
}

// open opens the directory of the file, following no link in a project. It is nil if it is missing and create
// is false. Made are the directories that were created, the last one innermost.
func (c *Change) open(create bool) (dir *os.Root, made []string, err error) {
	from := c.within
	if from == "" {
		for from = filepath.Dir(c.Path); ; from = filepath.Dir(from) {
			if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(from) == from {
				break
			}
		}
	}
	if dir, err = os.OpenRoot(from); err != nil {
		return nil, nil, c.system(err)
	}
	rest, err := filepath.Rel(from, filepath.Dir(c.Path))
	if err != nil {
		return nil, nil, errors.Join(c.system(err), dir.Close())
	}
	for name := range strings.SplitSeq(rest, string(os.PathSeparator)) {
		if name == "." {
			continue
		}
		next, isNew, err := c.step(dir, name, create)
		if closed := dir.Close(); err == nil {
			err = closed
		}
		from = filepath.Join(from, name)
		if isNew {
			made = append(made, from)
		}
		if next == nil || err != nil {
			return nil, made, err
		}
		dir = next
	}
	return dir, made, nil
}

// step opens a directory in another one. It is nil if it is missing.
func (c *Change) step(dir *os.Root, name string, create bool) (next *os.Root, isNew bool, err error) {
	named, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, false, nil
		}
		if named, err = c.mkdir(dir, name); err == nil {
			isNew = true
		}
	}
	path := filepath.Join(dir.Name(), name)
	switch {
	case err != nil:
		return nil, isNew, c.system(err)
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, isNew, c.refuse(path+" is a symbolic link; put a directory in its place", nil)
	case !named.IsDir():
		return nil, isNew, c.refuse(path+" is not a directory", nil)
	}
	if next, err = dir.OpenRoot(name); err != nil {
		return nil, isNew, c.system(err)
	}
	f, err := next.Open(".")
	if err != nil {
		return nil, isNew, errors.Join(c.system(err), next.Close())
	}
	defer f.Close()
	if open, err := f.Stat(); err != nil || !os.SameFile(named, open) {
		return nil, isNew, errors.Join(c.refuse(safefile.ErrChanged.Error(), safefile.ErrChanged), next.Close())
	}
	if isNew {
		_ = safefile.Mark(f) // without the mark the directory stays
	}
	return next, isNew, nil
}

// mkdir creates a directory in another one.
func (c *Change) mkdir(dir *os.Root, name string) (fs.FileInfo, error) {
	if err := c.writable(dir, "."); err != nil {
		return nil, err
	}
	mode := userDir
	if c.within != "" {
		mode = projectDir
	}
	if err := dir.Mkdir(name, mode); err != nil {
		return nil, err
	}
	return dir.Lstat(name)
}

// writable refuses what has been made read-only, which root could change all the same.
func (c *Change) writable(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().Perm()&0o222 == 0 {
		path := filepath.Join(dir.Name(), name)
		err = c.refuse(path+" is read-only; run chmod u+w on it", fs.ErrPermission)
	}
	return err
}

// read reads the file and its backup.
func (c *Change) read() error {
	dir, _, err := c.open(false)
	if dir == nil || err != nil {
		return err
	}
	defer dir.Close()
	if c.Old, c.created, err = c.plain(dir, filepath.Base(c.Path)); err != nil {
		return err
	}
	if c.backup, _, err = c.plain(dir, filepath.Base(c.Path)+backupExt); err != nil {
		return c.refuse("its backup cannot be read: "+err.Error(), err)
	}
	return nil
}

// plain reads a regular file; nil if there is none. It is never empty.
func (c *Change) plain(dir *os.Root, name string) (txt []byte, marked bool, err error) {
	named, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, c.system(err)
	case named.Mode()&fs.ModeSymlink != 0:
		to, _ := dir.Readlink(name) // it is only shown
		return nil, false, c.refuse("it is a symbolic link to "+text.Word(to)+
			"; put a file in its place, or change that file by hand", nil)
	case !named.Mode().IsRegular():
		return nil, false, c.refuse("it is not a regular file", safefile.ErrNotPlain)
	case named.Size() > maxFile:
		return nil, false, c.refuse(fmt.Sprintf("it is larger than %d MiB", maxFile>>20), nil)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, false, c.system(err)
	}
	defer f.Close()
	if open, err := f.Stat(); err != nil || !os.SameFile(named, open) {
		return nil, false, c.refuse(safefile.ErrChanged.Error(), safefile.ErrChanged)
	}
	txt, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, false, c.system(err)
	case len(txt) > maxFile:
		return nil, false, c.refuse(safefile.ErrChanged.Error(), safefile.ErrChanged)
	}
	return txt, safefile.Marked(f), nil
}

// check returns the reason for which Apply would be refused, as far as it is known before.
func (c *Change) check() error {
	dir, _, err := c.open(false)
	if dir == nil || err != nil {
		return err
	}
	defer dir.Close()
	if err := c.writable(dir, "."); err != nil {
		return err
	}
	return c.writable(dir, filepath.Base(c.Path))
}

// Apply writes the change: the backup first, then the file in one step. Where it fails, the file is as it was,
// and the error is a [*RefusedError].
func (c *Change) Apply() error {
	if !c.Changes() {
		return nil
	}
	if err := c.check(); err != nil {
		return c.asRefused(err)
	}
	dir, made, err := c.open(true)
	if err != nil {
		c.removeDirs(made)
		return c.asRefused(err)
	}
	defer dir.Close()
	if err = c.write(dir); err != nil {
		c.removeDirs(made)
		return c.asRefused(err)
	}
	if c.New == nil {
		c.removeDirs(nil)
	}
	return nil
}

// asRefused puts an error into the form that says which file is not changed.
func (c *Change) asRefused(err error) error {
	var refused *RefusedError
	switch {
	case errors.Is(err, safefile.ErrChanged):
		return c.refuse(safefile.ErrChanged.Error(), err)
	case errors.As(err, &refused):
		return err
	}
	return c.system(err)
}

func (c *Change) write(dir *os.Root) (err error) {
	name := filepath.Base(c.Path)
	backup := name + backupExt
	keeps := c.first && c.backup == nil
	if keeps {
		if err := safefile.ReplaceIn(dir, backup, nil, c.Old, userFile, nil); err != nil {
			return err
		}
	}
	if c.New == nil {
		now, _, err := c.plain(dir, name)
		if err == nil && !bytes.Equal(now, c.Old) {
			err = safefile.ErrChanged
		}
		if err == nil {
			err = dir.Remove(name)
		}
		if err != nil {
			return err
		}
	} else {
		mode := userFile
		if c.within != "" {
			mode = projectFile
		}
		err = safefile.ReplaceIn(dir, name, c.Old, c.New, mode, func(f *os.File) error {
			if c.Old == nil || c.created {
				_ = safefile.Mark(f) // it is told by other things as well
			}
			return f.Chmod(mode) // of the umask
		})
	}
	if err != nil && keeps {
		return errors.Join(err, dir.Remove(backup))
	}
	if c.ends && c.backup != nil && err == nil {
		err = dir.Remove(backup)
	}
	return errors.Join(err, safefile.SyncRoot(dir))
}

// removeDirs removes the directories of the file that we created, which are marked or among made, if they
// are empty. What another program uses stays.
func (c *Change) removeDirs(made []string) {
	from := c.within
	if from == "" {
		from = filepath.Dir(filepath.Dir(c.Path))
	}
	for dir := filepath.Dir(c.Path); dir != c.within && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if c.within == "" {
			from = filepath.Dir(dir)
		}
		if !c.removeDir(from, dir, slices.Contains(made, dir)) {
			return
		}
	}
}

// removeDir removes a directory below another one, and reports whether it did.
func (c *Change) removeDir(from, dir string, made bool) bool {
	root, err := os.OpenRoot(from)
	if err != nil {
		return false
	}
	defer root.Close()
	name, err := filepath.Rel(from, dir)
	if err != nil {
		return false
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	ours := made || safefile.Marked(f)
	f.Close() // nothing was written
	return ours && root.Remove(name) == nil
}
