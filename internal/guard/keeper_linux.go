// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/printable"
)

// A Keeper protects names for one process. Its zero value with State set is ready; it must
// not be copied after first use and is safe for concurrent use. It has a few descriptors
// and one goroutine from the first Hold that needs them until Close.
type Keeper struct {
	// State is the state directory: absolute, existing, mode 0700, on a local file system,
	// and hidden from commands.
	State string

	mu           sync.Mutex // guards the rest, and the fields of holds, directories and objects
	closed       bool
	journal      *journal // nil before the first Hold
	watcher      *watcher // nil as long as nothing needs it
	dirs         []*directory
	placeholders map[string]*object // by path
	quarantine   *quarantine        // nil as long as nothing was moved
	scopes       []*scope
	memories     map[string]int          // holds of this keeper by the file name of a memory
	step         func(string)            // marks a point between two steps, for tests; may be nil
	fail         func(call string) error // makes inotify, mkdir or rename fail, for tests; may be nil
}

// Lock returns the locked file of the keeper; nil before its first Hold. A copy of it that another process
// has open keeps the placeholders in their places after this process was killed.
func (k *Keeper) Lock() *os.File {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journal == nil {
		return nil
	}
	return k.journal.holder
}

// A directory is one in which names are protected.
type directory struct {
	path    string
	fd      int // O_PATH
	id      ident
	wd      int // of inotify, or -1
	holds   int // holds that use it
	watched map[string]*watched
	objects []*object
}

// An object is something that must stay at its name: a placeholder, or what a mount
// covers. The kernel removes a mount, in all namespaces, with the file or directory under
// it: an editor that saves by a rename uncovers what it has saved.
type object struct {
	path, name string
	dir        *directory
	id         ident
	covered    bool // it is no placeholder
	lost       bool // it does not exist any more
	holds      []*Hold
}

// A request is a Claim on its way to being held.
type request struct {
	Claim
	name string
	dir  *directory // nil where nothing is needed
}

// Hold creates or shares the placeholders of claims and arms the watches. On error nothing
// of this call is left. It blocks only for the moment in which another process changes the
// journal.
//
// The errors are [*ExistsError] where something exists at a name already, [*HoldError]
// where a name cannot be protected, and [ErrClosed]. No claims make a Hold that does
// nothing. A claim that this user has no right to create, and no command could give itself
// the right, needs nothing.
func (k *Keeper) Hold(claims []Claim) (*Hold, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, ErrClosed
	}
	requests, err := distinct(claims)
	if err != nil {
		return nil, err
	}
	h := &Hold{keeper: k}
	if err := k.fill(h, requests); err != nil {
		k.release(h)
		_ = k.dropUnused() // what fails here is left to Close or the next start
		return nil, err
	}
	return h, nil
}

// distinct checks the claims and takes out doubles. A name that is claimed both ways gets
// the placeholder.
func distinct(claims []Claim) ([]*request, error) {
	list := make([]*request, 0, len(claims))
	seen := make(map[string]*request, len(claims))
	for _, c := range claims {
		if !validPath(c.Path) {
			return nil, &HoldError{Path: c.Path, Op: "invalid path", Err: unix.EINVAL, Fix: "give an absolute path without . and .."}
		}
		if old := seen[c.Path]; old != nil {
			old.Placeholder = old.Placeholder || c.Placeholder
			old.ReportOnly = old.ReportOnly && c.ReportOnly
			continue
		}
		r := &request{Claim: c, name: filepath.Base(c.Path)}
		seen[c.Path] = r
		list = append(list, r)
	}
	return list, nil
}

// fill does the work of Hold.
func (k *Keeper) fill(h *Hold, requests []*request) error {
	if err := k.join(); err != nil {
		return k.journalError(err)
	}
	h.found, h.weaker = k.settleDead()
	for _, r := range requests {
		if err := k.open(h, r); err != nil {
			return err
		}
	}
	for _, r := range requests {
		if r.dir != nil && r.Placeholder && r.Ino == 0 {
			if err := k.place(h, r); err != nil {
				return err
			}
		}
	}
	for _, d := range h.dirs {
		if err := k.arm(d); err != nil {
			h.weaker = append(h.weaker, fmt.Sprintf("changes in %s are noticed only at the end of a run: inotify: %v", printable.Word(d.path), err))
		}
	}
	// From here on inotify reports every change, so what is true now stays true.
	for _, r := range requests {
		var err error
		switch {
		case r.dir == nil:
		case r.Ino != 0:
			err = k.cover(h, r)
		case !r.Placeholder:
			err = k.watch(h, r)
		}
		if err != nil {
			return err
		}
	}
	for _, o := range h.objects {
		if k.check(o); o.lost {
			return &ExistsError{Path: o.path, Kind: KindGone}
		}
	}
	return nil
}

// open opens the directory of r, or finds it among those that are open, and counts h as
// its user.
func (k *Keeper) open(h *Hold, r *request) error {
	path := filepath.Dir(r.Path)
	for _, d := range h.dirs {
		if d.path == path {
			r.dir = d
			return nil
		}
	}
	fd, err := openDir(path)
	if errors.Is(err, unix.EACCES) {
		if closedByUser(path) {
			return &HoldError{Path: r.Path, Op: "inspect it", Err: err, Fix: "a command could open the directories above it; chmod u+x them"}
		}
		return nil
	}
	if err != nil {
		return holdError(r.Path, "open its directory", err)
	}
	s, err := statAt(fd, "")
	if err != nil {
		unix.Close(fd)
		return holdError(r.Path, "inspect its directory", err)
	}
	if i := slices.IndexFunc(k.dirs, func(d *directory) bool { return d.path == path && d.id.same(s.ident) }); i >= 0 {
		unix.Close(fd)
		r.dir = k.dirs[i]
	} else {
		r.dir = &directory{path: path, fd: fd, id: s.ident, wd: -1, watched: map[string]*watched{}}
		k.dirs = append(k.dirs, r.dir)
	}
	r.dir.holds++
	h.dirs = append(h.dirs, r.dir)
	return nil
}

// closeUnused closes d when nothing needs it. A directory with placeholders stays open
// between two runs, and inotify goes on reporting about it: to end that and begin it again
// takes longer than a Hold.
func (k *Keeper) closeUnused(d *directory) {
	if d.holds > 0 || len(d.objects) > 0 {
		return
	}
	k.disarm(d)
	unix.Close(d.fd)
	k.dirs = slices.DeleteFunc(k.dirs, func(o *directory) bool { return o == d })
}

// cover holds what exists at the name of r.
func (k *Keeper) cover(h *Hold, r *request) error {
	s, err := statAt(r.dir.fd, r.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return &ExistsError{Path: r.Path, Kind: KindGone}
	case err != nil:
		return holdError(r.Path, "inspect it", err)
	case !s.same(ident{dev: r.Dev, ino: r.Ino}):
		return &ExistsError{Path: r.Path, Kind: s.kind()}
	}
	k.add(h, &object{path: r.Path, name: r.name, dir: r.dir, id: s.ident, covered: true})
	if r.Placeholder {
		n := k.watchName(h, r)
		n.foreign, n.reportOnly = &s.ident, false
	}
	return nil
}

// add gives an object to h.
func (k *Keeper) add(h *Hold, o *object) {
	if !slices.Contains(o.dir.objects, o) {
		o.dir.objects = append(o.dir.objects, o)
	}
	o.holds = append(o.holds, h)
	h.objects = append(h.objects, o)
}

// watch watches the name of r.
func (k *Keeper) watch(h *Hold, r *request) error {
	s, err := statAt(r.dir.fd, r.name)
	if err == nil && !r.ReportOnly {
		return &ExistsError{Path: r.Path, Kind: s.kind()}
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return holdError(r.Path, "watch it", err)
	}
	n := k.watchName(h, r)
	n.reportOnly = n.reportOnly && r.ReportOnly // of several claims the strictest counts
	return nil
}

// watchName gives the watched name of r to h.
func (k *Keeper) watchName(h *Hold, r *request) *watched {
	n := r.dir.watched[r.name]
	if n == nil {
		n = &watched{path: r.Path, name: r.name, dir: r.dir, holds: map[*Hold]string{}, reportOnly: true}
		r.dir.watched[r.name] = n
	}
	n.holds[h] = r.Why
	h.names = append(h.names, n)
	return n
}

// place gives h a placeholder at the name of r: the one of an earlier Hold if it still
// exists, or a new one. Where the directory is closed to this user, r asks for a watch
// afterwards, or for nothing.
func (k *Keeper) place(h *Hold, r *request) error {
	old := k.placeholders[r.Path]
	if old != nil {
		if k.check(old); old.dir == r.dir && !old.lost {
			k.add(h, old)
			return nil
		}
	}
	id, err := k.create(r)
	var no *noRightError
	if errors.As(err, &no) {
		if d, e := statAt(r.dir.fd, ""); errors.Is(no, unix.EACCES) && (e != nil || d.owned()) {
			// The command is this user, who can open the directory.
			h.weaker = append(h.weaker, fmt.Sprintf("%s is watched, not covered: its directory is closed, but a command can open it", printable.Word(r.Path)))
			r.Placeholder = false
		} else {
			r.dir = nil
		}
		return nil
	}
	if err != nil {
		return err
	}
	if old != nil {
		k.drop(old)
	}
	o := &object{path: r.Path, name: r.name, dir: r.dir, id: id}
	if k.placeholders == nil {
		k.placeholders = map[string]*object{}
	}
	k.placeholders[r.Path] = o
	k.add(h, o)
	return nil
}

// drop forgets a placeholder, which tells its holds that it is lost.
func (k *Keeper) drop(o *object) {
	o.lose("was removed or replaced")
	if k.placeholders[o.path] == o {
		delete(k.placeholders, o.path)
	}
	o.dir.objects = slices.DeleteFunc(o.dir.objects, func(x *object) bool { return x == o })
	k.closeUnused(o.dir)
}

// A noRightError is an error of mkdir(2) for want of a right.
type noRightError struct{ error }

func (e *noRightError) Unwrap() error { return e.error }

// create creates or shares the directory for r, under the journal's lock. The intent is in
// the journal before the directory exists. What a killed process left is ended first.
func (k *Keeper) create(r *request) (ident, error) {
	j := k.journal
	if err := j.lock(); err != nil {
		return ident{}, k.journalError(err)
	}
	defer j.unlock()
	e, entryErr := j.read(entryName(r.Path))
	if entryErr == nil && e.making {
		// No process is between two steps now: the writer was killed, or the disk was full.
		if _, err := removeAt(r.dir.fd, r.name, &e); err != nil && !errors.Is(err, errNotOurs) {
			return ident{}, holdError(r.Path, "remove what a killed process left", err)
		}
	}
	s, err := statAt(r.dir.fd, r.name)
	switch {
	case err == nil && entryErr == nil && !e.making && e.owns(s):
		e.add(j.id)
		return s.ident, k.journalError(j.add(&e, lineAdd(j.id)))
	case err == nil:
		return ident{}, &ExistsError{Path: r.Path, Kind: s.kind()}
	case !errors.Is(err, unix.ENOENT):
		return ident{}, holdError(r.Path, "inspect it", err)
	}
	if e, err = j.intend(r.Path, e, entryErr); err != nil {
		return ident{}, k.journalError(err)
	}
	id, err := k.mkdir(r, &e)
	if err != nil {
		// What was created is removed, and the intent with it.
		if err := j.settle(&e, j.id, &Report{}); err != nil {
			return ident{}, k.journalError(err)
		}
	}
	return id, err
}

// intend writes to the journal that the directory at path is about to be created. The
// entry for it, if entryErr is nil, is e.
func (j *journal) intend(path string, e entry, entryErr error) (entry, error) {
	if entryErr == nil {
		e.add(j.id)
		e.making, e.made, e.id = true, false, ident{}
		return e, j.add(&e, lineAdd(j.id)+lineMake)
	}
	if !errors.Is(entryErr, unix.ENOENT) { // there is one that says nothing
		if err := j.forget(entryName(path)); err != nil {
			return e, err
		}
	}
	return j.create(path)
}

// mkdir creates the directory that e announces, and records what it is.
func (k *Keeper) mkdir(r *request, e *entry) (ident, error) {
	err := k.failing("mkdir")
	if err == nil {
		err = unix.Mkdirat(r.dir.fd, r.name, placeholderMode)
	}
	switch {
	case err == nil:
	case errors.Is(err, unix.EEXIST):
		e.making = false // what exists there is not what the intent was about
		s, _ := statAt(r.dir.fd, r.name)
		return ident{}, &ExistsError{Path: r.Path, Kind: s.kind()}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		e.making = false
		return ident{}, &noRightError{err}
	default:
		e.making = false
		return ident{}, holdError(r.Path, "create the placeholder", err)
	}
	k.journal.at("directory made")
	s, err := statAt(r.dir.fd, r.name)
	if err != nil {
		return ident{}, holdError(r.Path, "inspect the placeholder", err)
	}
	if !s.closed() {
		return ident{}, &ExistsError{Path: r.Path, Kind: s.kind()}
	}
	if err := k.journal.add(e, lineMade(s.ident)); err != nil {
		return ident{}, k.journalError(err)
	}
	e.making, e.made, e.id = false, true, s.ident
	k.journal.at("directory recorded")
	return s.ident, nil
}

// join opens the journal, ends what dead processes left, and adds this keeper to it. After
// the first time it does nothing.
func (k *Keeper) join() error {
	if k.journal != nil {
		return nil
	}
	j, err := openJournal(k.State, true, k.step)
	if err != nil {
		return err
	}
	if err = j.lock(); err == nil {
		if _, err = j.sweep(false); err == nil {
			err = j.join()
		}
		j.unlock()
	}
	if err != nil {
		j.close()
		return err
	}
	k.journal = j
	return nil
}

// journalError says that the journal cannot be written. Nil stays nil.
func (k *Keeper) journalError(err error) error {
	if err == nil {
		return nil
	}
	return holdError(k.State, "write the journal of placeholders", err)
}

// holdError makes a HoldError with the fix for err.
func holdError(path, op string, err error) error {
	fix := ""
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		fix = "free some space or inodes there"
	case errors.Is(err, unix.ELOOP):
		fix = "a symbolic link is on the way; name the directory it leads to"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		fix = "its directory must exist"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		fix = "raise the limit of open files"
	case errors.Is(err, unix.ENAMETOOLONG):
		fix = "use a shorter path"
	}
	return &HoldError{Path: path, Op: op, Err: err, Fix: fix}
}

// DropUnused removes the placeholders that no [Hold] of this Keeper and no other living
// process needs, before Close does.
func (k *Keeper) DropUnused() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	return k.dropUnused()
}

// dropUnused gives up the placeholders that no hold needs. One that cannot be removed
// stays in the journal and is named in the error.
func (k *Keeper) dropUnused() error {
	var errs []error
	for path, o := range k.placeholders {
		if len(o.holds) > 0 {
			continue
		}
		if err := k.journal.giveUp(path); err != nil {
			errs = append(errs, holdError(path, "remove the placeholder", err))
			continue
		}
		k.drop(o)
	}
	return errors.Join(errs...)
}

// Close ends all watches, waits for the goroutine, and removes the placeholders that no
// other living process holds. Every Hold should be released before; one that is not is
// broken. A second Close does nothing. A placeholder that cannot be removed stays in the
// journal for the next start and is named in the error.
func (k *Keeper) Close() error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	w := k.watcher
	k.watcher = nil
	k.mu.Unlock()
	// Its goroutine may be waiting for the lock, and takes a moment to end.
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if w != nil {
			w.stop()
		}
	}()
	k.mu.Lock()
	err := k.end()
	k.mu.Unlock()
	<-stopped
	return err
}

// end gives back everything.
func (k *Keeper) end() error {
	var errs []error
	for _, o := range k.placeholders {
		o.lose("was given up")
		o.holds = nil
	}
	if k.journal != nil {
		err := k.dropUnused()
		if err == nil {
			err = k.journalError(k.journal.leave())
		}
		errs = append(errs, err)
		k.journal.close()
	}
	for _, d := range k.dirs {
		unix.Close(d.fd)
	}
	if k.quarantine != nil {
		// What was found in this run is young, and stays.
		errs = append(errs, k.quarantine.bound(&Report{}))
		k.quarantine.close()
	}
	k.dirs, k.placeholders, k.quarantine = nil, nil, nil
	return errors.Join(errs...)
}

// failing is the error that a test wants of a call.
func (k *Keeper) failing(call string) error {
	if k.fail == nil {
		return nil
	}
	return k.fail(call)
}
