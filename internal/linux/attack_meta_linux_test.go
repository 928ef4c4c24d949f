// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// metaAttacks change modes, owners, times and attributes.
func metaAttacks() map[string]attack {
	canary := func(f func(name string) error, what string) attack {
		return func(kv map[string]string) outcome { return deniedIf(f(kv["out"]+"/canary"), what) }
	}
	opened := func(f func(fd int) error, what string) attack {
		return func(kv map[string]string) outcome {
			fd, err := unix.Open(kv["out"]+"/canary", unix.O_RDONLY, 0)
			if err != nil {
				return bad("%v", err)
			}
			defer unix.Close(fd)
			return deniedIf(f(fd), what)
		}
	}
	times := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	return map[string]attack{
		"chmod":  canary(func(n string) error { return unix.Chmod(n, 0o777) }, "chmod"),
		"fchmod": opened(func(fd int) error { return unix.Fchmod(fd, 0o777) }, "fchmod"),
		"fchmod-proc": opened(func(fd int) error {
			return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), 0o777, 0)
		}, "chmod through /proc"),
		"chown":  canary(func(n string) error { return unix.Chown(n, os.Getuid(), os.Getgid()) }, "chown"),
		"fchown": opened(func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) }, "fchown"),
		"utimes": canary(func(n string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, n, times, 0) }, "utimensat"),
		"futimes": opened(func(fd int) error {
			return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), times, 0)
		}, "utimensat through /proc"),
		"setxattr":    canary(func(n string) error { return unix.Setxattr(n, "user.evil", []byte("1"), 0) }, "setxattr"),
		"fsetxattr":   opened(func(fd int) error { return unix.Fsetxattr(fd, "user.evil", []byte("1"), 0) }, "fsetxattr"),
		"removexattr": canary(func(n string) error { return unix.Removexattr(n, "user.none") }, "removexattr"),
		"file-flags":  opened(setFlags, "file attributes"),
		"chmod-directory": func(kv map[string]string) outcome {
			return deniedIf(unix.Chmod(kv["out"], 0o777), "chmod of the directory")
		},
	}
}

// inputAttacks change metadata through standard input.
func inputAttacks() map[string]attack {
	return map[string]attack{
		"handed-in": handedIn,
		// The modes and times are those that are there, so that a hit on a file of
		// the system does no harm; the change time gives it away.
		"input-metadata": func(map[string]string) outcome {
			var st unix.Stat_t
			if err := unix.Fstat(0, &st); err != nil {
				return bad("%v", err)
			}
			mode := st.Mode & 0o1777
			return firstBreach(
				func() (string, error) { return "fchmod", unix.Fchmod(0, mode) },
				func() (string, error) {
					return "fchmodat",
						unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/0", mode, 0)
				},
				func() (string, error) { return "fchown", unix.Fchown(0, -1, int(st.Gid)) },
				func() (string, error) {
					return "utimensat", unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/0",
						[]unix.Timespec{st.Atim, st.Mtim}, 0)
				},
				func() (string, error) { return "fsetxattr", unix.Fsetxattr(0, "user.evil", []byte("1"), 0) })
		},
		"input-beneath": func(map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return "chmod below", unix.Fchmodat(0, "deep", 0o777, 0) },
				func() (string, error) { return "chmod beside", unix.Fchmodat(0, "../canary", 0o777, 0) },
				func() (string, error) {
					_, err := unix.Openat(0, "new", unix.O_CREAT|unix.O_WRONLY, 0o600)
					return "created below", err
				})
		},
	}
}

// modeAttacks leave what is dangerous later in the workspace.
func modeAttacks() map[string]attack {
	return map[string]attack{
		"set-uid-own": func(kv map[string]string) outcome {
			name := kv["ws"] + "/suid"
			if err := put(name, os.O_CREATE); err != nil {
				return bad("%v", err)
			}
			v := firstBreach(
				func() (string, error) { return "chmod", unix.Chmod(name, 0o4755) },
				func() (string, error) { return "fchmodat", unix.Fchmodat(unix.AT_FDCWD, name, 0o2755, 0) },
				func() (string, error) {
					return "mknod",
						unix.Mknod(kv["ws"]+"/suid1", unix.S_IFREG|0o4755, 0)
				},
				func() (string, error) {
					_, err := unix.Open(kv["ws"]+"/suid2", unix.O_CREAT|unix.O_WRONLY, 0o4755)
					return "open", err
				})
			return v
		},
		// The mode of openat2 lies in memory, where a filter cannot look. What it
		// makes must lose the bits with the first byte.
		"set-uid-openat2": func(kv map[string]string) outcome {
			name := kv["ws"] + "/suid3"
			fd, err := unix.Openat2(unix.AT_FDCWD, name,
				&unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: 0o4755})
			if err != nil {
				return denied(errnoName(err))
			}
			if _, err := unix.Write(fd, []byte("#!/bin/sh\n")); err != nil {
				return bad("write: %v", err)
			}
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return bad("%v", err)
			}
			if st.Mode&unix.S_ISUID != 0 && st.Size > 0 {
				return breach("a set-uid file with content")
			}
			return denied("the bit went with the first byte")
		},
		"set-gid-swap": func(kv map[string]string) outcome { return swapSetGID(kv["ws"]) },
		"device-own": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) {
					return "block device", unix.Mknod(kv["ws"]+"/blk", unix.S_IFBLK|0o600,
						int(unix.Mkdev(8, 0)))
				},
				func() (string, error) {
					return "character device", unix.Mknod(kv["ws"]+"/chr", unix.S_IFCHR|0o600,
						int(unix.Mkdev(1, 1)))
				})
		},
	}
}

// swapSetGID gives a directory the set-gid bit while a file takes its place.
func swapSetGID(ws string) outcome {
	dir, file := ws+"/swap-dir", ws+"/swap-file"
	if err := unix.Mkdir(dir, 0o755); err != nil {
		return bad("%v", err)
	}
	if err := put(file, os.O_CREATE); err != nil {
		return bad("%v", err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, file, unix.RENAME_EXCHANGE)
			}
		}
	}()
	const rounds = 300
	for range rounds {
		_ = unix.Chmod(dir, 0o2755)
	}
	close(stop)
	<-ended
	for _, name := range []string{dir, file} {
		defer os.Remove(name)
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return bad("%v", err)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&unix.S_ISGID != 0 {
			return breach("a set-gid file")
		}
	}
	return denied("no file has the bit")
}

// setFlags sets the flag "no dump" of a file, one that does no harm.
func setFlags(fd int) error {
	const noDump = 0x40 // FS_NODUMP_FL
	// The other flags stay: ext4 converts a file that is to lose its extents, or cannot.
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	set := int32(flags) | noDump //nolint:gosec // the kernel writes an int
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_SETFLAGS,
		uintptr(unsafe.Pointer(&set)))
	if errno != 0 {
		return errno
	}
	return nil
}

// mountAttacks change what stands where.
func mountAttacks() map[string]attack {
	return map[string]attack{
		"bind": func(kv map[string]string) outcome {
			return deniedIf(unix.Mount(kv["out"], kv["ws"]+"/dir", "", unix.MS_BIND, ""), "bound")
		},
		"remount": func(kv map[string]string) outcome {
			return deniedIf(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""), "remounted")
		},
		"unmount": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) {
					return "unmounted .git",
						unix.Unmount(kv["ws"]+"/.git", unix.MNT_DETACH)
				},
				func() (string, error) {
					return "unmounted /proc/sys",
						unix.Unmount("/proc/sys", unix.MNT_DETACH)
				})
		},
		"open-tree": func(kv map[string]string) outcome {
			_, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE)
			return deniedIf(err, "cloned the tree")
		},
		"mount-setattr": func(kv map[string]string) outcome {
			return deniedIf(unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
				&unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), "made writable")
		},
		"fsopen": func(kv map[string]string) outcome {
			_, err := unix.Fsopen("tmpfs", 0)
			return deniedIf(err, "opened a file system")
		},
		"fspick": func(kv map[string]string) outcome {
			_, err := unix.Fspick(unix.AT_FDCWD, "/", 0)
			return deniedIf(err, "picked a file system")
		},
		"move-mount": func(kv map[string]string) outcome {
			return deniedIf(unix.MoveMount(unix.AT_FDCWD, kv["ws"]+"/.git", unix.AT_FDCWD, kv["ws"]+"/dir",
				0), "moved a mount")
		},
		"pivot":  func(kv map[string]string) outcome { return deniedIf(unix.PivotRoot(kv["ws"], kv["ws"]), "pivoted") },
		"chroot": func(kv map[string]string) outcome { return deniedIf(unix.Chroot(kv["ws"]), "changed the root") },
	}
}

// gitAttacks change a protected directory, "git", of the workspace.
func gitAttacks() []string {
	return strings.Fields("git-hook git-config git-remove git-move git-chmod git-cover")
}

// stateAttacks are those on protected and denied names.
func stateAttacks() map[string]attack {
	return map[string]attack{
		"git-hook": func(kv map[string]string) outcome {
			return deniedIf(put(kv["git"]+"/hooks/pre-commit", os.O_CREATE), "planted a hook")
		},
		"git-config": func(kv map[string]string) outcome {
			return deniedIf(put(kv["git"]+"/config", os.O_APPEND), "changed the configuration")
		},
		"git-remove": func(kv map[string]string) outcome { return deniedIf(os.RemoveAll(kv["git"]), "removed") },
		"git-move": func(kv map[string]string) outcome {
			return deniedIf(os.Rename(kv["git"], kv["git"]+"2"), "moved aside")
		},
		"git-chmod": func(kv map[string]string) outcome { return deniedIf(unix.Chmod(kv["git"], 0o777), "chmod") },
		"git-cover": func(kv map[string]string) outcome {
			return deniedIf(unix.Renameat2(unix.AT_FDCWD, kv["ws"]+"/dir", unix.AT_FDCWD, kv["git"],
				unix.RENAME_EXCHANGE), "exchanged")
		},
		"write-at": func(kv map[string]string) outcome { return deniedIf(put(kv["at"], os.O_CREATE), "wrote "+kv["at"]) },
		"append-at": func(kv map[string]string) outcome {
			return deniedIf(put(kv["at"], os.O_APPEND), "appended to "+kv["at"])
		},
		"chmod-at":  func(kv map[string]string) outcome { return deniedIf(unix.Chmod(kv["at"], 0o777), "chmod") },
		"remove-at": func(kv map[string]string) outcome { return deniedIf(os.RemoveAll(kv["at"]), "removed") },
		"read-at": func(kv map[string]string) outcome {
			_, err := os.ReadFile(kv["at"])
			return deniedIf(err, "read "+kv["at"])
		},
		"list-at": func(kv map[string]string) outcome {
			_, err := os.ReadDir(kv["at"])
			return deniedIf(err, "listed "+kv["at"])
		},
		"see-at": func(kv map[string]string) outcome {
			_, err := os.Lstat(kv["at"])
			return deniedIf(err, "saw "+kv["at"])
		},
		"list-state": func(kv map[string]string) outcome {
			_, err := os.ReadDir(kv["state"])
			return deniedIf(err, "listed it")
		},
		"read-other": func(kv map[string]string) outcome {
			_, err := os.ReadFile(kv["out"] + "/other")
			return deniedIf(err, "read it")
		},
		"read-deep": func(kv map[string]string) outcome {
			_, err := os.ReadFile(kv["out"] + "/dir/deep")
			return deniedIf(err, "read it")
		},
		"list-dir": func(kv map[string]string) outcome {
			_, err := os.ReadDir(kv["out"] + "/dir")
			return deniedIf(err, "listed it")
		},
		"ws-rename": func(kv map[string]string) outcome {
			return deniedIf(os.Rename(kv["ws"], kv["ws"]+".moved"), "renamed the workspace")
		},
	}
}
