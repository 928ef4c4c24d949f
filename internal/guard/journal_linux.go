// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The journal is the folder State/guard: the file lock, one file h-ID for each
// keeper, locked as long as it lives, and one entry e-HASH for each placeholder.
const (
	journalDir   = "guard"
	lockFile     = "lock"
	holderPrefix = "h-"
	entryPrefix  = "e-"
	tempPrefix   = "t-"
)

// A journal is one keeper's access to it. Everything but open and shut is called
// with the lock held.
type journal struct {
	dir    int // O_RDONLY, to be listed
	lockFd int
	id     string // of the holder; empty until join
	holder int    // its locked file, or -1
	step   func(string)
}

// openJournal opens the journal below state, and makes its folder if make is
// true; otherwise a missing one is ENOENT.
func openJournal(state string, create bool, step func(string)) (*journal, error) {
	top, err := openRetry(unix.AT_FDCWD, state, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(top)
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	dir, err := openRetry(top, journalDir, flags, 0)
	if errors.Is(err, unix.ENOENT) && create {
		if err = unix.Mkdirat(top, journalDir, 0o700); err == nil || errors.Is(err, unix.EEXIST) {
			dir, err = openRetry(top, journalDir, flags, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir, lockFd: -1, holder: -1, step: step}
	if j.lockFd, err = openRetry(dir, lockFile, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW, 0o600); err != nil {
		j.shut()
		return nil, err
	}
	return j, nil
}

// at marks a point between two steps. Tests end the process there.
func (j *journal) at(point string) {
	if j.step != nil {
		j.step(point)
	}
}

// lock waits for the lock of the journal.
func (j *journal) lock() error {
	for {
		if err := unix.Flock(j.lockFd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			j.at("locked")
			return err
		}
	}
}

func (j *journal) unlock() {
	// A lock that cannot be given back ends with the descriptor.
	_ = unix.Flock(j.lockFd, unix.LOCK_UN)
	j.at("unlocked")
}

// shut closes what is open. The locks end with it.
func (j *journal) shut() {
	for _, fd := range []int{j.dir, j.lockFd, j.holder} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// join makes the file that says that this keeper lives. Others look at it only
// under the journal's lock, so that they never see it unlocked.
func (j *journal) join() error {
	id := newID()
	fd, err := openRetry(j.dir, holderPrefix+id, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.at("holder made")
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Unlinkat(j.dir, holderPrefix+id, 0)
		unix.Close(fd)
		return err
	}
	j.id, j.holder = id, fd
	j.at("holder locked")
	return nil
}

// leave is the end of join. It comes last: as long as the file is there, and its
// lock is not, the next start looks for what it has left.
func (j *journal) leave() error {
	if j.holder < 0 {
		return nil
	}
	return unix.Unlinkat(j.dir, holderPrefix+j.id, 0)
}

// alive reports whether the keeper id lives: whether its file is there and
// locked. This keeper lives.
func (j *journal) alive(id string) bool {
	if id == j.id {
		return true
	}
	fd, err := openRetry(j.dir, holderPrefix+id, unix.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		// Only a file that is not there is a proof of death.
		return !errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
}

// list returns the names in the journal, in order.
func (j *journal) list() ([]string, error) {
	// A descriptor of its own, because reading moves the offset.
	fd, err := openRetry(j.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), journalDir)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// read returns the entry with the file name. ENOENT: there is none. errTorn:
// there is one that says nothing yet.
func (j *journal) read(name string) (entry, error) {
	// A special file that somebody has put there must not block.
	fd, err := openRetry(j.dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return entry{}, err
	}
	return readEntry(fd, name)
}

// readEntry reads the entry behind fd, which it closes.
func readEntry(fd int, name string) (entry, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return entry{}, errors.Join(errors.New("not a regular file"), err)
	}
	data, err := readAll(fd, int(min(st.Size, maxEntry))+1)
	if err != nil {
		return entry{}, err
	}
	e, err := decodeEntry(data)
	if err == nil && entryName(e.path) != name {
		return e, errors.New("the file's name does not fit to the path in it")
	}
	return e, err
}

// create writes a new entry with the intent to make the folder, held by this
// keeper. EEXIST: there is one. What is left after a failure is removed.
func (j *journal) create(name, path string) (entry, error) {
	e := entry{path: path, holders: []string{j.id}, making: true}
	data := e.encode()
	fd, err := openRetry(j.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return e, err
	}
	j.at("entry opened")
	err = writeAll(fd, data)
	unix.Close(fd)
	if err != nil {
		_ = unix.Unlinkat(j.dir, name, 0)
		return e, err
	}
	e.size = len(data)
	j.at("entry written")
	return e, nil
}

// add adds lines, which e says already, to the entry. An entry that is torn or
// long is written anew.
func (j *journal) add(name string, e *entry, lines string) error {
	if e.torn || e.size+len(lines) > longEntry {
		return j.rewrite(name, e)
	}
	fd, err := openRetry(j.dir, name, unix.O_WRONLY|unix.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	err = writeAll(fd, []byte(lines))
	unix.Close(fd)
	if err != nil {
		// Some of it may be there now.
		e.torn = true
		return err
	}
	e.size += len(lines)
	return nil
}

// rewrite replaces the entry by a file that says the same.
func (j *journal) rewrite(name string, e *entry) error {
	data := e.encode()
	temp := tempPrefix + newID()
	fd, err := openRetry(j.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = writeAll(fd, data)
	unix.Close(fd)
	j.at("entry rewritten")
	if err == nil {
		err = unix.Renameat(j.dir, temp, j.dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(j.dir, temp, 0)
		return err
	}
	e.torn, e.size = false, len(data)
	return nil
}

// forget removes the entry.
func (j *journal) forget(name string) error {
	if err := unix.Unlinkat(j.dir, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	j.at("entry removed")
	return nil
}

// settle takes the holders that do not live, and gone if it is one, out of the
// entry. Where nobody is left it removes the folder and the entry. The result
// says what was done; see [settled].
func (j *journal) settle(name string, e *entry, gone string) settled {
	before := len(e.holders)
	var lines strings.Builder
	for _, id := range slices.Clone(e.holders) {
		if id != gone && j.alive(id) {
			continue
		}
		e.drop(id)
		lines.WriteString(lineDrop(id))
	}
	if len(e.holders) > 0 {
		s := settled{held: len(e.holders)}
		if len(e.holders) != before {
			s.err = j.add(name, e, lines.String())
		}
		return s
	}
	s := settled{}
	s.removed, s.kept, s.err = j.endFolder(e)
	if s.err != nil {
		return s
	}
	j.at("folder removed")
	s.err = j.forget(name)
	return s
}

// A settled is the end of one entry: still held, removed with its folder, kept
// because the folder is not ours any more, or failed with err.
type settled struct {
	held    int
	removed bool
	kept    error // why the folder stays; the entry is gone
	err     error
}

// endFolder removes the folder of e. removed is false where it was gone before.
func (j *journal) endFolder(e *entry) (removed bool, kept, err error) {
	if !e.making && !e.made {
		return false, nil, nil
	}
	dir, err := openFolder(filepath.Dir(e.path))
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return false, nil, nil
	case errors.Is(err, unix.ELOOP):
		return false, errors.New("a link leads there now"), nil
	default:
		return false, nil, err
	}
	defer unix.Close(dir)
	name := filepath.Base(e.path)
	if _, err := lookAt(dir, name); errors.Is(err, unix.ENOENT) {
		return false, nil, nil
	}
	gone, err := j.removeFolder(dir, name, e)
	switch {
	case gone:
		return true, nil, nil
	case errors.Is(err, errNotOurs):
		return false, err, nil
	}
	return false, nil, err
}

// sweep ends what dead keepers left. Entries are read only where there is a dead
// one, or always if all is true.
func (j *journal) sweep(all bool) (Report, error) {
	var r Report
	names, err := j.list()
	if err != nil {
		return r, err
	}
	var dead []string
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, holderPrefix); ok && goodHolder(id) && !j.alive(id) {
			dead = append(dead, name)
		}
		if strings.HasPrefix(name, tempPrefix) {
			_ = unix.Unlinkat(j.dir, name, 0) // its writer is gone: we have the lock
		}
	}
	if len(dead) == 0 && !all {
		return r, nil
	}
	for _, name := range names {
		j.sweepEntry(name, &r)
	}
	j.at("entries swept")
	if len(r.Failed) > 0 {
		// The dead are needed: where there is none, a start does not look.
		return r, nil
	}
	for _, name := range dead {
		if err := unix.Unlinkat(j.dir, name, 0); err != nil {
			return r, err
		}
		j.at("dead holder removed")
	}
	return r, nil
}

// sweepEntry settles one file of the journal.
func (j *journal) sweepEntry(name string, r *Report) {
	if !strings.HasPrefix(name, entryPrefix) {
		known := name == lockFile || strings.HasPrefix(name, holderPrefix) || strings.HasPrefix(name, tempPrefix) ||
			strings.HasPrefix(name, sparePrefix)
		if !known {
			r.Odd = append(r.Odd, Left{Path: name, Err: errors.New("not a file of this journal")})
		}
		return
	}
	e, err := j.read(name)
	if errors.Is(err, errTorn) {
		err = j.forget(name)
		if err == nil {
			return
		}
	}
	if err != nil {
		r.Odd = append(r.Odd, Left{Path: name, Err: err})
		return
	}
	switch s := j.settle(name, &e, ""); {
	case s.err != nil:
		r.Failed = append(r.Failed, Left{Path: e.path, Err: s.err})
	case s.held > 0:
		r.Held = append(r.Held, Held{Path: e.path, Holders: s.held})
	case s.kept != nil:
		r.Kept = append(r.Kept, Left{Path: e.path, Err: s.kept})
	case s.removed:
		r.Removed = append(r.Removed, e.path)
	}
}

// newID returns 64 random bits as they stand in names.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}

// openRetry is openat(2), close-on-exec and again after a signal.
func openRetry(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// readAll reads a file up to its end, or the maximum of an entry and a byte more. Size
// is what it is expected to be, and one more, so that the end is seen at once.
func readAll(fd, size int) ([]byte, error) {
	data := make([]byte, 0, size)
	for {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		}
		data = data[:len(data)+n]
		if len(data) > maxEntry {
			return data, nil
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
			data = data[:len(data):min(cap(data), maxEntry+1)]
		}
	}
}

// writeAll writes data with one call, which is what all file systems do unless
// they are full.
func writeAll(fd int, data []byte) error {
	for {
		n, err := unix.Write(fd, data)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n < len(data):
			return fmt.Errorf("%d of %d bytes written: %w", n, len(data), unix.ENOSPC)
		}
		return nil
	}
}
