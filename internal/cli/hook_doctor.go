// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/agents/hooks"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// startedBy are the variables by which commands know the agent that runs them.
var startedBy = map[string]string{"CLAUDECODE": "claude", "GEMINI_CLI": "gemini", "CURSOR_AGENT": "cursor",
	"CODEX_THREAD_ID": "codex"}

func hookDoctor(ctx context.Context, env *Env, _ *options, _ []string) error {
	var b strings.Builder
	code := explain.ExitCode(explain.CodeOK)
	for _, a := range hooks.Agents() {
		state, err := env.hookOf(ctx, a)
		if err != nil {
			code, state = explain.CodeNo, text.Line(explain.OneLine(err))
		}
		fmt.Fprintf(&b, "%-8s %s\n", a.Name, state)
	}
	last := "Only an agent can show whether it obeys its hook: have it run sallyport hook doctor.\n"
	for name, agent := range startedBy {
		switch contained := env.Variable("SALLYPORT") == "1"; {
		case env.Variable(name) == "":
		case contained:
			last = agent + " ran this command in the sandbox: the rewrite takes effect.\n"
		default:
			code = explain.CodeNo
			last = agent + " ran this command outside of the sandbox: the rewrite did not take effect.\n"
		}
	}
	if err := env.print(b.String() + last); err != nil {
		return err
	}
	return code
}

// hookOf says how the hook of an agent does, which is set in a file of the project or of the user. The
// error is that of a hook that is missing or does not work.
func (e *Env) hookOf(ctx context.Context, a *hooks.Agent) (state string, err error) {
	if dir := e.Variable(a.Variable); dir != "" && !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%s is a relative path (%s); set it to an absolute one", a.Variable, dir)
	}
	home := cmp.Or(e.Variable(a.Variable), filepath.Join(e.Variable("HOME"), filepath.Dir(a.File)))
	for _, file := range []string{filepath.Join(e.Dir, a.File), filepath.Join(home, filepath.Base(a.File))} {
		var settings any
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &settings)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot read %s: %w", file, err)
		}
		if words := hookIn(settings, a.Name); words != nil {
			state, err = probeHook(ctx, a, words, e.Dir)
			if err != nil {
				return "", fmt.Errorf("the hook in %s does not work: %w", file, err)
			}
			return state + " (" + text.Line(file) + ")", nil
		}
	}
	_, err = os.Stat(home)
	if _, also := exec.LookPath(a.Name); err != nil && also != nil {
		return "agent not found", nil //nolint:nilerr // that is the answer
	}
	return "", fmt.Errorf("no hook; sallyport hook install %s adds it", a.Name)
}

// hookIn returns the words of the command in settings that calls the hook of an agent; nil for none.
func hookIn(v any, agent string) (found []string) {
	var inside []any
	switch v := v.(type) {
	case []any:
		inside = v
	case map[string]any:
		command, _ := v["command"].(string)
		words, _ := script.Words(command)
		if len(words) > 2 && words[1] == "hook" && words[2] == agent {
			return words
		}
		for _, e := range v {
			inside = append(inside, e)
		}
	}
	for _, e := range inside {
		if found == nil {
			found = hookIn(e, agent)
		}
	}
	return found
}

// probeHook asks what the hook with these words answers about a command that does nothing. Settings of a
// project may name any program: this one alone is called.
func probeHook(ctx context.Context, a *hooks.Agent, words []string, dir string) (state string, err error) {
	found, err := exec.LookPath(words[0])
	if err != nil {
		return "", err
	}
	own, _ := os.Executable() // "" is no file
	called, _ := os.Stat(found)
	this, _ := os.Stat(own)
	if !os.SameFile(called, this) {
		return "", fmt.Errorf("it calls %s, which is not this program (%s)", found, own)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*hookTime) // as an agent waits
	defer cancel()
	var said, failure bytes.Buffer
	c := exec.CommandContext(ctx, own, words[1:]...)
	c.Args[0], c.Dir, c.Stdin, c.Stdout, c.Stderr = "sallyport", dir, bytes.NewReader(a.Event("true", dir)),
		&said, &failure
	err = c.Run()
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(failure.String()))
	case strings.Contains(said.String(), "-c true"):
		return "hook contains commands", nil
	case said.Len() == 0 || strings.Contains(said.String(), "allow"):
		return "hook judges commands, and contains none (--mode judge)", nil
	}
	return "", fmt.Errorf("it does not allow the command true: %s", strings.TrimSpace(said.String()))
}
