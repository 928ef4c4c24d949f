// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environ decides which environment variables a command gets.
//
// [Policy.Apply] turns the variables of the caller into the [Result]: the sorted
// environment of the command, and the names of the variables that it does not get. The
// steps, in this order: inherit; drop what looks like a secret, by name or by value; drop what is
// excluded; add what is named and set; keep only what is included; add what the runtime
// sets; remove two names that no command gets. [Mask] and [ShowCommand] mask secrets in a
// command line by the same rules.
//
// The package is pure: the system that it decides for is data. It never reads the
// environment of the process, never changes it, and no error of it contains a value.
//
// [SetProxy] sets the variables that lead programs to a proxy. Programs agree on no variable, so
// there is a table of all that are read; what a command has inherited of them is removed, so that
// nothing leads past the proxy. [SetTrust] does the same for the files of certificates that programs
// trust.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Inherit says which variables of the caller a command starts with.
type Inherit uint8

const (
	// InheritCore starts with the few variables that programs need to find
	// each other; see [Core].
	InheritCore Inherit = iota
	// InheritAll starts with all variables.
	InheritAll
	// InheritNone starts with no variable.
	InheritNone
)

var inheritNames = [...]string{InheritCore: "core", InheritAll: "all", InheritNone: "none"}

// String returns "core", "all" or "none".
func (i Inherit) String() string {
	if int(i) < len(inheritNames) {
		return inheritNames[i]
	}
	return fmt.Sprintf("inherit(%d)", uint8(i))
}

// MarshalText returns the name of i, or an error if it has none.
func (i Inherit) MarshalText() ([]byte, error) {
	if int(i) >= len(inheritNames) {
		return nil, fmt.Errorf("inherit value %d has no name", uint8(i))
	}
	return []byte(inheritNames[i]), nil
}

// UnmarshalText accepts "core", "all" and "none".
func (i *Inherit) UnmarshalText(text []byte) error {
	n := slices.Index(inheritNames[:], string(text))
	if n < 0 {
		return fmt.Errorf("unknown inherit value %q; use all, core or none", text)
	}
	*i = Inherit(n)
	return nil
}

// A Policy says which variables a command gets. It is sallyport.EnvPolicy, which says what each
// field means; the zero Policy gives the core set without variables that look like secrets
// ([SecretName], [SecretValue]).
type Policy struct {
	Inherit     Inherit
	KeepSecrets bool
	Exclude     []string
	Set         map[string]string
	IncludeOnly []string
	Named       []string
	Runtime     map[string]string
	RuntimeOnly []string
	Base        []string // for [Command] alone
	System      string   // as in GOOS; empty means a Unix
	Core        []string // patterns; nil means [Core] of System
}

// A Result is the environment of a command.
type Result struct {
	// Env lists "NAME=value" sorted by name, each name once. It is never nil, which
	// package os/exec takes for "inherit everything".
	Env []string
	// Withheld lists the sorted names of variables that the caller has or the policy
	// sets and that the command does not get.
	Withheld []string
}

// NameError reports a variable in Set or Runtime that cannot exist, or one of a command that it does
// not get. It never contains the value.
type NameError struct {
	Name   string // as given
	Reason string
}

// Error returns the name and the reason.
func (e *NameError) Error() string {
	return fmt.Sprintf("cannot set the variable %q: %s", e.Name, e.Reason)
}

func validate(vars map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		switch {
		case name == "":
			return &NameError{Name: name, Reason: "the name is empty"}
		case strings.ContainsRune(name, '='):
			return &NameError{Name: name, Reason: "the name contains '='"}
		case strings.ContainsRune(name, 0):
			return &NameError{Name: name, Reason: "the name contains a NUL character"}
		case strings.ContainsRune(vars[name], 0):
			return &NameError{Name: name, Reason: "the value contains a NUL character"}
		}
	}
	return nil
}

// Apply returns the environment for a command, from base, the "NAME=value" entries of
// the caller. Of entries with the same name the last one counts; entries without '=',
// with an empty name or with NUL are dropped. An impossible name or value
// in Set or Runtime is a [*NameError]. Apply changes neither base nor p.
func (p Policy) Apply(base []string) (Result, error) {
	for _, vars := range []map[string]string{p.Set, p.Runtime} {
		if err := validate(vars); err != nil {
			return Result{}, err
		}
	}
	fold := p.System == "windows"
	caller := newTable(fold, len(base))
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && !strings.ContainsRune(entry, 0) {
			caller.put(name, value)
		}
	}

	env := p.inherit(caller)
	for _, name := range p.Named {
		if v, ok := caller.get(name); ok {
			env.put(v.name, v.value)
		}
	}
	env.putAll(p.Set)
	if len(p.IncludeOnly) > 0 {
		env.keep(func(name string) bool { return matchAny(p.IncludeOnly, name) })
	}
	for _, name := range p.RuntimeOnly {
		delete(env.vars, env.key(name))
	}
	env.putAll(p.Runtime)
	if _, ok := env.get("PATHEXT"); fold && !ok {
		// Without it the shell of Windows runs no program by its bare name.
		env.put("PATHEXT", ".COM;.EXE;.BAT;.CMD")
	}
	env.keep(func(name string) bool { return !Forbidden(name) })

	caller.putAll(p.Set)
	caller.putAll(p.Runtime)
	return Result{Env: env.entries(), Withheld: caller.missingFrom(env)}, nil
}

// inherit does the first three steps.
func (p Policy) inherit(caller *table) *table {
	env := newTable(caller.fold, len(caller.vars))
	if p.Inherit != InheritCore && p.Inherit != InheritAll {
		return env // an unknown value inherits nothing, too
	}
	core := p.Core
	if core == nil {
		core = Core(p.System)
	}
	for _, v := range caller.vars {
		switch {
		case p.Inherit == InheritCore && !matchAny(core, v.name),
			!p.KeepSecrets && (SecretName(v.name) || SecretValue(v.value)),
			matchAny(p.Exclude, v.name):
		default:
			env.put(v.name, v.value)
		}
	}
	return env
}

// A table is a set of variables. If fold is true, names that differ in letter case are
// one variable; the last one put counts, with its spelling.
type table struct {
	fold bool
	vars map[string]variable
}

type variable struct{ name, value string }

// newTable returns an empty table with room for some variables.
func newTable(fold bool, room int) *table {
	return &table{fold: fold, vars: make(map[string]variable, room)}
}

func (t *table) key(name string) string {
	if t.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (t *table) put(name, value string) { t.vars[t.key(name)] = variable{name, value} }

// putAll adds in the order of the names, so that the result is the same every time if
// two of them are one variable.
func (t *table) putAll(vars map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		t.put(name, vars[name])
	}
}

func (t *table) get(name string) (variable, bool) {
	v, ok := t.vars[t.key(name)]
	return v, ok
}

func (t *table) keep(ok func(name string) bool) {
	maps.DeleteFunc(t.vars, func(_ string, v variable) bool { return !ok(v.name) })
}

func (t *table) entries() []string {
	out := make([]string, 0, len(t.vars))
	for _, k := range slices.Sorted(maps.Keys(t.vars)) {
		out = append(out, t.vars[k].name+"="+t.vars[k].value)
	}
	return out
}

func (t *table) missingFrom(other *table) []string {
	var out []string
	for k, v := range t.vars {
		if _, ok := other.vars[k]; !ok {
			out = append(out, v.name)
		}
	}
	slices.Sort(out)
	return out
}
