// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// childVar is set in programs that run under a supervisor. The test binary plays those
// that no shell can.
const childVar = "SALLYPORT_OBSERVER_TEST_CHILD"

func child(args []string) int {
	var err error
	switch args[0] {
	case "rename-argument":
		err = renameArgument(args[1])
	case "special":
		var text string
		if text, err = special(args[1]); err == nil {
			fmt.Println(text)
			return 0
		}
	case "modes":
		var text string
		if text, err = modes(args[1]); err == nil {
			fmt.Println(text)
			return 0
		}
	case "connect":
		var c net.Conn
		if c, err = net.Dial("unix", args[1]); err == nil {
			err = c.Close()
		}
	case "connect-all":
		err = connectAll(args[1])
	case "refused":
		err = makeRefused()
	case "connect-forever":
		err = connectForever(args[1])
	}
	fmt.Println(outcome(err))
	return 0
}

func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

// renameArgument makes the directory asked, and changes the path to other while the call
// waits, as soon as go exists. Then it makes changed.
func renameArgument(dir string) error {
	path := append([]byte(dir+"/asked"), 0)
	made := make(chan error)
	go func() {
		// AT_FDCWD is -100
		_, _, errno := unix.Syscall(unix.SYS_MKDIRAT, ^uintptr(99), uintptr(unsafe.Pointer(&path[0])), 0o755)
		if errno != 0 {
			made <- errno
			return
		}
		made <- nil
	}()
	for {
		if _, err := os.Stat(dir + "/go"); err == nil {
			break
		}
	}
	copy(path[len(dir):], "/other")
	if err := os.Mkdir(dir+"/changed", 0o755); err != nil {
		return err
	}
	return <-made
}

// An askJudge allows every access but those to paths that it asks about.
type askJudge struct {
	dir string
	ask map[string]func(context.Context, protect.Access, protect.Caller) protect.Ruling // by name in dir

	mu    sync.Mutex
	seen  []string                 // names in dir that were ruled on
	await map[string]chan struct{} // closed when a name has been
}

func newAskJudge(dir string, ask map[string]func(context.Context, protect.Access,
	protect.Caller) protect.Ruling) *askJudge {
	return &askJudge{dir: dir, ask: ask, await: make(map[string]chan struct{})}
}

func (j *askJudge) Rule(a protect.Access) protect.Ruling {
	name := strings.TrimPrefix(a.Path, j.dir+"/")
	j.mu.Lock()
	if !slices.Contains(j.seen, name) {
		close(j.channel(name))
	}
	j.seen = append(j.seen, name)
	j.mu.Unlock()
	if ask := j.ask[name]; ask != nil {
		return protect.Ruling{Ask: func(ctx context.Context,
			by protect.Caller) protect.Ruling {
			return ask(ctx, a, by)
		}}
	}
	return protect.Ruling{Allow: true}
}

// channel returns what is closed when a name has been ruled on. The caller holds mu.
func (j *askJudge) channel(name string) chan struct{} {
	if j.await[name] == nil {
		j.await[name] = make(chan struct{})
	}
	return j.await[name]
}

// until blocks until a name has been ruled on.
func (j *askJudge) until(name string) {
	j.mu.Lock()
	c := j.channel(name)
	j.mu.Unlock()
	<-c
}

func (j *askJudge) EveryName(dir string) bool      { return dir == j.dir }
func (j *askJudge) EveryDirectory(string) bool     { return false }
func (j *askJudge) Hidden(sandbox.Op, string) bool { return false }

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// TestAsk: while one call waits for a ruling, other processes of the tree go on. The
// ruling then decides.
func TestAsk(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	const script = `(mkdir "$0/asked" 2>/dev/null && echo made || echo denied) & mkdir "$0/free" && rmdir "$0/free" && mkdir "$0/last"; wait`
	for _, tt := range []struct {
		name   string
		ruling protect.Ruling
		out    string
		errno  string
	}{
		{"allowed", protect.Ruling{Allow: true}, "made", ""},
		{"denied", protect.Ruling{Errno: unix.EROFS}, "denied", "EROFS"},
		{"zero", protect.Ruling{}, "denied", "EACCES"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTemp(t)
			var j *askJudge
			var access protect.Access
			var caller protect.Caller
			j = newAskJudge(dir, map[string]func(context.Context, protect.Access,
				protect.Caller) protect.Ruling{
				"asked": func(_ context.Context, a protect.Access, by protect.Caller) protect.Ruling {
					access, caller = a, by
					j.until("last")
					return tt.ruling
				},
			})
			got, report := observedRun(t, Config{Judge: j}, nil, "/bin/sh", "-c", script, dir)
			if got != tt.out {
				t.Errorf("%q, want %q", got, tt.out)
			}
			want := protect.Access{Op: sandbox.Write, Path: dir + "/asked", Creates: true,
				Thread: access.Thread}
			if access != want || caller.PID != access.Thread || filepath.Base(caller.Program) == "" {
				t.Errorf("asked about %+v by %+v", access, caller)
			}
			if tt.errno == "" {
				if len(report.Denials) > 0 {
					t.Errorf("%v", report.Denials)
				}
				return
			}
			if len(report.Denials) != 1 || report.Denials[0].Errno != tt.errno ||
				report.Denials[0].Path != dir+"/asked" {
				t.Errorf("%v", report.Denials)
			}
		})
	}
}

// TestAskTwice: a rename waits for a ruling on each of its names.
func TestAskTwice(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	must(t, os.Mkdir(dir+"/old", 0o755))
	var asked []string
	ask := func(_ context.Context, a protect.Access, _ protect.Caller) protect.Ruling {
		asked = append(asked, strings.TrimPrefix(a.Path, dir))
		return protect.Ruling{Allow: true}
	}
	j := newAskJudge(dir, map[string]func(context.Context, protect.Access,
		protect.Caller) protect.Ruling{"old": ask, "new": ask})
	got, report := observedRun(t, Config{Judge: j}, nil, "/bin/sh", "-c",
		`mv "$0/old" "$0/new" && echo moved`, dir)
	if got != "moved" || !slices.Equal(asked, []string{"/new", "/old"}) || len(report.Denials) > 0 {
		t.Errorf("%q, asked about %q, %v", got, asked, report.Denials)
	}
}

// TestAskChanged: a task that changes its arguments while it waits gets no ruling on the
// new ones.
func TestAskChanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	var j *askJudge
	j = newAskJudge(dir, map[string]func(context.Context, protect.Access, protect.Caller) protect.Ruling{
		"asked": func(context.Context, protect.Access, protect.Caller) protect.Ruling {
			if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
				t.Error(err)
			}
			j.until("changed")
			return protect.Ruling{Allow: true}
		},
		"other": func(context.Context, protect.Access, protect.Caller) protect.Ruling { return protect.Ruling{} },
	})
	self, err := os.Executable()
	must(t, err)
	got, report := observedRun(t, Config{Judge: j}, nil, self, "rename-argument", dir)
	if got != unix.EACCES.Error() || len(report.Denials) != 1 || report.Denials[0].Path != dir+"/other" {
		t.Errorf("%q, %v", got, report.Denials)
	}
	for _, name := range []string{"asked", "other"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// TestAskClosed: Close denies a call that waits for a ruling, whatever the ruling is
// then.
func TestAskClosed(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	j := newAskJudge(dir, map[string]func(context.Context, protect.Access, protect.Caller) protect.Ruling{
		"asked": func(ctx context.Context, _ protect.Access, _ protect.Caller) protect.Ruling {
			<-ctx.Done()
			return protect.Ruling{Allow: true}
		},
	})
	o := start(t, Config{Judge: j}, nil, "/bin/sh", "-c", `mkdir "$0/asked" && echo made || echo denied`, dir)
	j.until("asked")
	report := o.Close()
	if got := o.wait(t); got != "denied" {
		t.Errorf("%q", got)
	}
	if len(report.Denials) != 1 || report.Denials[0].Path != dir+"/asked" {
		t.Errorf("%v", report.Denials)
	}
}

// TestAskKilled: the context ends when the task is killed, and its goroutines do.
func TestAskKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	ended := false
	j := newAskJudge(dir, map[string]func(context.Context, protect.Access, protect.Caller) protect.Ruling{
		"asked": func(ctx context.Context, _ protect.Access, by protect.Caller) protect.Ruling {
			if err := unix.Kill(by.PID, unix.SIGKILL); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			ended = true
			return protect.Ruling{}
		},
	})
	before := runtime.NumGoroutine()
	got, report := observedRun(t, Config{Judge: j}, nil, "/bin/sh", "-c",
		`sh -c 'exec mkdir "$0/asked"' "$0"; echo $?`, dir)
	if got != "137" || !ended || len(report.Denials) > 0 {
		t.Errorf("%q, ended: %v, %v", got, ended, report.Denials)
	}
	for end := time.Now().Add(bound); runtime.NumGoroutine() > before; runtime.Gosched() {
		// the last one says that it ends, and does
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestAskMany: calls beyond the bound are denied at once.
func TestAskMany(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := realTemp(t)
	const more = 5
	asks := make(map[string]func(context.Context, protect.Access, protect.Caller) protect.Ruling)
	var j *askJudge
	for i := range maxAsks + more {
		asks[fmt.Sprint(i+1)] = func(context.Context, protect.Access, protect.Caller) protect.Ruling {
			for i := range maxAsks + more {
				j.until(fmt.Sprint(i + 1))
			}
			return protect.Ruling{Allow: true}
		}
	}
	j = newAskJudge(dir, asks)
	script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); mkdir "$0/$i" & done; wait`, maxAsks+more)
	_, report := observedRun(t, Config{Judge: j}, nil, "/bin/sh", "-c", script, dir)
	made, err := os.ReadDir(dir)
	must(t, err)
	if len(made) != maxAsks || len(report.Denials) != more {
		t.Errorf("%d made, %d denied", len(made), len(report.Denials))
	}
}

// TestAskConnect: a connect to a unix socket waits for a ruling, too.
func TestAskConnect(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		testenv.NeedRoot(t) // root of a container does not own the directories on the way
	}
	testenv.NeedSeccomp(t)
	self, err := os.Executable()
	must(t, err)
	for _, tt := range []struct {
		name   string
		ruling protect.Ruling
		want   string
	}{
		{"allowed", protect.Ruling{Allow: true}, "done"},
		{"denied", protect.Ruling{}, "connect: permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := short(t)
			answering(t, dir+"/asked", "")
			asked := 0
			j := newAskJudge(dir, map[string]func(context.Context, protect.Access,
				protect.Caller) protect.Ruling{
				"asked": func(context.Context, protect.Access, protect.Caller) protect.Ruling { asked++; return tt.ruling },
			})
			got, _ := observedRun(t, Config{Judge: j}, knows(t, dir+"/asked"), self, "connect", dir+"/asked")
			if !strings.HasSuffix(got, tt.want) || asked != 1 {
				t.Errorf("%q, asked %d times", got, asked)
			}
		})
	}
}

// TestRuleAtOnce: a ruling that needs no answer takes no goroutine and, beside the path,
// no memory.
func TestRuleAtOnce(t *testing.T) {
	r := selfRequest(t)
	dir := realTemp(t)
	policy, err := sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir}).Resolve()
	must(t, err)
	r.cfg.Judge = protect.NewJudge(&policy, protect.Names{Roots: []string{dir},
		Protected: []string{dir + "/other"}})
	p, lerr := r.find(atCwd, []byte(dir+"/new"), true)
	if lerr != nil {
		t.Fatal(lerr.errno)
	}
	defer p.close()
	before := runtime.NumGoroutine()
	var errno syscall.Errno
	allocations := testing.AllocsPerRun(100, func() { _, errno = r.ruled(sandbox.Write, &p, true) })
	if errno != 0 || allocations > 1 || runtime.NumGoroutine() > before {
		t.Errorf("%v, %v allocations, %d goroutines more", errno, allocations, runtime.NumGoroutine()-before)
	}
}
