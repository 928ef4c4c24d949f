// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// mode is the mode of the sandbox: that of the configuration, or before it was read that of the
// flags.
func (o *Options) mode() string {
	return cmp.Or(o.Base, config.Mode(o.Profile), config.Mode(o.Sandbox), config.WorkspaceWrite)
}

// preset returns the policy of the mode before anything is added.
func (o *Options) preset() sandbox.Policy {
	switch o.mode() {
	case config.NoBase:
		return sandbox.Policy{}
	case config.Minimal:
		return sandbox.Policy{}.WithEntries(
			sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelWrite),
			sandbox.SpecialEntry(sandbox.TokenSlashTmp, sandbox.LevelWrite),
			sandbox.SpecialEntry(sandbox.TokenTmpDir, sandbox.LevelWrite))
	case config.ReadOnly:
		return sandbox.ReadOnly()
	case config.FullAccess:
		return sandbox.FullAccess()
	}
	return sandbox.WorkspaceWrite()
}

// networkOf returns the network that was chosen, or that of the mode.
func (o *Options) networkOf() sandbox.Network {
	switch o.Network {
	case config.NetNone:
		return sandbox.NetworkNone
	case config.NetHost:
		return sandbox.NetworkHost
	case config.NetLimited, config.NetFull, config.NetProxy:
		return sandbox.NetworkProxy
	}
	return o.preset().Network()
}

// Policy returns what a program in dir may touch.
func (o *Options) Policy(dir, home string) (sandbox.Policy, error) {
	policy := o.preset().WithNetwork(o.networkOf())
	if policy.Network() == sandbox.NetworkProxy && o.preset().Mode() == sandbox.Full {
		return policy, &explain.Error{Code: explain.CodeUnavailable, End: sallyport.EndUnavailable,
			Text: "-s full-access builds no sandbox, and the managed network needs one",
			Fix:  "use another -s, or --net host for the whole network"}
	}
	entries, err := o.entries(dir, home)
	if err != nil {
		return policy, err
	}
	policy = policy.WithEntries(entries...)
	for _, name := range o.Grants {
		if grants.Hosts(name) == nil { // those are entries of the network policy
			policy = policy.With(sandbox.Grant{Name: name})
		}
	}
	return policy, nil
}

// entries returns the entries of --rw, --ro and --deny. With full access, --rw
// opens nothing that is not open. Relative names begin in dir, where the program runs.
func (o *Options) entries(dir, home string) ([]sandbox.Entry, error) {
	entries := o.repository(dir)
	for _, roots := range []struct {
		flag  string
		names []string
		level sandbox.Level
	}{{"--rw", o.Writable, sandbox.LevelWrite}, {"--ro", o.Readable, sandbox.LevelRead}} {
		for _, name := range roots.names {
			entry := config.Entry(name, home, roots.level)
			if entry.Place.Kind == sandbox.PlacePath {
				entry.Place.Path = Absolute(entry.Place.Path, dir, home)
				if err := CheckPath(roots.flag, entry.Place.Path, false); err != nil {
					return nil, err
				}
			}
			if roots.level == sandbox.LevelRead || o.preset().Mode() != sandbox.Full {
				entries = append(entries, entry)
			}
		}
	}
	for _, name := range o.Denied {
		entries = append(entries, config.Denied(config.Expand(name, home), dir)...)
	}
	return entries, nil
}

// repository returns the entry for the top of the repository around dir, where the settings make it the
// workspace of a mode that has one.
func (o *Options) repository(dir string) []sandbox.Entry {
	mode := o.mode()
	if o.Workspace != config.Repository || mode != config.WorkspaceWrite && mode != config.Minimal {
		return nil
	}
	if top := hostfacts.Repository(dir); top != "" {
		return []sandbox.Entry{sandbox.PathEntry(top, sandbox.LevelWrite)}
	}
	return nil
}

// asksFor returns what --ask-for asks for: a path that exists, the directory of one that does not,
// a path to read, or a host.
func (o *Options) asksFor(dir, home string) ([]sandbox.Grant, error) {
	var grants []sandbox.Grant
	for _, name := range o.AskFor {
		if place, read := strings.CutPrefix(name, "read:"); read {
			place = filepath.Clean(Absolute(place, dir, home))
			grants = append(grants, sandbox.Grant{Path: hostfacts.RealPath(place), Level: sandbox.LevelRead})
			continue
		}
		if isHost(name) {
			g, err := askForHost(name)
			if err != nil {
				return nil, err
			}
			grants = append(grants, g)
			continue
		}
		name = filepath.Clean(Absolute(name, dir, home))
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			name = filepath.Dir(name)
			if err := CheckPath("--ask-for", name, true); err != nil {
				return nil, err
			}
		}
		grants = append(grants, sandbox.Grant{Path: hostfacts.RealPath(name), Level: sandbox.LevelWrite})
	}
	return grants, nil
}

// CheckPath returns what is wrong with a path, or a directory, that a flag names.
func CheckPath(flag, name string, directory bool) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return explain.NewError("%s: %s does not exist; create it first", flag, text.Word(name))
	case err != nil:
		return explain.NewError("%s: cannot use %s: %v", flag, text.Word(name), explain.SystemCause(err))
	case directory && !info.IsDir():
		return explain.NewError("%s: %s is not a directory", flag, text.Word(name))
	}
	return nil
}

// Directory returns the working directory, absolute and checked.
func (o *Options) Directory(env *Env) (string, error) {
	dir := config.Expand(o.Dir, env.Variable("HOME"))
	if !filepath.IsAbs(dir) {
		if env.Dir == "" {
			return "", explain.NewError("the current directory no longer exists; change to another one, or use -C DIR")
		}
		dir = filepath.Join(env.Dir, dir)
	}
	if o.Dir == "" {
		return dir, nil
	}
	return dir, CheckPath("-C", dir, true)
}

// tmpDir returns what Cmd.Tmp takes for a program in dir. It refuses flags that mean the
// host's /tmp where the program gets a private one: what it wrote there would be gone,
// and what it should read would be missing.
func (o *Options) tmpDir(dir, home string) (string, error) {
	if o.Cmd.Tmp != "" && o.Cmd.Tmp != "private" && o.Cmd.Tmp != "host" {
		o.Cmd.Tmp = Absolute(o.Cmd.Tmp, dir, home)
		if err := CheckPath("--tmp", o.Cmd.Tmp, true); err != nil {
			return "", err
		}
	}
	if o.Cmd.Tmp == "host" || o.preset().Mode() == sandbox.Full {
		return o.Cmd.Tmp, nil
	}
	tmp := hostfacts.RealPath("/tmp")
	isTmp := func(name string) bool { return hostfacts.RealPath(Absolute(name, dir, home)) == tmp }
	flag := "--rw"
	if !slices.ContainsFunc(o.Writable, isTmp) {
		flag = "--ro"
	}
	switch {
	case slices.ContainsFunc(slices.Concat(o.Writable, o.Readable), isTmp):
		return "", explain.NewError("%s: the program gets a private /tmp; add --tmp host to use the host's, or name a directory below it", flag)
	case o.Cmd.Tmp == "" && isTmp(dir):
		return "", explain.NewError("the workspace %s would be hidden by the private /tmp, and writes would be lost; use --tmp host, --tmp private if that is intended, or a directory below it", text.Word(dir))
	}
	return o.Cmd.Tmp, nil
}

// Absolute returns the path that a flag names, for a program in dir.
func Absolute(name, dir, home string) string {
	if name = config.Expand(name, home); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// environment returns what the program gets of our variables: the same on a terminal, in a
// pipeline and in CI. Only what a terminal of its own is called depends on there being one.
func (o *Options) environment(env *Env) sallyport.EnvPolicy {
	policy := o.Cmd.EnvPolicy
	policy.Base, policy.Inherit = append([]string{}, env.Environ...), sallyport.InheritAll
	_ = policy.Inherit.UnmarshalText([]byte(o.Inherit)) // "" changes nothing
	if o.ReviewerKey != "" {
		policy.Exclude = append(slices.Clone(policy.Exclude), o.ReviewerKey)
	}
	policy.Runtime = o.secrets.Env() // wins over all that is set, and over profiles
	if o.OwnTerminal(env) {
		policy.Named = append(policy.Named, "TERM")
	}
	for _, v := range o.Variables {
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
