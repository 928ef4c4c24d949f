// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// profiles are those that flags of these tests choose.
const profiles = `
[profiles.offline]
extends = "workspace-write"
network = "none"
deny = ["/var/offline"]
[profiles.reading]
extends = "workspace-write"
network = "limited"
[profiles.open]
extends = "workspace-write"
network = "full"
[profiles.npm]
extends = "workspace-write"
grants = ["net:npm"]
[profiles.plain]
extends = "read-only"
`

// A workbench is a home with settings, and a workspace.
type workbench struct {
	env Env
	dir string
}

func newWorkbench(t *testing.T, settings, managed string) *workbench {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	w := &workbench{dir: dir, env: Env{Dir: dir, Environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, Asks: true}}
	own := filepath.Join(home, ".config", "sallyport")
	err := errors.Join(os.MkdirAll(own, 0o700), os.WriteFile(filepath.Join(own, "config.toml"), []byte(settings+profiles), 0o600))
	if managed != "" {
		w.env.Managed = filepath.Join(home, "etc")
		err = errors.Join(err, os.MkdirAll(w.env.Managed, 0o700), os.WriteFile(filepath.Join(w.env.Managed, "managed.toml"), []byte(managed), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// options returns what flags and settings say together; an error is that of the flags or of the settings.
func (w *workbench) options(flags ...string) (*Options, *config.Effective, error) {
	o := new(Options)
	words, err := syntax.ParseFlags(o.Flags(), append(slices.Clone(flags), "--", "true"))
	if err == nil {
		err = o.Check(words)
	}
	if err != nil {
		return o, nil, err
	}
	e, err := o.Configure(&w.env, w.dir)
	return o, e, err
}

// A hostFlag is a flag that decides about the network.
type hostFlag struct {
	words []string
	names string // the beginning of a host
	modes string // "proxy", "host", or "full" for a mode that settings of the flag name
}

var hostFlags = []hostFlag{
	{words: []string{"--net", "none"}}, {words: []string{"--net", "proxy"}, modes: "proxy"}, {words: []string{"--net", "host"}, modes: "host"},
	{words: []string{"--allow-host", "named.example.com"}, names: "named."}, {words: []string{"--allow-host", "localhost:3000"}, names: "localhost:"},
	{words: []string{"--allow-host", "10.0.0.5"}, names: "10."}, {words: []string{"--deny-host", "other.example.com"}}, {words: []string{"--deny-host", "listed.example.com"}},
	{words: []string{"--ask-net"}}, {words: []string{"--grant", "net:npm"}, names: "registry."}, {words: []string{"--grant", "git"}},
	{words: []string{"-s", "read-only"}}, {words: []string{"-s", "workspace-write"}}, {words: []string{"-s", "full-access"}, modes: "host"},
	{words: []string{"-P", "plain"}}, {words: []string{"-P", "offline"}}, {words: []string{"-P", "reading"}, modes: "limited"}, {words: []string{"-P", "open"}, modes: "full"},
	{words: []string{"-P", "npm"}, names: "registry."}, {words: []string{"--publish", "3000"}}, {words: []string{"--allow", "unix"}}, {words: []string{"--level", "landlock"}},
	{words: []string{"--tmp", "host"}}, {words: []string{"--escalate"}}, {words: []string{"--ask-for", "named.example.com"}},
}

// A request is one to a host; without a method it is a connection.
type request struct{ host, method string }

// requestsOf returns requests to hosts that settings, rules and flags of these tests name, and to others.
func requestsOf() (requests []request) {
	for _, host := range []string{"listed.example.com:80", "named.example.com:80", "ruled.example.com:80", "denied.example.com:80", "other.example.com:80", "registry.npmjs.org:443", "localhost:3000", "10.0.0.5:80"} {
		requests = append(requests, request{host, "GET"}, request{host, "POST"}, request{host, ""})
	}
	return requests
}

// aRule allows hosts.
var aRule = rules.Load(rules.Host{}, rules.Source{Name: "r", Text: []byte(`network_rule("ruled.example.com", "https", "allow"); network_rule("ruled.example.com", "http", "allow")`)})

// TestFlagsOpenWhatTheyName is about every flag that decides about the network, alone and in pairs, beside
// settings and profiles: a request that is denied without flags is allowed only where a flag names the host,
// or the mode in which settings allow it. What is denied by an entry, or by the mode of the settings, no flag
// allows.
func TestFlagsOpenWhatTheyName(t *testing.T) {
	const lists = "allow = [\"listed.example.com\"]\ndeny = [\"denied.example.com\"]\n"
	for name, s := range map[string]struct {
		text, managed string
		mode          string // that the settings name; "" for none
		lists         bool
	}{
		"nothing":              {},
		"none":                 {text: "network.mode = \"none\"\n", mode: "none"},
		"none, with a list":    {text: "[network]\nmode = \"none\"\n" + lists, mode: "none", lists: true},
		"limited":              {text: "[network]\nmode = \"limited\"\n", mode: "limited"},
		"limited, with a list": {text: "[network]\nmode = \"limited\"\n" + lists, mode: "limited", lists: true},
		"full":                 {text: "network.mode = \"full\"\n", mode: "full"},
		"a list":               {text: "[network]\n" + lists, mode: "full", lists: true},
		"denials":              {text: "[network]\ndeny = [\"denied.example.com\"]\n"},
		"none, and a grant":    {text: "grants = [\"net:npm\"]\n[network]\nmode = \"none\"\n", mode: "none"},
		"a profile without":    {text: "sandbox = \"offline\"\n[network]\nmode = \"full\"\n" + lists, mode: "none", lists: true},
		"a profile that reads": {text: "sandbox = \"reading\"\n[network]\nmode = \"full\"\n" + lists, mode: "limited", lists: true},
		"a ceiling that reads": {managed: "network.mode = \"limited\"\n", mode: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkbench(t, s.text, s.managed)
			_, usual, err := w.options()
			if err != nil {
				t.Fatal(err)
			}
			before := map[request]bool{}
			for _, r := range requestsOf() {
				a, err := Ask(usual, aRule, r.host, r.method)
				if err != nil {
					t.Fatal(err)
				}
				before[r] = a.Allowed()
			}
			check := func(chosen ...hostFlag) {
				var words []string
				for _, f := range chosen {
					words = append(words, f.words...)
				}
				_, e, err := w.options(words...)
				if err != nil {
					return // nothing runs
				}
				for _, r := range requestsOf() {
					a, err := Ask(e, aRule, r.host, r.method)
					if err != nil {
						t.Fatal(err)
					}
					if !a.Allowed() || before[r] {
						continue
					}
					named, proxied, host, full, limited := false, false, false, false, false
					for _, f := range chosen {
						named = named || f.names != "" && strings.HasPrefix(r.host, f.names)
						proxied, host = proxied || f.modes == "proxy", host || f.modes == "host"
						full, limited = full || f.modes == "full", limited || f.modes == "limited"
					}
					listed := s.lists && strings.HasPrefix(r.host, "listed.") || strings.HasPrefix(r.host, "ruled.") || strings.HasPrefix(r.host, "registry.") && strings.Contains(s.text, "net:npm")
					switch reads := s.mode == "limited" || s.managed != ""; {
					case host && !strings.HasPrefix(r.host, "denied."), host && !s.lists && !strings.Contains(s.text, "deny"):
					case strings.HasPrefix(r.host, "denied."):
						t.Errorf("%q allow %s %s, which an entry of the settings denies", words, r.method, r.host)
					case reads && !full && r.method == "POST":
						t.Errorf("%q allow POST to %s, and the settings are limited", words, r.host)
					case named, listed && (proxied || full || limited):
					case s.mode == "" && strings.HasPrefix(r.host, "ruled."): // nothing turned the network off, and a rule names it
					default:
						t.Errorf("%q allow %q %s, which they do not name (mode %s)", words, r.method, r.host, a.Mode)
					}
				}
			}
			for i, f := range hostFlags {
				check(f)
				for _, g := range hostFlags[i+1:] {
					check(f, g)
				}
			}
		})
	}
}

// TestModeOfProxy: --net proxy has the mode of the settings, and flags that deny or ask leave a network that
// is off.
func TestModeOfProxy(t *testing.T) {
	for _, test := range []struct{ settings, managed, flags, want string }{
		{"", "", "--net proxy", "full"},
		{"network.mode = 'limited'", "", "--net proxy", "limited"},
		{"network.mode = 'full'", "", "--net proxy", "full"},
		{"network.mode = 'none'", "", "--net proxy", "full"},
		{"network.mode = 'host'", "", "--net proxy", "full"},
		{"", "network.mode = 'limited'", "--net proxy", "limited"},
		{"sandbox = 'reading'", "", "--net proxy", "limited"},
		{"sandbox = 'reading'", "", "-s workspace-write --net proxy", "limited"},
		{"", "", "-P reading --net proxy", "limited"},
		{"network.mode = 'limited'\nsandbox = 'open'", "", "--net proxy", "full"},
		{"network.mode = 'limited'\nsandbox = 'open'", "", "-s read-only --net proxy", "limited"},
		{"network.mode = 'limited'", "", "-P offline --net proxy", "limited"},
		{"network.mode = 'limited'", "", "-P offline --allow-host a.b", "limited"},
		{"network.mode = 'none'", "", "--deny-host a.b", "none"},
		{"network.allow = ['a.b']", "", "--deny-host a.b", "full"},
		{"", "", "--deny-host a.b", "none"},
		{"network.mode = 'none'\nnetwork.allow = ['a.b']", "", "--ask-net", "none"},
		{"", "", "--ask-net", "full"},
		{"network.mode = 'limited'", "", "--ask-net", "limited"},
		{"network.mode = 'host'", "", "--deny-host a.b", "full"},
		{"network.mode = 'none'", "", "--allow-host a.b --deny-host c.d", "full"},
		{"network.mode = 'full'\nsandbox = 'offline'", "", "-s read-only", "none"},
		{"network.mode = 'full'\nsandbox = 'offline'", "", "-P plain", "none"},
		{"network.mode = 'full'\nsandbox = 'offline'", "", "-P open", "full"},
	} {
		o, e, err := newWorkbench(t, test.settings, test.managed).options(strings.Fields(test.flags)...)
		if err != nil {
			t.Errorf("%q, %s: %v", test.settings, test.flags, err)
			continue
		}
		network := map[bool]sandbox.Network{true: sandbox.NetworkNone, false: sandbox.NetworkProxy}[test.want == "none"]
		if got := e.Values["network.mode"].Text(); got != test.want || o.networkOf() != network {
			t.Errorf("%q, %s: %s (%s), want %s", test.settings, test.flags, got, o.networkOf(), test.want)
		}
	}
}

// TestNotes: what a flag cannot open, and what it leaves closed, is said.
func TestNotes(t *testing.T) {
	for flags, want := range map[string]string{
		"--ask-net":                              "--ask-net asks about no host, because the network is off (",
		"--allow-host a.b":                       "network.allow = listed.example.com does not count: the network is off there, and --allow-host opens no more than it names",
		"--net proxy":                            "",
		"--deny-host a.b":                        "",
		"--allow-host listed.example.com":        "",
		"--net proxy --allow-host a.b --ask-net": "",
	} {
		_, e, err := newWorkbench(t, "network.mode = 'none'\nnetwork.allow = ['listed.example.com']", "").options(strings.Fields(flags)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(e.Notes, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", flags, got, want)
		}
	}
}

// TestFlagsOpenFilesThatTheyName is about the flags that decide about files, alone and in pairs, beside
// settings and profiles: a path that could not be read or written is open only where a flag names it or what
// is above it, or a wider mode, and a denied one never is.
func TestFlagsOpenFilesThatTheyName(t *testing.T) {
	for name, settings := range map[string]string{
		"nothing": "", "read only": "sandbox = 'read-only'\n", "denials": "deny = ['/var/denied', '**/.env']\n", "a profile": "sandbox = 'offline'\n", "minimal": "sandbox = ':minimal'\n",
		"a profile, and denials": "sandbox = 'offline'\ndeny = ['/var/denied']\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkbench(t, settings, "")
			places := sandbox.Places{Dir: w.dir, SlashTmp: "/tmp", Home: w.env.Variable("HOME")}
			paths := []string{w.dir + "/a", w.dir + "/.git/config", w.dir + "/sub/.env", "/tmp/x", "/etc/hosts", "/usr/share/x", "/var/denied", "/var/denied/x", "/var/offline/x", "/var/other", places.Home + "/x"}
			bound := func(words ...string) (sandbox.Policy, bool) {
				o, _, err := w.options(words...)
				if err != nil {
					return sandbox.Policy{}, false
				}
				p, err := o.Policy(w.dir, places.Home)
				return p.Bind(places), err == nil
			}
			usual, ok := bound()
			if !ok {
				t.Fatal("the settings are not valid")
			}
			type flag struct {
				words []string
				opens string        // the path that it names
				level sandbox.Level // with which
				mode  bool          // or a mode that may be wider
			}
			const read, write = sandbox.LevelRead, sandbox.LevelWrite
			flags := []flag{
				{words: []string{"--rw", "/usr/share"}, opens: "/usr/share", level: write}, {words: []string{"--rw", "/var"}, opens: "/var", level: write},
				{words: []string{"--ro", "/var"}, opens: "/var", level: read}, {words: []string{"--ro", "/etc"}, opens: "/etc", level: read}, {words: []string{"--ro", w.dir}, opens: w.dir, level: read},
				{words: []string{"--deny", "/etc"}}, {words: []string{"--deny", "**/*.key"}}, {words: []string{"--deny", "/var/other"}}, {words: []string{"--deny", "a"}},
				{words: []string{"-s", "read-only"}, mode: true}, {words: []string{"-s", "workspace-write"}, mode: true}, {words: []string{"-s", "full-access"}, mode: true},
				{words: []string{"-P", "plain"}, mode: true}, {words: []string{"-P", "npm"}, mode: true}, {words: []string{"-P", ":minimal"}, mode: true},
				{words: []string{"--tmp", "host"}}, {words: []string{"--level", "landlock"}}, {words: []string{"--allow", "unix"}}, {words: []string{"--no-observer"}}, {words: []string{"--no-caches"}},
				{words: []string{"--net", "proxy"}}, {words: []string{"--net", "host"}}, {words: []string{"--deny-host", "a.b"}}, {words: []string{"--ask-net"}}, {words: []string{"--publish", "3000"}},
				{words: []string{"--escalate"}}, {words: []string{"--ask-for", "/etc"}}, {words: []string{"--protect-hard-links"}}, {words: []string{"--ownership", "error"}},
			}
			check := func(chosen ...flag) {
				var words []string
				for _, f := range chosen {
					words = append(words, f.words...)
				}
				p, ok := bound(words...)
				if !ok {
					return
				}
				if usual.Denies() && !p.Denies() {
					t.Errorf("%q lose what is denied", words)
				}
				for _, path := range paths {
					level := p.LevelAt(path)
					if level <= usual.LevelAt(path) {
						continue
					}
					named := func(f flag) bool {
						return f.mode || f.opens != "" && level <= f.level && (path == f.opens || strings.HasPrefix(path, f.opens+"/"))
					}
					denied := strings.Contains(settings, "/var/denied") && strings.HasPrefix(path, "/var/denied") || strings.Contains(settings, "offline") && strings.HasPrefix(path, "/var/offline") ||
						strings.Contains(settings, ".env") && strings.HasSuffix(path, ".env")
					if denied || !slices.ContainsFunc(chosen, named) {
						t.Errorf("%q give %s the level %s, which was %s", words, path, level, usual.LevelAt(path))
					}
				}
			}
			for i, f := range flags {
				check(f)
				for _, g := range flags[i+1:] {
					check(f, g)
				}
			}
		})
	}
}
