// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	goflag "flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// helpers are the programs that the test binary plays, by the word that follows
// helperMark in its arguments.
var helpers = map[string]func(args []string) int{
	"ambient":     helperAmbient,
	"args":        helperArgs,
	"front":       helperFront,
	"permute":     helperPermute,
	"queue":       helperQueue,
	"main-thread": helperMainThread,
	"ignored":     helperIgnored,
	"prefork":     helperPrefork,
	"dial":        helperDial,
	"reach":       helperReach,
}

const helperMark = "helper:"

// usedHelpers are those that a test asked for; one that no test uses fails the run.
var usedHelpers sync.Map

func TestMain(m *testing.M) {
	for i, a := range os.Args[:min(2, len(os.Args))] {
		if name, ok := strings.CutPrefix(a, helperMark); ok {
			os.Exit(helpers[name](os.Args[i+1:]))
		}
	}
	testenv.DefaultSignals()
	goflag.Parse()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	whole := testenv.HasUserNS() && goflag.Lookup("test.run").Value.String() == "" &&
		goflag.Lookup("test.fuzz").Value.String() == "" &&
		goflag.Lookup("test.skip").Value.String() == "" && goflag.Lookup("test.list").Value.String() == ""
	for name := range helpers {
		if _, used := usedHelpers.Load(name); !used && whole && code == 0 && !testing.Short() {
			fmt.Fprintf(os.Stderr, "no test uses the helper %q\n", name)
			code = 1
		}
	}
	os.Exit(code)
}

// helperEnv is the environment of helpers. The race detector otherwise sleeps a
// second at the end of a process.
func helperEnv() []string { return []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"} }

// helperStep executes this test binary as a helper.
func helperStep(t testing.TB, name string, args ...string) Step {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	usedHelpers.Store(name, true)
	return Step{Op: OpExec, Path: self, Argv: append([]string{helperMark + name}, args...), Env: helperEnv()}
}

// helperCommand is the same by os/exec, for helpers that are front ends.
func helperCommand(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	s := helperStep(t, name, args...)
	return &exec.Cmd{Path: s.Path, Args: s.Argv, Env: append(os.Environ(), s.Env...)}
}

func shStep(text string) Step {
	return Step{Op: OpExec, Path: "/bin/sh", Argv: []string{"sh", "-c", text}, Env: helperEnv()}
}

// A kind is a way to build scripts for tests.
type kind int

const (
	plain  kind = iota // no namespaces, like full access
	own                // user and process namespaces
	walled             // also mount namespace, /proc, and no rights for the command
)

var kinds = []struct {
	name string
	kind kind
}{{"plain", plain}, {"own namespaces", own}, {"walled", walled}}

// second are the usual steps of the second task around extra ones.
func second(last Step, extra ...Step) []Step {
	steps := []Step{{Op: OpNewGroup}, {Op: OpStdio}, {Op: OpLimit, Resource: unix.RLIMIT_CORE}}
	steps = append(steps, extra...)
	return append(steps, Step{Op: OpCloseFiles}, Step{Op: OpResetSignals}, last)
}

// script builds a script that ends in the step last. Steps of extra go before it.
func script(k kind, last Step, extra ...Step) *Script {
	s := &Script{}
	switch k {
	case plain:
		s.Steps = []Step{{Op: OpDieWithParent}, {Op: OpSubreaper}}
	case own:
		s.Namespaces = NewUser | NewPID
		s.Steps = ownSteps()
	case walled:
		s.Namespaces = NewUser | NewPID | NewMount
		s.Steps = append(ownSteps(),
			Step{Op: OpSetMount, Path: "/", Recursive: true, Private: true},
			Step{Op: OpProc, Tree: 1}, Step{Op: OpAttach, Tree: 1, Path: "/proc"},
			Step{Op: OpSecureBits, Value: 0xcf}, Step{Op: OpDropBounding, Value: 38},
			Step{Op: OpClearAmbient}, Step{Op: OpNoNewPrivs}, Step{Op: OpCaps, Value: 1 << 8})
		extra = append([]Step{{Op: OpCaps}}, extra...)
	}
	s.Steps = append(s.Steps, Step{Op: OpStartCommand})
	s.Steps = append(s.Steps, second(last, extra...)...)
	return s
}

func ownSteps() []Step {
	return []Step{
		{Op: OpDieWithParent},
		{Op: OpMapUser, UID: os.Geteuid(), GID: os.Getegid()},
	}
}

// before inserts steps in front of start-command.
func before(s *Script, steps ...Step) *Script {
	for i := range s.Steps {
		if s.Steps[i].Op == OpStartCommand {
			rest := append([]Step{}, s.Steps[i:]...)
			s.Steps = append(append(s.Steps[:i:i], steps...), rest...)
			return s
		}
	}
	panic("no start-command")
}

// A starter is a Launcher for tests, which starts all scripts in one way.
type starter struct {
	Launcher
	preforks bool
}

// Start starts a script with standard files only.
func (l *starter) Start(s *Script, stdin, stdout, stderr *os.File) (*Process, error) {
	return l.StartWith(s, Files{Stdin: stdin, Stdout: stdout, Stderr: stderr})
}

// StartWith starts a script with files, with a preforked task where the test is about that.
func (l *starter) StartWith(s *Script, f Files) (*Process, error) {
	var pre *Preforked
	if l.preforks {
		pre = l.Prefork(s.Namespaces, leading(s), Files{})
	}
	return l.Launcher.Start(pre, s, f)
}

// StartFrom gives a preforked task its script.
func (l *starter) StartFrom(pre *Preforked, s *Script, stdin, stdout, stderr *os.File) (*Process, error) {
	return l.Launcher.Start(pre, s, Files{Stdin: stdin, Stdout: stdout, Stderr: stderr})
}

// launcher returns a starter that is closed at the end of the test.
func launcher(t testing.TB) *starter {
	t.Helper()
	l := new(starter)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// null opens /dev/null for reading and writing.
func null(t testing.TB) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A pipe is a pipe whose reading end cannot block a test for ever.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// start starts a script without input or output.
func start(t testing.TB, l *starter, s *Script) *Process {
	t.Helper()
	n := null(t)
	p, err := l.Start(s, n, n, n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// finishAll waits for everything of a process.
func finishAll(t testing.TB, p *Process) syscall.WaitStatus {
	t.Helper()
	st, err := p.Wait()
	if err != nil {
		t.Error(err)
	}
	if err := p.WaitAll(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return st
}

// output runs a script to its end and returns what it printed, on both streams.
func output(t testing.TB, l *starter, s *Script) (string, syscall.WaitStatus) {
	t.Helper()
	return outputWith(t, l, Files{}, s)
}

// outputWith is output with more files than the standard ones.
func outputWith(t testing.TB, l *starter, f Files, s *Script) (string, syscall.WaitStatus) {
	t.Helper()
	r, w := pipe(t)
	f.Stdin, f.Stdout, f.Stderr = null(t), w, w
	p, err := l.StartWith(s, f)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), finishAll(t, p)
}

// openFiles returns what the descriptors of this process lead to, by their numbers.
func openFiles(t testing.TB) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string, len(entries))
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not the one of the listing
			files[e.Name()] = to
		}
	}
	return files
}

// wantNoFiles fails when a descriptor is new. That one of before is closed says nothing: another
// test may have left it to the garbage collector.
func wantNoFiles(t testing.TB, before map[string]string) {
	t.Helper()
	for fd, to := range openFiles(t) {
		if to != before[fd] && !strings.HasPrefix(to, "anon_inode:[event") { // those are the runtime's
			t.Errorf("descriptor %s is left: %s", fd, to)
		}
	}
}

// wantNoChildren fails when this process has a child, alive or not.
func wantNoChildren(t testing.TB) {
	t.Helper()
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
	if !errors.Is(err, unix.ECHILD) {
		t.Errorf("wait4 gives %d (status %#x), %v; want no child at all", pid, uint32(status), err)
	}
}
