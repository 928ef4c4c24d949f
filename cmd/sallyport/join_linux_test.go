// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestJoinAsAlone: a run in a named sandbox ends, prints and says what one in a sandbox of its own does.
func TestJoinAsAlone(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	d := newParlor(t)
	if err := os.WriteFile(filepath.Join(d.work, "x.rules"),
		[]byte(`prefix_rule(pattern=["cp"], decision="prompt")`), 0o600); err != nil {
		t.Fatal(err)
	}
	// What differs from run to run, and the name of the sandbox in what is suggested.
	differs := regexp.MustCompile(`"(run|id|duration_ms|cpu_[a-z]+|user_ms|system_ms|peak_[a-z]+|[a-z_]*memory[a-z_]*|[a-z_]*processes[a-z_]*)":("[^"]*"|[0-9.]+)`)
	for _, test := range []struct {
		name  string
		stdin string
		args  []string
	}{
		{"output", "", []string{"--", "sh", "-c", "echo out; echo err >&2"}},
		{"exit code", "", []string{"--", "sh", "-c", "exit 3"}},
		{"signal", "", []string{"--", "sh", "-c", "kill -TERM $$"}},
		{"input", "one\ntwo\n", []string{"--", "sh", "-c", "cat; echo end"}},
		{"input that is not read", "one\ntwo\n", []string{"--", "true"}},
		{"directory", "", []string{"--", "pwd"}},
		{"another directory", "", []string{"-C", ".", "--", "pwd"}},
		{"variables", "", []string{"-e", "GREETING=hello you", "-e", "HIDDEN", "--", "sh", "-c", "echo $GREETING $HIDDEN $SALLYPORT $SALLYPORT_NETWORK"}},
		{"a variable that is not set", "", []string{"-e", "NOTHING", "--", "true"}},
		{"words", "", []string{"--", "printf", "%s|", "", "a b", "--x", "é", "\n"}},
		{"script", "", []string{"-c", "echo $0; false"}},
		{"not found", "", []string{"--", "nowhere"}},
		{"not executable", "", []string{"--", "./x.rules"}},
		{"time-out", "", []string{"--timeout", "100ms", "--kill-after", "0", "--", "sleep", "600"}},
		{"denied", "", []string{"--", "cp", "/dev/null", "/usr/x"}},
		{"forbidden", "", []string{"--rules", "x.rules", "--", "cp", "a", "b"}},
		{"nobody is asked", "", []string{"--rules", "x.rules", "-a", "on-request", "--", "cp", "a", "b"}},
		{"rules that do not load", "", []string{"--rules", "missing.rules", "--", "true"}},
		{"quiet", "", []string{"-q", "--", "nowhere"}},
		{"much output", "", []string{"--", "head", "-c", "3000000", "/dev/zero"}},
		{"limit of output", "", []string{"--output", "1000", "--", "yes"}},
		{"object", "", []string{"--json", "--", "sh", "-c", "echo out; exit 4"}},
		{"object with input", "in", []string{"--json", "--", "cat"}},
		{"a warning", "", []string{"--deny", "/nowhere/at/all", "--rw", "/", "--", "true"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			results := make([]string, 2)
			for i, join := range [][]string{nil,
				{"--join", "j" + regexp.MustCompile(`\W`).ReplaceAllString(test.name, "-")}} {
				cmd := d.command(t, slices.Concat([]string{"sallyport", "run"}, join, test.args)...)
				cmd.Env = append(cmd.Env, "HIDDEN=visible")
				var out, errs bytes.Buffer
				cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, &out, &errs
				if test.stdin != "" {
					cmd.Stdin = strings.NewReader(test.stdin)
				}
				_ = cmd.Run() // the code says it
				text := differs.ReplaceAllString(out.String(), `"$1":0`)
				if i := strings.Index(text, `"sandbox":{`); i >= 0 && strings.HasPrefix(text, "{") {
					text = text[:i] // what was built differs
				}
				results[i] = "exit code " + strconv.Itoa(testenv.Code(cmd.ProcessState)) + "\n" +
					text + errs.String()
			}
			if results[0] != results[1] {
				t.Errorf("alone:\n%.2000s\njoined:\n%.2000s", results[0], results[1])
			}
		})
	}
}

// TestJoinTerminal: a run in a named sandbox has the terminal of the user: keys, size and exit code.
func TestJoinTerminal(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--join", "n", "--", "bash", "-c",
		talks), 80, 24)
	x.Expect("ready\r\n")
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
}

// TestJoinAsks: questions are asked on the terminal of the run that joins, before and after an attempt.
func TestJoinAsks(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	if err := os.WriteFile(filepath.Join(d.work, "x.rules"),
		[]byte(`prefix_rule(pattern=["cp"], decision="prompt")`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flag, value, answer string
		code                int
	}{{"-a", "untrusted", "y\r", 0}, {"-a", "untrusted", "n\r", 123}, {"--rules", "x.rules", "y\r", 0},
		{"--rules", "x.rules", "n\r", 123}} {
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--join", "n", "-t=false", test.flag,
			test.value, "--", "cp", "/dev/null", "copy"+test.answer[:1]), 80, 24)
		x.Expect("may this command run")
		x.Expect("deny .*> $")
		x.Send(test.answer)
		if code := x.Wait(); code != test.code {
			t.Errorf("%s, %q: exit code %d, want %d", test.flag, test.answer, code, test.code)
		}
	}
	outside := filepath.Join(filepath.Dir(d.work), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	x := testenv.StartTerminal(t, d.command(t, "sh", "-c",
		`sallyport run --join n -t=false -a on-request -- cp /dev/null "$0/made" </dev/null`,
		outside), 80, 24)
	x.Expect("deny .*> $")
	x.Send("y\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("a second attempt: exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(outside, "made")); err != nil {
		t.Error(err)
	}
}

// TestJoinSignals: signals of a run in a named sandbox are the program's, the second one that asks for
// its end ends it, and so does the end of the run.
func TestJoinSignals(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	const script = `trap 'echo "got USR1"' USR1; trap 'echo "got INT"' INT; echo $$ up; ` + idles
	start := func() (*bufio.Scanner, func(os.Signal), func() int) {
		cmd := d.command(t, "sallyport", "run", "--join", "n", "--", "sh", "-c", script)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewScanner(out), func(s os.Signal) {
				if err := cmd.Process.Signal(s); err != nil {
					t.Error(err)
				}
			}, func() int {
				_ = cmd.Wait() // the code says it
				return testenv.Code(cmd.ProcessState)
			}
	}
	reads := func(lines *bufio.Scanner, want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
			t.Fatalf("%q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	lines, signal, wait := start()
	reads(lines, "up")
	signal(os.Interrupt)
	reads(lines, "got INT")
	for range 3 {
		signal(syscall.SIGUSR1)
		reads(lines, "got USR1")
	}
	signal(os.Interrupt)
	if code := wait(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d, want that of SIGTERM", code)
	}
	lines, signal, wait = start()
	reads(lines, "up")
	command := commandOf(t, script)
	defer unix.Close(command)
	signal(syscall.SIGKILL)
	wait()
	if n, err := testenv.Poll([]unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}, patience); n != 1 {
		t.Errorf("the command of a run that was killed goes on: %v", err)
	}
}

// commandOf returns a descriptor of the process with a script as its last argument that is no sallyport.
func commandOf(t *testing.T, script string) int {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		line, _ := os.ReadFile("/proc/" + p.Name() + "/cmdline") // it may have ended
		if err != nil || !bytes.HasPrefix(line, []byte("sh\x00-c\x00")) ||
			!bytes.Contains(line, []byte(script)) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	t.Fatal("the command is not there")
	return -1
}
