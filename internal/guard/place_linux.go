// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// placeholderMode lets nobody write, so that an ordinary user's mistake meets an
// error too. The umask may take more away.
const placeholderMode = 0o555

// A look is what stood at a name, links not followed.
type look struct {
	ident
	mode uint16 // with the type, as in stat(2)
	uid  uint32
	size int64 // of a file in bytes; zero for everything else
}

// lookAt looks at name in the folder dir. A name that does not exist is ENOENT.
// An empty name is the folder itself.
func lookAt(dir int, name string) (look, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var stx unix.Statx_t
	for {
		err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stx)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return look{}, err
		}
		break
	}
	l := look{mode: stx.Mode, uid: stx.Uid}
	l.dev, l.ino = unix.Mkdev(stx.Dev_major, stx.Dev_minor), stx.Ino
	if l.kind() == KindFile {
		l.size = int64(stx.Size)
	}
	if stx.Mask&unix.STATX_BTIME != 0 {
		l.born = stx.Btime.Sec*1e9 + int64(stx.Btime.Nsec)
	}
	return l, nil
}

func (l look) isFolder() bool { return l.mode&unix.S_IFMT == unix.S_IFDIR }

// closed reports whether l is a folder as mkdir makes placeholders: without a
// right to write for anybody, whatever the umask was.
func (l look) closed() bool {
	return l.isFolder() && l.mode&0o777&^placeholderMode == 0
}

// kind returns what l is in a word.
func (l look) kind() Kind {
	switch l.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return KindFolder
	case unix.S_IFLNK:
		return KindLink
	case unix.S_IFIFO:
		return KindPipe
	case unix.S_IFSOCK:
		return KindSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return KindDevice
	}
	return KindFile
}

// openFolder opens the folder path as a place (O_PATH), with no symbolic link on
// the way.
func openFolder(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// An old kernel, or a filter of a container that does not know the call.
			return walkFolder(path)
		default:
			return fd, err
		}
	}
}

// walkFolder is openFolder one name at a time.
func walkFolder(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, flags, 0)
		if errors.Is(err, unix.ENOTDIR) {
			if l, e := lookAt(fd, name); e == nil && l.kind() == KindLink {
				err = unix.ELOOP
			}
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// closedAbove reports whether the way to the folder path is barred by a folder
// that belongs to the user uid, who can open it.
func closedAbove(path string, uid uint32) bool {
	for p := filepath.Dir(path); ; p = filepath.Dir(p) {
		fd, err := openFolder(p)
		if err == nil {
			// The first folder that can be reached: the next one on the way is in it,
			// and it is p itself that cannot be searched.
			l, err := lookAt(fd, "")
			unix.Close(fd)
			return err != nil || l.uid == uid
		}
		if !errors.Is(err, unix.EACCES) || p == "/" {
			return true
		}
	}
}

// ownFolder reports whether the folder fd belongs to this user, who can then
// give himself every right to it. What cannot be looked at may be.
func ownFolder(fd int) bool {
	l, err := lookAt(fd, "")
	return err != nil || l.uid == uint32(unix.Geteuid())
}

// fdPath names an open file for calls that take a path.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// removeFolder removes name in dir if it is an empty folder that the entry e
// made: with the recorded identity or, where the writer was killed before it
// could record one, ours and closed. gone is true if nothing stands there now.
// Otherwise err says why the folder is not ours (errNotOurs) or what failed.
func (j *journal) removeFolder(dir int, name string, e *entry) (gone bool, err error) {
	l, err := lookAt(dir, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return true, nil
	case err != nil:
		return false, err
	case !e.owns(l):
		return false, errNotOurs
	}
	if kept, err := j.keepSpare(dir, name, l); kept || err != nil {
		return kept, err
	}
	switch err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); {
	case err == nil, errors.Is(err, unix.ENOENT):
		return true, nil
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR):
		return false, errNotOurs
	default:
		if l.uid != uint32(unix.Geteuid()) {
			return false, errNotOurs // nor would it ever go
		}
		return false, err
	}
}

// errNotOurs is what stands at the path of an entry and was not made for it, or
// was filled since.
var errNotOurs = errors.New("what stands there is not an empty folder of ours")

// owns reports whether l can be the folder that e made.
func (e *entry) owns(l look) bool {
	if e.making {
		return l.closed() && l.uid == uint32(unix.Geteuid())
	}
	return e.made && l.isFolder() && e.folder.same(l.ident)
}
