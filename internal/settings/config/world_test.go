// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A world is what layers say, as texts. DIR, HOME and ETC in them are directories.
type world struct {
	managed  string // managed.toml; "-" for an empty one
	more     string // managed.d/10.toml
	user     string
	project  string
	environ  []string
	flags    []string // "KEY=VALUE"
	terminal bool
	rules    string // of the project
}

// A place is where a world is.
type place struct{ etc, user, home, dir string }

// newPlace makes the directories.
func newPlace(t testing.TB) place {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{filepath.Join(at, "etc"), filepath.Join(at, "home/.config/sallyport"),
		filepath.Join(at, "home"), filepath.Join(at, "w")}
	for _, d := range []string{filepath.Join(p.etc, managedDir), p.user, p.dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// names puts directories into a text.
func (p place) names(text string) string {
	return strings.NewReplacer("DIR", p.dir, "HOME", p.home, "ETC", p.etc).Replace(text)
}

// load reads a world.
func (w *world) load(t testing.TB, p place) (*Config, error) {
	t.Helper()
	for name, text := range map[string]string{
		filepath.Join(p.etc, managedName):           w.managed,
		filepath.Join(p.etc, managedDir, "10.toml"): w.more,
		filepath.Join(p.user, fileName):             w.user,
	} {
		err := os.Remove(name)
		if text != "" {
			err = os.WriteFile(name, []byte(strings.TrimPrefix(p.names(text), "-")), 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	in := Input{
		Managed: p.etc, User: p.user, Dir: p.dir, Home: p.home, Terminal: w.terminal,
		Account: func() string { return filepath.Join(p.home, "account") },
	}
	for _, v := range w.environ {
		in.Environ = append(in.Environ, p.names(v))
	}
	if w.project != "" {
		in.Project = append(in.Project, ProjectFile{filepath.Join(p.dir, ".sallyport", fileName),
			[]byte(p.names(w.project))})
	}
	if w.rules != "" {
		in.Project = append(in.Project, ProjectFile{filepath.Join(p.dir, ".sallyport/rules/a.rules"),
			[]byte(w.rules)})
	}
	return Load(in)
}

// given are the flags.
func (w *world) given(p place) Values {
	v := Values{}
	for _, f := range w.flags {
		key, text, _ := strings.Cut(p.names(f), "=")
		v[key] = append(v[key], Setting{text, Origin{Layer: Flags, File: "--" + key}})
	}
	return v
}

// resolve reads a world and says what holds.
func (w *world) resolve(t testing.TB, p place) (*Effective, error) {
	t.Helper()
	c, err := w.load(t, p)
	if err != nil {
		return nil, err
	}
	return c.Resolve(w.given(p))
}

// said is the value of a key, as in a file, and for each thing that was cut " -VALUE".
func said(e *Effective, key string) string {
	k := Find(key)
	text := strings.Join(e.Values[key].Texts(), ",")
	if k.Type == Map {
		text = encode(k.data(e.Values[key]))
	}
	if key == "approval" && len(e.Granular) > 0 {
		text += fmt.Sprint(e.Granular)
	}
	for _, c := range e.Values[key].Cut {
		text += " -" + c.Text
	}
	return text
}

// mergeRows are who wins.
var mergeRows = []struct {
	name  string
	world world
	key   string
	want  string // as said says it
	from  Layer
}{
	{"nothing", world{}, "sandbox", "workspace-write", BuiltIn},
	{"user", world{user: `sandbox = "read-only"`}, "sandbox", "read-only", User},
	{"variable over user", world{user: `level = "native"`, environ: []string{"SALLYPORT_LEVEL=landlock"}}, "level", "landlock", Environment},
	{"the last variable", world{environ: []string{"SALLYPORT_LEVEL=landlock", "SALLYPORT_LEVEL=native"}}, "level", "native", Environment},
	{"flag over variable", world{environ: []string{"SALLYPORT_LEVEL=landlock"}, flags: []string{"level=bwrap"}}, "level", "bwrap", Flags},
	{"a variable with commas", world{environ: []string{"SALLYPORT_DENY=a,b"}}, "deny", "a,b", Environment},
	{"SALLYPORT_PROFILE is sandbox", world{environ: []string{"SALLYPORT_PROFILE=full-access"}}, "sandbox", "full-access", Environment},
	{"SALLYPORT_SANDBOX is told to commands only", world{environ: []string{"SALLYPORT_SANDBOX=full-access"}}, "sandbox", "workspace-write", BuiltIn},
	{"SALLYPORT_NETWORK too", world{environ: []string{"SALLYPORT_NETWORK=host"}}, "network.mode", "none", BuiltIn},
	{"an approver is one value", world{user: `hooks.approver = ["a", "b"]`, flags: []string{"hooks.approver=c"}}, "hooks.approver", "c", Flags},
	{"lists add", world{user: `deny = ["a"]`, project: `deny = ["b", "a"]`, flags: []string{"deny=c"}}, "deny", "a,b,c", User},
	{"maps replace by name", world{user: "environment.set = { A = '1', B = '2' }", flags: []string{"environment.set=A=3"}}, "environment.set", `{ A = "3", B = "2" }`, User},
	{"allowed hosts mean the managed network", world{user: "[network]\nallow = ['example.com']"}, "network.mode", "full", User},
	{"but not beside a mode", world{user: "[network]\nmode = 'limited'\nallow = ['example.com']"}, "network.mode", "limited", User},
	{"flags with hosts", world{user: "network.mode = 'none'", flags: []string{"network.allow=example.com"}}, "network.mode", "full", Flags},
	{"flags with denied hosts", world{user: "network.mode = 'host'", flags: []string{"network.deny=example.com"}}, "network.mode", "full", Flags},
	{"flags with hosts and a mode", world{flags: []string{"network.deny=example.com", "network.mode=none"}}, "network.mode", "none", Flags},
	{"flags with hosts below limited", world{user: "network.mode = 'limited'", flags: []string{"network.allow=example.com"}}, "network.mode", "limited", User},
	{"denied hosts of a file", world{user: "network.deny = ['example.com']"}, "network.mode", "none", BuiltIn},
	{"denied hosts of a project", world{user: "network.deny = ['a.b']", project: "network.deny = ['c.d']"}, "network.deny", "a.b,c.d", User},
	{"hosts of a project", world{project: "[project]\nhosts = ['example.com:443']"}, "network.allow",
		"example.com:443", Project},
	{"they mean the managed network", world{project: "[project]\nhosts = ['a.b']"}, "network.mode", "full", Project},
	{"private addresses by a project", world{project: "network.allow_private = true"}, "network.allow_private", "false -true", BuiltIn},
	{"no SNI by a project", world{user: "network.require_sni = true", project: "network.require_sni = false"}, "network.require_sni", "true -false", User},
	{"network of full access", world{user: `sandbox = "full-access"`}, "network.mode", "host", BuiltIn},
	{"approval without a terminal", world{}, "approval", "never", BuiltIn},
	{"approval without a terminal that waits", world{user: `approval_wait = 5`}, "approval", "on-request", BuiltIn},
	{"approval without a terminal that does not wait", world{user: `approval_wait = 0`}, "approval", "never", BuiltIn},
	{"approval in a console", world{user: `ask_in_console = true`}, "approval", "on-request", BuiltIn},
	{"approval on a terminal", world{terminal: true}, "approval", "on-request", BuiltIn},

	{"-s beside write", world{user: `write = ["/usr"]`, flags: []string{"sandbox=read-only"}}, "write", " -/usr", BuiltIn},
	{"-s beside read", world{user: `read = ["/usr"]`, flags: []string{"sandbox=:minimal"}}, "read", " -/usr", BuiltIn},
	{"-s beside grants", world{user: `grants = ["git"]`, flags: []string{"sandbox=read-only"}}, "grants", " -git", BuiltIn},
	{"-s beside deny", world{user: `deny = ["/usr"]`, flags: []string{"sandbox=read-only"}}, "deny", "/usr", User},
	{"-s that is not narrower", world{user: `write = ["/usr"]`, flags: []string{"sandbox=workspace-write"}}, "write", "/usr", User},
	{"--rw beside -s", world{flags: []string{"sandbox=read-only", "write=/usr"}}, "write", "/usr", Flags},

	{"rules: the default", world{}, "rules", BuiltinReadOnly, BuiltIn},
	{"rules: none", world{user: "rules = []"}, "rules", "", BuiltIn},
	{"rules: others", world{user: "rules = ['a.rules']"}, "rules", "a.rules", User},
	{"rules: a flag adds", world{flags: []string{"rules=a.rules"}}, "rules", BuiltinReadOnly + ",a.rules", BuiltIn},
	{"rules: a project leaves out the default", world{project: "rules = []"}, "rules", "", BuiltIn},
	{"rules: a project keeps it", world{project: "rules = ['builtin:read-only']"}, "rules", BuiltinReadOnly, Project},
	{"rules: a project does not bring it back", world{user: "rules = []", project: "rules = ['builtin:read-only']"}, "rules", " -" + BuiltinReadOnly, BuiltIn},

	{"project: narrower word", world{project: `sandbox = "read-only"`}, "sandbox", "read-only", Project},
	{"project: wider word", world{user: `sandbox = "read-only"`, project: `sandbox = "workspace-write"`}, "sandbox", "read-only -workspace-write", User},
	{"project: a mode that is neither", world{user: `sandbox = "read-only"`, project: `sandbox = ":minimal"`}, "sandbox", "read-only -:minimal", User},
	{"project: approval", world{terminal: true, project: `approval = "untrusted"`}, "approval", "untrusted", Project},
	{"project: never asks less", world{terminal: true, project: `approval = "never"`}, "approval", "on-request -never", BuiltIn},
	{"project: asking what the user refuses", world{terminal: true, user: "approval = { rules = false }", project: `approval = "on-request"`}, "approval", "granular -on-request", User},
	{"project: kinds that the user refuses", world{terminal: true, user: "approval = { rules = true }", project: "approval = { skill_approval = true }"}, "approval", "granular[rules] -granular", User},
	{"project: smaller", world{user: `limits.memory = "1GiB"`, project: `limits.memory = "1MB"`}, "limits.memory", "1MB", Project},
	{"project: larger", world{user: `limits.memory = "1GiB"`, project: `limits.memory = "2GiB"`}, "limits.memory", "1GiB -2GiB", User},
	{"project: a limit where there is none", world{project: "limits.pids = 7"}, "limits.pids", "7", Project},
	{"project: no time limit is the largest", world{user: "limits.timeout = 60", project: "limits.timeout = 0"}, "limits.timeout", "60 -0", User},
	{"project: killing at once", world{project: "limits.kill_after = 0"}, "limits.kill_after", "0", Project},
	{"project: observer", world{user: "observer = false", project: "observer = true"}, "observer", "true", Project},
	{"project: no observer", world{project: "observer = false"}, "observer", "true -false", BuiltIn},
	{"project: no caches", world{project: "caches = false"}, "caches", "false", Project},
	{"project: caches", world{user: "caches = false", project: "caches = true"}, "caches", "false -true", User},
	{"project: /tmp", world{project: `tmp = "host"`}, "tmp", "private -host", BuiltIn},
	{"project: another /tmp", world{user: `tmp = "host"`, project: `tmp = "/etc"`}, "tmp", "host -/etc", User},
	{"project: opens by [project] only", world{project: "[project]\nwrite = ['/usr']"}, "write", "/usr", Project},
	{"flags after a project widen", world{project: `sandbox = "read-only"`, flags: []string{"sandbox=full-access"}}, "sandbox", "full-access", Flags},

	{"profile", world{user: "sandbox = 'p'\n[profiles.p]\nextends = 'read-only'\nlimits.pids = 5"}, "limits.pids", "5", User},
	{"profile after the keys of its file", world{user: "sandbox = 'p'\nlimits.pids = 9\n[profiles.p]\nlimits.pids = 5"}, "limits.pids", "5", User},
	{"variable after the profile", world{user: "sandbox = 'p'\n[profiles.p]\nnetwork = 'host'", flags: []string{"network.mode=none"}}, "network.mode", "none", Flags},
	{"a flag beside -P counts more", world{user: "[profiles.p]\nlimits.pids = 5", flags: []string{"sandbox=p", "limits.pids=6"}}, "limits.pids", "6", Flags},
	{"-P after the file", world{user: "limits.pids = 9\n[profiles.p]\nlimits.pids = 5", flags: []string{"sandbox=p"}}, "limits.pids", "5", User},
	{"a chain adds", world{user: "sandbox = 'a'\n[profiles.a]\nextends = 'b'\ndeny = ['a']\n[profiles.b]\nextends = 'read-only'\ndeny = ['b']"}, "deny", "b,a", User},
	{"a project narrows below a profile that denies", world{user: "sandbox = 'p'\n[profiles.p]\nextends = 'workspace-write'\ndeny = ['secret']", project: `sandbox = "read-only"`}, "deny", "secret", User},
	{"and what the profile opens goes", world{user: "sandbox = 'p'\n[profiles.p]\nextends = 'workspace-write'\nwrite = ['/usr']", project: `sandbox = "read-only"`}, "write", " -/usr", User},
	{"a project names the mode of the profile", world{user: "sandbox = 'p'\n[profiles.p]\nextends = 'workspace-write'\nlimits.pids = 5", project: `sandbox = "workspace-write"`}, "limits.pids", "5", User},
}

// TestMerge: who wins.
func TestMerge(t *testing.T) {
	p := newPlace(t)
	for _, tt := range mergeRows {
		t.Run(tt.name, func(t *testing.T) {
			e, err := tt.world.resolve(t, p)
			if err != nil {
				t.Fatal(err)
			}
			v := e.Values[tt.key]
			if got := said(e, tt.key); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if len(v.Settings) > 0 && v.Settings[0].Origin.Layer != tt.from {
				t.Errorf("from %v, want %v", v.Settings[0].Origin.Layer, tt.from)
			}
		})
	}
}

// ceilingRows are wishes below ceilings.
var ceilingRows = []struct {
	name    string
	managed string
	more    string
	key     string
	wish    string // TOML in a file; text of a flag
	want    string // with the file; the flag is an error if something is cut
}{
	{"words", "level = 'bwrap'", "", "level", "landlock", "bwrap -landlock"},
	{"words within", "level = 'bwrap'", "", "level", "native", "native"},
	{"a mode", "sandbox = 'workspace-write'", "", "sandbox", "full-access", "workspace-write -full-access"},
	{"a mode within", "sandbox = 'workspace-write'", "", "sandbox", ":minimal", ":minimal"},
	{"the narrowest file", "level = 'landlock'", "level = 'native'", "level", "bwrap", "native -bwrap"},
	{"the narrowest file, first", "level = 'native'", "level = 'landlock'", "level", "bwrap", "native -bwrap"},
	{"approval", "approval = 'on-request'", "", "approval", "never", "on-request -never"},
	{"approval within", "approval = 'on-request'", "", "approval", "untrusted", "untrusted"},
	{"smaller", "limits.memory = '1GiB'", "", "limits.memory", "2GiB", "1GiB -2GiB"},
	{"smaller within", "limits.memory = '1GiB'", "", "limits.memory", "1GB", "1GB"},
	{"no time limit", "limits.timeout = 60", "", "limits.timeout", "0", "60 -0"},
	{"true", "observer = true", "", "observer", "false", "true -false"},
	{"false", "caches = false", "", "caches", "true", "false -true"},
	{"/tmp", "tmp = 'host'", "", "tmp", "/etc", "private -/etc"},
	{"/tmp, a directory", "tmp = '/srv'", "", "tmp", "host", "private -host"},
	{"/tmp within", "tmp = '/srv'", "", "tmp", "private", "private"},
	{"/tmp below a mode", "sandbox = 'workspace-write'", "", "tmp", "/etc", "private -/etc"},
	{"/tmp in the workspace", "sandbox = 'workspace-write'", "", "tmp", "DIR/build", "DIR/build"},
	{"/tmp that is listed", "sandbox = 'workspace-write'\nwrite = ['/etc']", "", "tmp", "/etc", "/etc"},

	{"hosts within", "network.allow = ['**.example.org']", "", "network.allow", "*.a.example.org:443", "*.a.example.org:443"},
	{"hosts beyond", "network.allow = ['*.example.org']", "", "network.allow", "**.example.org", " -**.example.org"},
	{"an address beyond names", "network.allow = ['*']", "", "network.allow", "127.0.0.1", " -127.0.0.1"},
	{"hosts below a mode", "sandbox = 'workspace-write'", "", "network.allow", "a.b", "a.b"},
	{"private addresses", "network.allow_private = false", "", "network.allow_private", "true", "false -true"},

	{"ports, listed", "network.publish = ['3000']", "", "network.publish", "3000:3000", "3000:3000"},
	{"ports, as 0 spells it", "network.publish = ['3000:3000']", "", "network.publish", "3000:0", "3000:0"},
	{"ports, another one here", "network.publish = ['3000']", "", "network.publish", "3000:80", " -3000:80"},
	{"ports, another one inside", "network.publish = ['3000']", "", "network.publish", "80:3000", " -80:3000"},
	{"ports, all", "network.publish = ['*']", "", "network.publish", "80", "80"},
	{"ports, by what is inside", "network.publish = ['80:*']", "", "network.publish", "80", "80"},
	{"ports, by what is here", "network.publish = ['*:80?0']", "", "network.publish", "1:8080", "1:8080"},
	{"ports, a pattern of one number only", "network.publish = ['80*']", "", "network.publish", "80", " -80"},
	{"ports, none", "network.publish = []", "", "network.publish", "3000", " -3000"},
	{"ports, the narrowest file", "network.publish = ['*']", "network.publish = []", "network.publish", "3000", " -3000"},
	{"ports below a mode", "sandbox = 'workspace-write'", "", "network.publish", "3000", "3000"},
	{"ports without a network", "network.mode = 'none'", "", "network.publish", "3000", " -3000"},
	{"ports without a network, listed", "network.mode = 'none'\nnetwork.publish = ['3000']", "", "network.publish", "3000", "3000"},
	{"ports below limited", "network.mode = 'limited'", "", "network.publish", "3000", "3000"},

	{"grants of loopback without a list of them", "grants = ['git']", "", "grants", "loopback:3000", " -loopback:3000"},
	{"grants of loopback", "grants = ['loopback:*']", "", "grants", "loopback:3000", "loopback:3000"},
	{"grants of loopback, another port", "grants = ['loopback:3001']", "", "grants", "loopback:3000", " -loopback:3000"},
	{"grants of loopback below hosts", "network.allow = ['localhost:3000']", "", "grants", "loopback:3000", " -loopback:3000"},
	{"grants of loopback, all hosts listed", "network.allow = ['localhost:3000', '127.0.0.1', '[::1]:3000']", "", "grants", "loopback:3000", "loopback:3000"},

	{"write below a mode", "sandbox = 'workspace-write'", "", "write", "/etc", " -/etc"},
	{"write in the workspace", "sandbox = 'workspace-write'", "", "write", "build", "build"},
	{"write through a link", "sandbox = 'workspace-write'", "", "write", "etc", " -etc"},
	{"write above", "sandbox = 'workspace-write'", "", "write", "build/../..", " -build/../.."},
	{"write to what a mode protects", "sandbox = 'workspace-write'", "", "write", ".git", " -.git"},
	{"write to it through a link", "sandbox = 'workspace-write'", "", "write", "git", " -git"},
	{"write to nothing", "sandbox = 'workspace-write'", "", "write", "none", " -none"},
	{"write with read-only", "sandbox = 'read-only'", "", "write", "build", " -build"},
	{"write that is listed", "write = ['/etc']", "", "write", "/etc/ssl", "/etc/ssl"},
	{"write that is not", "write = ['/etc']", "", "write", "/usr", " -/usr"},
	{"a name that begins like a listed one", "write = ['DIR/buil']", "", "write", "DIR/build", " -DIR/build"},
	{"write, nothing listed", "write = []", "", "write", "/usr", " -/usr"},
	{"both files must list it", "write = ['/etc']", "write = ['/usr']", "write", "/etc", " -/etc"},
	{"~ is not what HOME says", "write = ['~/work']", "", "write", "/etc", " -/etc"},
	{"~ is that of the user database", "write = ['~/work']", "", "write", "HOME/account/work", "HOME/account/work"},
	{":home too", "write = [':home']", "", "write", ":home", " -:home"},
	{"read below a mode opens stores of secrets", "sandbox = 'workspace-write'", "", "read", "/etc", " -/etc"},
	{"read in the workspace", "sandbox = 'read-only'", "", "read", "build", "build"},
	{"read below full access", "sandbox = 'full-access'", "", "read", "/etc", "/etc"},
	{"read below a denial", "deny = ['/etc']", "", "read", "/etc/ssl", " -/etc/ssl"},
	{"write below a denial, listed", "deny = ['/etc']\nwrite = ['/']", "", "write", "/etc/ssl", " -/etc/ssl"},
	{"write below a denial of the other file", "write = ['/']", "deny = ['/etc']", "write", "/etc/ssl", " -/etc/ssl"},
	{"write beside a denial", "deny = ['/etc/ssl']", "", "write", "/usr", "/usr"},
	{"the platform's files", "sandbox = ':minimal'", "", "read", ":minimal", ":minimal"},

	{"grants", "grants = ['git', 'cache:*']", "", "grants", "cache:npm", "cache:npm"},
	{"grants that are not listed", "grants = ['git', 'cache:*']", "", "grants", "ssh-agent", " -ssh-agent"},
	{"grants below a mode", "sandbox = 'workspace-write'", "", "grants", "git", " -git"},
	{"grants without a ceiling", "level = 'bwrap'", "", "grants", "git", "git"},
	{"allow", "allow = ['unix']", "", "allow", "userns", " -userns"},
	{"allow below a mode", "sandbox = 'workspace-write'", "", "allow", "unix", " -unix"},
	{"pass", "environment.pass = ['CI_*']", "", "environment.pass", "CI_TOKEN", "CI_TOKEN"},
	{"pass that is not listed", "environment.pass = ['CI_*']", "", "environment.pass", "AWS_KEY", " -AWS_KEY"},
	{"pass below a mode", "sandbox = 'workspace-write'", "", "environment.pass", "AWS_KEY", "AWS_KEY"},
}

// TestCeiling: what files ask for beyond the ceiling is cut, what flags ask for is an error.
func TestCeiling(t *testing.T) {
	p := newPlace(t)
	for _, d := range []string{"build", "githooks", ".git"} {
		if err := os.Mkdir(filepath.Join(p.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc", filepath.Join(p.dir, "etc")),
		os.Symlink(".git", filepath.Join(p.dir, "git")),
		os.MkdirAll(filepath.Join(p.home, "account/work"), 0o755),
		os.Symlink("/", filepath.Join(p.home, "work")),
		os.Symlink(p.dir, filepath.Join(p.home, "to-w"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range ceilingRows {
		t.Run(tt.name, func(t *testing.T) {
			k := Find(tt.key)
			value := "'" + tt.wish + "'"
			switch k.Type {
			case List:
				value = "[" + value + "]"
			case Bool:
				value = tt.wish
			}
			w := world{managed: tt.managed, more: tt.more, user: tt.key + " = " + value}
			e, err := w.resolve(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := said(e, tt.key); got != p.names(tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			cut := len(e.Values[tt.key].Cut) > 0
			if cut != (len(e.Notes) > 0) || cut && !strings.Contains(e.Notes[0], "config.toml:1:") {
				t.Errorf("notes %q", e.Notes)
			}
			w.user, w.flags = "", []string{tt.key + "=" + tt.wish}
			_, err = w.resolve(t, p)
			var over *CeilingError
			if errors.As(err, &over) != cut || err != nil && !cut {
				t.Errorf("a flag: %v", err)
			}
			if cut && err != nil && !strings.Contains(err.Error(), p.etc+"/managed.") {
				t.Errorf("no place in %q", err)
			}
		})
	}
}

// TestCeilingMeets: modes of which neither covers the other leave what both allow, and granular
// ceilings bound what is asked.
func TestCeilingMeets(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct {
		name      string
		w         world
		base, key string
		want      string
	}{
		{"read-only below :minimal", world{managed: "sandbox = ':minimal'", user: "sandbox = 'read-only'\nread = ['/etc']"}, NoBase, "read", ":workspace -/etc"},
		{":minimal below read-only", world{managed: "sandbox = 'read-only'", user: "sandbox = ':minimal'"}, NoBase, "read", ":workspace"},
		{"a profile that is cut keeps what it denies", world{managed: "sandbox = 'workspace-write'", user: "sandbox = 'p'\n[profiles.p]\nextends = 'full-access'\ndeny = ['x']\nwrite = ['/usr']"}, WorkspaceWrite, "deny", "x"},
		{"and loses what it opens", world{managed: "sandbox = 'workspace-write'", user: "sandbox = 'p'\n[profiles.p]\nextends = 'full-access'\ndeny = ['x']\nwrite = ['/usr']"}, WorkspaceWrite, "write", " -/usr"},
		{"managed denials are added", world{managed: "deny = ['~/x', '/y']", user: "deny = ['z']"}, WorkspaceWrite, "deny", "z,HOME/account/x,/y"},
		{"a granular ceiling", world{managed: "approval = { rules = true }", terminal: true}, WorkspaceWrite, "approval", "granular[rules] -on-request"},
		{"and a wish", world{managed: "approval = { rules = true }", flags: []string{"approval=on-request"}}, WorkspaceWrite, "approval", "granular[rules] -on-request"},
		{"and kinds", world{managed: "approval = { rules = true, skill_approval = true }", user: "approval = { rules = true, sandbox_approval = true }"}, WorkspaceWrite, "approval", "granular[rules]"},
		{"two granular ceilings", world{managed: "approval = { rules = true }", more: "approval = { skill_approval = true }", terminal: true}, WorkspaceWrite, "approval", "granular -on-request"},
		{"full access below a ceiling for hosts", world{managed: "network.deny = ['a.b']", user: "sandbox = 'full-access'"}, FullAccess, "network.mode", "full -host"},
		{"hosts below a ceiling of limited", world{managed: "network.mode = 'limited'", flags: []string{"network.allow=a.b"}}, WorkspaceWrite, "network.mode", "limited"},
		{"the host's network where no host may be allowed", world{managed: "network.allow = []", user: "network.mode = 'host'"}, WorkspaceWrite, "network.mode", "full -host"},
		{"the host's network below a ceiling for hosts", world{managed: "network.allow = ['a.b']", user: "network.mode = 'host'"}, WorkspaceWrite, "network.mode", "full -host"},
		{"full access below a ceiling for the network", world{managed: "network.mode = 'none'", user: "sandbox = 'full-access'"}, FullAccess, "network.mode", "none -host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := tt.w.resolve(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := said(e, tt.key); e.Base != tt.base || got != p.names(tt.want) {
				t.Errorf("%s, %s; want %s, %s", e.Base, got, tt.base, tt.want)
			}
		})
	}
}

// TestCheckHosts: what is denied is judged, or nothing runs.
func TestCheckHosts(t *testing.T) {
	p := newPlace(t)
	for text, ok := range map[string]bool{
		"network.mode = 'host'": true, "network.deny = ['a.b']": true, "network.deny = ['a.b']\nnetwork.mode = 'full'": true,
		"network.deny = ['a.b']\nnetwork.mode = 'host'": false, "network.deny = ['a.b']\nsandbox = 'full-access'": false,
	} {
		e, err := (&world{user: text}).resolve(t, p)
		if err != nil {
			t.Fatal(err)
		}
		var bad *FlagError
		if err := e.CheckHosts(); (err == nil) != ok || err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPermits: what no approval may open.
func TestPermits(t *testing.T) {
	p := newPlace(t)
	if err := os.Mkdir(filepath.Join(p.dir, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, managed, required string
		ok                      bool
	}{
		{"no ceiling", "", "outside", true},
		{"another ceiling", "level = 'bwrap'", "outside", true},
		{"full access", "sandbox = 'full-access'", "outside", true},
		{"leaving a mode", "sandbox = 'workspace-write'", "outside", false},
		{"leaving denials", "deny = ['/x']", "outside", false},
		{"leaving a network", "network.mode = 'full'", "outside", false},
		{"leaving hosts that are denied", "network.deny = ['a.b']", "outside", false},
		{"leaving hosts that are listed", "network.allow = []", "outside", false},
		{"the network of the host", "network.mode = 'host'", "outside", true},
		{"a path", "sandbox = 'workspace-write'", "write:/etc", false},
		{"a path in the workspace", "sandbox = 'workspace-write'", "write:DIR/build", true},
		{"a path that is listed", "write = ['/etc']", "write:/etc/ssl", true},
		{"a path that is not", "write = ['/etc']", "write:/usr", false},
		{"a path below a denial", "deny = ['/etc']", "write:/etc/ssl", false},
		{"a path to read below a denial", "deny = ['/etc']", "read:/etc/ssl", false},
		{"a path beside a denial", "deny = ['/etc']", "write:/usr", true},
		{"a store of secrets", "sandbox = 'workspace-write'", "read:/etc", false},
		{"a grant", "grants = ['cache:*']", "grant:git", false},
		{"a grant that is listed", "grants = ['cache:*']", "grant:cache:npm", true},
		{"an opening", "sandbox = 'read-only'", "allow:unix", false},
		{"a host", "network.mode = 'none'", "host:example.org:443", false},
		{"a host that is listed", "network.allow = ['*.example.org']", "host:a.example.org:443", true},
		{"a host where none is", "network.allow = []", "host:example.org:443", false},
		{"a host that is not", "network.allow = ['*.example.org']", "host:example.org:443", false},
		{"a host, permitted", "network.mode = 'limited'", "host:example.org:443", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := (&world{managed: tt.managed}).resolve(t, p)
			if err != nil {
				t.Fatal(err)
			}
			err = e.Permits([]string{p.names(tt.required)})
			var over *CeilingError
			if (err == nil) != tt.ok || err != nil &&
				(!errors.As(err, &over) || !strings.Contains(err.Error(), p.etc+"/managed.toml:")) {
				t.Errorf("%v", err)
			}
		})
	}
}
