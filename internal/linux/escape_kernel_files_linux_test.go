// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// kernelFileAttacks change what the kernel shows of itself to all. Those that would succeed give a file the
// mode, owner or time that it has, or belong to the command's own network.
func kernelFileAttacks() map[string]attack {
	const name = "/proc/version"
	now := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	calls := map[string]func() error{
		"kernel-chmod": func() error { return unix.Chmod(name, 0o444) },
		"kernel-chmod-2": func() error {
			return unix.Fchmodat(unix.AT_FDCWD, name, 0o444, unix.AT_SYMLINK_NOFOLLOW)
		},
		"kernel-fchmod": func() error {
			return withKernelFile(name, func(fd int) error { return unix.Fchmod(fd, 0o444) })
		},
		"kernel-link": func() error {
			return withKernelFile(name, func(fd int) error {
				return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o444)
			})
		},
		"kernel-chown": func() error { return unix.Chown(name, 0, 0) },
		"kernel-fchown": func() error {
			return withKernelFile(name, func(fd int) error { return unix.Fchown(fd, 0, -1) })
		},
		"kernel-times":     func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, name, now, 0) },
		"kernel-directory": func() error { return unix.Chmod("/proc/tty", 0o555) },
		"kernel-network":   func() error { return unix.Chmod("/proc/self/net/dev", 0o444) },
		"kernel-set-gid":   func() error { return unix.Chmod("/proc/fs", 0o2555) },
		"kernel-sys":       func() error { return unix.Chmod("/sys/kernel/notes", 0o444) },
	}
	all := map[string]attack{"kernel-exchanged": exchangedMode}
	for name, call := range calls {
		all[name] = func(map[string]string) outcome { return deniedIf(call(), "changed it") }
	}
	return all
}

func withKernelFile(name string, f func(fd int) error) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// exchangedMode changes the mode of a file of the workspace, while another thread exchanges the name.
func exchangedMode(map[string]string) outcome {
	const theirs, ours, mode, tries = "/proc/self/net/dev\x00", "exchanged-mode\x00", 0o440, 20000
	if err := os.WriteFile(ours[:len(ours)-1], nil, 0o600); err != nil {
		return bad("%v", err)
	}
	here := unix.AT_FDCWD
	var name [32]byte
	copy(name[:], ours)
	var ended atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; !ended.Load(); i++ {
			if i%2 == 0 {
				copy(name[:], theirs)
			} else {
				copy(name[:], ours)
			}
		}
	})
	defer others.Wait()
	defer ended.Store(true)
	until := time.Now().Add(3 * time.Second)
	for range tries {
		_, _, _ = unix.Syscall(unix.SYS_FCHMODAT, uintptr(here), uintptr(unsafe.Pointer(&name[0])), mode)
		if time.Now().After(until) {
			break
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(theirs[:len(theirs)-1], &st); err != nil {
		return bad("%v", err)
	}
	if st.Mode&0o777 == mode {
		return breach("changed the mode of a file of the kernel")
	}
	return denied("EPERM")
}

// TestKernelFiles: root's command leaves alone what is the same file for all process namespaces.
func TestKernelFiles(t *testing.T) {
	testenv.NeedRoot(t)
	a := newArena(t)
	a.expect(t, wordDenied, &job{}, names(kernelFileAttacks()))
}
