// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
	"github.com/sallyport-dev/sallyport/unified"
)

// policies are those under which every row must hold.
func policies() map[string]sandbox.Policy {
	return map[string]sandbox.Policy{
		"sandboxed":   sandbox.WorkspaceWrite("."),
		"full access": sandbox.FullAccess(),
	}
}

// TestRun holds rows of the acceptance list that are about one command, as root and
// as an ordinary user, with and without a sandbox.
func TestRun(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, policy)
			for _, row := range rows() {
				t.Run(row.name, func(t *testing.T) { row.check(t, r) })
			}
		})
	}
}

type row struct {
	name  string
	check func(t *testing.T, r *sallyport.Runner)
}

func rows() []row {
	return []row{
		{"row8 shell tool preset keeps the first MiB", rowShellTool},
		{"row15 row16 full buffer has no cap and no time-out", rowFullBuffer},
		{"row17 full buffer with a held stream", rowFullBufferHeld},
		{"row18 time-out ends the tree", rowTimeoutTree},
		{"row35 held stream", rowHeld},
		{"row36 time-out with a deaf grandchild", rowTimeoutHeld},
		{"row37 kill -9", rowKilled},
		{"row38 signal 64 is not a time-out", rowSignal64},
		{"row39 stdin at its end", rowNoStdin},
		{"row40 order of arrival", rowOrder},
		{"seed preset", rowSeed},
		{"stdin from a reader", rowStdin},
		{"arg0", rowArg0},
		{"environment", rowEnvironment},
		{"survivors without streams", rowSurvivors},
	}
}

func rowShellTool(t *testing.T, r *sallyport.Runner) {
	c := unified.CodexShell(sh("head -c 1179648 /dev/zero | tr '\\0' x"))
	res := run(t, r, c)
	if n := len(res.Stdout.Bytes()); n != 1<<20 || res.Stdout.Total != 1179648 ||
		res.Stdout.Omitted != 128<<10 {
		t.Errorf("%d bytes kept, %d in all, %d omitted", n, res.Stdout.Total, res.Stdout.Omitted)
	}
}

func rowFullBuffer(t *testing.T, r *sallyport.Runner) {
	c := sh("sleep 0.05; head -c 3000000 /dev/zero")
	c.Timeout = time.Millisecond
	res := run(t, r, unified.CodexFullBuffer(c))
	if n := len(res.Stdout.Bytes()); n != 3_000_000 || res.TimedOut {
		t.Errorf("%d bytes kept, timed out %v", n, res.TimedOut)
	}
}

func rowFullBufferHeld(t *testing.T, r *sallyport.Runner) {
	within(t, 6*time.Second, func() time.Duration {
		res := run(t, r, unified.CodexFullBuffer(sh("printf hello; sleep 60 &")))
		if res.Stdout.String() != "hello" || res.TimedOut {
			t.Errorf("%q after %v, timed out %v", res.Stdout, res.Duration, res.TimedOut)
		}
		return res.Duration
	})
}

// runOut runs c into its time-out. Where the machine is so slow that c has said
// nothing by then, it gets more time.
func runOut(t *testing.T, r *sallyport.Runner, c *sallyport.Cmd) *sallyport.Result {
	t.Helper()
	for c.Timeout = 500 * time.Millisecond; ; c.Timeout *= 4 {
		if res := run(t, r, c); res.Stdout.Total > 0 || c.Timeout > enough/8 {
			return res
		}
	}
}

func rowTimeoutTree(t *testing.T, r *sallyport.Runner) {
	mark := fmt.Sprintf("60.%d18", os.Getpid())
	c := sh("sleep " + mark + " & echo begun; sleep " + mark)
	res := runOut(t, r, c)
	if !res.TimedOut || res.End != sallyport.EndTimedOut || res.ExitCode != 124 ||
		res.Stdout.String() != "begun\n" {
		t.Errorf("%+v", res)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	var timeout *sallyport.TimeoutError
	if !errors.As(res.Err(), &timeout) || !timeout.Timeout() {
		t.Errorf("Err gives %v", res.Err())
	}
}

func rowHeld(t *testing.T, r *sallyport.Runner) {
	within(t, 500*time.Millisecond, func() time.Duration {
		res := run(t, r, sh("echo hello; sleep 60 &"))
		if res.Stdout.String() != "hello\n" || !res.StreamsLeftOpen {
			t.Errorf("%q after %v, left open %v", res.Stdout, res.Duration, res.StreamsLeftOpen)
		}
		// Its name is the shell's until it executes the sleep.
		if len(res.Survivors) != 1 || res.Survivors[0].Name != "sleep" && res.Survivors[0].Name != "sh" ||
			res.Survivors[0].PID == 0 {
			t.Errorf("survivors %+v, want the sleep", res.Survivors)
		}
		return res.Duration
	})
}

func rowTimeoutHeld(t *testing.T, r *sallyport.Runner) {
	testenv.NeedProgram(t, "setsid")
	mark := fmt.Sprintf("60.%d36", os.Getpid())
	within(t, time.Second, func() time.Duration {
		c := sh("printf part; setsid sh -c 'trap \"\" TERM; sleep " + mark + "; sleep " + mark +
			"' & sleep " + mark)
		c.Timeout = 400 * time.Millisecond
		begin := time.Now()
		res := run(t, r, c)
		took := time.Since(begin)
		if res.ExitCode != 124 || !res.TimedOut {
			t.Errorf("exit code %d, timed out %v", res.ExitCode, res.TimedOut)
		}
		if left := marked(t, mark); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
		if res.Stdout.String() != "part" {
			return enough // it was stopped before it had begun
		}
		return took
	})
}

func rowKilled(t *testing.T, r *sallyport.Runner) {
	res := run(t, r, sh("echo out; kill -9 $$"))
	if res.ExitCode != 137 || res.Signal != 9 || res.End != sallyport.EndSignaled ||
		res.Stdout.String() != "out\n" {
		t.Errorf("%+v", res)
	}
	var exit *sallyport.ExitError
	if !errors.As(res.Err(), &exit) || exit.Result != res {
		t.Errorf("Err gives %v", res.Err())
	}
}

func rowSignal64(t *testing.T, r *sallyport.Runner) {
	res := run(t, r, sh("kill -64 $$"))
	if res.TimedOut || res.ExitCode != 192 || res.Signal != 64 || res.End != sallyport.EndSignaled {
		t.Errorf("%+v", res)
	}
}

func rowNoStdin(t *testing.T, r *sallyport.Runner) {
	if res := run(t, r, sh("cat; echo end")); res.Stdout.String() != "end\n" {
		t.Errorf("%q", res.Stdout)
	}
}

// rowOrder has the command wait, between its lines, for a word that is sent when
// the line before was heard.
func rowOrder(t *testing.T, r *sallyport.Runner) {
	in, words := io.Pipe()
	defer words.Close() // lets the one goroutine go that Run does not wait for
	said := writerFunc(func(p []byte) (int, error) {
		for range bytes.Count(p, []byte("\n")) {
			go func() { _, _ = io.WriteString(words, "go\n") }()
		}
		return len(p), nil
	})
	c := sh("echo a; read -r x; echo b >&2; read -r x; echo c; read -r x; echo d >&2; read -r x")
	c.Stdin, c.Stdout, c.Stderr = in, said, said
	res := run(t, r, c)
	if got := res.Output.String(); got != "a\nb\nc\nd\n" {
		t.Errorf("heard %q", got)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func rowSeed(t *testing.T, r *sallyport.Runner) {
	many := unified.CodexExec(sh("seq 1 1000; seq 1 300 >&2"))
	res := run(t, r, many)
	if out, errs := lineCount(res.Stdout), lineCount(res.Stderr); out != 256 || errs != 256 {
		t.Errorf("%d and %d lines kept, want 256 of each", out, errs)
	}
	long := unified.CodexExec(sh("head -c 20000 /dev/zero"))
	if n := len(run(t, r, long).Stdout.Bytes()); n != 10_240 {
		t.Errorf("%d bytes kept, want 10240", n)
	}
	if d := long.Timeout; d != 10*time.Second {
		t.Errorf("the time limit is %v, want 10s", d)
	}
	if d := unified.CodexExec(&sallyport.Cmd{Timeout: time.Second}).Timeout; d != time.Second {
		t.Errorf("the time limit that was asked for became %v", d)
	}
}

func lineCount(o sallyport.Output) int { return bytes.Count(o.Bytes(), []byte("\n")) }

func rowStdin(t *testing.T, r *sallyport.Runner) {
	c := sh("cat")
	text := strings.Repeat("0123456789\n", 50_000)
	c.Stdin = strings.NewReader(text)
	if res := run(t, r, c); res.Stdout.Total != uint64(len(text)) || res.ExitCode != 0 {
		t.Errorf("%d bytes came back, want %d", res.Stdout.Total, len(text))
	}
	deaf := sallyport.Command("true")
	deaf.Stdin = strings.NewReader(strings.Repeat("x", 4<<20))
	if res := run(t, r, deaf); res.ExitCode != 0 {
		t.Errorf("a command that does not read: %+v", res)
	}
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	direct := sh("head -c 4")
	direct.Stdin = file
	if res := run(t, r, direct); res.Stdout.String() != "\x7fELF" {
		t.Errorf("%q", res.Stdout)
	}
}

func rowArg0(t *testing.T, r *sallyport.Runner) {
	c := sallyport.Command("sh", "-c", "tr '\\0' ' ' </proc/$$/cmdline")
	c.Arg0 = "other-name"
	if got := run(t, r, c).Stdout.String(); !strings.HasPrefix(got, "other-name -c") {
		t.Errorf("its arguments are %q", got)
	}
}

func rowEnvironment(t *testing.T, r *sallyport.Runner) {
	c := sallyport.Command("env")
	c.EnvPolicy.Base = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere", "API_KEY=1", "OTHER=2",
		"TMPDIR=/var/tmp", "SALLYPORT=stale"}
	c.EnvPolicy.Set = map[string]string{"SALLYPORT_SANDBOX": "mine", "NEW_VAR": "3"}
	res := run(t, r, c)
	env := "\n" + res.Stdout.String()
	want := []string{"SALLYPORT=1", "SALLYPORT_SANDBOX=" + r.Policy.Name(), "NEW_VAR=3", "HOME=/nowhere",
		"PWD=" + res.Dir}
	if r.Policy.Mode() == sandbox.Managed {
		want = append(want, "TMPDIR=/tmp", "CODEX_SANDBOX_NETWORK_DISABLED=1", "SALLYPORT_NETWORK=none")
	} else {
		want = append(want, "TMPDIR=/var/tmp", "SALLYPORT_NETWORK=host")
	}
	for _, entry := range want {
		if !strings.Contains(env, "\n"+entry+"\n") {
			t.Errorf("%s is missing in%s", entry, env)
		}
	}
	if strings.Contains(env, "API_KEY") || strings.Contains(env, "OTHER") {
		t.Errorf("too much in%s", env)
	}
	if got := strings.Join(res.Withheld, " "); got != "API_KEY OTHER" {
		t.Errorf("withheld %q", got)
	}
}

func rowSurvivors(t *testing.T, r *sallyport.Runner) {
	testenv.NeedProgram(t, "setsid")
	mark := fmt.Sprintf("60.%d99", os.Getpid())
	res := run(t, r, sh("sleep "+mark+" >/dev/null 2>&1 & setsid sleep "+mark+" >/dev/null 2>&1 & sleep 0.1"))
	if len(res.Survivors) != 2 || res.StreamsLeftOpen {
		t.Errorf("survivors %+v, left open %v", res.Survivors, res.StreamsLeftOpen)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestCancel holds rows 19 and 20, and Close.
func TestCancel(t *testing.T) {
	for name, policy := range policies() {
		t.Run("row19 row20 "+name, func(t *testing.T) {
			r := newRunner(t, policy)
			// row 20; row 19 has 5 s
			within(t, 2*time.Second, func() time.Duration { return cancelOnce(t, r) })
		})
	}
	t.Run("close", func(t *testing.T) {
		r := newRunner(t, sandbox.FullAccess())
		c := sh("echo ready; sleep 60")
		ready := make(chan struct{})
		c.Stdout = writerFunc(func(p []byte) (int, error) { close(ready); return len(p), nil })
		done := make(chan error, 1)
		go func() { _, err := r.Run(t.Context(), c); done <- err }()
		<-ready
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, sallyport.ErrClosed) {
			t.Errorf("the run returned %v, want ErrClosed", err)
		}
		if _, err := r.Run(t.Context(), sh("true")); !errors.Is(err, sallyport.ErrClosed) {
			t.Errorf("a run after Close returned %v, want ErrClosed", err)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		r := newRunner(t, sandbox.FullAccess())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if res, err := r.Run(ctx, sh("true")); res != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v and %v", res, err)
		}
	})
	t.Run("a reader that never returns", func(t *testing.T) {
		r := newRunner(t, sandbox.FullAccess())
		in, hold := io.Pipe()
		defer hold.Close() // lets the one goroutine go that Run does not wait for
		c := sh("echo done")
		c.Stdin = in
		if res := run(t, r, c); res.Stdout.String() != "done\n" {
			t.Errorf("%+v", res)
		}
	})
}

// cancelOnce cancels a run whose command has a trap and a descendant that ignores SIGTERM,
// and returns how long the run took after that.
func cancelOnce(t *testing.T, r *sallyport.Runner) time.Duration {
	t.Helper()
	stopped := errors.New("the user pressed stop")
	mark := fmt.Sprintf("60.%d20", os.Getpid())
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c := sh("trap 'echo caught >marker; exit 3' TERM; (trap '' TERM; sleep " + mark + "; sleep " + mark +
		") & echo ready; wait; wait")
	c.Dir = t.TempDir()
	var begin time.Time
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		begin = time.Now()
		cancel(stopped)
		return len(p), nil
	})
	res, err := r.Run(ctx, c)
	took := time.Since(begin)
	if !errors.Is(err, stopped) || res == nil {
		t.Fatalf("got %v and %v, want a result and the cause", res, err)
	}
	if res.TimedOut || res.ExitCode != 128+15 || res.End != sallyport.EndCanceled || res.Signal != 0 {
		t.Errorf("%+v", res)
	}
	if got := res.Attempts[0].Code; got != 3 {
		t.Errorf("the system's own code is %d, want 3", got)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "marker")); err != nil {
		t.Errorf("its trap did not run: %v", err)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	return took
}

// TestBadInput holds rows 43 and 44 and the other things that cannot run.
func TestBadInput(t *testing.T) {
	r := newRunner(t, sandbox.FullAccess())
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	var (
		start     *sallyport.StartError
		directory *sallyport.DirError
		cmd       *sallyport.CmdError
		zero      *executor.NULError
	)
	tests := []struct {
		name string
		cmd  *sallyport.Cmd
		as   any
		want string
	}{
		{"row43 empty argv", &sallyport.Cmd{}, nil, "command args are empty"},
		{"row44 missing program", sallyport.Command("no-such-program-here"), &start, "no-such-program-here: not found in PATH"},
		{"missing path", sallyport.Command("/no/such"), &start, "/no/such: not found"},
		{"not executable", sallyport.Command(file), &start, "permission denied"},
		{"a directory", sallyport.Command(dir), &start, "is a directory, not a program"},
		{"empty name", sallyport.Command(""), &cmd, "the name of the program is empty"},
		{"args and script", &sallyport.Cmd{Args: []string{"x"}, Script: "x"}, &cmd, "use one of the two"},
		{"shell without script", &sallyport.Cmd{Args: []string{"x"}, Shell: "sh"}, &cmd, "it is for a Script"},
		{"negative time-out", &sallyport.Cmd{Args: []string{"x"}, Timeout: -1}, &cmd, "it is negative"},
		{"missing directory", &sallyport.Cmd{Args: []string{"true"}, Dir: "/no/such"}, &directory, "the working directory /no/such does not exist"},
		{"a file as directory", &sallyport.Cmd{Args: []string{"true"}, Dir: file}, &directory, "is not a directory"},
		{"NUL in an argument", sallyport.Command("echo", "a\x00b"), &zero, "argument 1"},
		{"NUL in the directory", &sallyport.Cmd{Args: []string{"true"}, Dir: "/\x00"}, &zero, "the working directory"},
		{"NUL in the environment", &sallyport.Cmd{Args: []string{"true"}, Env: []string{"A=\x00"}}, &zero, `variable "A"`},
		{"no PATH", &sallyport.Cmd{Args: []string{"true"}, Env: []string{"HOME=/"}}, &start, "has no PATH"},
		{"2 MB of arguments", sallyport.Command(append([]string{"true"}, many()...)...), &start, "too large for the kernel"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res, err := r.Run(t.Context(), test.cmd)
			if res != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v and error %v, want one with %q", res, err, test.want)
			}
			if test.as != nil && !errors.As(err, test.as) {
				t.Errorf("%T is not the type that was wanted", err)
			}
		})
	}
}

// many returns arguments of 2 MB in all.
func many() []string {
	args := make([]string, 32)
	for i := range args {
		args[i] = strings.Repeat("x", 64<<10)
	}
	return args
}

// TestUnsandboxed asks for what nobody can approve.
func TestUnsandboxed(t *testing.T) {
	var kinds []string
	r := &sallyport.Runner{Events: event.SinkFunc(func(e event.Event) {
		kinds = append(kinds,
			e.Body.Kind())
	})}
	defer r.Close()
	res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"}, Unsandboxed: true})
	if res != nil || !errors.Is(err, sallyport.ErrRefused) {
		t.Errorf("got %v and %v, want ErrRefused", res, err)
	}
	if got := strings.Join(kinds, " "); got != "judged ended" {
		t.Errorf("events %q", got)
	}
}

// TestKeptFromWriting is what the whole thing is for.
func TestKeptFromWriting(t *testing.T) {
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	// Not below /tmp: the command has one of its own. No random name: it would not be suggested.
	dir := "/var/tmp/sallyport-kept-user"
	if os.Geteuid() == 0 {
		dir = "/var/tmp/sallyport-kept-root"
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	outside := filepath.Join(dir, "file")
	c := sh("echo in >inside && echo out >" + outside)
	c.Dir = t.TempDir()
	res := run(t, r, c)
	if res.ExitCode == 0 {
		t.Errorf("writing outside of the workspace worked: %+v", res)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("the file outside is there")
	}
	if got, err := os.ReadFile(filepath.Join(c.Dir, "inside")); err != nil || string(got) != "in\n" {
		t.Errorf("the file inside: %q, %v", got, err)
	}
	ds := res.Denials()
	if len(ds) != 1 || ds[0].Source.Evidence() != res.Sandbox.Observed || ds[0].Path != outside ||
		ds[0].Errno == "" {
		t.Errorf("denials %v, observed %v, want one about %s", ds, res.Sandbox.Observed, outside)
	}
	if want := "--rw " + dir; len(ds) != 1 || ds[0].Rule != "/=read" || ds[0].Grant != want {
		t.Errorf("denials %+v, want the grant %s", ds, want)
	}
}

// TestCaps holds row 42's other half: what is kept is bounded.
func TestCaps(t *testing.T) {
	r := newRunner(t, sandbox.FullAccess())
	res := run(t, r, sh("head -c 5000000 /dev/zero | tr '\\0' a; printf end"))
	if n := len(res.Stdout.Bytes()); n != output.DefaultBytes || res.Stdout.Total != 5_000_003 {
		t.Errorf("%d bytes kept of %d", n, res.Stdout.Total)
	}
	if !strings.HasSuffix(res.Stdout.String(), "end") ||
		!strings.Contains(res.Stdout.String(), "bytes omitted") {
		t.Error("the end or the mark is missing")
	}
}
