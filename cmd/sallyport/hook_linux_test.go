// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestHookContains has every agent's hook answer about a command, and runs what it is rewritten to as the
// agent does: the command runs as it was, in the sandbox and in the agent's directory.
func TestHookContains(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	s := newSeat(t)
	outside := filepath.Join(filepath.Dir(s.work), "outside")
	script := "printf '%s|' \"it's\" \"$SALLYPORT\" \"$(basename \"$PWD\")\" 'a  b' $'x\\ny'\n" +
		"echo in >here; cd /; echo out 2>/dev/null >" + outside + " || echo denied"
	for agent, event := range map[string]string{
		"claude": `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":` +
			`{"command":C,"timeout":1},"cwd":D}`,
		"codex":  `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":C},"cwd":D}`,
		"cursor": `{"hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":C},"cwd":D}`,
		"gemini": `{"hook_event_name":"BeforeTool","tool_name":"run_shell_command",` +
			`"tool_input":{"command":C},"cwd":D}`,
	} {
		t.Run(agent, func(t *testing.T) {
			c, err := json.Marshal(script)
			d, also := json.Marshal(s.work)
			if err != nil || also != nil {
				t.Fatal(err, also)
			}
			hook := s.command(t, "sallyport", "hook", agent, "--tmp", "private", "--shell", "bash")
			hook.Stdin = strings.NewReader(strings.NewReplacer(":C", ":"+string(c), ":D", ":"+string(d)).
				Replace(event))
			hook.Dir = "/"
			answer, err := hook.Output()
			if err != nil {
				t.Fatal(err)
			}
			command := commandIn(t, answer)
			shell := s.command(t, "bash", "-lc", "PATH='"+s.path+"'; "+command)
			out, err := shell.CombinedOutput()
			want := "it's|1|w|a  b|x\ny|denied\n"
			if !strings.HasPrefix(string(out), want) || err == nil != strings.HasSuffix(string(out), want) {
				t.Errorf("%s: %v, %q, want %q", command, err, out, want)
			}
			if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it wrote outside: %v", err)
			}
			if err := os.Remove(filepath.Join(s.work, "here")); err != nil {
				t.Error(err)
			}
		})
	}
}

// commandIn returns the text of the member "command" of an answer.
func commandIn(t *testing.T, answer []byte) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(answer)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			t.Fatalf("no command in %s", answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		if token == "command" {
			if token, err = d.Token(); err != nil {
				t.Fatal(err)
			}
			command, _ := token.(string)
			return command
		}
	}
}

// benchProgram returns a program that was built as it is released: that of SALLYPORT_BENCH_PROGRAM, or a new
// one.
func benchProgram(b *testing.B) string {
	b.Helper()
	program := os.Getenv("SALLYPORT_BENCH_PROGRAM")
	if program == "" {
		program = filepath.Join(b.TempDir(), "sallyport")
		build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	return program
}

// BenchmarkHook guards: the whole process of a hook's decision takes at most 0.3 of the time of node -e 0.
func BenchmarkHook(b *testing.B) {
	node := testenv.NeedProgram(b, "node")
	program := benchProgram(b)
	dir, home := b.TempDir(), b.TempDir()
	event := `{"hook_event_name":"PreToolUse","tool_name":"Bash",` +
		`"tool_input":{"command":"git status && go test ./... | tail -n 5"},"cwd":"` + dir + `"}`
	process := func(event, name string, words ...string) func() error {
		return func() error {
			c := exec.Command(name, words...)
			c.Dir, c.Stdin, c.Env = dir, strings.NewReader(event), append(testenv.Environ(), "HOME="+home)
			return c.Run()
		}
	}
	for b.Loop() {
		times, err := e2e.Rounds(20, []e2e.Variant{
			{Name: "hook", Run: process(event, program, "hook", "claude")},
			{Name: "version", Run: process("", program, "version")},
			{Name: "node", Run: process("", node, "-e", "0")},
		})
		if err != nil {
			b.Fatal(err)
		}
		ratio := e2e.Ratio(times[0], times[2])
		b.ReportMetric(ratio, "of-node")
		b.ReportMetric(e2e.Ratio(times[1], times[2]), "version-of-node")
		b.ReportMetric(float64(e2e.Middle(times[0]).Microseconds())/1000, "ms")
		if ratio > 0.3 {
			b.Errorf("%.2f of the time of node, at most 0.3", ratio)
		}
	}
}
