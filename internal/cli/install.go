// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/agents/install"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const installHelp = `Write sallyport into the settings of an agent, or remove it from them.

  sallyport mcp install|uninstall AGENT [-- FLAGS OF mcp]
  sallyport hook install|uninstall AGENT [-- FLAGS OF hook]
  sallyport mcp install claude --dry-run
  sallyport hook install codex --scope project -- --mode judge

mcp install adds sallyport as an MCP server (claude, codex, cursor, vscode,
gemini), hook install as a hook that judges and contains the commands of the agent
(claude, codex, cursor, gemini). The change is shown as a diff, and made in one
step. Comments, order and layout stay; FILE.sallyport-backup keeps the file as it
was until uninstall. An agent reads its settings when it starts.

The exit code is 0 if it is done or nothing is to be done, 1 if the file is refused,
which is not changed then, and 125 for an invalid command line.
`

// An installing is what the flags of install, uninstall and setup say.
type installing struct {
	scope, name, command          string
	dryRun, uninstall, force, yes bool
}

// The scopes.
const (
	userScope    = "user"
	projectScope = "project"
)

func installFlags(o *options) []syntax.Flag {
	scopes := []string{userScope, projectScope}
	i := &o.install
	return []syntax.Flag{
		{Long: "scope", Value: "SCOPE", Words: scopes, Set: syntax.SetChosen(&i.scope, scopes),
			Help: "whose settings: user, or project for those of the\ncurrent directory (default user)"},
		{Long: "dry-run", Set: syntax.SetOn(&i.dryRun), Help: "show the change and write nothing"},
		{Long: "uninstall", Set: syntax.SetOn(&i.uninstall), Help: "remove it"},
		{Long: "name", Value: "NAME", Set: syntax.SetText(&i.name),
			Help: "name of the MCP server (default sallyport)"},
		{Long: "command", Value: "PATH", Kind: syntax.Files, Set: syntax.SetText(&i.command),
			Help: "program that the agent starts (default this one)"},
		{Long: "force", Set: syntax.SetOn(&i.force), Help: "replace a server of that name that is not ours"},
	}
}

// installVerb returns the command of "mcp install", "hook uninstall" and their like; nil if args are none.
// It comes before the flags that mcp and hook have themselves.
func installVerb(words []string) *command {
	part, known := map[string]install.Part{"mcp": install.MCP,
		"hook": install.Hook}[strings.Join(words[:min(len(words), 1)], "")]
	if len(words) < 2 || !known || words[1] != "install" && words[1] != "uninstall" {
		return nil
	}
	name := words[0] + " " + words[1]
	return &command{
		name: name, help: installHelp, words: manyNames, flags: installFlags,
		run: func(_ context.Context, env *Env, o *options, rest []string) error {
			agent, extra, err := agentAndExtra(words[2:], rest, name, part)
			if err != nil {
				return err
			}
			o.install.uninstall = o.install.uninstall || words[1] == "uninstall"
			return installPart(env, &o.install, agent, extra, part)
		},
		offer: func(before []string) (syntax.FlagKind, []candidate) { return agentNames(before, part) },
	}
}

// installWords completes the verbs of installVerb after the command that they belong to.
func installWords(before []string) (syntax.FlagKind, []candidate) {
	if len(before) > 0 {
		return syntax.Words, nil
	}
	return syntax.Words, []candidate{{"install", "write it into the settings of an agent"},
		{"uninstall", "remove it from them"}}
}

// agentNames completes the name of an agent.
func agentNames(before []string, part install.Part) (syntax.FlagKind, []candidate) {
	var all []candidate
	for _, name := range install.Agents(part) {
		all = append(all, candidate{name})
	}
	if slices.ContainsFunc(before, func(w string) bool { return slices.Contains(install.Agents(part), w) }) {
		return syntax.Words, []candidate{}
	}
	return syntax.Words, all
}

// agentAndExtra splits the words of a command line: the agent, and what stands after "--".
func agentAndExtra(all, words []string, command string, part install.Part) (agent string, extra []string,
	err error) {
	if i := slices.Index(all, "--"); i >= 0 {
		extra = all[i+1:]
		words = words[:len(words)-len(extra)]
	}
	names := install.Agents(part)
	switch {
	case len(words) == 0:
		return "", nil, explain.NewError("name the agent: sallyport %s %s", command, strings.Join(names, "|"))
	case len(words) > 1:
		return "", nil, explain.NewError("unexpected argument %s; what the agent is to add stands after --",
			syntax.QuoteFlag(words[1]))
	case part == install.Hook && words[0] == install.VSCode:
		return "", nil, explain.NewError("vscode has no contract for a hook; use sallyport mcp install " +
			"vscode")
	case !slices.Contains(names, words[0]):
		return "", nil, explain.NewError("unknown agent %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], names, "known are "+strings.Join(names, ", ")))
	}
	return words[0], extra, nil
}

// options returns what is to be installed.
func (i *installing) options(env *Env, agent string, extra []string) (*install.Options, error) {
	o := &install.Options{Agent: agent, Name: cmp.Or(i.name, install.DefaultName), Command: i.command,
		Extra: extra, Project: i.scope == projectScope, Force: i.force, Dir: env.Dir,
		Home: env.Variable("HOME"), Variable: env.Variable}
	const named = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	var err error
	switch {
	case strings.Trim(o.Name, named) != "" || len(o.Name) > 64:
		return nil, explain.NewError("--name: invalid name %s; use letters, digits, - and _",
			syntax.QuoteFlag(o.Name))
	case env.Dir == "":
		return nil, explain.NewError("the current directory no longer exists; go to another one")
	case !o.Project && !filepath.IsAbs(o.Home):
		return nil, explain.NewError("HOME names no directory for your settings; set it, or use --scope " +
			"project")
	case o.Command == "":
		if o.Command, err = os.Executable(); err != nil {
			return nil, explain.NewError("this program has no path: %v; use --command PATH",
				explain.SystemCause(err))
		}
	case strings.ContainsRune(o.Command, filepath.Separator) || o.Command[0] == '~':
		o.Command = args.Absolute(o.Command, env.Dir, o.Home)
	}
	for _, word := range append([]string{o.Command}, extra...) {
		if !utf8.ValidString(word) {
			return nil, explain.NewError("%s is not UTF-8, so that no settings can have it; use another name",
				text.Word(word))
		}
	}
	return o, nil
}

// prepare reads the files of an agent.
func (i *installing) prepare(o *install.Options, parts ...install.Part) ([]*install.Change, error) {
	changes, err := install.Prepare(o, i.uninstall, parts...)
	return changes, installError(err)
}

// installError gives an error its exit code and the flag that helps.
func installError(err error) error {
	var refused *install.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	fix := ""
	if errors.Is(err, install.ErrForeign) {
		fix = "use --name NAME or --force"
	}
	return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, refused.Error(), fix)
}

// installPart does what mcp install and hook install say.
func installPart(env *Env, i *installing, agent string, extra []string, part install.Part) error {
	o, err := i.options(env, agent, extra)
	if err != nil {
		return err
	}
	changes, err := i.prepare(o, part)
	if err != nil {
		return err
	}
	if err := i.show(env, changes); err != nil {
		return err
	}
	return i.apply(env, o, changes, part)
}

// show prints the changes.
func (i *installing) show(env *Env, changes []*install.Change) error {
	out := ""
	for _, c := range changes {
		state := " is already installed in "
		if i.uninstall {
			state = " is not installed in "
		}
		if out += c.Diff(); !c.Changes() {
			out += "sallyport" + state + text.Word(c.Path) + ".\n"
		}
	}
	return env.print(out)
}

// apply writes the changes and says what comes next.
func (i *installing) apply(env *Env, o *install.Options, changes []*install.Change,
	parts ...install.Part) error {
	if i.dryRun {
		return nil
	}
	out, written := "", false
	for _, c := range changes {
		if !c.Changes() {
			continue
		}
		if err := c.Apply(); err != nil {
			return errors.Join(env.print(out), installError(err))
		}
		written = true
		if c.New == nil {
			out += "Removed " + text.Word(c.Path) + ".\n"
		} else {
			out += "Wrote " + text.Word(c.Path) + ".\n"
		}
	}
	if written && !i.uninstall {
		out += install.NextSteps(o, parts...)
	}
	return env.print(out)
}
