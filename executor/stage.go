// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Staging has the process write to a stage: every directory of the host that its policy lets it write to is
// seen through a copy-on-write layer, and the host's stays as it is. The zero Staging makes a new stage.
type Staging struct {
	// Name is that of a stage of the workspace, which is made if it is missing. Empty with an empty ID makes
	// a new stage without a name.
	Name string
	// ID is that of a stage that exists, whole; Name has no effect then.
	ID string
	// Owner is whose stage it is among those of the user: the client of an exec-server. A Name and an ID find
	// only stages of the same owner. Empty is the user.
	Owner string
}

// PlacesIn is Places of an Executor for a command with a stage, nil for none, which alone may have the
// directory: then the places are those of the nearest directory above it.
func PlacesIn(ctx context.Context, e Executor, stage *Staging, dir string, env []string,
	tmp string) (sandbox.Places, error) {
	places, err := e.Places(ctx, dir, env, tmp)
	if stage == nil || !errors.Is(err, fs.ErrNotExist) {
		return places, err
	}
	dir, failed := filepath.Abs(dir)
	for at := dir; failed == nil && errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		places, err = e.Places(ctx, at, env, tmp)
	}
	places.Dir = dir
	return places, errors.Join(err, failed)
}

// Staged is what a process that had a stage left in it.
type Staged struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Total counts all changes of the stage, also those of earlier processes. Changes are the first
	// MaxChanges of them by root and path.
	Total   int      `json:"-"`
	Changes []Change `json:"-"`
}

// MaxChanges is how many changes a [Staged] lists.
const MaxChanges = 1000

// The kinds of a [Change].
const (
	ChangeAdded    = "added"
	ChangeModified = "modified"
	ChangeDeleted  = "deleted"
	ChangeRenamed  = "renamed"
	ChangeMode     = "mode" // mode, owner or attributes alone
	ChangeType     = "type" // what was a file is a directory or a link now, and so on
)

// Change is a difference between a stage and the host's tree. The names of its JSON members stay.
type Change struct {
	Path string `json:"path"` // relative to Root; "." for Root itself
	Root string `json:"root"` // the host's directory, absolute
	Kind string `json:"kind"`
	From string `json:"from,omitempty"` // for ChangeRenamed: the old path
	// "file", "dir", "symlink" or "special": what it is now, or was if deleted
	File string `json:"file"`
	Size int64  `json:"size"` // bytes now; 0 for what is no regular file
	// OldSize is the size of the host's, in bytes; 0 if there is none, or no regular file.
	OldSize int64  `json:"old_size"`
	Mode    string `json:"mode"` // permissions now, as "0644"; those of the host's if deleted
	Binary  bool   `json:"binary"`
	// RunsLater says that programs outside run or obey a file of that name later.
	RunsLater bool `json:"runs_later"`
	// Entries counts what a directory that was deleted held, without itself; 0 for all others.
	Entries int `json:"entries,omitempty"`
}

// StageInfo describes a stage. The names of its JSON members stay.
type StageInfo struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"` // absolute
	Commands  int       `json:"commands"`  // that have used it
	Changes   int       `json:"changes"`   // 0 if it was moved
	Bytes     int64     `json:"bytes"`     // that it holds on the disk
	Created   time.Time `json:"created"`
	Owner     string    `json:"-"` // as in Staging
	// Moved says that a directory of the stage was moved, deleted or replaced: its changes are not known.
	Moved bool `json:"moved,omitempty"`
}

// Stager is an [Executor] that has stages.
type Stager interface {
	// Stages lists the stages of this user, oldest first. What cannot be read is in the error, beside the
	// stages that can.
	Stages(ctx context.Context) ([]StageInfo, error)
	// OpenStage returns the stage with an id, a prefix of one of at least 4 characters, or the name of a
	// stage of the workspace, which is any directory in it; with an empty id the newest stage of the
	// workspace. The error matches ErrNoStage where there is none.
	OpenStage(ctx context.Context, workspace, id string) (Stage, error)
}

// Stage is what commands changed, until it is applied or discarded. Paths are absolute, or relative to the
// workspace; they name changes at and below them, and none names all. A path with no change is an error
// that matches ErrNoChange. The methods may be called concurrently.
type Stage interface {
	// Info says what was true when it was called first, or when all changes were listed before that. It may
	// read the whole stage.
	Info() StageInfo
	// Changes lists the difference, by root and path.
	Changes(ctx context.Context, paths ...string) ([]Change, error)
	// Diff writes the difference as a unified diff that git apply and patch -p1 take.
	Diff(ctx context.Context, w io.Writer, paths ...string) error
	// Apply makes changes real. What it returns is never nil; with a *ConflictError nothing was applied. It
	// can be called again after any error, and then completes.
	Apply(ctx context.Context, o ApplyOptions) (*Applied, error)
	// Discard forgets changes. Force does so while a command uses the stage, where that can be; on Linux it
	// cannot, since the stage is mounted: the error matches ErrStageInUse.
	Discard(ctx context.Context, force bool, paths ...string) error
}

// ApplyOptions say what [Stage.Apply] does. The zero value applies all changes.
type ApplyOptions struct {
	Paths  []string
	DryRun bool // only look for conflicts; Applied has what would be applied
	// Force overwrites what others have changed meanwhile, and applies what the stage holds now while a
	// command still uses it, or after the machine was restarted (ErrNotSynced).
	Force bool
}

// Applied is what [Stage.Apply] did. The names of its JSON members stay.
type Applied struct {
	// paths as in Change; those of other roots than the workspace absolute
	Applied   []string   `json:"applied"`
	Conflicts []Conflict `json:"conflicts"` // with ApplyOptions.Force those that were overwritten
	Left      int        `json:"left"`      // how many changes stay in the stage
	// Refused are changes that are never applied, each with the reason: special files, and what the policy of
	// the commands does not let them write.
	Refused []Conflict `json:"refused,omitempty"`
}

// Conflict is a path that cannot be applied.
type Conflict struct {
	Path string `json:"path"`
	// Reason is "content", "mode", "kind" or "deleted" where the host's file was changed meanwhile, else a
	// sentence.
	Reason string `json:"reason"`
}

// ConflictError says that nothing was applied, because others changed the same files.
type ConflictError struct{ Conflicts []Conflict }

// Error returns one sentence with the first path.
func (e *ConflictError) Error() string {
	s := ""
	if len(e.Conflicts) > 0 {
		s = text.Word(e.Conflicts[0].Path) + " was changed outside of the stage meanwhile"
	}
	if n := len(e.Conflicts) - 1; n > 0 {
		s += fmt.Sprintf(", and %d more", n)
	}
	return s + "; nothing was applied: use --force to overwrite, or name the paths to apply"
}

// The errors of stages, for errors.Is.
var (
	ErrNoStage  = errors.New("there is no such stage")
	ErrNoChange = errors.New("the stage has no change there")
	// ErrStageInUse is for a stage that a command uses.
	ErrStageInUse = errors.New("a command uses the stage")
	// ErrNotSynced is for a stage that may lack what was written last, because the machine was restarted.
	ErrNotSynced = errors.New("the machine was restarted since commands wrote to the stage")
)

// StageError is an error of a stage: what is wrong, and how to go on.
type StageError struct {
	ID  string // may be empty
	Why string // a sentence without its full stop
	Fix string // may be empty
	Err error  // ErrNoStage, ErrStageInUse, what the system said; may be nil
}

// Error returns one sentence with the cause and the fix.
func (e *StageError) Error() string {
	s := e.Why
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return text.Line(s)
}

// Unwrap gives the cause.
func (e *StageError) Unwrap() error { return e.Err }
