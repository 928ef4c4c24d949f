// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/agents/hooks"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A hookReport is what is known of the hooks of this user. The member names of its JSON form stay.
type hookReport struct {
	OK bool `json:"ok"`
	// Contained says that this process runs in the sandbox, by its environment, and Within names the agent
	// that has started it; empty for none.
	Contained bool        `json:"contained"`
	Within    string      `json:"within,omitempty"`
	Agents    []hookState `json:"agents"`
}

// A hookState is about one agent.
type hookState struct {
	Agent   string `json:"agent"`
	Found   bool   `json:"found"` // the agent
	File    string `json:"file,omitempty"`
	Command string `json:"command,omitempty"`
	State   string `json:"state"` // missing, works, judges or fails
	Detail  string `json:"detail,omitempty"`
}

// startedBy are the variables by which commands of agents know who runs them.
var startedBy = map[string]string{"CLAUDECODE": "claude", "GEMINI_CLI": "gemini", "CURSOR_AGENT": "cursor",
	"CODEX_THREAD_ID": "codex"}

func hookDoctor(ctx context.Context, env *Env, o *options, _ []string) error {
	r := hookReport{OK: true, Contained: env.Variable("SALLYPORT") == "1"}
	for name, agent := range startedBy {
		if env.Variable(name) != "" {
			r.Within = agent
		}
	}
	for _, name := range hooks.Names() {
		s := env.hookOf(ctx, hooks.Find(name))
		r.Agents = append(r.Agents, s)
		if s.Found && s.State != "works" && s.State != "judges" || s.State == "fails" {
			r.OK = false
		}
	}
	r.OK = r.OK && (r.Within == "" || r.Contained)
	return env.answer(&r, o.json, r.OK)
}

// hookOf looks for the hook of an agent, in the files of the user and of the project, and calls it.
func (e *Env) hookOf(ctx context.Context, a *hooks.Agent) hookState {
	s := hookState{Agent: a.Name, State: "missing"}
	home := filepath.Join(e.Variable("HOME"), filepath.Dir(a.File))
	home = cmp.Or(e.Variable(a.Variable), home)
	_, err := os.Stat(home)
	_, also := exec.LookPath(a.Name)
	s.Found = err == nil || also == nil
	for _, file := range []string{filepath.Join(e.Dir, a.File), filepath.Join(home, filepath.Base(a.File))} {
		data, err := os.ReadFile(file)
		var settings any
		if err == nil {
			err = json.Unmarshal(data, &settings)
		}
		if err != nil && !os.IsNotExist(err) {
			s.File, s.State, s.Detail = file, "fails", "it cannot be read: "+explain.OneLine(err)
		}
		if words := hookCommandIn(settings, a.Name); words != nil {
			s.File, s.Command = file, explain.ShellWords(words)
			s.State, s.Detail = probeHook(ctx, a, words, e.Dir)
			break
		}
	}
	return s
}

// hookCommandIn returns the words of the command in settings that calls the hook of an agent; nil for none.
func hookCommandIn(v any, agent string) (found []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if found == nil {
				found = hookCommandIn(e, agent)
			}
		}
	case map[string]any:
		for name, e := range v {
			command, _ := e.(string)
			words, _ := script.Words(command)
			if name == "command" && len(words) > 2 && words[1] == "hook" && words[2] == agent {
				return words
			}
			if found == nil {
				found = hookCommandIn(e, agent)
			}
		}
	}
	return found
}

// probeHook asks what the hook with these words answers about a command that does nothing. Settings of a
// project may name any program: it is looked for, and this one is called in its place.
func probeHook(ctx context.Context, a *hooks.Agent, words []string, dir string) (state, detail string) {
	found, err := exec.LookPath(words[0])
	if err != nil {
		return "fails", explain.OneLine(err)
	}
	own, _ := os.Executable() // "" is no file
	called, _ := os.Stat(found)
	this, _ := os.Stat(own)
	if !os.SameFile(called, this) {
		return "fails", "it calls " + found + ", which is not this program (" + own + ")"
	}
	ctx, cancel := context.WithTimeout(ctx, eventTime)
	defer cancel()
	var said, failure bytes.Buffer
	c := exec.CommandContext(ctx, own, words[1:]...)
	c.Args[0], c.Dir, c.Stdin, c.Stdout, c.Stderr = "sallyport", dir, bytes.NewReader(a.Event("true", dir)),
		&said, &failure
	switch err := c.Run(); {
	case err != nil:
		return "fails", explain.OneLine(err) + ": " + text.Line(strings.TrimSpace(failure.String()))
	case strings.Contains(said.String(), " run ") && strings.Contains(said.String(), "-c true"):
		return "works", ""
	case said.Len() == 0 || strings.Contains(said.String(), "allow"):
		return "judges", "commands that are allowed are not contained (--mode judge)"
	}
	return "fails", "it does not allow the command true: " + text.Line(strings.TrimSpace(said.String()))
}

// String returns the report for people.
func (r *hookReport) String() string {
	var b strings.Builder
	for _, s := range r.Agents {
		switch {
		case s.State == "missing" && !s.Found:
			fmt.Fprintf(&b, "%-8s agent not found\n", s.Agent)
			continue
		case s.State == "missing":
			fmt.Fprintf(&b, "%-8s no hook; sallyport hook install %s adds it\n", s.Agent, s.Agent)
			continue
		}
		fmt.Fprintf(&b, "%-8s hook %s (%s)\n", s.Agent, s.State, text.Line(s.File))
		if s.Detail != "" {
			fmt.Fprintf(&b, "%9s%s\n", "", text.Line(s.Detail))
		}
	}
	switch {
	case r.Within != "" && r.Contained:
		fmt.Fprintf(&b, "%s ran this command in the sandbox: the rewrite takes effect.\n", r.Within)
	case r.Within != "":
		fmt.Fprintf(&b, "%s ran this command outside of the sandbox: the rewrite did not take effect.\n", r.Within)
	default:
		b.WriteString("Whether an agent obeys its hook is seen only in the agent: have it run sallyport hook doctor.\n")
	}
	return b.String()
}
