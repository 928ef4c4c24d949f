// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A keeper is what a Keeper has on Linux. mu guards all of it, and the fields of
// its holds, folders and slots.
type keeper struct {
	mu      sync.Mutex
	state   string
	closed  bool
	journal *journal // nil before the first Hold
	watcher *watcher // nil as long as nothing needs it
	folders []*folder
	slots   map[string]*slot        // placeholders held, by path
	boxes   *boxes                  // the quarantine; nil as long as nothing was moved
	step    func(string)            // marks a point between two steps, for tests; may be nil
	fail    func(call string) error // makes inotify, mkdir or rename fail, for tests; may be nil
}

// A folder is one in which names are guarded.
type folder struct {
	path    string
	fd      int // O_PATH
	id      ident
	wd      int // of inotify, or -1
	refs    int // holds that use it
	watched map[string]*watched
	placed  map[string]*slot
	fixed   []*fixture
}

// A slot is a placeholder that this keeper holds.
type slot struct {
	path, name string
	folder     *folder
	id         ident
	lost       bool // it is not there any more
	holds      []*hold
}

// A watched is a name that may not appear.
type watched struct {
	path, name string
	holds      map[*hold]string // with the Why of each
	ours       int              // moves of ours that inotify has not told yet
	moves      int              // how often something was moved from here
	late       bool             // moving at once failed: only the last look tries again
	notice     bool             // what appears is told and stays
}

// A hold is what a Hold has on Linux.
type hold struct {
	keeper  *keeper
	folders []*folder
	slots   []*slot
	names   []heldName
	fixed   []*fixture
	found   []Found
	skips   []Skip
	notes   []string
	broken  chan struct{}
	why     *BrokenError // set before broken is closed
	then    func()       // called when it is; nil for nobody
	over    bool         // released
}

// A heldName is a watched name and where it is watched.
type heldName struct {
	folder *folder
	*watched
}

// A want is a Want on its way to being held.
type want struct {
	Want
	dir, name string
	folder    *folder
	entry     entry // of a cold placeholder
	cold      bool  // a placeholder that this keeper does not have yet
	skip      bool  // nothing is needed
}

func (k *Keeper) hold(wants []Want) (*Hold, error) {
	in := &k.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, ErrClosed
	}
	in.state = k.State
	h := &Hold{hold{keeper: in, broken: make(chan struct{})}}
	list, err := sortWants(wants)
	if err != nil {
		return nil, err
	}
	// A placeholder that was lost since the last Hold is noticed late, and then it
	// is made anew. Nobody loses more than one between two looks, but somebody
	// outside who removes them all the time must not keep us here.
	for range 3 {
		err = in.fill(&h.in, list)
		if err == nil {
			return h, nil
		}
		in.undo(&h.in, list)
		if !errors.Is(err, errLost) {
			break
		}
		h.in = hold{keeper: in, broken: h.in.broken}
	}
	return nil, err
}

// errLost is a placeholder of this keeper that is not there any more.
var errLost = errors.New("guard: a placeholder was removed from outside in this moment; try again")

// sortWants checks the wants and takes out doubles. A name that is wanted both
// ways gets the placeholder.
func sortWants(wants []Want) ([]*want, error) {
	list := make([]*want, 0, len(wants))
	seen := make(map[string]*want, len(wants))
	for _, w := range wants {
		if !goodPath(w.Path) {
			return nil, &HoldError{Path: w.Path, Do: "guard it", Err: unix.EINVAL, Fix: "give an absolute path without . and .."}
		}
		if old := seen[w.Path]; old != nil {
			old.Placeholder = old.Placeholder || w.Placeholder
			old.Notice = old.Notice && w.Notice
			continue
		}
		one := &want{Want: w, dir: filepath.Dir(w.Path), name: filepath.Base(w.Path)}
		seen[w.Path] = one
		list = append(list, one)
	}
	return list, nil
}

// fill does the work of Hold. After an error undo takes it back.
func (k *keeper) fill(h *hold, list []*want) error {
	cold := false
	for _, w := range list {
		w.skip, w.cold = false, false
		if err := k.enter(h, w); err != nil {
			return err
		}
		if w.skip || !w.Placeholder || w.Ino != 0 {
			continue
		}
		s := k.slots[w.Path]
		w.cold = s == nil || s.lost || s.folder != w.folder
		cold = cold || w.cold
	}
	if cold || k.journal == nil {
		if err := k.lockJournal(); err != nil {
			return k.stateError(err)
		}
		defer k.unlockJournal()
		for _, w := range list {
			if !w.cold {
				continue
			}
			if err := k.make(h, w); err != nil {
				return err
			}
		}
	}
	// From here on no change in the folders goes unseen, so what is looked at now
	// stays true or is told.
	for _, f := range h.folders {
		if err := k.arm(f); err != nil {
			h.notes = append(h.notes, fmt.Sprintf("changes in %s are seen only at the end of a run: inotify: %v", f.path, err))
		}
	}
	for _, w := range list {
		if w.skip {
			continue
		}
		if err := k.settleWant(h, w); err != nil {
			return err
		}
	}
	return nil
}

// settleWant looks at the name of w and gives it to h.
func (k *keeper) settleWant(h *hold, w *want) error {
	switch {
	case w.Ino != 0:
		return k.fix(h, w)
	case w.cold:
		return k.record(h, w)
	case w.Placeholder:
		s := k.slots[w.Path]
		if l, err := lookAt(w.folder.fd, w.name); err != nil || !l.isFolder() || !l.same(s.id) {
			k.lose(s, "was removed or replaced")
			return errLost
		}
		s.holds = append(s.holds, h)
		h.slots = append(h.slots, s)
		return nil
	}
	l, err := lookAt(w.folder.fd, w.name)
	if err == nil && !w.Notice {
		return &ExistsError{Path: w.Path, Kind: l.kind()}
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return holdError(w.Path, "watch it", err)
	}
	n := w.folder.watched[w.name]
	if n == nil {
		n = &watched{path: w.Path, name: w.name, holds: map[*hold]string{}, notice: true}
		w.folder.watched[w.name] = n
	}
	n.notice = n.notice && w.Notice // of several reasons the strictest counts
	n.holds[h] = w.Why
	h.names = append(h.names, heldName{w.folder, n})
	return nil
}

// enter opens the folder of w, or finds it among those that are open, and counts
// h as its user.
func (k *keeper) enter(h *hold, w *want) error {
	for _, f := range h.folders {
		if f.path == w.dir {
			w.folder = f
			return nil
		}
	}
	fd, err := openFolder(w.dir)
	if errors.Is(err, unix.EACCES) {
		if closedAbove(w.dir, uint32(unix.Geteuid())) {
			return &HoldError{Path: w.Path, Do: "look at it", Err: err, Fix: "a command could open the folders above it; chmod u+x them"}
		}
		w.skip = true
		h.skips = append(h.skips, Skip{Path: w.Path, Err: err})
		return nil
	}
	if err != nil {
		return holdError(w.Path, "open its folder", err)
	}
	l, err := lookAt(fd, "")
	if err != nil {
		unix.Close(fd)
		return holdError(w.Path, "look at its folder", err)
	}
	i := slices.IndexFunc(k.folders, func(f *folder) bool { return f.path == w.dir && f.id.same(l.ident) })
	if i >= 0 {
		unix.Close(fd)
		w.folder = k.folders[i]
	} else {
		w.folder = &folder{path: w.dir, fd: fd, id: l.ident, wd: -1, watched: map[string]*watched{}, placed: map[string]*slot{}}
		k.folders = append(k.folders, w.folder)
	}
	w.folder.refs++
	h.folders = append(h.folders, w.folder)
	return nil
}

// exit is the end of enter. A folder with placeholders stays, and inotify goes on
// telling about it: to end that and begin it again costs more than a Hold.
func (k *keeper) exit(f *folder) {
	if f.refs--; f.refs > 0 || len(f.placed) > 0 {
		return
	}
	k.disarm(f)
	unix.Close(f.fd)
	k.folders = slices.DeleteFunc(k.folders, func(o *folder) bool { return o == f })
}

// make makes or shares the folder for w, under the journal's lock. The intent is
// in the journal before the folder is there. A leftover of a dead process is
// ended first.
func (k *keeper) make(h *hold, w *want) error {
	j, file := k.journal, entryName(w.Path)
	e, err := j.read(file)
	if err == nil && e.making {
		// Nobody is between two steps now, so its writer was killed or had no room.
		if _, err := j.removeFolder(w.folder.fd, w.name, &e); err != nil && !errors.Is(err, errNotOurs) {
			return holdError(w.Path, "remove what a killed process left", err)
		}
	}
	l, lookErr := lookAt(w.folder.fd, w.name)
	switch {
	case lookErr == nil && err == nil && !e.making && e.owns(l):
		e.add(j.id)
		w.entry = e
		return k.stateError(j.add(file, &w.entry, lineAdd(j.id)))
	case lookErr == nil:
		w.cold = false
		return &ExistsError{Path: w.Path, Kind: l.kind()}
	case !errors.Is(lookErr, unix.ENOENT):
		w.cold = false
		return holdError(w.Path, "look at it", lookErr)
	case err == nil:
		e.add(j.id)
		e.making, e.made, e.folder = true, false, ident{}
		w.entry = e
		err = j.add(file, &w.entry, lineAdd(j.id)+lineMake)
	default:
		// No entry, or one that says nothing that can be understood.
		if !errors.Is(err, unix.ENOENT) {
			err = j.forget(file)
		} else {
			err = nil
		}
		if err == nil {
			w.entry, err = j.create(file, w.Path)
		}
	}
	if err != nil {
		return k.stateError(err)
	}
	err = k.failing("mkdir")
	if err == nil && !j.takeSpare(w.folder.fd, w.name) {
		err = unix.Mkdirat(w.folder.fd, w.name, placeholderMode)
	}
	if err != nil {
		return k.notMade(h, w, err)
	}
	j.at("folder made")
	return nil
}

// notMade says what it means that mkdir failed for w.
func (k *keeper) notMade(h *hold, w *want, err error) error {
	j, file := k.journal, entryName(w.Path)
	w.cold = false
	// The intent meant nothing; its folder is not there.
	w.entry.making = false
	if s := j.settle(file, &w.entry, j.id); s.err != nil {
		return k.stateError(s.err)
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		l, _ := lookAt(w.folder.fd, w.name)
		return &ExistsError{Path: w.Path, Kind: l.kind()}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		if errors.Is(err, unix.EACCES) && ownFolder(w.folder.fd) {
			// The command is this user, who can give himself the right.
			w.Placeholder = false
			h.notes = append(h.notes, fmt.Sprintf("%s is watched, not covered: its folder is closed, but a command can open it", w.Path))
			return nil
		}
		w.skip = true
		h.skips = append(h.skips, Skip{Path: w.Path, Err: err})
		return nil
	}
	return holdError(w.Path, "make the placeholder", err)
}

// record looks at the folder that make has made or shares and writes down what it
// is.
func (k *keeper) record(h *hold, w *want) error {
	l, err := lookAt(w.folder.fd, w.name)
	switch {
	case err != nil:
		return holdError(w.Path, "look at the placeholder", err)
	case w.entry.making && !l.closed(), !w.entry.making && !w.entry.owns(l):
		return &ExistsError{Path: w.Path, Kind: l.kind()}
	}
	if w.entry.making {
		w.entry.making, w.entry.made, w.entry.folder = false, true, l.ident
		k.journal.at("armed")
		if err := k.journal.add(entryName(w.Path), &w.entry, lineFolder(l.ident)); err != nil {
			w.entry.making = true // as the file has it
			return k.stateError(err)
		}
		k.journal.at("folder recorded")
	}
	if old := k.slots[w.Path]; old != nil {
		k.drop(old)
	}
	s := &slot{path: w.Path, name: w.name, folder: w.folder, id: l.ident, holds: []*hold{h}}
	if k.slots == nil {
		k.slots = map[string]*slot{}
	}
	k.slots[w.Path] = s
	w.folder.placed[w.name] = s
	h.slots = append(h.slots, s)
	return nil
}

// drop forgets a slot whose folder is not there any more.
func (k *keeper) drop(s *slot) {
	k.lose(s, "was removed or replaced")
	if s.folder.placed[s.name] == s {
		delete(s.folder.placed, s.name)
	}
	if s.folder.refs == 0 && len(s.folder.placed) == 0 {
		s.folder.refs = 1
		k.exit(s.folder)
	}
}

// undo takes back what fill did for h.
func (k *keeper) undo(h *hold, list []*want) {
	k.letGo(h)
	if !slices.ContainsFunc(list, func(w *want) bool { return w.cold }) {
		return
	}
	if err := k.lockJournal(); err != nil {
		return // the next start finds it
	}
	defer k.unlockJournal()
	for _, w := range list {
		if !w.cold || w.entry.path == "" {
			continue
		}
		if s := k.slots[w.Path]; s != nil && len(s.holds) == 0 {
			delete(k.slots, w.Path)
			k.drop(s)
		}
		// Read again, because others could share it meanwhile. What fails here stays
		// in the journal, for Close or the next start.
		file := entryName(w.Path)
		if e, err := k.journal.read(file); err == nil {
			_ = k.journal.settle(file, &e, k.journal.id)
		}
		w.entry = entry{}
	}
}

// lockJournal takes the journal's lock. The first time it opens the journal, ends
// what dead processes left, and joins.
func (k *keeper) lockJournal() error {
	if k.journal != nil {
		return k.journal.lock()
	}
	j, err := openJournal(k.state, true, k.step)
	if err != nil {
		return err
	}
	if err = j.lock(); err == nil {
		if _, err = j.sweep(false); err == nil {
			err = j.join()
		}
	}
	if err != nil {
		j.shut()
		return err
	}
	k.journal = j
	return nil
}

func (k *keeper) unlockJournal() { k.journal.unlock() }

// stateError says that the journal cannot be written. Nil stays nil.
func (k *keeper) stateError(err error) error {
	if err == nil {
		return nil
	}
	return holdError(k.state, "keep the journal of placeholders", err)
}

// holdError makes a HoldError with the mend that fits to err.
func holdError(path, do string, err error) error {
	mend := ""
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		mend = "free some space or inodes there"
	case errors.Is(err, unix.ELOOP):
		mend = "a symbolic link is on the way; name the folder it leads to"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		mend = "its folder must exist"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		mend = "raise the limit of open files"
	case errors.Is(err, unix.ENAMETOOLONG):
		mend = "use a shorter path"
	}
	return &HoldError{Path: path, Do: do, Err: err, Fix: mend}
}

func (k *Keeper) close() error {
	in := &k.in
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return nil
	}
	in.closed = true
	w := in.watcher
	in.watcher = nil
	in.mu.Unlock()
	// Its goroutine may be waiting for the lock, and takes a moment to end.
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if w != nil {
			w.stop()
		}
	}()
	in.mu.Lock()
	err := in.end()
	in.mu.Unlock()
	<-stopped
	return err
}

// end gives back everything. mu is held, and closed is set.
func (k *keeper) end() error {
	var errs []error
	for _, s := range k.slots {
		k.lose(s, "was given up")
	}
	if k.journal != nil {
		errs = append(errs, k.endJournal())
		k.journal.shut()
	}
	for _, f := range k.folders {
		unix.Close(f.fd)
	}
	if k.boxes != nil {
		// What was found in this run is young, and stays.
		_, err := k.boxes.bound()
		errs = append(errs, err)
		k.boxes.shut()
	}
	k.folders, k.slots, k.boxes = nil, nil, nil
	return errors.Join(errs...)
}

// endJournal gives back the placeholders and leaves the journal.
func (k *keeper) endJournal() error {
	j := k.journal
	if err := j.lock(); err != nil {
		return k.stateError(err)
	}
	defer j.unlock()
	var errs []error
	for path := range k.slots {
		file := entryName(path)
		e, err := j.read(file)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = j.settle(file, &e, j.id).err
		}
		if err != nil {
			errs = append(errs, holdError(path, "remove the placeholder", err))
		}
	}
	if len(errs) == 0 {
		if err := j.leave(); err != nil {
			errs = append(errs, k.stateError(err))
		}
		j.at("holder removed")
	}
	return errors.Join(errs...)
}

// failing is the error that a test wants of a call.
func (k *keeper) failing(call string) error {
	if k.fail == nil {
		return nil
	}
	return k.fail(call)
}

// startWatcher is startWatcher, but for what tests ask.
func (k *keeper) startWatcher() (*watcher, error) {
	if err := k.failing("inotify"); err != nil {
		return nil, err
	}
	return startWatcher(k)
}
