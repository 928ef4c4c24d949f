// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// atLevel makes an arena whose host knows one level only.
func atLevel(t *testing.T, level string) *arena {
	t.Helper()
	a := newArena(t)
	a.host.Only = level
	return a
}

// Whose attack it is: what some of them find depends on the user.
const (
	byRoot     = "root"
	byOrdinary = "ordinary"
	byOwner    = "owner" // of a device: the host lets this user open one
)

// A gap is a wall that a level lacks, with the attacks that get through.
type gap struct{ wall, who, attacks string }

func landlockGaps() []gap {
	return []gap{
		{"metadata", "", "chmod chmod-directory chown fchmod fchmod-proc fchown file-flags fsetxattr futimes setxattr utimes"},
		{"metadata", byRoot, "dev-change"},
		{"own-directories", "", "run-list sys-kernel dev-shm"},
		{"devices", "", "dev-list"},
		{"devices", byOwner, "devices"},
		{"see-processes", "", "list-processes pidfd see-process"},
		{"system-names", "", "proc-secrets ns-cgroup ns-ipc ns-mnt ns-net ns-pid ns-user ns-uts"},
		// What can be gained by capabilities of the bounding set is nothing:
		// no_new_privs stands, and an ordinary user may not empty the set.
		{"", byOrdinary, "cap-bounding secure-bits"},
		{wallProtectedName, "", "git-hook git-config git-chmod git-move git-remove git-cover"},
	}
}

// applies reports whether the attacks of a gap get through for this user.
func (g gap) applies(t *testing.T) bool {
	t.Helper()
	switch g.who {
	case byRoot:
		return os.Geteuid() == 0
	case byOrdinary:
		return os.Geteuid() != 0
	case byOwner:
		return ownsDevice(t)
	}
	return true
}

// ownsDevice reports whether this user can open a device without capabilities, which
// commands do not have.
func ownsDevice(t *testing.T) bool {
	t.Helper()
	result := make(chan bool, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&head, &none[0]); err != nil {
			t.Error(err)
		}
		result <- systemAttacks()["devices"](nil).word == wordBreach
	}()
	return <-result
}

const wallProtectedName = "protected-names"

// noAttacks are in the tables and try nothing forbidden.
func noAttacks() []string {
	return []string{"devices-work", "interfaces", "own-loopback", "pair-stream", "own-path", "mptcp",
		"clone-thread", "tiocsti", "descriptors"}
}

// freshGit makes the repository of an arena anew, for the next attack.
func freshGit(t *testing.T, a *arena) {
	t.Helper()
	must(t, safefile.RemoveTreePath(a.ws+"/.git"))
	must(t, os.MkdirAll(a.ws+"/.git/hooks", 0o755))
	write(t, a.ws+"/.git/config", "[core]\n")
	write(t, a.ws+"/.git/HEAD", "ref: refs/heads/main\n")
}

// TestLandlockLevel performs every attack at the level without namespaces.
func TestLandlockLevel(t *testing.T) {
	testenv.RunAsOrdinary(t)
	everyAttack(t, plan.LevelLandlock, landlockGaps())
}

// everyAttack performs every attack at a level. What gets through is what the
// table of walls says, and nothing else.
func everyAttack(t *testing.T, level string, gaps []gap) {
	t.Helper()
	a := atLevel(t, level)
	home, err := os.UserHomeDir()
	must(t, err)
	kv := append(surroundingsFor(t, a), "home="+home)
	_, lacks, _ := plan.Standing(a.host.Facts(), level)
	open := make(map[string]bool)
	for _, g := range gaps {
		if !g.applies(t) {
			continue
		}
		if g.wall != "" && !slices.ContainsFunc(lacks, func(l plan.Lack) bool { return l.Wall == g.wall }) {
			t.Errorf("the table of walls does not list %s", g.wall)
		}
		for _, n := range strings.Fields(g.attacks) {
			open[n] = true
		}
	}
	all := names(fileAttacks(), linkAttacks(), metaAttacks(), modeAttacks(), mountAttacks(), systemAttacks(),
		processAttacks(),
		ipcAttacks(), networkAttacks(), socketAttacks(), kernelAttacks(), privilegeAttacks(), taskAttacks())
	all = append(all, gitAttacks()...)
	var shut []string
	for _, n := range all {
		switch {
		case slices.Contains(noAttacks(), n):
		case open[n]: // one by one, because what it does may be in the way of others
			freshGit(t, a)
			a.expect(t, wordBreach, &job{}, []string{n}, kv...)
		default:
			shut = append(shut, n)
		}
	}
	freshGit(t, a)
	a.expect(t, wordDenied, &job{}, shut, kv...)
}

// TestLandlockOrdinaryWork is the other side.
func TestLandlockOrdinaryWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := atLevel(t, plan.LevelLandlock)
	cases := []struct{ name, line, want string }{
		{"workspace", `echo hi >x && mkdir -p a/b && mv x a/b/y && ln a/b/y z && cat z && rm -r a z`, "hi"},
		{"rename across directories", `mkdir d e && echo 1 >d/f && mv d/f e/g && cat e/g`, "1"},
		{"temporary directory", `f=$(mktemp) && echo tmp >"$f" && cat "$f" && test "$TMPDIR" = "$TMP"`, "tmp"},
		{"devices", `echo x >/dev/null && head -c 2 /dev/zero | wc -c`, "2"},
		{"standard output by name", `echo out >/dev/stdout`, "out"},
		{"reading", `test -s /etc/passwd && echo read`, "read"},
		{"pipes and jobs", `echo a | cat & wait; echo b | cat`, "a\nb"},
		{"own niceness", `nice -n 5 echo nice`, "nice"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := mustRun(t, a, &job{args: sh(c.line)})
			if res.code != 0 || trimmed(res.out) != c.want {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestLandlockNames: where nothing can be mounted over a name, what appears there
// is denied, or moved away.
func TestLandlockNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	if res := mustRun(t, a, &job{args: sh(`mkdir .codex 2>/dev/null && echo BREACH; echo end`)}); res.out != "end\n" {
		t.Errorf("native: %+v", res)
	}
	a.host.Only = plan.LevelLandlock
	for _, line := range []string{`mkdir .codex && echo evil >.codex/config.toml`,
		`mkdir alt && echo evil >alt/config.toml && mv -T alt .codex`, `echo evil >.codex`} {
		if res := mustRun(t, a, &job{args: sh(line)}); res.lost != nil {
			t.Errorf("%s: %+v", line, res)
		}
		if _, err := os.Lstat(a.ws + "/.codex"); err == nil {
			t.Errorf("%s: it is there", line)
		}
	}
}

// TestLandlockRefusesPolicies: the policy is not made weaker by what exists.
func TestLandlockRefusesPolicies(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := atLevel(t, plan.LevelLandlock)
	cases := []struct {
		name   string
		policy sandbox.Policy
		tmp    string
		want   string
	}{
		{"denied file", a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny)), "", a.out + "/other=deny"},
		{"denied file that is missing", a.policy().WithEntries(sandbox.PathEntry(a.out+"/missing", sandbox.LevelDeny)), "", a.out + "/missing=deny"},
		{"carve-out", a.policy().WithEntries(sandbox.PathEntry(a.ws+"/dir", sandbox.LevelRead)), "", a.ws + "/dir=read"},
		{"carve-out that is missing", a.policy().WithEntries(sandbox.PathEntry(a.ws+"/later", sandbox.LevelRead)), "", a.ws + "/later=read"},
		{"chosen temporary directory", a.policy(), a.out, a.out},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := a.run(t, &job{args: sh(`:`), policy: &c.policy, tmp: c.tmp})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLandlockState: where nothing hides the state directory, no writable root may hold it.
func TestLandlockState(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := atLevel(t, plan.LevelLandlock)
	t.Setenv("HOME", a.ws)
	t.Setenv("XDG_STATE_HOME", a.ws)
	_, err := a.run(t, &job{args: sh(`touch "$0/planted"`, a.ws+"/sallyport")})
	if err == nil || !strings.Contains(err.Error(), "own state") {
		t.Errorf("%v, want the state directory named", err)
	}
	if _, err := os.Lstat(a.ws + "/sallyport/planted"); err == nil {
		t.Error("the state directory was written to")
	}
}

// TestLandlockStdio: a file that was passed for writing takes output, one
// for reading cannot be written through its descriptor.
func TestLandlockStdio(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := atLevel(t, plan.LevelLandlock)
	in, err := os.Open(a.out + "/canary")
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(a.out+"/other", os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	defer out.Close()
	res := mustRun(t, a, &job{args: sh(`cat; echo more >>/dev/stdout; echo evil >/proc/self/fd/0`),
		stdin: in, stdout: out})
	if res.code == 0 || !strings.Contains(res.err, "fd/0") {
		t.Errorf("%+v", res)
	}
	for name, want := range map[string]string{a.out + "/canary": "canary", a.out + "/other": "canarymore\n"} {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

// TestLandlockDaemon: what leaves the process group is found and ended.
func TestLandlockDaemon(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "setsid")
	a := atLevel(t, plan.LevelLandlock)
	r, w := pipe(t)
	defer r.Close()
	res := mustRun(t, a, &job{args: sh(`setsid sh -c 'sleep 1000' & setsid sh -c 'sleep 1000' & exit 0`), stdout: w})
	w.Close()
	if res.code != 0 || res.survivors == 0 {
		t.Errorf("%+v", res)
	}
	must(t, r.SetReadDeadline(time.Now().Add(patience)))
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("a survivor still holds its output: %v", err)
	}
}

// TestKilledFrontEndWeaker: what ends with a killed front end at the weaker levels.
func TestKilledFrontEndWeaker(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct{ name, level, attacks string }{
		{"landlock, command", plan.LevelLandlock, "hold"},
		{"landlock, daemon", plan.LevelLandlock, "daemon,hold"},
		{"bwrap, command", plan.LevelBwrap, "hold"},
		{"bwrap, daemon", plan.LevelBwrap, "daemon,hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := atLevel(t, c.level)
			if lack := a.host.lacks(c.level); lack != nil {
				testenv.Lack(t, testenv.Programs, lack.Error())
			}
			f := startFront(t, a, "hold", c.attacks)
			must(t, f.cmd.Process.Kill())
			_ = f.cmd.Wait()
			must(t, f.out.SetReadDeadline(time.Now().Add(patience)))
			if _, err := io.Copy(io.Discard, f.reader); err != nil {
				t.Errorf("the tree outlived its front end: %v", err)
			}
		})
	}
}

// dropLandlock takes the ruleset out, and the proof that would notice.
func dropLandlock(a *arena, p *plan.Plan) { dropOp(launch.OpLandlock, launch.OpRefuseWrite)(a, p) }

func dropFilter(a *arena, p *plan.Plan) { dropOp(launch.OpSeccomp)(a, p) }

// TestWithoutLandlockWall takes the walls of the level out, one by one, and sees
// what they alone keep away.
func TestWithoutLandlockWall(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, w := range []missingWall{
		{name: "landlock", change: dropLandlock, attacks: "create append pipe-outside"},
		{name: "landlock as root", change: dropLandlock, attacks: "proc-sys", root: true},
		{name: "scope", change: each(noScope), attacks: "kill"},
		{name: "filter", change: dropFilter, attacks: "tcp4 tcp6 udp4 shm sem msg mq"},
	} {
		t.Run(w.name, func(t *testing.T) {
			if w.root {
				testenv.NeedRoot(t)
			}
			a := atLevel(t, plan.LevelLandlock)
			kv := surroundingsFor(t, a)
			attacks := strings.Fields(w.attacks)
			for n, v := range a.attack(t, &w.job, attacks, kv...) {
				if v.word != wordDenied {
					t.Errorf("with every wall: %s %v", n, v)
				}
			}
			w.job.change = func(p *plan.Plan) { w.change(a, p) }
			for _, n := range attacks {
				if v := a.attack(t, &w.job, []string{n}, kv...)[n]; v.word != wordBreach {
					t.Errorf("without %s: %s %v", w.name, n, v)
				}
			}
		})
	}
}

// TestLadder: where a fact is missing for real, the best level that is left is
// taken, and where none is left the sentence names the fact.
func TestLadder(t *testing.T) {
	testenv.RunAsOrdinary(t)
	cases := []struct {
		fact, least string
		level       string // reached
		refuse      string // or why not
	}{
		{"none", "", "native", ""},
		{"none", "landlock", "native", ""},
		{"limit", "native", "", "max_user_namespaces is 0"},
		{"limit", "", "", "max_user_namespaces is 0"},
		{"limit", "landlock", "landlock", ""},
		{"masked-proc", "", "", "covered"},
		{"masked-proc", "landlock", "landlock", ""},
		{"docker-filter", "", "", "system call filter"},
		{"docker-filter", "landlock", "landlock", ""},
		{"old-mounts", "native", "", "system call"},
		{"old-mounts", "", "bwrap", ""},
		{"old-mounts", "landlock", "bwrap", ""},
		{"no-landlock", "native", "", "Landlock"},
		{"no-landlock", "", "bwrap", ""},
	}
	for _, c := range cases {
		t.Run(c.fact+" "+c.least, func(t *testing.T) {
			if c.level == plan.LevelBwrap {
				testenv.NeedProgram(t, "bwrap")
			}
			a := newArena(t)
			unchanged(t, a.out)
			res := nested(t, a, c.fact, c.least)
			if res.Level != c.level || res.Code != 0 || (res.Refuse == "") != (c.refuse == "") ||
				!strings.Contains(res.Refuse, c.refuse) {
				t.Errorf("%+v", res)
			}
			const weaker = "; or accept the level landlock, which has fewer walls"
			if c.refuse != "" && strings.HasSuffix(res.Refuse, weaker) != (c.least == "") {
				t.Errorf("it says %q", res.Refuse)
			}
			if c.refuse != "" && !res.Typed {
				t.Error("the refusal is not typed")
			}
			_, err := os.Lstat(a.ws + "/inside")
			if (err == nil) != (c.refuse == "") {
				t.Errorf("the command's file: %v", err)
			}
			if (len(res.Weaker) == 0) != (c.level == "native" || c.level == "") {
				t.Errorf("weaker: %q", res.Weaker)
			}
		})
	}
}

// TestPreforksEnd: a task that was preforked for a command that did not run is gone, and
// so is one that the command could not use.
func TestPreforksEnd(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	children := func() []int { return process.PIDsBelow(os.Getpid()) }
	preforked := func(t *testing.T, a *arena, ready <-chan struct{}) *attempt {
		t.Helper()
		at := a.host.attempt(plan.LevelNative, &executor.Spec{Policy: a.policy(), Ready: ready},
			[3]*os.File{})
		if at.prefork(); at.preforked == nil {
			t.Fatal("no prefork")
		}
		for len(children()) == 0 {
			runtime.Gosched()
		}
		return at
	}
	t.Run("closed", func(t *testing.T) {
		a := newArena(t)
		at := preforked(t, a, nil)
		closed := make(chan error, 1)
		go func() { closed <- a.host.Close() }()
		at.release()
		must(t, <-closed)
		if got := children(); len(got) != 0 {
			t.Errorf("%v are left", got)
		}
	})
	t.Run("held back", func(t *testing.T) {
		a := newArena(t)
		ready := make(chan struct{})
		at := preforked(t, a, ready)
		over := make(chan error, 1)
		go func() { over <- at.waitReady(t.Context()) }()
		for len(children()) > 0 {
			runtime.Gosched()
		}
		close(ready)
		must(t, <-over)
		at.release()
	})
	for _, c := range []struct {
		name, program, level string
		limits               executor.Resources
		ok                   bool
	}{
		{name: "no such program", program: "/nowhere/at/all"},
		{name: "used", program: "true", ok: true},
		{name: "another level", program: "true", level: plan.LevelLandlock, ok: true},
		{name: "limits", program: "true", limits: executor.Resources{Memory: 64 << 20}, ok: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			a.host.Only = c.level
			request := a.request(&job{args: []string{c.program}})
			request.Resources = c.limits
			if err := started(a, request); (err == nil) != c.ok {
				t.Error(err)
			}
			must(t, a.host.Close())
			if got := children(); len(got) != 0 {
				t.Errorf("%v are left", got)
			}
		})
	}
}

// started runs a command that has nothing to say to its end.
func started(a *arena, r *executor.Spec) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	c, err := a.start(r, nil, null, null, null)
	if err != nil {
		return err
	}
	code, _, lost := c.Wait()
	if code != 0 {
		lost = errors.Join(lost, fmt.Errorf("exit %d", code))
	}
	return errors.Join(lost, c.WaitAll(), c.Close(new(executor.Exit)))
}

// TestVanished: a launch that failed because something planned for has gone is planned again, and
// no other one is.
func TestVanished(t *testing.T) {
	planned := launch.Step{ID: launch.ID{Ino: 1}}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"gone", &launch.StepError{Step: planned, Call: "openat", Errno: unix.ENOENT}, true},
		{"another one", &launch.StepError{Step: planned, Call: "compare"}, true},
		{"removed while it was open", &launch.StepError{Step: planned, Call: "open_tree", Errno: unix.EINVAL}, true},
		{"another invalid call", &launch.StepError{Step: planned, Call: "move_mount", Errno: unix.EINVAL}, false},
		{"a path of the policy", &launch.StepError{Call: "open_tree", Errno: unix.EINVAL}, false},
		{"no rights", &launch.StepError{Step: planned, Call: "open_tree", Errno: unix.EPERM}, false},
		{"another error", errors.New("x"), false},
	} {
		if got := vanished(test.err); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
