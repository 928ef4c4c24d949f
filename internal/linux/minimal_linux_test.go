// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// platform is what a system binary needs here.
var platform = []string{"/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store"}

// minimal is the policy of an arena that shows the workspace, the platform's
// files, the attacker's program and what is added.
func (a *arena) minimal(more ...sandbox.Entry) *sandbox.Policy {
	p := sandbox.Policy{}.WithEntries(
		sandbox.PathEntry(a.ws, sandbox.LevelWrite),
		sandbox.PathEntry(os.Getenv(programVar), sandbox.LevelRead)).
		WithEntries(more...).
		Bind(sandbox.Places{Dir: a.ws, Workspaces: []string{a.ws}, SlashTmp: "/tmp", Minimal: platform})
	return &p
}

// handleOf is the handle of a file for the attacks, or of nothing where the file
// system has none.
func handleOf(t *testing.T, name string) string {
	t.Helper()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, name, 0)
	if err != nil {
		t.Logf("no handle: %v", err)
		return "00"
	}
	return hex.EncodeToString(h.Bytes())
}

func TestMinimalRoot(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.out)
	directory, err := os.Open(a.ws + "/dir")
	must(t, err)
	defer directory.Close()
	file, err := os.Open(a.out + "/canary")
	must(t, err)
	defer file.Close()
	for name, input := range map[string]*os.File{"null device": nil, "listed directory": directory,
		"hidden file": file} {
		t.Run(name, func(t *testing.T) {
			a.expect(t, wordDenied, &job{policy: a.minimal(), stdin: input}, names(hiddenAttacks()),
				"handle="+handleOf(t, a.out+"/canary"))
		})
	}
	t.Run("host network", func(t *testing.T) {
		p := a.minimal().WithNetwork(sandbox.NetworkHost)
		a.expect(t, wordDenied, &job{policy: &p}, []string{"hidden-path", "hidden-proc",
			"hidden-descriptors"})
	})
	t.Run("the other attacks", func(t *testing.T) {
		table := names(modeAttacks(), mountAttacks(), processAttacks())
		a.expect(t, wordDenied, &job{policy: a.minimal()}, table, "pid="+victim(t))
	})
}

// TestMinimalWork: what is listed works as it does under the ordinary root.
func TestMinimalWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.Symlink(a.out, a.base+"/link"))
	const script = `set -e
echo a >n1; mkdir -p d1; mv n1 d1/; rm -r d1; cat file >/dev/null; cat /etc/passwd >/dev/null; ls /usr/bin >/dev/null
test ! -e "$1/other"; test "$(cat "$1/canary")" = canary; test "$(cat "$2/canary")" = canary; test "$(ls "$1")" = canary
test ! -e .git/none; if echo x 2>/dev/null >.git/x; then exit 1; fi
echo x >/tmp/x; cat /tmp/x >/dev/null; cat /proc/self/status /proc/meminfo /sys/devices/system/cpu/online >/dev/null
test "$(ls "$3" | tr '\n' ' ')" = "link out ws "
test "$(stat -c %a "$3")" = 755
echo done`
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	res := mustRun(t, a, &job{args: sh(script, a.out, a.base+"/link", a.base),
		policy: a.minimal(sandbox.PathEntry(a.out+"/canary", sandbox.LevelRead),
			sandbox.PathEntry(a.base+"/link/canary", sandbox.LevelRead))})
	if res.code != 0 || res.out != "done\n" || res.err != "" {
		t.Errorf("%+v", res)
	}
	a.expect(t, wordOK, &job{policy: a.minimal()}, []string{"devices-work", "own-loopback", "pair-stream",
		"clone-thread"})
	t.Run("root", func(t *testing.T) {
		res := mustRun(t, a, &job{args: sh(`ls /`), policy: a.minimal()})
		for _, name := range strings.Fields(res.out) {
			if !slices.Contains([]string{"bin", "dev", "etc", "lib", "lib64", "nix", "proc", "run", "sbin",
				"sys", "tmp", "usr", "var"}, name) {
				t.Errorf("/%s is there", name)
			}
		}
	})
	t.Run("denied below", func(t *testing.T) {
		res := mustRun(t, a, &job{args: sh(`ls dir 2>&1; cat file 2>&1`),
			policy: a.minimal(sandbox.PathEntry(a.ws+"/dir", sandbox.LevelDeny),
				sandbox.PathEntry(a.ws+"/file", sandbox.LevelDeny))})
		if strings.Count(res.out, "Permission denied") != 2 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("output to a hidden file", func(t *testing.T) {
		f, err := os.OpenFile(a.out+"/log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		must(t, err)
		defer f.Close()
		if res := mustRun(t, a, &job{args: sh(`echo one; echo two >&1`), policy: a.minimal(),
			stdout: f}); res.code != 0 {
			t.Errorf("%+v", res)
		}
		if b, _ := os.ReadFile(a.out + "/log"); string(b) != "one\ntwo\n" {
			t.Errorf("%q", b)
		}
	})
	t.Run("input from a hidden file", func(t *testing.T) {
		f, err := os.Open(a.out + "/canary")
		must(t, err)
		defer f.Close()
		if res := mustRun(t, a, &job{args: sh(`cat`), policy: a.minimal(), stdin: f}); res.out != "canary" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		_, slave := terminal(t)
		if res := mustRun(t, a, &job{args: sh(`test -t 0 && echo yes`), policy: a.minimal(),
			stdin: slave}); res.out != "yes\n" {
			t.Errorf("%+v", res)
		}
	})
}

// TestMinimalNeeds: what is missing is named before anything starts.
func TestMinimalNeeds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	tool, script := a.out+"/tool", a.ws+"/script"
	must(t, testenv.WriteProgram(tool, "#!/bin/sh\necho tool\n"))
	must(t, testenv.WriteProgram(script, "#! "+a.out+"/loader -x\n"))
	must(t, os.Symlink("/bin/sh", a.out+"/loader"))
	must(t, os.Symlink(tool, a.ws+"/alias"))
	show := func(names ...string) *sandbox.Policy {
		var es []sandbox.Entry
		for _, n := range names {
			es = append(es, sandbox.PathEntry(n, sandbox.LevelRead))
		}
		return a.minimal(es...)
	}
	bare, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
		sandbox.PathEntry(a.ws, sandbox.LevelWrite), sandbox.PathEntry("/usr/bin", sandbox.LevelRead),
		sandbox.PathEntry("/bin", sandbox.LevelRead))
	must(t, err)
	for _, c := range []struct {
		name string
		job  job
		path string // what the error names; empty for a run
	}{
		{"program", job{args: []string{tool}, policy: show()}, tool},
		{"program that is listed", job{args: []string{tool}, policy: show(tool)}, ""},
		{"program behind a link", job{args: []string{"./alias"}, policy: show()}, tool},
		{"program behind a link, listed", job{args: []string{"./alias"}, policy: show(tool)}, ""},
		{"interpreter", job{args: []string{script}, policy: show()}, a.out + "/loader"},
		{"interpreter that is listed", job{args: []string{script}, policy: show(a.out + "/loader")}, ""},
		{"loader of the interpreter", job{args: []string{"/bin/sh"}, policy: &bare}, "/lib64"},
		{"working directory", job{args: sh(`:`), dir: a.out, policy: show()}, a.out},
		{"working directory that is listed", job{args: sh(`pwd`), dir: a.out, policy: show(a.out)}, ""},
		{"working directory on the way", job{args: sh(`pwd`), dir: a.base, policy: show()}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := a.run(t, &c.job)
			var hidden *sandbox.HiddenError
			switch {
			case c.path == "" && err != nil:
				t.Error(err)
			case c.path != "" && (!errors.As(err, &hidden) || !strings.HasPrefix(hidden.Path, c.path)):
				t.Errorf("%v", err)
			}
		})
	}
}

// TestMinimalCanFail takes single walls of the minimal root away.
func TestMinimalCanFail(t *testing.T) {
	testenv.RunAsOrdinary(t)
	early := func(_ *arena, p *plan.Plan) { // the directory is opened before the root changes
		steps := p.Script.Steps
		i := slices.IndexFunc(steps, func(s launch.Step) bool { return s.Op == launch.OpReopen })
		at := slices.IndexFunc(steps, func(s launch.Step) bool {
			return s.Op == launch.OpSetMount &&
				s.Path == "/"
		})
		reopen := steps[i]
		p.Script.Steps = slices.Insert(slices.Delete(slices.Clone(steps), i, i+1), at+1, reopen)
	}
	for _, w := range []struct {
		name, attacks string
		change        func(*arena, *plan.Plan)
		input         bool
	}{
		{name: "pivot", attacks: "hidden-path hidden-dotdot hidden-proc hidden-descriptors", change: dropOp(launch.OpPivot)},
		{name: "directory opened anew inside", attacks: "input-around hidden-descriptors", change: early, input: true},
		{name: "directory opened anew", attacks: "input-around hidden-descriptors", change: dropOp(launch.OpReopen), input: true},
	} {
		t.Run(w.name, func(t *testing.T) {
			a := newArena(t)
			j := &job{policy: a.minimal()}
			if w.input {
				f, err := os.Open(a.ws + "/dir")
				must(t, err)
				defer f.Close()
				j.stdin = f
			}
			list := strings.Fields(w.attacks)
			a.expect(t, wordDenied, j, list)
			j.change = func(p *plan.Plan) { w.change(a, p) }
			for _, n := range list {
				if v := a.attack(t, j, []string{n})[n]; v.word != wordBreach {
					t.Errorf("without it: %s %v", n, v)
				}
			}
		})
	}
}

// TestDirectoryAsInput: from a directory that is standard input, a command comes no
// further than by name, whoever owns the directory.
func TestDirectoryAsInput(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	p := a.policy().WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
	for name, directory := range map[string]string{"own": a.out, "of somebody else": "/usr",
		"writable": a.ws} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(directory)
			must(t, err)
			defer f.Close()
			j := &job{policy: &p, stdin: f}
			a.expect(t, wordDenied, j, []string{"input-around"})
			j.change = func(p *plan.Plan) { dropOp(launch.OpReopen)(a, p) }
			if v := a.attack(t, j, []string{"input-around"})["input-around"]; v.word != wordBreach {
				t.Errorf("without it: %v", v)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		dir := filepath.Join(a.out, "gone")
		must(t, os.Mkdir(dir, 0o755))
		f, err := os.Open(dir)
		must(t, err)
		defer f.Close()
		must(t, os.Remove(dir))
		if _, err := a.run(t, &job{args: sh(`:`), stdin: f}); !badRoot(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("denied", func(t *testing.T) {
		f, err := os.Open(a.out + "/dir")
		must(t, err)
		defer f.Close()
		if _, err := a.run(t, &job{args: sh(`:`), stdin: f, policy: &p}); !badRoot(err) {
			t.Errorf("%v", err)
		}
	})
}
