// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/internal/agents/hooks"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// agentOf returns the agent with a name; nil for none.
func agentOf(name string) *hooks.Agent {
	for _, a := range hooks.Agents() {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// aHook returns an Env for a hook called by a name, which reads an event.
func aHook(t *testing.T, dir, name, event string) (env *Env, said func() (stdout, stderr string)) {
	t.Helper()
	files := t.TempDir()
	in := filepath.Join(files, "event")
	if err := os.WriteFile(in, []byte(event), 0o600); err != nil {
		t.Fatal(err)
	}
	var opened [3]*os.File
	for i, name := range []string{"event", "stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(files, name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		opened[i] = f
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	vars := append(testenv.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=")
	env = &Env{Name: name, Env: args.Env{Stdin: opened[0], Stdout: opened[1], Stderr: opened[2],
		Environ: vars, Dir: dir}}
	return env, func() (string, string) {
		out, err := os.ReadFile(opened[1].Name())
		errs, also := os.ReadFile(opened[2].Name())
		if err != nil || also != nil {
			t.Fatal(err, also)
		}
		return string(out), string(errs)
	}
}

func anEvent(t *testing.T, command, dir string) string {
	t.Helper()
	return string(agentOf("gemini").Event(command, dir))
}

// rewritten returns the command of an answer to gemini; empty for none.
func rewritten(t *testing.T, answer string) string {
	t.Helper()
	var a struct {
		HookSpecificOutput struct {
			ToolInput struct {
				Command string `json:"command"`
			} `json:"tool_input"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return a.HookSpecificOutput.ToolInput.Command
}

// TestHookName: the first word is what the hook was called by, which means the same in the directory of the
// event.
func TestHookName(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"": "sallyport", "sallyport": "sallyport", "guard": "guard", "/usr/bin/guard": "/usr/bin/guard",
		"bin/guard": dir + "/bin/guard", "./guard": dir + "/guard", "/it's/a": `'/it'\''s/a'`,
	} {
		env, said := aHook(t, dir, name, anEvent(t, "ls; ls", t.TempDir()))
		code := Main([]string{"hook", "gemini", "-q", "--mode=contain", "--timeout", "5s"}, env)
		out, errs := said()
		got := rewritten(t, out)
		if code != 0 || errs != "" || got != want+" run -q --timeout 5s -c 'ls; ls'" {
			t.Errorf("%q: exit code %d, %q, %q", name, code, got, errs)
		}
		env, said = aHook(t, dir, name, anEvent(t, rewritten(t, out), t.TempDir()))
		code = Main([]string{"hook", "gemini", "-q", "--timeout", "5s"}, env)
		if out, errs := said(); code != 0 || out != `{"decision":"allow"}`+"\n" {
			t.Errorf("%q: its own command: exit code %d, %q, %q", name, code, out, errs)
		}
	}
}

// TestHookContained: a program that commands can put in the place of sallyport is not it, nor is any other
// program of that name.
func TestHookContained(t *testing.T) {
	ws, out := t.TempDir(), t.TempDir()
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(ws, "sallyport"), filepath.Join(linked, "sallyport")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{ws, out} {
		if err := testenv.WriteProgram(filepath.Join(dir, "sallyport"), "#!/bin/sh\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		command, path string
		stays         bool
	}{
		{"sallyport run -- true", out, true},
		{"sallyport run -- true", ws + ":" + out, false},
		{"sallyport run -- true", ":" + out, false},
		{"sallyport run -- true", linked + ":" + out, false},
		{out + "/sallyport run -- true", out, false},
		{"./sallyport run -- true", out, false},
		{"guard run -- true", out, true},
		{"sallyport run -s full-access -- true", out, false},
		{"sallyport run --rw / -- true", out, false},
		{"sallyport run --no-such -- true", out, false},
		{"sallyport run --help", out, false},
		{"sallyport run", out, false},
		{"sallyport run -C / -- true", out, false},
		{"sallyport run -- true; sallyport run -- true", out, false},
	} {
		env, said := aHook(t, ws, "guard", anEvent(t, test.command, ws))
		env.Environ = append(env.Environ, "PATH="+test.path)
		code := Main([]string{"hook", "gemini", "--tmp", "private"}, env)
		out, errs := said()
		if stays := out == `{"decision":"allow"}`+"\n"; code != 0 || stays != test.stays {
			t.Errorf("%q with PATH=%s: exit code %d, %q, %q", test.command, test.path, code, out, errs)
		}
	}
}

// TestHookFails: every failure has exit code 2, one line on standard error, and nothing on standard output.
func TestHookFails(t *testing.T) {
	for name, event := range map[string]string{
		"nothing": "", "no JSON": "{", "no object": "[]", "no event": `{"tool_name":"x"}`,
		"too large":      `{"hook_event_name":"Stop","x":"` + strings.Repeat("a", hooks.MaxEvent) + `"}`,
		"an empty one":   anEvent(t, "", t.TempDir()),
		"no directory":   anEvent(t, "ls", "/no/such\nplace"),
		"the whole disk": anEvent(t, "ls", "/"),
	} {
		env, said := aHook(t, t.TempDir(), "sallyport", event)
		code := Main([]string{"hook", "gemini"}, env)
		if out, errs := said(); code != 2 || out != "" || strings.Count(errs, "\n") != 1 || len(errs) < 20 ||
			strings.Contains(errs, "bytes") != (name == "too large") {
			t.Errorf("%s: exit code %d, %q, %.200q", name, code, out, errs)
		}
	}
	env, said := aHook(t, t.TempDir(), "sallyport", anEvent(t, "ls", t.TempDir()))
	env.Stdin = nil
	code := Main([]string{"hook", "gemini"}, env)
	if out, errs := said(); code != 2 || out != "" || errs == "" {
		t.Errorf("no input: exit code %d, %q, %q", code, out, errs)
	}
	env, said = aHook(t, t.TempDir(), "sallyport", anEvent(t, "ls", t.TempDir()))
	env.Stdout = env.Stdin // which cannot be written
	_ = env.Stdout.Close()
	code = Main([]string{"hook", "gemini"}, env)
	if _, errs := said(); code != 2 || strings.Count(errs, "\n") != 1 {
		t.Errorf("no output: exit code %d, %q", code, errs)
	}
	big := `{"hook_event_name":"Stop","x":"` + strings.Repeat("a", hooks.MaxEvent-40) + `"}`
	env, said = aHook(t, t.TempDir(), "sallyport", big)
	code = Main([]string{"hook", "gemini"}, env)
	if out, errs := said(); code != 0 || out != "" || errs != "" {
		t.Errorf("a large one: exit code %d, %q, %q", code, out, errs)
	}
}

// TestHookTime: what takes too long fails, and so does a panic.
func TestHookTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, end := time.Now(), make(chan bool)
		deadline := start.Add(hookTime)
		_, err := within(deadline, "too late", func() ([]byte, error) { <-end; return nil, nil })
		if err == nil || time.Since(start) != hookTime || !strings.Contains(err.Error(), "too late (15s)") {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		close(end)
		if _, err = within(start.Add(2*hookTime), "", func() ([]byte, error) {
			panic("no\nway")
		}); err == nil ||
			!strings.Contains(err.Error(), `no\nway`) {
			t.Errorf("a panic: %v", err)
		}
		out, err := within(start.Add(2*hookTime), "", func() ([]byte, error) { return []byte("x"), io.EOF })
		if !errors.Is(err, io.EOF) || string(out) != "x" {
			t.Errorf("%s, %v", out, err)
		}
	})
}

// TestHookFlags: every flag of run is one of a hook, unless it is about one command or another machine.
func TestHookFlags(t *testing.T) {
	flags := answerFlags(new(options))
	for _, f := range new(args.Options).Flags() {
		if (syntax.FindLong(flags, f.Long) == nil) != slices.Contains(notOfHooks, f.Long) {
			t.Errorf("%s: among the flags of a hook %v", f.Name(), syntax.FindLong(flags, f.Long) != nil)
		}
	}
	for words, want := range map[string]string{
		"":                                 "",
		"--mode judge":                     "",
		"--mode=judge -q":                  "-q",
		"-s read-only --mode judge --rw x": "-s read-only --rw x",
		"--deny --mode --mode judge":       "--deny --mode",
		"-qs read-only --tmp=host":         "-qs read-only --tmp=host",
		"-qs read-only -q --mode judge":    "-qs read-only -q",
		"-e --mode":                        "-e --mode",
		"-t=false --":                      "-t=false",
	} {
		o := new(options)
		o.given = strings.Fields(words)
		if got := strings.Join(runFlagsOf(o), " "); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// FuzzHook: whatever the event, there is an answer with code 0, or one line and code 2.
func FuzzHook(f *testing.F) {
	dir := f.TempDir()
	for _, a := range hooks.Agents() {
		f.Add(a.Name, string(a.Event("git status && ls", dir)))
	}
	f.Add("claude", string(agentOf("claude").Event("sallyport run -c ls", dir)))
	f.Fuzz(func(t *testing.T, name, event string) {
		if agentOf(name) == nil {
			return
		}
		env, said := aHook(t, dir, "sallyport", event)
		code := Main([]string{"hook", name}, env)
		out, errs := said()
		switch {
		case code == 0 && errs == "" && (out == "" || json.Valid([]byte(out))):
		case code == 2 && out == "" && strings.Count(errs, "\n") == 1:
		default:
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, errs)
		}
	})
}

// TestShellWords: a single word is a whole command, and everything else is for the shell.
func TestShellWords(t *testing.T) {
	for _, test := range []struct {
		name  string
		words []string
		want  string
	}{
		{"sallyport-sh", nil, `["bash"]`},
		{"sallyport-sh", []string{"echo 'a  b' && ls"}, `["bash" "-c" "echo 'a  b' && ls"]`},
		{"sallyport-sh", []string{""}, `["bash" "-c" ""]`},
		{"sallyport-sh", []string{"-c", "echo 'a  b'"}, `["bash" "-c" "echo 'a  b'"]`},
		{"sallyport-sh", []string{"-lc", "x", "y"}, `["bash" "-lc" "x" "y"]`},
		{"sallyport-sh", []string{"-l"}, `["bash" "-l"]`},
		{"sallyport-sh", []string{"+e"}, `["bash" "+e"]`},
		{"sallyport-sh", []string{"file", "x"}, `["bash" "file" "x"]`},
		{"-sallyport-sh", nil, `["bash" "-l"]`},
	} {
		if got := fmt.Sprintf("%q", shellWords("bash", test.name, test.words)); got != test.want {
			t.Errorf("%s %q: %s, want %s", test.name, test.words, got, test.want)
		}
	}
	for name, want := range map[string]bool{"sallyport-sh": true, "/usr/bin/sallyport-sh": true,
		"-sallyport-sh": true, "sallyport-sh.exe": true, "sallyport": false, "": false, "sh": false} {
		if got := (&Env{Name: name}).isShell(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHookUsage: words that are not valid block, too, and those of doctor do not.
func TestHookUsage(t *testing.T) {
	for words, want := range map[string]int{
		"": 2, "nobody": 2, "claude ls": 2, "claude --no-such": 2, "--no-such claude": 2,
		"claude --mode x": 2,
		"claude --net x":  2, "claude --remote ws://x": 2, "doctor --no-such": explain.CodeFailed,
		"claude -h": 0,
	} {
		env, said := aHook(t, t.TempDir(), "sallyport", anEvent(t, "ls", t.TempDir()))
		code := Main(append([]string{"hook"}, strings.Fields(words)...), env)
		if _, errs := said(); code != want || (code != 0) != (strings.Count(errs, "\n") == 1) {
			t.Errorf("%q: exit code %d, want %d: %q", words, code, want, errs)
		}
	}
}

// TestHookDirectory: a directory that the model names is no workspace that the user has not opened, whatever
// links lead there.
func TestHookDirectory(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(root+"/sub", 0o755), os.Symlink(home, root+"/way")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		agent, event string
		denied       bool
	}{
		{"gemini", `"cwd":"ROOT","tool_input":{"command":"ls","dir_path":"sub"}`, false},
		{"gemini", `"cwd":"ROOT","tool_input":{"command":"ls","dir_path":"HOME"}`, true},
		{"gemini", `"cwd":"ROOT","tool_input":{"command":"ls","dir_path":"way"}`, true},
		{"gemini", `"cwd":"ROOT","tool_input":{"command":"ls","dir_path":"sub/../.."}`, true},
		{"cursor", `"cwd":"ROOT","tool_input":{"command":"ls","working_directory":"HOME"}`, true},
		{"cursor", `"cwd":"HOME","workspace_roots":["ROOT"],"tool_input":{"command":"ls"}`, true},
		{"cursor", `"cwd":"","workspace_roots":["HOME","ROOT"],"tool_input":{"command":"ls",` +
			`"working_directory":"ROOT/sub"}`, false},
	} {
		names := map[string]string{"gemini": `"hook_event_name":"BeforeTool","tool_name":"run_shell_command",`,
			"cursor": `"hook_event_name":"preToolUse","tool_name":"Shell",`}
		event := "{" + names[test.agent] + strings.NewReplacer("ROOT", root, "HOME", home).Replace(test.event) + "}"
		env, said := aHook(t, root, "sallyport", event)
		code := Main([]string{"hook", test.agent}, env)
		out, errs := said()
		if code != 0 || errs != "" || strings.Contains(out, `"deny"`) != test.denied {
			t.Errorf("%s: exit code %d, %q, %q", event, code, out, errs)
		}
	}
}

// TestHookPatch: a patch is judged, and not applied.
func TestHookPatch(t *testing.T) {
	dir := t.TempDir()
	call := `apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\nEOF`
	env, said := aHook(t, dir, "sallyport", `{"hook_event_name":"BeforeTool","tool_name":"run_shell_command",`+
		`"cwd":"`+dir+`","tool_input":{"command":"`+call+`"}}`)
	code := Main([]string{"hook", "gemini"}, env)
	if out, errs := said(); code != 0 || !strings.HasPrefix(rewritten(t, out), "sallyport run -c 'apply_patch ") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	if _, err := os.Lstat(dir + "/made"); err == nil {
		t.Error("it was applied")
	}
}
