// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// server starts the daemon, and returns its URL, as that of any other server.
func (d parlor) server(t *testing.T) string {
	t.Helper()
	d.start(t, "--", "true")
	return "unix://" + filepath.Join(d.runtime, "sallyport", "daemon.sock")
}

// TestRemoteTerminal: a run on another server has the terminal of the user: keys, its size, the exit
// code, and a key that leaves it there.
func TestRemoteTerminal(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	start := func() *testenv.Terminal {
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--remote", url, "-C", d.work, "--",
			"bash", "-c", talks), 80, 24)
		x.Expect("ready\r\n")
		return x
	}
	x := start()
	x.Send("one\r")
	x.Expect("said one\r\n")
	x.Resize(101, 37)
	x.Send("sized\r")
	x.Expect("said sized\r\n")
	d.reads(t)
	x.Send("\x03")
	x.Expect("got INT\r\n")
	x.Send("\rend\r")
	if code := x.Wait(); code != 7 || x.Modes() != x.ModesBefore() {
		t.Errorf("exit code %d; modes %v, before %v", code, x.Modes(), x.ModesBefore())
	}
	if out, _, _ := d.run(t, "ps"); strings.Contains(out, "ready") {
		t.Errorf("it is left:\n%s", out)
	}
	x = start()
	x.Send("\x1c")
	x.Expect(`sallyport: detached from session (\d+), which keeps running; to return: sallyport attach --remote unix://`)
	if code := x.Wait(); code != 0 || x.Modes() != x.ModesBefore() {
		t.Errorf("detached: exit code %d; modes %v, before %v", code, x.Modes(), x.ModesBefore())
	}
	if out, _, _ := d.run(t, "ps"); !strings.Contains(out, "running") {
		t.Errorf("it did not go on:\n%s", out)
	}
	x = start()
	x.Signal(syscall.SIGTERM)
	if code := x.Wait(); code != 128+int(syscall.SIGTERM) || x.Modes() != x.ModesBefore() {
		t.Errorf("SIGTERM: exit code %d; modes %v, before %v", code, x.Modes(), x.ModesBefore())
	}
	if out, _, _ := d.run(t, "ps"); strings.Count(out, "running") != 1 {
		t.Errorf("what was ended goes on:\n%s", out)
	}
}

// TestRemoteSignal: without a terminal, signals are the program's.
func TestRemoteSignal(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	cmd := d.command(t, "sallyport", "run", "--remote", d.server(t), "-C", d.work, "--", "sh", "-c",
		`trap 'echo "got INT"; exit 9' INT; echo up; `+idles)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"up", "got INT"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, %v, want %q", lines.Text(), lines.Err(), want)
		}
		if want == "up" {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); testenv.Code(cmd.ProcessState) != 9 {
		t.Errorf("%v, want exit code 9", err)
	}
}

// TestRemoteAsks: a question of another server is asked on the terminal of the user, before and after
// an attempt.
func TestRemoteAsks(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	url := d.server(t)
	for _, test := range []struct {
		answer string
		code   int
	}{{"y\r", 0}, {"n\r", 123}} {
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--remote", url, "-C", d.work,
			"-t=false", "-a", "untrusted", "--", "cp", "/dev/null", "copy"+test.answer[:1]), 80, 24)
		x.Expect("may this command run")
		x.Expect("deny .*> $")
		x.Send(test.answer)
		if code := x.Wait(); code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.answer, code, test.code)
		}
	}
	outside := filepath.Join(filepath.Dir(d.work), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	x := testenv.StartTerminal(t, d.command(t, "sh", "-c",
		`sallyport run --remote "$0" -C "$1" -t=false -a on-request -- cp /dev/null "$2/made" </dev/null`,
		url, d.work, outside), 80, 24)
	x.Expect("deny .*> $")
	x.Send("y\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("a second attempt: exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(outside, "made")); err != nil {
		t.Error(err)
	}
}

// TestRemoteHosts: flags about hosts count where the command runs: by --remote and by --detach, and a
// ceiling of nothing else opens what they do not name.
func TestRemoteHosts(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	d := newParlor(t)
	url := d.server(t)
	act := d.inside(t, "act")
	named, other := originOf(t, "named"), originOf(t, "other")
	const want = "200 named\n403 blocked-by-allowlist\n"
	fetches := []string{"--", act, "fetch", "http://" + named + "/", "fetch", "http://" + other + "/"}
	allow := []string{"--allow-host", named}
	t.Run("remote", func(t *testing.T) {
		d.expects(t, 0, want, slices.Concat([]string{"run", "--remote", url, "-C", d.work, "-t=false"},
			allow, fetches)...)
	})
	t.Run("remote, without", func(t *testing.T) {
		if out, errs, code := d.run(t,
			slices.Concat([]string{"run", "--remote", url, "-C", d.work, "-t=false"},
				fetches)...); strings.Contains(out, "200") {
			t.Errorf("%q, %q, %d", out, errs, code)
		}
	})
	t.Run("remote, denied", func(t *testing.T) {
		d.expects(t, 0, "403 blocked-by-denylist\n403 blocked-by-denylist\n",
			slices.Concat([]string{"run", "--remote", url, "-C", d.work, "-t=false", "--deny-host",
				"localhost"}, allow, fetches)...)
	})
	t.Run("detach", func(t *testing.T) {
		id := d.start(t, slices.Concat(allow, []string{"--", "sh", "-c", `"$@" >fetched`, "sh"},
			fetches[1:])...)
		if out, errs, code := d.run(t, "wait", id); code != 0 {
			t.Errorf("%q, %q, %d", out, errs, code)
		}
		if text, err := os.ReadFile(filepath.Join(d.work, "fetched")); string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// counts is a program of Python that counts SIGTERM, and ends with 9 after as many as its argument says.
// A trap of a shell loses a signal that comes while it runs.
const counts = `
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for n in range(int(sys.argv[1])):
    print("got", n, flush=True)
    signal.sigwait({signal.SIGTERM})
sys.exit(9)
`

// TestRepeatedSignals: with a terminal and without, each signal is the program's, as often as it comes.
// Of a run on another server the second one that asks for the end ends it.
func TestRepeatedSignals(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	testenv.NeedProgram(t, "python3")
	remote := []string{"--remote", d.server(t)}
	for _, test := range []struct {
		name   string
		flags  []string
		counts string // how many signals end the program
		code   int
	}{
		{"here", nil, "3", 9},
		{"here, on a terminal", []string{"-t"}, "3", 9},
		{"there", remote, "9", 137},
		{"there, on a terminal", append(remote, "-t"), "9", 137},
		{"there, the first is the program's", append(remote, "-t"), "1", 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"sallyport", "run", "-C", d.work, "--kill-after", "100ms"}, test.flags...)
			cmd := d.command(t, append(args, "--", "python3", "-c", counts, test.counts)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			sent, most := 0, 3
			if test.code == 137 {
				most = 2
			}
			for lines.Scan() {
				if got := strings.TrimSpace(lines.Text()); sent < most && got == fmt.Sprint("got ", sent) {
					_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
					sent++
				}
			}
			if _ = cmd.Wait(); testenv.Code(cmd.ProcessState) != test.code {
				t.Errorf("%v after %d signals, want exit code %d", cmd.ProcessState, sent, test.code)
			}
		})
	}
}

// TestSignalsNoAnswer: the third signal ends a run whose server does not answer.
func TestSignalsNoAnswer(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	for _, flags := range [][]string{nil, {"-t"}} {
		socket := filepath.Join(t.TempDir(), "s")
		server := d.command(t, "sallyport", "exec-server", "--listen", "unix://"+socket)
		said, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(said).Scan() {
			t.Fatal("the server does not start")
		}
		args := append([]string{"sallyport", "run", "--remote", "unix://" + socket, "-C", d.work}, flags...)
		cmd := d.command(t, append(args, "--", "sh", "-c", "echo ready; exec sleep 600")...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("the command does not start")
		}
		if err := server.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			// different ones are not joined
			if err := cmd.Process.Signal(s); err != nil {
				t.Error(err)
			}
		}
		if _ = cmd.Wait(); cmd.ProcessState.Success() ||
			!strings.Contains(errs.String(), "the command may still be running there as session ") {
			t.Errorf("%s: %v, %q", flags, cmd.ProcessState, errs.String())
		}
		_ = server.Process.Signal(syscall.SIGCONT) // the end of the test ends it
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}
}
