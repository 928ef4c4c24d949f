// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// early is a script whose second task can wait for the rest of it.
func early(last Step, extra ...Step) (s *Script, first []Step) {
	first = []Step{{Op: OpDieWithParent}, {Op: OpNoNewPrivs}, {Op: OpCaps, Value: 1 << 8}, {Op: OpStartCommand}}
	s = &Script{Namespaces: NewUser | NewPID, Steps: append(slices.Clone(first), second(last, extra...)...)}
	return s, first
}

// commandWaits returns the second task of a preforked one when it waits.
func commandWaits(t *testing.T, pre *Preforked) (pid int) {
	t.Helper()
	<-pre.over
	reaper := pidOf(t, pre.pidfd)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", reaper, reaper))
	if err == nil {
		_, err = fmt.Sscan(string(b), &pid)
	}
	if err != nil {
		t.Fatalf("no task waits: %v, %q", err, b)
	}
	return pid
}

// TestPreforkCommand: the second task waits below its reaper, and runs the script, once.
func TestPreforkCommand(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	held, other := null(t), null(t)
	tests := []struct {
		name     string
		disturb  func(t *testing.T, pre *Preforked)
		hold     []*os.File // of the script
		used     bool
		failures []Step
	}{
		{"used", func(t *testing.T, pre *Preforked) { commandWaits(t, pre) }, []*os.File{nil, held}, true, nil},
		{"at once", func(*testing.T, *Preforked) {}, nil, true, nil},
		{"holds another file", func(*testing.T, *Preforked) {}, []*os.File{other}, false, nil},
		{"reaper killed", func(t *testing.T, pre *Preforked) { kill(t, pre, pidOf(t, waitedFor(pre))) }, nil, false, nil},
		{"command killed", func(t *testing.T, pre *Preforked) { kill(t, pre, commandWaits(t, pre)) }, nil, false, nil},
		{"dropped", func(_ *testing.T, pre *Preforked) { pre.Drop() }, nil, false, nil},
		{"a step fails", func(t *testing.T, pre *Preforked) { commandWaits(t, pre) }, nil, true, []Step{{Op: OpChdir, Path: "/nowhere"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, before := new(starter), openFiles(t)
			ran := filepath.Join(t.TempDir(), "ran")
			must(t, os.WriteFile(ran, nil, 0o666))
			must(t, os.Chmod(ran, 0o666)) // no user is mapped
			must(t, os.Chmod(filepath.Dir(ran), 0o777))
			s, first := early(shStep("echo once >>"+ran+"; exit 7"), test.failures...)
			pre := l.Prefork(s.Namespaces, first, Files{Hold: []*os.File{held}})
			test.disturb(t, pre)
			p, err := l.Launcher.Start(pre, s, Files{Stdin: held, Stdout: held, Stderr: held, Hold: test.hold})
			var step *StepError
			switch {
			case test.failures != nil:
				if !errors.As(err, &step) || step.Step.Op != OpChdir {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				if (int64(p.PID()) == pre.pid) != test.used {
					t.Errorf("task %d runs, and %d waited", p.PID(), pre.pid)
				}
				if st := finishAll(t, p); st.ExitStatus() != 7 {
					t.Errorf("status %#x", uint32(st))
				}
				if b, err := os.ReadFile(ran); string(b) != "once\n" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
			}
			must(t, l.Close())
			if now := openFiles(t); now > before {
				t.Errorf("%d descriptors, before %d", now, before)
			}
			wantNoChildren(t)
		})
	}
}

// waitedFor returns the handle of a reaper whose command waits.
func waitedFor(pre *Preforked) int32 {
	<-pre.over
	return pre.pidfd
}

// kill kills a task and waits until the second one, which is that or goes with it, is gone.
func kill(t *testing.T, pre *Preforked, pid int) {
	t.Helper()
	must(t, unix.Kill(pid, unix.SIGKILL))
	for atomic.LoadUint32(pre.low.commandShares) != 0 {
		runtime.Gosched()
	}
}

// TestPreforkCommandAlone: without a process namespace, with which it ends, no command waits.
func TestPreforkCommandAlone(t *testing.T) {
	l := new(starter)
	_, first := early(shStep("exit 0"))
	if pre := l.Prefork(NewUser, first, Files{}); pre != nil {
		<-pre.over
		if pre.pid != 0 {
			t.Error("one waits")
		}
		pre.Drop()
	}
	must(t, l.Close())
	wantNoChildren(t)
}

// TestPreforkCommandDropped: nothing is left of tasks that are dropped at any moment.
func TestPreforkCommandDropped(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	before := openFiles(t)
	l := new(starter)
	s, first := early(shStep("exit 0"))
	for i := range 50 {
		pre := l.Prefork(s.Namespaces, first, Files{Hold: []*os.File{null(t)}})
		if i%2 == 0 {
			commandWaits(t, pre)
		}
		pre.Drop()
		pre.Drop()
	}
	must(t, l.Close())
	if now := openFiles(t); now > before+50 { // the null devices
		t.Errorf("%d descriptors, before %d", now, before)
	}
	wantNoChildren(t)
}

// TestPreforkCommandFrontEndKilled: reaper and command go with the front end.
func TestPreforkCommandFrontEndKilled(t *testing.T) {
	testenv.NeedUserNS(t)
	killFrontEnd(t, "prefork-command")
}

// helperPreforkCommand preforks a command's task and waits to be killed.
func helperPreforkCommand([]string) int {
	var l starter
	s, first := early(shStep("exit 0"))
	pre := l.Prefork(s.Namespaces, first, Files{})
	if pre == nil {
		return 2
	}
	<-pre.over
	fmt.Println("ready")
	for {
		_ = unix.Pause()
	}
}

// TestStandby: from the third preforked task on a thread stands by for it, and no longer than the launcher is open.
func TestStandby(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := new(starter)
	standsBy := func() *standby {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.standby
	}
	for i := range 6 {
		s := standsBy()
		for i >= 2 && s == nil {
			runtime.Gosched()
			s = standsBy()
		}
		pre := prefork(t, l, NewUser|NewPID)
		if i >= 2 && pre.task != &s.task {
			t.Errorf("%d: another thread cloned it", i)
		}
		if i%2 == 0 {
			waits(t, pre)
		}
		pre.Drop()
	}
	for standsBy() == nil {
		runtime.Gosched()
	}
	// The runtime waits until all threads have done it. Programs that were built with cgo have no such call.
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != 0 && errno != syscall.ENOTSUP {
		t.Error(errno)
	}
	if pre := l.Prefork(1<<63, nil, Files{}); pre != nil { // not a flag of clone3(2)
		pre.Drop()
	}
	if pre := l.Prefork(NewUser, []Step{{Op: OpMapUser}}, Files{}); pre != nil { // nothing to clone
		pre.Drop()
	}
	must(t, l.Close())
	wantNoChildren(t)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
