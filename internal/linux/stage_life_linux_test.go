// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/layers"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A paused is a command that has printed a line and waits for one.
type paused struct {
	child *Child
	in    *os.File
	out   <-chan string
}

// wait starts a line of shell that prints "ready" and reads a line, and waits for the former.
func (a *arena) wait(t *testing.T, in *Shared, s *executor.Staging, line string) *paused {
	t.Helper()
	inR, inW := pipe(t)
	_ = inR.Fd() // a shell takes one that does not block for empty
	outR, outW := pipe(t)
	c, err := a.startIn(in, a.request(&job{args: sh(line), stage: s}), nil, inR, outW, outW)
	inR.Close()
	outW.Close()
	must(t, err)
	must(t, outR.SetReadDeadline(time.Now().Add(patience)))
	got, err := bufio.NewReaderSize(outR, 16).ReadString('\n')
	if err != nil || got != "ready\n" {
		t.Errorf("%q, %v", got, err)
	}
	return &paused{c, inW, drain(outR)}
}

// end has it go on, and returns how it ended.
func (w *paused) end(t *testing.T) *executor.Exit {
	t.Helper()
	_, err := w.in.WriteString("go\n")
	if werr := errors.Join(err, w.in.Close()); werr != nil {
		t.Error(werr)
	}
	exit := new(executor.Exit)
	exit.Code, _, err = w.child.Wait()
	must(t, errors.Join(err, w.child.WaitAll(), w.child.Close(exit)))
	if out := <-w.out; exit.Code != 0 {
		t.Errorf("it ended with %d, signal %d: %s", exit.Code, exit.Signal, out)
	}
	return exit
}

const readyAndWait = "echo ready; read x"

// TestStageInUse: a stage is of one sandbox at a time.
func TestStageInUse(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.ws)
	first := a.wait(t, nil, &executor.Staging{Name: "one"}, "echo x >made;"+readyAndWait)
	_, err := a.run(t, &job{args: sh("true"), stage: &executor.Staging{Name: "one"}})
	var e *executor.StageError
	if !errors.Is(err, executor.ErrStageInUse) || !errors.As(err, &e) {
		t.Errorf("a second command: %v", err)
	}
	s, err := a.host.OpenStage(context.Background(), a.ws+"/dir", "one")
	must(t, err)
	if now, err := s.Changes(context.Background()); err != nil || len(now) != 1 || now[0].Path != "made" {
		t.Errorf("changes while it runs: %v, %v", now, err)
	}
	if _, err := s.Apply(context.Background(), executor.ApplyOptions{}); !errors.Is(err,
		executor.ErrStageInUse) {
		t.Errorf("apply while it runs: %v", err)
	}
	if err := s.Discard(context.Background(), false); !errors.Is(err, executor.ErrStageInUse) {
		t.Errorf("discard while it runs: %v", err)
	}
	if other, _ := a.staged(t, &job{stage: &executor.Staging{Name: "two"}},
		"ls made"); !strings.Contains(other, "No such") {
		t.Errorf("another stage sees it: %q", other)
	}
	if exit := first.end(t); changesIn(exit.Stage) != "added made" {
		t.Errorf("%+v", exit.Stage)
	}
	if out, _ := a.staged(t, &job{stage: &executor.Staging{Name: "one"}}, "cat made"); out != "x\n" {
		t.Errorf("after it: %q", out)
	}
}

// TestStageShared: commands of a shared sandbox have one stage, and see at once what the others write.
func TestStageShared(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.ws)
	s := a.open(t, a.policy())
	first := a.wait(t, s, &executor.Staging{}, "echo x >made;"+readyAndWait+"; cat answer >got")
	for name, other := range map[string]*executor.Staging{"another name": {Name: "two"},
		"another id": {ID: strings.Repeat("0", 16)}} {
		if _, err := a.run(t, &job{in: s, args: sh("true"), stage: other}); !errors.Is(err,
			executor.ErrStageInUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	second := a.wait(t, s, &executor.Staging{}, "cat made >answer; rm file;"+readyAndWait)
	narrow := a.with(level(sandbox.LevelRead, a.ws+"/dir")...)
	out, left := a.staged(t, &job{in: s, stage: &executor.Staging{}, policy: narrow},
		"cat answer; echo y >dir/no")
	if !strings.HasPrefix(out, "x\n") || changesIn(left) != "added answer, added made, deleted file" {
		t.Errorf("with another policy: %q, %q", out, changesIn(left))
	}
	one, two := second.end(t), first.end(t)
	if one.Stage.ID != two.Stage.ID ||
		changesIn(two.Stage) != "added answer, added got, added made, deleted file" {
		t.Errorf("%+v and %+v", one.Stage, two.Stage)
	}
	again, left := a.staged(t, &job{in: s, stage: &executor.Staging{}}, "cat got")
	if again != "x\n" || left.ID != one.Stage.ID {
		t.Errorf("later: %q in %s", again, left.ID)
	}
	stage, err := a.host.OpenStage(context.Background(), a.ws, left.ID[:4])
	must(t, err)
	must(t, stage.Discard(context.Background(), false)) // nothing uses it while the sandbox is idle
	if _, anew := a.staged(t, &job{in: s, stage: &executor.Staging{}}, "cat file"); anew.ID == left.ID ||
		anew.Total != 0 {
		t.Errorf("after the end of its stage: %+v", anew)
	}
}

// TestStageKilled: after a kill the host's tree is as it was, and the stage has what was written.
func TestStageKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.MkdirAll(a.base+"/state", 0o700))
	unchanged(t, a.ws)
	args := strings.Join(sh("rm file; mv dir d; echo x >made; "+readyAndWait), "\x01")
	cmd := exec.Command(os.Getenv(programVar), partFront, "start", "ws="+a.ws, "level=", "args="+args,
		"stage=test")
	cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+a.base+"/state", "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("%q, %v", line, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	dirs, err := filepath.Glob(a.base + "/state/sallyport/stages/*")
	if err != nil || len(dirs) != 1 {
		t.Fatalf("stages %q, %v", dirs, err)
	}
	lock, err := layers.OpenLocked(dirs[0], unix.LOCK_EX) // when the last process of the sandbox has ended
	must(t, err)
	layers.Unlock(lock)
	got, left := a.staged(t, &job{}, "cat made; ls d")
	if got != "x\n" || changesIn(left) != "added d, added made, deleted dir, deleted file" {
		t.Errorf("%q, %q", got, changesIn(left))
	}
	stage, err := a.host.OpenStage(context.Background(), a.ws, "test")
	must(t, err)
	if info := stage.Info(); info.Commands != 2 || info.Changes != 4 || info.Bytes == 0 {
		t.Errorf("%+v", info)
	}
}

// TestStageRefused: nothing runs without the stage.
func TestStageRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	unsupported := func(err error) bool {
		var e *sandbox.UnsupportedError
		return errors.As(err, &e) && e.Hint != ""
	}
	isStage := func(err error) bool {
		var e *executor.StageError
		return errors.As(err, &e) && e.Fix != ""
	}
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, a *arena, j *job)
		want    func(error) bool
	}{
		{"bwrap", func(_ *testing.T, a *arena, _ *job) { a.host.Only = plan.LevelBwrap }, unsupported},
		{"landlock", func(_ *testing.T, a *arena, _ *job) { a.host.Only = plan.LevelLandlock }, unsupported},
		{"full access", func(_ *testing.T, _ *arena, j *job) {
			p := sandbox.FullAccess()
			j.policy = &p
		}, isStage},
		{"external", func(t *testing.T, _ *arena, j *job) {
			p, err := sandbox.New(sandbox.External, sandbox.NetworkHost)
			must(t, err)
			j.policy = &p
		}, isStage},
		{"the state directory in the workspace", func(t *testing.T, a *arena, _ *job) {
			t.Setenv("XDG_STATE_HOME", a.ws+"/dir")
			must(t, os.Mkdir(a.ws+"/dir/sallyport", 0o700))
		}, unsupported},
		{"no such stage",
			func(_ *testing.T, _ *arena, j *job) { j.stage = &executor.Staging{ID: strings.Repeat("a", 16)} },
			func(err error) bool { return errors.Is(err, executor.ErrNoStage) }},
		{"a name that is a path",
			func(_ *testing.T, _ *arena, j *job) { j.stage = &executor.Staging{Name: "../x"} },
			func(err error) bool { return err != nil }},
		{"a program that does not exist",
			func(_ *testing.T, _ *arena, j *job) { j.args = []string{"no-such-program"} },
			func(err error) bool {
				var e *executor.StartError
				return errors.As(err, &e)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			j := &job{args: sh("echo ran >ran"), stage: &executor.Staging{}}
			test.prepare(t, a, j)
			unchanged(t, a.ws+"/.git", a.out)
			if _, err := a.run(t, j); !test.want(err) {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(a.ws + "/ran"); err == nil {
				t.Error("it ran")
			}
			if left, err := a.host.Stages(context.Background()); err != nil || len(left) > 0 {
				t.Errorf("it has left %+v, %v", left, err)
			}
		})
	}
}

// TestStageMountBelow: a root in which another file system is mounted is refused, with its name.
func TestStageMountBelow(t *testing.T) {
	testenv.NeedRoot(t)
	a := newArena(t)
	must(t, unix.Mount("none", a.ws+"/dir", "tmpfs", 0, ""))
	defer func() { must(t, unix.Unmount(a.ws+"/dir", 0)) }()
	_, err := a.run(t, &job{args: sh("true"), stage: &executor.Staging{}})
	var e *sandbox.UnsupportedError
	if !errors.As(err, &e) || !strings.Contains(e.Have, a.ws+"/dir") {
		t.Errorf("%v", err)
	}
}

// TestStagedEscapes: what a command may not do it may not do in a stage either; and there nothing reaches the
// workspace.
func TestStagedEscapes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, list := range map[string][]string{
		"files": names(fileAttacks(), linkAttacks()), "metadata": names(metaAttacks(), modeAttacks()),
		"mounts": names(mountAttacks()), "names": append(gitAttacks(), "ws-rename"),
		"kernel": names(kernelFileAttacks()),
	} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			must(t, os.Symlink(a.out+"/canary", a.ws+"/planted"))
			unchanged(t, a.out, a.ws)
			home, err := os.UserHomeDir()
			must(t, err)
			j := &job{stage: &executor.Staging{Name: "test"}}
			reader, err := unix.Open(a.out+"/pipe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			must(t, err)
			defer unix.Close(reader)
			a.expect(t, wordDenied, j, list, "home="+home, "git="+a.ws+"/.git")
			state := "at=" + a.base + "/state/sallyport"
			a.expect(t, wordDenied, j, []string{"list-at", "chmod-at", "remove-at"}, state)
			a.expect(t, wordDenied, j, []string{"append-at"}, state+"/stages")
		})
	}
}

// TestStagedGit: git works as in an ordinary run, and what is protected without the grant shows the stage.
func TestStagedGit(t *testing.T) {
	testenv.NeedProgram(t, "git")
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.RemoveAll(a.ws+"/.git"))
	git := func(line string) string {
		return strings.ReplaceAll(line, "git ", "git -c user.name=n -c user.email=e@x ")
	}
	setup := exec.Command("/bin/sh", "-c", git("git init -q && git add . && git commit -qm first"))
	setup.Dir, setup.Env = a.ws, []string{"PATH=/usr/bin:/bin", "HOME=" + a.base}
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	unchanged(t, a.ws)
	granted := a.policy().With(sandbox.Grant{Name: "git"})
	out, left := a.staged(t, &job{policy: &granted},
		git("echo more >>file && git add file && git commit -qm second && git log --format=%s && git "+
			"status --short"))
	if out != "second\nfirst\n" || left.Total == 0 {
		t.Errorf("commit: %q, %q", out, changesIn(left))
	}
	if slices.ContainsFunc(left.Changes, func(c executor.Change) bool { return c.Path == ".git/config" }) {
		t.Errorf("changes %q", changesIn(left))
	}
	out, _ = a.staged(t, &job{}, git("git log --format=%s; git status --short; git commit --allow-empty "+
		"-qm third 2>/dev/null || echo denied"))
	if !strings.HasPrefix(out, "second\nfirst\n") || !strings.HasSuffix(out, "denied\n") {
		t.Errorf("without the grant: %q", out)
	}
}
