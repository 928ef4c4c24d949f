// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"

	"golang.org/x/sys/unix"
)

// An ID tells a directory from all others, also after it was removed and made again, or another file
// system was mounted. Zero members are not compared.
type ID struct {
	Ino  uint64   `json:"ino"`
	Born int64    `json:"born,omitempty"` // nanoseconds since 1970; 0 where the file system does not know
	FS   [2]int32 `json:"fs"`             // as statfs(2) calls the file system
}

// Identify returns the ID of a directory. No symbolic link is followed.
func Identify(path string) (ID, error) {
	fd, err := openTop(path)
	if err != nil {
		return ID{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return identify(fd)
}

func identify(fd int) (ID, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return ID{}, err
	}
	id := ID{Ino: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return ID{}, err
	}
	id.FS = fs.Fsid.Val
	return id, nil
}

// Is reports whether a directory is the one that was recorded.
func (id ID) Is(recorded ID) bool {
	return (recorded.Ino == 0 || id.Ino == recorded.Ino) &&
		(recorded.Born == 0 || id.Born == 0 || id.Born == recorded.Born) &&
		(recorded.FS == [2]int32{} || id.FS == recorded.FS)
}

const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openTop opens an absolute directory with no symbolic link on the way to it.
func openTop(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path,
		&unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if !filtered(err) {
		return fd, err
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return -1, unix.ELOOP
	}
	return unix.Open(path, dirFlags, 0) // its ID is compared
}

// openDir opens a directory in another one, neither by a link nor through a mount.
func openDir(at int, name string) (int, error) {
	const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV
	fd, err := unix.Openat2(at, name, &unix.OpenHow{Flags: dirFlags, Resolve: resolve})
	if !filtered(err) {
		return fd, err
	}
	if fd, err = unix.Openat(at, name, dirFlags, 0); err != nil {
		return -1, err
	}
	if mountOf(fd) != mountOf(at) {
		unix.Close(fd)
		return -1, unix.EXDEV
	}
	return fd, nil
}

// mountOf tells one mount from another.
func mountOf(fd int) [3]uint64 {
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st) != nil {
		return [3]uint64{}
	}
	return [3]uint64{st.Mnt_id, uint64(st.Dev_major), uint64(st.Dev_minor)}
}

// filtered reports whether openat2(2) is not available: the kernel is old, or a filter of system calls
// denies it.
func filtered(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

// proc is the name by which an open file is reached where a call takes no descriptor of its kind.
func proc(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// reader opens an O_PATH directory for reading.
func reader(fd int) (*os.File, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), proc(own)), nil
}

// open opens the roots, and compares them with those that were recorded.
func (s *Stage) open(ctx context.Context) (*work, error) {
	w := &work{ctx: ctx, stage: s, temp: tempName(s.ID), links: map[inode]*node{}, noClone: map[uint64]bool{},
		frees: make(chan struct{}, maxFrees)}
	if err := w.alone(); err != nil {
		w.close()
		return nil, err
	}
	for i := range s.Roots {
		l := &layer{Root: &s.Roots[i], host: -1, upper: -1}
		w.layers = append(w.layers, l)
		var err error
		if l.host, err = openTop(l.Root.Root); err == nil {
			err = l.ID.check(l.host)
		}
		if err != nil {
			w.close()
			return nil, moved(s.ID, l.Root.Root, err)
		}
		if l.upper, err = openTop(l.Upper); err != nil {
			w.close()
			return nil, &executor.StageError{ID: s.ID, Why: "cannot open the stage's directory " +
				text.Word(l.Upper) + ": " + err.Error(), Fix: "discard the stage", Err: err}
		}
	}
	return w, nil
}

// check compares an open directory with the one that was recorded.
func (id ID) check(fd int) error {
	now, err := identify(fd)
	if err == nil && !now.Is(id) {
		err = errOther
	}
	return err
}

// CheckRoot returns why a directory is not the root that a stage has recorded, with the fix: an error that matches
// ErrMoved.
func CheckRoot(stage, root string, recorded ID) error {
	fd, err := openTop(root)
	if err == nil {
		err = recorded.check(fd)
		unix.Close(fd)
	}
	if err != nil {
		return moved(stage, root, err)
	}
	return nil
}

// ErrMoved says that a root of a stage is not there, or is another directory now.
var ErrMoved = errors.New("the stage was made for another directory")

var errOther = errors.New("another directory or file system has the name now")

// moved is the error for a root that is not the one that was recorded.
func moved(stage, root string, err error) error {
	why := fmt.Sprintf("%s is not the directory that the stage was made for", text.Word(root))
	switch {
	case errors.Is(err, unix.ENOENT):
		why += ": it was moved or deleted"
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		why += ": there is something else on the way to it"
	default:
		why += ": " + err.Error()
	}
	return &executor.StageError{ID: stage, Why: why, Err: errors.Join(ErrMoved, err),
		Fix: "put the directory back, or discard the stage (sallyport discard " + stage + ")"}
}

func (w *work) close() {
	for _, l := range w.layers {
		for _, fd := range []int{l.host, l.upper} {
			if fd >= 0 {
				unix.Close(fd) // nothing was written
			}
		}
	}
	if w.lock != nil {
		w.lock.Close() // which unlocks it
	}
	_ = w.journal.close() // what it says was done is done
}
