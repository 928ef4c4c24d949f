// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedAttacks reach from one command of a shared sandbox for what another one has. "pid" is a process
// of that, or a number in the attacker's own process namespace for a control.
func sharedAttacks() map[string]attack {
	return map[string]attack{
		"reach-read":     func(kv map[string]string) outcome { return openByAll(kv["file"], unix.O_RDONLY) },
		"reach-write":    func(kv map[string]string) outcome { return openByAll(kv["file"], unix.O_WRONLY|unix.O_CREAT) },
		"reach-list":     func(kv map[string]string) outcome { return openByAll(kv["file"], unix.O_RDONLY|unix.O_DIRECTORY) },
		"through-link":   throughLink,
		"proc-of-pid":    func(kv map[string]string) outcome { return procFiles("/proc/"+kv["pid"], kv["listed"] != "") },
		"proc-of-all":    procOfAll,
		"steal-file":     stealFile,
		"read-memory-at": readAt,
		"signal-all":     func(map[string]string) outcome { return deniedIf(unix.Kill(-1, 0), "signaled others") },
		"signal-group": func(kv map[string]string) outcome {
			return deniedIf(unix.Kill(-number(kv["pid"]), 0), "signaled its group")
		},
		"signal-thread": func(kv map[string]string) outcome {
			return deniedIf(unix.Tgkill(number(kv["pid"]), number(kv["pid"]), 0), "signaled its thread")
		},
		"kill-everything": func(map[string]string) outcome {
			// All that it reaches is its own, and gone.
			return denied(fmt.Sprint(unix.Kill(-1, unix.SIGKILL)))
		},
		"setns-all":      setnsAll,
		"setns-pidfd":    setnsPidfd,
		"pidfd-handle":   pidfdHandle,
		"terminals":      terminals,
		"mounts-of-tree": mountsOfTree,
		"next-mounts":    nextMounts,
		"own-mounts": func(kv map[string]string) outcome {
			mounts, err := namespaceMounts()
			if err != nil {
				return bad("%v", err)
			}
			for _, m := range mounts {
				if !slices.Contains(strings.Fields(kv["host"]), m) {
					return breach("%s", m)
				}
			}
			return denied("no namespace is mounted")
		},
	}
}

// namespaceMounts returns the roots of mounts of namespaces, such as "net:[4026532008]", and of message
// queues.
func namespaceMounts() ([]string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	var roots []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, " - nsfs ") || strings.Contains(line, " - mqueue ") {
			roots = append(roots, strings.Fields(line)[3])
		}
	}
	return roots, err
}

// hostNamespaces are arguments of "own-mounts": what "ip netns add" has mounted on the host leads to no
// command.
func hostNamespaces(*neighbors, string) []string {
	roots, _ := namespaceMounts()
	roots = slices.DeleteFunc(roots, func(root string) bool { return root == "/" }) // message queues
	return []string{"host=" + strings.Join(roots, " ")}
}

// openByAll opens a file by every way that a process knows to it.
func openByAll(file string, flags int) outcome {
	roots := []string{"", "/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd/" + farUp,
		"/proc/1/root", "/proc/1/cwd/" + farUp}
	tasks, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return bad("%v", err)
	}
	for _, task := range tasks {
		roots = append(roots, task+"/root", task+"/cwd/"+farUp)
	}
	v := bad("nothing tried")
	for _, root := range roots {
		fd, err := unix.Open(root+file, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0o600)
		if err == nil && flags&unix.O_WRONLY == 0 { // a mask would open, and be empty
			b := make([]byte, 4096)
			var n int
			if flags&unix.O_DIRECTORY != 0 {
				n, err = unix.Getdents(fd, b)
			} else {
				n, err = unix.Read(fd, b)
			}
			if err == nil && n == 0 {
				err = errors.New("nothing is in it")
			}
			unix.Close(fd)
		} else if err == nil {
			unix.Close(fd)
		}
		if v = deniedIf(err, "by "+root+file); v.word == wordBreach {
			return v
		}
	}
	return v
}

// throughLink reaches for "file" by a link in the directory "at", which others see as well.
func throughLink(kv map[string]string) outcome {
	name := kv["at"] + "/link-" + strconv.Itoa(os.Getpid())
	if err := os.Symlink(kv["file"], name); err != nil {
		return bad("%v", err)
	}
	defer os.Remove(name)
	v := openByAll(name, unix.O_RDONLY)
	if v.word == wordBreach {
		return v
	}
	return deniedIf(unix.Linkat(unix.AT_FDCWD, kv["file"], unix.AT_FDCWD, name+"-hard", 0),
		"a hard link to it")
}

// procFiles opens what a process has in /proc. Of one that is listed some files open, and are closed to
// who reads them.
func procFiles(dir string, listed bool) outcome {
	v := bad("nothing tried")
	read := []string{"fd", "map_files", "stack", "syscall", "io"}
	for _, n := range append([]string{"mem", "environ", "maps", "root/etc/passwd", "cwd/.", "fd/0", "fd/1",
		"fdinfo/0", "ns/mnt", "ns/user", "exe", "auxv", "task/1/mem"}, read...) {
		fd, err := unix.Open(dir+"/"+n, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err == nil {
			if listed && slices.Contains(read, n) {
				_, err = unix.Read(fd, make([]byte, 1))
			}
			unix.Close(fd)
		}
		if v = deniedIf(err, "opened "+dir+"/"+n); v.word == wordBreach {
			return v
		}
	}
	return v
}

// procOfAll does so with every process that is not its own.
func procOfAll(map[string]string) outcome {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return bad("%v", err)
	}
	v := denied("no process but its own")
	for _, e := range list {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n == os.Getpid() {
			continue
		}
		if v = procFiles("/proc/"+e.Name(), false); v.word == wordBreach {
			return v
		}
		if n != 1 {
			return breach("process %d is listed", n)
		}
	}
	return v
}

// stealFile takes descriptors of a process.
func stealFile(kv map[string]string) outcome {
	fd, err := unix.PidfdOpen(number(kv["pid"]), 0)
	if err != nil {
		return denied("pidfd_open " + errnoName(err))
	}
	defer unix.Close(fd)
	v := bad("")
	for n := range 64 {
		got, err := unix.PidfdGetfd(fd, n, 0)
		if err == nil {
			unix.Close(got)
		}
		if v = deniedIf(err, fmt.Sprintf("took descriptor %d", n)); v.word == wordBreach {
			return v
		}
	}
	return v
}

// readAt reads the memory of a process at "addr", or of a child at 0: there EFAULT tells that it was let in.
func readAt(kv map[string]string) outcome {
	b := make([]byte, 8)
	_, err := unix.ProcessVMReadv(number(kv["pid"]), []unix.Iovec{{Base: &b[0], Len: 8}},
		[]unix.RemoteIovec{{Base: uintptr(number(kv["addr"])), Len: 8}}, 0)
	if err == nil || err == unix.EFAULT {
		return breach("read %q", b)
	}
	return denied(errnoName(err))
}

// setnsAll enters every namespace of every process that it sees.
func setnsAll(map[string]string) outcome {
	list, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		return bad("%v", err)
	}
	v := denied("none is seen")
	for _, name := range list {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
			unix.Close(fd)
		}
		if v = deniedIf(err, "entered "+name); v.word == wordBreach {
			return v
		}
	}
	return v
}

// setnsPidfd enters the namespaces of a process by a handle on it.
func setnsPidfd(kv map[string]string) outcome {
	fd, err := unix.PidfdOpen(number(kv["pid"]), 0)
	if err != nil {
		return denied("pidfd_open " + errnoName(err))
	}
	defer unix.Close(fd)
	v := bad("")
	for _, ns := range []int{unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWUSER, unix.CLONE_NEWNET,
		unix.CLONE_NEWIPC} {
		if v = deniedIf(unix.Setns(fd, ns), "entered"); v.word == wordBreach {
			return v
		}
	}
	return v
}

// pidfdHandle opens a process by the file handle that its owner has made of a pidfd.
func pidfdHandle(kv map[string]string) outcome {
	typ, text, _ := strings.Cut(kv["handle"], ":")
	b, err := hex.DecodeString(text)
	if err != nil || len(b) == 0 {
		return denied("this kernel gives no handle")
	}
	const root = -10002 // FD_PIDFS_ROOT
	fd, err := unix.OpenByHandleAt(root, unix.NewFileHandle(int32(number(typ)), b), 0)
	if err == nil {
		unix.Close(fd)
	}
	return deniedIf(err, "a handle on the process")
}

// terminals types on every terminal that it finds, and looks for those of others.
func terminals(map[string]string) outcome {
	list, err := filepath.Glob("/dev/pts/[0-9]*")
	if err != nil {
		return bad("%v", err)
	}
	v := denied("there is none")
	for _, name := range append(list, "/dev/tty", "/dev/console") {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			x := []byte("x")
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI,
				uintptr(unsafe.Pointer(&x[0])))
			unix.Close(fd)
			return breach("%s opens, typing says %v", name, errno)
		}
		v = denied(errnoName(err))
	}
	return v
}

// mountsOfTree asks for the mounts of the namespace with the number "namespace" (listmount(2)).
func mountsOfTree(kv map[string]string) outcome {
	id, err := strconv.ParseUint(kv["namespace"], 10, 64)
	if err != nil || id == 0 {
		return denied("this kernel does not number them")
	}
	const listmount, everything = 458, ^uint64(0) // LSMT_ROOT
	req := make([]byte, 32)                       // struct mnt_id_req
	binary.NativeEndian.PutUint32(req, uint32(len(req)))
	binary.NativeEndian.PutUint64(req[8:], everything)
	binary.NativeEndian.PutUint64(req[24:], id)
	out := make([]uint64, 64)
	n, _, errno := unix.Syscall6(listmount, uintptr(unsafe.Pointer(&req[0])),
		uintptr(unsafe.Pointer(&out[0])), uintptr(len(out)), 0, 0, 0)
	if errno != 0 {
		return denied(unix.ErrnoName(errno))
	}
	return breach("%d mounts", n)
}

// nextMounts goes from its own mount namespace to those beside it (NS_MNT_GET_NEXT and so on).
func nextMounts(map[string]string) outcome {
	fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return bad("%v", err)
	}
	defer unix.Close(fd)
	v := bad("")
	for _, nr := range []uintptr{0x8010b70b, 0x8010b70c} { // _IOR(0xb7, 11 and 12, struct mnt_ns_info)
		info := make([]byte, 16)
		binary.NativeEndian.PutUint32(info, uint32(len(info)))
		got, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), nr, uintptr(unsafe.Pointer(&info[0])))
		if errno == 0 {
			unix.Close(int(got))
			return breach("the mounts beside its own")
		}
		v = denied(unix.ErrnoName(errno))
	}
	return v
}
