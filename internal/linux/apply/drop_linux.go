// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"

	"golang.org/x/sys/unix"
)

// trashName is the directory of a stage to which things go in one step that are removed then.
const trashName = "trash"

// opaque is the mark of a directory of the stage under which nothing of the host's is seen: see
// [changes.IsOpaque].
const opaque = "user.overlay.opaque"

// drop takes the changes that are done out of the stage. What else it has is seen as before at every moment.
func (w *work) drop() error {
	trash := filepath.Join(w.stage.Dir, trashName)
	if err := errors.Join(safefile.RemoveTreePath(trash), os.Mkdir(trash, 0o700)); err != nil {
		return err
	}
	fd, err := openTop(trash)
	if err != nil {
		return err
	}
	d := &dropping{work: w, trash: fd}
	for _, l := range w.layers {
		if _, some := l.top.whole(); some && err == nil {
			err = d.top(l)
		}
	}
	unix.Close(fd)
	if err != nil {
		return err
	}
	return safefile.RemoveTreePath(trash)
}

type dropping struct {
	*work
	trash int // O_PATH
	names int // in it
}

func (d *dropping) top(l *layer) error {
	if l.Name != "" {
		if d.resets {
			return d.reset(l)
		}
		return nil // it is equal to the host's, and stays
	}
	if err := d.inside(l.top, l.host, l.upper); err != nil {
		return err
	}
	var st unix.Stat_t
	if !l.top.done {
		return nil
	}
	if err := unix.Fstat(l.host, &st); err != nil {
		return err
	}
	return copyDirAttributes(l.host, l.upper, &changes.Facts{Mode: st.Mode, UID: st.Uid, GID: st.Gid})
}

// reset makes the copy of a single file what the host has. Without one, the stage has none either.
func (d *dropping) reset(l *layer) error {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	from, err := unix.Openat(l.host, l.Name, unix.O_RDONLY|flags, 0)
	if errors.Is(err, unix.ENOENT) {
		return d.throw(l.upper, l.Name)
	}
	if err != nil {
		return err
	}
	defer unix.Close(from)
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.Join(err, errTree)
	}
	to, err := unix.Openat(d.trash, l.Name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|flags, 0o600)
	if err != nil {
		return err
	}
	err = d.copyData(from, to, &st)
	if err == nil {
		err = CopyFacts(from, to)
	}
	if err = errors.Join(err, unix.Close(to)); err != nil {
		return err
	}
	return unix.Renameat(d.trash, l.Name, l.upper, l.Name)
}

// inside drops what is done in a directory of the stage. Host is -1 where the host has no such directory.
func (d *dropping) inside(n *node, host, upper int) error {
	if host >= 0 {
		if err := d.transparent(host, upper); err != nil {
			return err
		}
	}
	for _, k := range n.kids {
		all, some := k.whole()
		switch {
		case !some:
		case all:
			if err := d.throw(upper, k.name); err != nil {
				return err
			}
		case isDir(k.entry.New.Mode):
			if err := d.descend(k, host, upper); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dropping) descend(k *node, host, upper int) error {
	sub, done, err := d.openIn(k, true, upper)
	if err != nil {
		return err
	}
	defer done()
	inner := -1
	if host >= 0 {
		if inner, err = openDir(host, k.name); err != nil {
			inner = -1 // another kind of thing, or nothing
		} else {
			defer unix.Close(inner)
		}
	}
	if err := d.inside(k, inner, sub); err != nil {
		return err
	}
	if inner < 0 && k.entry.Way { // it was only made on the way to what was dropped
		if err := unix.Unlinkat(upper, k.name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// throw moves a name of the stage away, with all below it.
func (d *dropping) throw(upper int, name string) error {
	d.names++
	err := unix.Renameat(upper, name, d.trash, strconv.Itoa(d.names))
	if errors.Is(err, unix.EACCES) { // a directory must be writable to be moved
		if safefile.Chmod(upper, name, 0o700) == nil {
			err = unix.Renameat(upper, name, d.trash, strconv.Itoa(d.names))
		}
	}
	return ignoreVanished(err)
}

// transparent has an opaque directory of the stage show the same without its mark: what the host has and the
// stage has not is deleted name by name.
func (d *dropping) transparent(host, upper int) error {
	up, err := reader(upper)
	if err != nil {
		return err
	}
	defer up.Close()
	if !changes.IsOpaque(int(up.Fd())) {
		return nil
	}
	dir, err := reader(host)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := unix.Mknodat(upper, name, unix.S_IFCHR, 0)
		if errors.Is(err, unix.EEXIST) {
			err = shield(upper, name)
		}
		if err != nil {
			return err
		}
	}
	return unix.Fremovexattr(int(up.Fd()), opaque)
}

// shield has a directory of the stage, if the name is one, show nothing of the host's.
func shield(upper int, name string) error {
	fd, err := openDir(upper, name)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setxattr(proc(fd), opaque, []byte{'y'}, 0)
}
