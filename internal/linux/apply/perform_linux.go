// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"

	"golang.org/x/sys/unix"
)

// pair is a directory of the host and the same one of the stage.
type pair struct {
	layer       *layer
	host, upper int  // O_PATH; upper is -1 where the stage has none
	noted       bool // the journal has the host's
}

// perform applies what is chosen, phase by phase. A change that fails does not stop the others of its phase,
// unless they would fail as well. Nothing is deleted where something was not added or changed.
func (w *work) perform() error {
	for _, l := range w.layers {
		l.top.plan()
	}
	for _, ph := range []phase{adds, modifies, deletes} {
		for _, l := range w.layers {
			if l.top.todo&ph == 0 {
				continue
			}
			if err := w.root(l, ph); err != nil {
				return w.failed(err)
			}
		}
		if w.failure != nil {
			break
		}
	}
	return w.failed(nil)
}

// root performs a phase for a root.
func (w *work) root(l *layer, ph phase) error {
	restore, err := w.rights(l.top, false, l.host)
	if err != nil {
		return err
	}
	err = w.inside(l.top, &pair{layer: l, host: l.host, upper: l.upper}, ph)
	restore()
	if err == nil && l.top.chosen && ph == modifies {
		err = w.fail(l.top, w.attributes(l.top, l.host, l.upper))
	}
	return err
}

// inside performs a phase for what is in a directory that both sides have.
func (w *work) inside(n *node, p *pair, ph phase) error {
	changed, err := w.kids(n, p, ph)
	if changed && n.entry.New.Mtime != 0 {
		_ = setTimes(p.host, n.entry.New.Mtime) // as in the stage; what was changed in it is what counts
	}
	return err
}

func (w *work) kids(n *node, p *pair, ph phase) (changed bool, err error) {
	for _, k := range n.kids {
		if k.todo&ph == 0 {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return changed, err
		}
		did, err := w.kid(k, p, ph)
		changed = changed || did
		if err = w.fail(k, err); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// kid performs a phase for what has a name in a directory, and below it. It reports whether the directory was
// changed.
func (w *work) kid(k *node, p *pair, ph phase) (changed bool, err error) {
	var st unix.Stat_t // zero also where nothing has the name, or its kind does not count
	if isDir(k.entry.New.Mode) || k.entry.Kind == executor.ChangeMode {
		err = unix.Fstatat(p.host, k.name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return false, err
		}
	}
	host := st.Mode
	switch e := k.entry; {
	case isDir(e.New.Mode) && isDir(host):
		return false, w.descend(k, p, ph)
	case isDir(e.New.Mode) && k.todo&^deletes != 0:
		return true, w.put(k, p)
	case !k.chosen || k.done || phaseOf(e) != ph:
		return false, nil
	case e.Kind == executor.ChangeDeleted:
		return true, w.remove(k, p)
	case e.Kind == executor.ChangeMode && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 1 &&
		!w.linked(&e.New):
		return false, w.inPlace(k, p)
	}
	return true, w.put(k, p)
}

// descend performs a phase in a directory that both sides have, and for its mode, after what is in it.
func (w *work) descend(k *node, p *pair, ph phase) error {
	w.next(k)
	host, closeHost, err := w.openIn(k, false, p.host)
	if err != nil {
		return err
	}
	upper, closeUpper, err := w.openIn(k, true, p.upper)
	if err != nil {
		closeHost()
		return err
	}
	defer closeUpper()
	err = w.inside(k, &pair{layer: p.layer, host: host, upper: upper}, ph)
	closeHost()
	if err != nil || !k.chosen || k.done || ph != phaseOf(k.entry) {
		return err
	}
	if host, err = openDir(p.host, k.name); err != nil {
		return err
	}
	defer unix.Close(host)
	return w.attributes(k, host, upper)
}

// attributes gives a directory of the host the mode, the owner and the attributes of the stage's.
func (w *work) attributes(n *node, host, upper int) error {
	var st unix.Stat_t
	if err := unix.Fstat(host, &st); err != nil {
		return err
	}
	if !w.force && n.entry.Old.Mode != 0 && st.Mode != n.entry.Old.Mode {
		return errMeanwhile
	}
	restore, err := w.rights(n, false, host)
	if err != nil {
		return err
	}
	w.next(n)
	if err := copyDirAttributes(upper, host, &n.entry.New); err != nil {
		restore()
		return err
	}
	n.done = true
	return nil
}

// inPlace gives a file of the host the mode and the owner of the stage's, where nothing else differs.
func (w *work) inPlace(k *node, p *pair) error {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	host, err := unix.Openat(p.host, k.name, flags, 0)
	if errors.Is(err, unix.EACCES) {
		return w.put(k, p)
	}
	if err != nil {
		return err
	}
	defer unix.Close(host)
	from, err := w.openStaged(k, p)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	want, err := changes.StagedAttrs(from)
	if err != nil {
		return err
	}
	if have, err := changes.Attrs(host); err != nil || !maps.Equal(want, have) {
		return w.put(k, p)
	}
	var st unix.Stat_t
	if err := unix.Fstat(host, &st); err != nil {
		return err
	}
	if !w.force && (st.Ino != k.entry.Old.Ino || st.Mode != k.entry.Old.Mode) {
		return errMeanwhile
	}
	if err := copyAttributes(from, host, &k.entry.New); err != nil {
		return err
	}
	k.done = true
	return nil
}

// openIn opens a directory, and lets its owner into it until it is closed.
func (w *work) openIn(k *node, upper bool, at int) (fd int, done func(), err error) {
	if fd, err = openDir(at, k.name); err != nil {
		return -1, nil, err
	}
	restore, err := w.rights(k, upper, fd)
	if err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, func() { restore(); unix.Close(fd) }, nil
}

// rights gives the owner of a directory the rights to it until restore. The journal has what it had before.
func (w *work) rights(n *node, upper bool, fd int) (restore func(), err error) {
	const all = 0o700
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&all == all || euid() == 0 || int(st.Uid) != euid() {
		return func() {}, err
	}
	mode := st.Mode & 0o7777
	err = w.note(note{Layer: n.entry.Layer, Upper: upper, Path: []byte(n.entry.Path),
		Opened: true, Mode: mode})
	if err == nil {
		err = unix.Chmod(proc(fd), mode|all)
	}
	return func() {
		if unix.Fstat(fd, &st) == nil && st.Mode&0o7777 == mode|all {
			_ = unix.Chmod(proc(fd), mode) // else the journal says it
		}
	}, err
}

// put makes what is new under the temporary name, and gives it its own.
func (w *work) put(k *node, p *pair) error {
	if err := w.mark(k.up, p); err != nil {
		return err
	}
	k.now = w.temp
	err := w.build(k, p.host, w.temp, p)
	if err == nil {
		err = w.place(k, p)
	}
	k.now = ""
	if err != nil {
		return errors.Join(err, w.removeTemp(p.host))
	}
	k.each(func(n *node) { n.done = n.chosen }) // what was to be deleted in it was not made
	return nil
}

// mark notes that a directory may have the temporary name in it.
func (w *work) mark(n *node, p *pair) error {
	if p.noted {
		return nil
	}
	p.noted = true
	return w.note(note{Layer: n.entry.Layer, Path: []byte(n.entry.Path)})
}

// place gives what was built its name, unless another program has put something there that is not what was
// read. That stays.
func (w *work) place(k *node, p *pair) error {
	if k.entry.Old.Mode == 0 && !w.force {
		return w.placeNew(k, p)
	}
	if err := w.same(k, p.host, k.name); err != nil {
		return err
	}
	w.next(k)
	err := safefile.Exchange(uintptr(p.host), w.temp, k.name)
	switch {
	case errors.Is(err, unix.ENOENT) && w.force:
		return w.placeNew(k, p)
	case errors.Is(err, errors.ErrUnsupported):
		return unix.Renameat(p.host, w.temp, p.host, k.name)
	case err != nil:
		return err
	}
	w.next(k)
	if err := w.verify(k, p); err != nil {
		back := safefile.Exchange(uintptr(p.host), w.temp, k.name)
		if errors.Is(back, unix.ENOENT) { // what was placed is gone
			back = renameNew(p.host, w.temp, k.name)
		}
		return errors.Join(err, back)
	}
	return w.removeOld(p.host)
}

// A file system waits for its disk when it frees the blocks of files if that took slowFree for slowFrees of
// them, one after the other: a busy machine makes single ones slow.
const (
	slowFree  = 200 * time.Microsecond
	slowFrees = 3
)

// removeOld removes what was exchanged. Where a file system waits for its disk (ext4 with discard), blocks
// are freed when the last descriptor is closed, beside what follows; elsewhere that would take longer itself.
func (w *work) removeOld(host int) error {
	if w.slow < slowFrees {
		began := time.Now()
		err := w.removeTemp(host)
		if w.slow++; time.Since(began) < slowFree {
			w.slow = 0
		}
		return err
	}
	fd, err := unix.Openat(host, w.temp, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		defer w.free(fd)
	}
	return w.removeTemp(host)
}

// maxFrees is how many files are freed at once.
const maxFrees = 16

// free closes a descriptor, not before others have been closed when there are many.
func (w *work) free(fd int) {
	w.frees <- struct{}{}
	w.freeing.Go(func() {
		unix.Close(fd)
		<-w.frees
	})
}

func (w *work) placeNew(k *node, p *pair) error {
	w.next(k)
	err := renameNew(p.host, w.temp, k.name)
	if errors.Is(err, unix.EEXIST) {
		return errMeanwhile
	}
	return err
}

// remove takes a name away: what has it gets the temporary one, and is looked at once more.
func (w *work) remove(k *node, p *pair) error {
	err := w.same(k, p.host, k.name)
	if errors.Is(err, unix.ENOENT) {
		k.done = true
		return nil
	}
	if err == nil {
		err = w.mark(k.up, p)
	}
	if err == nil {
		w.next(k)
		err = w.replace(func() error { return renameNew(p.host, k.name, w.temp) }, p.host)
	}
	if err != nil {
		return err
	}
	w.next(k)
	if err := w.verify(k, p); err != nil {
		return errors.Join(err, renameNew(p.host, w.temp, k.name))
	}
	if err := w.removeTemp(p.host); err != nil {
		return err
	}
	k.done = true
	return nil
}

// renameNew gives a name, which nothing has as far as the file system can tell.
func renameNew(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if err = unix.Faccessat(dir, to, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(dir, from, dir, to)
}

// verify looks at what had a name and is under the temporary one now.
func (w *work) verify(k *node, p *pair) error {
	if err := w.same(k, p.host, w.temp); err != nil {
		return err
	}
	if !isDir(k.entry.Old.Mode) {
		return nil
	}
	return w.unchangedBelow(k, p.host)
}

var errMeanwhile = errors.New("another program changed it while it was applied")

// same compares what has a name with what was read. By force, anything is the same.
func (w *work) same(k *node, host int, name string) error {
	var st unix.Stat_t
	err := unix.Fstatat(host, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) && k.entry.Kind != executor.ChangeDeleted {
		err = nil
		if !w.force {
			err = errMeanwhile
		}
		return err
	}
	if w.force || err != nil {
		return err
	}
	old := &k.entry.Old
	if st.Ino != old.Ino || st.Mode != old.Mode {
		return errMeanwhile
	}
	if !isDir(st.Mode) && (st.Size != old.Size || unix.TimespecToNsec(st.Mtim) != old.Mtime) {
		return errMeanwhile
	}
	return nil
}

// removeTemp removes what has the temporary name.
func (w *work) removeTemp(host int) error {
	err := unix.Unlinkat(host, w.temp, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	dir, err := reader(host)
	if err != nil {
		return err
	}
	defer dir.Close()
	return safefile.RemoveTreeIn(dir, w.temp, nil)
}

// fail notes what failed. It returns an error that ends all, since the next change would fail as well.
func (w *work) fail(n *node, err error) error {
	if err == nil || w.stopped {
		return err
	}
	w.failures++
	if errors.Is(err, unix.EPERM) { // what explain advises sets this time, and is no conflict
		w.stage.Base.AnyCtime(&w.layers[n.entry.Layer].Layer, n.entry.Path)
	}
	if w.failure == nil {
		w.failure = w.explain(n, err)
	}
	for _, ends := range []error{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EMFILE, unix.ENFILE, unix.EROFS,
		w.ctx.Err()} {
		w.stopped = w.stopped || ends != nil && errors.Is(err, ends)
	}
	if w.stopped {
		return err
	}
	return nil
}

// explain says what failed and how to go on.
func (w *work) explain(n *node, err error) *executor.StageError {
	e := &executor.StageError{ID: w.stage.ID, Err: err, Fix: "run apply again",
		Why: fmt.Sprintf("cannot apply %s: %v", text.Word(w.path(n)), err)}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		e.Fix = "free some space, and run apply again; the stage still has all that is not applied"
	case errors.Is(err, unix.EPERM):
		e.Fix = "it may be immutable (lsattr, chattr -i) or another user's; then run apply again"
	case errors.Is(err, unix.EACCES):
		e.Fix = "its directory does not let you write; then run apply again"
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		e.Fix = "another program put a link, a file or a mount on the way to it; run apply again"
	case errors.Is(err, errMeanwhile):
		e.Fix = "run apply again, which shows the conflict"
	}
	return e
}

// failed is the error of all that failed.
func (w *work) failed(err error) error {
	if w.failure == nil {
		return err
	}
	if n := w.failures - 1; n > 0 {
		w.failure.Why += fmt.Sprintf(" (and %d more)", n)
	}
	return w.failure
}
