// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// KeepClosed has the standard streams that were closed when this process began fail as a closed one does,
// for this process and for what it starts. The Go runtime has put the null device in their place, which takes
// everything without an error. It is called before anything else is opened.
//
// Nothing tells that device from one that was given on purpose, which many programs do (subprocess.DEVNULL of
// Python). So a stream counts as closed only where this process was started by one that has it closed itself,
// or by a shell or a launcher that has something else there: these open the null device for one direction.
func KeepClosed() {
	for fd := range 3 {
		if !wasClosed(fd) {
			continue
		}
		mode := unix.O_RDONLY // a write is EBADF
		if fd == 0 {
			mode = unix.O_WRONLY
		}
		null, err := unix.Open(os.DevNull, mode|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it stays what it is
		}
		_ = unix.Dup3(null, fd, 0)
		_ = unix.Close(null)
	}
}

// backgrounds are shells that may give a command in the background the null device, open for both
// directions, as its input.
var backgrounds = []string{"zsh", "csh", "tcsh"}

// isNull reports whether a file is the null device.
func isNull(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3)
}

// wasClosed reports whether the runtime has opened a standard stream.
func wasClosed(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || !isNull(&st) {
		return false
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != fmt.Sprint(os.Getpid()) {
		return false // it shows other processes than those that this one knows
	}
	parent := fmt.Sprintf("/proc/%d/", os.Getppid())
	name, err := os.Readlink(parent + "exe")
	if err != nil {
		return false
	}
	switch err := unix.Stat(parent+"fd/"+fmt.Sprint(fd), &st); {
	case err == unix.ENOENT:
		return true
	case err != nil || isNull(&st):
		return false // which we have from it
	}
	name = path.Base(name)
	if fd == 0 && slices.Contains(backgrounds, name) {
		return false
	}
	_, launches := programs.Launching(name)
	return launches || programs.IsShell(name) || name == "busybox" || name == "toybox"
}
