// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// stoppedJob is what a shell says of a job that was stopped, and its prompt.
const stoppedJob = `Stopped(?s:.*)` + prompt

// jobScript is a job that a key stops and another one ends.
const jobScript = `sh -c 'echo go; sleep 600 | cat'`

// runningJob is a job that is stopped and goes on, in the background and in the foreground.
var runningJob = []turn{{`go\r\n$`, "\x1a"}, {stoppedJob, "bg\r"}, {prompt, "jobs\r"},
	{`Running(?s:.*)` + prompt, "fg\r"}}

// jobs are jobs of a shell, with what is seen and typed.
var jobs = []struct {
	name, needs, line, code string
	turns                   []turn
	keys                    string // typed when the job is in the foreground again
}{
	{"pipeline", "cat", "sallyport run -q -- " + jobScript, "130", runningJob, "\x03"},
	{"the caller's terminal", "cat", "sallyport run -q -t=false -- " + jobScript, "130", runningJob, "\x03"},
	{"full access", "cat", "sallyport run -q -s full-access -- " + jobScript, "130", runningJob, "\x03"},
	{"it stops itself", "sh", "sallyport run -q -- sh -c 'kill -STOP $$; exit 7'", "7",
		[]turn{{stoppedJob, "fg\r"}}, ""},
	{
		"keys while in the background", "cat",
		"sallyport run -q -- sh -c 'echo go; read a; exit $a'", "5",
		[]turn{{`go\r\n$`, "\x1a"}, {stoppedJob, "bg\r"}, {prompt, "echo for the shell\r"},
			{`\n(?:\^Z)?for the shell\r\n(?:\^Z)?` + prompt, "jobs\r"},
			{`Running(?s:.*)` + prompt, "fg\r"}}, "5\r",
	},
	{
		"vim", "vim", "sallyport run -q -- vim -u NONE -i NONE -N note", "0",
		[]turn{{`begin`, "ifirst"}, {`first`, "\x1b\x1a"}, {stoppedJob, "fg\r"}, {`first`, ":wq\r"},
			{prompt, "grep -c 'first.*begin' note\r"}, {`\n1\r\n`, ""}}, "",
	},
	{
		"vim on the caller's terminal", "vim",
		"sallyport run -q -t=false -- vim -u NONE -i NONE -N note", "0",
		[]turn{{`begin`, "ifirst"}, {`first`, "\x1b\x1a"}, {stoppedJob, "fg\r"},
			{`first`, "\x1b:wq\r"}}, "",
	},
	{
		"less at the end of a pipeline", "less", "seq 200 | sallyport run -q -- less", "0",
		[]turn{{`:`, ""}, {stoppedJob, "fg\r"}, {`\n22\r\n`, "q"}}, "",
	},
}

// TestJobs: Control-Z stops the command and sallyport with it, whether the terminal tells the
// command or the command reads the key; fg and bg let both go on.
func TestJobs(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "bash")
	for _, tt := range jobs {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NeedProgram(t, tt.needs)
			s := newSeat(t)
			if err := os.WriteFile(filepath.Join(s.work, "note"), []byte("begin\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			x := testenv.StartTerminal(t, s.command(t, append(plainBash, "-i")...), 80, 24)
			x.Expect(prompt)
			shell := x.Foreground()
			x.Send(tt.line + "\r")
			if tt.needs == "less" {
				play(x, tt.turns[:1])
				untilAsleep(t, "less")
				x.Send("\x1a")
				tt.turns = tt.turns[1:]
			}
			play(x, tt.turns)
			if tt.keys != "" {
				for x.Foreground() == shell { // which says nothing when it hands the terminal over
					runtime.Gosched()
				}
				x.Send(tt.keys)
			}
			play(x, []turn{{prompt, "echo code $?\r"}, {`code ` + tt.code + `\r\n` + prompt, "exit 0\r"}})
			x.Wait()
		})
	}
}

// TestInterruptEndsLoop: one Control-C ends the loop of a script whose command it ends.
func TestInterruptEndsLoop(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "bash")
	const loop = `for i in 1 2; do sallyport run -q %s -- sh -c 'echo go; exec sleep 600'; done; echo went on`
	for _, flags := range []string{"", "-t=false", "-s full-access", "--net host"} {
		for _, key := range []string{"\x03", "\x1c"} {
			t.Run(flags+" "+strconv.Quote(key), func(t *testing.T) {
				s := newSeat(t)
				x := testenv.StartTerminal(t, s.command(t, "bash", "-c", fmt.Sprintf(loop, flags)), 80, 24)
				x.Expect(`go\r\n`)
				x.Send(key)
				if key == "\x1c" { // bash ignores that itself, and goes on with the next
					x.Expect(`go\r\n`)
					x.Send("\x03")
				}
				if code := x.Wait(); code != 130 || strings.Contains(x.Transcript(), "went on") ||
					strings.Contains(x.Transcript(), "goroutine") {
					t.Errorf("exit code %d, seen:\n%q", code, x.Transcript())
				}
				unchanged(t, x)
			})
		}
	}
}

// untilAsleep returns when all processes with that name sleep. Of a signal that comes just before
// it reads a key, less hears with the key.
func untilAsleep(t *testing.T, name string) {
	t.Helper()
	for asleep := false; !asleep && t.Context().Err() == nil; runtime.Gosched() {
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		asleep = true
		for _, file := range stats {
			text, _ := os.ReadFile(file) // the process may have ended
			if _, rest, ok := strings.Cut(string(text), "("+name+") "); ok && rest[0] != 'S' {
				asleep = false
			}
		}
	}
}

// TestModesAfterTheEnd: the terminal is as it was after every end of a program that changed it.
func TestModesAfterTheEnd(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "stty")
	for _, end := range []string{"exit 3", "kill -9 $$", "exec sleep 600", "exec 0<&- 1>&-; kill -TERM $$"} {
		for _, args := range [][]string{{"-t=false"}, {"-t=false", "-s", "full-access"}, {"-t"}, {"--json"}} {
			t.Run(end+" "+args[0]+args[len(args)-1], func(t *testing.T) {
				x := newSeat(t).run(t, append(args, "-q", "--timeout", "0.5", "--", "sh", "-c",
					"stty raw -echo; "+end)...)
				x.Wait()
				unchanged(t, x)
			})
		}
	}
}
