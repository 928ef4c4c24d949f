// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/network"
)

// The values from which random layers are made, as TOML.
var randomValues = map[string][]string{
	"sandbox": {"'read-only'", "'workspace-write'", "'full-access'", "':minimal'", "'p'", "'q'"},
	"approval": {
		"'untrusted'", "'on-request'", "'on-failure'", "'never'", "'granular'",
		"{ rules = true }", "{ rules = true, skill_approval = true }", "{ sandbox_approval = true }",
		"{ rules = false }",
	},
	"level": {"'native'", "'bwrap'", "'landlock'"}, "rules": {"[]", "['builtin:read-only']", "['a.rules']"},
	"read": {"['/usr']", "['build', ':minimal']", "['/etc', '/usr']"}, "write": {"['/usr']", "['build']", "[':tmp']", "['.git']"},
	"deny": {"['a']", "['b', 'c']"}, "grants": {"['git']", "['cache:npm', 'ssh-agent']", "['net:npm', 'git']", "[]"}, "allow": {"['unix']", "[]"},
	"workspace": {"'directory'", "'repository'"},
	"tmp":       {"'private'", "'host'", "'/srv'", "'/etc'"}, "caches": {"true", "false"}, "observer": {"true", "false"},
	"stage": {"true", "false"}, "protect_hard_links": {"true", "false"}, "ask_writes": {"true", "false"},
	"ownership":      {"'ignore'", "'error'"},
	"limits.timeout": {"0", "1", "'5m'"}, "limits.kill_after": {"0", "1", "'5m'"}, "limits.memory": {"'1GiB'", "'8MiB'"},
	"limits.cpus": {"1", "2.5"}, "limits.pids": {"5", "50"}, "limits.disk": {"'1GiB'", "'1MB'"}, "limits.output": {"1000", "'1MB'"},
	"network.allow": {"['example.com']", "['*.npmjs.org']", "[]", "['*.example.com:443', '10.0.0.0/8']"}, "network.deny": {"['a.example.com']", "['*']"},
	"network.publish": {"['3000']", "['3000', '80:8080']", "[]"}, "network.allow_private": {"true", "false"}, "network.allow_local_binding": {"true", "false"}, "network.require_sni": {"true", "false"},
	"network.mode": {"'none'", "'limited'", "'full'", "'host'"}, "environment.inherit": {"'all'", "'core'", "'none'"},
	"environment.exclude": {"['X']"}, "environment.pass": {"['CI']", "['CI', 'AWS_KEY']"}, "environment.ignore_default_excludes": {"true", "false"},
}

// randomLayer writes a file with some of the keys.
func randomLayer(t *rapid.T, what string, names []string, profiles bool) string {
	var b strings.Builder
	for _, name := range names {
		values := randomValues[name]
		if !profiles {
			values = slices.DeleteFunc(slices.Clone(values), func(v string) bool {
				return name == "sandbox" && len(v) == 3 || name == "rules" && what == "managed" &&
					strings.Contains(v, "builtin") || name == "rules" && what == "project" &&
					strings.Contains(v, "a.rules")
			})
		}
		if rapid.IntRange(0, 3).Draw(t, what+" has "+name) == 0 {
			fmt.Fprintf(&b, "%s = %s\n", name, rapid.SampledFrom(values).Draw(t, what+" "+name))
		}
	}
	if profiles {
		for _, p := range []string{"p", "q"} {
			extends := rapid.SampledFrom([]string{"", "read-only", "workspace-write", "full-access",
				":minimal"}).Draw(t, p+" extends")
			fmt.Fprintf(&b, "[profiles.%s]\ndeny = ['%s']\nwrite = ['/srv', 'build']\nlimits.pids = 7\nnetwork = 'host'\ngrants = ['git']\n", p, p)
			if extends != "" {
				fmt.Fprintf(&b, "extends = '%s'\n", extends)
			}
		}
	}
	return b.String()
}

// allowed is what a mode lets commands do, apart from every function under test.
var allowed = map[string]string{NoBase: "", ReadOnly: "r", Minimal: "w", WorkspaceWrite: "rw",
	FullAccess: "rwx"}

func opensMore(a, b string) bool { return strings.Trim(allowed[a], allowed[b]) != "" }

// number is where a value stands from narrow to wide.
func number(k *Key, v Value) float64 {
	if v.Text() == "" {
		return math.Inf(1)
	}
	n, ok := k.rank(v.Text())
	if k.Name == "tmp" {
		n, ok = float64(slices.Index([]string{"private", "host"}, v.Text())), true
		if n < 0 {
			n = 2
		}
	}
	if !ok {
		panic(k.Name + " " + v.Text())
	}
	return n
}

// widens returns a key that is wider in b than in a; empty if there is none.
func widens(a, b *Effective) string {
	if opensMore(b.Base, a.Base) {
		return "sandbox: " + b.Base + " over " + a.Base
	}
	for _, k := range Keys() {
		x, y := a.Values[k.Name], b.Values[k.Name]
		in := func(list []string) func(string) bool {
			return func(s string) bool { return !slices.Contains(list, s) }
		}
		switch {
		case k.Name == "sandbox" || k.Order == None || k.Order == Fixes || k.Later != "":
		case k.Name == "rules" && b.ReadOnlyRules() && !a.ReadOnlyRules():
			return "rules: commands that only read"
		case k.Order == Opens && slices.ContainsFunc(y.Texts(), in(x.Texts())) &&
			!slices.Equal(y.Texts(), []string{placeWorkspace}):
			return fmt.Sprint(k.Name, ": ", y.Texts(), " over ", x.Texts())
		case k.Order == Narrows &&
			slices.ContainsFunc(slices.DeleteFunc(x.Texts(),
				func(s string) bool { return s == BuiltinReadOnly }), in(y.Texts())):
			return fmt.Sprint(k.Name, ": ", y.Texts(), " lacks some of ", x.Texts())
		case k.Order != Opens && k.Order != Narrows && number(k, y) > number(k, x):
			return fmt.Sprint(k.Name, ": ", y.Text(), " over ", x.Text())
		}
	}
	return kindsOver(a, b)
}

// kindsOver returns a kind of question that b asks and a does not. A mode that asks about
// nothing but has no rule against it is no part of this.
func kindsOver(a, b *Effective) string {
	asks := func(e *Effective) []string {
		switch e.Values["approval"].Text() {
		case "granular":
			return e.Granular
		case "on-request", "on-failure":
			return granular
		}
		return nil
	}
	if at := a.Values["approval"].Text(); at == "untrusted" || at == "never" ||
		b.Values["approval"].Text() == "untrusted" {
		return ""
	}
	for _, q := range asks(b) {
		if !slices.Contains(asks(a), q) {
			return "approval: " + q
		}
	}
	return ""
}

var (
	userKeys    = sortedKeys(func(string) bool { return true })
	projectKeys = sortedKeys(func(n string) bool { return slices.Contains(narrowing, n) })
	ceilingKeys = sortedKeys(func(n string) bool { return slices.Contains(ceilings, n) })
)

func sortedKeys(has func(string) bool) (names []string) {
	for n := range randomValues {
		if has(n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// drawWorld draws a world without a project and a ceiling.
func drawWorld(t *rapid.T) world {
	w := world{user: randomLayer(t, "user", userKeys, true), terminal: rapid.Bool().Draw(t, "terminal")}
	for _, v := range []string{"SALLYPORT_LEVEL=landlock", "SALLYPORT_PROFILE=full-access",
		"SALLYPORT_PROFILE=q", "SALLYPORT_APPROVAL=never", "SALLYPORT_WRITE=/srv,build"} {
		if rapid.IntRange(0, 5).Draw(t, v) == 0 {
			w.environ = append(w.environ, v)
		}
	}
	return w
}

// TestProjectNarrows: whatever a project says, nothing gets wider by it.
func TestProjectNarrows(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r)
		if rapid.Bool().Draw(r, "flag") {
			w.flags = []string{"limits.pids=6"}
		}
		without, err := w.resolve(t, p)
		if err != nil {
			r.Fatal(err)
		}
		w.project = randomLayer(r, "project", projectKeys, false)
		with, err := w.resolve(t, p)
		if err != nil {
			r.Fatal(err)
		}
		if wide := widens(without, with); wide != "" {
			r.Fatalf("%s\n--- user\n%s%q\n--- project\n%s", wide, w.user, w.environ, w.project)
		}
	})
}

// TestCeilingHolds: whatever the layers and flags say, nothing that a ceiling bounds is wider
// than without wishes, and denials of the ceiling are there.
func TestCeilingHolds(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r)
		w.managed, w.more = randomLayer(r, "managed", ceilingKeys, false),
			randomLayer(r, "managed", ceilingKeys, false)
		if rapid.Bool().Draw(r, "project") {
			w.project = randomLayer(r, "project", projectKeys, false) +
				"[project]\nwrite = ['/srv']\ngrants = ['git']\nnetwork = 'host'\n"
		}
		for _, f := range []string{"sandbox=full-access", "sandbox=p", "sandbox=read-only", "write=/srv",
			"grants=git", "grants=net:npm", "network.mode=host", "limits.timeout=0", "tmp=/etc",
			"approval=never"} {
			if rapid.IntRange(0, 9).Draw(r, f) == 0 {
				w.flags = append(w.flags, f)
			}
		}
		e, err := w.resolve(t, p)
		var over *CeilingError
		if errors.As(err, &over) {
			if !strings.HasPrefix(over.By.File, filepath.Clean(p.etc)) || len(w.flags) == 0 {
				r.Fatal(err)
			}
			return
		}
		if err != nil {
			r.Fatal(err)
		}
		for _, m := range e.config.managed {
			if s := m.values["sandbox"]; len(s) > 0 && opensMore(e.Base, s[0].Text) {
				r.Fatalf("%s over %s", e.Base, s[0].Text)
			}
			for name, set := range m.values {
				k := Find(name)
				v := e.Values[name]
				switch {
				case k == nil || name == "sandbox":
				case k.Order == Narrows:
					for _, s := range set {
						if !slices.Contains(v.Texts(), s.Text) {
							r.Fatalf("%s lacks %s", name, s.Text)
						}
					}
				case k.Order == Opens && name != "read" && name != "write":
					for _, text := range v.Texts() {
						if !slices.ContainsFunc(set, func(s Setting) bool {
							return s.Text == text ||
								name == "network.allow" && network.Covers(s.Text, text)
						}) {
							r.Fatalf("%s has %s\n%s", name, text, w.managed)
						}
					}
				case k.Order != Opens && number(k, v) > number(k, Value{Settings: set}):
					r.Fatalf("%s: %s over %s", name, v.Text(), set[0].Text)
				}
			}
			if s := m.values["sandbox"]; len(s) > 0 && s[0].Text != FullAccess {
				bounded(r, p, e, m)
			}
			if by := m.values["approval"]; len(by) > 0 && by[0].Text == "granular" &&
				e.Values["approval"].Text() == "granular" {
				for _, q := range e.Granular {
					if !slices.ContainsFunc(m.values[Granular], func(s Setting) bool { return s.Text == q }) {
						r.Fatalf("asks about %s", q)
					}
				}
			}
		}
	})
}

// bounded checks what may be added to the mode of a ceiling.
func bounded(r *rapid.T, p place, e *Effective, m *layer) {
	for _, text := range e.Values["write"].Texts() {
		listed := slices.ContainsFunc(m.values["write"], func(s Setting) bool { return s.Text == text })
		if own := text == ":tmp" || text == "build"; !listed &&
			(!own || m.values["sandbox"][0].Text == ReadOnly) {
			r.Fatalf("write has %s", text)
		}
	}
	if tmp := e.Values["tmp"].Text(); strings.HasPrefix(tmp, "/") &&
		len(m.values["tmp"])+len(m.values["write"]) == 0 {
		r.Fatalf("tmp is %s", tmp)
	}
	for _, name := range []string{"grants", "allow"} {
		if _, ok := m.values[name]; !ok && len(e.Values[name].Settings) > 0 {
			r.Fatalf("%s has %v", name, e.Values[name].Texts())
		}
	}
}
