// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Wish is what a client of the exec-server asks for beside runs: it says itself in which sandbox.
type Wish struct {
	// Name is the request, for errors.
	Name string
	// Policy is what the client asks for, not bound; Places are what it means.
	Policy sandbox.Policy
	Places sandbox.Places
	// Flags are those that it asks for beside the policy, by key: of a managed network, limits and walls. Nil
	// is for none.
	Flags map[string][]string
}

// Ceiling reports whether there is a managed configuration, or a rule beside it.
func (c *Config) Ceiling() bool { return len(c.managed)+len(c.sources) > 0 }

// HasCeiling reports whether there may be a managed configuration in a directory. It is a fast look for what
// each request needs.
func HasCeiling(dir string) bool {
	return slices.ContainsFunc([]string{managedName, managedDir, rulesDir}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// Sets reports whether a managed file has a key.
func (c *Config) Sets(key string) bool {
	return slices.ContainsFunc(c.managed, func(m *layer) bool { _, ok := m.values[key]; return ok })
}

// Client says what holds for a request: what flags for the same policy would have. The settings must be those
// of the ceiling alone. The error is that of [Config.Resolve].
func (c *Config) Client(w *Wish) (*Effective, error) {
	e := &Effective{config: c}
	flags := Values{}
	say := func(key, text string) {
		flags[key] = append(flags[key], Setting{text, Origin{Layer: Flags, File: w.Name}})
	}
	say("sandbox", e.modeOf(w, say))
	if err := e.reopened(w); err != nil {
		return nil, err
	}
	if w.Policy.Mode() == sandbox.Managed && w.Policy.Network() == sandbox.NetworkHost {
		say("network.mode", NetHost)
	}
	for _, name := range w.Policy.Named() {
		say("grants", name)
	}
	for key, texts := range w.Flags {
		for _, text := range texts {
			say(key, text)
		}
	}
	holds, err := c.Resolve(flags)
	if err != nil || holds.Base != FullAccess || len(holds.Values["deny"].Settings) == 0 {
		return holds, err
	}
	// A sandbox cannot have the whole disk writable but for what is denied.
	return nil, &CeilingError{flags["sandbox"][0], "deny", holds.Values["deny"].Settings[0].Origin}
}

// modeOf returns the narrowest mode that a policy is in, and says which places it opens beside that.
func (e *Effective) modeOf(w *Wish, say func(key, text string)) string {
	bound := w.Policy.Bind(w.Places)
	if bound.Mode() != sandbox.Managed || bound.LevelAt("/") == sandbox.LevelWrite {
		return FullAccess
	}
	var written []string
	modes := [...]string{NoBase, ReadOnly}
	for _, entry := range bound.Entries() {
		if entry.Level != sandbox.LevelWrite {
			continue
		}
		name, ok := entry.Place.Absolute()
		switch at := reached(name); {
		case !ok:
			say("write", entry.Place.String())
		case at == e.real(placeWorkspace), at == e.real(placeTmp), e.plain(at, placeTmp) &&
			!strings.Contains(at[len(e.real(placeTmp)):], "/."):
			modes = [...]string{Minimal, WorkspaceWrite}
		default:
			say("write", at)
			written = append(written, at)
		}
	}
	for _, entry := range bound.Entries() {
		name, ok := entry.Place.Absolute()
		if !ok || entry.Level != sandbox.LevelRead || name == "/" || slices.Contains(w.Places.Minimal, name) {
			continue
		}
		at := reached(name)
		in := func(place string) bool { return below(at, place) } // then it only narrows
		if !e.plain(at, placeWorkspace) && !e.plain(at, placeTmp) && !slices.ContainsFunc(written, in) {
			say("read", at)
		}
	}
	if bound.LevelAt("/") >= sandbox.LevelRead {
		return modes[1]
	}
	return modes[0]
}

// reopened returns a [*CeilingError] for a place in one that is denied: of two entries the more specific one
// counts.
func (e *Effective) reopened(w *Wish) error {
	for _, entry := range w.Policy.Bind(w.Places).Entries() {
		name, ok := entry.Place.Absolute()
		if !ok || entry.Level == sandbox.LevelDeny {
			continue
		}
		for _, m := range e.config.managed {
			if by := e.reopens(name, m); by != nil {
				return &CeilingError{Setting{name, Origin{Layer: Flags, File: w.Name}}, "deny", by.Origin}
			}
		}
	}
	return nil
}

// plain reports whether a path without links is in a place that no home is in, and so no store of secrets.
func (e *Effective) plain(at, place string) bool {
	return below(at, e.real(place)) && !e.holdsHome(place)
}

// holdsHome reports whether a home directory is in a place.
func (e *Effective) holdsHome(place string) bool {
	return slices.ContainsFunc(append(grants.Homes(), e.config.in.Home),
		func(home string) bool { return home != "" && e.within(home, place) })
}

// below reports whether a path without links is another one, or in it.
func below(at, in string) bool {
	return at != "" && in != "" && safefile.Within(at, in)
}

// Narrow returns what a client that asks for a policy gets: without what is denied, and the network of the
// host, if that is closed.
func (e *Effective) Narrow(p sandbox.Policy) sandbox.Policy {
	for _, text := range e.Values["deny"].Texts() {
		p = p.WithEntries(Denied(text, e.config.in.Dir)...)
	}
	if p.Network() == sandbox.NetworkHost && e.Values["network.mode"].Text() != NetHost {
		p = p.WithNetwork(sandbox.NetworkNone)
	}
	return p
}

// ClientsWrite returns the places outside of workspaces that the ceiling lets clients write to, in one
// request or another.
func (e *Effective) ClientsWrite() (paths []string) {
	for _, m := range e.config.managed {
		paths = append(paths, e.writes(m.values)...)
	}
	return paths
}

// Denies returns a [*CeilingError] for a path that is denied, which is called by a request; nil if it is not.
func (e *Effective) Denies(request, path string) error {
	for _, s := range e.Values["deny"].Settings {
		p := sandbox.ReadOnly().WithEntries(Denied(s.Text,
			e.config.in.Dir)...).Bind(sandbox.Places{Dir: e.config.in.Dir})
		for _, name := range []string{path, reached(path)} {
			if ruling, _ := p.Explain(sandbox.Access{Op: sandbox.Read, Path: name}); name != "" &&
				ruling != sandbox.Allow {
				return &CeilingError{Setting{path, Origin{Layer: Flags, File: request}}, "deny", s.Origin}
			}
		}
	}
	return nil
}

// Denied returns the entries for an element of deny, of a workspace. A name that has the marks of a pattern
// and is a file as well is both.
func Denied(name, dir string) []sandbox.Entry {
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

// Limits are those of [Effective.Values], and the time that a command has; 0 is no limit.
func (e *Effective) Limits() (r executor.Resources, most time.Duration) {
	var run Run
	for _, k := range Keys() {
		if text := e.Values[k.Name].Text(); strings.HasPrefix(k.Name, "limits.") && text != "" {
			k.put(&run, text)
		}
	}
	return run.Cmd.Resources, run.Cmd.Timeout
}

// Approval returns when to ask.
func (e *Effective) Approval() approval.Policy {
	text := e.Values["approval"].Text()
	if text != "granular" {
		p, _ := approval.Parse(text) // it was checked
		return p
	}
	asks := func(kind string) bool { return slices.Contains(e.Granular, kind) }
	return approval.Granular{
		SandboxApproval: asks("sandbox_approval"), Rules: asks("rules"),
		SkillApproval:      asks("skill_approval"),
		RequestPermissions: asks("request_permissions"), MCPElicitations: asks("mcp_elicitations"),
	}.Policy()
}

// Inherited returns those variables that the ceiling lets commands have, of some that they would inherit.
func (c *Config) Inherited(variables []string) ([]string, error) {
	policy := environ.Policy{Inherit: environ.InheritAll, KeepSecrets: true}
	for _, m := range c.managed {
		if (Value{Settings: m.values["environment.ignore_default_excludes"]}).Text() == "false" {
			policy.KeepSecrets = false
		}
		policy.Exclude = append(policy.Exclude, Value{Settings: m.values["environment.exclude"]}.Texts()...)
		inherit := Value{Settings: m.values["environment.inherit"]}.Text()
		if k := Find("environment.inherit"); inherit != "" && k.wider(policy.Inherit.String(), inherit) {
			_ = policy.Inherit.UnmarshalText([]byte(inherit)) // it was checked
		}
	}
	result, err := policy.Apply(variables)
	return result.Env, err
}
