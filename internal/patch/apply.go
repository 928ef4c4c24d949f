// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Apply does what was planned, or nothing. Journals lie in the directory path. Where it fails, or ctx ends
// before it is done, it undoes; where the process is killed, the next patch does.
//
// Files are replaced, and not written in place: one with several names is a new file under this one.
// Nothing is forced to disk, so a machine that loses its power may leave a mixture.
func (pl *Plan) Apply(ctx context.Context, path string) error { return pl.apply(ctx, path, func() {}) }

// apply is Apply with a function that is called before each change to a file system.
func (pl *Plan) apply(ctx context.Context, path string, step func()) error {
	dir, unlock, err := openJournals(path)
	if err != nil {
		return err
	}
	return errors.Join(pl.applyIn(ctx, dir, step), unlock())
}

func (pl *Plan) applyIn(ctx context.Context, dir *os.Root, step func()) error {
	if err := recoverAll(dir, pl.entries, step); err != nil {
		return err
	}
	t := &transaction{journal: newJournal(), tree: pl.tree, step: step, missing: map[string]bool{}}
	// What is removed comes first: a directory can take the place of a file.
	for _, removes := range []bool{true, false} {
		for _, e := range pl.entries {
			if e.changes() && e.now.exists != removes {
				t.add(e)
			}
		}
	}
	if len(t.entries) == 0 {
		return nil
	}
	if err := t.write(dir, step); err != nil {
		return err
	}
	undo, done := t.ID+undoSuffix, t.ID+doneSuffix
	err := t.run(ctx)
	if err == nil {
		step()
		err = dir.Rename(undo, done)
	}
	if err != nil {
		undone := t.undo(t.tree, step)
		if undone == nil {
			undone = dir.Remove(undo)
		}
		return errors.Join(err, undone)
	}
	// It is done: what cannot be removed now is removed by the next patch.
	if t.clean(t.tree, step) == nil {
		step()
		_ = dir.Remove(done)
	}
	return nil
}

// A transaction is the work of one Apply.
type transaction struct {
	*journal
	tree    *tree
	entries []*entry
	step    func()
	missing map[string]bool // as Dirs
	noSwap  bool            // the file system exchanges no names
}

// add notes what will be done for a file.
func (t *transaction) add(e *entry) {
	s := journalStep{Path: fileName(e.path)}
	if e.now.exists {
		s.Sum = sum(e.now.content)
		s.Exchange = e.read && e.text != string(e.now.content)
		t.addDirs(filepath.Dir(e.path))
	}
	t.Steps, t.entries = append(t.Steps, s), append(t.entries, e)
}

func (t *transaction) addDirs(path string) {
	if path == topOf(path) || t.tree.open[path] != nil || t.missing[path] {
		return
	}
	t.addDirs(filepath.Dir(path))
	if _, err := t.tree.dir(path); err != nil {
		t.Dirs, t.missing[path] = append(t.Dirs, fileName(path)), true
	}
}

// run writes all new files beside the old ones, and exchanges them then.
func (t *transaction) run(ctx context.Context) error {
	if err := t.each(ctx, false, "delete file", t.exchange); err != nil {
		return err
	}
	for _, made := range t.Dirs {
		path := string(made)
		d, err := t.tree.dir(filepath.Dir(path))
		if err == nil {
			t.step()
			err = d.Mkdir(filepath.Base(path), 0o777)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return failed("write file", path, err)
		}
	}
	for _, do := range []func(int, *entry) error{t.prepare, t.exchange} {
		if err := t.each(ctx, true, "write file", do); err != nil {
			return err
		}
	}
	t.tree.done = 0
	for _, exists := range []bool{false, true} {
		if err := t.each(ctx, exists, "write file", t.verify); err != nil {
			return err
		}
	}
	return nil
}

// each does something for all files that are written, or for all that are removed, until ctx ends.
func (t *transaction) each(ctx context.Context, exists bool, doing string, do func(int, *entry) error) error {
	for i, e := range t.entries {
		if e.now.exists != exists {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(i, e); err != nil {
			return failed(doing, e.path, err)
		}
	}
	return nil
}

// failed is for what was planned and cannot be done. What the tool says of what cannot be planned has no
// reason.
func failed(doing, path string, err error) error {
	return &FileError{Doing: doing, Path: path, Err: err, Says: systemSays(err)}
}

// verify looks whether what was replaced or removed is still what was planned with: a program that had it
// open may have written to it until now. What was read is compared byte by byte, since the clock of files is
// coarse.
func (t *transaction) verify(i int, e *entry) error {
	if e.before == nil {
		return nil
	}
	t.step()
	was := filepath.Join(filepath.Dir(e.path), t.beside(i, "old"))
	now, err := t.tree.lstat(was)
	if err == nil && !same(now, e.before) {
		err = errMoved
	}
	if err == nil && e.read {
		var text []byte
		if text, _, err = t.tree.read(was, now); err == nil && string(text) != e.text {
			err = errMoved
		}
	}
	return err
}

// same reports whether a file looks as it did.
func same(now, before fs.FileInfo) bool {
	return os.SameFile(now, before) && now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

// prepare writes a new file beside the old one.
func (t *transaction) prepare(i int, e *entry) error {
	d, err := t.tree.dir(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	const usual = 0o644
	mode := fs.FileMode(usual)
	if e.now.mode != 0 {
		mode = 0o600 // until it is written
	}
	t.step()
	f, err := d.OpenFile(t.beside(i, "new"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|noWait, mode)
	if err != nil {
		return err
	}
	t.step()
	_, err = f.Write(e.now.content)
	if err == nil && e.now.like != nil {
		err = keepOwner(f, e.now.like)
	}
	if err == nil && e.now.mode != 0 {
		t.step()
		err = f.Chmod(e.now.mode)
	}
	return errors.Join(err, f.Close())
}

// exchange puts the new file in the place of the old one, which keeps a name beside it.
func (t *transaction) exchange(i int, e *entry) error {
	d, err := t.tree.dir(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	name, was, next := filepath.Base(e.path), t.beside(i, "old"), t.beside(i, "new")
	now, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.before == nil:
		t.step()
		return d.Link(next, name) // which replaces nothing that was made meanwhile
	case err == nil && e.before == nil:
		return errMoved
	case err != nil:
		return err
	case !same(now, e.before):
		return errMoved
	}
	t.step()
	if !e.now.exists {
		return d.Rename(name, was)
	}
	if t.Steps[i].Exchange && !t.noSwap {
		if err := d.Rename(next, was); err != nil {
			return err
		}
		files, err := t.tree.files(filepath.Dir(e.path))
		if err != nil {
			return err
		}
		t.step()
		if err = safefile.Exchange(files.Fd(), was, name); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		t.noSwap = true
		t.step()
		if err := d.Rename(was, next); err != nil {
			return err
		}
	}
	if err := d.Link(name, was); err != nil { // not everywhere, and not for every file
		if err := d.Rename(name, was); err != nil {
			return err
		}
	}
	t.step()
	return d.Rename(next, name)
}
