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
