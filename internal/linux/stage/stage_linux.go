// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Stage is one that exists. Its methods are not safe for concurrent use.
type Stage struct {
	Record
	dir  string
	lock *os.File // nil while it is only read
}

// Lock locks the stage for this process and those to which it gives [Stage.Hold], and reads the record again.
// It does not wait: the error matches executor.ErrStageInUse while others have it.
func (st *Stage) Lock() error {
	lock, err := layers.OpenLocked(st.dir, unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return InUse(st.ID)
	case errors.Is(err, fs.ErrNotExist):
		return noStage("no stage has the id " + text.Word(st.ID))
	case err != nil:
		return st.unreadable(err)
	}
	st.lock = lock
	if err := st.read(); err != nil {
		st.Unlock()
		return err
	}
	return nil
}

// InUse is the error for a stage that a command uses.
func InUse(id string) error {
	return &executor.StageError{ID: id, Why: "a command uses the stage " + text.Word(id),
		Fix: "wait until it has ended, or run both in one shared sandbox", Err: executor.ErrStageInUse}
}

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

// Changes returns the layers of the stage, and the record of what the host's files were.
func (st *Stage) Changes() ([]changes.Layer, *changes.Base, error) {
	base, err := changes.OpenBase(filepath.Join(st.dir, "base"))
	all := make([]changes.Layer, len(st.Roots))
	for i, r := range st.Roots {
		all[i] = changes.Layer{Root: r.Host(), Upper: st.Upper(i)}
		if r.File {
			all[i].Name = filepath.Base(r.Path)
		}
	}
	return all, base, err
}

// unmark removes what the kernel leaves beside the layers, which an ordinary user cannot remove by name.
func (st *Stage) unmark() {
	for n := range st.Roots {
		_ = layers.Unmark(filepath.Join(st.root(n), layers.WorkDir)) // done again before the next use
	}
}

// Upper returns the directory of the n-th root that has what was written.
func (st *Stage) Upper(n int) string { return filepath.Join(st.root(n), layers.UpperDir) }

// Layers returns the directories that an overlay over the n-th root needs, without the mark of one that was
// not unmounted.
func (st *Stage) Layers(n int) (upper, work string, err error) {
	upper, work, err = layers.Make(st.root(n))
	if err == nil {
		err = layers.Unmark(work)
	}
	return upper, work, err
}

func (st *Stage) root(n int) string { return filepath.Join(st.dir, strconv.Itoa(n)) }

// Copy returns the copy of a root that is a single file.
func (st *Stage) Copy(n int) string {
	return filepath.Join(st.Upper(n), filepath.Base(st.Roots[n].Path))
}

// Begin records that a command of the locked stage begins, what it may write, and the roots that the stage has
// not had yet. First counts the command, which may begin several times until it starts. Now is when the first of
// those that run began. Nothing has changed after an error.
func (st *Stage) Begin(p Policy, roots []Root, now time.Time, first bool) error {
	before := st.Record
	st.Roots, st.Policies = slices.Clone(st.Roots), slices.Clone(st.Policies)
	var err error
	for _, r := range roots {
		if err == nil {
			st.Roots = append(st.Roots, r)
			err = st.make(len(st.Roots) - 1)
		}
	}
	if !slices.ContainsFunc(st.Policies, func(o Policy) bool { return o.equal(&p) }) {
		st.Policies = append(st.Policies, p)
	}
	if first {
		st.Commands++
	}
	if st.Began = now.UnixNano(); st.Boot == "" || st.covered(before.Commands) {
		st.Boot = bootID()
	}
	same := !first && len(roots) == 0 && len(st.Policies) == len(before.Policies) && st.Began == before.Began
	if err == nil && !same {
		err = st.save(false)
	}
	if err != nil {
		st.Record = before
		return st.store().failed(st.ID, err)
	}
	return nil
}

// maxUnwritten is up to how many KiB that wait to be written, of all programs, a listing syncs the stage: it
// would take long otherwise. The kernel writes what is older than half a minute: most machines have little.
const maxUnwritten = 4 << 10

// unwritten returns how many KiB wait to be written; false where that is not known.
func unwritten() (kib int, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "Dirty:" || f[0] == "Writeback:") {
			n, err := strconv.Atoi(f[1])
			if kib += n; err != nil {
				return 0, false
			}
			ok = true
		}
	}
	return kib, ok
}

// bootID names the time since the start of the machine; empty if it is not known.
func bootID() string {
	s, _, _ := safefile.Read("/proc/sys/kernel/random/boot_id", 64)
	return strings.TrimSpace(string(s))
}

// synced returns an error if the machine was restarted since a command ran, and what that wrote was not
// synced before. Overlays are volatile: after a crash, files of the stage may be empty or cut off. What tells
// a crash from an orderly end is not recorded.
func (st *Stage) synced() error {
	if now := bootID(); st.Boot == "" || now == "" || st.Boot == now || st.covered(st.Commands) {
		return nil
	}
	return &executor.StageError{ID: st.ID, Err: executor.ErrNotSynced,
		Why: "the machine was restarted since commands wrote to the stage " + text.Word(st.ID) +
			"; if it crashed, files in the stage may be empty or cut off",
		Fix: "look at sallyport changes --diff " + text.Word(st.ID) + " and at the conflicts of apply --dry-run first; " +
			"then add --force, which overwrites those as well"}
}

// syncedFile is the file of a stage that says how many commands it had when all that they wrote was on the
// disk.
const syncedFile = "synced"

// covered reports whether what the first commands wrote is on the disk for certain.
func (st *Stage) covered(commands int) bool {
	s, _, err := safefile.Read(filepath.Join(st.dir, syncedFile), 32)
	n, bad := strconv.Atoi(strings.TrimSpace(string(s)))
	return err == nil && bad == nil && n == commands
}

// sync has all that commands wrote reach the disk, so that no crash of the machine after that counts. It does
// nothing while a command runs, and where a crash may have taken something already. The stage may be one that
// is not locked: a command that begins meanwhile is another one than those that are counted. What fails is
// done by the next call.
func (st *Stage) sync() {
	if st.Began != 0 || st.Boot == "" || st.Boot != bootID() || st.covered(st.Commands) {
		return
	}
	dir, err := os.Open(st.dir)
	if err != nil {
		return
	}
	err = unix.Syncfs(int(dir.Fd()))
	if dir.Close(); err == nil {
		count := strconv.AppendInt(nil, int64(st.Commands), 10)
		_ = safefile.Replace(filepath.Join(st.dir, syncedFile), count)
	}
}

// Undo takes back that a command has begun, which was not started.
func (st *Stage) Undo(last bool) error {
	st.Commands--
	if last {
		st.Began = 0
	}
	return st.store().failed(st.ID, st.save(false))
}

// End records that all commands have ended, and that it is known what they have changed.
func (st *Stage) End() error {
	st.Began = 0
	return st.store().failed(st.ID, st.save(false))
}

func (st *Stage) store() Store { return Store{filepath.Dir(filepath.Dir(st.dir))} }

// Forget removes the stage, which is locked, in one step, and then what it holds.
func (st *Stage) Forget() error {
	old := filepath.Join(filepath.Dir(st.dir), oldPrefix+st.ID)
	if err := os.Rename(st.dir, old); err != nil {
		return st.store().failed(st.ID, err)
	}
	st.dir = old
	err := safefile.RemoveTreePath(old)
	st.Unlock()
	names, _ := os.ReadDir(filepath.Dir(old))
	for _, n := range names { // of processes that were killed
		at := filepath.Join(filepath.Dir(old), n.Name())
		if strings.HasPrefix(n.Name(), oldPrefix) && !layers.InUse(at) {
			err = errors.Join(err, safefile.RemoveTreePath(at))
		}
	}
	return err
}

// Bytes returns how much the stage holds on the disk, as far as that can be read.
func (st *Stage) Bytes() (sum int64) {
	_ = filepath.WalkDir(st.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += s.Blocks * 512
			} else if !d.IsDir() {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// make makes the directories of the n-th root, as the host's is, or the copy of a single file. What a process
// has left that was killed is made anew.
func (st *Stage) make(n int) error {
	if err := safefile.RemoveTreePath(st.root(n)); err != nil {
		return err
	}
	if _, _, err := layers.Make(st.root(n)); err != nil {
		return err
	}
	r := &st.Roots[n]
	if r.File {
		return copyFile(r.Path, st.Copy(n))
	}
	from, err := os.OpenFile(r.Path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(st.Upper(n), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(apply.CopyFacts(int(from.Fd()), int(to.Fd())), to.Close())
}

// copyFile copies a regular file with its facts.
func copyFile(from, into string) error {
	src, err := safefile.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, apply.CopyFacts(int(src.Fd()), int(dst.Fd())), dst.Close())
}
