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

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Protector protects names for one process. Its zero value with State set is ready; it must
// not be copied after first use and is safe for concurrent use. It has a few descriptors
// and one goroutine from the first Hold that needs them until Close.
type Protector struct {
	// State is the state directory: absolute, existing, mode 0700, on a local file system,
	// and hidden from commands.
	State string

	mu         sync.Mutex // guards the rest, and the fields of holds, directories and objects
	closed     bool
	journal    *journal // nil as long as nothing is remembered
	watcher    *watcher // nil as long as nothing needs it
	dirs       []*directory
	quarantine *quarantine // nil as long as nothing was moved
	scopes     []*scope
	memories   map[string]int          // holds of this protector by the file name of a memory
	step       func(string)            // marks a point between two steps, for tests; may be nil
	fail       func(call string) error // makes inotify or rename fail, for tests; may be nil
}

// Lock returns the locked file of the protector; nil as long as it remembers nothing. As long as another
// process has a copy of it open, no other protector settles what this one remembers.
func (k *Protector) Lock() *os.File {
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

// An object is what a mount covers, and must stay at its name. The kernel removes a mount, in all
// namespaces, with the file or directory under it: an editor that saves by a rename uncovers what
// it has saved.
type object struct {
	path, name string
	dir        *directory
	id         ident
	hold       *Hold
}

// A request is a Claim on its way to being held.
type request struct {
	Claim
	name string
	dir  *directory // nil where nothing is needed
}

// Hold arms the watches of claims. On error nothing of this call is left. It blocks only for the
// moment in which another process changes the journal.
//
// The errors are [*ExistsError] where something exists at a name already, [*HoldError]
// where a name cannot be protected, and [ErrClosed]. No claims make a Hold that does
// nothing. A claim in a directory that this user cannot search, and no command could give itself
// the right, needs nothing.
func (k *Protector) Hold(claims []Claim) (*Hold, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, ErrClosed
	}
	requests, err := distinct(claims)
	if err != nil {
		return nil, err
	}
	h := &Hold{protector: k}
	if err := k.fill(h, requests); err != nil {
		k.release(h)
		return nil, err
	}
	return h, nil
}

// distinct checks the claims and takes out doubles.
func distinct(claims []Claim) ([]*request, error) {
	list := make([]*request, 0, len(claims))
	seen := make(map[string]*request, len(claims))
	for _, c := range claims {
		if !validPath(c.Path) {
			return nil, &HoldError{Path: c.Path, Op: "invalid path", Err: unix.EINVAL,
				Fix: "give an absolute path without . and .."}
		}
		if old := seen[c.Path]; old != nil {
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
func (k *Protector) fill(h *Hold, requests []*request) error {
	if k.Remains() != nil {
		if err := k.join(); err != nil {
			return k.journalError(err)
		}
		h.found, h.weaker = k.settleDead()
	}
	for _, r := range requests {
		if err := k.open(h, r); err != nil {
			return err
		}
	}
	for _, d := range h.dirs {
		if err := k.arm(d); err != nil {
			h.weaker = append(h.weaker,
				fmt.Sprintf("changes in %s are noticed only at the end of a run: inotify: %v",
					text.Word(d.path), err))
		}
	}
	// From here on inotify reports every change, so what is true now stays true.
	asked := map[*directory]int{}
	for _, r := range requests {
		asked[r.dir]++
	}
	lists := map[*directory]safefile.Listing{}
	for _, d := range h.dirs {
		lists[d] = listAt(d.fd, asked[d])
	}
	for _, r := range requests {
		var err error
		switch {
		case r.dir == nil:
		case r.Ino != 0:
			err = k.cover(h, r)
		default:
			err = k.watch(h, r, lists[r.dir].Lacks(r.name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens the directory of r, or finds it among those that are open, and counts h as
// its user.
func (k *Protector) open(h *Hold, r *request) error {
	path := filepath.Dir(r.Path)
	for _, d := range h.dirs {
		if d.path == path {
			r.dir = d
			return nil
		}
	}
	fd, err := openDir(path)
	if err == nil { // it is there, but names in it may be out of reach
		if _, e := statAt(fd, r.name); errors.Is(e, unix.EACCES) {
			unix.Close(fd)
			err = e
		}
	}
	if errors.Is(err, unix.EACCES) {
		if closedByUser(r.Path) {
			return &HoldError{Path: r.Path, Op: "inspect it", Err: err,
				Fix: "a command could open the directories above it; chmod u+x them"}
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
	if i := slices.IndexFunc(k.dirs, func(d *directory) bool {
		return d.path == path &&
			d.id.same(s.ident)
	}); i >= 0 {
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

// closeUnused closes d when no hold needs it.
func (k *Protector) closeUnused(d *directory) {
	if d.holds > 0 {
		return
	}
	k.disarm(d)
	unix.Close(d.fd)
	k.dirs = slices.DeleteFunc(k.dirs, func(o *directory) bool { return o == d })
}

// cover holds what exists at the name of r.
func (k *Protector) cover(h *Hold, r *request) error {
	s, err := statAt(r.dir.fd, r.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return &ExistsError{Path: r.Path, Kind: KindGone}
	case err != nil:
		return holdError(r.Path, "inspect it", err)
	case !s.same(ident{dev: r.Dev, ino: r.Ino}):
		return &ExistsError{Path: r.Path, Kind: s.kind()}
	}
	o := &object{path: r.Path, name: r.name, dir: r.dir, id: s.ident, hold: h}
	r.dir.objects = append(r.dir.objects, o)
	h.objects = append(h.objects, o)
	return nil
}

// watch watches the name of r, which may be missing for certain.
func (k *Protector) watch(h *Hold, r *request, missing bool) error {
	if !missing {
		s, err := statAt(r.dir.fd, r.name)
		if err == nil && !r.ReportOnly {
			return &ExistsError{Path: r.Path, Kind: s.kind()}
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return holdError(r.Path, "watch it", err)
		}
	}
	n := r.dir.watched[r.name]
	if n == nil {
		n = &watched{path: r.Path, name: r.name, dir: r.dir, holds: map[*Hold]string{}, reportOnly: true,
			allowed: r.Allowed}
		r.dir.watched[r.name] = n
	}
	n.reportOnly = n.reportOnly && r.ReportOnly // of several claims the strictest counts
	if r.Allowed == nil {
		n.allowed = nil
	}
	n.holds[h] = r.Why
	h.names = append(h.names, n)
	return nil
}

// join opens the journal, removes the files of dead processes, and adds this protector to it. After
// the first time it does nothing.
func (k *Protector) join() error {
	if k.journal != nil {
		return nil
	}
	j, err := openJournal(k.State, true, k.step)
	if err != nil {
		return err
	}
	if err = j.lock(); err == nil {
		if err = j.sweep(new(Report)); err == nil {
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
func (k *Protector) journalError(err error) error {
	if err == nil {
		return nil
	}
	return holdError(k.State, "write the journal", err)
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

// Close ends all watches and waits for the goroutine. Every Hold should be released before: what one
// that is not remembers is settled by the next start. A second Close does nothing.
func (k *Protector) Close() error {
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
func (k *Protector) end() error {
	var errs []error
	if k.journal != nil {
		errs = append(errs, k.journalError(k.journal.leave()))
		k.journal.close()
	}
	for _, d := range k.dirs {
		unix.Close(d.fd)
	}
	k.dirs = nil
	return errors.Join(append(errs, k.bound())...)
}

// Bound removes what is too old or too much in quarantine, if anything was moved there since the last time,
// as Close does.
func (k *Protector) Bound() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bound()
}

func (k *Protector) bound() error {
	q := k.quarantine
	if q == nil {
		return nil
	}
	k.quarantine = nil
	defer q.close()
	return q.bound(&Report{}) // what was found in this run is young, and stays
}

// failing is the error that a test wants of a call.
func (k *Protector) failing(call string) error {
	if k.fail == nil {
		return nil
	}
	return k.fail(call)
}
