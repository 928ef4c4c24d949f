// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// missingAttempts try to get something to a protected name that does not exist.
// Each ends with 0 when it has.
var missingAttempts = []struct{ name, script string }{
	{"mkdir", "mkdir .codex"},
	{"open", "echo x >.codex"},
	{"on the way", "mkdir -p .codex/deep"},
	{"rename", "mkdir new && mv -T new .codex"},
	{"exchange of the file's name", "echo x >new && mv new .codex"},
	{"link", "ln file .codex"},
	{"symlink", "ln -s dir .codex"},
	{"mknod", "mkfifo .codex"},
	{"bind", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(".codex")'`},
	{"through a link", "ln -s . here && mkdir here/.codex"},
	{"by a descriptor", `python3 -c 'import os; os.mkdir(".codex", dir_fd=os.open(".", os.O_RDONLY))'`},
	{"through /proc", "mkdir /proc/self/cwd/.codex"},
	{"at its whole path", `mkdir "$PWD/.codex"`},
}

// TestMissingNames: nothing can be made at a protected name that is missing. With an observer the call
// is denied; without one, what it made is in quarantine before the result, which says so. Nothing
// stands for the name: neither before nor afterwards is anything there.
func TestMissingNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	for _, c := range []struct {
		name, level string
		blind       bool
		errno       string // of the denial; empty: it is not denied
	}{
		{"native", plan.LevelNative, false, "EROFS"},
		{"native without an observer", plan.LevelNative, true, ""},
		{"bwrap", plan.LevelBwrap, false, ""},
		{"landlock", plan.LevelLandlock, false, "EACCES"},
		{"landlock without an observer", plan.LevelLandlock, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := atLevel(t, c.level)
			if c.level == plan.LevelBwrap {
				a = bwrapArena(t)
			}
			for _, try := range missingAttempts {
				t.Run(try.name, func(t *testing.T) {
					errno := c.errno
					if try.name == "bind" && errno != "" && c.level == plan.LevelLandlock {
						errno = "EPERM" // of the socket
					}
					a.missing(t, try.script, c.blind, errno)
				})
			}
		})
	}
}

// missing makes one attempt.
func (a *arena) missing(t *testing.T, script string, blind bool, errno string) {
	t.Helper()
	var after executor.Exit
	res := mustRun(t, a, &job{blind: blind, after: &after, args: sh("ls -A; exec 2>/dev/null\n" + script)})
	if strings.Contains(res.out, ".codex") || strings.Contains(res.out, ".agents") {
		t.Errorf("inside there is %q", res.out)
	}
	if _, err := os.Lstat(a.ws + "/.codex"); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	denied := slices.ContainsFunc(after.Denials, func(d sandbox.Denial) bool {
		return (d.Path == a.ws+"/.codex" || d.Op == sandbox.Syscall || d.Op == sandbox.Bind) &&
			d.Errno == errno && d.Source == sandbox.Notified
	})
	moved := slices.ContainsFunc(after.Quarantined, func(q executor.Quarantined) bool {
		_, err := os.Lstat(q.MovedTo)
		return q.Path == a.ws+"/.codex" && err == nil
	})
	// Without an observer what was made may be gone before the next call, and there are no unix sockets.
	if errno != "" && (res.code == 0 || !denied || moved) || errno == "" && !moved &&
		!strings.Contains(script, "AF_UNIX") {
		t.Errorf("%+v, denials %+v, quarantined %+v", res, after.Denials, after.Quarantined)
	}
	for _, left := range []string{"new", "here"} {
		_ = os.RemoveAll(a.ws + "/" + left)
	}
}

// TestEmptyNames: a protected name at which there is an empty directory is read-only, as one with
// something in it, and is nobody's to remove: also one without a right to write, as an older sallyport
// has put there.
func TestEmptyNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, mode := range []os.FileMode{0o755, 0o555} {
		a := newArena(t)
		must(t, os.Mkdir(a.ws+"/.codex", mode))
		before := snapshot(t, a.ws+"/.codex")
		for _, script := range []string{"echo x >.codex/config", "chmod 700 .codex", "rmdir .codex",
			"mv .codex old", "mkdir n && mv -T n .codex"} {
			if res := mustRun(t, a, &job{blind: true, args: sh(script)}); res.code == 0 {
				t.Errorf("%o: %q succeeded", mode, script)
			}
		}
		must(t, a.host.Close())
		if after := snapshot(t, a.ws+"/.codex"); after != before {
			t.Errorf("%o: it was %s and is %s", mode, before, after)
		}
	}
}

// TestMissingRace: a program that makes and removes a protected name in a loop, with threads that
// change what the observer reads, leaves nothing there.
func TestMissingRace(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	// One thread changes the name that the other one makes between the look of the observer and the call.
	const race = `import ctypes, os, threading, time
libc = ctypes.CDLL(None)
name = ctypes.create_string_buffer(b"./xcodex")
begin, over = time.time(), False
def flip():
    while not over:
        name[2] = b"x"
        name[2] = b"."
thread = threading.Thread(target=flip)
thread.start()
made = 0
while time.time() < begin + 2:
    libc.mkdir(name, 0o755)
    if os.path.exists(".codex"):
        made += 1
        if time.time() > begin + 0.5: break # it ends with the name there
    for n in "xcodex", ".codex":
        try: os.rmdir(n)
        except OSError: pass
over = True
thread.join()
print(made)`
	for _, blind := range []bool{false, true} {
		a := newArena(t)
		var after executor.Exit
		res := mustRun(t, a, &job{blind: blind, after: &after, args: []string{"python3", "-c", race}})
		if _, err := os.Lstat(a.ws + "/.codex"); !os.IsNotExist(err) || res.code != 0 {
			t.Errorf("without an observer %v: it is there: %v, %+v", blind, err, res)
		}
		t.Logf("made %s, quarantined %d", res.out, len(after.Quarantined))
	}
}

// TestPins: a directory that holds a denied or protected path stays where it is, so
// that the next command finds the same rules at the same places.
func TestPins(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	tree := func() (*arena, *sandbox.Policy) {
		a := newArena(t)
		must(t, os.MkdirAll(a.ws+"/top/mid/deny", 0o755))
		write(t, a.ws+"/top/mid/deny/file", "secret")
		p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/top/mid/deny", sandbox.LevelDeny))
		return a, &p
	}
	const next = "cat moved/mid/deny/file || cat top/moved/deny/file"
	for _, move := range []string{"mv top moved", "mv top/mid top/moved"} {
		t.Run(move, func(t *testing.T) {
			a, p := tree()
			if res := mustRun(t, a, &job{policy: p, args: sh(move)}); res.code == 0 {
				t.Error("it was moved")
			}
			if res := mustRun(t, a, &job{policy: p, args: sh(next)}); res.out != "" {
				t.Errorf("the next command reads %q", res.out)
			}
		})
		t.Run("without pins: "+move, func(t *testing.T) {
			a, p := tree()
			without := func(p *plan.Plan) { dropAt("WS/top", "WS/top/mid")(a, p) }
			if res := mustRun(t, a, &job{policy: p, args: sh(move), change: without}); res.code != 0 {
				t.Fatalf("%+v", res)
			}
			if res := mustRun(t, a, &job{policy: p, args: sh(next)}); res.out != "secret" {
				t.Errorf("the next command reads %q", res.out)
			}
		})
	}
	t.Run("a root above it, in another root", func(t *testing.T) {
		a, p := tree()
		inner := p.WithEntries(sandbox.PathEntry(a.ws+"/top", sandbox.LevelWrite))
		if res := mustRun(t, a, &job{policy: &inner, args: sh("mv top moved")}); res.code == 0 {
			t.Error("it was moved")
		}
	})
	t.Run("what is in it still works", func(t *testing.T) {
		a, p := tree()
		if res := mustRun(t, a, &job{policy: p,
			args: sh("echo x >top/mid/file && mv top/mid/file top/file && mkdir top/mid/d && mv top/mid/d top/mid/e")}); res.code != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// TestMissingOfTwo: where two runs with state directories of their own, as those of two users, work in
// one directory, the end of one takes nothing from the other.
func TestMissingOfTwo(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, blind := range []bool{false, true} {
		a := newArena(t)
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		must(t, err)
		defer null.Close()
		first, err := a.start(a.request(&job{args: sh(`:`)}), nil, null, null, null)
		must(t, err)
		t.Setenv("XDG_STATE_HOME", a.base+"/other")
		b := &arena{host: new(Host), base: a.base, ws: a.ws, out: a.out}
		in, feed := pipe(t)
		defer in.Close()
		res := mustRun(t, b, &job{blind: blind, stdin: in,
			args: sh(`read x; mkdir .codex && echo won >.codex/config; echo end`), during: func(*Child) {
				_, _, _ = first.Wait()
				must(t, first.WaitAll())
				must(t, first.Close(new(executor.Exit)))
				must(t, a.host.Close())
				must(t, feed.Close())
			}})
		must(t, b.host.Close())
		if _, err := os.Lstat(a.ws + "/.codex"); !os.IsNotExist(err) || res.out != "end\n" {
			t.Errorf("without an observer: %v: it is there: %v, %+v", blind, err, res)
		}
	}
}

// TestKilledRemembers: what a killed front end remembers is not settled as long as its command can still
// run, though another run begins. Here the command runs on for long, because what ends it is left out.
func TestKilledRemembers(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.RemoveAll(a.ws+"/.git"))
	f := startFront(t, a, "hold-orphan", "hold")
	root, err := unix.PidfdOpen(f.root, 0)
	must(t, err)
	defer unix.Close(root)
	must(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	nameAll(t, a.ws) // what runs from here on remembers nothing of its own
	remembered := func() bool {
		mustRun(t, a, &job{args: sh(`:`)})
		left, err := filepath.Glob(a.base + "/state/sallyport/guard/m-*")
		must(t, err)
		return len(left) > 0
	}
	if !remembered() {
		t.Error("it was settled while the command ran")
	}
	must(t, unix.PidfdSendSignal(root, unix.SIGKILL, nil, 0))
	_, err = io.Copy(io.Discard, f.reader)
	must(t, err)
	for end := time.Now().Add(patience); remembered(); { // the reaper ends last
		if time.Now().After(end) {
			t.Fatal("it was not settled when the command had ended")
		}
	}
}
