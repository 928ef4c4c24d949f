// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestJoin has the first task write itself into an open list before anything else
// happens, also from a new user namespace. A pipe takes what the kernel would get.
func TestJoin(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		r, w := pipe(t)
		s := script(k, shStep(`:`))
		s.Steps = append([]Step{{Op: OpJoin, From: 1}}, s.Steps...)
		n := null(t)
		files := Files{Stdin: n, Stdout: n, Stderr: n, Join: []*os.File{w}}
		p, err := l.StartWith(s, files)
		if err != nil {
			t.Fatal(err)
		}
		finishAll(t, p)
		w.Close()
		var b [8]byte
		if n, err := r.Read(b[:]); err != nil || string(b[:n]) != "0" {
			t.Errorf("%q, %v", b[:n], err)
		}
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		files.Join[0] = full
		_, err = l.StartWith(s, files)
		var step *StepError
		if !errors.As(err, &step) || step.Index != 0 || step.Errno != unix.ENOSPC {
			t.Errorf("a list that takes no task: %v", err)
		}
		var bad *ScriptError
		if _, err := l.Start(s, n, n, n); !errors.As(err, &bad) {
			t.Errorf("no list: %v", err)
		}
	})
}

// TestAffinity keeps a command to one processor.
func TestAffinity(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "grep")
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	first := 0
	for !own.IsSet(first) {
		first++
	}
	mask := make([]byte, first/8+1)
	mask[first/8] = 1 << (first % 8)
	each(t, func(t *testing.T, k kind, l *starter) {
		got, _ := output(t, l, script(k, shStep(`grep Cpus_allowed_list /proc/self/status`),
			Step{Op: OpAffinity, Data: mask}))
		if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n", first); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	for _, data := range [][]byte{nil, make([]byte, 2048)} {
		n := null(t)
		var bad *ScriptError
		if _, err := launcher(t).Start(script(plain, shStep(`:`), Step{Op: OpAffinity, Data: data}), n, n,
			n); !errors.As(err, &bad) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

// unifiedGroup makes a group of version 2 for one test.
func unifiedGroup(t *testing.T) string {
	t.Helper()
	testenv.NeedRoot(t)
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
			continue
		}
		dir := filepath.Join(root, fmt.Sprintf("sallyport-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			testenv.Lack(t, testenv.Cgroups, err.Error())
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	testenv.Lack(t, testenv.Cgroups, "no hierarchy of version 2 is mounted")
	return ""
}

// TestIntoCgroup starts commands in a group of version 2, by both calls.
func TestIntoCgroup(t *testing.T) {
	dir := unifiedGroup(t)
	directory, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	each(t, func(t *testing.T, k kind, l *starter) {
		s := script(k, shStep(`read line; exit 0`))
		r, w := pipe(t)
		_ = r.Fd() // makes it block, as the shell expects
		n := null(t)
		p, err := l.StartWith(s, Files{Stdin: r, Stdout: n, Stderr: n, Cgroup: directory})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(strings.Fields(string(b))) != 2 ||
			!strings.Contains(string(b), strconv.Itoa(p.PID())) {
			t.Errorf("in the group are %q, %v; the reaper is %d", b, err, p.PID())
		}
		gone := make(chan struct{})
		p.OnCollected(func() { close(gone) })
		w.Close()
		if st := finishAll(t, p); st.ExitStatus() != 0 {
			t.Errorf("exit %d", st.ExitStatus())
		}
		<-gone
	})
	gone, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	for _, old := range []bool{false, true} {
		l := launcher(t)
		l.old.Store(old)
		s := script(own, shStep(`:`))
		n := null(t)
		var no *CgroupError // the directory is no group
		if _, err := l.StartWith(s, Files{Stdin: n, Stdout: n, Stderr: n,
			Cgroup: gone}); !errors.As(err, &no) {
			t.Errorf("old %v: %v", old, err)
		}
	}
}

// TestUsage has the reaper tell what its tree used, orphans included, and when the
// tree is killed as well. A reaper that was killed itself tells nothing.
func TestUsage(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const busy = `i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done`
	each(t, func(t *testing.T, k kind, l *starter) {
		n := null(t)
		spent := func(text string, kill bool) time.Duration {
			r, w := pipe(t)
			defer r.Close()
			p, err := l.Start(script(k, shStep(text)), n, w, n)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			var b [2]byte
			if _, err := r.Read(b[:]); err != nil {
				t.Fatal(err)
			}
			if kill {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					if st, err := p.Wait(); err != nil || st.Signal() != unix.SIGKILL {
						t.Errorf("the killed command: %#x, %v", st, err)
					}
				}()
				if err := p.KillTree(10 * time.Second); err != nil {
					t.Error(err)
				}
				<-ended
			}
			if err := p.WaitAll(); err != nil {
				t.Fatal(err)
			}
			u := p.Usage()
			if !u.Known || u.User < 0 || u.System < 0 {
				t.Errorf("%q: %+v", text, u)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			return u.User + u.System
		}
		idle := spent(`echo`, false)
		work := spent(busy+`; echo`, false)
		orphan := spent(`(`+busy+`; echo) & exec true`, false)
		killed := spent(busy+`; echo; exec sleep 60`, true)
		for name, got := range map[string]time.Duration{"work": work, "orphan": orphan, "killed": killed} {
			if got < 3*time.Millisecond || got < 2*idle {
				t.Errorf("%s took %v, an idle command %v", name, got, idle)
			}
		}
		if k == plain {
			return
		}
		p := start(t, l, script(k, shStep(`sleep 60`)))
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if err := p.WaitAll(); err != nil {
			t.Error(err)
		}
		if u := p.Usage(); u.Known {
			t.Errorf("of a killed reaper: %+v", u)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStorage: what was written is known.
func TestStorage(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	l := launcher(t)
	n := null(t)
	p, err := l.Start(script(own, shStep(`head -c 4194304 /dev/zero >`+dir+`/f`)), n, n, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitAll(); err != nil {
		t.Fatal(err)
	}
	u := p.Usage()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	const onDisk = 4 << 20
	switch {
	case !u.Known:
		t.Error("it is not known")
	// counted elsewhere, or nowhere
	case st.Type == unix.TMPFS_MAGIC || st.Type == unix.OVERLAYFS_SUPER_MAGIC:
	case u.Written < onDisk || u.Written > 2*onDisk:
		t.Errorf("%d bytes written", u.Written)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
