// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// chaosMain is what this binary does under the name chaos, for TestChaos: "warden" starts a
// program, sends signals to its processes and waits for all of them; "hostile" is a command
// in a sandbox; "child" is a process that it leaves; "swap" works outside of any sandbox.
func chaosMain() {
	args := os.Args[2:]
	switch os.Args[1] {
	case "warden":
		chaosWarden(args)
	case "hostile":
		newHostile(args).run()
	case "child":
		chaosBlock()
	case "swap":
		chaosSwap(args)
	}
}

// chaosBlock ignores what can be ignored and waits for SIGKILL.
func chaosBlock() {
	signal.Ignore()
	for {
		_, _ = unix.Ppoll(nil, nil, nil)
	}
}

// A wardenReport is what a warden prints when no process of its program is left.
type wardenReport struct {
	Front, Rest time.Duration // until the program ended, and from then until the last process did
	Stopped     time.Duration // how long signals kept the program from running
	Status      int           // of the program, as wait(2) returns it
	Sent        []string
}

// A wardenJob is what a warden does.
type wardenJob struct {
	Seed    uint64
	Signals int           // how many are sent
	Within  time.Duration // of the start
	Late    time.Duration // of the start: from then on the program is to print its goroutines
}

// chaosWarden runs a program as a subreaper: every process that the program leaves becomes a
// child of the warden, so waiting for children waits for all of them.
func chaosWarden(args []string) {
	var job wardenJob
	check(json.Unmarshal([]byte(args[0]), &job))
	check(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	const files = 256 // trees deeper than that are cheap
	check(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}))
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	check(err)
	begin := time.Now()
	front, err := syscall.ForkExec(args[1], args[1:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{uintptr(null), uintptr(null), 2},
		Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	check(err)
	k := &killer{front: front, sent: make(chan string, job.Signals)}
	r := rand.New(rand.NewPCG(job.Seed, 1))
	for range job.Signals {
		sig := chaosSignals[r.IntN(len(chaosSignals))]
		pick := r.Uint64()
		time.AfterFunc(time.Duration(r.Int64N(int64(job.Within))), func() { k.send(pick, sig) })
	}
	late := time.AfterFunc(job.Late, func() { _ = unix.Kill(front, unix.SIGABRT) })
	var report wardenReport
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			break // no child is left
		}
		if pid == front {
			late.Stop()
			k.over.Store(true)
			report.Front, report.Status = time.Since(begin), int(status)
		}
	}
	report.Rest, report.Stopped = time.Since(begin)-report.Front, time.Duration(k.stopped.Load())
	for len(k.sent) > 0 {
		report.Sent = append(report.Sent, <-k.sent)
	}
	check(json.NewEncoder(os.Stdout).Encode(report))
}

var chaosSignals = []unix.Signal{
	unix.SIGKILL, unix.SIGKILL, unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT,
	unix.SIGSTOP, unix.SIGSEGV, unix.SIGUSR1, unix.SIGPIPE,
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A killer sends signals to the processes below a warden while its program runs. What is
// left then has to end without help.
type killer struct {
	front   int
	over    atomic.Bool
	stopped atomic.Int64
	sent    chan string
}

// send sends a signal to one of the processes, to the program itself every third time.
func (k *killer) send(pick uint64, sig unix.Signal) {
	all := descendants(os.Getpid())
	if len(all) == 0 || k.over.Load() {
		return
	}
	pid := all[pick%uint64(len(all))]
	if pick%3 == 0 {
		pid = k.front
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if !below(pid, os.Getpid()) || k.over.Load() {
		return // the number may belong to another process by now
	}
	whom := "a process"
	if pid == k.front {
		whom = "sallyport"
	}
	k.sent <- fmt.Sprintf("%v to %s", sig, whom)
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		return
	}
	if sig != unix.SIGSTOP {
		return
	}
	const pause = 100 * time.Millisecond
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	check(err)
	begin := time.Now()
	time.AfterFunc(pause, func() {
		_ = unix.PidfdSendSignal(again, unix.SIGCONT, nil, 0)
		unix.Close(again)
		k.stopped.Add(int64(time.Since(begin)))
	})
}

// parent returns the parent of a process, or 0.
func parent(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

func below(pid, top int) bool {
	for pid > 1 && pid != top {
		pid = parent(pid)
	}
	return pid == top
}

// descendants returns the processes below one.
func descendants(top int) []int {
	var out []int
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, n := range names {
		if pid, _ := strconv.Atoi(filepath.Base(n)); pid != top && below(pid, top) {
			out = append(out, pid)
		}
	}
	return out
}

// A hostile command does some of what commands should not do, in random order. Its errors
// do not matter.
type hostile struct {
	*rand.Rand
	places []string // where it writes
	links  []string // what its links lead to
}

// newHostile takes a seed, and the directories that must not change.
func newHostile(args []string) *hostile {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	check(err)
	h := &hostile{Rand: rand.New(rand.NewPCG(seed, 2)), places: []string{".", ".", "/tmp", "/dev/shm"},
		links: args[1:]}
	for _, name := range []string{os.Getenv("TMPDIR"), os.Getenv("XDG_STATE_HOME"), os.Getenv("HOME"),
		os.Getenv("HOME") + "/.local/state"} {
		if name != "" {
			h.places = append(h.places, name)
		}
	}
	return h
}

func (h *hostile) one(of []string) string { return of[h.IntN(len(of))] }

func (h *hostile) run() {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE)
	syscall.Umask(h.IntN(2) * 0o777)
	acts := []func(string){h.deep, h.wide, h.odd, h.closed, h.swaps, h.swaps, h.children, h.repository,
		h.special, h.outside, h.plant}
	for range 3 + h.IntN(4) {
		acts[h.IntN(len(acts))](h.one(h.places))
	}
	if h.IntN(3) == 0 {
		chaosBlock()
	}
	os.Exit(h.IntN(3))
}

// deep makes a tree that is deeper than the limit on open files.
func (h *hostile) deep(dir string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for i := 0; err == nil && i < 300; i++ {
		_ = unix.Mkdirat(fd, "deep", 0o755)
		var next int
		next, err = unix.Openat(fd, "deep", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		unix.Close(fd)
		fd = next
	}
	if err == nil {
		_ = unix.Symlinkat(h.one(h.links), fd, "link")
		_ = unix.Fchmod(fd, uint32(h.IntN(0o777)))
		unix.Close(fd)
	}
}

func (h *hostile) wide(dir string) {
	dir = filepath.Join(dir, "wide"+strconv.Itoa(h.IntN(3)))
	_ = os.Mkdir(dir, 0o755)
	for i := range 300 {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o644)
	}
}

func (h *hostile) odd(dir string) {
	for _, name := range []string{
		"a\nb", "\x1b]0;title\a", "\xff\xfe", strings.Repeat("n", 255),
		strings.Repeat("\xf0\x9f\x98\x80", 63), " ", "-rf", "*", "run-0\n", "\u202e", "\\040",
	} {
		name = filepath.Join(dir, name)
		_ = os.Mkdir(name, 0o755)
		_ = os.Symlink(h.one(h.links), filepath.Join(name, "link"))
		_ = os.WriteFile(filepath.Join(name, "file"), nil, 0)
	}
}

// closed makes directories that their own owner cannot enter.
func (h *hostile) closed(dir string) {
	dir = filepath.Join(dir, "closed")
	_ = os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755)
	_ = os.WriteFile(filepath.Join(dir, "a", "b", "c"), nil, 0)
	for _, name := range []string{"a/b", "a", "."} {
		_ = os.Chmod(filepath.Join(dir, name), 0)
	}
}

// swapNames are names at which sallyport makes, looks for, moves and removes things.
var swapNames = []string{
	".codex", ".agents", ".sallyport", ".git", "sallyport", "tmp", "guard", "quarantine", "caches",
	"output", "scans",
	"run-0123456789abcdef", "stuck-0123456789abcdef", "sallyport-0", "sallyport-65534", ".local", "state",
	"closed", "deep",
}

// swaps exchanges a directory and a link to something outside until the process ends, and
// tries to change what the name leads to.
func (h *hostile) swaps(dir string) {
	name, to := h.one(swapNames), h.one(h.links)
	go swapForever(dir, name, to, true)
}

// swapForever exchanges a directory and a link, and with try uses the name as well.
func swapForever(dir, name, to string, try bool) {
	at, other := filepath.Join(dir, name), filepath.Join(dir, name+".link")
	for i := 0; ; i++ {
		_ = os.Mkdir(at, 0o777)
		_ = os.Symlink(to, other)
		_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		if try && i%8 == 0 {
			_ = os.WriteFile(filepath.Join(at, "won"), []byte("won"), 0o644)
			_ = os.Remove(filepath.Join(at, "file"))
			_ = os.Chmod(filepath.Join(at, "dir"), 0o777)
		}
	}
}

// children leaves processes that ignore signals, in sessions of their own or not.
func (h *hostile) children(string) {
	for range 1 + h.IntN(12) {
		cmd := exec.Command(os.Args[0], "child")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: h.IntN(2) == 0}
		_ = cmd.Start()
	}
}

// repository makes what git would obey.
func (h *hostile) repository(dir string) {
	_ = os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755)
	_ = os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[core]\nfsmonitor = ./won\n"), 0o644)
	_ = os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	_ = os.Symlink(h.one(h.links), filepath.Join(dir, ".git", "objects"))
	_ = os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "sub"+strconv.Itoa(h.IntN(3))))
}

// special makes what is neither file nor directory.
func (h *hostile) special(dir string) {
	_ = unix.Mkfifo(filepath.Join(dir, h.one(swapNames)), 0o666)
	_ = os.Symlink("loop", filepath.Join(dir, "loop"))
	_ = os.Symlink(h.one(h.links), filepath.Join(dir, h.one(swapNames)))
	_, _ = net.Listen("unix", filepath.Join(dir, "socket")) //nolint:noctx // it ends with the process
}

// outside tries to change what must not change.
func (h *hostile) outside(string) {
	dir := h.one(h.links)
	for _, change := range []func() error{
		func() error { return os.WriteFile(dir+"/won", nil, 0o644) },
		func() error { return os.Truncate(dir+"/file", 0) },
		func() error { return os.Chmod(dir+"/dir", 0o777) },
		func() error { return os.Rename(dir+"/dir", dir+"/won") },
		func() error { return os.Remove(dir + "/link") },
		func() error { return os.Link(dir+"/file", "linked") },
		func() error { return os.Chtimes(dir+"/file", time.Unix(1, 0), time.Unix(1, 0)) },
	} {
		_ = change()
	}
}

// plant puts links and directories of its own where state directories are looked for.
func (h *hostile) plant(dir string) {
	name := filepath.Join(dir, "sallyport")
	if h.IntN(2) == 0 {
		_ = os.Symlink(h.one(h.links), name)
		return
	}
	_ = os.MkdirAll(filepath.Join(name, "tmp"), 0o700)
	_ = os.Symlink(h.one(h.links), filepath.Join(name, "tmp", "run-0123456789abcdef"))
	_ = os.Symlink(h.one(h.links), filepath.Join(name, "quarantine"))
	_ = os.Symlink(h.one(h.links), filepath.Join(name, "guard"))
}

// chaosSwap exchanges names in directories, NAME:TARGET each, until its input ends.
func chaosSwap(args []string) {
	for _, a := range args {
		at, to, _ := strings.Cut(a, ":")
		go swapForever(filepath.Dir(at), filepath.Base(at), to, false)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}
