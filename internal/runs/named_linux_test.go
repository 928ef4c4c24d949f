// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A place is a table whose runs have one workspace, with the policy of a sandbox.
type place struct {
	*Table
	dir  string
	busy *atomic.Int64
}

// newPlace returns one. A first word "--wide" has the run have an opening.
func newPlace(t *testing.T) *place {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	p := &place{dir: t.TempDir(), busy: new(atomic.Int64)}
	p.Table = New(func(_ context.Context, r *Request) (*Prepared, error) {
		cmd := &sallyport.Cmd{Args: r.Args, Dir: r.Dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: -1}
		if r.Args[0] == "--wide" {
			cmd.Args, cmd.Allow = r.Args[1:], []string{"unix"}
		}
		return &Prepared{Runner: &sallyport.Runner{Policy: sandbox.WorkspaceWrite()}, Cmd: cmd}, nil
	}, nil, nil, nil, func(n int) { p.busy.Add(int64(n)) })
	t.Cleanup(func() {
		p.Close()
		if n := p.busy.Load(); n != 0 || len(p.named) != 0 {
			t.Errorf("after the end %d are busy, %d sandboxes are known", n, len(p.named))
		}
	})
	return p
}

// start starts a script of an owner in the sandbox n.
func (p *place) start(t *testing.T, owner string, idle time.Duration, script ...string) (*Run, *sallyport.Result, error) {
	t.Helper()
	r, err := p.Reserve(owner)
	if err != nil {
		t.Fatal(err)
	}
	args := append(script[:len(script)-1:len(script)-1], "sh", "-c", script[len(script)-1])
	res, err := r.Start(t.Context(), &Request{Args: args, Dir: p.dir, Environ: []string{}, Named: &Named{Name: "n", Idle: idle}})
	return r, res, err
}

// of returns the sandbox n of an owner.
func (p *place) of(owner string) *named {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.named[namedKey{owner, "n"}]
}

// running starts a script that must start.
func (p *place) running(t *testing.T, owner string, idle time.Duration, script string) *Run {
	t.Helper()
	r, res, err := p.start(t, owner, idle, script)
	if err != nil || res != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	return r
}

// output runs a script.
func (p *place) output(t *testing.T, owner, script string) string {
	t.Helper()
	res := ended(t, p.running(t, owner, time.Hour, script))
	if res.ExitCode != 0 {
		t.Errorf("%s: %s%s", script, res.Stderr.Bytes(), res.Error)
	}
	return string(res.Stdout.Bytes())
}

// TestNamed: runs of an owner share the network and /tmp; another owner has another sandbox of that name.
func TestNamed(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := newPlace(t)
	const networks = "readlink /proc/self/ns/net /proc/self/ns/ipc"
	first := p.output(t, "me", "echo hello >/tmp/note; "+networks)
	if got := p.output(t, "me", "cat /tmp/note; "+networks); got != "hello\n"+first || first == "" {
		t.Errorf("%q, and the first %q", got, first)
	}
	if got := p.output(t, "other", "test -e /tmp/note || echo none; "+networks); !strings.HasPrefix(got, "none\n") || strings.HasSuffix(got, first) {
		t.Errorf("another owner: %q", got)
	}
	waits := p.running(t, "me", time.Minute, "mkfifo /tmp/f; echo x; cat /tmp/f")
	if _, err := waits.Wait(t.Context(), Until{For: time.Minute, FirstOutput: true}); err != nil {
		t.Fatal(err)
	}
	if got := p.Named("me"); len(got) != 1 || got[0].Name != "n" || got[0].Running != 1 || got[0].IdleLeft != nil || got[0].Workspace != p.dir || got[0].Idle != time.Hour {
		t.Errorf("%+v", got)
	}
	p.output(t, "me", "echo done >/tmp/f")
	ended(t, waits)
	if got := p.Named("me"); len(got) != 1 || got[0].Running != 0 || got[0].IdleLeft == nil || *got[0].IdleLeft > time.Hour {
		t.Errorf("%+v", got)
	}
	if got := p.Named("nobody"); got != nil {
		t.Errorf("%+v", got)
	}
	_, res, err := p.start(t, "me", 0, "--wide", "true")
	if err != nil || res == nil || !strings.Contains(res.Error, "cannot join the sandbox n: this run has --allow unix, which") {
		t.Errorf("a wider run: %+v, %v", res, err)
	}
	if got := p.Named("me"); len(got) != 1 || got[0].Running != 0 {
		t.Errorf("after a run that was refused: %+v", got)
	}
}

// TestManyOpen: of several runs that open a sandbox at once, one does.
func TestManyOpen(t *testing.T) {
	p := newPlace(t)
	const n = 8
	var all [n]string
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i] = p.output(t, "me", "readlink /proc/self/ns/net") })
	}
	starting.Wait()
	for _, network := range all {
		if network != all[0] || network == "" {
			t.Errorf("%q", all)
		}
	}
}

// TestNamedEnds: what runs in a sandbox that ends is told why, nothing stays, and the next run opens another one.
func TestNamedEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(t *testing.T, p *place)
	}{
		{"stopped", func(t *testing.T, p *place) {
			if err := p.StopNamed("me", "n"); err != nil {
				t.Error(err)
			}
		}},
		{"holder killed", func(t *testing.T, _ *place) {
			for _, pid := range holders(t) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			r := p.running(t, "me", time.Hour, "echo x >/tmp/note; echo x; exec sleep 600")
			if _, err := r.Wait(t.Context(), Until{For: time.Minute, FirstOutput: true}); err != nil {
				t.Fatal(err)
			}
			s := p.of("me")
			test.end(t, p)
			if res := ended(t, r); !strings.Contains(res.Error, executor.ErrSharedEnded.Error()) {
				t.Errorf("%+v", res)
			}
			<-s.ended
			if got := p.Named("me"); got != nil {
				t.Errorf("%+v", got)
			}
			if got := p.output(t, "me", "test -e /tmp/note || echo none"); got != "none\n" {
				t.Errorf("%q", got)
			}
		})
	}
	p := newPlace(t)
	var e *Error
	if err := p.StopNamed("me", "n"); !errors.As(err, &e) || e.Reason != UnknownSandbox {
		t.Errorf("one that there is not: %v", err)
	}
}

// holders returns the children of this process that have none: those that hold sandboxes. Commands have a
// reaper between.
func holders(t *testing.T) (pids []int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(text))
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		all = append(all, strings.Fields(string(text))...)
	}
	for _, pid := range all {
		below, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		n, err := strconv.Atoi(pid)
		if len(below) == 0 && err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// TestNamedIdle: a sandbox ends when nothing has run in it for its time, which the run that opened it has set.
func TestNamedIdle(t *testing.T) {
	p := newPlace(t)
	r := p.running(t, "me", time.Millisecond, "mkfifo /tmp/f; echo x; cat /tmp/f")
	if _, err := r.Wait(t.Context(), Until{For: time.Minute, FirstOutput: true}); err != nil {
		t.Fatal(err)
	}
	s := p.of("me")
	p.mu.Lock()
	if s.timer != nil || s.over || s.idle != time.Millisecond {
		t.Errorf("while it is used: %+v", s)
	}
	p.mu.Unlock()
	p.output(t, "me", "echo >/tmp/f")
	ended(t, r)
	<-s.ended
	if got := p.Named("me"); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestNamedLimit: an owner has so many sandboxes at most, and others are not held up by that.
func TestNamedLimit(t *testing.T) {
	p := newPlace(t)
	for i := range maxNamed {
		s := &named{table: p.Table, key: namedKey{"me", strconv.Itoa(i)}}
		p.named[s.key] = s
	}
	_, res, err := p.start(t, "me", 0, "true")
	var e *Error
	if !errors.As(err, &e) || e.Reason != Limit || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
	p.output(t, "other", "true")
	for key := range p.named {
		if key.owner == "me" {
			delete(p.named, key)
		}
	}
}

// TestNamedClosed: Stop ends all of them, and none is opened afterwards.
func TestNamedClosed(t *testing.T) {
	p := newPlace(t)
	p.running(t, "me", time.Hour, "exec sleep 600")
	r, err := p.Reserve("me")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		p.Stop()
		close(stopped)
	}()
	<-p.life.Done()
	var e *Error
	if _, err := r.Start(t.Context(), &Request{Args: []string{"true"}, Dir: p.dir, Environ: []string{}, Named: &Named{Name: "x"}}); !errors.As(err, &e) || e.Reason != Closed {
		t.Errorf("%v", err)
	}
	<-stopped
	if len(p.named) != 0 {
		t.Errorf("%d are left", len(p.named))
	}
}
