// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// prefork begins a preforked task.
func prefork(t testing.TB, l *starter, ns Namespaces) *Preforked {
	t.Helper()
	pre := l.Prefork(ns, nil, Files{})
	if pre == nil {
		t.Fatal("no preforked task")
	}
	return pre
}

// waits returns when a preforked task waits for its script.
func waits(t testing.TB, pre *Preforked) {
	t.Helper()
	for {
		select {
		case <-pre.over:
			t.Fatal("the task has ended")
		default:
		}
		// No task is woken before it waits. A wake that it does not get is lost;
		// after one that it gets it finds nothing and waits again.
		n, _, _ := unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pre.word)), 129, 1)
		if n == 1 {
			return
		}
		runtime.Gosched()
	}
}

// TestPreforkUsed: the task that waited is the one that runs the script.
func TestPreforkUsed(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			l := launcher(t)
			s := script(k.kind, shStep("exit 7"))
			pre := prefork(t, l, s.Namespaces)
			waits(t, pre)
			n := null(t)
			p, err := l.StartFrom(pre, s, n, n, n)
			if err != nil {
				t.Fatal(err)
			}
			if int64(p.PID()) != pre.pid {
				t.Errorf("task %d runs, and %d waited", p.PID(), pre.pid)
			}
			pre.Drop() // nothing
			if st := finishAll(t, p); st.ExitStatus() != 7 {
				t.Errorf("status %#x", uint32(st))
			}
		})
	}
	wantNoChildren(t)
}

// TestPreforkOwnFiles: a task that shares this process's descriptors has a table of its
// own before it touches one. It gets those that were opened after it was cloned.
func TestPreforkOwnFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("later "), 0o600); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	var was [3]string
	for i := range was {
		was[i], _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", i))
	}
	for range 20 {
		s := script(walled, shStep(`cat; echo "$0"; ls /proc/self/fd | wc -l`))
		pre := prefork(t, l, s.Namespaces)
		waits(t, pre)
		in, err := os.Open(text)
		if err != nil {
			t.Fatal(err)
		}
		out, w := pipe(t)
		p, err := l.StartFrom(pre, s, in, w, w)
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
		w.Close()
		got, err := io.ReadAll(out)
		out.Close()
		finishAll(t, p)
		if string(got) != "later sh\n4\n" || err != nil { // three, and the one that ls lists by
			t.Errorf("%q, %v", got, err)
		}
	}
	for i := range was {
		if now, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", i)); now != was[i] {
			t.Errorf("descriptor %d was %s and is %s", i, was[i], now)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoFiles(t, before)
	wantNoChildren(t)
}

// TestPreforkDropped: nothing is left of a task that is dropped.
func TestPreforkDropped(t *testing.T) {
	testenv.NeedUserNS(t)
	before := openFiles(t)
	l := new(starter)
	for i := range 50 {
		pre := prefork(t, l, NewUser|NewPID|NewNet)
		if i%2 == 0 {
			waits(t, pre)
		}
		pre.Drop()
		pre.Drop()
	}
	var none *Preforked
	none.Drop()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l.Prefork(NewUser, nil, Files{}) != nil {
		t.Error("a closed launcher begins one")
	}
	wantNoFiles(t, before)
	wantNoChildren(t)
}

// TestPreforkUnfit: what cannot be used is ended, and the script runs without it.
func TestPreforkUnfit(t *testing.T) {
	testenv.NeedUserNS(t)
	s := script(own, shStep("exit 3"))
	cases := []struct {
		name  string
		begin func(t *testing.T, l *starter) *Preforked
	}{
		{"other namespaces", func(t *testing.T, l *starter) *Preforked { return prefork(t, l, NewUser|NewPID|NewNet) }},
		{"other first steps", func(t *testing.T, l *starter) *Preforked {
			pre := l.Prefork(s.Namespaces, []Step{s.Steps[0], {Op: OpNoNewPrivs}}, Files{})
			waits(t, pre)
			return pre
		}},
		{"first steps that none can perform", func(_ *testing.T, l *starter) *Preforked {
			return l.Prefork(s.Namespaces, s.Steps[:2], Files{})
		}},
		{"killed", func(t *testing.T, l *starter) *Preforked {
			pre := prefork(t, l, s.Namespaces)
			waits(t, pre)
			if err := unix.PidfdSendSignal(int(pre.pidfd), unix.SIGKILL, nil, 0); err != nil {
				t.Fatal(err)
			}
			<-pre.over
			return pre
		}},
		{"refused", func(t *testing.T, l *starter) *Preforked { return prefork(t, l, 1<<63) }}, // not a flag of clone3(2)
		{"failed by itself", func(t *testing.T, l *starter) *Preforked {
			finishAll(t, start(t, l, s)) // so that self is there
			gone := l.self
			l.self = 1 << 20 // ppoll(2) finds that to be an event
			pre := prefork(t, l, s.Namespaces)
			<-pre.over
			l.self = gone
			return pre
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := launcher(t)
			pre := c.begin(t, l)
			n := null(t)
			p, err := l.StartFrom(pre, s, n, n, n)
			if err != nil {
				t.Fatal(err)
			}
			if pre != nil && int64(p.PID()) == pre.pid {
				t.Error("it was used")
			}
			if st := finishAll(t, p); st.ExitStatus() != 3 {
				t.Errorf("status %#x", uint32(st))
			}
		})
	}
	wantNoChildren(t)
}

// TestPreforkFirstSteps: the task has performed them while it waits, and what they took away
// stays away. Of a script that begins with them the rest is lowered.
func TestPreforkFirstSteps(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	first := []Step{
		{Op: OpDieWithParent}, {Op: OpSecureBits, Value: 0xcf},
		{Op: OpDropBounding, Value: 38}, {Op: OpClearAmbient}, {Op: OpNoNewPrivs},
	}
	s := script(own, Step{Op: OpExec, Path: "/bin/cat", Argv: []string{"cat", "/proc/self/status"}})
	s.Steps = append(slices.Clone(first), s.Steps[1:]...)
	pre := l.Prefork(s.Namespaces, first, Files{})
	waits(t, pre)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pidOf(t, pre.pidfd)))
	if err != nil || statusField(string(status), "NoNewPrivs") != "1" {
		t.Errorf("while it waits: %v, %s", err, status)
	}
	low, err := lower(s, fds{}, false, len(first))
	if err != nil || low.origin[0].step != len(first) {
		t.Errorf("%v: the script goes on with step %d, and %d are done", err, low.origin[0].step, len(first))
	}
	r, w := pipe(t)
	n := null(t)
	p, err := l.StartFrom(pre, s, n, w, n)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	out, err := io.ReadAll(r)
	finishAll(t, p)
	if int64(p.PID()) != pre.pid || err != nil || statusField(string(out), "NoNewPrivs") != "1" ||
		strings.Trim(statusField(string(out), "CapBnd")[8:], "0") != "" {
		t.Errorf("process %d of %d, %v, %s", p.PID(), pre.pid, err, out)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoChildren(t)
}

// pidOf is the process of a pidfd.
func pidOf(t *testing.T, pidfd int32) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, rest, ok := strings.Cut(string(b), "\nPid:"); ok {
		_, err = fmt.Sscan(rest, &pid)
	}
	if err != nil || pid <= 0 {
		t.Fatalf("%v, %s", err, b)
	}
	return pid
}

// TestPreforkErrors: a failed step is reported as without a preforked task.
func TestPreforkErrors(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	n := null(t)
	s := script(own, shStep("exit 0"), Step{Op: OpChdir, Path: "/nowhere"})
	_, err := l.StartFrom(prefork(t, l, s.Namespaces), s, n, n, n)
	_, plainErr := l.Start(s, n, n, n)
	if err == nil || plainErr == nil || err.Error() != plainErr.Error() {
		t.Errorf("%v, and without %v", err, plainErr)
	}
	if _, err := l.StartFrom(prefork(t, l, s.Namespaces), &Script{Namespaces: s.Namespaces}, n, n,
		n); err == nil {
		t.Error("an empty script ran")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoChildren(t)
}

// TestPreforkFrontEndKilled: what waits for its script goes with the front end.
func TestPreforkFrontEndKilled(t *testing.T) {
	testenv.NeedUserNS(t)
	killFrontEnd(t, "prefork")
}

// helperPrefork preforks a task and waits to be killed.
func helperPrefork([]string) int {
	var l starter
	pre := l.Prefork(NewUser|NewPID|NewMount, nil, Files{})
	if pre == nil {
		return 2
	}
	for {
		if n, _, _ := unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&pre.word)), 129, 1); n == 1 {
			break
		}
	}
	fmt.Println("ready")
	for {
		_ = unix.Pause()
	}
}

// TestPreforksAtOnce uses and drops preforked tasks in many goroutines, while garbage is
// collected and stacks grow. Others than the first ones get none.
func TestPreforksAtOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	collectGarbage(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	used := 0
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				s := script(own, shStep(fmt.Sprintf("exit %d", j)))
				pre := l.Prefork(s.Namespaces, nil, Files{})
				grow(j)
				if (i+j)%3 == 0 {
					pre.Drop()
				}
				n := null(t)
				p, err := l.StartFrom(pre, s, n, n, n)
				if err != nil {
					t.Error(err)
					return
				}
				if pre != nil && int64(p.PID()) == pre.pid {
					mu.Lock()
					used++
					mu.Unlock()
				}
				if st := finishAll(t, p); st.ExitStatus() != j {
					t.Errorf("status %#x, want %d", uint32(st), j)
				}
			}
		})
	}
	wg.Wait()
	if used == 0 {
		t.Error("no preforked task was used")
	}
}

// TestPreforkNotIdle: what no script comes for is not begun when others are under way.
func TestPreforkNotIdle(t *testing.T) {
	l := launcher(t)
	var heads []*Preforked
	for range runtime.GOMAXPROCS(0) {
		heads = append(heads, prefork(t, l, 0))
	}
	if pre := l.Prefork(0, nil, Files{}); pre != nil {
		pre.Drop()
		t.Error("one more than there are processors")
	}
	for _, pre := range heads {
		pre.Drop()
	}
	l2 := launcher(t)
	l2.old.Store(true)
	if l2.Prefork(0, nil, Files{}) != nil {
		t.Error("by the plain clone")
	}
}
