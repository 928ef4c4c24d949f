// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// hostVar makes the test binary play the program that runs commands and is killed;
// its value is "full" or "sandboxed".
const hostVar = "LOCAL_TEST_HOST"

// enough is far more than any of the commands takes.
const enough = 2 * time.Minute

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if mode := os.Getenv(hostVar); mode != "" {
		os.Exit(playHost(mode, os.Args[1]))
	}
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// playHost runs a command whose tree prints "ready" when it is complete, and never returns.
func playHost(mode, mark string) int {
	// Without a sandbox, a process that left the process group outlives a host that could
	// not kill it.
	policy, away := sandbox.FullAccess(), "true"
	if mode == "sandboxed" {
		policy = sandbox.ReadOnly()
		if _, err := exec.LookPath("setsid"); err == nil {
			away = "setsid sleep " + mark
		}
	}
	var e Executor
	spec := newSpec(policy, "sh", "-c", "sleep "+mark+" & "+away+" & echo ready; exec sleep "+mark)
	spec.OnOutput = func(_ executor.Stream, p []byte) { _, _ = os.Stdout.Write(p) }
	p, err := e.Start(context.Background(), spec)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, _ = p.Wait()
	return 1
}

// newSpec returns a Spec in the root directory with the environment of the tests.
func newSpec(p sandbox.Policy, args ...string) *executor.Spec {
	return &executor.Spec{Args: args, Dir: "/", Env: testenv.Environ(),
		Policy: p.Bind(sandbox.Places{Dir: "/"})}
}

// newExecutor returns an Executor that is closed with the test; it fails the test
// if descriptors are left.
func newExecutor(t *testing.T) *Executor {
	t.Helper()
	before := openFDs()
	e := new(Executor)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if after := openFDs(); after > before {
			t.Errorf("%d descriptors are open after Close, %d before", after, before)
		}
	})
	return e
}

func openFDs() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// policies are those under which every test must hold.
func policies(t *testing.T) map[string]sandbox.Policy {
	t.Helper()
	testenv.NeedUserNS(t)
	return map[string]sandbox.Policy{"sandboxed": sandbox.ReadOnly(), "full": sandbox.FullAccess()}
}

// marked lists the processes whose arguments hold mark.
func marked(mark string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var pids []string
	for _, f := range files {
		if args, err := os.ReadFile(f); err == nil && strings.Contains(string(args), "sleep\x00"+mark) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// row45: TestHostKilled checks that the command and all its descendants are gone within a
// second when the program that runs it is killed. A busy machine gets several tries.
func TestHostKilled(t *testing.T) {
	for name := range policies(t) {
		t.Run("row45 "+name, func(t *testing.T) {
			if name == "sandboxed" {
				testenv.NeedProgram(t, "setsid")
			}
			var took []time.Duration
			for try := range 5 {
				d := killHost(t, name, fmt.Sprintf("60.%d%d45", os.Getpid(), try))
				if took = append(took, d); d < time.Second {
					return
				}
			}
			t.Errorf("the processes were gone after %v, want less than a second", took)
		})
	}
}

// killHost kills a program that runs a command, and returns how long processes of the
// command were left.
func killHost(t *testing.T, mode, mark string) time.Duration {
	t.Helper()
	host := exec.Command(os.Args[0], mark)
	host.Env = append(testenv.Environ(), hostVar+"="+mode)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the host said %q, %v", line, err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = host.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(marked(mark)) > 0 {
		if time.Since(killed) > enough {
			t.Fatalf("processes %v are still there", marked(mark))
		}
		<-tick.C
	}
	return time.Since(killed)
}

func TestProcess(t *testing.T) {
	for name, policy := range policies(t) {
		t.Run(name, func(t *testing.T) {
			t.Run("input and signals", func(t *testing.T) {
				e := newExecutor(t)
				output := make(chan string, 10)
				spec := newSpec(policy, "sh", "-c",
					"trap 'echo int; cat; exit 4' INT; echo ready; while :; do sleep 0.01; done")
				spec.PipeStdin = true
				spec.OnOutput = func(_ executor.Stream, p []byte) { output <- string(p) }
				p := start(t, e, spec)
				expect(t, output, "ready\n")
				if err := p.Signal(int(syscall.SIGINT)); err != nil {
					t.Fatal(err)
				}
				expect(t, output, "int\n")
				if _, err := p.Write([]byte("a\n")); err != nil {
					t.Fatal(err)
				}
				expect(t, output, "a\n")
				if err := p.CloseInput(); err != nil {
					t.Fatal(err)
				}
				if x := wait(t, p); x.Code != 4 || len(x.Survivors) > 0 {
					t.Errorf("exit %+v", x)
				}
				if err := p.Signal(int(syscall.SIGINT)); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("a signal after the end: %v", err)
				}
			})
			t.Run("close ends what runs", func(t *testing.T) {
				e := newExecutor(t)
				mark := fmt.Sprintf("60.%d77", os.Getpid())
				ready := make(chan struct{}, 10)
				spec := newSpec(policy, "sh", "-c", "sleep "+mark+" & echo ready; sleep "+mark)
				spec.OnOutput = func(executor.Stream, []byte) { ready <- struct{}{} }
				p := start(t, e, spec)
				<-ready
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if x := wait(t, p); !x.Stopped || x.LastSignal != int(syscall.SIGTERM) {
					t.Errorf("exit %+v", x)
				}
				if left := marked(mark); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				if _, err := e.Start(t.Context(), spec); !errors.Is(err, ErrClosed) {
					t.Errorf("a start after Close: %v", err)
				}
			})
			t.Run("many at once", func(t *testing.T) {
				e := newExecutor(t)
				var all sync.WaitGroup
				for range 40 {
					all.Go(func() {
						spec := newSpec(policy, "sh", "-c", "echo out; echo err >&2; exit 7")
						n := 0
						spec.OnOutput = func(_ executor.Stream, p []byte) { n += len(p) }
						p, err := e.Start(t.Context(), spec)
						if err != nil {
							t.Error(err)
							return
						}
						if x, err := p.Wait(); err != nil || x.Code != 7 || n != 8 {
							t.Errorf("exit %+v, %v, %d bytes", x, err, n)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func start(t *testing.T, e *Executor, spec *executor.Spec) executor.Process {
	t.Helper()
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t *testing.T, p executor.Process) *executor.Exit {
	t.Helper()
	x, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// expect reads output until it is want.
func expect(t *testing.T, output <-chan string, want string) {
	t.Helper()
	got := ""
	for got != want {
		select {
		case s := <-output:
			got += s
		case <-time.After(enough):
			t.Fatalf("the output is %q, want %q", got, want)
		}
		if !strings.HasPrefix(want, got) {
			t.Fatalf("the output is %q, want %q", got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	var e Executor
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, dir, tmp string
		env            []string
		want           sandbox.Places // Dir and TmpDir
		err            error
	}{
		{name: "current", want: sandbox.Places{Dir: here}},
		{name: "relative", dir: "..", want: sandbox.Places{Dir: filepath.Dir(here)}},
		{name: "absolute", dir: dir + "/.", want: sandbox.Places{Dir: dir}},
		{name: "private /tmp", env: []string{"TMPDIR=/a"}, want: sandbox.Places{Dir: here}},
		{name: "the host's /tmp", tmp: "host", env: []string{"TMPDIR=/a", "TMPDIR=/b"}, want: sandbox.Places{Dir: here, TmpDir: "/b"}},
		{name: "missing", dir: filepath.Join(dir, "no"), err: os.ErrNotExist},
		{name: "a file", dir: file, err: executor.ErrNotDir},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := e.Places(t.Context(), test.dir, test.env, test.tmp)
			if !errors.Is(err, test.err) || err == nil != (test.err == nil) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if got.Dir != test.want.Dir || got.TmpDir != test.want.TmpDir {
				t.Errorf("got %q and %q, want %q and %q", got.Dir, got.TmpDir, test.want.Dir,
					test.want.TmpDir)
			}
			var bad *executor.DirError
			if err != nil && (!errors.As(err, &bad) || bad.Dir != test.dir) {
				t.Errorf("%v is no error about %s", err, test.dir)
			}
		})
	}
	t.Run("NUL", func(t *testing.T) {
		var zero *executor.NULError
		if _, err := e.Places(t.Context(), "\x00", nil, ""); !errors.As(err, &zero) {
			t.Errorf("got %v", err)
		}
	})
}

func TestShell(t *testing.T) {
	var e Executor
	got, err := e.Shell(t.Context(), "sh", "exit", true)
	if err != nil || len(got) != 3 || filepath.Base(got[0]) != "sh" ||
		!slices.Equal(got[1:], []string{"-lc", "exit"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if own, err := e.Shell(t.Context(), "", "exit", false); err != nil || len(own) != 3 || own[1] != "-c" {
		t.Errorf("the user's own: %q, %v", own, err)
	}
	if _, err := e.Shell(t.Context(), "no-such-shell", "exit", false); err == nil {
		t.Error("an unknown shell gave no error")
	}
}

func TestRefusesBadSpec(t *testing.T) {
	var e Executor
	defer e.Close()
	for _, change := range []func(*executor.Spec){
		func(s *executor.Spec) { s.Args[0] = "\x00" },
		func(s *executor.Spec) { s.Arg0 = "\x00" },
		func(s *executor.Spec) { s.Dir = "/\x00" },
		func(s *executor.Spec) { s.Tmp = "/\x00" },
		func(s *executor.Spec) { s.Env = []string{"A=\x00"} },
	} {
		spec := newSpec(sandbox.FullAccess(), "true")
		change(spec)
		var zero *executor.NULError
		if _, err := e.Start(t.Context(), spec); !errors.As(err, &zero) {
			t.Errorf("%+v gave %v", spec, err)
		}
	}
	for name, want := range map[string]error{"/nowhere": os.ErrNotExist, os.DevNull: executor.ErrNotDir} {
		spec := newSpec(sandbox.FullAccess(), "true")
		spec.Dir = name
		var dir *executor.DirError
		if _, err := e.Start(t.Context(), spec); !errors.As(err, &dir) || !errors.Is(err, want) {
			t.Errorf("the directory %s gave %v", name, err)
		}
	}
	if _, err := e.Start(t.Context(), &executor.Spec{}); !errors.Is(err, executor.ErrNoArgs) {
		t.Errorf("no arguments gave %v", err)
	}
}
