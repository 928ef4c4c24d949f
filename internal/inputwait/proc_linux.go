// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package inputwait

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bounds of what is read of other processes.
const (
	maxProcesses = 4096     // of one look
	maxThreads   = 4096     // of one process
	maxLine      = 4096     // a stat, syscall or schedstat file; they have at most 1.2 KiB
	maxText      = 64 << 10 // a status or fdinfo file
)

var (
	// errGone says that a thread or process ended while it was looked at.
	errGone = errors.New("ended during the look")
	// errRefused says that the kernel does not let this process look.
	errRefused = errors.New("the look is refused")
	// errBounds says that there is more than a look takes in.
	errBounds = errors.New("more than a look takes in")
	// errAway says that memory is not in place.
	errAway = errors.New("its memory is not in place")
)

// A process is one process of the look. Its folder in /proc is held open: names below
// it belong to this process for ever and are gone when it is, whoever gets its number.
type process struct {
	pid     int
	dir     int // O_PATH
	leader  statLine
	threads []thread
}

// A thread is one thread with what was seen of it first.
type thread struct {
	tid  int
	runs runs
	call callLine
	err  error // why call is not known
}

// runs counts how often a thread was given a processor. A count is compared only with
// one from the same source.
type runs struct {
	count    uint64
	switches bool // from the status file, because the scheduler's own is not kept
}

// openProcess opens the folder of a process and reads the leader's stat file. The
// caller closes the folder.
func openProcess(pid int) (*process, error) {
	dir, err := retry(func() (int, error) {
		return unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, classify(err)
	}
	p := &process{pid: pid, dir: dir}
	if p.leader, err = p.stat(pid); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close closes the process' folder.
func (p *process) close() { unix.Close(p.dir) }

// stat reads the stat file of a thread.
func (p *process) stat(tid int) (statLine, error) {
	var buf [maxLine]byte
	text, err := p.line(tid, "stat", buf[:])
	if err != nil {
		return statLine{}, err
	}
	return parseStat(text)
}

// call reads the syscall file of a thread.
func (p *process) call(tid int) (callLine, error) {
	var buf [maxLine]byte
	text, err := p.line(tid, "syscall", buf[:])
	if err != nil {
		return callLine{}, err
	}
	return parseCall(text)
}

// runs reads how often a thread was given a processor. A kernel without statistics of
// the scheduler says 0, or has no file; switches are counted by every kernel, but
// cost more to read, since they stand among much else.
func (p *process) runs(tid int, switches bool) (runs, error) {
	if !switches {
		var buf [maxLine]byte
		text, err := p.line(tid, "schedstat", buf[:])
		if err == nil {
			if count, err := parseRuns(text); err == nil && count > 0 {
				return runs{count: count}, nil
			}
		}
	}
	text, whole, err := p.text(taskFile(tid, "status"))
	switch {
	case err != nil:
		return runs{}, err
	case !whole:
		return runs{}, errBounds
	}
	count, err := parseSwitches(text)
	return runs{count: count, switches: true}, err
}

// taskFile is the name of a thread's file below the folder of its process.
func taskFile(tid int, name string) string {
	return "task/" + strconv.Itoa(tid) + "/" + name
}

// line reads a file of a thread that the kernel writes in one piece into buf.
func (p *process) line(tid int, name string, buf []byte) ([]byte, error) {
	fd, err := p.open(taskFile(tid, name))
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := retry(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil, classify(err)
	}
	if n == 0 {
		return nil, errGone
	}
	return buf[:n], nil
}

// text reads a file of any length up to maxText, and reports whether that was all.
func (p *process) text(name string) ([]byte, bool, error) {
	fd, err := p.open(name)
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	var buf []byte
	for {
		buf = slices.Grow(buf, 4096)
		n, err := retry(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		switch {
		case err != nil:
			return nil, false, classify(err)
		case n == 0:
			return buf, true, nil
		}
		buf = buf[:len(buf)+n]
		if len(buf) >= maxText {
			return buf, false, nil
		}
	}
}

// open opens a file below the process' folder for reading.
func (p *process) open(name string) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	return fd, classify(err)
}

// tasks returns the numbers of the threads. A process with one thread, which the
// leader's stat file tells, is its own list.
func (p *process) tasks() ([]int, error) {
	if p.leader.threads == 1 {
		return []int{p.pid}, nil
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(p.dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, classify(err)
	}
	defer unix.Close(fd)
	var tids []int
	var names []string
	buf := make([]byte, 8192)
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(fd, buf) })
		if err != nil {
			return nil, classify(err)
		}
		if n <= 0 {
			return tids, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			tid, err := strconv.Atoi(name)
			if err != nil || tid <= 0 {
				return nil, errFormat
			}
			tids = append(tids, tid)
		}
		if len(tids) > maxThreads {
			return nil, errBounds
		}
	}
}

// memory reads len(buf) bytes of a thread's memory at the address. Pages that are
// not there are not fetched: who keeps them may not hand them out.
func (p *process) memory(tid int, address uint64, buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	if address > math.MaxInt64-uint64(len(buf)) {
		return errFormat
	}
	if err := p.resident(tid, address, len(buf)); err != nil {
		return err
	}
	fd, err := p.open(taskFile(tid, "mem"))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := retry(func() (int, error) { return unix.Pread(fd, buf, int64(address)) })
	switch {
	case errors.Is(err, unix.EIO), err == nil && n < len(buf):
		return errGone // unmapped by now, so the call has ended
	case err != nil:
		return classify(err)
	}
	return nil
}

// Bits of an entry of /proc/PID/pagemap, see Documentation/admin-guide/mm/pagemap.rst.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
)

// resident returns nil when all pages of the range are in memory or in swap.
func (p *process) resident(tid int, address uint64, length int) error {
	page := uint64(os.Getpagesize())
	first, end := address/page, (address+uint64(length)-1)/page
	entries := make([]byte, (end-first+1)*8)
	fd, err := p.open(taskFile(tid, "pagemap"))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := retry(func() (int, error) { return unix.Pread(fd, entries, int64(first*8)) })
	if err != nil {
		return classify(err)
	}
	if n < len(entries) {
		return errGone
	}
	return residentPages(entries)
}

// statx returns what file a descriptor of the thread is; threads may have tables of
// descriptors of their own. It follows the link of /proc,
// which leads to the file itself in whatever mount namespace it was opened, and asks
// no remote or user-space file system: those could let the look wait.
func (p *process) statx(tid, fd int) (unix.Statx_t, error) {
	var st unix.Statx_t
	_, err := retry(func() (int, error) {
		return 0, unix.Statx(p.dir, taskFile(tid, "fd/"+strconv.Itoa(fd)),
			unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO, &st)
	})
	return st, classify(err)
}

// waitChannel returns the name of the kernel's function in which a thread sleeps, and
// nothing where the kernel does not tell.
func (p *process) waitChannel(tid int) string {
	var buf [maxLine]byte
	text, err := p.line(tid, "wchan", buf[:])
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// refusal says in one sentence why this process may not be looked into.
func (p *process) refusal() string {
	name := fmt.Sprintf("process %d (%q)", p.pid, p.leader.name)
	var st unix.Stat_t
	// The folder belongs to the process' user in any case, what is in it to root where
	// the memory is private (proc(5)).
	if err := unix.Fstatat(p.dir, "mem", &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && int(st.Uid) != os.Geteuid() {
		return name + " belongs to another user or keeps its memory private"
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && string(scope) != "0\n" {
		return name + " may not be traced, because of the setting kernel.yama.ptrace_scope"
	}
	return name + " may not be traced"
}

// classify turns the errors of /proc into those of this package.
func classify(err error) error {
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT):
		return errGone
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return errRefused
	}
	return err
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
