// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bwrapArena is an arena at the level of the system's bubblewrap.
func bwrapArena(t *testing.T) *arena {
	t.Helper()
	a := atLevel(t, plan.LevelBwrap)
	if _, lack := a.host.findBwrap(); lack != nil {
		testenv.Lack(t, testenv.Programs, lack.Error())
	}
	return a
}

// TestGroupsV1: where control groups have version 1, a command sees its groups and the roots of their
// mounts as they are outside: Java's management fails where they do not match.
func TestGroupsV1(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for level, arenaOf := range map[string]func(*testing.T) *arena{
		"native": func(t *testing.T) *arena { return newArena(t) }, "bubblewrap": bwrapArena,
	} {
		t.Run(level, func(t *testing.T) {
			a := arenaOf(t)
			a.host.Facts().GroupsV1 = true
			look := sh("cat /proc/self/cgroup; while read -r _ _ _ root at _; do" +
				" case $at in /sys/fs/cgroup*) echo $root $at;; esac; done </proc/self/mountinfo")
			outside, err := exec.Command(look[0], look[1:]...).Output()
			must(t, err)
			if res := mustRun(t, a, &job{args: look}); res.out != string(outside) {
				t.Errorf("inside:\n%s\noutside:\n%s", res.out, outside)
			}
		})
	}
}

func TestBwrapLevel(t *testing.T) {
	testenv.RunAsOrdinary(t)
	bwrapArena(t)
	everyAttack(t, plan.LevelBwrap, []gap{
		{"metadata", byRoot, "dev-change"},
		{"named-pipes", "", "pipe-outside"},
		{"first-process", "", "proc-1 memory-race read-memory-1"},
		// A link to what is hidden, a session that bubblewrap leads, and bits that
		// say what no_new_privs says.
		{"", "", "dev-list session secure-bits"},
	})
}

func TestBwrapOrdinaryWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	cases := []struct {
		name, line, want string
		code             int
	}{
		{"workspace", `echo hi >x && mkdir -p a/b && mv x a/b/y && ln a/b/y z && cat z && rm -r a z`, "hi", 0},
		{"private /tmp", `echo tmp >/tmp/x && cat /tmp/x`, "tmp", 0},
		{"devices", `echo x >/dev/null && head -c 3 /dev/zero | wc -c && test -c /dev/tty`, "3", 0},
		{"shared memory", `echo x >/dev/shm/x && cat /dev/shm/x`, "x", 0},
		{"terminal of its own", `command -v script >/dev/null || exit 0; script -qec 'tty >/dev/null' /dev/null`, "", 0},
		{"exit code", `exit 42`, "", 42},
		{"exit code of bubblewrap's own", `exit 1`, "", 1},
		{"killed by itself", `kill -TERM $$`, "", 143},
		{"where", `pwd | sed 's/.*\///'`, "ws", 0},
		{"environment", `echo "$A|$LD_PRELOAD"`, "a b\n c|", 0},
		{"descriptors", `ls /proc/self/fd | wc -l`, "4", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(c.line), env: []string{"PATH=/usr/bin:/bin", "A=a b\n c"}})
			if res.code != c.code || trimmed(res.out) != c.want {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestBwrapFailure: what bubblewrap cannot build is an error, and not a command
// that ended with its exit code.
func TestBwrapFailure(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	nameAll(t, a.ws)
	res, err := a.run(t, &job{args: sh(`echo ran`),
		change: func(*plan.Plan) { must(t, os.Rename(a.ws, a.base+"/gone")) }})
	if err != nil {
		t.Fatal(err)
	}
	if res.lost == nil || !strings.Contains(res.lost.Error(), "did not run") ||
		strings.Contains(res.out, "ran") {
		t.Errorf("%+v", res)
	}
}

// TestBwrapStdio: files come through pipes, whole and in order.
func TestBwrapStdio(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	text := strings.Repeat("0123456789abcde\n", 1<<14)
	write(t, a.out+"/in", text)
	in, err := os.Open(a.out + "/in")
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(a.out+"/result", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	must(t, err)
	defer out.Close()
	res := mustRun(t, a, &job{args: sh(`cat; echo evil >/proc/self/fd/0`), stdin: in, stdout: out})
	if b, err := os.ReadFile(a.out + "/result"); err != nil || string(b) != text {
		t.Errorf("%d bytes of %d, %v: %+v", len(b), len(text), err, res)
	}
	if b, err := os.ReadFile(a.out + "/in"); err != nil || string(b) != text {
		t.Errorf("the input was changed: %v", err)
	}
	dir, err := os.Open(a.out)
	must(t, err)
	defer dir.Close()
	if _, err := a.run(t, &job{args: sh(`:`), stdin: dir}); err == nil ||
		!strings.Contains(err.Error(), "pipe") {
		t.Errorf("a directory as input: %v", err)
	}
}

// TestBwrapUnreadInput: a command that does not read its input ends all the same.
func TestBwrapUnreadInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	f, err := os.Open("/dev/zero")
	must(t, err)
	defer f.Close()
	if res := mustRun(t, a, &job{args: sh(`echo done`), stdin: f}); trimmed(res.out) != "done" {
		t.Errorf("%+v", res)
	}
}

func TestBwrapDenied(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	must(t, os.Mkdir(a.ws+"/hidden", 0o755))
	write(t, a.ws+"/hidden/x", "secret")
	write(t, a.ws+"/.env", "secret")
	p := a.policy().WithEntries(
		sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny),
		sandbox.PathEntry(a.ws+"/hidden", sandbox.LevelDeny), sandbox.GlobEntry(a.ws+"/**/.env"),
		sandbox.PathEntry(a.ws+"/dir", sandbox.LevelRead))
	for _, line := range []string{
		"cat " + a.out + "/other", "ls " + a.out + "/dir", "ls " + a.ws + "/hidden", "cat " + a.ws +
			"/hidden/x", "cat " + a.ws + "/.env",
		"echo x >" + a.ws + "/dir/x", "chmod 777 " + a.ws + "/hidden", "mv " + a.ws + "/hidden " +
			a.ws + "/elsewhere",
	} {
		t.Run(line, func(t *testing.T) {
			if res := mustRun(t, a, &job{args: sh(line), policy: &p}); res.code == 0 ||
				strings.Contains(res.out, "secret") {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestBwrapSignals: a signal reaches the command, which may answer it.
func TestBwrapSignals(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tree := range []bool{false, true} {
		t.Run(map[bool]string{false: "group", true: "tree"}[tree], func(t *testing.T) {
			a := bwrapArena(t)
			ready, w := pipe(t)
			defer ready.Close()
			res := mustRun(t, a, &job{
				args: sh(`trap 'exit 9' TERM; echo ready; while :; do :; done`), stdout: w,
				stdin: neverEnds(t),
				during: func(c *Child) {
					w.Close()
					if _, err := ready.Read(make([]byte, 8)); err != nil {
						t.Error(err)
					}
					must(t, c.Signal(syscall.SIGTERM, tree))
				},
			})
			if res.code != 9 || res.lost != nil {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestBwrapOwnProcesses checks that the processes of bubblewrap itself are not survivors,
// also when its status does not tell that the command has ended.
func TestBwrapOwnProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	ready, w := pipe(t)
	defer ready.Close()
	mustRun(t, a, &job{
		args: sh(`sleep 1000 & echo ready; read x`), stdout: w, stdin: neverEnds(t),
		during: func(c *Child) {
			w.Close()
			if _, err := ready.Read(make([]byte, 8)); err != nil {
				t.Error(err)
			}
			left := c.Survivors()
			for _, s := range left {
				if s.Name == "bwrap" {
					t.Errorf("%+v", left)
				}
			}
			if len(left) != 2 {
				t.Errorf("%+v, want the command and its child", left)
			}
			must(t, c.Kill())
		},
	})
}

// neverEnds is an input that has nothing and does not end before t.
func neverEnds(t *testing.T) *os.File {
	t.Helper()
	r, w := pipe(t)
	must(t, syscall.SetNonblock(int(r.Fd()), false)) // a read of it blocks
	t.Cleanup(func() { r.Close(); w.Close() })
	return r
}

func TestBwrapDaemon(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "setsid")
	a := bwrapArena(t)
	r, w := pipe(t)
	defer r.Close()
	if res := mustRun(t, a, &job{args: sh(`setsid sh -c 'sleep 1000' & exit 0`), stdout: w}); res.code != 0 {
		t.Errorf("%+v", res)
	}
	w.Close()
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a survivor still holds its output: %v", err)
	}
}

// TestBwrapKill ends a command that will not.
func TestBwrapKill(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	ready, w := pipe(t)
	defer ready.Close()
	res := mustRun(t, a, &job{args: sh(`trap '' TERM; echo ready; while :; do read x; done`), stdout: w,
		stdin: neverEnds(t), during: func(c *Child) {
			w.Close()
			if _, err := ready.Read(make([]byte, 8)); err != nil {
				t.Error(err)
			}
			must(t, c.Kill())
		}})
	if res.signal != int(syscall.SIGKILL) && res.lost == nil {
		t.Errorf("%+v", res)
	}
}

// cut takes words out of the options that a plan gives to bubblewrap.
func cut(t *testing.T, p *plan.Plan, words ...string) {
	t.Helper()
	part := "\x00" + strings.Join(words, "\x00") + "\x00"
	for i := range p.Script.Steps {
		if s := &p.Script.Steps[i]; s.Op == launch.OpMemory && strings.Contains("\x00"+string(s.Data), part) {
			s.Data = []byte(strings.TrimPrefix(strings.Replace("\x00"+string(s.Data), part,
				"\x00", 1), "\x00"))
			return
		}
	}
	t.Fatalf("no options %q", words)
}

// TestWithoutBwrapWall takes single walls out and sees what they keep away.
func TestWithoutBwrapWall(t *testing.T) {
	testenv.RunAsOrdinary(t)
	cases := []struct {
		name    string
		words   func(a *arena) []string
		attacks string
	}{
		{"network", func(*arena) []string { return []string{"--unshare-net"} }, "tcp4 tcp6 udp4"},
		{"ipc", func(*arena) []string { return []string{"--unshare-ipc"} }, "shm sem msg"},
		{"filter", func(*arena) []string { return []string{"--seccomp", "5"} }, "unshare-user"},
		{"run", func(*arena) []string { return []string{"--perms", "0755", "--tmpfs", "/run"} }, "run-list"},
		{"private /tmp", func(a *arena) []string { return []string{"--bind", a.host.files.tmp.Path, "/tmp"} }, "see-at"},
		{"protected name", func(a *arena) []string { return []string{"--ro-bind", a.ws + "/.git", a.ws + "/.git"} }, "git-hook"},
		{"denied file", func(a *arena) []string {
			return []string{"--ro-bind", a.host.files.state + "/nothing", a.out + "/other"}
		}, "read-other"},
		{"denied directory", func(a *arena) []string { return []string{"--ro-bind", a.host.files.state + "/none", a.out + "/dir"} }, "list-dir read-deep"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := bwrapArena(t)
			p := a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
				sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
			j := &job{policy: &p}
			kv := surroundingsFor(t, a)
			attacks := strings.Fields(c.attacks)
			for n, v := range a.attack(t, j, attacks, kv...) {
				if v.word != wordDenied {
					t.Errorf("with every wall: %s %v", n, v)
				}
			}
			j.change = func(p *plan.Plan) {
				cut(t, p, c.words(a)...)
				if c.name == "run" {
					cut(t, p, "--remount-ro", "/run")
				}
			}
			for _, n := range attacks {
				if v := a.attack(t, j, []string{n}, kv...)[n]; v.word != wordBreach {
					t.Errorf("without it: %s %v", n, v)
				}
			}
		})
	}
}

// TestBwrapHandOver starts many commands at once, so that bubblewrap is often interrupted in
// the write of its first line: it must not be stopped there.
func TestBwrapHandOver(t *testing.T) {
	a := bwrapArena(t)
	rounds := testenv.Rounds(10, 60)
	stuck := time.AfterFunc(2*patience,
		func() { panic("bubblewrap was stopped while it reported that it began") })
	defer stuck.Stop()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range rounds {
				res, err := a.run(t, &job{args: sh(`sleep 1000 & exit 3`)})
				if err != nil || res.code != 3 || res.survivors != 1 {
					t.Errorf("exit %d with %d survivors, %v", res.code, res.survivors, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
