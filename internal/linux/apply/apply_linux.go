// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"

	"golang.org/x/sys/unix"
)

// A Stage is what is applied or discarded. The caller holds its lock, unless it is InUse. All fields but
// InUse are required.
type Stage struct {
	ID        string
	Dir       string // the stage's own directory, absolute; only its user can open it
	Workspace string // absolute; paths in it are told relative to it where it is a root
	Roots     []Root
	Base      *changes.Base
	// Closed returns why a command with the policy of the stage could not write a path, which is
	// absolute; nil if it could.
	Closed func(path string) error
	// InUse says that a command uses the stage, whose overlays are mounted: nothing is removed from it.
	InUse bool

	step func(path string) // is called before each look and each change; nil but in tests
}

// A Root is a directory of the host that a stage lies over.
type Root struct {
	changes.Layer
	ID ID // of Layer.Root when the stage was made
}

// Apply makes changes real. It blocks for the file system, and until ctx ends between two files. What it
// returns is never nil, and its error an [*executor.ConflictError], after which nothing was applied, an
// [*executor.StageError], or one of [changes]. After every error the stage has all that was not applied,
// and the call can be repeated. Where nothing is left and no command uses the stage, the caller forgets
// it.
func Apply(ctx context.Context, s *Stage, o executor.ApplyOptions) (*executor.Applied, error) {
	result := &executor.Applied{Applied: []string{}, Conflicts: []executor.Conflict{}}
	w, err := s.open(ctx)
	if err != nil {
		return result, err
	}
	defer w.close()
	if !o.DryRun {
		if err := w.recover(); err != nil {
			return result, err
		}
	}
	if err := w.read(o.Paths); err != nil {
		return result, err
	}
	w.force = o.Force
	w.recall()
	w.refuse(result)
	result.Left = w.total
	for _, n := range w.entries {
		if why := n.entry.Conflict(); n.chosen && why != "" {
			result.Conflicts = append(result.Conflicts,
				executor.Conflict{Path: s.shown(n.entry), Reason: why})
		}
	}
	if len(result.Conflicts) > 0 && !o.Force {
		return result, &executor.ConflictError{Conflicts: result.Conflicts}
	}
	if !o.DryRun {
		err = w.perform()
		w.freeing.Wait()
	}
	for _, n := range w.entries {
		if n.chosen && (n.done || o.DryRun) {
			result.Applied = append(result.Applied, s.shown(n.entry))
		}
	}
	if !o.DryRun {
		result.Left -= len(result.Applied)
		if settled := w.settle(result.Left); err == nil { // else the next call settles it
			err = settled
		}
	}
	return result, err
}

// Discard forgets the changes at and below paths, and returns how many are left. The host's tree is only
// looked at. An empty paths discards nothing; the caller forgets the whole stage itself, after [Recover].
func Discard(ctx context.Context, s *Stage, paths ...string) (left int, err error) {
	w, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	defer w.close()
	if err := w.recover(); err != nil {
		return 0, err
	}
	if len(paths) == 0 {
		return 0, nil
	}
	if err := w.read(paths); err != nil {
		return 0, err
	}
	left, w.resets = w.total, true
	for _, n := range w.entries {
		if n.chosen {
			n.done = true
			left--
		}
	}
	return left, errors.Join(w.drop(), w.journal.end())
}

// Recover removes what an apply that was killed has left beside the files of the host.
func Recover(ctx context.Context, s *Stage) error {
	w, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	return w.recover()
}

// work is one call of Apply or Discard.
type work struct {
	ctx    context.Context
	stage  *Stage
	temp   string // the temporary name in each directory
	force  bool
	resets bool // single files of the stage become what the host has
	layers []*layer
	total  int // changes of the stage

	entries []*node // of all changes, in their order
	links   map[inode]*node
	earlier lasting // of calls before this one
	lock    *os.File
	journal journal
	buffer  []byte
	noClone map[uint64]bool // by device: its file system shares no extents
	slow    int             // how many of the last removals were: see removeOld
	frees   chan struct{}   // has one for each of those that freeing waits for
	freeing sync.WaitGroup

	stopped  bool                 // by an error that would be that of the next change as well
	failures int                  // changes that failed
	failure  *executor.StageError // the first
}

type layer struct {
	*Root
	host, upper int // O_PATH
	top         *node
	same        map[inode]string // see unchanged; nil before it is needed
}

// read reads the changes, and marks those that are chosen.
func (w *work) read(paths []string) error {
	all, err := changes.ReadPlain(w.ctx, w.stage.layers(), w.stage.Base)
	if err != nil {
		return err
	}
	chosen, err := changes.Select(all, paths)
	if err != nil {
		return err
	}
	return w.plant(all, chosen)
}

// next says that a look at the host or a change follows.
func (w *work) next(n *node) {
	if w.stage.step != nil {
		w.stage.step(n.entry.Path)
	}
}

func (s *Stage) layers() []changes.Layer {
	layers := make([]changes.Layer, len(s.Roots))
	for i := range s.Roots {
		layers[i] = s.Roots[i].Layer
	}
	return layers
}

// refuse takes what is never applied out of what is chosen.
func (w *work) refuse(result *executor.Applied) {
	for _, n := range w.entries {
		if !n.chosen {
			continue
		}
		if why := w.refused(n); why != "" {
			n.chosen = false
			result.Refused = append(result.Refused,
				executor.Conflict{Path: w.stage.shown(n.entry), Reason: why})
		}
	}
}

// refused returns why a change is never applied; empty if it can be.
func (w *work) refused(n *node) string {
	const sets = 0o6000 // set-uid and set-gid bits, which no command can set
	e, deletes := n.entry, n.entry.Kind == executor.ChangeDeleted
	path := w.path(n)
	switch {
	case !filepath.IsLocal(e.Path) && e.Path != ".":
		return "it is no path below the root"
	case e.File == "special" && !deletes:
		return "special files are not applied"
	case e.File == "file" && e.New.Mode&sets&^e.Old.Mode != 0:
		return "it sets a set-uid or set-gid bit"
	}
	if len(path) >= unix.PathMax { // no program could name it, and to judge each directory above it takes long
		return fmt.Sprintf("its path is longer than the %d bytes that programs can use", unix.PathMax-1)
	}
	for at := n; at.up != nil; at = at.up {
		if at.name == w.temp {
			return "the name is one of sallyport's temporary files"
		}
		if at != n && isDir(at.entry.Old.Mode) {
			continue // it is there, and stays
		}
		if err := w.closed(at); err != nil {
			return "the policy of the stage does not allow it: " + err.Error()
		}
	}
	if !isDir(e.Old.Mode) || e.Kind == executor.ChangeMode {
		return ""
	}
	why, err := w.closedBelow(n)
	if err != nil {
		return fmt.Sprintf("%s cannot be searched for what must stay: %v", text.Word(path), err)
	}
	return why
}

// closed asks Closed once for each path.
func (w *work) closed(n *node) error {
	if !n.judged {
		n.judged, n.closed = true, w.stage.Closed(w.path(n))
	}
	return n.closed
}

// path returns the absolute path of what has or will have a name on the host.
func (w *work) path(n *node) string {
	return filepath.Join(w.layers[n.entry.Layer].Root.Root, n.entry.Path)
}

// shown is how results name a change.
func (s *Stage) shown(e *changes.Entry) string {
	if safefile.Within(e.Root, s.Workspace) && e.Root == s.Workspace {
		return e.Path
	}
	return filepath.Join(e.Root, e.Path)
}

// settle takes what was applied out of the stage.
func (w *work) settle(left int) error {
	if err := w.sync(); err != nil {
		return err
	}
	if !w.stage.InUse && left == 0 {
		return w.journal.end() // the caller forgets all of it
	}
	if !w.stage.InUse {
		if err := w.remember(); err != nil {
			return err
		}
		if err := w.drop(); err != nil {
			return err
		}
	}
	var done []changes.Entry
	for _, l := range w.layers {
		l.top.each(func(n *node) {
			if n.done || n.entry.Way {
				done = append(done, *n.entry)
			}
		})
	}
	return errors.Join(w.stage.Base.Applied(w.stage.layers(), done), w.journal.end())
}

// sync has the file systems of the host write what was applied, before the stage may be forgotten.
func (w *work) sync() error {
	synced := map[uint64]bool{}
	for _, l := range w.layers {
		var st unix.Stat_t
		if _, some := l.top.whole(); !some || unix.Fstat(l.host, &st) != nil || synced[st.Dev] {
			continue
		}
		synced[st.Dev] = true
		f, err := reader(l.host)
		if err != nil {
			continue // it cannot be opened for reading, and is written in its time
		}
		err = unix.Syncfs(int(f.Fd()))
		f.Close()
		if err != nil {
			return &executor.StageError{ID: w.stage.ID, Err: err, Fix: "run apply again",
				Why: fmt.Sprintf("what was applied to %s could not be written: %v",
					text.Word(l.Root.Root), err)}
		}
	}
	return nil
}
