// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// profileMinimal is the profile that shows the platform's own files and the
// workspace, and nothing else.
const profileMinimal = ":minimal"

// preset returns the policy of --sandbox or --profile before anything is added.
func (o *runOptions) preset() sandbox.Policy {
	switch {
	case o.profile == profileMinimal:
		return sandbox.Policy{}.WithEntries(
			sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelWrite),
			sandbox.SpecialEntry(sandbox.TokenSlashTmp, sandbox.LevelWrite),
			sandbox.SpecialEntry(sandbox.TokenTmpDir, sandbox.LevelWrite))
	case o.sandbox == "read-only", o.profile == ":read-only":
		return sandbox.ReadOnly()
	case o.sandbox == "full-access", o.sandbox == "danger-full-access", o.profile == ":danger-full-access":
		return sandbox.FullAccess()
	}
	return sandbox.WorkspaceWrite()
}

// networkOf returns the network of --net, or of the preset.
func (o *runOptions) networkOf() sandbox.Network {
	if n, err := sandbox.ParseNetwork(o.network); err == nil {
		return n
	}
	return o.preset().Network()
}

// policy returns what a program in dir may touch.
func (o *runOptions) policy(dir, home string) (sandbox.Policy, error) {
	policy := o.preset().WithNetwork(o.networkOf())
	if o.network == "proxy" {
		return policy, &userError{codeUnavailable, sallyport.EndUnavailable, "--net proxy is not supported in this version", "use --net none, or --net host for the whole network"}
	}
	entries, err := o.entries(dir, home)
	if err != nil {
		return policy, err
	}
	policy = policy.WithEntries(entries...)
	for _, name := range o.grants {
		policy = policy.With(sandbox.Grant{Name: name})
	}
	return policy, nil
}

// entries returns the entries of --rw, --ro and --deny. With full access, --rw
// opens nothing that is not open. Relative names begin in dir, where the program runs.
func (o *runOptions) entries(dir, home string) ([]sandbox.Entry, error) {
	var entries []sandbox.Entry
	for _, roots := range []struct {
		flag  string
		names []string
		level sandbox.Level
	}{{"--rw", o.writable, sandbox.LevelWrite}, {"--ro", o.readable, sandbox.LevelRead}} {
		for _, name := range roots.names {
			name = absolute(name, dir, home)
			if err := checkPath(roots.flag, name, false); err != nil {
				return nil, err
			}
			if roots.level == sandbox.LevelRead || o.preset().Mode() != sandbox.Full {
				entries = append(entries, sandbox.PathEntry(name, roots.level))
			}
		}
	}
	for _, name := range o.denied {
		entries = append(entries, denyEntries(expanded(name, home), dir)...)
	}
	return entries, nil
}

// denyEntries returns the entries for one --deny. A name that has the marks of a
// pattern and is a file as well is both.
func denyEntries(name, dir string) []sandbox.Entry {
	if !strings.ContainsAny(name, "*?[{") {
		return []sandbox.Entry{sandbox.PathEntry(name, sandbox.LevelDeny)}
	}
	entries := []sandbox.Entry{sandbox.GlobEntry(name)}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if _, err := os.Lstat(name); err == nil {
		entries = append(entries, sandbox.PathEntry(name, sandbox.LevelDeny))
	}
	return entries
}

// checkPath returns what is wrong with a path, or a directory, that a flag names.
func checkPath(flag, name string, directory bool) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return failure("%s: %s does not exist; create it first", flag, printable.Word(name))
	case err != nil:
		return failure("%s: cannot use %s: %v", flag, printable.Word(name), cause(err))
	case directory && !info.IsDir():
		return failure("%s: %s is not a directory", flag, printable.Word(name))
	}
	return nil
}

// directory returns the working directory, absolute and checked.
func (o *runOptions) directory(env *Env) (string, error) {
	dir := expanded(o.dir, env.variable("HOME"))
	if !filepath.IsAbs(dir) {
		if env.Dir == "" {
			return "", failure("the current directory no longer exists; change to another one, or use -C DIR")
		}
		dir = filepath.Join(env.Dir, dir)
	}
	if o.dir == "" {
		return dir, nil
	}
	return dir, checkPath("-C", dir, true)
}

// tmpDir returns what Cmd.Tmp takes for a program in dir. It refuses flags that mean the
// host's /tmp where the program gets a private one: what it wrote there would be gone,
// and what it should read would be missing.
func (o *runOptions) tmpDir(dir, home string) (string, error) {
	if o.tmp != "" && o.tmp != "private" && o.tmp != "host" {
		o.tmp = absolute(o.tmp, dir, home)
		if err := checkPath("--tmp", o.tmp, true); err != nil {
			return "", err
		}
	}
	if o.tmp == "host" || o.preset().Mode() == sandbox.Full {
		return o.tmp, nil
	}
	tmp := realPath("/tmp")
	isTmp := func(name string) bool { return realPath(absolute(name, dir, home)) == tmp }
	flag := "--rw"
	if !slices.ContainsFunc(o.writable, isTmp) {
		flag = "--ro"
	}
	switch {
	case slices.ContainsFunc(slices.Concat(o.writable, o.readable), isTmp):
		return "", failure("%s: the program gets a private /tmp; add --tmp host to use the host's, or name a directory below it", flag)
	case o.tmp == "" && isTmp(dir):
		return "", failure("the workspace %s would be hidden by the private /tmp, and writes would be lost; use --tmp host, --tmp private if that is intended, or a directory below it", printable.Word(dir))
	}
	return o.tmp, nil
}

// absolute returns the path that a flag names, for a program in dir.
func absolute(name, dir, home string) string {
	if name = expanded(name, home); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// expanded puts the home directory in place of a leading "~", which a shell leaves alone behind
// "=". A name that begins so is written "./~".
func expanded(name, home string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	return name
}

// variable returns the value of a variable of the environment; empty when it is not set.
func (e *Env) variable(name string) string {
	for _, v := range slices.Backward(e.Environ) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// realPath resolves symbolic links, or returns the name when it cannot.
func realPath(name string) string {
	if at, err := filepath.EvalSymlinks(name); err == nil {
		return at
	}
	return name
}

// environment returns what the program gets of our variables: the same on a terminal, in a
// pipeline and in CI. Only what a terminal of its own is called depends on there being one.
func (o *runOptions) environment(env *Env) sallyport.EnvPolicy {
	policy := sallyport.EnvPolicy{Inherit: sallyport.InheritAll}
	_ = policy.Inherit.UnmarshalText([]byte(o.inherit)) // "" changes nothing
	if o.ownTerminal(env) {
		policy.Named = append(policy.Named, "TERM")
	}
	for _, v := range o.variables {
		name, value, set := strings.Cut(v, "=")
		// The last flag for a name counts.
		delete(policy.Set, name)
		policy.Named = slices.DeleteFunc(policy.Named, func(n string) bool { return n == name })
		switch {
		case !set:
			policy.Named = append(policy.Named, name)
		case policy.Set == nil:
			policy.Set = map[string]string{name: value}
		default:
			policy.Set[name] = value
		}
	}
	return policy
}
