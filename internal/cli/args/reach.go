// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A settingsError reports settings that the environment names and that commands could have
// written, because they are in the workspace or reached through a link there.
type settingsError struct {
	path, workspace string
	err             error
}

// Error returns one sentence with the path, the reason and the fix.
func (e *settingsError) Error() string {
	return "the settings in " + text.Word(e.path) + " are in the workspace " + text.Word(e.workspace) +
		", where commands can write; unset the variable that names them (XDG_CONFIG_HOME, HOME or SALLYPORT_CONFIG), or use --config FILE with a file elsewhere"
}

// Unwrap returns what is known of the path.
func (e *settingsError) Unwrap() error { return e.err }

// CheckSettings returns an error for a directory or file of settings, which the environment names,
// that commands in a workspace can change: they, or a tool of the project, could choose what later
// runs may do. It wraps a [*reach.Error]. Both paths are absolute, and neither must exist.
func CheckSettings(path, workspace string) error {
	err := reach.New(reach.Area{Workspace: workspace, HostTmp: true}).Of(path)
	if err != nil {
		err = &settingsError{path, workspace, err}
	}
	return err
}

// configFor is [dirs.Config] for runs in a workspace: settings that [CheckSettings] refuses are
// an error. Where there are none yet it returns "", so that none are read that appear later.
func configFor(env func(string) string, workspace string) (dir string, err error) {
	dir, ok := dirs.Config(env)
	if !ok {
		return "", nil
	}
	if err := CheckSettings(dir, workspace); err != nil {
		if names, rerr := os.ReadDir(dir); len(names) == 0 &&
			(rerr == nil || errors.Is(rerr, fs.ErrNotExist)) {
			return "", nil
		}
		return "", err
	}
	return dir, nil
}

// settingsFile returns an error if commands can change the file of settings that a flag or variable
// names, also by what the settings themselves open.
func (o *Options) settingsFile(env *Env, e *config.Effective) error {
	by, file := "--config", o.Config
	if file == "" {
		by, file = FileVariable, env.Variable(FileVariable)
	}
	if file == "" || o.NoConfig {
		return nil
	}
	return e.Reach().Decides(by, Absolute(file, env.Dir, env.Variable("HOME")))
}

// approverFiles returns an error if commands can change the program of the approver, or a file that its
// arguments name, also where this run asks nothing: another one would be answered by what this one
// leaves there. A name that PATH leads to is looked up where it is asked, out of reach.
func (o *Options) approverFiles(e *config.Effective, policy sandbox.Policy, dir string) error {
	in := reach.New(o.Area(e, policy, dir))
	for _, word := range o.Approver.Args {
		if !filepath.IsAbs(word) {
			continue
		}
		if err := in.Decides("hooks.approver", word); err != nil {
			return err
		}
	}
	return nil
}

// Area is what the commands of a run in dir, under a policy, can change.
func (o *Options) Area(e *config.Effective, policy sandbox.Policy, dir string) reach.Area {
	return reach.Area{Policy: policy, Workspace: dir, HostTmp: o.Cmd.Tmp == "host", Writable: e.Writable()}
}

// Site says which programs the words of a command mean that runs in dir under a policy.
func (o *Options) Site(env *Env, e *config.Effective, policy sandbox.Policy, dir string) *reach.Site {
	in := reach.New(o.Area(e, policy, dir))
	return &reach.Site{Reach: in, Dir: dir, Env: env.Environ}
}
