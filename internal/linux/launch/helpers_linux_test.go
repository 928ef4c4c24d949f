// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperArgs prints its arguments and its environment, quoted. It takes them
// from the kernel, because package os leaves strange variables out.
func helperArgs([]string) int {
	for _, list := range []struct{ word, file string }{{"arg", "cmdline"}, {"env", "environ"}} {
		b, err := os.ReadFile("/proc/self/" + list.file)
		if err != nil {
			return 2
		}
		for entry := range strings.SplitAfterSeq(string(b), "\x00") {
			if text, ok := strings.CutSuffix(entry, "\x00"); ok {
				fmt.Printf("%s %q\n", list.word, text)
			}
		}
	}
	return 0
}

// helperFront is a front end: it starts the shell text args[1] in the way
// args[0], with its own streams, and then only waits to be killed.
func helperFront(args []string) int {
	k, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	var l starter
	var hold []*os.File
	if len(args) > 2 {
		hold = append(hold, os.NewFile(3, "held"))
	}
	files := Files{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Hold: hold}
	if _, err := l.Launcher.Start(nil, script(kind(k), shStep(args[1])), files); err != nil {
		fmt.Println(err)
		return 2
	}
	for {
		_ = unix.Pause() // a signal that does not kill is of no interest
	}
}

// helperIgnored ignores the signals that matter here, runs args[0] and ends as
// the shell text did.
func helperIgnored(args []string) int {
	signal.Ignore(unix.SIGCHLD, unix.SIGHUP, unix.SIGTERM)
	var l starter
	defer l.Close()
	p, err := l.Start(script(plain, shStep(args[0])), os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		return 2
	}
	st, err := p.Wait()
	if err != nil || p.WaitAll() != nil {
		return 3
	}
	return st.ExitStatus()
}

// helperMainThread asks for a launch thread on the main thread of the program
// and reports whether the work was done elsewhere.
func helperMainThread([]string) int {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		return 2
	}
	l := &Launcher{work: make(chan func())}
	var tid int
	go func() {
		l.work <- func() { tid = unix.Gettid() }
		close(l.work)
	}()
	l.serving.Add(1)
	l.thread()
	l.serving.Wait()
	if tid == os.Getpid() {
		return 1
	}
	return 0
}

// queued sends a signal with a value, as the launcher does.
func queued(pid int, sig int, whom, with int32) error {
	var info [128]byte
	le := binary.NativeEndian
	code := int32(-1) // SI_QUEUE
	le.PutUint32(info[0:], uint32(sig))
	le.PutUint32(info[8:], uint32(code))
	le.PutUint32(info[24:], uint32(whom))
	le.PutUint32(info[28:], uint32(with))
	_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig),
		uintptr(unsafe.Pointer(&info)))
	if errno != 0 {
		return errno
	}
	return nil
}

// helperQueue sends process 1 every signal, bare and with values that name
// processes outside: those of args. SIGUSR2, which ends everything, comes last.
func helperQueue(args []string) int {
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err != nil {
			return 2
		}
		for i := range 64 {
			sig := (int(unix.SIGUSR2)+i)%64 + 1
			for _, with := range []int32{int32(unix.SIGKILL), int32(unix.SIGTERM), 0, -1, 99} {
				if err := queued(1, sig, int32(pid), with); err != nil && !errors.Is(err, unix.EAGAIN) {
					fmt.Println(err)
					return 3
				}
			}
		}
	}
	return 7
}

// helperPermute starts commands whose standard files have had every number.
func helperPermute(args []string) int {
	in, err := os.Open(args[0])
	if err != nil {
		return 2
	}
	out, err1 := os.OpenFile(args[1], os.O_RDWR|os.O_APPEND, 0)
	errs, err2 := os.OpenFile(args[2], os.O_RDWR|os.O_APPEND, 0)
	if err1 != nil || err2 != nil {
		return 2
	}
	high := make([]int, 3)
	for i, f := range []*os.File{in, out, errs} {
		if high[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 100); err != nil {
			return 2
		}
	}
	// The runtime's own descriptors must not get the numbers that are played with.
	if _, _, err := os.Pipe(); err != nil {
		return 2
	}
	for n := range 3 {
		unix.Close(n) // so the launcher's own descriptors could get these numbers
	}
	var l starter
	defer l.Close()
	numbers := []int{0, 1, 2, 90, 91}
	for _, a := range numbers {
		for _, b := range numbers {
			for _, c := range numbers {
				if a == b || b == c || a == c {
					continue
				}
				if code := permuted(&l, high, [3]int{a, b, c}); code != 0 {
					return code
				}
			}
		}
	}
	return 0
}

func permuted(l *starter, high []int, at [3]int) int {
	for i, n := range at {
		if unix.Dup3(high[i], n, unix.O_CLOEXEC) != nil {
			return 3
		}
	}
	if _, err := unix.Seek(high[0], 0, unix.SEEK_SET); err != nil {
		return 4
	}
	var files [3]*os.File
	for i, n := range at {
		// A duplicate that belongs to a File would be closed with it.
		files[i] = os.NewFile(uintptr(n), "standard")
	}
	p, err := l.Start(script(plain, shStep("cat; echo oops >&2")), files[0], files[1], files[2])
	if err != nil {
		return 5
	}
	st, err := p.Wait()
	if err != nil || p.WaitAll() != nil || p.Close() != nil {
		return 6
	}
	for _, f := range files {
		f.Close()
	}
	return st.ExitStatus()
}
