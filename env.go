// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import "github.com/sallyport-dev/sallyport/internal/environ"

// EnvPolicy says which environment variables a command gets of those of its caller. The zero
// EnvPolicy passes the core set without variables that look like secrets. The fields are in the order
// in which they count; variables that [Cmd.Env] gives explicitly are added together with Set. The JSON
// names are those of the configuration that other agents use, too.
type EnvPolicy struct {
	// Inherit chooses the variables to start with.
	Inherit EnvInherit `json:"inherit"`
	// KeepSecrets passes variables that look like secrets: by a part of the name, such as KEY,
	// TOKEN, PASS or AUTH, or by a value such as an address with a password or a private key. False
	// drops them, except names that are known to be harmless, and those in Named, Set or Runtime.
	KeepSecrets bool `json:"ignore_default_excludes"`
	// Exclude drops inherited names that match one of these patterns, in which '*' stands for any
	// characters and '?' for one; letter case does not matter. Nil drops none.
	Exclude []string `json:"exclude,omitempty"`
	// Set adds variables, or replaces those that are there. A name that is empty or contains '=' or
	// NUL, or a value with NUL, is a *CmdError of Run and an error of Apply. Nil sets none.
	Set map[string]string `json:"set,omitempty"`
	// IncludeOnly, if not empty, keeps only names that match one of these patterns, also of
	// those in Named and Set.
	IncludeOnly []string `json:"include_only,omitempty"`

	// Named lists variables of the caller that are inherited whatever Inherit, KeepSecrets and
	// Exclude say. Those that the caller does not have are left out.
	Named []string `json:"-"`
	// Runtime contains the variables that the runtime sets. They are added last and win, also over
	// the profile that a login shell reads; those that tell a command about its sandbox come from
	// sallyport in this step. Only the two names that no command gets, those of the identity of an
	// agent's model account, are removed then. The errors are those of Set.
	Runtime map[string]string `json:"-"`
	// RuntimeOnly lists names that only Runtime can set: a value that the caller inherited from a
	// run around it, or that is in Set, is removed.
	RuntimeOnly []string `json:"-"`

	// Base are the variables of the caller, as "NAME=value", of which the command inherits some; nil
	// means those of this process, and an empty list none. Apply gets them as its argument.
	Base []string `json:"-"`
	// System is the operating system of the command, as GOOS names it; empty means that of the
	// executor. On "windows" names that differ only in letter case are the same.
	System string `json:"-"`
	// Core replaces the names that InheritCore inherits, as patterns; nil means those that
	// docs/reference.md lists.
	Core []string `json:"-"`
}

// An EnvResult is the environment of a command.
type EnvResult struct {
	// Env lists "NAME=value" sorted by name, each name once; it is never nil.
	Env []string
	// Withheld lists the sorted names of variables that the caller has or the policy sets and that
	// the command does not get.
	Withheld []string
}

// Apply returns what a command without variables of its own gets of those of the caller, base, before
// the Runner adds its own. Of entries with the same name the last one counts; entries without '=', with
// an empty name or with NUL are dropped. It changes neither base nor p.
func (p EnvPolicy) Apply(base []string) (EnvResult, error) {
	res, err := environ.Policy(p).Apply(base)
	return EnvResult(res), err
}

// EnvInherit says which variables of the caller a command starts with. Its text forms
// are "core", "all" and "none".
type EnvInherit = environ.Inherit

// The values of EnvPolicy.Inherit.
const (
	// InheritCore starts with the few variables that programs need to find each other,
	// such as PATH, HOME and LANG.
	InheritCore EnvInherit = environ.InheritCore
	// InheritAll starts with all variables.
	InheritAll EnvInherit = environ.InheritAll
	// InheritNone starts with no variable.
	InheritNone EnvInherit = environ.InheritNone
)
