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
// with the new file before it gets its name; nil does nothing. While one process writes, others get an error;
// what a killed one has left, at a name that only sallyport gives, is removed.
func ReplaceIn(dir *os.Root, name string, old, s []byte, mode fs.FileMode,
	prepare func(*os.File) error) (err error) {
	unfinished := name + unfinishedExt
	f, release, err := createAlone(dir, unfinished, mode)
	if err != nil {
		return err
	}
	defer release()
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

// unfinishedExt is what the name of a file ends with that is being written.
const unfinishedExt = ".sallyport-new"

// createAlone creates a file, and holds it until release: no other process writes it. One that no process
// holds was left by one that was killed, and is removed.
func createAlone(dir *os.Root, name string, mode fs.FileMode) (f *os.File, release func(), err error) {
	busy := fmt.Errorf("%s exists: another sallyport changes the settings; remove it if none does",
		text.Word(filepath.Join(dir.Name(), name)))
	for range 2 {
		f, err = dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil {
			release, ok := hold(f)
			if ok && leads(dir, name, f) {
				return f, release, nil
			}
			release()
			return nil, nil, errors.Join(busy, f.Close()) // another one took it for left over
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, nil, err
		}
		if !removeLeft(dir, name) {
			break
		}
	}
	return nil, nil, busy
}

// removeLeft removes a file that no process holds, and reports whether it did.
func removeLeft(dir *os.Root, name string) bool {
	if info, err := dir.Lstat(name); err != nil || !info.Mode().IsRegular() || !holds {
		return false
	}
	f, err := dir.OpenFile(name, os.O_RDWR|NoWait, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	release, ok := hold(f)
	defer release()
	return ok && leads(dir, name, f) && dir.Remove(name) == nil
}

// leads reports whether a name is that of an open file, and no link.
func leads(dir *os.Root, name string, f *os.File) bool {
	named, err := dir.Lstat(name)
	open, also := f.Stat()
	return err == nil && also == nil && os.SameFile(named, open)
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
