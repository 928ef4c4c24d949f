// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	storeDir   = dirs.StagesName
	recordFile = "record.json"
	newPrefix  = ".new-" // of the name of a stage that is being made,
	oldPrefix  = ".old-" // and of one that is being removed
	// maxRecord is how large a record may be, in bytes.
	maxRecord = 16 << 20
	// leastPrefix is how many characters of an id are enough, if no other one begins with them.
	leastPrefix = 4
)

// A Store is the stages of this user. State is the state directory: absolute, and closed to others.
type Store struct{ State string }

// Use returns the stage that a command asks for, locked: the one with the id, the one of the workspace with
// the name, or a new one. A workspace is a directory, without symbolic links; where a stage has it, any
// directory in it. Made says that the stage is new; nothing of it is left after an error.
func (s Store) Use(workspace, dir string, a *executor.Staging) (st *Stage, made bool, err error) {
	if err := CheckName(a.Name); a.ID == "" && a.Name != "" && err != nil {
		return nil, false, &executor.StageError{Why: err.Error()}
	}
	all, err := s.lock()
	if err != nil {
		return nil, false, s.failed("", err)
	}
	defer layers.Unlock(all)
	switch {
	case a.ID != "":
		if st, err = s.load(a.ID); err == nil && st.Owner != a.Owner {
			err = noStage("no stage has the id " + text.Word(a.ID))
		}
	case a.Name != "":
		st = s.named(dir, a.Name, func(r *Record) bool { return r.Owner == a.Owner })
	}
	if err != nil {
		return nil, false, err
	}
	if st == nil {
		st, err = s.create(&Record{Form: form, Name: a.Name, Owner: a.Owner, Workspace: workspace})
		return st, true, s.failed("", err)
	}
	if err := st.Lock(); err != nil {
		return nil, false, err
	}
	return st, false, nil
}

// lock locks the directory of all stages, and makes it.
func (s Store) lock() (*os.File, error) {
	dir := filepath.Join(s.State, storeDir)
	own, err := safefile.MakeOwn(dir)
	if err != nil {
		return nil, err
	}
	_ = own.Close()
	return layers.OpenLocked(dir, unix.LOCK_EX)
}

// create makes a stage. The directory of all stages is locked.
func (s Store) create(r *Record) (_ *Stage, err error) {
	var id [idLength / 2]byte
	_, _ = rand.Read(id[:]) // it never fails
	r.ID, r.Created = hex.EncodeToString(id[:]), time.Now().UnixNano()
	if !clean(r.Workspace) {
		return nil, errors.New("the path of the workspace is not valid UTF-8")
	}
	all := filepath.Join(s.State, storeDir)
	names, err := os.ReadDir(all)
	for _, n := range names {
		if strings.HasPrefix(n.Name(), newPrefix) { // of one that was killed
			err = errors.Join(err, safefile.RemoveTreePath(filepath.Join(all, n.Name())))
		}
	}
	unnamed := filepath.Join(all, newPrefix+r.ID)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = safefile.RemoveTreePath(unnamed) // the error says more
		}
	}()
	if err := layers.MakeDirs(unnamed); err != nil {
		return nil, err
	}
	st := &Stage{Record: *r, dir: unnamed}
	if err := st.save(true); err != nil {
		return nil, err
	}
	if st.lock, err = layers.OpenLocked(unnamed, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	st.dir = filepath.Join(all, r.ID)
	if err := os.Rename(unnamed, st.dir); err != nil {
		st.Unlock()
		return nil, err
	}
	return st, nil
}

// failed is err about a stage, or about all for an empty id; nil stays nil, and what names a stage as it is.
func (s Store) failed(id string, err error) error {
	var known *executor.StageError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &executor.StageError{ID: id, Err: err, Why: "the stage cannot be kept in " +
		text.Word(filepath.Join(s.State, storeDir)) + ": " + err.Error(),
		Fix: "set XDG_STATE_HOME to a directory of yours with free space"}
}

func noStage(why string) error {
	return &executor.StageError{Why: why, Fix: "sallyport stages lists them", Err: executor.ErrNoStage}
}

// load reads a stage by its id.
func (s Store) load(id string) (*Stage, error) {
	if !validID(id) {
		return nil, noStage("no stage has the id " + text.Word(id))
	}
	st := &Stage{dir: filepath.Join(s.State, storeDir, id)}
	if err := st.read(); err != nil {
		return nil, err
	}
	if st.ID != id {
		return nil, st.unreadable(errors.New("it has the id of another stage"))
	}
	return st, nil
}

// Open returns the stage with an id, the name of a stage of the workspace, or a prefix of an id with at least
// 4 characters; with an empty id the newest stage of the workspace, which is any directory in that of the
// stage. It is not locked. The error matches executor.ErrNoStage where there is none.
func (s Store) Open(workspace, id string) (*Stage, error) {
	if validID(id) {
		st, err := s.load(id)
		if !errors.Is(err, executor.ErrNoStage) {
			return st, err
		}
	}
	workspace = hostfacts.RealPath(workspace)
	every := func(*Record) bool { return true }
	if st := s.named(workspace, id, every); st != nil {
		return st, nil
	}
	if id == "" {
		return nil, noStage("no stage is of " + text.Word(workspace))
	}
	all, _ := s.List() // one that cannot be read is found by its whole id
	if len(id) >= leastPrefix {
		all = slices.DeleteFunc(all, func(st *Stage) bool { return !strings.HasPrefix(st.ID, id) })
		switch len(all) {
		case 0:
		case 1:
			return all[0], nil
		default:
			return nil, noStage("several stages have ids that begin with " + text.Word(id))
		}
	}
	return nil, noStage("no stage of " + text.Word(workspace) + " has the id or name " + text.Word(id))
}

// named returns the newest stage with a name, or of any with none, of the workspace that a directory is in;
// nil where there is none. Those that cannot be read may be of any workspace, and do not count.
func (s Store) named(dir, name string, owned func(*Record) bool) *Stage {
	all, _ := s.List()
	for _, st := range slices.Backward(all) {
		if (name == "" || st.Name == name) && safefile.Within(dir, st.Workspace) && owned(&st.Record) {
			return st
		}
	}
	return nil
}

// forgetUnread removes a stage whose record cannot be read.
func (s Store) forgetUnread(id string) error {
	st := &Stage{Record: Record{ID: id}, dir: filepath.Join(s.State, storeDir, id)}
	lock, err := layers.OpenLocked(st.dir, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return InUse(id)
	}
	if err != nil {
		return s.failed(id, err)
	}
	st.lock = lock
	return st.Forget()
}

// List returns all stages, oldest first, and beside them an error for those that cannot be read.
func (s Store) List() ([]*Stage, error) {
	entries, err := os.ReadDir(filepath.Join(s.State, storeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, s.failed("", err)
	}
	var all []*Stage
	var failed error
	for _, e := range entries {
		if !validID(e.Name()) {
			continue
		}
		switch st, err := s.load(e.Name()); {
		case err == nil:
			all = append(all, st)
		case !errors.Is(err, executor.ErrNoStage): // which was removed meanwhile
			failed = errors.Join(failed, err)
		}
	}
	slices.SortStableFunc(all, func(a, b *Stage) int { return a.Time().Compare(b.Time()) })
	return all, failed
}

// read reads the record.
func (st *Stage) read() error {
	err := safefile.CheckOwn(st.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return noStage("no stage has the id " + text.Word(filepath.Base(st.dir)))
	}
	var s []byte
	var more bool
	if err == nil {
		s, more, err = safefile.Read(filepath.Join(st.dir, recordFile), maxRecord)
	}
	if err == nil && more {
		err = fmt.Errorf("%s is too large", recordFile)
	}
	var r *Record
	if err == nil {
		if r, err = Parse(s); err != nil {
			err = fmt.Errorf("%s: %w", recordFile, err)
		}
	}
	if err != nil {
		return st.unreadable(err)
	}
	st.Record = *r
	return nil
}

func (st *Stage) unreadable(err error) error {
	return &executor.StageError{ID: filepath.Base(st.dir), Err: err,
		Why: "the stage " + text.Word(filepath.Base(st.dir)) + " cannot be read: " + err.Error(),
		Fix: "correct it, or give up all that is staged with sallyport discard " + text.Word(filepath.Base(st.dir))}
}

// save writes the record, with sync to the disk.
func (st *Stage) save(sync bool) error {
	s, err := json.MarshalIndent(&st.Record, "", "\t")
	if err != nil {
		return err
	}
	if _, err = Parse(s); err != nil {
		return err // else no later command could read it
	}
	name := filepath.Join(st.dir, recordFile)
	if err := safefile.Replace(name, append(s, '\n')); err != nil || !sync {
		return err
	}
	f, err := safefile.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
