// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// listing is every name below a directory with what a change would show in.
func listing(t *testing.T, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[name] = info.Mode().String() + info.ModTime().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A tree is a workspace, a repository with a nested one in it, and a state directory.
type tree struct{ work, state string }

func newTree(t *testing.T) tree {
	t.Helper()
	testenv.NeedProgram(t, "git")
	root := workRoot(t)
	tr := tree{work: filepath.Join(root, "w"), state: filepath.Join(root, "state")}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `mkdir -p "$0/a/b" && cd "$0" && git init -q && git -c user.name=a -c user.email=a commit -q --allow-empty -m x &&
		git config core.hooksPath .githooks && git init -q a/b && echo text >a/file && echo ignored >.gitignore && mkdir ignored && echo y >ignored/y`, tr.work)
	cmd.Env = append(testenv.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tr
}

// command is sallyport run in the tree.
func (tr tree) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sallyport", append([]string{"run"}, args...)...)
	cmd.Dir = tr.work
	cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+tr.state, "HOME="+filepath.Dir(tr.work),
		"GORACE="+noRaceSleep)
	return cmd
}

// status is what git says of the tree, byte for byte.
func (tr tree) status(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "--no-optional-locks", "status",
		"--porcelain", "--ignored")
	cmd.Dir = tr.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git status: %v\n%s", err, out)
	}
	return string(out)
}

// clean checks that nothing is left of runs that have all ended, after one more.
func (tr tree) clean(t *testing.T, before map[string]string) {
	t.Helper()
	if out, err := tr.command(t, "--", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(before, listing(t, tr.work)); diff != "" {
		t.Errorf("the workspace has changed (-before +after):\n%s", diff)
	}
	for name := range listing(t, filepath.Join(tr.state, "sallyport")) {
		below, err := filepath.Rel(filepath.Join(tr.state, "sallyport"), name)
		if err != nil {
			t.Fatal(err)
		}
		switch part, rest, _ := strings.Cut(below, "/"); {
		case part == "tmp" && rest != "", strings.HasPrefix(below, "guard/m-"),
			strings.HasPrefix(below, "guard/h-"), part == "quarantine" && rest != "":
			t.Errorf("%s is left", name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), tr.work) {
		t.Errorf("a mount is left, or not: %v\n%s", err, mounts)
	}
}

// TestNoLitter: git, ls and find say the same before, during and after a run that writes nothing, inside
// and outside, with and without a repository; the tree is the same afterwards.
func TestNoLitter(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, c := range []struct {
		name string
		args []string
		git  bool
	}{
		{"repository", nil, true}, {"repository, grant", []string{"--grant", "git"}, true}, {"none", nil, false},
		{"none, grant", []string{"--grant", "git"}, false}, {"none, no observer", []string{"--no-observer"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			if !c.git {
				if err := os.RemoveAll(filepath.Join(tr.work, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			tr.litter(t, c.args, c.git)
		})
	}
}

// litter looks at the tree before, during and after a run.
func (tr tree) litter(t *testing.T, args []string, git bool) {
	status := func() string {
		if !git {
			return ""
		}
		return tr.status(t)
	}
	const look = "ls -A; find . | sort"
	outside := exec.CommandContext(t.Context(), "sh", "-c", look)
	outside.Dir = tr.work
	want, err := outside.Output()
	if err != nil {
		t.Fatal(err)
	}
	before, said := listing(t, tr.work), status()
	cmd := tr.command(t, append(args, "-i", "--", "sh", "-c", look+"; echo ready; read line")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		got.WriteString(lines.Text() + "\n")
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, listing(t, tr.work)); diff != "" {
		t.Errorf("during the run (-before +during):\n%s", diff)
	}
	if got := status(); got != said {
		t.Errorf("during the run git says %q, before it said %q", got, said)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := status(); got != said {
		t.Errorf("after the run git says %q, before it said %q", got, said)
	}
	tr.clean(t, before)
}

// TestWholeDirectory: programs that take a workspace as a whole, and stumble over what they do not know
// in it, work in a run.
func TestWholeDirectory(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, c := range []struct {
		name, program, prepare, line string
		grant                        bool
	}{
		{"git clone into it", "git", `git init -q ../from && git -C ../from -c user.name=a -c user.email=a commit -q --allow-empty -m x && rm -rf .git a ignored .gitignore`,
			`git clone -q ../from . && git log --oneline`, true},
		{"git clean", "git", ``, `touch new && git clean -fdx && test ! -e new && test ! -e ignored`, false},
		{"git stash", "git", `git config user.name a && git config user.email a`, `echo new >new && git stash -q -u && test ! -e new && git stash pop -q && cat new`, true},
		{"rsync", "rsync", `mkdir ../from && echo x >../from/x && rm -rf .git a/b`, `rsync -a --delete ../from/ ./ && test "$(ls -A)" = x`, false},
		{"tar", "tar", `rm -rf .git a/b`, `tar -cf /tmp/all . && rm -rf ./* .gitignore && tar -xf /tmp/all && cat a/file`, false},
		{"rm all", "rm", `rm -rf .git && rm -rf a`, `rm -rf -- "$PWD"/* .gitignore && test -z "$(ls -A)"`, false},
		{"npm-like rename", "mv", `rm -rf .git a/b`, `mkdir .new && mv a .new/ && mv .new/a . && rmdir .new && cat a/file`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				t.Log(err)
				return
			}
			tr := newTree(t)
			prepare := exec.CommandContext(t.Context(), "sh", "-ec", c.prepare)
			prepare.Dir = tr.work
			prepare.Env = append(testenv.Environ(), "HOME="+filepath.Dir(tr.work), "GIT_CONFIG_NOSYSTEM=1")
			if out, err := prepare.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			args := []string{"--", "sh", "-ec", c.line}
			if c.grant {
				args = append([]string{"--grant", "git"}, args...)
			}
			if out, err := tr.command(t, args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestKilledRunsLeaveNothing runs 200 commands in one workspace, many at once, and
// kills the front end of every other one at some moment of its life.
func TestKilledRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	tr := newTree(t)
	before, status := listing(t, tr.work), tr.status(t)
	const runs, atOnce = 200, 12
	room := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range runs {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			tr.one(t, i%2 == 0)
		})
	}
	all.Wait()
	if got := tr.status(t); got != status {
		t.Errorf("after the runs git says %q, before it said %q", got, status)
	}
	tr.clean(t, before)
}

// one runs a command that tries to make a protected name, and kills its front end if
// asked to: at once, when it has read some lines, or anywhere between.
func (tr tree) one(t *testing.T, kill bool) {
	cmd := tr.command(t, "-q", "--", "sh", "-c",
		"for i in 1 2 3 4; do mkdir .codex 2>/dev/null && echo made; echo $i; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	wait := rand.IntN(6)
	if kill && wait == 0 {
		_ = cmd.Process.Kill()
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == "made" {
			t.Error("a protected name was made")
		}
		if kill && n == wait {
			_ = cmd.Process.Kill()
		}
	}
	if kill {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err != nil && !kill {
		t.Errorf("a run that was left alone: %v", err)
	}
}
