// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Bounds of what one hold reports and does at once. A command that creates and removes a
// name in a loop must not fill the memory or the state directory.
const (
	maxFound = 64 // things that are gone, per hold
	maxMoves = 16 // per name before the last look
)

// A Hold is a set of names that are protected. It comes from [Protector.Hold]; its methods
// are safe for concurrent use.
type Hold struct {
	protector *Protector // its lock guards the rest
	dirs      []*directory
	objects   []*object
	names     []*watched
	found     []Found
	weaker    []string
	broken    *BrokenError
	onBroken  func(error)
	released  bool
	memories  []string // file names
}

// A watched is a name that a command cannot keep.
type watched struct {
	path, name string
	dir        *directory
	holds      map[*Hold]string // with the Why of each
	ours       int              // moves of this protector that inotify has not reported yet
	moves      int              // how often something was moved from here
	late       bool             // moving at once failed: only the last look tries again
	reportOnly bool             // what appears is reported and stays
	allowed    func(dir string) bool
}

// stays reports whether what is at the name in the directory fd is the user's own.
func (n *watched) stays(fd int) bool { return n.allowed != nil && n.allowed(fdPath(fd)) }

// Lock returns the locked file of the protector, as [Protector.Lock].
func (h *Hold) Lock() *os.File { return h.protector.Lock() }

// Weaker returns, one sentence each, what is protected less than claimed. Nil means that
// everything is as claimed.
func (h *Hold) Weaker() []string { return h.weaker }

// OnBroken has f called with a [*BrokenError], in a goroutine of its own, when what a mount covers
// was replaced: at once when that has happened already. What ran until then was protected: it was done
// by a program outside of the sandbox. The f of an earlier call is not called any more.
func (h *Hold) OnBroken(f func(cause error)) {
	h.protector.mu.Lock()
	defer h.protector.mu.Unlock()
	h.onBroken = f
	if h.broken != nil {
		go f(h.broken)
	}
}

// lose tells the hold of o that it is lost.
func (o *object) lose(what string) {
	o.hold.breakOff(&BrokenError{Path: o.path, What: what})
}

// Finish looks a last time at every name and moves what exists at a watched one to
// quarantine. Call it when no process of the command is left. It returns all that was
// found since Hold, and an error that joins a [*BrokenError] for an object that was lost
// and a [*QuarantineError] for each name that could not be emptied or looked at. A second
// call looks again.
func (h *Hold) Finish() ([]Found, error) {
	k := h.protector
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if !h.released && !k.closed {
		k.readEvents() // what has happened, in its order
		for _, s := range k.scopes {
			if s.hold == h {
				errs = append(errs, k.lookAt(s)) // not everything is an event
			}
		}
		k.dropScopes(h) // the caller looks for the rest
		lists := map[*directory]safefile.Listing{}
		for _, d := range h.dirs {
			lists[d] = listAt(d.fd, len(d.watched))
		}
		for _, n := range h.names {
			if !lists[n.dir].Lacks(n.name) {
				errs = append(errs, k.lastLook(n.dir.fd, n))
			}
		}
		for _, d := range h.dirs {
			errs = append(errs, k.lookBehind(h, d))
		}
		for _, o := range h.objects {
			o.check()
		}
	}
	if h.broken != nil {
		errs = append(errs, h.broken)
	}
	return slices.Clone(h.found), errors.Join(errs...)
}

// Release ends the watches. A second Release does nothing.
func (h *Hold) Release() {
	k := h.protector
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.release(h)
	}
}

// release ends what h has of k.
func (k *Protector) release(h *Hold) {
	if h.released {
		return
	}
	k.dropScopes(h)
	k.forgetMemories(h)
	h.released = true
	for _, n := range h.names {
		delete(n.holds, h)
		if len(n.holds) == 0 && n.dir.watched[n.name] == n {
			delete(n.dir.watched, n.name)
		}
	}
	for _, o := range h.objects {
		o.dir.objects = slices.DeleteFunc(o.dir.objects, func(x *object) bool { return x == o })
	}
	for _, d := range h.dirs {
		d.holds--
		k.closeUnused(d)
	}
}

// check finds out whether o is lost. Where nothing exists any more at its name there is nothing to
// protect.
func (o *object) check() {
	if s, err := statAt(o.dir.fd, o.name); err == nil && !s.same(o.id) {
		o.lose("was replaced")
	}
}

// checkName checks the objects with a name in d.
func (d *directory) checkName(name string) {
	for _, o := range d.objects {
		if o.name == name {
			o.check()
		}
	}
}

// moved finds out whether the path of d leads to another directory now, and which objects
// are lost by that. It returns the other directory, which the caller closes; -1 is none.
func (k *Protector) moved(d *directory) (other int, err error) {
	fd, err := openDir(d.path)
	if err == nil {
		var s status
		if s, err = statAt(fd, ""); err == nil && s.same(d.id) {
			unix.Close(fd)
			return -1, nil
		}
	}
	for _, o := range d.objects {
		if s, err := statAt(fd, o.name); fd >= 0 && err == nil && !s.same(o.id) {
			o.lose("was replaced with its directory")
		}
	}
	return fd, err
}

// lookBehind is the last look at the directory that a command may have put into the place
// of d.
func (k *Protector) lookBehind(h *Hold, d *directory) error {
	other, err := k.moved(d)
	if other >= 0 {
		defer unix.Close(other)
	}
	if other < 0 && err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // d is in its place, or nothing can exist at the names
	}
	var errs []error
	for _, n := range h.names {
		switch {
		case n.dir != d:
		case err != nil:
			errs = append(errs, &QuarantineError{Path: n.path,
				Err: fmt.Errorf("its directory was replaced: %w", err)})
		default:
			errs = append(errs, k.lastLook(other, n))
		}
	}
	return errors.Join(errs...)
}

// appeared quarantines what exists at the watched name n. Reported says that an event about
// it came, so that nothing being there is worth reporting.
func (k *Protector) appeared(n *watched, reported bool) {
	if n.reportOnly {
		if reported {
			n.reportOnce()
		}
		return
	}
	s, err := statAt(n.dir.fd, n.name)
	switch {
	case errors.Is(err, unix.ENOENT) && reported:
		if n.ours == 0 { // otherwise this protector has moved it
			n.report(KindGone, "")
		}
	case err != nil || n.late || n.stays(n.dir.fd):
	case n.moves >= maxMoves:
		n.late = true
	default:
		to, err := k.rename(n.dir.fd, n, s)
		switch {
		case err == nil:
			n.moved()
			n.report(s.kind(), to)
		case errors.Is(err, unix.ENOENT):
			n.report(KindGone, "")
		default:
			n.late = true
		}
	}
}

// moved notes that inotify will report a move of this protector: what it reports about the
// name until then is older.
func (n *watched) moved() {
	if n.dir.wd >= 0 {
		n.ours++
	}
}

// reportOnce reports to each hold that something appeared at n.
func (n *watched) reportOnce() {
	for h, why := range n.holds {
		if !slices.ContainsFunc(h.found, func(f Found) bool { return f.Path == n.path }) {
			h.found = append(h.found, Found{Path: n.path, Kind: KindGone, Why: why, When: time.Now()})
		}
	}
}

// report adds a found thing to every hold of the name.
func (n *watched) report(kind Kind, movedTo string) {
	now := time.Now()
	for h, why := range n.holds {
		if len(h.found) < maxFound || kind != KindGone {
			h.found = append(h.found, Found{Path: n.path, MovedTo: movedTo, Kind: kind, Why: why, When: now})
		}
	}
}

// lastLook quarantines what exists at the watched name n in the directory fd, which is that
// of n or what is at its path now, by all means there are.
func (k *Protector) lastLook(fd int, n *watched) error {
	if n.reportOnly {
		return nil
	}
	restore, err := openUp(fd)
	if err != nil {
		return &QuarantineError{Path: n.path, Err: err}
	}
	defer restore()
	// A program outside may create it again meanwhile; no process of the command is left.
	for range 3 {
		s, err := statAt(fd, n.name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &QuarantineError{Path: n.path, Err: err}
		}
		if n.stays(fd) {
			return nil
		}
		to, err := k.rename(fd, n, s)
		if errors.Is(err, unix.EXDEV) {
			to, err = k.copy(fd, n, s)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			to, err = renameAside(fd, n, s)
		}
		switch {
		case err == nil:
			if fd == n.dir.fd {
				n.moved()
			}
			n.report(s.kind(), to)
		case errors.Is(err, unix.ENOENT):
			n.report(KindGone, "")
		default:
			n.report(s.kind(), "")
			return &QuarantineError{Path: n.path, Err: err}
		}
	}
	if _, err := statAt(fd, n.name); !errors.Is(err, unix.ENOENT) {
		return &QuarantineError{Path: n.path, Err: errors.New("another program creates it again and again")}
	}
	return nil
}

// Quarantine moves what exists at a path to quarantine, whatever it is: for names that
// turn out to be harmful when a command has ended. Nothing there is [KindGone] and no
// error. The path is as in a [Claim], why is for the note beside.
func (k *Protector) Quarantine(path, why string) (Found, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return Found{}, ErrClosed
	}
	return k.quarantineNow(path, why)
}

// quarantineNow is Quarantine with the lock held.
func (k *Protector) quarantineNow(path, why string) (Found, error) {
	gone := Found{Path: path, Kind: KindGone, Why: why}
	if !validPath(path) {
		return Found{}, &QuarantineError{Path: path, Err: unix.EINVAL}
	}
	fd, err := openDir(filepath.Dir(path))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return gone, nil
	}
	if err != nil {
		return Found{}, &QuarantineError{Path: path, Err: err}
	}
	defer unix.Close(fd)
	h := &Hold{protector: k}
	n := &watched{path: path, name: filepath.Base(path), dir: &directory{fd: fd, wd: -1},
		holds: map[*Hold]string{h: why}}
	if err := k.lastLook(fd, n); err != nil {
		return Found{Path: path, Why: why}, err
	}
	if len(h.found) == 0 {
		return gone, nil
	}
	return h.found[0], nil
}
