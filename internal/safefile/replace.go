// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"os"
	"path/filepath"
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
