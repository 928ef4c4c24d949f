// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// startTree starts a shell that prints a line when its tree is complete. The test kills
// the shell; what it has started sees the end of its input.
func startTree(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	c := sh(script)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = stdin.Close()
		_ = c.Wait()
	})
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c
}

// names returns the names of members.
func names(members []Member) string {
	var out []string
	for _, m := range members {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func TestBelow(t *testing.T) {
	root := startTree(t, "exec 3<&0; (cat <&3 >/dev/null; :) & ( (cat <&3 >/dev/null; :); :) & echo; wait").Process.Pid
	var found []Member
	complete := func() bool { return len(found) == 5 && strings.Count(names(found), "cat") == 2 }
	for begin := time.Now(); !complete() && time.Since(begin) < enough; { // the shells start cat on their own
		found = Below(root)
	}
	// Two shells below the root, then a cat and a shell, then a cat.
	if len(found) != 5 || found[0].Parent != root || found[1].Parent != root || found[4].Name != "cat" {
		t.Fatalf("found %+v", found)
	}
	if all := names(Below(os.Getpid())); strings.Count(all, "cat") != 2 || strings.Count(all, "sh") != 4 {
		t.Errorf("below this process: %s", all)
	}
	if n := len(PIDsBelow(root)); n != 5 {
		t.Errorf("%d PIDs", n)
	}
	last := found[4]
	other := last
	other.start++
	other.Signal(syscall.SIGKILL) // the PID was reused
	if now, ok := ReadMember(last.PID); !ok || now != last {
		t.Errorf("another process with the same PID was signaled: %+v, %v", now, ok)
	}
	last.Signal(syscall.SIGKILL)
	for begin := time.Now(); strings.Count(names(Below(root)), "cat") != 1; {
		if time.Since(begin) > enough {
			t.Fatalf("left: %s", names(Below(root)))
		}
	}
}

// TestReadMember checks names that look like the fields of the file.
func TestReadMember(t *testing.T) {
	link := t.TempDir() + "/a) Z 1 (b"
	if err := os.Symlink("/bin/cat", link); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(link)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if m, ok := ReadMember(c.Process.Pid); !ok || m.Name != "a) Z 1 (b" || m.Parent != os.Getpid() ||
		m.Ended || m.start == 0 {
		t.Errorf("%+v, %v", m, ok)
	}
	_ = stdin.Close()
	poll := func() (m Member, ok bool) {
		for begin := time.Now(); !m.Ended && time.Since(begin) < enough; {
			m, ok = ReadMember(c.Process.Pid)
		}
		return m, ok
	}
	if m, ok := poll(); !ok || !m.Ended {
		t.Errorf("a zombie: %+v, %v", m, ok)
	}
	if found := Below(os.Getpid()); len(found) != 0 {
		t.Errorf("the zombie is listed: %+v", found)
	}
	_ = c.Wait()
	if m, ok := ReadMember(c.Process.Pid); ok {
		t.Errorf("a collected process: %+v", m)
	}
}

// fakeReaper is the root of a tree that answers as the test says.
type fakeReaper struct {
	pid          int
	there, empty bool
}

func (r *fakeReaper) PID() int                 { return r.pid }
func (r *fakeReaper) Empty(time.Duration) bool { return r.empty || len(Below(r.pid)) == 0 }

func (r *fakeReaper) WhileThere(f func()) bool {
	if r.there {
		f()
	}
	return r.there
}

func TestKillBelow(t *testing.T) {
	const script = "exec 3<&0; for i in 1 2 3; do (trap '' TERM HUP INT; cat <&3 >/dev/null; :) & done; echo; wait"
	ended, running := func() bool { return true }, func() bool { return false }
	t.Run("the command runs", func(t *testing.T) {
		root := startTree(t, "trap : CHLD; "+script+"; read -r x")
		if err := KillBelow(&fakeReaper{pid: root.Process.Pid, there: true}, running); err != nil {
			t.Error(err)
		}
		if found := Below(root.Process.Pid); len(found) > 0 {
			t.Errorf("left: %+v", found)
		}
	})
	t.Run("the command has ended", func(t *testing.T) {
		root := startTree(t, script+"; read -r x")
		if err := root.Process.Signal(unix.SIGSTOP); err != nil { // it is continued, or nothing is collected
			t.Fatal(err)
		}
		if err := KillBelow(&fakeReaper{pid: root.Process.Pid, there: true}, ended); err != nil {
			t.Error(err)
		}
		if found := Below(root.Process.Pid); len(found) > 0 {
			t.Errorf("left: %+v", found)
		}
	})
	t.Run("the reaper says that nothing is left", func(t *testing.T) {
		root := startTree(t, script).Process.Pid
		if err := KillBelow(&fakeReaper{pid: root, there: true, empty: true}, ended); err != nil {
			t.Error(err)
		}
	})
	t.Run("the reaper was collected", func(t *testing.T) {
		root := startTree(t, script).Process.Pid
		if err := KillBelow(&fakeReaper{pid: root}, ended); err != nil {
			t.Error(err)
		}
		if found := Below(root); len(found) < 3 {
			t.Errorf("without a reaper processes were killed, left: %+v", found)
		}
	})
}

func TestSurvivorsBelow(t *testing.T) {
	const n = 22
	root := startTree(t, "exec 3<&0; i=0; while [ $i -lt 22 ]; do cat - "+strings.Repeat("/dev/null ", 40)+
		" >/dev/null <&3 & i=$((i+1)); done; echo; wait").Process.Pid
	complete := func(s []executor.Survivor) bool {
		return len(s) == n && !slices.ContainsFunc(s[:20],
			func(s executor.Survivor) bool { return !strings.HasPrefix(s.Command, "cat -") })
	}
	var found []executor.Survivor
	for begin := time.Now(); !complete(found) && time.Since(begin) < enough; {
		found = SurvivorsBelow(root)
	}
	if len(found) != n {
		t.Fatalf("%d survivors, want %d", len(found), n)
	}
	for i, s := range found {
		if (s.Command != "") != (i < 20) || len(s.Command) > executor.CommandShown || i < 20 &&
			!strings.HasPrefix(s.Command, "cat - /dev/null") {
			t.Errorf("survivor %d: %+v", i, s)
		}
	}
}
