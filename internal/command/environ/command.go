// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Command is what decides about the variables of a command beside its [Policy].
type Command struct {
	// Env are its own variables, in place of Base, those of its caller. Nil are none: it inherits.
	Env, Base []string
	// Dir is where it runs; Sandbox and Network are the names of those that it has.
	Dir, Sandbox, Network string
	// Offline says that it has no network, ReadOnlyGit that it cannot change what git writes,
	// PrivateTmp that it sees a /tmp of its own.
	Offline, ReadOnlyGit, PrivateTmp bool
	System                           string // for a Policy without one
}

// Apply adds to a policy what every command gets, the variables that tell programs where they run, a
// usable TMPDIR and the true PWD, and applies it. Own are the entries that a profile must not change.
// A variable in Env that the policy does not pass is a [*NameError], see [Policy.own].
func (c *Command) Apply(p Policy) (res Result, own []string, err error) {
	if p.System == "" {
		p.System = c.System
	}
	base := c.Base
	if c.Env != nil {
		if p.Set, base, err = p.own(c.Env, c.Base); err != nil {
			return Result{}, nil, err
		}
	}
	runtime := maps.Clone(p.Runtime)
	if runtime == nil {
		runtime = make(map[string]string)
	}
	runtime["SALLYPORT"] = "1"
	runtime["SALLYPORT_SANDBOX"] = c.Sandbox
	runtime["SALLYPORT_NETWORK"] = c.Network
	runtime["PWD"] = c.Dir
	// What git would only do to be faster next time fails on a repository that it cannot change.
	if c.ReadOnlyGit {
		runtime["GIT_OPTIONAL_LOCKS"] = "0"
	}
	// Test suites look for this name of another tool. A value inherited from a run
	// around this one would be stale.
	const offline = "CODEX_SANDBOX_NETWORK_DISABLED"
	if c.Offline {
		runtime[offline] = "1"
		// Looking for a newer version of themselves fails, and says nothing about the command.
		runtime["PIP_DISABLE_PIP_VERSION_CHECK"], runtime["npm_config_update_notifier"] = "1", "false"
	}
	p.Runtime = runtime
	p.RuntimeOnly = append(slices.Clip(p.RuntimeOnly), offline)
	if res, err = p.Apply(base); err != nil {
		return res, nil, err
	}
	for i, entry := range res.Env {
		name, _, _ := strings.Cut(entry, "=")
		tmp := c.PrivateTmp && (name == "TMPDIR" || name == "TMP" || name == "TEMP")
		if tmp {
			res.Env[i] = name + "=/tmp"
		}
		if _, wins := runtime[name]; wins && name != "PWD" || tmp {
			own = append(own, res.Env[i])
		}
	}
	return res, own, nil
}

// own tells the variables that a command was given from those that it inherits, and returns Set with
// the former, below what Set has, and the latter as those of the caller. Where env holds all entries of
// base, as append(os.Environ(), ...) does, they are inherited, each once. Where it holds some, it is a
// list of its own, which may have a PATH of the same value: then only those that look like secrets are
// inherited, because the list may be a copy of base that was edited.
//
// A variable that was given and that the policy would drop is an error, and so is an entry that is no
// variable. One that Runtime sets has the value from there.
func (p Policy) own(env, base []string) (set map[string]string, inherited []string, err error) {
	left := make(map[string]int, len(base))
	for _, entry := range base {
		left[entry]++
	}
	fresh, missing := make([]bool, len(env)), len(base)
	for i, entry := range env {
		if fresh[i] = left[entry] == 0; !fresh[i] {
			left[entry]--
			missing--
		}
	}
	fold := p.System == "windows"
	all, given := newTable(fold, len(env)), make(map[string]bool)
	for i, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		mine := fresh[i] || missing > 0 && !SecretName(name) && !SecretValue(value)
		if ok && name != "" {
			all.put(name, value)
			given[all.key(name)] = mine
		} else if mine {
			return nil, nil, &NameError{Reason: fmt.Sprintf("entry %d is not NAME=value", i+1)}
		}
	}
	first := newTable(fold, len(p.Set))
	first.putAll(p.Set)
	set = maps.Clone(p.Set)
	for _, key := range slices.Sorted(maps.Keys(all.vars)) {
		v := all.vars[key]
		if !given[key] {
			inherited = append(inherited, v.name+"="+v.value)
			continue
		}
		if why := p.drops(v.name); why != "" {
			return nil, nil, &NameError{Name: v.name, Reason: why + "; leave it out, or change that"}
		}
		if _, ok := first.get(v.name); !ok {
			if set == nil {
				set = make(map[string]string)
			}
			set[v.name] = v.value
		}
	}
	return set, inherited, nil
}

// drops says why a variable that was given does not reach the command; empty where it does.
func (p Policy) drops(name string) string {
	same := func(n string) bool { return n == name || p.System == "windows" && strings.EqualFold(n, name) }
	switch {
	case Forbidden(name):
		return "no command gets it"
	case slices.ContainsFunc(slices.Collect(maps.Keys(p.Runtime)), same):
		return ""
	case slices.ContainsFunc(p.RuntimeOnly, same):
		return "RuntimeOnly of the policy has it"
	case matchAny(p.Exclude, name):
		return "Exclude of the policy matches it"
	case len(p.IncludeOnly) > 0 && !matchAny(p.IncludeOnly, name):
		return "IncludeOnly of the policy does not match it"
	}
	return ""
}
