// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
)

// pathMax is PATH_MAX of linux/limits.h, with the final zero.
const pathMax = 4096

func uint64At(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[i:]) }

// name reads a path of the task. The errors are those of the kernel. The name is valid
// until the next one is read into the same buffer.
func (r *request) name(addr uint64, into *[pathMax]byte) ([]byte, syscall.Errno) {
	// Most names are short: a first piece that ends in one saves copying the rest.
	for _, size := range [...]int{256, pathMax} {
		got := tasks.Peek(r.n.PID, addr, into[:size])
		if end := bytes.IndexByte(into[:got], 0); end >= 0 {
			return into[:end], 0
		}
		if got < size {
			return nil, unix.EFAULT
		}
	}
	return nil, unix.ENAMETOOLONG
}

// A workdir is the working directory of a task, for a while.
type workdir struct {
	tid   uint32
	fd    int
	facts facts
	since time.Time
}

const (
	// workdirTime is how long a working directory is believed. A task that changes its
	// own calls first; the number of a task that has ended is not used again so soon.
	workdirTime = 100 * time.Millisecond
	// movedTime is how long none is remembered after a change: the task makes it after
	// the answer, and threads share the directory.
	movedTime = 20 * time.Millisecond
)

// workdir opens the working directory of the task, or finds it among the latest ones. A
// shared descriptor is not the caller's to close.
func (r *request) workdir() (fd int, shared bool, errno syscall.Errno) {
	now := time.Now()
	for i := range r.workdirs {
		if w := &r.workdirs[i]; w.tid == r.n.PID && now.Sub(w.since) < workdirTime {
			r.lastWorkdir = i
			return w.fd, true, 0
		}
	}
	fd, errno = r.openLink("/cwd")
	if errno != 0 || r.cfg.OwnRoots || r.cfg.ProtectHardLinks || now.Sub(r.moved) < movedTime {
		// setns(2) changes it, too
		return fd, false, errno
	}
	var f facts
	if r.stat(fd, "", &f) != 0 {
		return fd, false, 0
	}
	r.lastWorkdir = (r.lastWorkdir + 1) % len(r.workdirs)
	w := &r.workdirs[r.lastWorkdir]
	if w.tid != 0 {
		unix.Close(w.fd)
	}
	*w = workdir{tid: r.n.PID, fd: fd, facts: f, since: now}
	return fd, true, 0
}

// forget drops the known working directories, because one changes.
func (s *Supervisor) forget() {
	for i := range s.workdirs {
		if s.workdirs[i].tid != 0 {
			unix.Close(s.workdirs[i].fd)
			s.workdirs[i] = workdir{}
		}
	}
	s.moved = time.Now()
}

// rootDir opens the root directory of the task. Tasks that cannot change theirs share
// one.
func (r *request) rootDir() (fd int, shared bool, errno syscall.Errno) {
	if r.root >= 0 {
		return r.root, true, 0
	}
	fd, errno = r.openLink("/root")
	if errno == 0 && !r.cfg.OwnRoots {
		r.root = fd
		return fd, true, 0
	}
	return fd, false, errno
}

// openAt opens what a descriptor of the task, or its working directory, leads to.
func (r *request) openAt(dir int32) (int, syscall.Errno) {
	switch {
	case dir == atCwd:
		return r.openLink("/cwd")
	case dir < 0:
		return -1, unix.EBADF
	}
	return r.openLink("/fd/" + strconv.Itoa(int(dir)))
}

// openLink opens what a link below the task's directory in /proc leads to.
func (r *request) openLink(name string) (int, syscall.Errno) {
	b := strconv.AppendUint(r.buf[:0], uint64(r.n.PID), 10)
	b = append(append(b, name...), 0)
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(r.proc), uintptr(unsafe.Pointer(&b[0])),
		unix.O_PATH|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), 0
}

// pid returns the number of the task's process; 0 when it has ended.
func (r *request) pid() int {
	pid, _ := strconv.Atoi(r.status("Tgid:"))
	return pid
}

// caller returns the process of the task.
func (r *request) caller() protect.Caller {
	by := protect.Caller{PID: r.pid()}
	by.Name = string(bytes.TrimSpace(r.about(by.PID, "/comm")))
	var exe [pathMax]byte
	if n, err := unix.Readlinkat(r.proc, strconv.Itoa(int(r.n.PID))+"/exe", exe[:]); err == nil {
		by.Program = strings.TrimSuffix(string(exe[:n]), " (deleted)")
	}
	return by
}

// about reads a file in /proc about a process or thread; empty when it has ended.
func (r *request) about(id int, name string) []byte {
	fd, err := unix.Openat(r.proc, strconv.Itoa(id)+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, pathMax)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:max(n, 0)]
}

// status returns the words of a line in the status of the task; empty when it has ended.
func (r *request) status(name string) string { return r.field("status", name) }

// field returns the words of a line in a file below the task's directory in /proc; empty when
// there is none.
func (r *request) field(file, name string) string {
	for line := range bytes.Lines(r.about(int(r.n.PID), "/"+file)) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}
