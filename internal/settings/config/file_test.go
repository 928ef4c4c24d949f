// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

// samples are a right value of each key that is supported, and one that is wrong by its text.
// Empty is for keys that take any text.
var samples = map[string][2]string{
	"sandbox": {`"read-only"`, `""`}, "approval": {`"untrusted"`, `"nevr"`}, "level": {`"native"`, `"nativ"`},
	"rules": {"[]", `[""]`}, "read": {`["/usr", ":minimal"]`, `[":worksapce"]`}, "write": {`[":tmp"]`, `["/a*"]`},
	"deny": {`["**/.env"]`, `[":home"]`}, "grants": {`["git"]`, `["gti"]`}, "allow": {`["unix"]`, `["unxi"]`},
	"workspace": {`"repository"`, `""`},
	"stage":     {"true", `""`},
	"tmp":       {`"host"`, `""`}, "caches": {"false", ""}, "observer": {"true", ""}, "protect_hard_links": {"true", ""},
	"ownership": {`"error"`, `"ignor"`}, "shell": {`"zsh"`, `""`}, "login": {"true", ""}, "tty": {"true", ""},
	"max_output": {`"64k"`, `"64q"`}, "quiet": {"true", ""}, "verbose": {"true", ""},
	"limits.timeout": {`"5m"`, `"5"`}, "limits.kill_after": {"1.5", "-1"}, "limits.memory": {"67108864", "0"},
	"limits.cpus": {"1.5", "1e3"}, "limits.pids": {"20", "0"}, "limits.disk": {`"1GB"`, `"1.5GB"`}, "limits.output": {`"1MiB"`, `"0"`},
	"network.allow": {`["*.example.com:443"]`, `["a?"]`}, "network.deny": {`["*.com"]`, `["a?"]`}, "network.allow_private": {"true", ""}, "network.allow_local_binding": {"true", ""}, "network.require_sni": {"true", ""}, "network.ask": {"true", ""},
	"network.publish":  {`["3000", "8000:8080"]`, `["3000:"]`},
	"network.upstream": {`"http://proxy:3128"`, `"ftp://proxy"`},
	"network.mode":     {`"none"`, `"off"`}, "environment.inherit": {`"core"`, `"some"`}, "environment.exclude": {`["X_*"]`, `[""]`},
	"environment.include_only": {`["PATH"]`, `[""]`}, "environment.pass": {`["CI"]`, `[""]`}, "environment.set": {`{ A = "b" }`, `{ "" = "b" }`},
	"environment.ignore_default_excludes": {"true", ""},
	"network.mitm.exclude":                {`["a.b"]`, `["a b"]`}, "network.mitm.extra_ca": {`["/a.pem"]`, `["a.pem"]`},
	"reviewer.base_url": {`"https://h/v1"`, `"http://h/v1"`}, "reviewer.model": {`"m"`, `""`}, "reviewer.api_key_env": {`"K"`, `""`},
	"recordings.enabled": {"true", "1"}, "recordings.dir": {`"/p"`, `"p"`}, "recordings.format": {`"asciicast-v2"`, `"v1"`}, "recordings.max_size": {`"1MiB"`, `"0"`}, "recordings.max_total": {`"1MiB"`, `"0"`}, "recordings.retention": {`"1h"`, `"0"`},
	"reviewer.timeout": {`"90s"`, `"x"`}, "reviewer.thresholds": {`{high = "high"}`, `{critical = "low"}`}, "reviewer.shadow": {"true", `"yes"`}, "reviewer.strict": {"true", "1"},
	"telemetry.enabled": {"true", `"yes"`},
	"hooks.approver":    {`["/usr/bin/ask", "-x"]`, `[""]`}, "hooks.approver_timeout": {"5", "-1"}, "hooks.approver_failure": {`"none"`, `"deni"`},
	"audit.path": {`"off"`, `"log"`}, "audit.checkpoint_key_file": {`"/k"`, `"k"`}, "audit.retention": {`"720h"`, `"-1"`},
	"audit.required": {"true", `"yes"`}, "audit.sync": {"true", ""},
	"history.runs": {"500", "0"}, "history.output": {`"256MiB"`, `"-1"`},
	"approval_wait": {`"10m"`, `"-1"`}, "ask_writes": {"true", ""}, "ask_in_console": {"true", ""},
	"network.mitm.rules": {
		`{ r = { hosts = ["api.example.com"], paths = ["/a"], query = ["a=b"], set = ["X-A: b, c"] } }`,
		`{ r = { hosts = ["api.example.com"], paths = ["a"] } }`},
	"network.credentials": {`{ g = { env = "T", hosts = ["api.example.com"], where = ["bearer"] } }`,
		`{ g = { env = "T", hosts = ["*"] } }`},
}

// The places in which keys may stand besides the top of the user's file. They are listed here
// and not made from the table, because the table is what is tested.
var (
	inProfiles = words("read write deny grants allow stage limits.timeout limits.kill_after limits.memory " +
		"limits.cpus limits.pids limits.disk limits.output network.mode")
	inProjects = words("read write deny grants allow network.mode network.allow environment.pass environment.set")
	narrowing  = words("sandbox approval ask_writes level rules deny tmp stage workspace caches observer " +
		"protect_hard_links ownership limits.timeout limits.kill_after limits.memory limits.cpus " +
		"limits.pids limits.disk limits.output network.mode network.deny network.mitm.exclude " +
		"network.allow_private network.allow_local_binding network.require_sni environment.inherit " +
		"environment.exclude environment.ignore_default_excludes reviewer.strict " +
		"audit.required audit.sync recordings.enabled")
	ceilings = append(words("read write grants allow network.allow network.publish network.upstream recordings.dir "+
		"environment.pass audit.path audit.checkpoint_key_file audit.retention "+
		"history.runs history.output"), narrowing...)
)

func words(s string) []string { return strings.Fields(s) }

// TestPlaces: each key in each place, with a right value, a wrong kind and a wrong text.
func TestPlaces(t *testing.T) {
	for _, place := range []struct {
		name  string
		kind  Layer
		table string
		keys  []string // nil for all
	}{
		{"user", User, "", nil},
		{"a profile", User, "profiles.p.", inProfiles},
		{"project", Project, "", narrowing},
		{"[project]", Project, "project.", inProjects},
		{"managed", Managed, "", ceilings},
	} {
		allowed := map[string]bool{}
		for _, k := range place.keys {
			allowed[k] = true
		}
		for _, k := range Keys() {
			t.Run(place.name+"/"+k.Name, func(t *testing.T) {
				name := k.Name
				if place.table != "" {
					name = cmp.Or(k.Profile, k.Project, k.Name)
				}
				read := func(value string) error {
					_, err := readFile(place.kind, "/f.toml", []byte(place.table+name+" = "+value), "/home/x")
					return err
				}
				sample, known := samples[k.Name]
				switch {
				case k.Later != "":
					for _, v := range []string{`"x"`, "1", "true", `["x"]`} {
						bad(t, read(v), "/f.toml:1:", "")
					}
					return
				case !known:
					t.Fatal("a key without a sample: add one")
				case place.keys != nil && !allowed[k.Name]:
					if err := bad(t, read(sample[0]), "/f.toml:1:", ""); !strings.Contains(err, ";") {
						t.Errorf("no fix in %q", err)
					}
					return
				}
				if err := read(sample[0]); err != nil {
					t.Error(err)
				}
				wrong := "1979-05-27"
				bad(t, read(wrong), "/f.toml:1:", name+" is ")
				if !k.hasNames() && k.Name != "rules" && k.Name != "approval" {
					bad(t, read("{ }"), "/f.toml:1:", "")
				}
				if sample[1] == "" || k.Name == "limits.timeout" {
					return
				}
				bad(t, read(sample[1]), "/f.toml:1:", "")
			})
		}
	}
}

// bad checks that an error is one sentence that begins with a place and contains a text.
func bad(t *testing.T, err error, place, text string) string {
	t.Helper()
	var file *FileError
	if !errors.As(err, &file) || !strings.HasPrefix(err.Error(), place) ||
		!strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v; want %s... %s", err, place, text)
		return ";"
	}
	return err.Error()
}

// TestFileErrors: the place and the fix of each mistake.
func TestFileErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind Layer
		text string
		want string
	}{
		{"a near miss", User, "sandox = 'read-only'", "1:1: unknown key sandox; did you mean \"sandbox\"?"},
		{"no near miss", User, "zzzzzz = 1", "1:1: unknown key zzzzzz; sallyport config schema lists the keys"},
		{"a near miss in a table", User, "[limits]\nmemry = 1", "2:1: unknown key limits.memry; did you mean \"limits.memory\"?"},
		{"valid elsewhere: in a table", User, "memory = 1", "1:1: unknown key memory; it is a key of [limits]"},
		{"valid elsewhere: in a profile", User, "extends = 'x'", "1:1: unknown key extends; it is a key of profiles, below [profiles.NAME]"},
		{"valid elsewhere: at the top", User, "[profiles.p]\nlevel = 'native'", "2:1: unknown key profiles.p.level; it cannot stand in a profile, but at the top of the file"},
		{"valid elsewhere: a variable in a profile", User, "[profiles.p.environment]\nset = {}", "1:13: unknown key"},
		{"quoted dots are no table", User, "'limits.memory' = 1", `1:1: unknown key "limits.memory"`},
		{"quoted dots beside a table", Project, "'limits.memory' = 1\n[limits]\nmemory = 2", `1:1: unknown key "limits.memory"`},
		{"wrong type", User, "deny = '.env'", "1:8: deny is an array of strings, not a string"},
		{"wrong element", User, "deny = ['.env', 3]", "1:17: deny is an array of strings; an element is a number"},
		{"wrong word", User, "level = 'nativ'", `1:9: level: invalid value "nativ" (native, bwrap, landlock); did you mean "native"?`},
		{"a table in place of a value", User, "[level]\nx = 1", "1:2: level is a string, not a table"},
		{"a value in place of a table", User, "limits = 3", "1:1: limits is a table; write [limits] and its keys below"},
		{"later", User, "[sessions]\nmax = 3", "2:1: sessions.max is not supported in this version (sessions of the command line); remove it"},
		{"ports by a project", Project, "[network]\npublish = ['3000']", "2:1: a project cannot set network.publish; set it in the user's configuration"},
		{"ports below [project]", Project, "[project.network]\npublish = ['3000']", "1:"},
		{"hosts of all owners", User, "[network]\nallow = ['*.co.uk']", "2:10: network.allow: \"*.co.uk\": everybody can have a name below \"co.uk\"; name a domain"},
		{"hosts by a project", Project, "[network]\nallow = ['a.b']", "2:1: a project opens things below [project] only; move network.allow there, as hosts"},
		{"profiles is no table", User, "profiles = 3", "1:1: profiles is a table; write [profiles.NAME] and its keys below"},
		{"a profile is no table", User, "profiles.x = 3", "1:10: profiles.x is a table"},
		{"the name of a mode", User, "[profiles.read-only]", `1:11: "read-only" cannot be the name of a profile; choose another one`},
		{"an older name of a mode", User, "[profiles.danger-full-access]", "1:11: "},
		{"a name with a colon", User, "[profiles.':x']", "1:11: "},
		{"no name", User, "[profiles.'']", "1:11: "},
		{"extends is no string", User, "[profiles.x]\nextends = ['y']", "2:1: profiles.x.extends is a string that is not empty, not an array"},
		{"a pattern that opens", User, "write = ['/usr/*']", `1:10: write: "/usr/*" is a pattern, and a pattern can only deny; name a directory`},
		{"a pattern of grants", User, "grants = ['cache:*']", `1:11: grants: unknown name "cache:*"`},
		{"a pattern in a managed profile", Managed, "[profiles.p]\ngrants = ['cache:*']", "2:11: "},
		{"a pattern of managed paths", Managed, "write = ['/usr/*']", "1:10: "},
		{"project profiles", Project, "[profiles.x]", "1:11: a project has no profiles; write what it opens below [project], and profiles into the user's configuration"},
		{"project opens", Project, "write = ['/usr']", "1:1: a project opens things below [project] only; move write there"},
		{"project sets", Project, "shell = 'zsh'", "1:1: a project cannot set shell; set it in the user's configuration"},
		{"project rules", Project, "rules = ['x.rules']", `1:10: rules: the rule files of a project are those in .sallyport/rules; move "x.rules" there`},
		{"[project] of a user", User, "[project]", "1:2: [project] belongs into .sallyport/config.toml of a project; write its keys at the top of this file"},
		{"project is no table", Project, "project = 1", "1:1: project is a table; write [project] and its keys below"},
		{"allow_rules", Project, "project.allow_rules = 'yes'", "1:23: project.allow_rules is true or false, not a string"},
		{"a ceiling without an order", Managed, "shell = 'zsh'", "1:1: shell has no order from narrow to wide, so it cannot be a ceiling; remove it"},
		{"a ceiling that opens", Managed, "rules = ['builtin:read-only']", "1:10: rules: builtin:read-only lets commands run, and a ceiling only narrows; remove it"},
		{"granular", User, "[approval]\nruls = true", "2:1: unknown key approval.ruls; did you mean \"rules\"?"},
		{"granular is no switch", User, "approval.rules = 1", "1:18: approval.rules is true or false, not a number"},
		{"a name with =", User, "environment.set = { 'A=B' = 'x' }", `1:21: environment.set: the name "A=B" has a =; leave it out`},
		{"NUL", User, `shell = "a\u0000"`, "1:9: shell: the value has a NUL character"},
		{"control characters are not printed", User, "\"\\u001b[2J\" = 1", "1:1: unknown key "},

		{"rules of a ceiling: the key", Managed, "[rules]\nprefix_rule = []", "2:1: unknown key rules.prefix_rule; the table rules of a managed file has prefix_rules only"},
		{"rules of a ceiling: none", Managed, "rules.prefix_rules = []", "1:7: rules.prefix_rules is an array of tables that is not empty; leave it out for none"},
		{"rules of a ceiling: no table", Managed, "rules.prefix_rules = ['git']", "1:23: a rule is a table, such as { pattern = ... }, not a string"},
		{"rules of a ceiling: a member", Managed, "rules.prefix_rules = [{ patern = [] }]", "1:25: unknown key patern of a rule; did you mean \"pattern\"?"},
		{"rules of a ceiling: pattern", Managed, "rules.prefix_rules = [{ pattern = 'git' }]", "1:35: pattern is an array, not a string"},
		{"rules of a ceiling: element", Managed, "rules.prefix_rules = [{ pattern = ['git'] }]", "1:36: an element of pattern is a table, such as { token = ... }, not a string"},
		{"rules of a ceiling: both", Managed, "rules.prefix_rules = [{ pattern = [{ token = 'a', any_of = ['b'] }] }]", "1:36: an element of pattern has either token or any_of"},
		{"rules of a ceiling: neither", Managed, "rules.prefix_rules = [{ pattern = [{}] }]", "1:36: an element of pattern has either token or any_of"},
		{"rules of a ceiling: token", Managed, "rules.prefix_rules = [{ pattern = [{ token = 1 }] }]", "1:46: token is a string, not a number"},
		{"rules of a ceiling: any_of", Managed, "rules.prefix_rules = [{ pattern = [{ any_of = 'a' }] }]", "1:47: any_of is an array, not a string"},
		{"rules of a ceiling: decision", Managed, "rules.prefix_rules = [{ decision = true }]", "1:36: decision is a string, not true or false"},
		{"rules of a ceiling: twice", Managed, "rules.prefix_rules = [{ decision = 'a', decision = 'b' }]", "1:41: decision is defined twice"},
		{"rules of a user: a table", User, "[rules]\nprefix_rules = []", "1:2: rules is an array of strings, not a table"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readFile(tt.kind, "/f.toml", []byte(tt.text), "/home/x")
			bad(t, err, "/f.toml:"+tt.want, "")
			if strings.ContainsRune(errorText(err), '\x1b') {
				t.Error("a control character is printed")
			}
		})
	}
}

// TestNoAccount: "~" in a managed file of a user without a home is an error, not a name.
func TestNoAccount(t *testing.T) {
	_, err := readFile(Managed, "/f.toml", []byte("deny = ['~/.ssh']"), "")
	bad(t, err, "/f.toml:1:9: deny: this user has no home directory in the user database; write ", "")
}

// TestRequirements: the rules of a ceiling prompt and forbid, and keep their place.
func TestRequirements(t *testing.T) {
	p := newPlace(t)
	load := func(text string) *rules.Set {
		e, err := (&world{managed: text}).resolve(t, p)
		if err != nil {
			t.Fatal(err)
		}
		return rules.Load(rules.Host{Dir: p.dir}, e.Rules()...)
	}
	set := load(`[rules]
prefix_rules = [
  { pattern = [{ token = "git" }, { any_of = ["push", "fetch"] }], decision = "prompt", justification = "ask" },
  { pattern = [{ token = "rm" }], decision = "forbidden" },
]`)
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"git push x": "[prompt]", "git fetch": "[prompt]",
		"rm x": "[forbidden]", "git status": "[]"} {
		got := []string{}
		for _, m := range set.Check(words(command)).Matches {
			got = append(got, m.Decision.String())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", command, got, want)
		}
	}
	for _, rule := range []string{`pattern = [{ token = "a" }], decision = "allow"`,
		`pattern = [{ token = "a" }]`, `pattern = [], decision = "prompt"`} {
		if err := load("rules.prefix_rules = [{ " + rule + " }]").Err(); err == nil ||
			!strings.Contains(err.Error(), filepath.Join(p.etc, managedName)+":1:") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// TestProfiles: what is wrong with profiles, also with those that are not used.
func TestProfiles(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct {
		name string
		w    world
		want string
	}{
		{"itself", world{user: "[profiles.a]\nextends = 'a'"}, "2:11: extends: the profiles extend each other in a circle (a -> a); remove one extends"},
		{"two", world{user: "[profiles.a]\nextends = 'b'\n[profiles.b]\nextends = 'a'"}, "4:11: extends: the profiles extend each other in a circle (a -> b -> a); remove one extends"},
		{"three, from outside", world{user: "sandbox = 'z'\n[profiles]\na.extends = 'b'\nb.extends = 'c'\nc.extends = 'a'\nz.extends = 'a'"}, "circle (a -> b -> c -> a)"},
		{"an unknown parent", world{user: "[profiles.build]\nextends = 'workspace-wrte'"}, `2:11: unknown profile "workspace-wrte"; did you mean "workspace-write"?`},
		{"an unknown profile", world{user: "sandbox = 'biuld'\n[profiles.build]"}, `1:11: unknown profile "biuld"; did you mean "build"?`},
		{"a flag", world{flags: []string{"sandbox=biuld"}, user: "[profiles.build]"}, `--sandbox: unknown profile "biuld"; did you mean "build"?`},
		{"a variable", world{environ: []string{"SALLYPORT_PROFILE=biuld"}, user: "[profiles.build]"}, `SALLYPORT_PROFILE: unknown profile "biuld"; did you mean "build"?`},
		{"a project", world{project: "sandbox = 'build'", user: "[profiles.build]"}, `1:11: sandbox: "build" is a profile; here it must be a mode, such as read-only`},
		{"a ceiling", world{managed: "sandbox = 'build'", user: "[profiles.build]"}, `1:11: sandbox: "build" is a profile; here it must be a mode, such as read-only`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.w.resolve(t, p)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	deep := "sandbox = 'p0'\n"
	for i := range 200 {
		deep += fmt.Sprintf("[profiles.p%d]\nextends = 'p%d'\nlimits.pids = %d\n", i, i+1, i+1)
	}
	e, err := (&world{user: deep + "[profiles.p200]\nextends = ':read-only'"}).resolve(t, p)
	if err != nil || e.Base != ReadOnly || said(e, "limits.pids") != "1" {
		t.Errorf("%v, %v", e, err)
	}
	e, err = (&world{managed: "[profiles.p]\nextends = 'read-only'",
		user: "sandbox = 'p'\n[profiles.p]\nextends = 'full-access'"}).resolve(t, p)
	if err != nil || e.Base != ReadOnly || len(e.Notes) != 1 ||
		!strings.Contains(e.Notes[0], "config.toml:2:11: the profile p is not used, because ") {
		t.Errorf("%v, %v", e, err)
	}
}

// TestUnreadable: a file that is there and cannot be read is an error in each place.
func TestUnreadable(t *testing.T) {
	make := map[string]func(string) error{
		"a directory":               func(n string) error { return os.Mkdir(n, 0o755) },
		"a link to nothing":         func(n string) error { return os.Symlink("/nonexistent/x", n) },
		"a link to itself":          func(n string) error { return os.Symlink(n, n) },
		"a device":                  func(n string) error { return os.Symlink("/dev/zero", n) },
		"what every user can write": func(n string) error { return errors.Join(os.WriteFile(n, nil, 0o600), os.Chmod(n, 0o602)) },
		"a huge file": func(n string) error {
			return errors.Join(os.WriteFile(n, []byte("#"), 0o600), os.Truncate(n, 100<<20))
		},
		"no TOML": func(n string) error { return os.WriteFile(n, []byte("a = "), 0o600) },
	}
	for name, make := range make {
		for _, file := range []string{"etc/managed.toml", "etc/managed.d/x.toml",
			"home/.config/sallyport/config.toml"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				p := newPlace(t)
				at := filepath.Join(filepath.Dir(p.etc), file)
				if err := make(at); err != nil {
					t.Fatal(err)
				}
				_, err := Load(Input{Managed: p.etc, User: p.user, Dir: p.dir})
				bad(t, err, at+":", "")
			})
		}
	}
	for name, make := range map[string]func(string) error{
		"a link to nothing": make["a link to nothing"],
		"a file":            func(n string) error { return os.WriteFile(n, nil, 0o600) },
	} {
		t.Run("managed.d is "+name, func(t *testing.T) {
			p := newPlace(t)
			at := filepath.Join(p.etc, managedDir)
			if err := errors.Join(os.Remove(at), make(at)); err != nil {
				t.Fatal(err)
			}
			_, err := Load(Input{Managed: p.etc, Dir: p.dir})
			bad(t, err, at+":", "")
		})
	}
	if _, err := Load(Input{Managed: "/nonexistent", User: "/nonexistent"}); err != nil {
		t.Error(err)
	}
	_, err := Load(Input{File: "/nonexistent/c.toml"})
	bad(t, err, "/nonexistent/c.toml: ", "cannot be read: no such file or directory")
	// two broken files are both named
	p := newPlace(t)
	_, err = (&world{managed: "x = 1", user: "y = 1"}).load(t, p)
	if !strings.Contains(errorText(err), "managed.toml:1:1") ||
		!strings.Contains(errorText(err), "config.toml:1:1") {
		t.Error(err)
	}
}

// TestOnlyManaged: nothing else is read.
func TestOnlyManaged(t *testing.T) {
	p := newPlace(t)
	if _, err := (&world{managed: "level = 'native'", user: "broken"}).load(t, p); err == nil {
		t.Error("the file is not broken")
	}
	c, err := Load(Input{Managed: p.etc, User: p.user, OnlyManaged: true,
		Environ: []string{"SALLYPORT_LEVEL=x"}, File: "/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := c.Resolve(nil); err != nil || said(e, "level") != "native -bwrap" {
		t.Errorf("%v, %v", e, err)
	}
}

// TestVariables: a value that is wrong names the variable.
func TestVariables(t *testing.T) {
	for _, k := range Keys() {
		v := k.Variable()
		if (v == "") != (strings.Contains(k.Name, ".") || k.Later != "") || v == "SALLYPORT_SANDBOX" {
			t.Errorf("%s: %q", k.Name, v)
		}
		if v == "" {
			continue
		}
		_, err := Load(Input{Environ: []string{v + "="}})
		bad(t, err, v+": ", "")
	}
}

// TestPosIsZero: the place of a file as a whole has no line.
func TestPosIsZero(t *testing.T) {
	if got := (Origin{File: "/a\nb"}).Place() + " " +
		(Origin{File: "f", Pos: syntax.TOMLPos{Line: 1, Column: 2}}).Place(); got != `/a\nb f:1:2` {
		t.Error(got)
	}
}
