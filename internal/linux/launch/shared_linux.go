// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An EnterError reports that the namespaces of a script with Enter could not be entered, such as
// those of a sandbox that has ended. Nothing of the launch is left when it is returned.
type EnterError struct {
	Call  string // the system call
	Errno syscall.Errno
}

func (e *EnterError) Error() string {
	return "launch: enter a shared sandbox: " + e.Call + ": " + e.Errno.Error()
}

// Unwrap returns the errno.
func (e *EnterError) Unwrap() error { return e.Errno }

// An OrphanError reports a command that runs without a reaper, in a process namespace that was entered and
// has to be ended.
type OrphanError struct{}

func (*OrphanError) Error() string { return "launch: the reaper of a command failed to start" }

// lowerShared lowers a step about namespaces and trees that several scripts use, and reports
// whether it is one.
func (l *lowering) lowerShared(s *Step) bool {
	switch s.Op {
	case OpShare:
		l.share(s)
	case OpPart:
		l.call("unshare", unix.SYS_UNSHARE, num(unix.CLONE_NEWNS))
	case OpTake:
		if s.From < 1 || s.From > len(l.fds.trees) {
			l.fail("take needs entry %d of Files.Trees", s.From)
			break
		}
		l.call("open_tree", unix.SYS_OPEN_TREE, num(l.fds.trees[s.From-1]), l.text(s.Path),
			num(cloneTree|unix.AT_SYMLINK_NOFOLLOW)).store(l.newTree(s.Tree))
	case OpExpectMount:
		l.open(s.Path, ID{}, unix.O_PATH, l.place)
		st := l.examine(l.place, s.ID)
		l.compareBits(unsafe.Pointer(&st.Attributes), unix.STATX_ATTR_MOUNT_ROOT, unix.STATX_ATTR_MOUNT_ROOT)
		l.close(l.place)
	default:
		return false
	}
	return true
}

// share sends a namespace or a tree out.
func (l *lowering) share(s *Step) {
	switch {
	case l.fds.share == 0:
		l.fail("share needs Files.Share")
	case l.inCommand:
		l.fail("share behind start-command: the command has no namespaces to share")
	case (s.Path == "") == (s.Tree == 0):
		l.fail("share takes a path or a tree")
	}
	if l.err != nil {
		return
	}
	file, msg := l.message()
	if s.Tree != 0 {
		// a copy, for one that is attached later is of no use to other namespaces
		l.call("open_tree", unix.SYS_OPEN_TREE, held(l.tree(s.Tree)), l.text(""),
			num(cloneTree)).store(file)
	} else {
		// The last part of such a path is a magic link.
		l.call("openat", unix.SYS_OPENAT, num(unix.AT_FDCWD), l.text(s.Path),
			num(unix.O_RDONLY|unix.O_CLOEXEC), num(0)).store(file)
	}
	l.call("sendmsg", unix.SYS_SENDMSG, num(l.fds.share), msg, num(unix.MSG_NOSIGNAL)).expect(1)
	l.close(file)
}
