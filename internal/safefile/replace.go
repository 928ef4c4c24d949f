// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Replace writes a file of mode 0600 in one step: a reader sees the old one or the new one. The
// directory must be one that only the user can write to.
func Replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// ErrChanged says that a file was changed by someone else at the same time.
var ErrChanged = errors.New("it was changed by another program at the same time; try again")

// ReplaceIn puts a text in the place of a file below a directory that others may write to as well, and
// returns when that is on the disk. The file must hold what it held, and there must be none where old is nil;
// else the error is [ErrChanged]. Owner and mode stay; mode is that of a file that is new. Prepare is called
// with the new file before it gets its name; nil does nothing. While one process writes, others get an error.
func ReplaceIn(dir *os.Root, name string, old, s []byte, mode fs.FileMode,
	prepare func(*os.File) error) (err error) {
	unfinished := name + ".new"
	f, err := dir.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another sallyport changes the settings; remove it if none does",
			text.Word(filepath.Join(dir.Name(), unfinished)))
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(unfinished) // the error says more
		}
	}()
	_, err = f.Write(s)
	if err == nil && prepare != nil {
		err = prepare(f)
	}
	if err == nil {
		err = same(dir, name, old, f)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(unfinished, name); err != nil {
		return err
	}
	d, err := dir.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// same returns an error if a file does not hold what it held, and gives its owner and mode to the new one.
func same(dir *os.Root, name string, old []byte, f *os.File) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && old == nil {
		return nil
	}
	if err == nil && old != nil && info.Mode().IsRegular() {
		now, err := dir.ReadFile(name)
		if err == nil && bytes.Equal(now, old) {
			return errors.Join(keepOwner(f, info), f.Chmod(info.Mode().Perm()))
		}
	}
	return fmt.Errorf("%s is not changed: %w", text.Word(filepath.Join(dir.Name(), name)), ErrChanged)
}
