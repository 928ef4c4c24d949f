// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// layerCount is how many folders an overlay is made of.
const layerCount = 3

// firstKept is the number under which the reaper keeps [Files.Hold].
const firstKept = 3

// keepHold closes everything that the reaper has no use for.
func (l *lowering) keepHold() {
	from := uintptr(firstKept)
	if l.fds.hold > 0 {
		l.call("dup3", unix.SYS_DUP3, fd(l.fds.hold), num(firstKept), zero())
		from++
	}
	l.call("close_range", unix.SYS_CLOSE_RANGE, num(from), num(uintptr(^uint32(0))), zero())
}

// lowerOverlay makes an overlay. The kernel takes its folders as text only (from
// Linux 6.13 on as descriptors, too), splits that text at colons and commas, and
// would follow symbolic links. So each folder is opened and compared as every
// other place is, gets a number that is known beforehand, and is named by the
// link that /proc keeps for the number. Such a link leads to the folder that was
// opened, wherever its name leads by now, and holds no character that means
// anything to the kernel.
func (l *lowering) lowerOverlay(s *Step) error {
	if s.Layers == nil {
		return &ScriptError{Step: l.step, Reason: "an overlay needs its layers"}
	}
	t, err := l.newTree(s.Tree)
	if err != nil {
		return err
	}
	layers := [layerCount]struct {
		option string
		Layer
	}{{"lowerdir", Layer{s.Path, s.ID}}, {"upperdir", s.Layers.Upper}, {"workdir", s.Layers.Work}}
	// Without userxattr only the initial namespace could mark what was removed.
	// Without volatile the end of every overlay would write out all that the whole
	// file system of the upper folder has not written yet, which takes longer than
	// most commands. The other two keep what the upper folder remembers of the lower one
	// small enough for the lower one to change between runs (overlayfs.rst,
	// "Changes to underlying filesystems").
	options := append(make([][2]string, 0, 2+layerCount), [2]string{"index", "off"}, [2]string{"xino", "off"})
	for i, layer := range layers {
		number := l.fds.numbers[i]
		if number <= 2 {
			return &ScriptError{Step: l.step, Reason: "no descriptor was set aside for an overlay"}
		}
		if err := l.open(layer.Path, layer.ID, unix.O_PATH|unix.O_DIRECTORY, l.place); err != nil {
			return err
		}
		l.call("dup3", unix.SYS_DUP3, l.place.arg(), fd(number), num(unix.O_CLOEXEC))
		l.close(l.place)
		options = append(options, [2]string{layer.option, "/proc/self/fd/" + strconv.Itoa(number)})
	}
	kind, err := l.cstring("overlay")
	if err != nil {
		return err
	}
	l.call("fsopen", unix.SYS_FSOPEN, kind, num(unix.FSOPEN_CLOEXEC)).store(l.place)
	for _, word := range []string{"userxattr", "volatile"} {
		key, err := l.cstring(word)
		if err != nil {
			return err
		}
		l.call("fsconfig", unix.SYS_FSCONFIG, l.place.arg(), num(unix.FSCONFIG_SET_FLAG), key, zero(), zero())
	}
	for _, o := range options {
		if err := l.option(o[0], o[1]); err != nil {
			return err
		}
	}
	l.call("fsconfig", unix.SYS_FSCONFIG, l.place.arg(), num(unix.FSCONFIG_CMD_CREATE), zero(), zero(), zero())
	l.call("fsmount", unix.SYS_FSMOUNT, l.place.arg(), num(unix.FSMOUNT_CLOEXEC), flag(s.Set)).store(t)
	l.close(l.place)
	return nil
}

// option sets one option of the file system that is being made at l.place.
func (l *lowering) option(key, value string) error {
	k, err := l.cstring(key)
	if err != nil {
		return err
	}
	v, err := l.cstring(value)
	if err != nil {
		return err
	}
	l.call("fsconfig", unix.SYS_FSCONFIG, l.place.arg(), num(unix.FSCONFIG_SET_STRING), k, v, zero())
	return nil
}
