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

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// The journal is the directory State/guard: the file lock, one file h-ID for each protector that
// remembers something, locked as long as it lives, and one memory m-HASH for each repository.
const (
	journalDir   = "guard"
	lockFile     = "lock"
	holderPrefix = "h-"
	tempPrefix   = "t-"
)

// A journal is one protector's access to it. Unless a method says something else, it is called
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
	top, err := safefile.OpenTreePath(state)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if create {
		return safefile.MakeDir(top, name)
	}
	return safefile.OpenTree(top, name)
}

// at marks a point between two steps. Tests end the process there.
func (j *journal) at(point string) {
	if j.step != nil {
		j.step(point)
	}
}

// lock waits for the lock of the journal, for a bounded time: see [safefile.WaitLock].
func (j *journal) lock() error {
	err := safefile.WaitLock(j.locked)
	j.at("locked")
	return err
}

func (j *journal) unlock() {
	_ = safefile.Lock(j.locked, unix.LOCK_UN) // a lock that cannot be given back ends with the descriptor
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

// join creates the file that says that this protector lives. Others look at it only under
// the journal's lock, so that they never see it unlocked.
func (j *journal) join() error {
	id := newID()
	f, err := j.dir.OpenFile(holderPrefix+id, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.at("holder made")
	if err := safefile.Lock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return errors.Join(err, j.dir.Remove(holderPrefix+id))
	}
	j.id, j.holder = id, f
	j.at("holder locked")
	return nil
}

// leave is the end of join. It comes last: as long as the file exists, and is not locked,
// the next start looks for what this protector left. It takes the lock.
func (j *journal) leave() error {
	if err := j.lock(); err != nil {
		return err
	}
	defer j.unlock()
	err := j.dir.Remove(holderPrefix + j.id)
	j.at("holder removed")
	return err
}

// alive reports whether the protector id lives: whether its file exists and is locked. This
// protector lives.
func (j *journal) alive(id string) bool {
	if id == j.id {
		return true
	}
	f, err := j.dir.OpenFile(holderPrefix+id, os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, unix.ENOENT) // only a file that does not exist proves death
	}
	defer f.Close()
	return safefile.Lock(f, unix.LOCK_EX|unix.LOCK_NB) != nil
}

// write writes data with one call, which is what all file systems do unless they are full.
func (j *journal) write(name string, data []byte) error {
	f, err := j.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

// forget removes a file.
func (j *journal) forget(name string) error {
	if err := j.dir.Remove(name); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	j.at("memory removed")
	return nil
}

// sweep removes the files of dead protectors, and reports what is none of this journal's.
func (j *journal) sweep(r *Report) error {
	names, err := listRoot(j.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, holder := strings.CutPrefix(name, holderPrefix)
		switch {
		case strings.HasPrefix(name, tempPrefix), holder && validHolder(id) && !j.alive(id):
			// The writer of a temporary file is dead: this protector has the lock.
			if err := j.dir.Remove(name); err != nil {
				return err
			}
			j.at("dead holder removed")
		case name != lockFile && !holder && !strings.HasPrefix(name, memoryPrefix):
			r.Unknown = append(r.Unknown, Left{name, "not a file of this journal"})
		}
	}
	return nil
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

func lineAdd(holder string) string { return "+ " + holder + "\n" }

// validHolder reports whether s is a holder as newID returns them; it becomes part of a
// file name.
func validHolder(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}

// validPath reports whether p is absolute, clean, and names something in a directory.
func validPath(p string) bool {
	return filepath.IsAbs(p) && p != "/" && filepath.Clean(p) == p && !strings.Contains(p, "\x00")
}
