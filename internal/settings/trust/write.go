// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// put writes the file of settings, which is old, and trusts the project as it was shown. After an error a
// project that was never trusted is not.
func (p *Project) put(old, s []byte) (err error) {
	recorded, failed := Recorded(p.Dir)
	defer func() {
		if err != nil && !recorded && failed == nil {
			_, undo := Revoke(p.Dir)
			err = errors.Join(err, undo)
		}
	}()
	if err := writeSettings(p.Dir, old, s, p.Trust); err != nil {
		return err
	}
	return confirm(p)
}

// writeSettings puts a text into the file of the project in dir. Old is what the file holds, nil where
// there is none. Trust is called before a new directory of settings gets its name.
func writeSettings(dir string, old, s []byte, trust func() error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Lstat(projectDir)
	switch {
	case err == nil:
		return writeIn(root, projectDir, old, s)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case old != nil:
		return fmt.Errorf("%s is not written: %w", text.Word(filepath.Join(dir, projectDir)), ErrChanged)
	}
	// While a command runs in the project, what appears at this name is quarantined unless it is trusted.
	const unfinished = projectDir + ".sallyport-new"
	_ = safefile.RemoveTree(root, unfinished) // left by a process that was killed
	if err := root.Mkdir(unfinished, 0o755); err != nil {
		return err
	}
	defer func() { _ = safefile.RemoveTree(root, unfinished) }() // nothing when it has its name
	if err = writeIn(root, unfinished, nil, s); err == nil {
		err = trust()
	}
	if err == nil {
		err = root.Rename(unfinished, projectDir)
	}
	return err
}

// writeIn writes the file into a directory of the project.
func writeIn(root *os.Root, name string, old, s []byte) error {
	path := text.Word(filepath.Join(root.Name(), name))
	named, err := root.Lstat(name)
	switch {
	case err != nil:
		return err
	case !named.IsDir():
		return fmt.Errorf("%s is refused: it is no directory; put one in its place", path)
	}
	settings, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer settings.Close()
	if open, err := settings.Stat("."); err != nil || !os.SameFile(named, open) {
		return errors.Join(err, fmt.Errorf("%s is not written: %w", path, ErrChanged))
	}
	return safefile.ReplaceIn(settings, fileName, old, s, 0o644, nil)
}
