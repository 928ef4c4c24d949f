// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bounds of what is read of other processes.
const (
	maxProcesses = 4096     // of one look
	maxThreads   = 4096     // of one process
	maxText      = 64 << 10 // bytes of a file in /proc
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

// A process is one process of the look. Its directory in /proc is held open: names
// below it belong to this process for ever and are gone when it is, whichever process
// gets its number.
type process struct {
	pid     int
	dir     int // O_PATH
	leader  statLine
	threads []thread
}

// A thread is one thread with the first findings about it.
type thread struct {
	tid      int
	switches uint64 // how often it gave up its processor
	call     callLine
	err      error // why call is not known
}

// openProcess opens the directory of a process and reads the leader's stat file. The
// caller closes it.
func openProcess(pid int) (*process, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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

func (p *process) close() { unix.Close(p.dir) }

// stat reads the stat file of a thread.
func (p *process) stat(tid int) (statLine, error) {
	text, err := p.text(tid, "stat")
	if err != nil {
		return statLine{}, err
	}
	return parseStat(text)
}

// call reads the syscall file of a thread.
func (p *process) call(tid int) (callLine, error) {
	text, err := p.text(tid, "syscall")
	if err != nil {
		return callLine{}, err
	}
	return parseCall(text)
}

// switches reads how often a thread gave up its processor.
func (p *process) switches(tid int) (uint64, error) {
	text, err := p.text(tid, "status")
	if err != nil {
		return 0, err
	}
	return parseSwitches(text)
}

// taskFile is the name of a thread's file below the directory of its process.
func taskFile(tid int, name string) string {
	return "task/" + strconv.Itoa(tid) + "/" + name
}

// text reads a file of a thread. The error is errBounds, with the beginning, if it has
// more than maxText bytes.
func (p *process) text(tid int, name string) ([]byte, error) {
	f, err := p.open(taskFile(tid, name), 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return nil, classify(err)
	case len(text) == 0:
		return nil, errGone
	case len(text) > maxText:
		return text[:maxText], errBounds
	}
	return text, nil
}

// open opens a file below the process' directory for reading.
func (p *process) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, classify(err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// names returns the names in a directory below the process' own, at most so many.
func (p *process) names(dir string, most int) ([]string, error) {
	f, err := p.open(dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, classify(err)
	case len(names) > most:
		return nil, errBounds
	}
	return names, nil
}

// tasks returns the numbers of the threads. A process with one thread, which the
// leader's stat file tells, is its own list.
func (p *process) tasks() ([]int, error) {
	if p.leader.threads == 1 {
		return []int{p.pid}, nil
	}
	names, err := p.names("task", maxThreads)
	if err != nil {
		return nil, err
	}
	tids := make([]int, len(names))
	for i, name := range names {
		if tids[i], err = strconv.Atoi(name); err != nil || tids[i] <= 0 {
			return nil, errFormat
		}
	}
	return tids, nil
}

// memory reads len(buf) bytes of a thread's memory at the address. It does not fetch
// pages that are absent: the program that keeps them may not hand them out.
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
	return p.readAt(taskFile(tid, "mem"), buf, int64(address))
}

// readAt fills buf from a file. It returns errGone if that has less, or memory that is
// unmapped by now: the call has ended.
func (p *process) readAt(name string, buf []byte, offset int64) error {
	f, err := p.open(name, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(buf, offset)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EIO) {
		return errGone
	}
	return classify(err)
}

// Bits of an entry of /proc/PID/pagemap, see Documentation/admin-guide/mm/pagemap.rst.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
)

// resident returns nil if all pages of the range are in memory or in swap.
func (p *process) resident(tid int, address uint64, length int) error {
	page := uint64(os.Getpagesize())
	first, end := address/page, (address+uint64(length)-1)/page
	entries := make([]byte, (end-first+1)*8)
	if err := p.readAt(taskFile(tid, "pagemap"), entries, int64(first*8)); err != nil {
		return err
	}
	return residentPages(entries)
}

// statx returns the file of a descriptor of the thread; threads can have tables of
// descriptors of their own. It follows the link of /proc to the file itself, whatever
// mount namespace it was opened in, and asks no remote or user-space file system,
// which could block the look.
func (p *process) statx(tid, fd int) (unix.Statx_t, error) {
	var st unix.Statx_t
	err := unix.Statx(p.dir, taskFile(tid, "fd/"+strconv.Itoa(fd)),
		unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_INO, &st)
	return st, classify(err)
}

// waitChannel returns the name of the kernel's function in which a thread sleeps, or
// nothing if the kernel does not tell.
func (p *process) waitChannel(tid int) string {
	text, err := p.text(tid, "wchan")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// String returns the process for messages.
func (p *process) String() string { return fmt.Sprintf("process %d (%q)", p.pid, p.leader.name) }

// refusal returns one sentence about why this process cannot be looked into.
func (p *process) refusal() string {
	var st unix.Stat_t
	// The directory belongs to the process' user in any case, its files to root if the
	// memory is private (proc(5)).
	if err := unix.Fstatat(p.dir, "mem", &st, unix.AT_SYMLINK_NOFOLLOW); err == nil &&
		int(st.Uid) != os.Geteuid() {
		return p.String() + " belongs to another user or keeps its memory private"
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && string(scope) != "0\n" {
		return p.String() + " may not be traced, because of the setting kernel.yama.ptrace_scope"
	}
	return p.String() + " may not be traced"
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
