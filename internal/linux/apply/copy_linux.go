// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"

	"golang.org/x/sys/unix"
)

var euid = sync.OnceValue(os.Geteuid)

// build makes what the stage has at a node, under a name in a directory. Of a directory, what is chosen
// is made in it.
func (w *work) build(n *node, at int, name string, p *pair) error {
	w.next(n)
	switch e := n.entry; e.New.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.buildDir(n, at, name, p)
	case unix.S_IFREG:
		return w.buildFile(n, at, name, p)
	case unix.S_IFLNK:
		if err := w.replace(func() error { return unix.Symlinkat(e.Target, at, name) }, at); err != nil {
			return err
		}
		if own(&e.New) {
			_ = unix.Fchownat(at, name, int(e.New.UID), int(e.New.GID), unix.AT_SYMLINK_NOFOLLOW)
		}
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(e.New.Mtime)}
		return unix.UtimesNanoAt(at, name, times, unix.AT_SYMLINK_NOFOLLOW)
	}
	return errTree // special files are not chosen
}

// replace makes a file, and once more after the temporary name of an earlier apply was removed.
func (w *work) replace(make func() error, at int) error {
	err := make()
	if errors.Is(err, unix.EEXIST) {
		if err = w.removeTemp(at); err == nil {
			err = make()
		}
	}
	return err
}

func (w *work) buildDir(n *node, at int, name string, p *pair) error {
	if err := w.replace(func() error { return unix.Mkdirat(at, name, 0o700) }, at); err != nil {
		return err
	}
	host, err := openDir(at, name)
	if err != nil {
		return err
	}
	defer unix.Close(host)
	upper, done, err := w.openIn(n, true, p.upper)
	if err != nil {
		return err
	}
	defer done()
	inner := &pair{layer: p.layer, host: host, upper: upper}
	for _, k := range n.kids {
		if k.todo&^deletes == 0 {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.build(k, host, k.name, inner); err != nil {
			return err
		}
	}
	if err := copyDirAttributes(upper, host, &n.entry.New); err != nil {
		return err
	}
	return setTimes(host, n.entry.New.Mtime)
}

// buildFile makes a regular file with all that belongs to it, or another name of one that was made before.
func (w *work) buildFile(n *node, at int, name string, p *pair) error {
	e := n.entry
	from, err := w.openStaged(n, p)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != e.New.Ino {
		return errTree
	}
	if w.linked(&e.New) {
		if linked, err := w.link(n, at, name, from); linked || err != nil {
			return err
		}
	}
	to := -1
	err = w.replace(func() (err error) {
		const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		to, err = unix.Openat(at, name, flags, 0o600)
		return err
	}, at)
	if err != nil {
		return err
	}
	err = w.copyData(from, to, &st)
	if err == nil {
		err = copyAttributes(from, to, &e.New)
	}
	if err == nil {
		err = setTimes(to, unix.TimespecToNsec(st.Mtim))
	}
	if e.New.Nlink > 1 && err == nil {
		w.links[inodeOf(&e.New)] = n
	}
	return errors.Join(err, unix.Close(to))
}

// openStaged opens a regular file of the stage. Its owner may have taken the right to read it away.
func (w *work) openStaged(n *node, p *pair) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(p.upper, n.name, flags, 0)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	place, err := unix.Openat(p.upper, n.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(place)
	mode := n.entry.New.Mode & 0o7777
	if err := unix.Chmod(proc(place), mode|0o400); err != nil {
		return -1, err
	}
	fd, err = unix.Open(proc(place), flags&^unix.O_NOFOLLOW, 0)
	return fd, errors.Join(err, unix.Chmod(proc(place), mode))
}

// own reports whether a file needs another owner or group than a new one gets.
func own(f *changes.Facts) bool { return int(f.UID) != euid() || int(f.GID) != egid() }

var egid = sync.OnceValue(os.Getegid)

// copyAttributes gives an open file or directory what the stage's has beside content and times. The owner is
// given as far as this user may.
func copyAttributes(from, to int, f *changes.Facts) error {
	if err := copyXattrs(from, to); err != nil {
		return err
	}
	if own(f) {
		_ = unix.Fchown(to, int(f.UID), int(f.GID))
	}
	return unix.Fchmod(to, f.Mode&0o7777)
}

// CopyFacts gives an open file or directory what another one has beside content: the attributes of users,
// access lists, the owner as far as this user may, the mode, and when it was changed last.
func CopyFacts(from, to int) error {
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	_ = unix.Fchown(to, int(st.Uid), int(st.Gid)) // a directory of the user's may give another group
	err := copyAttributes(from, to, &changes.Facts{Mode: st.Mode, UID: st.Uid, GID: st.Gid})
	if err != nil {
		return err
	}
	return setTimes(to, unix.TimespecToNsec(st.Mtim))
}

// copyDirAttributes is copyAttributes for directories that are open with O_PATH, and that their owner can
// list.
func copyDirAttributes(from, to int, f *changes.Facts) error {
	a, err := reader(from)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := reader(to)
	if err != nil {
		return err
	}
	defer b.Close()
	return copyAttributes(int(a.Fd()), int(b.Fd()), f)
}

// setTimes sets the time of the last change of what may be open with O_PATH.
func setTimes(fd int, ns int64) error {
	times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(ns)}
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.EBADF:
		return unix.UtimesNanoAt(unix.AT_FDCWD, proc(fd), times[:], 0)
	}
	return errno
}

// smallFile is up to which size a file is copied by one read and one write.
const smallFile = 128 << 10

// copyData copies the content, with its holes.
func (w *work) copyData(from, to int, st *unix.Stat_t) error {
	switch {
	case st.Size == 0:
		return nil
	case !w.noClone[st.Dev]:
		if unix.IoctlFileClone(to, from) == nil {
			return nil
		}
		w.noClone[st.Dev] = true
	}
	if st.Size <= smallFile && st.Blocks*512 >= st.Size {
		return w.copySmall(from, to, st.Size)
	}
	if err := unix.Ftruncate(to, st.Size); err != nil {
		return err
	}
	for at := int64(0); at < st.Size; {
		start, err := unix.Seek(from, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // a hole up to the end
		}
		if err != nil {
			start = at // it knows no holes
		}
		end, err := unix.Seek(from, start, unix.SEEK_HOLE)
		if err != nil {
			end = st.Size
		}
		if err := w.copyRange(from, to, start, end); err != nil {
			return err
		}
		at = end
	}
	return nil
}

func (w *work) copySmall(from, to int, size int64) error {
	if w.buffer == nil {
		w.buffer = make([]byte, smallFile)
	}
	n, err := unix.Pread(from, w.buffer[:size], 0)
	if err == nil && int64(n) != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return writeAll(to, w.buffer[:n], 0)
}

func writeAll(to int, b []byte, at int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(to, b, at)
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// copyRange copies a part of a file.
func (w *work) copyRange(from, to int, start, end int64) error {
	in, out := start, start
	for in < end {
		n, err := unix.CopyFileRange(from, &in, to, &out, int(min(end-in, 1<<30)), 0)
		if err != nil || n == 0 {
			break
		}
	}
	if w.buffer == nil {
		w.buffer = make([]byte, smallFile)
	}
	for in < end {
		n, err := unix.Pread(from, w.buffer[:min(end-in, smallFile)], in)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = writeAll(to, w.buffer[:n], in)
		}
		if err != nil {
			return err
		}
		in += int64(n)
	}
	return nil
}

// copyXattrs gives a file those attributes that the stage's has, and takes away what it has not. Access
// lists are given where the file system has them.
func copyXattrs(from, to int) error {
	want, err := changes.StagedAttrs(from)
	if err != nil {
		return err
	}
	have, err := changes.Attrs(to)
	if err != nil {
		return err
	}
	for name, value := range want {
		if old, ok := have[name]; ok && old == value {
			continue
		}
		err := unix.Fsetxattr(to, name, []byte(value), 0)
		if err != nil && (strings.HasPrefix(name, "user.") || !errors.Is(err, unix.ENOTSUP)) {
			return err
		}
	}
	for name := range have {
		if _, ok := want[name]; ok {
			continue
		}
		if err := unix.Fremovexattr(to, name); err != nil {
			return err
		}
	}
	return nil
}
