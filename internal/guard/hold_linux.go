// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what one hold tells and does at once. A command that makes and removes
// a name in a loop must not fill our memory or our state folder.
const (
	maxFound = 64 // per hold; what is beyond is counted in a note
	maxMoves = 16 // per name before the last look
)

func (h *Hold) placeholders() []Placeholder {
	h.in.keeper.mu.Lock()
	defer h.in.keeper.mu.Unlock()
	var list []Placeholder
	for _, s := range h.in.slots {
		list = append(list, Placeholder{Path: s.path, Dev: s.id.dev, Ino: s.id.ino})
	}
	return list
}

func (h *Hold) skipped() []Skip {
	h.in.keeper.mu.Lock()
	defer h.in.keeper.mu.Unlock()
	return slices.Clone(h.in.skips)
}

func (h *Hold) weaker() []string {
	h.in.keeper.mu.Lock()
	defer h.in.keeper.mu.Unlock()
	return slices.Clone(h.in.notes)
}

func (h *Hold) brokenCh() <-chan struct{} { return h.in.broken }

func (h *Hold) onBroken(f func()) {
	h.in.keeper.mu.Lock()
	defer h.in.keeper.mu.Unlock()
	h.in.then = f
	if h.in.why != nil {
		go f()
	}
}

// breaks tells that h is broken, which it was not before. The lock is held.
func (h *hold) breaks(why *BrokenError) {
	h.why = why
	close(h.broken)
	if h.then != nil {
		go h.then()
	}
}

func (h *Hold) cause() error {
	h.in.keeper.mu.Lock()
	defer h.in.keeper.mu.Unlock()
	if h.in.why == nil {
		return nil
	}
	return h.in.why
}

func (h *Hold) finish() ([]Found, error) {
	k := h.in.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if !h.in.over && !k.closed {
		// What has already happened, in its order.
		k.drain()
		for _, n := range h.in.names {
			errs = append(errs, k.lastLook(n.folder.fd, n.folder, n.watched))
		}
		for _, f := range h.in.folders {
			errs = append(errs, k.lookAgain(&h.in, f))
		}
		for _, s := range h.in.slots {
			k.check(s.folder, s.name)
		}
		for _, x := range h.in.fixed {
			k.checkFixed(x.folder, x.name)
		}
	}
	if h.in.why != nil {
		errs = append(errs, h.in.why)
	}
	return slices.Clone(h.in.found), errors.Join(errs...)
}

// lookAgain finds out whether the path of f still leads to f. Where a command has
// put another folder there, the names are looked at in that one too.
func (k *keeper) lookAgain(h *hold, f *folder) error {
	fd, err := openFolder(f.path)
	if err == nil {
		defer unix.Close(fd)
		var l look
		if l, err = lookAt(fd, ""); err == nil && l.same(f.id) {
			return nil
		}
		f.movedFixed(fd)
	}
	for _, s := range h.slots {
		if s.folder == f {
			k.lose(s, "was moved away with its folder")
		}
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil // nothing can stand at the names
	}
	var errs []error
	for _, n := range h.names {
		switch {
		case n.folder != f:
		case err != nil:
			errs = append(errs, &QuarantineError{Path: n.path, Err: fmt.Errorf("its folder was replaced: %w", err)})
		default:
			errs = append(errs, k.lastLook(fd, f, n.watched))
		}
	}
	return errors.Join(errs...)
}

func (h *Hold) release() {
	k := h.in.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.letGo(&h.in)
	}
}

// letGo ends what h has of k. The placeholders stay.
func (k *keeper) letGo(h *hold) {
	if h.over {
		return
	}
	h.over = true
	h.unfix()
	for _, n := range h.names {
		delete(n.holds, h)
		if len(n.holds) == 0 && n.folder.watched[n.name] == n.watched {
			delete(n.folder.watched, n.name)
		}
	}
	for _, s := range h.slots {
		s.holds = slices.DeleteFunc(s.holds, func(o *hold) bool { return o == h })
	}
	for _, f := range h.folders {
		k.exit(f)
	}
}

// check finds out whether the placeholder name in f, if there is one, is lost.
// k.mu is held.
func (k *keeper) check(f *folder, name string) {
	k.checkFixed(f, name)
	s := f.placed[name]
	if s == nil || s.lost {
		return
	}
	switch l, err := lookAt(f.fd, name); {
	case errors.Is(err, unix.ENOENT):
		k.lose(s, "was removed or moved away")
	case err == nil && (!l.isFolder() || !l.same(s.id)):
		k.lose(s, "was replaced by a "+string(l.kind()))
	}
}

// moved finds out whether the path of f leads elsewhere now, with all the
// placeholders in it. k.mu is held.
func (k *keeper) moved(f *folder) {
	if len(f.placed) == 0 && len(f.fixed) == 0 {
		return
	}
	fd, err := openFolder(f.path)
	if err == nil {
		l, e := lookAt(fd, "")
		same := e == nil && l.same(f.id)
		if !same {
			f.movedFixed(fd)
		}
		unix.Close(fd)
		if same {
			return
		}
	}
	for _, s := range f.placed {
		k.lose(s, "was moved away with its folder")
	}
}

// lose tells everybody who holds s that it is lost. k.mu is held.
func (k *keeper) lose(s *slot, what string) {
	s.lost = true
	for _, h := range s.holds {
		if h.why == nil && !h.over {
			h.breaks(&BrokenError{Path: s.path, What: what})
		}
	}
}

// appeared moves away what stands at the watched name n. told says that an event
// about it came, so that nothing being there is worth telling. k.mu is held.
func (k *keeper) appeared(f *folder, n *watched, told bool) {
	if n.notice {
		if told {
			k.notice(n)
		}
		return
	}
	l, err := lookAt(f.fd, n.name)
	switch {
	case errors.Is(err, unix.ENOENT) && told:
		if n.ours == 0 { // otherwise it is what we have moved ourselves
			k.tell(n, Found{Kind: KindGone})
		}
	case err != nil || n.late:
	case n.moves >= maxMoves:
		n.late = true
		for h := range n.holds {
			h.notes = append(h.notes, fmt.Sprintf("%s appeared more than %d times; from then on it was moved away only at the end", n.path, maxMoves))
		}
	default:
		to, err := k.quarantine(f.fd, n, l)
		switch {
		case err == nil:
			n.moved(f)
			k.tell(n, Found{Kind: l.kind(), MovedTo: to})
		case errors.Is(err, unix.ENOENT):
			k.tell(n, Found{Kind: KindGone})
		default:
			n.late = true
		}
	}
}

// notice tells once that something appeared at n. k.mu is held.
func (k *keeper) notice(n *watched) {
	for h, why := range n.holds {
		if !slices.ContainsFunc(h.found, func(f Found) bool { return f.Path == n.path }) {
			h.found = append(h.found, Found{Path: n.path, Kind: KindGone, Why: why, When: time.Now()})
		}
	}
}

// tell adds a found thing to everybody who watches the name. k.mu is held.
func (k *keeper) tell(n *watched, what Found) {
	what.Path, what.When = n.path, time.Now()
	for h, why := range n.holds {
		if len(h.found) >= maxFound && what.Kind == KindGone {
			if len(h.found) == maxFound {
				h.notes = append(h.notes, fmt.Sprintf("%s and other names appeared more often than is told", n.path))
			}
			continue
		}
		what.Why = why
		h.found = append(h.found, what)
	}
}

// lastLook moves away what stands at the watched name n in the folder fd, which is
// f or what stands at its path now, by all means there are. k.mu is held.
func (k *keeper) lastLook(fd int, f *folder, n *watched) error {
	if n.notice {
		return nil
	}
	reopen, err := openClosed(fd)
	if err != nil {
		return &QuarantineError{Path: n.path, Err: err}
	}
	defer reopen()
	// Somebody outside may make it again meanwhile; nobody inside is left.
	for range 3 {
		l, err := lookAt(fd, n.name)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return &QuarantineError{Path: n.path, Err: err}
		}
		what := Found{Kind: l.kind()}
		what.MovedTo, err = k.quarantine(fd, n, l)
		if errors.Is(err, unix.EXDEV) {
			what.MovedTo, what.NotCopied, err = k.carry(fd, n, l)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			what.MovedTo, err = setAside(fd, f.path, n.name, l)
		}
		switch {
		case err == nil:
			if fd == f.fd {
				n.moved(f)
			}
			k.tell(n, what)
		case errors.Is(err, unix.ENOENT):
			k.tell(n, Found{Kind: KindGone})
		default:
			k.tell(n, what)
			return &QuarantineError{Path: n.path, Err: err}
		}
	}
	if _, err := lookAt(fd, n.name); !errors.Is(err, unix.ENOENT) {
		return &QuarantineError{Path: n.path, Err: errors.New("somebody makes it again and again")}
	}
	return nil
}

// moved notes that inotify will tell about a move of ours: what it tells about the
// name until then is older.
func (n *watched) moved(f *folder) {
	if f.wd >= 0 {
		n.ours++
	}
}

// whys returns the reasons why n is watched, in order.
func (n *watched) whys() []string {
	return slices.Compact(slices.Sorted(maps.Values(n.holds)))
}
