// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A askingAgent is Claude Code with a hook whose rules ask about touch and ./build.
type askingAgent struct {
	seat
	rules string
}

func newAskingAgent(t *testing.T) *askingAgent {
	t.Helper()
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	s := newSeat(t)
	a := &askingAgent{s, filepath.Join(s.home, "my.rules")}
	const rules = `prefix_rule(pattern=["touch"], decision="prompt", justification="touching asks")
prefix_rule(pattern=["./build"], decision="prompt")
`
	if err := os.WriteFile(a.rules, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.work, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.build(t, "touch made")
	return a
}

// build writes the script build.
func (a *askingAgent) build(t *testing.T, line string) {
	t.Helper()
	if err := testenv.WriteProgram(filepath.Join(a.work, "build"), "#!/bin/sh\n"+line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// event is that about a command, in a permission mode; "" for none.
func (a *askingAgent) event(t *testing.T, command, mode string) string {
	t.Helper()
	event := map[string]any{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": a.work,
		"permission_mode": mode, "tool_input": map[string]string{"command": command}}
	if mode == "" {
		delete(event, "permission_mode")
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ask returns what the hook answers about a command, and the command that runs when the person approves.
func (a *askingAgent) ask(t *testing.T, command, mode string) (answer, rewritten string) {
	t.Helper()
	hook := a.command(t, "sallyport", "hook", "claude", "--rules", a.rules, "-e", "A=b")
	hook.Stdin = strings.NewReader(a.event(t, command, mode))
	out, err := hook.Output()
	if err != nil || !strings.Contains(string(out), `"permissionDecision":"ask"`) {
		t.Fatalf("%v, %s", err, out)
	}
	return string(out), commandIn(t, out)
}

// run runs a command as the agent does.
func (a *askingAgent) run(t *testing.T, dir, command string) (code int, out string) {
	t.Helper()
	shell := a.command(t, "sh", "-c", command)
	shell.Dir = dir
	text, err := shell.CombinedOutput()
	if shell.ProcessState == nil {
		t.Fatal(err)
	}
	return testenv.Code(shell.ProcessState), string(text)
}

// made removes the file that commands make, and reports whether there was one.
func (a *askingAgent) made(dir string) bool { return os.Remove(filepath.Join(dir, "made")) == nil }

// TestApprovedOnce: what a person has approved in the agent runs once, as it was shown.
func TestApprovedOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newAskingAgent(t)
	old := func(id string) {
		at := time.Now().Add(-11 * time.Minute)
		if err := os.Chtimes(filepath.Join(a.home, "sallyport", "approved", id), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, command string
		change        func(command, id string) string // nil leaves the command
		sub           bool                            // it runs in another directory
		code          int
	}{
		{"as it was asked about", "touch made", nil, false, 0},
		{"a script", "./build", nil, false, 0},
		{"a contained one", "sallyport run --rules RULES -e A=b -- touch made", nil, false, 0},
		{"another command", "touch made", func(c, _ string) string {
			return strings.Replace(c, "touch made", "touch made other", 1)
		}, false, 123},
		{"more access", "touch made", func(c, _ string) string {
			return strings.Replace(c, " -c ", " --net host -c ", 1)
		}, false, 123},
		{"no sandbox", "touch made", func(c, _ string) string {
			return strings.Replace(c, " -c ", " -s full-access -c ", 1)
		}, false, 123},
		{"another variable", "touch made", func(c, _ string) string {
			return strings.Replace(c, "A=b", "A=c", 1)
		}, false, 123},
		{"another directory", "touch made", nil, true, 123},
		{"a script that changed", "./build", func(c, _ string) string {
			a.build(t, "touch made other")
			return c
		}, false, 123},
		{"an ID that was made up", "touch made", func(c, id string) string {
			return strings.Replace(c, id, strings.Repeat("A", len(id)), 1)
		}, false, 123},
		{"an ID that is a path", "touch made", func(c, id string) string {
			return strings.Replace(c, id, "../approved/"+id, 1)
		}, false, 123},
		{"too late", "touch made", func(c, id string) string { old(id); return c }, false, 123},
		{"a session", "touch made", func(c, _ string) string {
			return strings.Replace(c, " -c ", " --detach -c ", 1)
		}, false, 125},
	} {
		t.Run(test.name, func(t *testing.T) {
			a.build(t, "touch made")
			answer, command := a.ask(t, strings.ReplaceAll(test.command, "RULES", a.rules), "default")
			id := markOf(t, command)
			for _, shown := range []string{"variable: A=b", "in " + a.work, "may this command run?"} {
				if !strings.Contains(answer, shown) {
					t.Errorf("%q is not shown: %s", shown, answer)
				}
			}
			dir := a.work
			if test.sub {
				dir = filepath.Join(a.work, "sub")
			}
			if test.change != nil {
				command = test.change(command, id)
			}
			code, out := a.run(t, dir, command)
			if made := a.made(dir); code != test.code || made != (code == 0) {
				t.Errorf("%s: exit code %d, %q, made %v", command, code, out, made)
			}
			if test.code != 0 {
				return
			}
			code, out = a.run(t, dir, command)
			if made := a.made(dir); code != 123 || made || !strings.Contains(out, "it was used") {
				t.Errorf("again: exit code %d, %q, made %v", code, out, made)
			}
		})
	}
}

// markOf returns the ID in a command that a person may approve.
func markOf(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	i := slices.Index(words, "--approved")
	if i < 0 {
		t.Fatalf("no ID in %s", command)
	}
	return words[i+1]
}

// TestApprovedTogether: of two runs at a time one has the answer.
func TestApprovedTogether(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newAskingAgent(t)
	_, command := a.ask(t, "touch made; echo x >>count", "default")
	var all []*exec.Cmd
	for range 4 {
		c := a.command(t, "sh", "-c", command)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	codes := map[int]int{}
	for _, c := range all {
		_ = c.Wait() // the code says it
		codes[testenv.Code(c.ProcessState)]++
	}
	count, _ := os.ReadFile(filepath.Join(a.work, "count"))
	if codes[0] != 1 || codes[123] != 3 || string(count) != "x\n" {
		t.Errorf("exit codes %v, %q", codes, count)
	}
}

// TestApprovedNot: an answer does not count where the agent may ask no one, or a part is not shown.
func TestApprovedNot(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newAskingAgent(t)
	long := "touch made # " + strings.Repeat("x", 20_000)
	for name, test := range map[string]struct{ command, mode, why string }{
		"auto":           {"touch made", "auto", "may ask no one"},
		"bypass":         {"touch made", "bypassPermissions", "may ask no one"},
		"an unknown one": {"touch made", "new", "may ask no one"},
		"none":           {"touch made", "", "may ask no one"},
		"a long one":     {long, "default", "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, command := a.ask(t, test.command, test.mode)
			if strings.Contains(command, "--approved") || !strings.Contains(answer, test.why) {
				t.Errorf("%s", answer)
			}
			code, out := a.run(t, a.work, command)
			if made := a.made(a.work); code != 122 || made {
				t.Errorf("exit code %d, %q, made %v", code, out, made)
			}
		})
	}
	if left, err := os.ReadDir(filepath.Join(a.home, "sallyport", "approved")); err == nil && len(left) > 0 {
		t.Errorf("%d answers are written down", len(left))
	}
}

// TestApprovedByCommand: a command in the sandbox asks the hook itself, and the model writes the flag:
// neither has an answer that counts.
func TestApprovedByCommand(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newAskingAgent(t)
	if err := os.WriteFile(filepath.Join(a.work, "event"), []byte(a.event(t, "touch made", "default")),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, known := a.ask(t, "touch made", "default") // of an answer that is open, as a transcript shows it
	for _, level := range []string{"native", "bwrap", "landlock"} {
		for _, state := range []string{"", "XDG_STATE_HOME=$PWD/state ", "XDG_STATE_HOME= HOME=$PWD "} {
			t.Run(level+" "+state, func(t *testing.T) {
				inner := state + "sallyport hook claude --rules " + a.rules + " -e A=b <event"
				run := a.command(t, "sallyport", "run", "--level", level, "--rw", a.home, "--tmp", "host",
					"-c", inner) // the tests' program is in /tmp
				out, err := run.Output()
				if run.ProcessState != nil && testenv.Code(run.ProcessState) == 121 {
					return // there is no sandbox of this level here
				}
				if err != nil || !strings.Contains(string(out), "updatedInput") {
					t.Fatalf("%v: %s", err, out)
				}
				command := commandIn(t, out)
				if strings.Contains(command, "--approved") {
					if code, out := a.run(t, a.work, command); code == 0 || a.made(a.work) {
						t.Errorf("%s: %q", command, out)
					}
				}
				if left, err := os.ReadDir(filepath.Join(a.home, "sallyport", "approved")); err != nil ||
					len(left) != 1 {
					t.Errorf("%d answers are written down, %v", len(left), err)
				}
			})
		}
	}
	for name, command := range map[string]string{
		"what a person has not answered": known,
		"another command":                strings.Replace(known, "touch made", "touch made other", 1),
		"with a variable":                "X=y " + known,
	} {
		// all that the model sends passes the hook
		_, again := a.ask(t, command, "auto")
		if code, out := a.run(t, a.work, again); code == 0 || a.made(a.work) {
			t.Errorf("%s: %s: %q", name, again, out)
		}
	}
	if code, out := a.run(t, a.work, known); code != 0 || !a.made(a.work) {
		t.Errorf("the person's answer is gone: exit code %d, %q", code, out)
	}
}
