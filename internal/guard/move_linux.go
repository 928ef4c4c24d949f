// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func (k *Keeper) quarantineNow(path, why string) (Found, error) {
	in := &k.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return Found{}, ErrClosed
	}
	in.state = k.State
	if !goodPath(path) {
		return Found{}, &QuarantineError{Path: path, Err: unix.EINVAL}
	}
	dir := filepath.Dir(path)
	fd, err := openFolder(dir)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Found{Path: path, Kind: KindGone, Why: why}, nil
	}
	if err != nil {
		return Found{}, &QuarantineError{Path: path, Err: err}
	}
	defer unix.Close(fd)
	ear := &hold{keeper: in}
	n := &watched{path: path, name: filepath.Base(path), holds: map[*hold]string{ear: why}}
	if err := in.lastLook(fd, &folder{path: dir, fd: fd, wd: -1}, n); err != nil {
		return Found{Path: path, Why: why}, err
	}
	if len(ear.found) == 0 {
		return Found{Path: path, Kind: KindGone, Why: why}, nil
	}
	return ear.found[0], nil
}

func (k *Keeper) dropUnused() error {
	in := &k.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.journal == nil || len(in.slots) == 0 {
		return nil
	}
	if err := in.journal.lock(); err != nil {
		return in.stateError(err)
	}
	defer in.journal.unlock()
	var errs []error
	for path, s := range in.slots {
		if len(s.holds) > 0 {
			continue
		}
		file := entryName(path)
		e, err := in.journal.read(file)
		if err == nil {
			err = in.journal.settle(file, &e, in.journal.id).err
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, holdError(path, "remove the placeholder", err))
			continue
		}
		s.lost = true
		delete(in.slots, path)
		if s.folder.placed[s.name] == s {
			delete(s.folder.placed, s.name)
		}
		if s.folder.refs == 0 && len(s.folder.placed) == 0 {
			s.folder.refs = 1
			in.exit(s.folder)
		}
	}
	return errors.Join(errs...)
}
