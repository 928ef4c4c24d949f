// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Read refuses the files of a project: this system has no place for records.
func Read(dir string) (*Project, error) {
	path := filepath.Join(dir, configDir)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, &RefusedError{path, "projects cannot be trusted on this system", "remove it"}
	}
	return &Project{Dir: filepath.Clean(dir)}, nil
}

// found finds the directory of a project.
func (p *Project) found() (err error) {
	p.Dir, err = filepath.EvalSymlinks(p.Dir)
	return err
}

// Trust is not supported on this system.
func (p *Project) Trust() error { return errors.ErrUnsupported }

// List returns nothing.
func List() ([]Record, error) { return nil, nil }

// Revoke finds nothing.
func Revoke(string) (bool, error) { return false, nil }

// A reading is empty: no project is trusted on this system.
type reading struct{} //nolint:unused,nolintlint // it is a part of Project

// Recorded finds nothing.
func Recorded(string) (bool, error) { return false, nil }
