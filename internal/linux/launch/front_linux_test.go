// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestFrontEndKilled: when the front end is killed, the tree goes with it. Where
// there is no process namespace, that is the command's group.
func TestFrontEndKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	cases := []struct {
		name string
		kind kind
		text string
	}{
		{"group", plain, "sleep 1000 & echo ready; wait"},
		{"group that ignores polite signals", plain, "trap '' TERM HUP USR2; sleep 1000 & echo ready; wait"},
		{"tree", own, "setsid sleep 1000 & (sleep 1000 &); echo ready; wait"},
		{"tree whose command is gone", own, "setsid sleep 1000 & echo ready"},
		{"walled tree", walled, "setsid sleep 1000 & echo ready; wait"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.text, "setsid") {
				testenv.NeedProgram(t, "setsid")
			}
			killFrontEnd(t, "front", fmt.Sprint(int(c.kind)), c.text)
		})
	}
}

// killFrontEnd kills a helper that has launched something, and waits for the end of
// everything that holds its output.
func killFrontEnd(t *testing.T, helper string, args ...string) {
	t.Helper()
	r, w := pipe(t)
	front := helperCommand(t, helper, args...)
	front.Stdout, front.Stderr = w, w
	if err := front.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b := make([]byte, 6)
	if n, err := r.Read(b); string(b[:n]) != "ready\n" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if err := front.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := front.Wait(); !errors.As(err, &exit) {
		t.Errorf("the front end ended with %v", err)
	}
	wantEOF(t, r) // no process holds the pipe: all of them are gone
}

// TestHeldUntilAllIsGone: what the reaper holds for others to see is free when nothing of
// the tree runs, and no earlier, also when the front end is killed.
func TestHeldUntilAllIsGone(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, k := range []kind{own, walled} {
		t.Run(kinds[k].name, func(t *testing.T) {
			out, outEnd := pipe(t)
			held, heldEnd := pipe(t)
			const many = "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; echo ready; wait"
			front := helperCommand(t, "front", fmt.Sprint(int(k)), many, "hold")
			front.Stdout, front.Stderr, front.ExtraFiles = outEnd, outEnd, []*os.File{heldEnd}
			if err := front.Start(); err != nil {
				t.Fatal(err)
			}
			outEnd.Close()
			heldEnd.Close()
			b := make([]byte, 6)
			if n, err := out.Read(b); string(b[:n]) != "ready\n" {
				t.Errorf("read %q, %v", b[:n], err)
			}
			if err := front.Process.Kill(); err != nil {
				t.Error(err)
			}
			wantEOF(t, held)
			var exit *exec.ExitError
			if err := front.Wait(); !errors.As(err, &exit) { // it has the output open, too
				t.Errorf("the front end ended with %v", err)
			}
			p := []unix.PollFd{{Fd: int32(out.Fd())}}
			if _, err := unix.Poll(p, 0); err != nil || p[0].Revents&unix.POLLHUP == 0 {
				t.Errorf("when it is free, processes are left (%v)", err)
			}
		})
	}
}

// TestFrontEndAlreadyGone: a front end that ended before the first step took
// effect is noticed by its handle.
func TestFrontEndAlreadyGone(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			l := launcher(t)
			finishAll(t, start(t, l, script(k.kind, shStep("exit 0"))))
			gone := exec.Command("/bin/true")
			if err := gone.Start(); err != nil {
				t.Fatal(err)
			}
			handle, err := unix.PidfdOpen(gone.Process.Pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := gone.Wait(); err != nil {
				t.Fatal(err)
			}
			mine := l.self
			l.self = handle
			n := null(t)
			_, err = l.Start(script(k.kind, shStep("exit 0")), n, n, n)
			l.self = mine
			unix.Close(handle)
			wantStepError(t, err, 0, "ppoll", unix.ESTALE)
		})
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		var streams []*os.File
		var running []*Process
		for range 8 {
			p, r := ready(t, l, k, "sleep 1000 & echo ready; wait")
			running, streams = append(running, p), append(streams, r)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for i, p := range running {
			st, err := p.Wait()
			if k == plain && !errors.Is(err, ErrLost) {
				t.Errorf("Wait gives %v, want ErrLost", err)
			}
			if k != plain && (err != nil || !st.Signaled() || st.Signal() != unix.SIGKILL) {
				t.Errorf("Wait gives %#x, %v, want the signal that killed it", uint32(st), err)
			}
			if err := p.WaitAll(); err != nil {
				t.Error(err)
			}
			wantEOF(t, streams[i])
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		n := null(t)
		if _, err := l.Start(script(k, shStep("exit 0")), n, n, n); !errors.Is(err, ErrClosed) {
			t.Errorf("Start after Close gives %v, want ErrClosed", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("the second Close gives %v", err)
		}
		wantNoChildren(t)
	})
}

func TestCloseUnused(t *testing.T) {
	var l starter
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestMainThread: Go parks the main thread of a program instead of ending it,
// so nothing may be started from there: its end would kill nothing.
func TestMainThread(t *testing.T) {
	if out, err := helperCommand(t, "main-thread").CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

// TestIgnoredSignals: a caller that ignores SIGCHLD gets the status all the
// same, and what it ignores stays ignored, but for SIGCHLD.
func TestIgnoredSignals(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const text = `kill -HUP $$; kill -TERM $$; while read -r l; do case $l in SigIgn*) echo "$l"; esac; done </proc/self/status; exit 6`
	out, err := helperCommand(t, "ignored", text).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 6 {
		t.Errorf("the front end ended with %v, want exit code 6", err)
	}
	var mask uint64
	if _, err := fmt.Sscanf(string(out), "SigIgn: %x", &mask); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	want := uint64(1)<<(unix.SIGHUP-1) | uint64(1)<<(unix.SIGTERM-1)
	if mask&(want|1<<(unix.SIGCHLD-1)) != want {
		t.Errorf("ignored signals %#x, want %#x among them and SIGCHLD not", mask, want)
	}
}

// TestSignalsAreDefault: the runtime's handlers and the blocked signals of the
// launch leave no trace in the command.
func TestSignalsAreDefault(t *testing.T) {
	testenv.NeedUserNS(t)
	mine, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, k kind, l *starter) {
		out, _ := output(t, l, script(k, Step{Op: OpExec, Path: "/bin/cat",
			Argv: []string{"cat", "/proc/self/status"}}))
		for _, field := range []string{"SigPnd", "ShdPnd", "SigBlk", "SigCgt"} {
			if got := statusField(out, field); strings.Trim(got, "0") != "" {
				t.Errorf("%s is %s, want zeros", field, got)
			}
		}
		if got, was := statusField(out, "SigIgn"), statusField(string(mine), "SigIgn"); got != was &&
			!l.old.Load() {
			t.Errorf("SigIgn is %s, the caller's is %s", got, was)
		}
	})
}

// TestSignalMasks: no thread keeps the mask that was meant for the task.
func TestSignalMasks(t *testing.T) {
	masked := func() (n int) {
		all, err := filepath.Glob("/proc/self/task/*/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if b, err := os.ReadFile(name); err == nil &&
				strings.Trim(statusField(string(b), "SigBlk"), "0") != "" {
				n++
			}
		}
		return n
	}
	before := masked() // a thread of the runtime's, when the program listens for signals
	l := launcher(t)
	n := null(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				p, err := l.Start(script(plain, shStep("exit 0")), n, n, n)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(p.WaitAll(), p.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if now := masked(); now > before {
		t.Errorf("%d threads have signals blocked, before it were %d", now, before)
	}
}

func statusField(status, field string) string {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "missing"
}

// TestStandardFilesAnyNumber: whatever numbers the caller's files have, and with
// 0 to 2 closed, each ends up in its place.
func TestStandardFilesAnyNumber(t *testing.T) {
	dir := t.TempDir()
	paths := make([]string, 3)
	for i, text := range []string{"data\n", "", ""} {
		paths[i] = filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := helperCommand(t, "permute", paths...).Run(); err != nil {
		t.Error(err)
	}
	const runs = 5 * 4 * 3
	for i, word := range []string{"data\n", "oops\n"} {
		got, err := os.ReadFile(paths[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Repeat(word, runs); string(got) != want {
			t.Errorf("descriptor %d got %d bytes, want %d times %q", i+1, len(got), runs, word)
		}
	}
}

func TestNoDescriptorLeaks(t *testing.T) {
	testenv.NeedUserNS(t)
	const show = "n=3; while [ $n -lt 300 ]; do [ -e /proc/self/fd/$n ] && echo $n; n=$((n+1)); done; exit 0"
	var own []int
	for _, at := range []int{40, 41, 255, 299} {
		n, err := unix.FcntlInt(null(t).Fd(), unix.F_DUPFD, at)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, n)
	}
	defer func() {
		for _, n := range own {
			unix.Close(n)
		}
	}()
	each(t, func(t *testing.T, k kind, l *starter) {
		if out, _ := output(t, l, script(k, shStep(show))); out != "" {
			t.Errorf("the command has the descriptors %q", strings.Fields(out))
		}
	})
	// The test sees what it looks for: os/exec passes them on.
	inherited, err := exec.Command("/bin/sh", "-c", show).Output()
	if err != nil || !strings.Contains(string(inherited), "255\n") {
		t.Errorf("%v: %q shows no inherited descriptor", err, inherited)
	}
}
