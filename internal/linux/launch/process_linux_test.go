// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// each runs f for every kind of script, with the call of new kernels, with
// the one of old ones, and with a preforked task.
func each(t *testing.T, f func(t *testing.T, k kind, l *starter)) {
	for _, k := range kinds {
		for _, way := range []string{"", " by plain clone", " preforked"} {
			t.Run(k.name+way, func(t *testing.T) {
				l := launcher(t)
				l.old.Store(strings.Contains(way, "plain clone"))
				l.preforks = strings.Contains(way, "preforked")
				f(t, k.kind, l)
			})
		}
	}
}

// leading are the steps of a script that a preforked task can perform.
func leading(s *Script) []Step {
	n := 0
	for n < len(s.Steps) && mayPrecede(s.Steps[n].Op) {
		n++
	}
	return s.Steps[:n]
}

func TestExitCodes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		for _, code := range []int{0, 1, 2, 127, 255} {
			st := finishAll(t, start(t, l, script(k, shStep(fmt.Sprintf("exit %d", code)))))
			if !st.Exited() || st.ExitStatus() != code {
				t.Errorf("status %#x, want exit code %d", uint32(st), code)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wantNoChildren(t)
	})
}

// survived are the signals whose default action does not end a process.
var survived = map[syscall.Signal]bool{
	unix.SIGCHLD: true, unix.SIGCONT: true, unix.SIGURG: true, unix.SIGWINCH: true,
}

func TestEverySignalDeath(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		for sig := syscall.Signal(1); sig <= 64; sig++ {
			switch sig {
			case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
				continue
			}
			st := finishAll(t, start(t, l, script(k, shStep(fmt.Sprintf("kill -%d $$; exit 5", sig)))))
			if survived[sig] {
				if !st.Exited() || st.ExitStatus() != 5 {
					t.Errorf("signal %d: status %#x, want exit code 5", sig, uint32(st))
				}
				continue
			}
			if !st.Signaled() || st.Signal() != sig {
				t.Errorf("signal %d: status %#x", sig, uint32(st))
			}
		}
	})
}

// ready starts a script whose shell prints a word, and waits for that word.
func ready(t *testing.T, l *starter, k kind, text string) (*Process, *os.File) {
	t.Helper()
	r, w := pipe(t)
	p, err := l.Start(script(k, shStep(text)), null(t), w, w)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	b := make([]byte, 6)
	if n, err := r.Read(b); string(b[:n]) != "ready\n" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
	return p, r
}

// wantEOF waits until no process holds the other end of a pipe any more.
func wantEOF(t *testing.T, r *os.File) {
	t.Helper()
	b := make([]byte, 64)
	if n, err := r.Read(b); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v; want the end", b[:n], err)
	}
}

func TestSignalTargets(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "setsid")
	// A command with one process in its group and one in a session of its own, which says
	// when it is there: before, a signal for the group would be one for it.
	const family = "sleep 1000 & setsid sh -c 'echo ready; exec sleep 1000' & wait; wait"
	cases := []struct {
		name  string
		kinds []kind
		to    Target
		sig   syscall.Signal
		alone bool // what is left must be ended by Kill
	}{
		{"tree by TERM", []kind{own, walled}, ToTree, unix.SIGTERM, false},
		{"tree by KILL", []kind{own, walled}, ToTree, unix.SIGKILL, false},
		{"group by TERM", []kind{own, walled}, ToGroup, unix.SIGTERM, true},
		{"group by KILL", []kind{own, walled}, ToGroup, unix.SIGKILL, true},
		{"command by KILL", []kind{own, walled}, ToCommand, unix.SIGKILL, true},
		{"real-time signal", []kind{own, walled}, ToCommand, 40, true},
		{"last signal", []kind{own, walled}, ToCommand, 64, true},
	}
	for _, c := range cases {
		for _, k := range c.kinds {
			t.Run(fmt.Sprintf("%s/%s", c.name, kinds[k].name), func(t *testing.T) {
				l := launcher(t)
				p, r := ready(t, l, k, family)
				if err := p.Signal(c.sig, c.to); err != nil {
					t.Fatal(err)
				}
				st, err := p.Wait()
				if err != nil || !st.Signaled() || st.Signal() != c.sig {
					t.Errorf("status %#x, %v; want death by %v", uint32(st), err, c.sig)
				}
				if c.alone {
					if err := p.Kill(); err != nil {
						t.Error(err)
					}
				}
				if err := p.WaitAll(); err != nil {
					t.Error(err)
				}
				wantEOF(t, r)
				if again, err := p.Wait(); err != nil || again != st {
					t.Errorf("the second Wait says %#x, %v", uint32(again), err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestGroupWithoutNamespace: where there is no process namespace the reaper
// must outlive a SIGKILL for the group, and report it.
func TestGroupWithoutNamespace(t *testing.T) {
	testenv.RunAsOrdinary(t)
	cases := []struct {
		name string
		end  func(*Process) error
		want syscall.Signal
	}{
		{"Kill", (*Process).Kill, unix.SIGKILL},
		{"KILL to the group", func(p *Process) error { return p.Signal(unix.SIGKILL, ToGroup) }, unix.SIGKILL},
		{"KILL to the tree", func(p *Process) error { return p.Signal(unix.SIGKILL, ToTree) }, unix.SIGKILL},
		{"TERM to the tree", func(p *Process) error { return p.Signal(unix.SIGTERM, ToTree) }, unix.SIGTERM},
		{"many requests at once", func(p *Process) error {
			for range 50 {
				if err := p.Signal(unix.SIGURG, ToGroup); err != nil {
					return err
				}
			}
			return p.Signal(unix.SIGTERM, ToGroup)
		}, unix.SIGTERM},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, r := ready(t, launcher(t), plain, "sleep 1000 & echo ready; wait")
			if err := c.end(p); err != nil {
				t.Fatal(err)
			}
			if st := finishAll(t, p); !st.Signaled() || st.Signal() != c.want {
				t.Errorf("status %#x, want death by %v", uint32(st), c.want)
			}
			wantEOF(t, r)
		})
	}
}

func TestStopAndContinue(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		p, r := ready(t, l, k, `trap "on=1" USR1; echo ready; until test "$on"; do sleep 0.01; done; echo on; kill -9 $$`)
		for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGCONT, unix.SIGSTOP, unix.SIGCONT} {
			if err := p.Signal(sig, ToTree); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Signal(unix.SIGUSR1, ToCommand); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 8)
		if n, err := r.Read(b); string(b[:n]) != "on\n" {
			t.Errorf("read %q, %v", b[:n], err)
		}
		if st := finishAll(t, p); st.Signal() != unix.SIGKILL {
			t.Errorf("status %#x", uint32(st))
		}
	})
}

func TestSignalAfterTheEnd(t *testing.T) {
	l := launcher(t)
	p := start(t, l, script(plain, shStep("exit 0")))
	if err := p.Signal(0, ToGroup); !errors.Is(err, unix.EINVAL) {
		t.Errorf("signal 0 gives %v, want EINVAL", err)
	}
	if err := p.Signal(65, ToGroup); !errors.Is(err, unix.EINVAL) {
		t.Errorf("signal 65 gives %v, want EINVAL", err)
	}
	finishAll(t, p)
	if err := l.Close(); err != nil { // collects the reaper
		t.Error(err)
	}
	for _, to := range []Target{ToGroup, ToTree, ToCommand} {
		if err := p.Signal(unix.SIGTERM, to); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("signal to %d gives %v, want os.ErrProcessDone", to, err)
		}
	}
	if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Kill gives %v, want os.ErrProcessDone", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("the second Close gives %v", err)
	}
}

func TestKillLosesTheStatus(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "setsid")
	for _, k := range []kind{own, walled} {
		t.Run(kinds[k].name, func(t *testing.T) {
			p, r := ready(t, launcher(t), k, "setsid sleep 1000 & echo ready; sleep 1000")
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if st, err := p.Wait(); !errors.Is(err, ErrLost) {
				t.Errorf("Wait gives %#x, %v; want ErrLost", uint32(st), err)
			}
			if err := p.WaitAll(); err != nil {
				t.Error(err)
			}
			wantEOF(t, r)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOrphansKeepTheTree: what the command leaves behind keeps the reaper
// alive, however it left.
func TestOrphansKeepTheTree(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	cases := []struct{ name, text string }{
		{"background", "sleep 1000 & echo ready; exit 3"},
		{"double fork", "(sleep 1000 & ) ; echo ready; exit 3"},
		{"own session", "setsid sh -c 'sleep 1000 & sleep 1000' & echo ready; exit 3"},
	}
	for _, c := range cases {
		for _, k := range kinds {
			t.Run(c.name+"/"+k.name, func(t *testing.T) {
				if strings.Contains(c.text, "setsid") {
					testenv.NeedProgram(t, "setsid")
				}
				l := launcher(t)
				p, r := ready(t, l, k.kind, c.text)
				// WaitAll reads first: it must not keep Wait from the status.
				all := make(chan error, 1)
				go func() { all <- p.WaitAll() }()
				if st, err := p.Wait(); err != nil || st.ExitStatus() != 3 {
					t.Errorf("status %#x, %v; want exit code 3", uint32(st), err)
				}
				select {
				case err := <-all:
					t.Errorf("WaitAll returned %v while an orphan lives", err)
				default:
				}
				if k.kind == plain {
					killBelow(t, p.PID())
				} else if err := p.Kill(); err != nil {
					t.Error(err)
				}
				if err := <-all; err != nil {
					t.Error(err)
				}
				wantEOF(t, r)
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// killBelow kills the children of a process until there are none, as a caller
// does where there is no process namespace.
func killBelow(t *testing.T, pid int) {
	t.Helper()
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil || len(b) == 0 {
			return
		}
		for _, w := range strings.Fields(string(b)) {
			var child int
			if _, err := fmt.Sscan(w, &child); err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(child, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				t.Fatal(err)
			}
		}
	}
}

func TestManyOrphans(t *testing.T) {
	testenv.NeedUserNS(t)
	const text = "i=0; while [ $i -lt %d ]; do : & i=$((i+1)); done; exit 9"
	count := 2000
	if testing.Short() {
		count = 200
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			p := start(t, launcher(t), script(k.kind, shStep(fmt.Sprintf(text, count))))
			if st := finishAll(t, p); st.ExitStatus() != 9 {
				t.Errorf("status %#x, want exit code 9", uint32(st))
			}
		})
	}
}

// TestForgedRequests: requests that the command makes to process 1 reach
// no process outside. They may end the command, which is its own loss.
func TestForgedRequests(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	victim := exec.Command("/bin/sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	outside := []string{fmt.Sprint(victim.Process.Pid), fmt.Sprint(-victim.Process.Pid),
		fmt.Sprint(os.Getpid())}
	for _, args := range [][]string{outside, {"2"}, {"-1"}, {"-2"}, {"1"}, {"0"}} {
		for _, k := range []kind{own, walled} {
			t.Run(strings.Join(args, " ")+"/"+kinds[k].name, func(t *testing.T) {
				p := start(t, launcher(t), script(k, helperStep(t, "queue", args...)))
				st, err := p.Wait()
				if err == nil && !st.Signaled() && st.ExitStatus() != 7 {
					t.Errorf("the helper ended with %#x", uint32(st))
				}
				if err := p.WaitAll(); err != nil {
					t.Error(err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := victim.Process.Kill(); err != nil {
		t.Errorf("the process outside is gone: %v", err)
	}
	var exit *exec.ExitError
	if err := victim.Wait(); !errors.As(err, &exit) || !strings.Contains(exit.Error(), "killed") {
		t.Errorf("the process outside ended with %v, not by our own signal", err)
	}
}

func TestWaitFromManyGoroutines(t *testing.T) {
	p := start(t, launcher(t), script(plain, shStep("sleep 0.01; exit 4")))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if i%2 == 0 {
				if err := p.WaitAll(); err != nil {
					t.Error(err)
				}
				return
			}
			if st, err := p.Wait(); err != nil || st.ExitStatus() != 4 {
				t.Errorf("status %#x, %v; want exit code 4", uint32(st), err)
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhileThere: the processes below a reaper are looked at while its number
// cannot be anybody else's.
func TestWhileThere(t *testing.T) {
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		p, r := ready(t, l, k, "echo ready; read x")
		called := false
		if !p.WhileThere(func() { called = true }) || !called {
			t.Error("a running tree is not there")
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.WaitAll()
		inside, collected := make(chan struct{}), make(chan error, 1)
		go func() {
			<-inside
			collected <- p.collect()
		}()
		there := p.WhileThere(func() {
			close(inside)
			// It has ended, or will, and its number stays its own as long as this lasts.
			for i := 0; i < 50; i++ {
				select {
				case err := <-collected:
					t.Errorf("collected meanwhile, %v", err)
					collected <- err
					return
				default:
					runtime.Gosched()
				}
			}
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID())); err != nil {
				t.Error(err)
			}
		})
		if !there { // killed without a word, and so collected by WaitAll
			close(inside)
		}
		if err := <-collected; err != nil {
			t.Error(err)
		}
		if p.WhileThere(func() { t.Error("called") }) {
			t.Error("a collected reaper is there")
		}
		wantEOF(t, r)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}
