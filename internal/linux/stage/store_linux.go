// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/linux/layers"
)

// A Store is the stages of this user. State is the state directory: absolute, and closed to others.
type Store struct{ State string }

// A Stage is one that exists. Its methods are not safe for concurrent use.
type Stage struct {
	Record
	dir  string
	lock *os.File // nil while it is only read
}

// Create makes a stage and locks it. Nothing of it is left after an error.
func (s Store) Create(workspace, name, owner string) (*Stage, error) { panic("not yet") }

// Open returns the stage with an id, a prefix of one with at least 4 characters, or the name of a stage of the
// workspace; with an empty id the newest stage of the workspace. A stage is of a workspace that is any
// directory in its own one. It is not locked. The error matches executor.ErrNoStage where there is none.
func (s Store) Open(workspace, id string) (*Stage, error) { panic("not yet") }

// List returns all stages, oldest first, and beside them an error for those that cannot be read.
func (s Store) List() ([]*Stage, error) { panic("not yet") }

// Lock locks the stage for this process and those to which it gives [Stage.Hold], and reads the record again.
// It does not wait: the error matches executor.ErrStageInUse while others have it.
func (st *Stage) Lock() error { panic("not yet") }

// Hold returns what is locked, which a sandbox keeps open as long as it may write: the directory of the stage.
// It is nil while the stage is not locked.
func (st *Stage) Hold() *os.File { return st.lock }

// Unlock gives the stage to others. It may be called twice.
func (st *Stage) Unlock() {
	layers.Unlock(st.lock)
	st.lock = nil
}

// Dir returns the directory of the stage.
func (st *Stage) Dir() string { return st.dir }

// Base returns the file with what the host's files were.
func (st *Stage) Base() string { return filepath.Join(st.dir, "base") }

// Upper returns the directory of the n-th root that has what was written, and Work that of the kernel.
func (st *Stage) Upper(n int) string { return filepath.Join(st.root(n), layers.UpperDir) }

func (st *Stage) root(n int) string { return filepath.Join(st.dir, strconv.Itoa(n)) }

// Begin records that a run begins, with what it may write. The stage must be locked.
func (st *Stage) Begin(p Policy, roots []Root) error { panic("not yet") }

// End records that the run has ended, and what it has changed is known.
func (st *Stage) End() error { panic("not yet") }

// Forget removes the stage, which must be locked.
func (st *Stage) Forget() error { panic("not yet") }
