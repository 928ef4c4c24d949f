// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// readSecret reads the file that the command must not see.
func readSecret(name string) (string, error) {
	b, err := os.ReadFile(name)
	return "read " + name + ": " + string(b), err
}

// readFrom does so by a name that begins at a directory's descriptor.
func readFrom(dir int, name string) (string, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return fmt.Sprintf("opened %s from descriptor %d", name, dir), nil
}

const farUp = "../../../../../../../../../../../../../../../.."

// hiddenAttacks reach for out/canary, which is outside of all that is listed.
func hiddenAttacks() map[string]attack {
	return map[string]attack{
		"hidden-path": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return readSecret(kv["out"] + "/canary") },
				func() (string, error) { return "stat", unix.Access(kv["out"], unix.F_OK) },
				func() (string, error) { return "handle", accessPath(kv["out"] + "/canary") })
		},
		"hidden-dotdot": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return readSecret("../" + filepath.Base(kv["out"]) + "/canary") },
				func() (string, error) { return readSecret(farUp + kv["out"] + "/canary") },
				func() (string, error) { return readSecret("/" + farUp + kv["out"] + "/canary") },
				func() (string, error) { return readSecret("/usr/bin/" + farUp + kv["out"] + "/canary") },
				func() (string, error) {
					return readSecret("/proc/self/cwd/" +
						farUp + kv["out"] + "/canary")
				},
				func() (string, error) {
					return readSecret("/proc/self/cwd/../" + filepath.Base(kv["out"]) + "/canary")
				})
		},
		"hidden-proc":        hiddenProc,
		"hidden-descriptors": hiddenDescriptors,
		"hidden-link": func(kv map[string]string) outcome {
			name := kv["ws"] + "/to-secret"
			_ = os.Remove(name)
			if err := os.Symlink(kv["out"]+"/canary", name); err != nil {
				return bad("%v", err)
			}
			return firstBreach(
				func() (string, error) { return readSecret(name) },
				func() (string, error) {
					return "hard link", unix.Linkat(unix.AT_FDCWD, kv["out"]+"/canary", unix.AT_FDCWD,
						kv["ws"]+"/hard", 0)
				})
		},
		"hidden-handle": hiddenHandle,
		"hidden-mounts": hiddenMounts,
		"hidden-chroot": func(kv map[string]string) outcome {
			dir := kv["ws"] + "/jail"
			_ = os.Mkdir(dir, 0o755)
			return firstBreach(
				func() (string, error) { return "chroot", unix.Chroot(dir) },
				func() (string, error) { return "pivot", unix.PivotRoot(dir, dir) },
				func() (string, error) { return readSecret(farUp + kv["out"] + "/canary") })
		},
		"root-write": func(map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return "wrote /new", put("/new", os.O_CREATE) },
				func() (string, error) { return "made /home2", os.Mkdir("/home2", 0o755) },
				func() (string, error) { return "changed /", os.Chmod("/", 0o777) },
				func() (string, error) { return "removed /proc", unix.Rmdir("/proc") },
				func() (string, error) { return "moved /usr", os.Rename("/usr", "/usr2") },
				func() (string, error) { return "linked", os.Symlink("/", "/l") },
				func() (string, error) { return "removed /bin", unix.Unlink("/bin") },
				func() (string, error) { return "wrote beside the workspace", put("../new", os.O_CREATE) })
		},
		// The directory that is standard input, and what is around it.
		"input-around": func(kv map[string]string) outcome {
			return firstBreach(
				func() (string, error) { return readFrom(0, "other") },
				func() (string, error) { return readFrom(0, "dir/deep") },
				func() (string, error) { return readFrom(0, "../out/other") },
				func() (string, error) { return readFrom(0, farUp+kv["out"]+"/other") })
		},
	}
}

func accessPath(name string) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// hiddenProc goes through what /proc says about every process.
func hiddenProc(kv map[string]string) outcome {
	tasks, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(tasks) == 0 {
		return bad("no processes, %v", err)
	}
	v := bad("nothing tried")
	for _, task := range append(tasks, "/proc/self", "/proc/thread-self", "/proc/1") {
		for _, via := range []string{"root", "cwd/" + farUp, "cwd", "exe/..", "fd/0", "fd/1", "fd/0/" + farUp,
			"map_files", "task/1/root"} {
			name := task + "/" + via + kv["out"] + "/canary"
			if v = deniedIf(accessPath(name), name); v.word == wordBreach {
				return v
			}
		}
	}
	return v
}

// hiddenDescriptors looks around from every descriptor, its own directories included.
func hiddenDescriptors(kv map[string]string) outcome {
	for _, dir := range []string{"/", "/usr", "/proc", "/proc/self", "/dev", "/dev/shm", "/dev/pts", "/sys",
		"/run", "/tmp", kv["ws"]} {
		if _, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return bad("%s: %v", dir, err)
		}
	}
	v := bad("nothing tried")
	const most = 1024
	for fd := range most {
		for _, name := range []string{kv["out"][1:] + "/canary", "../canary", "../out/canary",
			farUp + kv["out"] + "/canary"} {
			what, err := readFrom(fd, name)
			if v = deniedIf(err, what); v.word == wordBreach {
				return v
			}
		}
	}
	return v
}

// hiddenHandle opens the file by the handle that somebody outside has made of it.
func hiddenHandle(kv map[string]string) outcome {
	b, err := hex.DecodeString(kv["handle"])
	if err != nil || len(b) == 0 {
		return bad("no handle, %v", err)
	}
	v := bad("nothing tried")
	for _, dir := range []string{"/", kv["ws"], "/usr", "/tmp"} {
		at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return bad("%v", err)
		}
		fd, err := unix.OpenByHandleAt(at, unix.NewFileHandle(1, b), unix.O_RDONLY)
		if v = deniedIf(err, fmt.Sprintf("descriptor %d from %s", fd, dir)); v.word == wordBreach {
			return v
		}
	}
	return v
}

// hiddenMounts tries to take away or to copy what stands over the old root.
func hiddenMounts(kv map[string]string) outcome {
	own := firstBreach(
		func() (string, error) { return "umount /", unix.Unmount("/", unix.MNT_DETACH) },
		func() (string, error) { return "umount ..", unix.Unmount(farUp, unix.MNT_DETACH) },
		func() (string, error) {
			_, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
			return "cloned /", err
		},
		func() (string, error) { return "proc", unix.Mount("proc", kv["ws"]+"/dir", "proc", 0, "") },
		func() (string, error) { return "bind", unix.Mount("/", kv["ws"]+"/dir", "", unix.MS_BIND, "") },
		func() (string, error) { return "namespace", unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUSER) },
		func() (string, error) {
			fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				err = unix.Setns(fd, unix.CLONE_NEWNS)
			}
			return "setns", err
		})
	if own.word == wordBreach {
		return own
	}
	// Nothing that can be mounted by its device, either.
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return bad("%v", err)
	}
	for line := range strings.Lines(string(b)) {
		if w := strings.Fields(line); len(w) > 4 && w[4] == "/" && !strings.Contains(line, " tmpfs ") {
			return breach("a root that is not ours: %s", line)
		}
	}
	return own
}
