// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// nulls are three null devices for commands that are not to start.
func nulls(t testing.TB) [3]*os.File {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { null.Close() })
	return [3]*os.File{null, null, null}
}

// killHolder kills what holds a sandbox, and waits until all in it was killed.
func killHolder(t testing.TB, s *Shared) {
	t.Helper()
	must(t, unix.Kill(s.holder.PID(), unix.SIGKILL))
	<-s.Done()
	<-s.cut
}

// A refusalCase is a start that fails in a shared sandbox, or what may come in its way and does not.
type refusalCase struct {
	name    string
	prepare func(t *testing.T, a *arena, s *Shared, spec *executor.Spec) context.Context
	want    func(error) bool
}

func isApart(err error) bool {
	var e *executor.ApartError
	return errors.As(err, &e)
}

func isEnded(err error) bool { return errors.Is(err, executor.ErrSharedEnded) }

func refusalCases() []refusalCase {
	why := errors.New("no longer wanted")
	return []refusalCase{
		{"closed", func(t *testing.T, _ *arena, s *Shared, _ *executor.Spec) context.Context {
			must(t, s.Close())
			return nil
		}, isEnded},
		{"holder killed", func(t *testing.T, _ *arena, s *Shared, _ *executor.Spec) context.Context {
			killHolder(t, s)
			return nil
		}, isEnded},
		{"holder killed at once", func(t *testing.T, _ *arena, s *Shared, _ *executor.Spec) context.Context {
			must(t, unix.Kill(s.holder.PID(), unix.SIGKILL))
			return nil
		}, func(err error) bool { return err == nil || isEnded(err) }}, // its end was not seen yet
		{"no sandbox", func(_ *testing.T, _ *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Policy = sandbox.FullAccess()
			return nil
		}, isApart},
		{"the network of the host", func(_ *testing.T, a *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Policy = a.policy().WithNetwork(sandbox.NetworkHost)
			return nil
		}, isApart},
		{"a proxy", func(_ *testing.T, a *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Policy = a.policy().WithNetwork(sandbox.NetworkProxy)
			return nil
		}, isApart},
		{"no policy", func(_ *testing.T, _ *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Policy = sandbox.Policy{}
			return nil
		}, func(err error) bool { return err != nil }},
		{"missing program", func(_ *testing.T, _ *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Args = []string{"no-such-program"}
			return nil
		}, func(err error) bool {
			var e *executor.StartError
			return errors.As(err, &e) && e.NotFound
		}},
		{"missing directory", func(_ *testing.T, a *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Dir = a.base + "/none"
			return nil
		}, func(err error) bool {
			var e *executor.DirError
			return errors.As(err, &e)
		}},
		{"directory that is hidden", func(_ *testing.T, a *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Policy = a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
			spec.Dir = a.out + "/dir"
			return nil
		}, func(err error) bool { return err != nil }},
		{"no arguments of a program", func(_ *testing.T, a *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Args = []string{a.ws}
			return nil
		}, func(err error) bool { return err != nil }},
		{"level that is weaker", func(_ *testing.T, _ *arena, _ *Shared, spec *executor.Spec) context.Context {
			spec.Level = "landlock" // the least that is accepted: it starts
			return nil
		}, func(err error) bool { return err == nil }},
		{"canceled", func(*testing.T, *arena, *Shared, *executor.Spec) context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(why)
			return ctx
		}, func(err error) bool { return errors.Is(err, why) }},
		{"host closed", func(t *testing.T, a *arena, s *Shared, _ *executor.Spec) context.Context {
			must(t, s.Close())
			must(t, a.host.Close())
			return nil
		}, func(err error) bool { return err != nil }},
	}
}

func TestSharedRefuses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, known := range []bool{false, true} {
		for _, test := range refusalCases() {
			t.Run(fmt.Sprintf("%s/known %v", test.name, known), func(t *testing.T) {
				a := newArena(t)
				s := a.open(t, a.policy())
				if known {
					mustRun(t, a, &job{in: s, args: sh(`:`)})
				}
				spec := a.request(&job{args: sh(`:`)})
				ctx := test.prepare(t, a, s, spec)
				if ctx == nil {
					ctx = context.Background()
				}
				c, err := s.Start(ctx, spec, nulls(t))
				if !test.want(err) {
					t.Errorf("%T %v", err, err)
				}
				if err == nil {
					finish(t, c)
					return
				}
				alone, other := a.host.Start(ctx, spec, nulls(t))
				if other == nil {
					finish(t, alone)
				} else if !isEnded(err) && !isApart(err) && err.Error() != other.Error() {
					t.Errorf("here %v, in a sandbox of its own %v", err, other)
				}
			})
		}
	}
}

func TestSharedNotOpened(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		policy sandbox.Policy
	}{
		"full access": {context.Background(), sandbox.FullAccess()}, "canceled": {ctx, a.policy()},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := a.host.Open(c.ctx, &executor.SharedSpec{Policy: c.policy}); err == nil {
				t.Error("it is open")
				must(t, s.Close())
			}
		})
	}
	must(t, a.host.Close())
	if _, err := a.host.Open(context.Background(),
		&executor.SharedSpec{Policy: a.policy()}); !errors.Is(err, errClosed) {
		t.Errorf("a closed host: %v", err)
	}
}

// TestSharedHolderKilled: what runs in a sandbox ends with it, and says so.
func TestSharedHolderKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	first, second := a.agent(t, &job{in: s}), a.agent(t, &job{in: s})
	alone := a.agent(t, &job{})
	if e := mustExit(t, a, s, nil, `exit 7`); e.Code != 7 || e.Broken != nil {
		t.Errorf("before: %+v", e)
	}
	for _, g := range []*agent{first, second} {
		g.fact(t, "child")
	}
	killHolder(t, s)
	for _, g := range []*agent{first, second} {
		if e := g.end(t); !errors.Is(e.Broken, executor.ErrSharedEnded) || e.Code >= 0 &&
			e.Signal != int(unix.SIGKILL) {
			t.Errorf("ended with %d, signal %d, broken %v", e.Code, e.Signal, e.Broken)
		}
	}
	alone.fact(t, "hello")
	tmp := s.parts.Tmp
	must(t, s.Close())
	must(t, s.Close())
	if _, err := os.Lstat(tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its /tmp is there: %v", err)
	}
}

// mustExit runs a line in a shared sandbox and returns all that is known of its end.
func mustExit(t *testing.T, a *arena, s *Shared, allow []string, line string) *executor.Exit {
	t.Helper()
	c, err := a.startIn(s, a.request(&job{allow: allow, args: sh(line)}), nil, nullSlice(t)...)
	must(t, err)
	return finish(t, c)
}

func nullSlice(t *testing.T) []*os.File {
	t.Helper()
	n := nulls(t)
	return n[:]
}

// TestSharedHolderKilledMeanwhile: a start at that moment fails with that reason, or the command does.
func TestSharedHolderKilledMeanwhile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for round := range testenv.Rounds(6, 80) {
		s := a.open(t, a.policy())
		if round%2 == 0 {
			mustExit(t, a, s, nil, `:`)
		}
		var started sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range 4 {
			started.Go(func() {
				for {
					begun <- struct{}{}
					c, err := s.Start(context.Background(), a.request(&job{args: sh(`exit 3`)}),
						[3]*os.File(nullSlice(t)))
					if err != nil {
						if !errors.Is(err, executor.ErrSharedEnded) {
							t.Errorf("%T %v", err, err)
						}
						return
					}
					if e := finish(t, c); e.Code != 3 && !errors.Is(e.Broken, executor.ErrSharedEnded) ||
						e.Code == 3 && e.Broken != nil {
						t.Errorf("ended with %d, signal %d, broken %v", e.Code, e.Signal, e.Broken)
					}
				}
			})
		}
		for range 4 + round%5 {
			<-begun
		}
		go func() {
			for range begun {
			}
		}()
		_ = unix.Kill(s.holder.PID(), unix.SIGKILL)
		started.Wait()
		close(begun)
		must(t, s.Close())
	}
}

// TestSharedWorkspaceChanges: a command sees what is at the name of its workspace when it starts.
func TestSharedWorkspaceChanges(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	nameAll(t, a.ws)
	s := a.open(t, a.policy())
	put := func(text string) result {
		return mustRun(t, a,
			&job{in: s, args: sh(`echo "$1" >written`, text)})
	}
	if res := put("first"); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	must(t, os.Rename(a.ws, a.base+"/old"))
	_, err := a.run(t, &job{in: s, args: sh(`:`)})
	_, alone := a.run(t, &job{args: sh(`:`)})
	if err == nil || alone == nil || err.Error() != alone.Error() {
		t.Errorf("removed: %v, in a sandbox of its own %v", err, alone)
	}
	must(t, os.Mkdir(a.ws, 0o755))
	if res := put("second"); res.code != 0 {
		t.Errorf("replaced: %+v", res)
	}
	for name, want := range map[string]string{a.base + "/old/written": "first\n", a.ws +
		"/written": "second\n"} {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	must(t, os.RemoveAll(a.ws))
	must(t, os.Rename(a.base+"/old", a.ws))
	if res := put("third"); res.code != 0 {
		t.Errorf("back again: %+v", res)
	}
	must(t, os.Rename(a.ws, a.base+"/real"))
	must(t, os.Symlink("out", a.ws))
	if _, err := a.run(t, &job{in: s, args: sh(`echo evil >written`), dir: a.base}); err == nil {
		if _, err := os.Lstat(a.out + "/written"); err == nil {
			t.Error("the link was followed")
		}
	}
	must(t, os.Remove(a.ws))
	must(t, os.Rename(a.base+"/real", a.ws))
}

// TestSharedManyAtOnce starts a hundred commands, with several policies.
func TestSharedManyAtOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	closed := a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			j := &job{in: s, args: sh(`cat "$1"/dir/deep; echo x >"$2/$3"; exit 5`, a.out, a.ws,
				fmt.Sprint(i))}
			want := "deep"
			if i%3 == 0 {
				j.policy, want = &closed, ""
			}
			if res, err := a.run(t, j); err != nil || res.code != 5 || res.out != want {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
	wg.Wait()
	for i := range 100 {
		if _, err := os.Lstat(fmt.Sprintf("%s/%d", a.ws, i)); err != nil {
			t.Error(err)
		}
	}
	must(t, s.Close())
	must(t, a.host.Close())
	goleak.VerifyNone(t)
}

// TestSharedUsedUp: what one command does to what is common stops no other one from running.
func TestSharedUsedUp(t *testing.T) {
	testenv.RunAsOrdinary(t)
	private := "/dev/shm/" + filepath.Base(newArena(t).base) // the host has none of that name
	tests := []struct{ name, line, after string }{
		{"closes /tmp", `chmod 0 /tmp; exit 0`, `chmod 700 /tmp; echo fine`},
		{"removes /tmp", `rm -rf /tmp 2>/dev/null; exit 0`, `echo x >/tmp/x && echo fine`},
		{"links in /tmp", `cd /tmp; ln -s / root; ln -s loop loop; mkdir -m 0 closed; mkfifo pipe`, `ls /tmp/loop >/dev/null 2>&1; echo fine`},
		{"many files", `i=0; while [ $i -lt 2000 ]; do : >/dev/shm/$i; : >/tmp/$i; i=$((i+1)); done`, "echo x >" + private + " && echo fine"},
		{"closes /dev/shm", `chmod 0 /dev/shm; rm -rf /dev/shm; mv /dev/shm /dev/shn; exit 0`, `echo fine`},
		{"files of other commands", `mkdir -p /tmp/.X11-unix /tmp/ssh-x; : >/tmp/.git; mkdir /tmp/.codex`, `echo fine`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			s := a.open(t, a.policy())
			if res := mustRun(t, a, &job{in: s, args: sh(test.line)}); res.code != 0 {
				t.Logf("%+v", res)
			}
			if res := mustRun(t, a, &job{in: s, args: sh(test.after)}); res.out != "fine\n" {
				t.Errorf("%+v", res)
			}
			if _, err := os.Lstat(private); err == nil {
				t.Error("it was the host's")
			}
		})
	}
	t.Run("ports", func(t *testing.T) {
		a := newArena(t)
		s := a.open(t, a.policy())
		greedy := a.agent(t, &job{in: s})
		t.Log(greedy.fact(t, "take-ports"), "ports")
		next := a.agent(t, &job{in: s})
		next.fact(t, "hello")
		greedy.end(t)
		if v := next.do(t, "own-loopback"); v.word != wordOK {
			t.Errorf("%v", v)
		}
	})
	t.Run("segments", func(t *testing.T) {
		a := newArena(t)
		s := a.open(t, a.policy())
		mustRun(t, a, &job{in: s,
			args: sh(`i=0; while [ $i -lt 50 ]; do ipcmk -M 4096 -Q -S 1 || break; i=$((i+1)); done >/dev/null 2>&1; exit 0`)})
		if res := mustRun(t, a, &job{in: s, args: sh(`echo fine`)}); res.out != "fine\n" {
			t.Errorf("%+v", res)
		}
	})
}

// TestSharedKill: what runs in a sandbox that is killed is told that it has ended, before Kill returns.
func TestSharedKill(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	first := a.agent(t, &job{in: s})
	first.fact(t, "hello")
	s.Kill()
	for _, c := range s.running() {
		if !c.cut.Load() {
			t.Error("a command does not know that its sandbox has ended")
		}
	}
	if _, err := s.Start(context.Background(), a.request(&job{args: sh(`:`)}), nulls(t)); !errors.Is(err,
		executor.ErrSharedEnded) {
		t.Errorf("after its end: %v", err)
	}
}

// TestSharedExceeds: the commands that were measured are killed, not one that has started since then;
// and while they end, what they still have does not count.
func TestSharedExceeds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	first := a.agent(t, &job{in: s})
	first.fact(t, "hello")
	if got, want := s.processes(), first.child.Processes(); len(want) == 0 || !slices.Equal(got, want) {
		t.Fatalf("measured are %v, want %v", got, want)
	}
	second := a.agent(t, &job{in: s})
	second.fact(t, "hello")
	must(t, unix.Kill(first.child.PID(), unix.SIGSTOP)) // its reaper: it is long in ending
	s.exceed(executor.Enforced{Limit: executor.LimitMemory, Value: 1 << 20, By: executor.ByWatch, Hit: true})
	if got, want := s.processes(), second.child.Processes(); !slices.Equal(got, want) ||
		len(first.child.Processes()) == 0 {
		t.Errorf("measured are %v, want %v", got, want)
	}
	must(t, unix.Kill(first.child.PID(), unix.SIGCONT))
	if line, err := first.lines.ReadString('\n'); err != io.EOF { // it is killed while it waits for input
		t.Errorf("%q, %v", line, err)
	}
	if exit := first.end(t); exit.Limit != executor.LimitMemory || exit.Signal != int(unix.SIGKILL) ||
		len(exit.Limits) != 1 {
		t.Errorf("a command that was measured: %+v", exit)
	}
	second.fact(t, "hello")
	if exit := second.end(t); exit.Limit != "" || exit.Code != 0 {
		t.Errorf("a command that has started since then: %+v", exit)
	}
}

// TestSharedExceedsQueueFull: a command that has filled the queue of signals is killed for a limit all
// the same.
func TestSharedExceedsQueueFull(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	s := a.open(t, a.policy())
	limit := executor.Enforced{Limit: executor.LimitMemory, Value: 1 << 20, By: executor.ByWatch, Hit: true}
	for _, test := range []struct {
		name   string
		in     *Shared
		exceed func(*Child)
		want   executor.Exit
	}{
		{"a limit of all", s, func(*Child) { s.processes(); s.exceed(limit) }, executor.Exit{Limit: executor.LimitMemory, Code: 137, Signal: 9}},
		{"its own", nil, (*Child).overLimit, executor.Exit{Code: -1}},
		{"its own, in a shared sandbox", s, (*Child).overLimit, executor.Exit{Code: -1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := a.agent(t, &job{in: test.in})
			g.fact(t, "hello")
			must(t, unix.Prlimit(g.child.PID(), unix.RLIMIT_SIGPENDING, &unix.Rlimit{}, nil))
			if err := g.child.Signal(unix.SIGCONT, true); !errors.Is(err, unix.EAGAIN) {
				t.Fatalf("the queue is not full: %v", err)
			}
			test.exceed(g.child)
			if line, err := g.lines.ReadString('\n'); err != io.EOF { // it is killed while it waits for input
				t.Errorf("%q, %v", line, err)
			}
			if exit := g.end(t); exit.Limit != test.want.Limit || exit.Code != test.want.Code ||
				exit.Signal != test.want.Signal {
				t.Errorf("%+v", exit)
			}
		})
	}
}

// TestSharedMountsKnown: the second command with a policy makes no mount of the workspace, and proves those
// that are there; another policy makes its own.
func TestSharedMountsKnown(t *testing.T) {
	testenv.RunAsOrdinary(t)
	var wrong []string
	undisturbed(t, func() bool {
		wrong = mountsKnown(t)
		return wrong == nil
	})
	if wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
}

func mountsKnown(t *testing.T) (wrong []string) {
	t.Helper()
	a := newArena(t)
	s := a.open(t, a.policy())
	closed := a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
	const made, known = "makes", "finds"
	tests := []struct {
		name string
		job  job
		want string
	}{
		{"first", job{}, made}, {"second", job{}, known}, {"third", job{}, known},
		{"another policy", job{policy: &closed}, made}, {"that again", job{policy: &closed}, known}, {"the first again", job{}, known},
		{"another directory", job{dir: a.ws + "/dir"}, known}, {"another environment", job{env: []string{"A=1"}}, known},
		{"more calls allowed", job{allow: []string{"ptrace"}}, known}, {"without an observer", job{blind: true}, known},
		{"/tmp of the host", job{tmp: "host"}, made},
	}
	for _, test := range tests {
		r := a.request(&test.job)
		r.Args, r.Explain = []string{"/bin/true"}, true
		c, err := s.Start(context.Background(), r, nulls(t))
		must(t, err)
		box := c.Sandbox()
		if e := finish(t, c); e.Code != 0 {
			t.Errorf("%s: %+v", test.name, e)
		}
		expects := script(box.Script, "expect-mount "+a.ws)
		makes := slices.ContainsFunc(script(box.Script, "clone "),
			func(line string) bool { return strings.Contains(line+" ", " "+a.ws+" ") })
		if !box.Shared || len(expects) == 1 != (test.want == known) || makes != (test.want == made) {
			wrong = append(wrong, fmt.Sprintf("%s: expected %q, made %v, shared %v\n%s", test.name, expects,
				makes, box.Shared, box.Script))
		}
	}
	return wrong
}

// script returns the lines of a script that begin with a word.
func script(text, word string) (out []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(line, " 0123456789")) // its number
		if line == word || strings.HasPrefix(line, strings.TrimSuffix(word, " ")+" ") {
			out = append(out, line)
		}
	}
	return out
}
