// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestWithoutObserver: every wall but those that the table says need one stands
// without an observer.
func TestWithoutObserver(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	home, err := os.UserHomeDir()
	must(t, err)
	kv := append(surroundingsFor(t, a), "home="+home)
	all := names(fileAttacks(), linkAttacks(), metaAttacks(), modeAttacks(), mountAttacks(), systemAttacks(), processAttacks(),
		ipcAttacks(), networkAttacks(), socketAttacks(), kernelAttacks(), privilegeAttacks(), taskAttacks())
	all = slices.DeleteFunc(all, func(n string) bool { return slices.Contains(noAttacks(), n) })
	a.expect(t, wordDenied, &job{blind: true}, all, kv...)
}

// asked runs a script that waits in the middle, at "read x <go", until between has
// happened outside.
func (a *arena) asked(t *testing.T, policy *sandbox.Policy, between func(), script string, args ...string) (result, Aftermath) {
	t.Helper()
	fifo := filepath.Join(a.ws, "go")
	must(t, syscall.Mkfifo(fifo, 0o600))
	defer os.Remove(fifo)
	var after Aftermath
	res, err := a.run(t, &job{args: sh(script, args...), policy: policy, after: &after, during: func(Child) {
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when the command has come so far
		must(t, err)
		between()
		_, err = f.WriteString("x\n")
		must(t, err)
		must(t, f.Close())
	}})
	must(t, err)
	return res, after
}

// told are the denials in short.
func told(after Aftermath) []string {
	var out []string
	for _, d := range after.Denials {
		out = append(out, d.Op.String()+" "+d.Target()+" "+d.Errno)
	}
	return out
}

// TestLateFiles: a file that comes to match a denied pattern while the command runs
// is shut, whoever has made it.
func TestLateFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	p := a.policy().WithEntries(sandbox.GlobEntry(a.ws + "/**/*.env"))
	secret := a.ws + "/dir/later.env"
	res, after := a.asked(t, &p, func() { write(t, secret, "secret") },
		`read x <go; cat dir/later.env; (exec dir/later.env); echo mine >own.env; echo ok >plain; mv plain own.env; cp dir/later.env copy; true`)
	if strings.Contains(res.out, "secret") {
		t.Errorf("it was read: %+v", res)
	}
	want := []string{
		"read " + secret + " EACCES", "exec " + secret + " EACCES", "write " + a.ws + "/own.env EACCES",
	}
	if got := told(after); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range []string{"own.env", "copy"} {
		if b, err := os.ReadFile(filepath.Join(a.ws, name)); err == nil && len(b) > 0 {
			t.Errorf("%s holds %q", name, b)
		}
	}
}

// TestLateRepositories: a repository that somebody else makes is shut, one that the
// command makes is its own.
func TestLateRepositories(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	theirs := a.ws + "/dir/theirs/.git"
	between := func() {
		must(t, os.MkdirAll(theirs+"/hooks", 0o755))
		write(t, theirs+"/config", "[core]\n")
	}
	res, after := a.asked(t, nil, between, `read x <go
echo evil >dir/theirs/.git/hooks/pre-commit; echo evil >>dir/theirs/.git/config; mkdir dir/theirs/.git
mkdir -p own/.git/hooks && echo mine >own/.git/hooks/pre-commit && mv own/.git/hooks own/.git/kept && rm -r own/.git/kept && echo fine`)
	if !strings.Contains(res.out, "fine") {
		t.Errorf("its own repository was shut: %+v", res)
	}
	want := []string{"write " + theirs + "/hooks/pre-commit EROFS", "write " + theirs + "/config EROFS"}
	if got := told(after); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if b, err := os.ReadFile(theirs + "/config"); err != nil || string(b) != "[core]\n" {
		t.Errorf("its configuration is %q, %v", b, err)
	}
}

// TestJudge asks about names directly.
func TestJudge(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(ws+"/old/.git", 0o755))
	res, err := bind(sandbox.WorkspaceWrite(ws), ws).WithEntries(
		sandbox.PathEntry(ws+"/shut", sandbox.LevelDeny), sandbox.PathEntry(ws+"/shut/open", sandbox.LevelRead),
		sandbox.GlobEntry(ws+"/**/*.key")).Resolve()
	must(t, err)
	g := &gathering{roots: []string{ws}, rules: map[string]plan.Rule{ws + "/known/.git/config": {}}, private: ws + "/tmp"}
	g.claim(claim{Want: guard.Want{Path: ws + "/.git"}})
	notice := guard.Want{Path: ws + "/noticed"}
	notice.Notice = true
	g.claim(claim{Want: notice})
	j := newJudge(&res, &keeping{g: g, layers: []string{ws + "/cache"}})
	j.start = time.Now().Add(time.Hour) // what is there is older
	for _, c := range []struct {
		name string
		op   sandbox.Op
		path string
		made bool
		want syscall.Errno
	}{
		{"an ordinary file", sandbox.Write, "/x", true, 0},
		{"a claimed name", sandbox.Write, "/.git", true, unix.EROFS},
		{"a claimed name that is there", sandbox.Write, "/.git", false, 0},
		{"a name that is only noticed", sandbox.Write, "/noticed", true, 0},
		{"a denied folder", sandbox.Read, "/shut/x", false, unix.EACCES},
		{"the folder itself", sandbox.Read, "/shut", false, unix.EACCES},
		{"opened below it", sandbox.Read, "/shut/open/x", false, 0},
		{"a denied pattern", sandbox.Read, "/a/b.key", false, unix.EACCES},
		{"below a denied pattern", sandbox.Exec, "/a.key/x", false, unix.EACCES},
		{"writing what matches", sandbox.Write, "/n.key", true, unix.EACCES},
		{"a repository that was found", sandbox.Write, "/known/.git/hooks/x", true, 0},
		{"an old one that was none", sandbox.Write, "/old/.git/hooks/x", true, 0},
		{"a new one", sandbox.Write, "/new/.git", true, 0},
		{"a name that begins like one", sandbox.Write, "/.github/x", true, 0},
		{"behind one that begins like one", sandbox.Write, "/.github/.git", true, 0},
		{"in the private folder", sandbox.Write, "/tmp/r/.git/hooks", true, 0},
		{"in a layer", sandbox.Write, "/cache/r/.git/hooks", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := j.File(c.op, ws+c.path, c.made); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	t.Run("an old one where not all were looked for", func(t *testing.T) {
		partly := newJudge(&res, &keeping{g: &gathering{roots: []string{ws}, partly: true}})
		partly.start = j.start
		if got := partly.File(sandbox.Write, ws+"/old/.git/hooks/x", true); got != unix.EROFS {
			t.Errorf("%v", got)
		}
	})
	t.Run("a young one of somebody else", func(t *testing.T) {
		young := newJudge(&res, &keeping{g: &gathering{roots: []string{ws}}})
		young.start = time.Unix(0, 0)
		if got := young.File(sandbox.Write, ws+"/old/.git/config", false); got != unix.EROFS {
			t.Errorf("%v", got)
		}
	})
}

// TestObserverFails: a command whose observer cannot go on is ended, and does not run
// free.
func TestObserverFails(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for range 20 {
		res, after := failObserver(t)
		if after.Broken == nil {
			continue // it was at rest in that moment, on a busy machine, and has noticed nothing
		}
		if res.code == 0 && res.lost == nil {
			t.Errorf("%+v, broken: %v", res, after.Broken)
		}
		return
	}
	t.Error("an observer that cannot go on is not noticed")
}

// failObserver runs a command whose observer loses its listener while it is asked all
// the time.
func failObserver(t *testing.T) (result, Aftermath) {
	t.Helper()
	a := newArena(t)
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	var after Aftermath
	res, err := a.run(t, &job{
		args: sh(`i=0; while [ $i -lt 100000 ]; do echo x >file; echo; i=$((i+1)); done 2>/dev/null | { exec >/dev/null; read x; : >started; exec cat; }`), after: &after,
		during: func(Child) {
			for {
				if _, err := os.Stat(a.ws + "/started"); err == nil {
					break
				}
			}
			// What the supervisor reads from is something else from here on.
			fds, err := os.ReadDir("/proc/self/fd")
			must(t, err)
			for _, fd := range fds {
				n, err := strconv.Atoi(fd.Name())
				must(t, err)
				if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "seccomp") {
					must(t, unix.Dup3(int(null.Fd()), n, unix.O_CLOEXEC))
					return
				}
			}
			t.Error("there is no listener")
		},
	})
	must(t, err)
	return res, after
}
