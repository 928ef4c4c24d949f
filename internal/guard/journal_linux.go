// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/filelock"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// The journal is the directory State/guard: the file lock, one file h-ID for each keeper,
// locked as long as it lives, and one entry e-HASH for each placeholder.
const (
	journalDir   = "guard"
	lockFile     = "lock"
	holderPrefix = "h-"
	entryPrefix  = "e-"
	tempPrefix   = "t-"
)

// A journal is one keeper's access to it. Unless a method says something else, it is called
// with the lock held.
type journal struct {
	dir    *os.Root
	locked *os.File
	id     string   // of the holder; empty until join
	holder *os.File // its locked file, or nil
	step   func(string)
}

// openJournal opens the journal below state, and creates its directory if create is true;
// otherwise a missing one is ENOENT.
func openJournal(state string, create bool, step func(string)) (*journal, error) {
	dir, err := openBelow(state, journalDir, create)
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir, step: step}
	if j.locked, err = dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		dir.Close()
		return nil, err
	}
	return j, nil
}

// openBelow opens the directory name in the state directory. Neither may be anything but a
// directory of sallyport's own.
func openBelow(state, name string, create bool) (*os.Root, error) {
	top, err := tree.OpenPath(state)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if create {
		return tree.Make(top, name)
	}
	return tree.Open(top, name)
}

// at marks a point between two steps. Tests end the process there.
func (j *journal) at(point string) {
	if j.step != nil {
		j.step(point)
	}
}

// lock waits for the lock of the journal, for a bounded time: see [filelock.Wait].
func (j *journal) lock() error {
	err := filelock.Wait(j.locked)
	j.at("locked")
	return err
}

func (j *journal) unlock() {
	_ = filelock.Lock(j.locked, unix.LOCK_UN) // a lock that cannot be given back ends with the descriptor
	j.at("unlocked")
}

// close closes what is open. The locks end with it.
func (j *journal) close() {
	if j.holder != nil {
		j.holder.Close()
	}
	j.locked.Close()
	j.dir.Close()
}

// join creates the file that says that this keeper lives. Others look at it only under
// the journal's lock, so that they never see it unlocked.
func (j *journal) join() error {
	id := newID()
	f, err := j.dir.OpenFile(holderPrefix+id, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.at("holder made")
	if err := filelock.Lock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return errors.Join(err, j.dir.Remove(holderPrefix+id))
	}
	j.id, j.holder = id, f
	j.at("holder locked")
	return nil
}

// leave is the end of join. It comes last: as long as the file exists, and is not locked,
// the next start looks for what this keeper left. It takes the lock.
func (j *journal) leave() error {
	if err := j.lock(); err != nil {
		return err
	}
	defer j.unlock()
	err := j.dir.Remove(holderPrefix + j.id)
	j.at("holder removed")
	return err
}

// alive reports whether the keeper id lives: whether its file exists and is locked. This
// keeper lives.
func (j *journal) alive(id string) bool {
	if id == j.id {
		return true
	}
	f, err := j.dir.OpenFile(holderPrefix+id, os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, unix.ENOENT) // only a file that does not exist proves death
	}
	defer f.Close()
	return filelock.Lock(f, unix.LOCK_EX|unix.LOCK_NB) != nil
}

// read returns an entry by its file name. ENOENT: there is none. errTorn: there is one
// that says nothing yet.
func (j *journal) read(name string) (entry, error) {
	info, err := j.dir.Lstat(name)
	switch {
	case err != nil:
		return entry{}, err
	case !info.Mode().IsRegular():
		return entry{}, errors.New("not a regular file")
	case info.Size() > maxEntry:
		return entry{}, fmt.Errorf("longer than %d bytes", maxEntry)
	}
	data, err := j.dir.ReadFile(name)
	if err != nil {
		return entry{}, err
	}
	e, err := decodeEntry(data)
	if err == nil && entryName(e.path) != name {
		return e, errors.New("the file name does not fit the path in it")
	}
	return e, err
}

// write writes data with one call, which is what all file systems do unless they are full.
func (j *journal) write(name string, flags int, data []byte, point string) error {
	f, err := j.dir.OpenFile(name, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if point != "" {
		j.at(point)
	}
	_, err = f.Write(data)
	return err
}

// create writes a new entry with the intent to create the directory, held by this keeper.
// What is left after a failure is removed.
func (j *journal) create(path string) (entry, error) {
	e := entry{path: path, holders: []string{j.id}, making: true}
	data := e.encode()
	if err := j.write(entryName(path), os.O_CREATE|os.O_EXCL, data, "entry opened"); err != nil {
		if !errors.Is(err, unix.EEXIST) {
			_ = j.dir.Remove(entryName(path))
		}
		return e, err
	}
	e.size = len(data)
	j.at("entry written")
	return e, nil
}

// add adds lines, which e says already, to the entry. An entry that is torn or long is
// rewritten.
func (j *journal) add(e *entry, lines string) error {
	if e.torn || e.size+len(lines) > longEntry {
		return j.rewrite(e)
	}
	if err := j.write(entryName(e.path), os.O_APPEND, []byte(lines), ""); err != nil {
		e.torn = true // some of it may be there now
		return err
	}
	e.size += len(lines)
	return nil
}

// rewrite replaces the entry by a file that says the same.
func (j *journal) rewrite(e *entry) error {
	data, temp := e.encode(), tempPrefix+newID()
	err := j.write(temp, os.O_CREATE|os.O_EXCL, data, "")
	j.at("entry rewritten")
	if err == nil {
		err = j.dir.Rename(temp, entryName(e.path))
	}
	if err != nil {
		_ = j.dir.Remove(temp)
		return err
	}
	e.torn, e.size = false, len(data)
	return nil
}

// forget removes an entry by its file name.
func (j *journal) forget(name string) error {
	if err := j.dir.Remove(name); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	j.at("entry removed")
	return nil
}

// giveUp ends what this keeper has of the placeholder at path. It takes the lock.
func (j *journal) giveUp(path string) error {
	if err := j.lock(); err != nil {
		return err
	}
	defer j.unlock()
	e, err := j.read(entryName(path))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = j.settle(&e, j.id, &Report{})
	}
	return err
}

// settle takes the holders that are dead, and the holder gone, out of the entry. Where
// none is left it removes the placeholder and the entry. What it did is added to r.
func (j *journal) settle(e *entry, gone string, r *Report) error {
	var lines strings.Builder
	for _, id := range slices.Clone(e.holders) {
		if id == gone || !j.alive(id) {
			e.drop(id)
			lines.WriteString(lineDrop(id))
		}
	}
	if len(e.holders) > 0 {
		r.Held = append(r.Held, Held{Path: e.path, Holders: len(e.holders)})
		if lines.Len() == 0 {
			return nil
		}
		return j.add(e, lines.String())
	}
	removed, err := removeByPath(e)
	if err != nil && !errors.Is(err, errNotOurs) {
		return err
	}
	j.at("directory removed")
	switch {
	case err != nil:
		r.Replaced = append(r.Replaced, Left{e.path, err.Error()})
	case removed:
		r.Placeholders = append(r.Placeholders, e.path)
	}
	return j.forget(entryName(e.path))
}

// errNotOurs is something at the path of an entry that was not created for it, or that
// was filled since.
var errNotOurs = errors.New("not an empty directory of sallyport")

// removeByPath removes the placeholder of e, see [removeAt].
func removeByPath(e *entry) (removed bool, err error) {
	if !e.making && !e.made {
		return false, nil
	}
	dir, err := openDir(filepath.Dir(e.path))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return false, nil
	case errors.Is(err, unix.ELOOP):
		return false, fmt.Errorf("%w: a symbolic link leads there", errNotOurs)
	case err != nil:
		return false, err
	}
	defer unix.Close(dir)
	return removeAt(dir, filepath.Base(e.path), e)
}

// removeAt removes name in dir if it is an empty directory that the entry e is about: with
// the recorded identity or, where the writer was killed before it could record one, owned
// by this user and closed. The error is errNotOurs for anything else that exists there.
func removeAt(dir int, name string, e *entry) (removed bool, err error) {
	s, err := statAt(dir, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	case !e.owns(s):
		return false, errNotOurs
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR), !s.owned():
		return false, errNotOurs // what another user owns would never go
	}
	return false, err
}

// sweep ends what dead keepers left. Entries are read only where there is a dead one, or
// always if all is true.
func (j *journal) sweep(all bool) (Report, error) {
	var r Report
	names, err := listRoot(j.dir)
	if err != nil {
		return r, err
	}
	var dead []string
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, holderPrefix); ok && validHolder(id) && !j.alive(id) {
			dead = append(dead, name)
		}
		if strings.HasPrefix(name, tempPrefix) {
			_ = j.dir.Remove(name) // its writer is dead: this keeper has the lock
		}
	}
	if len(dead) == 0 && !all {
		return r, nil
	}
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, entryPrefix):
			j.sweepEntry(name, &r)
		case name != lockFile && !strings.HasPrefix(name, holderPrefix) && !strings.HasPrefix(name, tempPrefix) && !strings.HasPrefix(name, memoryPrefix):
			r.Unknown = append(r.Unknown, Left{name, "not a file of this journal"})
		}
	}
	j.at("entries swept")
	if len(r.Failed) > 0 {
		// The dead holders are needed: where there is none, a start does not look.
		return r, nil
	}
	for _, name := range dead {
		if err := j.dir.Remove(name); err != nil {
			return r, err
		}
		j.at("dead holder removed")
	}
	return r, nil
}

// sweepEntry settles one entry.
func (j *journal) sweepEntry(name string, r *Report) {
	e, err := j.read(name)
	if errors.Is(err, errTorn) {
		if err = j.forget(name); err == nil {
			return
		}
	}
	if err != nil {
		r.Unknown = append(r.Unknown, Left{name, err.Error()})
		return
	}
	if err := j.settle(&e, "", r); err != nil {
		r.Failed = append(r.Failed, Left{e.path, err.Error()})
	}
}

// listRoot returns the names in a directory, in order.
func listRoot(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// newID returns 64 random bits for names.
func newID() string { return fmt.Sprintf("%016x", rand.Uint64()) }
