// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A place is a table whose runs have one workspace, with the policy of a sandbox.
type place struct {
	*Table
	dir      string
	busy     *atomic.Int64
	prepared func() // is called when a run was prepared
}

// newPlace returns one. A first word "--wide" has the run have an opening.
func newPlace(t *testing.T) *place {
	t.Helper()
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	p := &place{dir: t.TempDir(), busy: new(atomic.Int64), prepared: func() {}}
	p.Table = New(func(_ context.Context, r *Request) (*Prepared, error) {
		cmd := &sallyport.Cmd{Args: r.Args, Dir: r.Dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: -1}
		if r.Args[0] == "--wide" {
			cmd.Args, cmd.Allow = r.Args[1:], []string{"unix"}
		}
		p.prepared()
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
func (p *place) start(t *testing.T, owner string, idle time.Duration,
	script ...string) (*Run, *sallyport.Result, error) {
	t.Helper()
	r, err := p.Reserve(owner)
	if err != nil {
		t.Fatal(err)
	}
	args := append(script[:len(script)-1:len(script)-1], "sh", "-c", script[len(script)-1])
	res, err := r.Start(t.Context(), &Request{Args: args, Dir: p.dir, Environ: []string{},
		Named: &Named{Name: "n", Idle: idle}})
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
	if got := p.output(t, "other", "test -e /tmp/note || echo none; "+networks); !strings.HasPrefix(got,
		"none\n") || strings.HasSuffix(got, first) {
		t.Errorf("another owner: %q", got)
	}
	waits := p.running(t, "me", time.Minute, "mkfifo /tmp/f; echo x; cat /tmp/f")
	if _, err := waits.Wait(t.Context(), Until{For: time.Minute, FirstOutput: true}); err != nil {
		t.Fatal(err)
	}
	if got := p.Named("me"); len(got) != 1 || got[0].Name != "n" || got[0].Running != 1 ||
		got[0].IdleLeft != nil || got[0].Workspace != p.dir || got[0].Idle != time.Hour {
		t.Errorf("%+v", got)
	}
	p.output(t, "me", "echo done >/tmp/f")
	ended(t, waits)
	if got := p.Named("me"); len(got) != 1 || got[0].Running != 0 || got[0].IdleLeft == nil ||
		*got[0].IdleLeft > time.Hour {
		t.Errorf("%+v", got)
	}
	if got := p.Named("nobody"); got != nil {
		t.Errorf("%+v", got)
	}
	var none *Error
	if err := p.StopNamed("nobody", "n"); !errors.As(err, &none) || none.Reason != UnknownSandbox ||
		len(p.Named("me")) != 1 {
		t.Errorf("ended by another owner: %v", err)
	}
	_, res, err := p.start(t, "me", 0, "--wide", "true")
	if err != nil || res == nil || !strings.Contains(res.Error,
		"cannot join the sandbox n: this run has --allow unix, which") {
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

// TestNamedEnds: what runs in a sandbox that ends is told why, nothing stays, and the next run opens
// another one.
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
			if test.name == "stopped" {
				over(t, s)
			}
			if res := ended(t, r); !strings.Contains(res.Error, executor.ErrSharedEnded.Error()) {
				t.Errorf("%+v", res)
			}
			<-s.ended
			if got := p.Named("me"); got != nil {
				t.Errorf("%+v", got)
			}
			if left, err := filepath.Glob(os.Getenv("XDG_STATE_HOME") +
				"/sallyport/tmp/*/note"); len(left) != 0 || err != nil {
				t.Errorf("left of it: %v, %v", left, err)
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

// over fails a test if something of a sandbox may be left.
func over(t *testing.T, s *named) {
	t.Helper()
	select {
	case <-s.ended:
	default:
		t.Error("its end was not waited for")
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

// TestNamedIdle: a sandbox ends when nothing has run in it for its time, which the run that opened it
// has set.
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

// TestNamedAgain: the time begins again with the end of each run, and is the default where none is said.
func TestNamedAgain(t *testing.T) {
	p := newPlace(t)
	ended(t, p.running(t, "me", 0, "true"))
	if got := p.Named("me"); len(got) != 1 || got[0].Idle != DefaultIdle || got[0].Running != 0 {
		t.Fatalf("%+v", got)
	}
	s := p.of("me")
	p.mu.Lock()
	s.idle = time.Millisecond
	p.mu.Unlock()
	p.output(t, "me", "true")
	<-s.ended
}

// TestNamedLate: a timer that fires late ends no sandbox that is used or was used since, and none twice.
func TestNamedLate(t *testing.T) {
	p := newPlace(t)
	p.output(t, "me", "true")
	s := p.of("me")
	s.expire()
	if p.of("me") != s {
		t.Error("it has ended before its time")
	}
	p.mu.Lock()
	s.unused = time.Time{}
	s.running++
	p.mu.Unlock()
	s.expire()
	if p.of("me") != s {
		t.Error("it has ended while it was used")
	}
	p.mu.Lock()
	s.running--
	p.mu.Unlock()
	if err := p.StopNamed("me", "n"); err != nil {
		t.Error(err)
	}
	s.expire()
}

// TestNamedFailed: of a sandbox that could not be opened nothing stays, and who waits for another run to open
// one gives up.
func TestNamedFailed(t *testing.T) {
	p := newPlace(t)
	for _, test := range []struct {
		name string
		s    *named // what exists already
	}{{"could not be opened", nil}, {"is opened by another run",
		&named{opened: make(chan struct{}), ended: make(chan struct{}), idle: time.Hour}}} {
		r, err := p.Reserve("me")
		if err != nil {
			t.Fatal(err)
		}
		if test.s != nil {
			test.s.table, test.s.key = p.Table, namedKey{"me", "n"}
			p.named[test.s.key] = test.s
		}
		ctx, cancel := context.WithCancel(t.Context())
		p.prepared = cancel
		res, err := r.Start(ctx, &Request{Args: []string{"true"}, Dir: p.dir, Environ: []string{},
			Named: &Named{Name: "n"}})
		p.prepared = func() {}
		if err == nil && res == nil {
			t.Errorf("%s: it runs", test.name)
		}
		if got := p.Named("me"); got != nil {
			t.Errorf("%s: %+v", test.name, got)
		}
		if test.s == nil {
			p.output(t, "me", "true")
			if err := p.StopNamed("me", "n"); err != nil {
				t.Error(err)
			}
		} else {
			delete(p.named, test.s.key)
		}
	}
}

// TestNamedLimit: an owner has so many sandboxes at most, which can still be joined, and others are not
// held up by that. They are listed by their names.
func TestNamedLimit(t *testing.T) {
	p := newPlace(t)
	opened := make(chan struct{})
	close(opened)
	fill := func(n int) {
		key := namedKey{"me", strconv.Itoa(100 + n)}
		p.named[key] = &named{table: p.Table, key: key, own: new(needs), opened: opened}
	}
	for i := range maxNamed - 1 {
		fill(i)
	}
	p.output(t, "me", "true")
	p.output(t, "me", "true") // the last one that may be
	if got := p.Named("me"); len(got) != maxNamed ||
		!slices.IsSortedFunc(got, func(a, b NamedInfo) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%+v", got)
	}
	if err := p.StopNamed("me", "n"); err != nil {
		t.Fatal(err)
	}
	fill(maxNamed - 1)
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
	s := p.of("me")
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
	if _, err := r.Start(t.Context(), &Request{Args: []string{"true"}, Dir: p.dir, Environ: []string{},
		Named: &Named{Name: "x"}}); !errors.As(err, &e) || e.Reason != Closed {
		t.Errorf("%v", err)
	}
	<-stopped
	over(t, s)
	if len(p.named) != 0 {
		t.Errorf("%d are left", len(p.named))
	}
}

// TestElse: a run that cannot join runs on its own, beside the sandbox.
func TestElse(t *testing.T) {
	p := newPlace(t)
	p.running(t, "a", time.Hour, "sleep 60")
	r, err := p.Reserve("a")
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Start(t.Context(), &Request{Args: []string{"--wide", "sleep", "60"}, Dir: p.dir,
		Environ: []string{}, Named: &Named{Name: "n", Else: true}})
	if err != nil || res != nil || r.named != nil || p.of("a") == nil {
		t.Fatalf("%+v, %v, joined %v", res, err, r.named != nil)
	}
}
