// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A front is a running sallyport with a command in it that has printed "ready".
type front struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
}

// startFront runs a shell script under sallyport, which must print "ready".
func startFront(t *testing.T, script string) *front {
	t.Helper()
	// Whatever is lost must fail here, and not wait for the end of all tests.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	f := &front{cmd: exec.CommandContext(ctx, "sallyport", "run", "--", "/bin/sh", "-c", script)}
	f.cmd.Dir = workRoot(t)
	f.cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+t.TempDir(), "GORACE="+noRaceSleep)
	f.cmd.Stderr = &f.stderr
	f.cmd.WaitDelay = 10 * time.Second
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.cmd.Process.Kill() })
	f.out = bufio.NewReader(stdout)
	f.expect(t, "ready")
	return f
}

// expect reads lines until one is line.
func (f *front) expect(t *testing.T, line string) {
	t.Helper()
	for {
		got, err := f.out.ReadString('\n')
		if strings.TrimSpace(got) == line {
			return
		}
		if err != nil {
			t.Fatalf("no %q: %v; stderr %q", line, err, &f.stderr)
		}
	}
}

// end waits and returns the exit code and the rest of the output.
func (f *front) end(t *testing.T) (int, string) {
	t.Helper()
	rest, err := io.ReadAll(f.out)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := f.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return testenv.Code(f.cmd.ProcessState), string(rest)
}

// waiting is the end of a script that waits to be signaled. It is not wait that a signal interrupts: bash
// loses one that comes just before it blocks there, one in some thousand, and performs no trap until the
// next.
const waiting = `; echo ready; ` + idles

// idles waits for signals for ever.
const idles = `while :; do sleep 0.1; done`

// TestSignalsReachTheCommand sends each signal to the front end.
func TestSignalsReachTheCommand(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	tests := []struct {
		name   string
		script string
		signal syscall.Signal
		code   int
		prints string
	}{
		{"interrupt", waiting[2:], syscall.SIGINT, 130, ""},
		{"terminate", waiting[2:], syscall.SIGTERM, 143, ""},
		{"hang up", waiting[2:], syscall.SIGHUP, 129, ""},
		{"quit", waiting[2:], syscall.SIGQUIT, 131, ""},
		{"user 1 is handled", `trap "echo usr1; exit 3" USR1` + waiting, syscall.SIGUSR1, 3, "usr1\n"},
		{"user 2 is handled", `trap "echo usr2; exit 4" USR2` + waiting, syscall.SIGUSR2, 4, "usr2\n"},
		{"window is handled", `trap "echo winch; exit 5" WINCH` + waiting, syscall.SIGWINCH, 5, "winch\n"},
		{"the end is the command's own", `trap "echo bye; exit 0" INT` + waiting, syscall.SIGINT, 0, "bye\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := startFront(t, tt.script)
			if err := f.cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			code, rest := f.end(t)
			if code != tt.code || rest != tt.prints {
				t.Errorf("exit code %d, printed %q; want %d, %q; stderr %q", code, rest, tt.code,
					tt.prints, &f.stderr)
			}
		})
	}
}

// TestEndsByTheSignal: sallyport ends by the signal that ended its command, after it has said what it
// says, so that a shell sees what happened. What ended otherwise has an exit code.
func TestEndsByTheSignal(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, tt := range []struct {
		name   string
		flags  string
		script string
		signal syscall.Signal // 0 for none
		code   int            // without a signal
	}{
		{"interrupt", "", "kill -INT $$", syscall.SIGINT, 0},
		{"quit", "", "kill -QUIT $$", syscall.SIGQUIT, 0},
		{"terminate", "", "kill -TERM $$", syscall.SIGTERM, 0},
		{"hang up", "", "kill -HUP $$", syscall.SIGHUP, 0},
		{"kill", "", "kill -KILL $$", syscall.SIGKILL, 0},
		{"fault", "", "kill -SEGV $$", syscall.SIGSEGV, 0},
		{"user 1", "", "kill -USR1 $$", syscall.SIGUSR1, 0},
		{"a terminal of its own", "-t", "kill -INT $$", syscall.SIGINT, 0},
		{"full access", "-s full-access", "kill -TERM $$", syscall.SIGTERM, 0},
		{"an object", "--json", "kill -QUIT $$", syscall.SIGQUIT, 0},
		{"lines", "--jsonl", "kill -HUP $$", syscall.SIGHUP, 0},
		{"the code of a signal", "", "exit 130", 0, 130},
		{"it handles the signal", "", "trap 'exit 3' INT; kill -INT $$", 0, 3},
		{"a time limit", "--timeout 100ms", "exec sleep 600", 0, 124},
		{"a limit", "--output 1k", "exec yes", 0, 143},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"run"}, strings.Fields(tt.flags)...)
			args = append(args, "--", "/bin/sh", "-c", tt.script)
			cmd := exec.CommandContext(t.Context(), "sallyport", args...)
			cmd.Dir = workRoot(t)
			cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+t.TempDir(), "GORACE="+noRaceSleep)
			out, err := cmd.Output()
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			switch {
			case tt.signal == 0 && (!status.Exited() || status.ExitStatus() != tt.code):
				t.Errorf("%v, want exit code %d", err, tt.code)
			case tt.signal != 0 && (!status.Signaled() || status.Signal() != tt.signal || status.CoreDump()):
				t.Errorf("%v, want %v without a core dump", err, tt.signal)
			case strings.HasPrefix(tt.flags, "--json") && !strings.Contains(string(out), `"end":"signaled"`):
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestIgnoredStaysIgnored runs under nohup(1), which ignores SIGHUP.
func TestIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	nohup := testenv.NeedProgram(t, "nohup")
	cmd := exec.CommandContext(t.Context(), nohup, "sh", "-c",
		`kill -HUP $$; sallyport run -- sh -c 'kill -HUP $PPID; exit 6'; echo code $?`)
	cmd.Dir = workRoot(t)
	cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+t.TempDir(), "GORACE="+noRaceSleep)
	out, err := cmd.Output()
	if err != nil || string(out) != "code 6\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestStopAndContinue stops front end and command as a terminal does, and lets
// them go on.
func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	f := startFront(t, `trap "echo cont; exit 7" CONT`+waiting)
	pid := f.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the front end did not stop: status %v, %v", status, err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, rest := f.end(t); code != 7 || rest != "cont\n" {
		t.Errorf("exit code %d, printed %q; stderr %q", code, rest, &f.stderr)
	}
}

// TestKilledFrontEnd ends everything when the front end dies in an instant. The
// command holds the writing end of our pipe, so the end of its output is the end
// of all its processes.
func TestKilledFrontEnd(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	f := startFront(t, `trap "" TERM INT HUP; sleep 600 & setsid sleep 600 & echo ready; wait`)
	if err := f.cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, f.out); err != nil {
		t.Fatal(err)
	}
	_ = f.cmd.Wait()
}
