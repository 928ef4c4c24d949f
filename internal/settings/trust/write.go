// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// writeSettings puts a text into the file of the project in dir. Old is what the file holds, nil where
// there is none.
func writeSettings(dir string, old, s []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(projectDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	path := text.Word(filepath.Join(dir, projectDir))
	named, err := root.Lstat(projectDir)
	switch {
	case err != nil:
		return err
	case !named.IsDir():
		return fmt.Errorf("%s is refused: it is no directory; put one in its place", path)
	}
	settings, err := root.OpenRoot(projectDir)
	if err != nil {
		return err
	}
	defer settings.Close()
	if open, err := settings.Stat("."); err != nil || !os.SameFile(named, open) {
		return errors.Join(err, fmt.Errorf("%s is not written: %w", path, ErrChanged))
	}
	return replace(settings, fileName, old, s, 0o644)
}

// replace puts a text in the place of a file in a directory, and returns when that is on the
// disk. The file must hold what it held, and there must be none where old is nil.
func replace(dir *os.Root, name string, old, s []byte, mode fs.FileMode) (err error) {
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
	if err := same(dir, name, old, f); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Write(s)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(unfinished, name); err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// same returns an error if a file does not hold what it held, and gives its mode to the new one.
func same(dir *os.Root, name string, old []byte, f *os.File) error {
	now, err := dir.ReadFile(name)
	info, failed := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && old == nil:
		return nil
	case err == nil && failed == nil && old != nil && info.Mode().IsRegular() && bytes.Equal(now, old):
		return f.Chmod(info.Mode().Perm())
	}
	return fmt.Errorf("%s is not changed: %w", text.Word(filepath.Join(dir.Name(), name)), ErrChanged)
}
