// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A seat is a place in front of a terminal, with a workspace and a search path.
type seat struct{ work, home, path string }

// newSeat makes one, with the search path of the other tests: directories of root are
// closed to the ordinary user.
func newSeat(t *testing.T) seat {
	t.Helper()
	path, err := exec.LookPath("sallyport")
	if err != nil {
		t.Fatal(err)
	}
	root := workRoot(t)
	s := seat{work: filepath.Join(root, "w"), home: filepath.Join(root, "home"), path: os.Getenv("PATH")}
	if short := filepath.Dir(path) + ":/usr/bin"; !strings.HasPrefix(s.path, short) {
		s.path = short + ":/bin"
	}
	for _, dir := range []string{s.work, s.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command returns a command with the environment of a seat.
func (s seat) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program(args[0]), args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = s.work
	cmd.Env = append(testenv.Environ(), "PATH="+s.path, "HOME="+s.home, "XDG_STATE_HOME="+s.home,
		"SHELL=/bin/sh", "LC_ALL=C.UTF-8", "TERM=xterm",
		"PS1=$ ", "PS2=> ", "LESS=", "EXINIT=", "VIMINIT=", "PYTHONSTARTUP=", "GORACE="+noRaceSleep)
	return cmd
}

// program returns the path of a program that is found in the search path of the seat.
func (s seat) program(name string) string {
	for _, dir := range filepath.SplitList(s.path) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && !strings.Contains(name, "/") {
			return path
		}
	}
	return name
}

// run starts sallyport run with these words on a terminal.
func (s seat) run(t *testing.T, args ...string) *testenv.Terminal {
	t.Helper()
	return testenv.StartTerminal(t, s.command(t, append([]string{"sallyport", "run"}, args...)...), 80, 24)
}

// A turn is what a person sees, a regular expression, and types then.
type turn struct{ see, keys string }

// play plays turns.
func play(x *testenv.Terminal, turns []turn) {
	for _, turn := range turns {
		x.Expect(turn.see)
		if turn.keys != "" {
			x.Send(turn.keys)
		}
	}
}

// prompt is that of the shells here, at the end of what is seen. The kernel echoes Control-Z after
// it has stopped the program, so on a busy machine that comes when the program is continued.
const prompt = `\$ (?:\^Z)?$`

// bash is a shell that is the same everywhere.
var bash = []string{"bash", "--norc", "--noprofile"}

// plainBash edits no lines, so that what is seen is what was said.
var plainBash = append(bash[:len(bash):len(bash)], "--noediting")

// untilStopped waits in a shell until its job is stopped.
const untilStopped = "until jobs | grep -q Stopped; do :; done; jobs\r"

// transcripts are sessions that were recorded: what is seen is in
// testdata/terminal, with programs that are the same everywhere. What is typed into
// a line editor is known to have arrived before the next line is typed.
var transcripts = []struct {
	name  string
	needs []string
	args  []string
	turns []turn
	code  int
}{
	{
		name: "jobs", needs: []string{"bash", "grep"}, args: append([]string{"--"}, plainBash...), code: 3,
		turns: []turn{
			{prompt, "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all\r"},
			{`all\r\n` + prompt, "echo controls >/dev/tty; ps -o tty= -p $$\r"},
			{`pts/\d+\s+` + prompt, "sh -c 'read x; echo got $x; exec sleep 100' & " + untilStopped},
			{`Stopped(?s:.*)` + prompt, "fg\r"},
			{`read x.*\r\n$`, "words\r"},
			{`got words\r\n$`, "\x1a"}, // Control-Z
			{`Stopped(?s:.*)` + prompt, "jobs\r"},
			{`Stopped(?s:.*)` + prompt, "bg\r"},
			{prompt, "jobs\r"},
			{`Running(?s:.*)` + prompt, "kill %1; wait %1\r"},
			{`Terminated(?s:.*)` + prompt, "echo $?\r"},
			{`143\r\n` + prompt, "exit 3\r"},
		},
	},
	{
		name: "keys", needs: []string{"bash"}, args: append([]string{"-t", "--"}, plainBash...), code: 0,
		turns: []turn{
			{prompt, "sh -c 'echo go; exec sleep 100'\r"},
			{`\ngo\r\n$`, "\x03"}, // Control-C
			{prompt, "echo $?; sh -c 'echo go; exec sleep 100'\r"},
			{`130\r\ngo\r\n$`, "\x1c"}, // Control-backslash
			{prompt, "echo $?; cat\r"},
			{`131\r\n$`, "one\r"},
			{`one\r\none\r\n$`, "two"},
			{`two$`, "\x04"}, // Control-D: the line so far
			{`two$`, "\x04"}, // and the end
			{prompt, "read -s -p 'Password: ' p\r"},
			{`Password: $`, "open sesame\r"},
			{prompt, "echo; echo \"[$p]\"\r"},
			{`\[open sesame\]\r\n` + prompt, "\x04"},
		},
	},
	{
		name: "python", needs: []string{"python3"}, args: []string{"--", "env", "TERM=dumb", "python3",
			"-q"}, code: 5,
		turns: []turn{
			{`>>> $`, "print(6*7)\r"},
			{`\n42\r\n>>> $`, "exec(\"print('go')\\nwhile 1: pass\")\r"}, // a sleep misses a signal just before it
			{`\ngo\r\n`, "\x03"},
			{`KeyboardInterrupt\r\n>>> $`, "input('name? ')\r"},
			{`\nname\? $`, "Ada\r"},
			{`'Ada'\r\n>>> $`, "import os; os.get_terminal_size()\r"},
			{`lines=24\)\r\n>>> $`, "exit(5)\r"},
		},
	},
	{
		name: "end", needs: []string{"python3"}, args: []string{"--", "env", "TERM=dumb", "python3",
			"-q"}, code: 0,
		turns: []turn{{`>>> $`, "print(6*7)\r"}, {`\n42\r\n>>> $`, "\x04"}},
	},
	{
		name: "interrupted", args: []string{"--", "sh", "-c", "echo go; exec sleep 100"}, code: 130,
		turns: []turn{{`go\r\n$`, "\x03"}},
	},
	{
		name: "killed", args: []string{"--", "sh", "-c", "echo go; kill -9 $$"}, code: 137,
		turns: []turn{{`go\r\n`, ""}},
	},
}

// TestTranscripts plays the sessions on a terminal of ours, and compares what is seen
// with what was recorded. At the end, the terminal is as it was.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	for _, tt := range transcripts {
		t.Run(tt.name, func(t *testing.T) {
			s := newSeat(t)
			for _, program := range tt.needs {
				testenv.NeedProgram(t, program)
			}
			x := s.run(t, tt.args...)
			play(x, tt.turns)
			if code := x.Wait(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if diff := cmp.Diff(x.ModesBefore(), x.Modes()); diff != "" {
				t.Errorf("the modes of the terminal are other ones (-before +after):\n%s", diff)
			}
			compare(t, filepath.Join("testdata", "terminal", tt.name+".txt"),
				frames.ReplaceAllString(plain(x.Transcript()), ""))
		})
	}
}

// frames are the places of a Python traceback: where a signal arrives is not known.
var frames = regexp.MustCompile(`(?m)^  File "<.*\n`)

// compare compares a text with a recorded one, or records it.
func compare(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("SALLYPORT_TEST_UPDATE") != "" {
		if os.Geteuid() != 0 {
			return // the run as root records it
		}
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("it looks different (-recorded +seen):\n%s", diff)
	}
}

// What differs from machine to machine, and says nothing.
var (
	sequence  = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")
	jobNumber = regexp.MustCompile(`(?m)^\[(\d+)\] \d+\r?$`)
	anyKey    = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)
)

// plain returns what a terminal has shown as lines of text: without control sequences, with
// other control characters made visible and process numbers left out.
func plain(seen string) string {
	seen = sequence.ReplaceAllString(seen, "")
	seen = jobNumber.ReplaceAllString(strings.ReplaceAll(seen, "\r\n", "\n"), "[$1] PID")
	return anyKey.ReplaceAllStringFunc(seen, func(c string) string { return "<" + string('@'^c[0]) + ">" })
}

// TestStoppedOutput: a program that stops the output of the caller's terminal does not stop
// sallyport, which prints there when it has ended.
func TestStoppedOutput(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "python3")
	s := newSeat(t)
	const program = `import termios, os
try: open(os.environ["HOME"] + "/no", "w")
except OSError: termios.tcflow(1, termios.TCOOFF)`
	x := testenv.StartTerminal(t, s.command(t, "sh", "-c",
		`sallyport run -- python3 -c "$0" </dev/null; echo over`, program), 80, 24)
	x.Expect("over")
	x.Wait()
}
