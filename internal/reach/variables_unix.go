// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/programs"
	"github.com/sallyport-dev/sallyport/internal/script"
)

// variable returns why a variable has programs in dir run what is in reach, or code that is its
// value; nil if it does not.
func (r *Reach) variable(name, value, dir string, env []string) error {
	commands, paths, code := script.Carries(name, value)
	if code {
		return fmt.Errorf("the variable %s has programs run code", name)
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
		if err := r.Command(c.Args, dir, env); err != nil {
			return fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	return nil
}

// variables returns the first error of [Reach.variable]; counts says for which names.
func (r *Reach) variables(dir string, env []string, counts func(name string) bool) error {
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); programs.RunsCode(name) && counts(name) {
			if err := r.variable(name, value, dir, env); err != nil {
				return err
			}
		}
	}
	return nil
}

// Environ returns an environment without the variables that have programs in "/" run what is in
// reach or code that is their value, and with [Reach.Path] as PATH.
func (r *Reach) Environ(env []string) []string {
	env = slices.Clone(env)
	for i, v := range env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			env[i] = "PATH=" + r.Path(list)
		}
	}
	return slices.DeleteFunc(env, func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return programs.RunsCode(name) && r.variable(name, value, "/", env) != nil
	})
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
// makes another one of it.
func (s *Site) Named(args []string) error {
	at, err := hostfacts.Lookup(args[0], s.Dir, s.Env)
	if err != nil {
		return err
	}
	names, err := s.Reach.chain(at, s.Env)
	if err != nil {
		return err
	}
	return s.Reach.variables(s.Dir, s.Env, func(name string) bool {
		return slices.ContainsFunc(names, func(program string) bool { return programs.Alters(name, program) })
	})
}

// Outside is [Site.Named] for a command that is to run without a sandbox: also the scripts that are
// its arguments must be out of reach, and what any variable has any program run.
func (s *Site) Outside(args []string) error {
	if err := s.Named(args); err != nil {
		return err
	}
	if err := s.Reach.Command(args, s.Dir, s.Env); err != nil {
		return err
	}
	if err := s.Reach.variables(s.Dir, s.Env, func(string) bool { return true }); err != nil {
		return err
	}
	if s.Login || programs.Login(args) {
		return s.login()
	}
	return nil
}

// profiles are the files below HOME that login shells read.
var profiles = []string{".profile", ".bash_profile", ".bash_login", ".bash_logout", ".zprofile", ".zlogin", ".zshenv", ".config/fish/config.fish"}

// login looks at what a login shell reads.
func (s *Site) login() error {
	home, ok := hostfacts.Value(s.Env, "HOME")
	if !ok {
		return nil
	}
	for _, name := range profiles {
		at := filepath.Join(home, name)
		if !filepath.IsAbs(home) {
			at = filepath.Join(s.Dir, at)
		}
		if err := s.Reach.Of(at); err != nil {
			return fmt.Errorf("a login shell reads what HOME names: %w", err)
		}
	}
	return nil
}
