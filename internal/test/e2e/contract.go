// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Traits say what an executor does of what the contract leaves open. The zero Traits are those of
// the least one.
type Traits struct {
	Inherit    bool // passes files of this process
	Resize     bool // changes the size of terminals, also before the start
	CloseInput bool // closes a pipe
	Signals    bool // sends every signal, asks before it kills, and tells which signal ended a process
	Typed      bool // tells a missing directory from a missing program
	Trees      bool // ends processes in sessions of their own
}

// late is how long a test waits for what must happen.
const late = time.Minute

// Run runs the contract against executors that open returns, which must be new ones.
func Run(t *testing.T, traits Traits, open func(t *testing.T) executor.Executor) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, executor.Executor, Traits)
	}{
		{"output and exit", outputAndExit},
		{"surroundings", surroundings},
		{"input", input},
		{"terminal", terminalContract},
		{"stop", stop},
		{"signals", signals},
		{"starts that fail", failures},
		{"inherited files", inherited},
		{"many at once", manyAtOnce},
		{"flood", flood},
		{"retained output", retainedOutput},
		{"held streams", heldStreams},
		{"sandbox", sandboxed},
		{"canceled", canceled},
		{"functions that do not return", noReturn},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t), traits) })
	}
}

// A run collects what a process tells.
type run struct {
	executor.Process
	mu   sync.Mutex
	out  [2]bytes.Buffer
	told []string // exits
	note chan struct{}
}

// spec returns a Spec that runs a shell script with full access.
func spec(t *testing.T, script string) *executor.Spec {
	t.Helper()
	return &executor.Spec{
		Args: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(),
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Policy: sandbox.FullAccess(), Tmp: "host",
	}
}

// start starts a process that must start.
func start(t *testing.T, e executor.Executor, s *executor.Spec) *run {
	t.Helper()
	r := &run{note: make(chan struct{}, 1)}
	s.OnOutput = func(stream executor.Stream, p []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out[stream].Write(p)
		select {
		case r.note <- struct{}{}:
		default:
		}
	}
	s.OnExit = func(code, _ int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, fmt.Sprint(code, " after ", r.out[executor.Stdout].String()))
	}
	p, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r.Process = p
	return r
}

// text returns what a stream has printed.
func (r *run) text(s executor.Stream) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out[s].String()
}

// until waits until standard output contains text.
func (r *run) until(t *testing.T, text string) {
	t.Helper()
	timer := time.NewTimer(late)
	defer timer.Stop()
	for !strings.Contains(r.text(executor.Stdout), text) {
		select {
		case <-r.note:
		case <-timer.C:
			t.Fatalf("%q does not contain %q", r.text(executor.Stdout), text)
		}
	}
}

// end waits for the end.
func (r *run) end(t *testing.T) *executor.Exit {
	t.Helper()
	exit, err := r.Wait()
	if err != nil {
		t.Errorf("Wait: %v", err)
	}
	return exit
}

func outputAndExit(t *testing.T, e executor.Executor, traits Traits) {
	started := make(chan struct{})
	s := spec(t, "echo out; echo err >&2; exit 7")
	r := &run{note: make(chan struct{}, 1)}
	s.OnOutput = func(stream executor.Stream, p []byte) {
		<-started // it may wait for the return of Start
		r.mu.Lock()
		defer r.mu.Unlock()
		r.out[stream].Write(p)
	}
	exits := 0
	s.OnExit = func(code, signal int) {
		if exits++; code != 7 || signal != 0 || r.text(executor.Stdout) != "out\n" {
			t.Errorf("exit %d, signal %d after %q", code, signal, r.text(executor.Stdout))
		}
	}
	p, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	close(started)
	r.Process = p
	exit := r.end(t)
	if exit.Code != 7 || exit.Stopped || exits != 1 || r.text(executor.Stdout) != "out\n" ||
		r.text(executor.Stderr) != "err\n" {
		t.Errorf("%+v, %d exits, %q, %q", exit, exits, r.text(executor.Stdout), r.text(executor.Stderr))
	}
	if again, err := r.Wait(); err != nil || again.Code != 7 {
		t.Errorf("second Wait: %+v, %v", again, err)
	}
	if exit := start(t, e, spec(t, "kill -9 $$")).end(t); exit.Code != 137 ||
		(exit.Signal == 9) != traits.Signals {
		t.Errorf("death by SIGKILL: %+v", exit)
	}
}

// noReturn: a function of the Spec that panics or ends its goroutine ends neither the program nor the
// process, holds nothing up, and is named.
func noReturn(t *testing.T, e executor.Executor, _ Traits) {
	for name, fail := range map[string]func(){"panic": func() { panic("no") }, "Goexit": runtime.Goexit} {
		for _, of := range []string{"OnOutput", "OnExit"} {
			s, calls, exits := spec(t, "echo one; exec 2>&1; echo two; exit 3"), 0, 0
			s.OnOutput = func(executor.Stream, []byte) {
				calls++
				if of == "OnOutput" {
					fail()
				}
			}
			s.OnExit = func(int, int) {
				exits++
				if of == "OnExit" {
					fail()
				}
			}
			p, err := e.Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait()
			var failed *strict.PanicError
			if exit.Code != 3 || errors.As(err, &failed) != (of == "OnOutput") || failed != nil &&
				failed.Where != of {
				t.Errorf("%s in %s: %+v, %v", name, of, exit, err)
			}
			if n := strings.Count(strings.Join(exit.Sandbox.Warnings, "\n"), of); n != 1 || exits != 1 ||
				of == "OnOutput" && calls != 1 {
				t.Errorf("%s in %s: %d warnings, %d exits, %d calls for output", name, of, n, exits, calls)
			}
		}
	}
}

func surroundings(t *testing.T, e executor.Executor, _ Traits) {
	s := spec(t, `echo "$0|$PWD|$A|$B|$#|$1|$2"; env`)
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Dir, s.Args = dir, append(s.Args, "name", "", "é \"x\"\n")
	s.Env = append(s.Env, "A=1=2", "B=", "API_TOKEN=kept")
	r := start(t, e, s)
	r.end(t)
	out := r.text(executor.Stdout)
	if want := "name|" + dir + "|1=2||2||é \"x\"\n\n"; !strings.HasPrefix(out, want) ||
		!strings.Contains(out, "API_TOKEN=kept") || strings.Contains(out, "\nHOME=") {
		t.Errorf("%q, want %q", out, want)
	}
}

func input(t *testing.T, e executor.Executor, traits Traits) {
	s := spec(t, "cat")
	if !traits.CloseInput {
		s = spec(t, "head -c 3000000")
	}
	s.PipeStdin = true
	r := start(t, e, s)
	data := bytes.Repeat([]byte("0123456789\x00\xff"), 250_000)
	for rest := data; len(rest) > 0; {
		n, err := r.Write(rest)
		if rest = rest[n:]; err != nil && !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	if err := r.CloseInput(); (err == nil) != traits.CloseInput && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseInput: %v", err)
	}
	r.end(t)
	if got := r.text(executor.Stdout); sha256.Sum256([]byte(got)) != sha256.Sum256(data) {
		t.Errorf("%d bytes came back, want %d", len(got), len(data))
	}
	if n, err := r.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("after the end: %d, %v", n, err)
	}
	closed := start(t, e, spec(t, "cat"))
	if exit := closed.end(t); exit.Code != 0 { // the null device
		t.Errorf("%+v", exit)
	}
	if _, err := closed.Write([]byte("x")); err == nil {
		t.Error("input without a pipe")
	}
}

func terminalContract(t *testing.T, e executor.Executor, traits Traits) {
	s := spec(t, `test -t 0 && test -t 2 && echo ready; stty size; read line; echo "got $line" >&2; stty size; exit 3`)
	s.TTY = new(executor.Size)
	if traits.Resize {
		s.TTY = &executor.Size{Cols: 91, Rows: 31}
	}
	testenv.NeedProgram(t, "stty")
	r := start(t, e, s)
	size := "24 80"
	if traits.Resize {
		size = "31 91"
	}
	r.until(t, size)
	err := r.Resize(executor.Size{Cols: 101, Rows: 41})
	if (err == nil) != traits.Resize || !traits.Resize &&
		(!errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "resize is not supported by exec-server sessions")) {
		t.Errorf("Resize: %v", err)
	}
	if traits.Resize {
		size = "41 101"
	}
	if _, err := r.Write([]byte("hé\r")); err != nil {
		t.Errorf("Write: %v", err)
	}
	exit := r.end(t)
	if out := r.text(executor.Stdout); exit.Code != 3 || !strings.HasPrefix(out, "ready\r\n") ||
		!strings.Contains(out, "got hé\r\n"+size) || r.text(executor.Stderr) != "" {
		t.Errorf("%+v, %q", exit, out)
	}
	s = spec(t, "cat")
	s.TTY = new(executor.Size)
	r = start(t, e, s)
	if _, err := r.Write([]byte("line\r")); err != nil {
		t.Error(err)
	}
	r.until(t, "line\r\nline\r\n")
	if err := r.CloseInput(); err != nil {
		t.Errorf("CloseInput: %v", err)
	}
	if exit := r.end(t); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

func stop(t *testing.T, e executor.Executor, traits Traits) {
	s := spec(t, `trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 1000 & wait; done`)
	s.Grace = late
	r := start(t, e, s)
	r.until(t, "ready")
	r.Stop()
	r.Stop()
	exit := r.end(t)
	if asked := strings.Contains(r.text(executor.Stdout), "asked"); !exit.Stopped ||
		asked != traits.Signals || asked != (exit.Code == 9) {
		t.Errorf("%+v, %q", exit, r.text(executor.Stdout))
	}
	r.Stop() // after the end it does nothing
	s = spec(t, `trap '' TERM; echo ready; sleep 1000`)
	s.Grace = -1
	r = start(t, e, s)
	r.until(t, "ready")
	r.Stop()
	if exit := r.end(t); !exit.Stopped || exit.Code != 137 && exit.Code >= 0 {
		t.Errorf("%+v", exit)
	}
}

func signals(t *testing.T, e executor.Executor, traits Traits) {
	s := spec(t, `trap 'echo int' INT; trap 'echo usr; exit 4' USR1; echo ready; while :; do sleep 0.02; done`)
	r := start(t, e, s)
	r.until(t, "ready")
	if err := r.Signal(2); err != nil {
		t.Errorf("SIGINT: %v", err)
	}
	r.until(t, "int")
	const usr1 = 10 // on Linux
	if err := r.Signal(usr1); (err == nil) != traits.Signals || !traits.Signals &&
		!errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SIGUSR1: %v", err)
	}
	if !traits.Signals {
		r.Stop()
	}
	if exit := r.end(t); traits.Signals &&
		(exit.Code != 4 || !strings.Contains(r.text(executor.Stdout), "usr")) {
		t.Errorf("%+v, %q", exit, r.text(executor.Stdout))
	}
	if err := r.Signal(2); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}

func failures(t *testing.T, e executor.Executor, traits Traits) {
	var missing *executor.StartError
	s := spec(t, "")
	s.Args = []string{"/nonexistent/program"}
	if _, err := e.Start(t.Context(), s); !errors.As(err, &missing) || !missing.NotFound {
		t.Errorf("missing program: %v", err)
	}
	var dir *executor.DirError
	s = spec(t, "")
	s.Dir += "/missing"
	if _, err := e.Start(t.Context(), s); err == nil || traits.Typed && !errors.As(err, &dir) {
		t.Errorf("missing directory: %v", err)
	}
	var nul *executor.NULError
	s = spec(t, "\x00")
	if _, err := e.Start(t.Context(), s); !errors.As(err, &nul) {
		t.Errorf("NUL: %v", err)
	}
	s = spec(t, "")
	s.Args = nil
	if _, err := e.Start(t.Context(), s); !errors.Is(err, executor.ErrNoArgs) {
		t.Errorf("no program: %v", err)
	}
}

func inherited(t *testing.T, e executor.Executor, traits Traits) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := spec(t, "echo passed >&3")
	s.Files = map[int]*os.File{3: w}
	p, err := e.Start(t.Context(), s)
	_ = w.Close()
	if !traits.Inherit {
		var unsupported *sandbox.UnsupportedError
		if !errors.As(err, &unsupported) ||
			err.Error() != "remote exec-server does not support inherited file descriptors" {
			t.Errorf("%v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); string(text) != "passed\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}

func manyAtOnce(t *testing.T, e executor.Executor, _ Traits) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			r := start(t, e, spec(t, fmt.Sprintf("echo %d; exit %d", i, i)))
			if exit := r.end(t); exit.Code != i || r.text(executor.Stdout) != fmt.Sprintln(i) {
				t.Errorf("%d: %+v, %q", i, exit, r.text(executor.Stdout))
			}
		})
	}
	wg.Wait()
}

func flood(t *testing.T, e executor.Executor, _ Traits) {
	r := start(t, e, spec(t, "seq 1 400000; seq 1 1000 >&2"))
	r.end(t)
	var want strings.Builder
	for i := range 400_000 {
		fmt.Fprintln(&want, i+1)
	}
	if got := r.text(executor.Stdout); got != want.String() {
		t.Errorf("%d bytes arrived, want %d", len(got), want.Len())
	}
	if got := strings.Count(r.text(executor.Stderr), "\n"); got != 1000 {
		t.Errorf("%d lines on standard error", got)
	}
}

func retainedOutput(t *testing.T, e executor.Executor, _ Traits) {
	s := spec(t, "seq 1 5000; echo end >&2")
	s.Retain = executor.Retention{Memory: 8 << 10}
	r := start(t, e, s)
	out := r.Output()
	defer func() { _ = out.Close() }()
	var over sync.WaitGroup
	over.Go(func() { r.end(t) }) // the output is complete when Wait returns
	var at, seen, missing uint64
	for {
		c, err := out.Read(t.Context(), at)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen, missing, at = seen+uint64(len(c.Data)), missing+c.Missing, c.End()
	}
	over.Wait()
	if total, _ := out.Size(); total != 23893+4 || at != total || seen+missing != total {
		t.Errorf("%d bytes, %d seen, %d missing, at %d", total, seen, missing, at)
	}
}

func heldStreams(t *testing.T, e executor.Executor, traits Traits) {
	script := `sleep 1000 & echo $!; exit 5`
	if traits.Trees {
		testenv.NeedProgram(t, "setsid")
		script = `setsid sleep 1000 & echo $!; exit 5`
	}
	r := start(t, e, spec(t, script))
	if exit := r.end(t); exit.Code != 5 || exit.Stopped || len(r.told) != 1 {
		t.Errorf("%+v, %q", exit, r.told)
	}
	s := spec(t, `(sleep 0.3; echo late) & exit 5`)
	s.AwaitStreams = true
	r = start(t, e, s)
	if exit := r.end(t); exit.Code != 5 || r.text(executor.Stdout) != "late\n" {
		t.Errorf("%+v, %q", exit, r.text(executor.Stdout))
	}
}

func sandboxed(t *testing.T, e executor.Executor, _ Traits) {
	testenv.NeedUserNS(t)
	s := spec(t, `echo x >inside || echo denied; echo x >out/side || echo denied`)
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Dir = dir
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	policy, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
		sandbox.PathEntry("/", sandbox.LevelRead), sandbox.PathEntry(dir, sandbox.LevelWrite),
		sandbox.PathEntry(dir+"/out", sandbox.LevelRead))
	if err != nil {
		t.Fatal(err)
	}
	s.Policy = policy.Bind(sandbox.Places{Dir: dir})
	r := start(t, e, s)
	r.end(t)
	if out, errs := r.text(executor.Stdout), r.text(executor.Stderr); out != "denied\n" ||
		!strings.Contains(errs, "out/side") || r.Sandbox().Level == "none" {
		t.Errorf("%q, %q, %+v", out, errs, r.Sandbox())
	}
}

func canceled(t *testing.T, e executor.Executor, _ Traits) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("not any more")
	s := spec(t, "echo ran >ran")
	s.Ready = make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { cancel(cause) })
	if _, err := e.Start(ctx, s); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(s.Dir + "/ran"); err == nil {
		t.Error("it ran")
	}
	// The end of the context does not end a process that has started.
	ctx, cancel = context.WithCancelCause(t.Context())
	p, err := e.Start(ctx, spec(t, "sleep 0.1; exit 6"))
	if err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if exit, err := p.Wait(); err != nil || exit.Code != 6 {
		t.Errorf("%+v, %v", exit, err)
	}
}
