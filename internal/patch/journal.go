// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A journal is written before anything else, with all names that will be: what is found under its name
// with undoSuffix is undone, and the rest of what is found with doneSuffix is removed. A rename from one
// to the other is the moment at which a patch is done.
type journal struct {
	Form  int // of what follows; another version may have another one
	ID    string
	Dirs  []fileName // that are made, the upper ones first
	Steps []journalStep
}

const journalForm = 2 // which is 1 without Exchange

// A fileName is kept byte by byte: the text of JSON would be another one where it is not UTF-8.
type fileName string

// MarshalJSON implements [json.Marshaler].
func (n fileName) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(n)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *fileName) UnmarshalJSON(text []byte) error {
	var name []byte
	err := json.Unmarshal(text, &name)
	if *n = fileName(name); err == nil && !filepath.IsAbs(string(name)) {
		err = errors.New("it has a name that is not absolute")
	}
	return err
}

// A journalStep is one file. Beside it, temporary files hold what it was and what it will be.
type journalStep struct {
	Path fileName
	Sum  string // of the new content, in hexadecimal; empty if the file is removed
	// Exchange says that the new file, complete, gets the hidden name of the old one, and both names are
	// exchanged then. Its content is not that of the old one.
	Exchange bool `json:",omitempty"`
}

const (
	undoSuffix = ".undo"
	doneSuffix = ".done"
	writing    = ".new" // a journal that is not complete: nothing was done
)

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// beside returns the name of a temporary file of a step.
func (j *journal) beside(i int, what string) string {
	return fmt.Sprintf(".sallyport-patch-%s-%d.%s", j.ID, i, what)
}

func newJournal() *journal { return &journal{Form: journalForm, ID: rand.Text()} }

// write makes the journal one that is undone.
func (j *journal) write(dir *os.Root, step func()) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	step()
	if err := dir.WriteFile(j.ID+writing, content, 0o600); err != nil {
		return errors.Join(err, dir.Remove(j.ID+writing))
	}
	step()
	return dir.Rename(j.ID+writing, j.ID+undoSuffix)
}

// A StrayError says that files changed while a patch was half done. They were left alone.
type StrayError struct{ Paths []string }

// Error returns one sentence with the files.
func (e *StrayError) Error() string {
	words := make([]string, len(e.Paths))
	for i, path := range e.Paths {
		words[i] = text.Word(path)
	}
	return "files changed while a patch was half done, and were left as they are: " +
		strings.Join(words, ", ") + "; what they were before lies beside them in .sallyport-patch-*.old"
}

// undo brings back what was there before. It can be killed and called again.
func (j *journal) undo(r *tree, step func()) error {
	var errs []error
	stray := &StrayError{}
	undo := func(removals bool) {
		for i, s := range slices.Backward(j.Steps) {
			if removals != (s.Sum == "") {
				continue
			}
			ok, err := j.undoStep(r, i, step)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", text.Word(string(s.Path)), err))
			}
			if !ok {
				stray.Paths = append(stray.Paths, string(s.Path))
			}
		}
	}
	undo(false)
	for i := len(j.Dirs) - 1; i >= 0; i-- {
		dir, name := filepath.Split(string(j.Dirs[i]))
		d, err := r.dir(filepath.Clean(dir))
		if err != nil {
			continue
		}
		if info, err := d.Lstat(name); err == nil && info.IsDir() {
			step()
			_ = d.Remove(name) // one that is not empty stays
		}
	}
	undo(true) // a directory can have taken the place of a file
	if len(stray.Paths) > 0 {
		errs = append(errs, stray)
	}
	return errors.Join(errs...)
}

// undoStep reports whether the file is as it was.
func (j *journal) undoStep(r *tree, i int, step func()) (bool, error) {
	s, path := j.Steps[i], string(j.Steps[i].Path)
	d, err := r.dir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || err != nil && j.inPlaceOfFile(path) {
		return true, nil // it was to be made
	}
	if err != nil {
		return false, nil //nolint:nilerr // what was put on the way must not stop all later patches
	}
	name, was, next := filepath.Base(path), j.beside(i, "old"), j.beside(i, "new")
	before, err := d.Lstat(was)
	replaced := err == nil
	if replaced && s.Exchange && has(r, filepath.Join(filepath.Dir(path), was), s.Sum) {
		step()
		return true, errors.Join(gone(d, was), gone(d, next)) // it was not exchanged
	}
	now, err := d.Lstat(name)
	ours := errors.Is(err, fs.ErrNotExist) || err == nil && replaced && os.SameFile(before, now)
	ours = ours || s.Sum != "" && has(r, path, s.Sum)
	switch {
	case replaced && ours:
		if before.IsDir() { // what another program made in the place of the file
			step()
			_ = d.Remove(name)
		}
		step()
		err = d.Rename(was, name)
		step()
		err = errors.Join(err, gone(d, was)) // two names of one file are not renamed
	case replaced, !ours && j.made(d, i):
		return false, gone(d, next)
	case ours && j.made(d, i):
		step()
		err = gone(d, name)
	default:
		err = nil
	}
	step()
	return true, errors.Join(err, gone(d, next))
}

// has reports whether a file has the content with a sum.
func has(r *tree, path, want string) bool {
	r.done = 0 // of the one file
	info, err := r.lstat(path)
	if err != nil {
		return false
	}
	content, _, err := r.read(path, info)
	return err == nil && sum(content) == want
}

// inPlaceOfFile reports whether a path leads through a file that is removed.
func (j *journal) inPlaceOfFile(path string) bool {
	return slices.ContainsFunc(j.Steps, func(s journalStep) bool {
		return s.Sum == "" && string(s.Path) != path && safefile.Within(path, string(s.Path))
	})
}

// made reports whether a file was made where none was: its temporary name stays until the patch is done.
func (j *journal) made(d *os.Root, i int) bool {
	next, err := d.Lstat(j.beside(i, "new"))
	if err != nil {
		return false
	}
	now, err := d.Lstat(filepath.Base(string(j.Steps[i].Path)))
	return err == nil && os.SameFile(next, now)
}

// clean removes what a patch that is done left beside its files: what a file was, or, where none was, the
// temporary name of the new one.
func (j *journal) clean(r *tree, step func()) error {
	var errs []error
	for i, s := range j.Steps {
		d, err := r.dir(filepath.Dir(string(s.Path)))
		if err == nil {
			step()
			err = d.Remove(j.beside(i, "old"))
		}
		if d != nil && errors.Is(err, fs.ErrNotExist) {
			err = d.Remove(j.beside(i, "new"))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// gone removes a name that may be missing.
func gone(d *os.Root, name string) error {
	if err := d.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openJournals opens the directory of journals, and locks it until unlock: one patch at a time.
func openJournals(path string) (dir *os.Root, unlock func() error, err error) {
	dir, err = safefile.MakeDirs(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	if err := lock(f); err != nil {
		return nil, nil, errors.Join(err, f.Close(), dir.Close())
	}
	return dir, func() error { return errors.Join(f.Close(), dir.Close()) }, nil
}

// recoverAll undoes patches that a killed process left half done, and removes what is left of those that were
// done.
//
// What cannot be undone now stays, and stops only what changes the same files.
func recoverAll(dir *os.Root, changes []*entry, step func()) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	errs := []error{err, d.Close()}
	for _, name := range names {
		switch filepath.Ext(name) {
		case writing:
			errs = append(errs, dir.Remove(name))
		case undoSuffix, doneSuffix:
			errs = append(errs, recoverOne(dir, name, changes, step))
		}
	}
	return errors.Join(errs...)
}

// readJournal reads what was written in one step; nothing else is obeyed.
func readJournal(dir *os.Root, name string) (*journal, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	content, err := dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(content, j); err != nil {
		return nil, err
	}
	if j.Form != 1 && j.Form != journalForm {
		return nil, fmt.Errorf("another version of sallyport wrote it (form %d), which can undo it", j.Form)
	}
	return j, nil
}

func recoverOne(dir *os.Root, name string, changes []*entry, step func()) error {
	j, err := readJournal(dir, name)
	if err != nil {
		return fmt.Errorf("the journal of a patch, %s, is damaged: %w; look for what it left (.sallyport-patch-*), "+
			"and remove it", filepath.Join(dir.Name(), name), err)
	}
	if len(j.Steps) == 0 {
		return dir.Remove(name)
	}
	r, err := openTree(string(j.Steps[0].Path))
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }() // what is open has no more to say
	if filepath.Ext(name) == doneSuffix {
		err = j.clean(r, step)
	} else {
		err = j.undo(r, step)
	}
	stray := (*StrayError)(nil)
	switch {
	case err == nil || errors.As(err, &stray):
		step()
		return errors.Join(err, dir.Remove(name))
	case filepath.Ext(name) == doneSuffix || !j.touches(changes):
		return nil // a later patch tries again
	}
	return fmt.Errorf("a patch of the same files was cut off and cannot be undone: %w; remove what hinders "+
		"it, or remove %s to keep the files as they are (what they were lies beside them in "+
		".sallyport-patch-%s-*.old)", err, text.Word(filepath.Join(dir.Name(), name)), j.ID)
}

// touches reports whether a file of the journal, or one above or below it, is changed.
func (j *journal) touches(changes []*entry) bool {
	return slices.ContainsFunc(changes, func(e *entry) bool {
		return slices.ContainsFunc(j.Steps, func(s journalStep) bool {
			return safefile.Within(e.path, string(s.Path)) || safefile.Within(string(s.Path), e.path)
		})
	})
}
