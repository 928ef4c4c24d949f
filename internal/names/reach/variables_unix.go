// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
)

// variable returns why a variable has programs in dir run what is in reach, or code that is its
// value; nil if it does not.
func (r *Reach) variable(name, value, dir string, env []string) error {
	commands, paths, code := script.Carries(name, value)
	if code {
		return fmt.Errorf("the variable %s makes programs run code", name)
	}
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if err := r.Of(p); err != nil {
			return fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	for _, c := range commands {
		err := r.Command(c.Args, dir, env)
		if missing(err, c.Args[0]) {
			continue // an editor that is not installed
		}
		if err != nil {
			return fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	return nil
}

// missing reports whether an error says that PATH leads to no program of a name.
func missing(err error, name string) bool {
	var e *executor.StartError
	return errors.As(err, &e) && e.NotFound && !strings.Contains(name, "/")
}

// Environ returns an environment for a program that runs in dir outside of the sandbox: without the
// variables that have programs run what is in reach or code that is their value, and with
// [Reach.Path] as PATH, so that what the program itself starts by a name is none that was planted.
// Python gets PYTHONNOUSERSITE where it would load modules from a HOME in reach. Dropped are the
// names of the variables that are left out.
func (r *Reach) Environ(dir string, env []string) (kept, dropped []string) {
	env = slices.Clone(env)
	for i, v := range env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + r.Path(list)
		}
	}
	// An empty PATH would be the current directory.
	env = slices.DeleteFunc(env, func(v string) bool { return v == "PATH=" })
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if programs.RunsCode(name) && r.variable(name, value, dir, env) != nil {
			dropped = append(dropped, name)
			continue
		}
		kept = append(kept, v)
	}
	if home, ok := hostfacts.Value(env, "HOME"); ok && r.Of(filepath.Join(home, ".local/lib")) != nil {
		kept = append(kept, "PYTHONNOUSERSITE=1")
	}
	return kept, dropped
}

// A Site is where commands begin: it says which programs their words mean there.
type Site struct {
	Reach *Reach
	Dir   string
	Env   []string
	Login bool // the command is a script for a login shell
}

// Named returns why a command may not be the program that its first word names: PATH, or the word
// itself, leads to one that commands can change, it is not found, or a variable of the environment
// makes another one of it. A name that PATH does not have runs nothing, if commands cannot add it.
func (s *Site) Named(args []string) error {
	at, err := hostfacts.Lookup(args[0], s.Dir, s.Env)
	if list, _ := hostfacts.Value(s.Env, "PATH"); missing(err, args[0]) && list != "" &&
		s.Reach.Path(list) == list {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := s.Reach.chain(at, s.Env)
	if err != nil {
		return err
	}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(names, func(program string) bool { return programs.Alters(name, program) }) {
			continue
		}
		if err := s.Reach.variable(name, value, s.Dir, s.Env); err != nil {
			return err
		}
	}
	return nil
}

// Outside is [Site.Named] for a command that is to run without a sandbox, with the environment of
// [Reach.Environ]: also the scripts that are its arguments must be out of reach, and what its
// program reads from HOME at each start.
func (s *Site) Outside(args []string) error {
	if err := s.Named(args); err != nil {
		return err
	}
	if err := s.Reach.Command(args, s.Dir, s.Env); err != nil {
		return err
	}
	return s.startup(args)
}

// startup looks at what the programs of a command read from HOME when they start.
func (s *Site) startup(args []string) error {
	if s.Login || programs.Login(args) {
		if err := s.home("a login shell reads", profiles); err != nil {
			return err
		}
	}
	reading := script.Read(args)
	for i := range reading.Uses {
		if c := &reading.Uses[i]; c.Exact() && !c.Builtin() {
			at, err := hostfacts.Lookup(c.Args[0], s.Dir, s.Env)
			if err != nil {
				continue // Command decides about it
			}
			names, _ := s.Reach.chain(at, s.Env)
			for _, name := range names {
				if name == "git" && s.usual() {
					continue // its settings there are closed to every run
				}
				if err := s.home(name+" reads", startups[name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// usual reports whether HOME is the one of this process or of the user database.
func (s *Site) usual() bool {
	home, _ := hostfacts.Value(s.Env, "HOME")
	return home == os.Getenv("HOME") || home == grants.DatabaseHome()
}

// profiles are the files below HOME that login shells read.
var profiles = []string{".profile", ".bash_profile", ".bash_login", ".bash_logout", ".zprofile", ".zlogin",
	".zshenv", ".config/fish/config.fish"}

// startups are the files below HOME that programs read whatever their options are.
var startups = map[string][]string{
	"zsh": {".zshenv"}, "fish": {".config/fish/config.fish"}, "csh": {".cshrc"}, "tcsh": {".tcshrc", ".cshrc"},
	"git": {".gitconfig", ".config/git/config"},
}

// home looks at files below HOME.
func (s *Site) home(who string, files []string) error {
	home, ok := hostfacts.Value(s.Env, "HOME")
	if !ok {
		return nil
	}
	config, _ := hostfacts.Value(s.Env, "XDG_CONFIG_HOME")
	for _, name := range files {
		at := filepath.Join(home, name)
		if rest, ok := strings.CutPrefix(name, ".config/"); ok && filepath.IsAbs(config) {
			at = filepath.Join(config, rest)
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(s.Dir, at)
		}
		if err := s.Reach.Of(at); err != nil {
			return fmt.Errorf("%s files in HOME: %w", who, err)
		}
	}
	return nil
}
