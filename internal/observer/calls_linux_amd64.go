// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import "golang.org/x/sys/unix"

const sysRenameat = unix.SYS_RENAMEAT

// legacy reads the calls that only this machine has.
func legacy(n *notification) (call, bool) {
	a := &n.args
	switch n.nr {
	case unix.SYS_OPEN:
		return opening(atCwd, a[0], a[1]), true
	case unix.SYS_CREAT:
		return opening(atCwd, a[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC), true
	case unix.SYS_UNLINK:
		return call{kind: kindUnlink, dir: atCwd, path: a[0]}, true
	case unix.SYS_RMDIR:
		return call{kind: kindRmdir, dir: atCwd, path: a[0]}, true
	case unix.SYS_RENAME:
		return call{kind: kindRename, dir: atCwd, path: a[0], dir2: atCwd, path2: a[1]}, true
	case unix.SYS_MKDIR, unix.SYS_MKNOD:
		return call{kind: kindMake, dir: atCwd, path: a[0]}, true
	case unix.SYS_SYMLINK:
		return call{kind: kindMake, dir: atCwd, path: a[1]}, true
	case unix.SYS_LINK:
		return call{kind: kindLink, dir: atCwd, path: a[0], dir2: atCwd, path2: a[1]}, true
	case unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_UTIME, unix.SYS_UTIMES:
		return call{kind: kindChange, dir: atCwd, path: a[0], follow: true}, true
	case unix.SYS_LCHOWN:
		return call{kind: kindChange, dir: atCwd, path: a[0]}, true
	case unix.SYS_FUTIMESAT:
		if a[1] == 0 {
			return call{kind: kindTouch, dir: int32(a[0])}, true
		}
		return call{kind: kindChange, dir: int32(a[0]), path: a[1], follow: true}, true
	}
	return call{}, false
}
