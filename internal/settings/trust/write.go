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
	return safefile.ReplaceIn(settings, fileName, old, s, 0o644, nil)
}
