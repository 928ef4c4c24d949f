// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

const (
	// nameEvents are those after which something new can exist in a directory, or something is
	// missing without which git looks elsewhere.
	nameEvents = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
		unix.IN_DELETE | unix.IN_MOVED_FROM
	// contentEvents are those after which a file can have another content. A file is watched
	// beside its directory: what happens by another of its names is reported for it alone.
	contentEvents = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB

	// maxPlanted is how much is quarantined of what one command plants, before it is ended.
	maxPlanted = 64
	// maxLooks bounds how often one event leads to another look, because more is to be watched.
	maxLooks = 8
)

// A Look returns what must not exist now, and the directories and files in which more of it can
// appear. It is called by one goroutine at a time, and must not use the Protector.
type Look func() (harmful []git.Path, places []string)

// A scope is what a Hold has looked at again whenever something changes there.
type scope struct {
	hold    *Hold
	look    Look
	content bool // changes of files count
	wds     []int
	dirty   bool
	moved   int
}

// Watch has look called now and, until Release, whenever something changes in the places that it
// returns; with content also when a file changes. What it finds harmful is moved to quarantine at
// once. Without inotify it returns a [*HoldError]: then nothing would be noticed before the end.
// A command that plants again and again is ended, see [Hold.OnBroken].
func (h *Hold) Watch(look Look, content bool) error {
	k := h.protector
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	s := &scope{hold: h, look: look, content: content}
	k.scopes = append(k.scopes, s)
	return k.lookAt(s)
}

// lookDirty looks at the scopes in which something has happened.
func (k *Protector) lookDirty() {
	for _, s := range slices.Clone(k.scopes) {
		if !s.dirty {
			continue
		}
		if err := k.lookAt(s); err != nil {
			s.hold.breakOff(&BrokenError{What: err.Error(), Unwatched: true})
		}
	}
}

// lookAt looks at a scope until all places are watched, and quarantines what is harmful.
func (k *Protector) lookAt(s *scope) error {
	s.dirty = false
	for range maxLooks {
		harmful, places := s.look()
		more, err := k.armScope(s, places)
		if err != nil {
			return err
		}
		for _, p := range harmful {
			k.plantFound(s, p)
		}
		if !more {
			return nil
		}
	}
	s.dirty = true // the next event goes on
	return nil
}

// plantFound moves one harmful thing away.
func (k *Protector) plantFound(s *scope, p git.Path) {
	if s.moved++; s.moved > maxPlanted {
		s.hold.breakOff(&BrokenError{Path: p.Path, What: "was made again and again", Again: true})
		return
	}
	found, err := k.quarantineNow(p.Path, p.Why)
	if err == nil && found.Kind != KindGone { // or the last look says why
		s.hold.found = append(s.hold.found, found)
	}
}

// armScope watches the places of a scope, and no others. It reports whether one is new.
func (k *Protector) armScope(s *scope, places []string) (more bool, err error) {
	if k.watcher == nil {
		err := k.failing("inotify")
		if err == nil {
			k.watcher, err = startWatcher(k)
		}
		if err != nil {
			return false, watchError(places[0], err)
		}
	}
	var wds []int
	for _, place := range places {
		wd, err := k.armPlace(place, s.content)
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			continue // what takes its place is an event where it lies
		case err != nil:
			return false, watchError(place, err)
		}
		wds = append(wds, wd)
		more = more || !slices.Contains(s.wds, wd)
	}
	old := s.wds
	s.wds = wds
	k.disarmUnused(old)
	return more, nil
}

// armPlace adds one directory or file to what inotify reports about.
func (k *Protector) armPlace(place string, content bool) (wd int, err error) {
	dir, err := openDir(filepath.Dir(place))
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	fd, err := openAt(dir, filepath.Base(place), unix.O_PATH)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	s, err := statAt(fd, "")
	if err != nil {
		return -1, err
	}
	mask := uint32(nameEvents)
	switch {
	case !s.isDir():
		mask = contentEvents
	case content:
		mask |= contentEvents
	}
	return unix.InotifyAddWatch(k.watcher.fd, fdPath(fd), mask|unix.IN_MASK_ADD)
}

// disarmUnused ends the watches among wds that nothing needs.
func (k *Protector) disarmUnused(wds []int) {
	for _, wd := range wds {
		used := slices.ContainsFunc(k.scopes, func(s *scope) bool { return slices.Contains(s.wds, wd) }) ||
			slices.ContainsFunc(k.dirs, func(d *directory) bool { return d.wd == wd })
		if !used && k.watcher != nil {
			_, _ = unix.InotifyRmWatch(k.watcher.fd, uint32(wd)) // it has ended by itself for what is gone
		}
	}
}

// dropScopes ends the scopes of a hold.
func (k *Protector) dropScopes(h *Hold) {
	var wds []int
	k.scopes = slices.DeleteFunc(k.scopes, func(s *scope) bool {
		if s.hold == h {
			wds = append(wds, s.wds...)
		}
		return s.hold == h
	})
	k.disarmUnused(wds)
}

// mark notes for an event which scopes are to be looked at again.
func (k *Protector) mark(wd int32, mask uint32) {
	for _, s := range k.scopes {
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			s.dirty = true
		case slices.Contains(s.wds, int(wd)):
			s.dirty = s.dirty || mask&(nameEvents|contentEvents|unix.IN_IGNORED) != 0
			if mask&unix.IN_IGNORED != 0 {
				s.wds = slices.DeleteFunc(s.wds, func(other int) bool { return other == int(wd) })
			}
		}
	}
}

// watchError says that a place cannot be watched.
func watchError(place string, err error) error {
	fix := ""
	switch {
	case errors.Is(err, unix.EMFILE):
		fix = "end programs that watch files, or raise fs.inotify.max_user_instances with sysctl"
	case errors.Is(err, unix.ENOSPC):
		fix = "end programs that watch files, or raise fs.inotify.max_user_watches with sysctl"
	}
	return &HoldError{Path: place, Op: "watch it (inotify)", Err: err, Fix: fix}
}

// breakOff tells a hold that it protects no longer what it should.
func (h *Hold) breakOff(why *BrokenError) {
	if h.broken != nil || h.released {
		return
	}
	h.broken = why
	if h.onBroken != nil {
		go h.onBroken(why)
	}
}
