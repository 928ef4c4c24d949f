// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// allowFlags are the flags of run whose keys config allow writes.
func allowFlags(o *options) []syntax.Flag {
	const group = "For config allow"
	var flags []syntax.Flag
	for _, f := range o.run.Flags() {
		switch f.Long {
		case "net":
			words, set, net := []string{config.NetNone, config.NetHost}, f.Set, ""
			f.Words, f.Help = words, "none or host"
			f.Set = func(v string) error {
				if err := syntax.SetChosen(&net, words)(v); err != nil {
					return err
				}
				return set(v)
			}
		case "rw", "ro", "grant", "allow":
		case "allow-host":
			f.Help = "hosts: example.com, *.example.com:443 (repeatable)"
		default:
			continue
		}
		f.Group = group
		flags = append(flags, f)
	}
	return append(flags, syntax.Flag{Long: "user", Set: syntax.SetOn(&o.user), Group: group,
		Help: "allow it in all projects, in your own config.toml,\nwithout asking"})
}

// allow adds to the settings of the project in dir, or to those of the user.
func allow(ctx context.Context, env *Env, o *options, dir string) error {
	settings, err := o.wishes(env.Variable("HOME"), dir)
	switch {
	case err != nil:
		return err
	case len(settings) == 0:
		return explain.NewError("name what to allow, as for run: sallyport config allow --rw PATH; see sallyport help config")
	case seccomp.Complete(o.run.Cmd.Allow) != nil: // every run would be refused
		return args.Openings(seccomp.Complete(o.run.Cmd.Allow))
	case o.noConfig:
		return explain.NewError("--no-config reads no settings that could be changed; leave it out")
	case o.user:
		return cmp.Or(allowUser(env, o, dir, settings), noteAllowed(env, settings, ""))
	}
	// The terminal gets its modes back before a signal ends this process.
	ctx, stop := tty.UntilSignal(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	yes, err := trust.SetInProject(ctx, dir, settings, config.Check(config.Project))
	switch {
	case errors.Is(err, tty.ErrNoTerminal):
		return explain.ErrorWith(explain.CodeRefused, sallyport.EndRefused, "not allowed: "+
			explain.OneLine(err),
			"run this on a terminal, or add --user to allow it for you in every project")
	case yes && err == nil:
		return noteAllowed(env, settings, dir)
	case yes || err != nil && ctx.Err() == nil:
		return err
	}
	return explain.ErrorWith(explain.CodeRefused, sallyport.EndRefused,
		"not allowed: nothing was changed", "")
}

// proposed returns what config allow with flags would write to the settings of a project.
func (e *Env) proposed(flags []string) (*trust.Proposal, []trust.Setting, error) {
	o := new(options)
	if _, err := syntax.ParseFlags(configFlags(o), flags); err != nil {
		return nil, nil, err
	}
	o.run.Dir = o.dir
	dir, err := o.run.Directory(&e.Env)
	if err != nil {
		return nil, nil, err
	}
	settings, err := o.wishes(e.Variable("HOME"), dir)
	if err != nil {
		return nil, nil, err
	}
	p, err := trust.Propose(dir, settings, config.Check(config.Project))
	return p, settings, err
}

// noteAllowed keeps what was added to the settings of a project, or for "" of the user.
func noteAllowed(env *Env, settings []trust.Setting, project string) error {
	added := make([]string, len(settings))
	for i, s := range settings {
		added[i] = strings.Join(s.Path, ".") + "=" + s.Value
	}
	return env.note("rules", map[string]any{"action": "allowed", "dir": project, "settings": added})
}

// keepHosts adds hosts that a person wants open in this project from now on to its settings, after the
// program that was asked about has ended: while it runs, settings must not change.
func (r *report) keepHosts() {
	for _, host := range r.kept {
		flags := []string{"--allow-host", host}
		setting := trust.Setting{Path: []string{"project", "hosts"}, Value: host, List: true}
		if name := grants.RegistryOf(host); name != "" {
			flags = []string{"--grant", name}
			setting = trust.Setting{Path: []string{"project", "grants"}, Value: name, List: true}
		}
		if err := trust.Keep(r.dir, []trust.Setting{setting}, config.Check(config.Project)); err != nil {
			words := append([]string{"sallyport", "config", "allow"}, flags...)
			r.note(text.Line(host) + " is not kept for this project: " + explain.OneLine(err) + "; run " +
				explain.ShellWords(words))
		}
	}
}

// allowUser adds to the file of the user.
func allowUser(env *Env, o *options, dir string, settings []trust.Setting) error {
	name := args.Absolute(cmp.Or(o.config, env.Variable(args.FileVariable)), env.Dir, env.Variable("HOME"))
	if o.config == "" && env.Variable(args.FileVariable) == "" {
		user, ok := dirs.Config(env.Variable)
		if !ok {
			return explain.NewError("HOME names no directory for your settings; use --config FILE")
		}
		name = filepath.Join(user, "config.toml")
	}
	if o.config == "" {
		if err := args.CheckSettings(name, dir); err != nil {
			return err
		}
	}
	return trust.SetForUser(name, settings, config.Check(config.User))
}

// wishes returns what the flags ask for, as it stands in the file.
func (o *options) wishes(home, dir string) ([]trust.Setting, error) {
	var settings []trust.Setting
	for _, k := range config.Keys() {
		for _, s := range o.run.Given[k.Name] {
			text := s.Text
			if k.Name == "read" || k.Name == "write" {
				var err error
				if text, err = o.place(s, home, dir); err != nil {
					return nil, err
				}
			}
			path := strings.Split(k.Name, ".")
			if !o.user {
				path = []string{"project", k.Project}
			}
			settings = append(settings, trust.Setting{Path: path, Value: text, List: k.IsList()})
		}
	}
	return settings, nil
}

// place returns a path as it stands in the file: below "~" if it was given so, relative in the
// workspace of a project, else absolute, without links that a command could change.
func (o *options) place(s config.Setting, home, dir string) (string, error) {
	if strings.HasPrefix(s.Text, ":") {
		return s.Text, nil
	}
	name := args.Absolute(s.Text, dir, home)
	if err := args.CheckPath(s.Origin.File, name, false); err != nil {
		return "", err
	}
	real, root := hostfacts.RealPath(name), hostfacts.RealPath(dir)
	rest, inside := strings.CutPrefix(real, strings.TrimSuffix(root, "/")+"/")
	switch {
	case config.Expand(s.Text, home) != s.Text:
		return s.Text, nil
	case real == root && !o.user:
		return ":workspace", nil
	case !inside || o.user:
		return real, nil
	case rest[0] == '~' || rest[0] == ':':
		rest = "./" + rest
	}
	return rest, nil
}
