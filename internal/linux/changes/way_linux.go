// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// maxOpen is how many directories of a way are open at once: commands can make trees that are deeper than the
// limit on open files.
const maxOpen = 64

// errChanged says that a tree was changed while it was read: another look may succeed.
var errChanged = errors.New("it was changed while it was read; try again")

// A way is the directories from a root to one below it, opened one by one without following a link. Paths in
// it may be longer than the system takes.
type way struct {
	root string
	dirs []opened
	// lifts says that directories and files without permissions are given some while they are read. It is for
	// the upper, which is the user's own.
	lifts bool
}

// An opened directory has the descriptor -1 while it is too far up the way.
type opened struct {
	name     string
	fd       int
	dev, ino uint64
	lifted   bool // its mode is to be restored
	mode     uint32
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// openWay opens a root. No part of its path may be a link: the root is that of a policy, where none was.
func openWay(root string, lifts bool) (*way, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, root,
			&unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	w := &way{root: root, lifts: lifts}
	if err := w.push(".", fd, nil); err != nil {
		return nil, err
	}
	return w, nil
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// fd is the directory at the end of the way.
func (w *way) fd() int { return w.dirs[len(w.dirs)-1].fd }

// push adds an open directory; lifted has the mode that it had before, if it is not nil.
func (w *way) push(name string, fd int, lifted *uint32) error {
	d := opened{name: name, fd: fd, lifted: lifted != nil}
	if lifted != nil {
		d.mode = *lifted
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return w.fail("stat", name, err)
	}
	d.dev, d.ino = st.Dev, st.Ino
	w.dirs = append(w.dirs, d)
	if far := len(w.dirs) - 1 - maxOpen; far >= 0 && w.dirs[far].fd >= 0 {
		unix.Close(w.dirs[far].fd)
		w.dirs[far].fd = -1
	}
	return nil
}

// enter goes on to a directory in the one at the end. The error matches errChanged if it is none by now.
func (w *way) enter(name string) error {
	var lifted *uint32
	if w.lifts {
		f, err := lstat(w.fd(), name)
		if err != nil {
			return w.fail("stat", name, err)
		}
		if lacks := f.Mode&0o500 != 0o500 && os.Geteuid() != 0; lacks && f.IsDir() {
			if err := safefile.Chmod(w.fd(), name, f.Mode&permMask|0o500); err != nil {
				return w.fail("chmod", name, err)
			}
			mode := f.Mode & permMask
			lifted = &mode
		}
	}
	fd, err := retry(func() (int, error) { return unix.Openat(w.fd(), name, dirFlags, 0) })
	if errors.Is(err, unix.EACCES) && !w.lifts { // it cannot be listed, but what is in it can be looked at
		const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err = retry(func() (int, error) { return unix.Openat(w.fd(), name, flags, 0) })
	}
	if err == nil {
		if err = w.push(name, fd, lifted); err == nil {
			return nil
		}
	}
	if lifted != nil {
		err = errors.Join(err, safefile.Chmod(w.fd(), name, *lifted))
	}
	return w.fail("open", name, err)
}

// leave goes back to the directory above.
func (w *way) leave() error {
	last := w.dirs[len(w.dirs)-1]
	w.dirs = w.dirs[:len(w.dirs)-1]
	var err error
	if n := len(w.dirs); n > 0 && w.dirs[n-1].fd < 0 {
		err = w.dirs[n-1].reopen(last.fd)
	}
	if last.lifted && last.fd >= 0 {
		err = errors.Join(err, unix.Fchmod(last.fd, last.mode))
	}
	if last.fd >= 0 {
		unix.Close(last.fd)
	}
	if err != nil {
		return w.fail("open", "..", err)
	}
	return nil
}

// reopen opens the directory above below, if it is the same one still.
func (d *opened) reopen(below int) error {
	if below < 0 {
		return errChanged
	}
	fd, err := retry(func() (int, error) { return unix.Openat(below, "..", dirFlags, 0) })
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Dev != d.dev || st.Ino != d.ino) {
		err = errChanged
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	d.fd = fd
	return nil
}

// goTo makes dir, relative to the root, the end of the way.
func (w *way) goTo(dir string) error {
	var names []string
	if dir != "." {
		names = strings.Split(dir, "/")
	}
	common := 0
	for common < min(len(names), len(w.dirs)-1) && names[common] == w.dirs[common+1].name {
		common++
	}
	for len(w.dirs)-1 > common {
		if err := w.leave(); err != nil {
			return err
		}
	}
	for _, name := range names[common:] {
		if err := w.enter(name); err != nil {
			return err
		}
	}
	return nil
}

// close leaves all directories.
func (w *way) close() error {
	var err error
	for len(w.dirs) > 0 {
		err = errors.Join(err, w.leave())
	}
	return err
}

// fail says where it failed. What is gone or something else by now is errChanged.
func (w *way) fail(op, name string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = errChanged
	}
	var done *fs.PathError
	if errors.As(err, &done) {
		return err
	}
	path := w.root
	for _, d := range w.dirs[min(1, len(w.dirs)):] {
		path += "/" + d.name
	}
	return &fs.PathError{Op: op, Path: path + "/" + name, Err: err}
}

// names lists the directory at the end of the way.
func (w *way) names() ([]string, error) {
	var names []string
	buf := make([]byte, 32<<10)
	if _, err := unix.Seek(w.fd(), 0, 0); err != nil { // EBADF: it could be opened as a place only
		return nil, w.fail("list", ".", unix.EACCES)
	}
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(w.fd(), buf) })
		if errors.Is(err, unix.ENOENT) { // it was removed
			return names, nil
		}
		if err != nil {
			return nil, w.fail("list", ".", err)
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// lstat returns the facts of a name in the directory at the end of the way; zero for none.
func (w *way) lstat(name string) (Facts, error) {
	f, err := lstat(w.fd(), name)
	if errors.Is(err, unix.ENOENT) {
		return Facts{}, nil
	}
	if err != nil {
		return Facts{}, w.fail("stat", name, err)
	}
	return f, nil
}

func lstat(dir int, name string) (Facts, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT); err != nil {
		return Facts{}, err
	}
	return factsOf(&st), nil
}

func factsOf(st *unix.Stat_t) Facts {
	return Facts{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Dev: st.Dev, Ino: st.Ino, Rdev: st.Rdev,
		Nlink: uint64(st.Nlink), //nolint:unconvert // it is smaller on some systems
		Size:  st.Size, Blocks: st.Blocks, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}
}

// born returns when a name in the directory was made, in nanoseconds since 1970; 0 where the file system does
// not tell.
func (w *way) born(name string) (int64, error) {
	var st unix.Statx_t
	err := unix.Statx(w.fd(), name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BTIME, &st)
	if err != nil {
		return 0, w.fail("stat", name, err)
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return 0, nil
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec), nil
}

// open opens a regular file in the directory at the end of the way, which lstat has described. It waits for
// nothing.
func (w *way) open(name string, f *Facts) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	open := func() (int, error) { return unix.Openat(w.fd(), name, flags, 0) }
	fd, err := retry(open)
	if errors.Is(err, unix.EACCES) && w.lifts && f.Mode&0o400 == 0 {
		if err = safefile.Chmod(w.fd(), name, f.Mode&permMask|0o400); err == nil {
			fd, err = retry(open)
			err = errors.Join(err, safefile.Chmod(w.fd(), name, f.Mode&permMask))
		}
	}
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = safefile.ErrLeased
		}
		return -1, w.fail("open", name, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Dev != f.Dev || st.Ino != f.Ino ||
		st.Mode&unix.S_IFMT != unix.S_IFREG) {
		err = errChanged
	}
	if err != nil {
		unix.Close(fd)
		return -1, w.fail("open", name, err)
	}
	return fd, nil
}

// link returns where a symbolic link in the directory leads.
func (w *way) link(name string, f *Facts) (string, error) {
	buf := make([]byte, max(f.Size, 0)+1)
	for {
		n, err := retry(func() (int, error) { return unix.Readlinkat(w.fd(), name, buf) })
		if errors.Is(err, unix.EINVAL) { // it is no link by now
			err = errChanged
		}
		if err != nil {
			return "", w.fail("readlink", name, err)
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
		buf = make([]byte, 2*len(buf))
	}
}

// Attrs returns the extended attributes of an open file or directory that belong to its user: those of the
// user but for the overlay's own, and access lists. Nil is none.
func Attrs(fd int) (map[string]string, error) {
	list := make([]byte, 1<<10)
	n, err := retry(func() (int, error) { return unix.Flistxattr(fd, list) })
	if errors.Is(err, unix.ERANGE) {
		list = make([]byte, 64<<10) // the most that there can be
		n, err = retry(func() (int, error) { return unix.Flistxattr(fd, list) })
	}
	if errors.Is(err, unix.ENOTSUP) || err == nil && n == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out map[string]string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		kept := strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
		if !kept || OverlayAttr(name) {
			continue
		}
		value, err := attr(fd, name)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

// StagedAttrs is [Attrs] of an open file of a stage. Its owner may have taken the right to read it away,
// which attributes of users need also when it is open: it is given for a moment.
func StagedAttrs(fd int) (map[string]string, error) {
	out, err := Attrs(fd)
	var st unix.Stat_t
	if !errors.Is(err, unix.EACCES) || unix.Fstat(fd, &st) != nil || st.Mode&0o400 != 0 {
		return out, err
	}
	if err := unix.Fchmod(fd, st.Mode&permMask|0o400); err != nil {
		return nil, err
	}
	out, err = Attrs(fd)
	return out, errors.Join(err, unix.Fchmod(fd, st.Mode&permMask))
}

func attr(fd int, name string) (string, error) {
	value := make([]byte, 64<<10) // the most that there can be
	n, err := retry(func() (int, error) { return unix.Fgetxattr(fd, name, value) })
	if errors.Is(err, unix.ENODATA) { // it was removed
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(value[:n]), nil
}

// overlayAttrs begin the names of what an overlay with userxattr notes on files.
const overlayAttrs = "user.overlay."

// OverlayAttr reports whether an extended attribute is a note of overlays.
func OverlayAttr(name string) bool { return strings.HasPrefix(name, overlayAttrs) }

// IsOpaque reports whether an open directory of an upper hides the host's.
func IsOpaque(fd int) bool {
	var value [2]byte
	n, err := unix.Fgetxattr(fd, overlayAttrs+"opaque", value[:])
	return err == nil && string(value[:n]) == "y"
}

// IsWhiteout reports whether a file of an upper says that the host's is deleted.
func IsWhiteout(st *unix.Stat_t) bool {
	f := factsOf(st)
	return f.isWhiteout()
}
