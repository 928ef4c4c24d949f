// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowerMount lowers a step about mounts and what lies in them, and reports whether it is
// one.
func (l *lowering) lowerMount(s *Step) bool {
	switch s.Op {
	case OpOpen:
		l.open(s.Path, s.ID, unix.O_PATH, l.newTree(s.Tree))
	case OpClone:
		l.clone(s)
	case OpSetTree:
		l.setAttr(held(l.tree(s.Tree)), l.text(""), s, unix.AT_EMPTY_PATH)
	case OpSetMount:
		l.setAttr(num(unix.AT_FDCWD), l.text(s.Path), s, 0)
	case OpAttach:
		l.attach(s)
	case OpPin:
		l.pinMount(s)
	case OpTmpfs:
		l.filesystem("tmpfs", s, AttrNoSuid|AttrNoDev, nil, [][2]string{{"mode", fmt.Sprintf("%o", s.Mode)}})
	case OpProc:
		// Processes that one may not trace are hidden. Process 1 is one of them:
		// until it has executed the reaper, its command line is the caller's. The
		// older form, 2, shows everything to group 0. (proc(5); Linux 5.8)
		options := [][2]string{{"hidepid", "ptraceable"}}
		if s.Value != 0 {
			options = nil
		}
		l.filesystem("proc", s, AttrNoSuid|AttrNoDev|AttrNoExec, nil, options)
	case OpDevpts:
		// Device nodes on it must open, so no nodev.
		l.filesystem("devpts", s, AttrNoSuid|AttrNoExec, nil,
			[][2]string{{"ptmxmode", "0666"}, {"mode", "0620"}})
	case OpOverlay:
		l.overlay(s)
	case OpMkdir:
		l.call("mkdirat", unix.SYS_MKDIRAT, num(unix.AT_FDCWD), l.text(s.Path), num(s.Mode))
	case OpMkfile:
		l.call("mknodat", unix.SYS_MKNODAT, l.below(s), l.text(s.Path), num(unix.S_IFREG|s.Mode), num(0))
	case OpChmod:
		l.call("fchmodat", unix.SYS_FCHMODAT, num(unix.AT_FDCWD), l.text(s.Path), num(s.Mode))
	case OpSymlink:
		l.call("symlinkat", unix.SYS_SYMLINKAT, l.text(s.Dest), num(unix.AT_FDCWD), l.text(s.Path))
	case OpPivot:
		l.call("chdir", unix.SYS_CHDIR, l.text(s.Path))
		l.call("pivot_root", unix.SYS_PIVOT_ROOT, l.text("."), l.text("."))
		l.call("umount2", unix.SYS_UMOUNT2, l.text("."), num(unix.MNT_DETACH))
		l.call("chdir", unix.SYS_CHDIR, l.text("/"))
	case OpRefuseWrite:
		// The list has no branches, so the result is compared: an open that succeeds
		// returns a descriptor, which is never the number that the step wants.
		c := l.call("openat", unix.SYS_OPENAT, num(unix.AT_FDCWD), l.text(s.Path),
			num(unix.O_WRONLY|unix.O_CLOEXEC), num(0))
		c.expect(^uintptr(0))
		c.flags |= flagIgnore
	default:
		return false
	}
	return true
}

// below is the directory in which Path is.
func (l *lowering) below(s *Step) arg {
	if s.Tree != 0 {
		return held(l.tree(s.Tree))
	}
	return num(unix.AT_FDCWD)
}

// tree is a tree or place that an earlier step made.
func (l *lowering) tree(n int) slot {
	s, ok := l.trees[n]
	if !ok {
		l.fail("tree %d was not made by an earlier step", n)
	}
	return s
}

func (l *lowering) newTree(n int) slot {
	if n <= 0 {
		l.fail("the step needs a tree number")
	}
	if _, ok := l.trees[n]; ok {
		l.fail("tree %d is made twice", n)
	}
	s := l.newSlot()
	l.trees[n] = s
	l.files = append(l.files, s)
	return s
}

const (
	cloneTree  = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH
	moveByFile = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
)

func (l *lowering) clone(s *Step) {
	into, flags := l.newTree(s.Tree), cloneTree
	if s.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	switch {
	case s.Path == "":
		l.call("open_tree", unix.SYS_OPEN_TREE, held(l.tree(s.From)), l.text(""), num(flags)).store(into)
	case s.Own:
		l.call("open_tree", unix.SYS_OPEN_TREE, num(unix.AT_FDCWD), l.text(s.Path),
			num(flags|unix.AT_SYMLINK_NOFOLLOW)).store(into)
	default:
		place := l.newPlace()
		l.open(s.Path, s.ID, unix.O_PATH, place)
		l.call("open_tree", unix.SYS_OPEN_TREE, held(place), l.text(""), num(flags)).store(into)
		l.leave(place)
	}
}

func (l *lowering) setAttr(dir, path arg, s *Step, flags int) {
	attr := &unix.MountAttr{Attr_set: s.Set, Attr_clr: s.Clear}
	if s.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	if s.Private {
		attr.Propagation = unix.MS_PRIVATE
	}
	l.call("mount_setattr", unix.SYS_MOUNT_SETATTR, dir, path, num(flags), pin(l, attr),
		num(unsafe.Sizeof(*attr)))
}

func (l *lowering) attach(s *Step) {
	t := l.tree(s.Tree)
	delete(l.trees, s.Tree)
	if s.Own {
		l.call("move_mount", unix.SYS_MOVE_MOUNT, held(t), l.text(""), num(unix.AT_FDCWD), l.text(s.Path),
			num(unix.MOVE_MOUNT_F_EMPTY_PATH))
		l.leave(t)
		return
	}
	place := l.newPlace()
	l.open(s.Path, s.ID, unix.O_PATH, place)
	l.moveTo(t, place)
}

// moveTo attaches a tree to an open place, and needs both no more.
func (l *lowering) moveTo(t, place slot) {
	l.call("move_mount", unix.SYS_MOVE_MOUNT, held(t), l.text(""), held(place), l.text(""), num(moveByFile))
	l.leave(place)
	l.leave(t)
}

// pinMount copies the mount of a directory and puts the copy over the directory, both by
// the one descriptor that was compared.
func (l *lowering) pinMount(s *Step) {
	place, copied := l.newPlace(), l.copied
	if l.alone {
		copied = l.newSlot()
	}
	l.open(s.Path, s.ID, unix.O_PATH|unix.O_DIRECTORY, place)
	l.call("open_tree", unix.SYS_OPEN_TREE, held(place), l.text(""),
		num(cloneTree|unix.AT_RECURSIVE)).store(copied)
	l.moveTo(copied, place)
}

// filesystem makes a file system of a kind and mounts it detached.
func (l *lowering) filesystem(kind string, s *Step, attrs uint64, flags []string, options [][2]string) {
	into := l.newTree(s.Tree)
	l.call("fsopen", unix.SYS_FSOPEN, l.text(kind), num(unix.FSOPEN_CLOEXEC)).store(l.place)
	for _, f := range flags {
		l.call("fsconfig", unix.SYS_FSCONFIG, held(l.place), num(unix.FSCONFIG_SET_FLAG), l.text(f),
			num(0), num(0))
	}
	for _, o := range options {
		l.call("fsconfig", unix.SYS_FSCONFIG, held(l.place), num(unix.FSCONFIG_SET_STRING), l.text(o[0]),
			l.text(o[1]), num(0))
	}
	l.call("fsconfig", unix.SYS_FSCONFIG, held(l.place), num(unix.FSCONFIG_CMD_CREATE), num(0),
		num(0), num(0))
	l.call("fsmount", unix.SYS_FSMOUNT, held(l.place), num(unix.FSMOUNT_CLOEXEC),
		num(attrs|s.Set)).store(into)
	l.close(l.place)
}

// layerCount is how many directories an overlay is made of at most: those of a step's
// Layers, and the one that it shows.
const layerCount = MaxLower + 3

// overlay makes an overlay. The kernel takes its directories as text only (from
// Linux 6.13 on as descriptors, too), splits that text at colons and commas, and
// would follow symbolic links. So each directory is opened and compared as every
// other place is, gets a number that is known beforehand, and is named by the
// link that /proc keeps for the number. Such a link leads to the directory that was
// opened, wherever its name leads by now, and holds no character that means
// anything to the kernel.
//
// Without userxattr only the initial namespace could mark what was removed.
// Without volatile the end of every overlay would write out all that the whole
// file system of the upper directory has not written yet, which takes longer than
// most commands. Index and xino keep what the upper directory remembers of the lower one
// small enough for the lower one to change between runs (overlayfs.rst,
// "Changes to underlying filesystems").
func (l *lowering) overlay(s *Step) {
	if s.Layers == nil || l.fds.numbers[0] == 0 {
		l.fail("an overlay needs its layers")
		return
	}
	options := [][2]string{{"index", "off"}, {"xino", "off"}}
	used := 0
	name := func(layer Layer) string {
		number := l.fds.numbers[used]
		used++
		l.open(layer.Path, layer.ID, unix.O_PATH|unix.O_DIRECTORY, l.place)
		l.call("dup3", unix.SYS_DUP3, held(l.place), num(number), num(unix.O_CLOEXEC))
		l.close(l.place)
		return "/proc/self/fd/" + strconv.Itoa(number)
	}
	lower := name(Layer{s.Path, s.ID})
	for _, layer := range slices.Backward(s.Layers.Lower[:]) {
		if layer != (Layer{}) {
			lower = name(layer) + ":" + lower
		}
	}
	options = append(options, [2]string{"lowerdir", lower}, [2]string{"upperdir", name(s.Layers.Upper)},
		[2]string{"workdir", name(s.Layers.Work)})
	l.filesystem("overlay", s, 0, []string{"userxattr", "volatile"}, options)
}
