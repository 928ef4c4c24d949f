// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A memory is what a git directory was before the first of several runs that may write to it,
// kept for all of them and for the next start after they were killed. It is a file of the
// journal:
//
//	sallyport memory 1
//	+ 0123456789abcdef      this protector has a run there
//
//	what gitpaths.Snapshot.Text returns
const (
	memoryPrefix = "m-"
	memoryMagic  = "sallyport memory 1\n"
	maxMemory    = 256 << 20
)

// memoryName returns the file name of the memory with a key.
func memoryName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return memoryPrefix + hex.EncodeToString(sum[:16])
}

// errMemory is a file that is no memory.
var errMemory = errors.New("it is not a record of this journal; run sallyport doctor --clean when no command runs")

// readMemory returns a memory by its file name. ENOENT: there is none.
func (j *journal) readMemory(name string) (holders []string, text []byte, err error) {
	info, err := j.dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMemory {
		return nil, nil, errMemory
	}
	data, err := j.dir.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	head, text, ok := bytes.Cut(data, []byte("\n\n"))
	rest, magic := bytes.CutPrefix(append(head, '\n'), []byte(memoryMagic))
	if !ok || !magic {
		return nil, nil, errMemory
	}
	for line := range bytes.Lines(rest) {
		id, ok := strings.CutPrefix(strings.TrimSuffix(string(line), "\n"), "+ ")
		if !ok || !validHolder(id) {
			return nil, nil, errMemory
		}
		holders = append(holders, id)
	}
	return holders, text, nil
}

// writeMemory replaces a memory.
func (j *journal) writeMemory(name string, holders []string, text []byte) error {
	data := []byte(memoryMagic)
	for _, id := range holders {
		data = append(data, lineAdd(id)...)
	}
	data = append(append(data, '\n'), text...)
	temp := tempPrefix + newID()
	err := j.write(temp, data)
	j.at("memory written")
	if err == nil {
		err = j.dir.Rename(temp, name)
	}
	if err != nil {
		_ = j.dir.Remove(temp)
	}
	return err
}

// Remember keeps what a snapshot says for other runs and the next start, until Release. Where a
// run that is not checked yet has an older one of the same repository, s adopts that. Remains is what
// [Protector.Remains] returned before s was taken: an [*ExistsError] says that the older one was there
// then, and is gone, so that s may hold what that run has planted, and another one is to be taken.
func (h *Hold) Remember(s *git.Snapshot, remains []string) error {
	k := h.protector
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	err := k.join()
	if err == nil {
		err = k.journal.lock()
	}
	if err != nil {
		return k.journalError(err)
	}
	name, j := memoryName(s.Key()), k.journal
	defer j.unlock()
	holders, older, err := j.readMemory(name)
	switch {
	case err == nil:
		err = s.Adopt(older)
	case errors.Is(err, unix.ENOENT) && slices.Contains(remains, name):
		return &ExistsError{Path: s.Place(), Kind: KindGone}
	case errors.Is(err, unix.ENOENT):
		err = nil
	}
	if err == nil {
		if !slices.Contains(holders, j.id) {
			holders = append(holders, j.id)
		}
		if text := s.Text(); len(holders) > 1 || !bytes.Equal(text, older) || k.memories[name] == 0 {
			err = j.writeMemory(name, holders, text)
		}
	}
	if err != nil {
		return holdError(s.Place(), "remember its state", err)
	}
	if k.memories == nil {
		k.memories = map[string]int{}
	}
	k.memories[name]++
	h.memories = append(h.memories, name)
	return nil
}

// forgetMemories ends what a hold remembers. The last run of a repository removes the file. One
// that cannot be removed is checked once more by the next start.
func (k *Protector) forgetMemories(h *Hold) {
	for _, name := range h.memories {
		if k.memories[name]--; k.memories[name] > 0 {
			continue
		}
		delete(k.memories, name)
		k.journal.leaveMemory(name)
	}
	h.memories = nil
}

// leaveMemory takes this protector out of a memory. One with another holder stays, though that may be
// dead: what it did since this protector has looked is for the next start. It takes the lock.
func (j *journal) leaveMemory(name string) {
	if j.lock() != nil {
		return
	}
	defer j.unlock()
	holders, text, err := j.readMemory(name)
	if err != nil {
		return
	}
	if others := slices.DeleteFunc(holders, func(id string) bool { return id == j.id }); len(others) > 0 {
		_ = j.writeMemory(name, others, text)
		return
	}
	_ = j.forget(name)
}

// claimDead makes this protector the holder of the memories whose holders have all been killed,
// and returns these. It is called with the lock.
func (j *journal) claimDead(names []string, own map[string]int) (dead []string, errs []error) {
	for _, name := range names {
		if !strings.HasPrefix(name, memoryPrefix) || own[name] > 0 {
			continue
		}
		holders, text, err := j.readMemory(name)
		if err == nil && slices.ContainsFunc(holders, j.alive) {
			continue
		}
		if err == nil {
			err = j.writeMemory(name, []string{j.id}, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("what a killed run has left in a repository is not known: %s: %w", name, err))
			continue
		}
		dead = append(dead, name)
	}
	return dead, errs
}

// settleDead quarantines what runs that were killed have planted. It is called without the
// journal's lock and returns what it found and what a user should know.
func (k *Protector) settleDead() (found []Found, notes []string) {
	j := k.journal
	if err := j.lock(); err != nil {
		return nil, nil // the caller meets it, too
	}
	names, _ := listRoot(j.dir)
	dead, errs := j.claimDead(names, k.memories)
	j.unlock()
	for _, err := range errs {
		notes = append(notes, text.Line(err.Error()))
	}
	for _, name := range dead {
		more, note, err := k.settle(name)
		found, notes = append(found, more...), append(notes, note...)
		if err != nil {
			notes = append(notes, text.Line(err.Error()))
			continue // the file stays, and is dead again when this protector ends
		}
		j.leaveMemory(name)
	}
	return found, notes
}

// settle checks one repository after a killed run.
func (k *Protector) settle(name string) (found []Found, notes []string, err error) {
	_, text, err := k.journal.readMemory(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := git.Recall(text, git.Surroundings(os.LookupEnv))
	if err != nil {
		return nil, nil, fmt.Errorf("what a killed run has left in a repository is not known: %w", err)
	}
	if doubt := s.Doubt(); doubt != "" {
		notes = append(notes, doubt)
	}
	paths, err := s.Check(nil)
	for _, p := range paths {
		f, e := k.quarantineNow(p.Path, p.Why)
		if e != nil {
			err = errors.Join(err, e)
		} else if f.Kind != KindGone {
			found = append(found, f)
		}
	}
	return found, notes, err
}

// Remains returns the names of what runs remember that go on, or were killed and may have planted
// something. Nil is nothing.
func (k *Protector) Remains() []string {
	if _, err := os.Lstat(filepath.Join(k.State, journalDir)); err != nil {
		return nil // as in most states
	}
	dir, err := openBelow(k.State, journalDir, false)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := listRoot(dir)
	if err != nil {
		return []string{memoryPrefix} // whatever uses it meets the error
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, memoryPrefix) })
	if len(names) == 0 {
		return nil
	}
	return names
}
