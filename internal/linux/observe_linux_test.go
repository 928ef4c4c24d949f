// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
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
	all := names(fileAttacks(), linkAttacks(), metaAttacks(), modeAttacks(), mountAttacks(), systemAttacks(),
		processAttacks(),
		ipcAttacks(), networkAttacks(), socketAttacks(), kernelAttacks(), privilegeAttacks(), taskAttacks())
	all = slices.DeleteFunc(all, func(n string) bool { return slices.Contains(noAttacks(), n) })
	a.expect(t, wordDenied, &job{blind: true}, all, kv...)
}

// asked runs a script that waits in the middle, at "read x <go", until between has
// happened outside.
func (a *arena) asked(t *testing.T, policy *sandbox.Policy, between func(), script string,
	args ...string) (result, executor.Exit) {
	t.Helper()
	fifo := filepath.Join(a.ws, "go")
	must(t, syscall.Mkfifo(fifo, 0o600))
	defer os.Remove(fifo)
	var after executor.Exit
	res, err := a.run(t, &job{args: sh(script, args...), policy: policy, after: &after, during: func(*Child) {
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
func told(after executor.Exit) []string {
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
func failObserver(t *testing.T) (result, executor.Exit) {
	t.Helper()
	a := newArena(t)
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	var after executor.Exit
	res, err := a.run(t, &job{
		args: sh(`i=0; while [ $i -lt 100000 ]; do echo x >file; echo; i=$((i+1)); done 2>/dev/null | { exec >/dev/null; read x; : >started; exec cat; }`), after: &after,
		during: func(*Child) {
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
				if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil &&
					strings.Contains(to, "seccomp") {
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
