// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environ decides which environment variables a command gets.
//
// Flow: a [Policy] is applied to the variables of the caller; the [Result] is
// the environment of the command, sorted and without duplicates, and the names
// of everything that was kept from it. The steps, in this order: inherit; drop
// names that look like secrets; drop what is excluded; add what is set; keep
// only what is included; add what the runtime itself sets; remove two names
// that no command ever gets.
//
// The package is pure: which system it decides for is data, so a Mac can be
// asked what Windows would do. It never reads the environment of the process,
// never changes it, and no error or report of it contains a value.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Inherit says which variables of the caller a command starts with. The zero
// Inherit is InheritCore, the closed choice that still lets programs work.
type Inherit uint8

const (
	// InheritCore starts with the few variables that programs need to find
	// each other; see [Core].
	InheritCore Inherit = iota
	// InheritAll starts with all variables.
	InheritAll
	// InheritNone starts with nothing.
	InheritNone
)

var inheritNames = [...]string{InheritCore: "core", InheritAll: "all", InheritNone: "none"}

// String returns "core", "all" or "none", the names of the configuration.
func (i Inherit) String() string {
	if int(i) < len(inheritNames) {
		return inheritNames[i]
	}
	return fmt.Sprintf("inherit(%d)", uint8(i))
}

// MarshalText returns the name of i; an error if it has none.
func (i Inherit) MarshalText() ([]byte, error) {
	if int(i) >= len(inheritNames) {
		return nil, fmt.Errorf("environ: no name for inherit value %d", uint8(i))
	}
	return []byte(inheritNames[i]), nil
}

// UnmarshalText accepts "core", "all" and "none" and refuses everything else.
func (i *Inherit) UnmarshalText(text []byte) error {
	n := slices.Index(inheritNames[:], string(text))
	if n < 0 {
		return fmt.Errorf("environ: inherit is %q; use all, core or none", text)
	}
	*i = Inherit(n)
	return nil
}

// Policy says which variables a command gets. The zero Policy gives the core
// set without names that look like secrets. The JSON names are those of the
// configuration that other agents use too.
type Policy struct {
	// Inherit chooses what the command starts with.
	Inherit Inherit `json:"inherit"`
	// KeepSecrets passes names that look like secrets ([LooksSecret]) too.
	// False drops them unless they are in Named, Set or Runtime.
	KeepSecrets bool `json:"ignore_default_excludes"`
	// Exclude drops inherited names that match one of these patterns (see
	// [Match]). Nil drops none.
	Exclude []string `json:"exclude,omitempty"`
	// Set adds variables, or replaces inherited ones. Nil adds none. A name
	// that is empty or contains '=' or NUL, or a value with NUL, is an error.
	Set map[string]string `json:"set,omitempty"`
	// IncludeOnly, when not empty, keeps only names that match one of these
	// patterns; what Named and Set added is subject to it too.
	IncludeOnly []string `json:"include_only,omitempty"`

	// Named lists variables of the caller that are asked for by name: they are
	// inherited with their value whatever Inherit, KeepSecrets and Exclude say.
	// Those that the caller does not have are left out. Nil names none.
	Named []string `json:"-"`
	// Runtime holds the variables that sallyport itself sets. They are added
	// last and win; only the two names of [Forbidden] are still removed. Nil
	// adds none. The same errors as for Set.
	Runtime map[string]string `json:"-"`
	// RuntimeOnly lists names that only Runtime may give: a value that the
	// caller inherited from a run around it, or that Set holds, is stale and
	// removed. Nil lists none.
	RuntimeOnly []string `json:"-"`
	// System is the system that the command runs on, in the words of GOOS.
	// Empty means a Unix. On "windows" letter case does not tell names apart.
	System string `json:"-"`
	// Core replaces the names that InheritCore inherits, as patterns. Nil
	// means Core(System).
	Core []string `json:"-"`
}

// ForTerminal returns the policy for a person at a terminal: everything except
// names that look like secrets.
func ForTerminal() Policy { return Policy{Inherit: InheritAll} }

// ForAgent returns the policy for commands that a program asks for: the core
// set. It is the zero Policy.
func ForAgent() Policy { return Policy{} }

// Seed returns the policy of the earliest public exec tools: everything,
// secrets too.
func Seed() Policy { return Policy{Inherit: InheritAll, KeepSecrets: true} }

// Result is the environment of a command.
type Result struct {
	// Env holds "NAME=value" entries sorted by name, each name once. It is not
	// nil even when it is empty, because to package os/exec nil means "inherit
	// everything".
	Env []string
	// Withheld holds the sorted names, never the values, of variables that the
	// caller has or the policy set and that the command does not get.
	Withheld []string
	// Malformed counts entries of the caller that name no variable and were
	// dropped.
	Malformed int
}

// NameError is the error for a variable in Set or Runtime that cannot exist. It
// never holds the value.
type NameError struct {
	// Name is the name of the variable as given.
	Name string
	// Reason says what is wrong with it.
	Reason string
}

// Error returns one sentence that names the variable and what is wrong.
func (e *NameError) Error() string {
	return fmt.Sprintf("environ: cannot set the variable %q: %s", e.Name, e.Reason)
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

// Apply returns the environment for a command, from base, the "NAME=value"
// entries of the caller. Of entries with the same name the last one counts;
// entries without '=', with an empty name or with NUL are dropped and counted.
// An impossible name or value in Set or Runtime is a [*NameError]. Apply changes
// neither base nor p.
func (p Policy) Apply(base []string) (Result, error) {
	if err := validate(p.Set); err != nil {
		return Result{}, err
	}
	if err := validate(p.Runtime); err != nil {
		return Result{}, err
	}
	fold := p.System == "windows"
	caller := newTable(fold)
	var res Result
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(entry, 0) {
			res.Malformed++
			continue
		}
		caller.put(name, value)
	}

	env := p.inherit(caller)
	for _, name := range p.Named {
		if v, ok := caller.get(name); ok {
			env.put(v.name, v.value)
		}
	}
	env.putAll(p.Set)
	if only := compileAll(p.IncludeOnly); len(only) > 0 {
		env.keep(func(name string) bool { return matchAny(only, name) })
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

	res.Env = env.entries()
	wanted := caller
	wanted.putAll(p.Set)
	wanted.putAll(p.Runtime)
	res.Withheld = wanted.missingFrom(env)
	return res, nil
}

// inherit does the first three steps.
func (p Policy) inherit(caller *table) *table {
	env := newTable(caller.fold)
	if p.Inherit != InheritCore && p.Inherit != InheritAll {
		return env // InheritNone; unknown values are closed too
	}
	coreNames := p.Core
	if coreNames == nil {
		coreNames = Core(p.System)
	}
	core, exclude := compileAll(coreNames), compileAll(p.Exclude)
	for _, v := range caller.vars {
		switch {
		case p.Inherit == InheritCore && !matchAny(core, v.name),
			!p.KeepSecrets && LooksSecret(v.name),
			matchAny(exclude, v.name):
		default:
			env.put(v.name, v.value)
		}
	}
	return env
}

// table is a set of variables. On Windows names that differ in letter case are
// one variable; the last one put counts, with its spelling.
type table struct {
	fold bool
	vars map[string]variable
}

type variable struct{ name, value string }

func newTable(fold bool) *table {
	return &table{fold: fold, vars: make(map[string]variable)}
}

func (t *table) key(name string) string {
	if t.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (t *table) put(name, value string) { t.vars[t.key(name)] = variable{name, value} }

// putAll adds in the order of the names, so that the outcome is the same every
// time when two of them are one variable.
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
