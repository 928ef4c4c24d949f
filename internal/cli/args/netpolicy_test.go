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
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// settings returns what holds with the text of a user's file, that of the managed one, and flags
// "key=value".
func settings(t *testing.T, user, managed string, flags ...string) (*config.Effective, error) {
	t.Helper()
	dir := t.TempDir()
	in := config.Input{Dir: dir, Home: dir, User: filepath.Join(dir, "user"),
		Managed: filepath.Join(dir, "etc")}
	for name, text := range map[string]string{filepath.Join(in.User, "config.toml"): user,
		filepath.Join(in.Managed, "managed.toml"): managed} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	given := config.Values{}
	for _, f := range flags {
		key, text, _ := strings.Cut(f, "=")
		given[key] = append(given[key], config.Setting{Text: text,
			Origin: config.Origin{Layer: config.Flags, File: "--flag"}})
	}
	return c.Resolve(given)
}

func ruleSet(texts ...string) *rules.Set {
	var sources []rules.Source
	for i, text := range texts {
		sources = append(sources, rules.Source{Name: string(rune('a'+i)) + ".rules", Text: []byte(text)})
	}
	return rules.Load(rules.Host{}, sources...)
}

func TestConfig(t *testing.T) {
	e, err := settings(t, "[network]\nmode = 'limited'\nallow = ['a.example.com']\nallow_private = true\nask = true\n",
		"[network]\nrequire_sni = true\ndeny = ['**.evil.test']\n", "network.allow=*.example.org:443",
		"network.deny=b.example.org")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Config(e, ruleSet(`network_rule("2001:db8::7", "https", "allow")`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Mode != network.Limited || !c.AllowPrivate || !c.RequireSNI || !c.Ask || c.HostAddrs != nil ||
		!c.PublicSuffix("co.uk") {
		t.Errorf("%+v", c)
	}
	var got []string
	for _, entry := range c.Entries {
		word := "allow "
		if entry.Deny {
			word = "deny "
		}
		got = append(got, word+entry.Pattern+" "+filepath.Base(entry.Source))
	}
	want := []string{
		"allow a.example.com config.toml:3:10", "allow *.example.org:443 --flag",
		"deny b.example.org --flag", "deny **.evil.test managed.toml:3:9", "allow [2001:db8::7] a.rules:1:1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestNarrows: nothing that settings and rules say together opens more than their ceiling.
func TestNarrows(t *testing.T) {
	for _, tt := range []struct {
		name, user, managed string
		flags               []string
		rules               string
		host                string
		reason              network.Reason
		code                bool // an error of the ceiling
	}{
		{"off by default", "", "", nil, "", "a.b", network.ProxyDisabled, false},
		{"rules alone open nothing", "", "", nil, `network_rule("a.b", "https", "allow")`, "a.b", network.ProxyDisabled, false},
		{"a rule", "network.mode = 'full'", "", nil, `network_rule("a.b", "https", "allow")`, "a.b", network.Allowed, false},
		{"a flag beyond the ceiling", "", "network.allow = ['*.b']", []string{"network.allow=a.c"}, "", "a.c", "", true},
		{"a file beyond the ceiling", "network.allow = ['a.c', 'a.b']", "network.allow = ['*.b']", nil, "", "a.c", network.NotAllowed, false},
		{"a managed denial", "network.allow = ['a.b']", "network.deny = ['*']", nil, `network_rule("a.b", "https", "allow")`, "a.b", network.Denied, false},
		{"the host's network past a managed denial", "", "network.deny = ['a.b']", []string{"network.mode=host"}, "", "a.b", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := settings(t, tt.user, tt.managed, tt.flags...)
			if over := new(config.CeilingError); errors.As(err, &over) != tt.code {
				t.Fatalf("%v", err)
			}
			if err != nil {
				return
			}
			a, err := Ask(e, ruleSet(tt.rules), tt.host, "")
			if err != nil || a.Reason != tt.reason {
				t.Errorf("%+v, %v, want %s", a, err, tt.reason)
			}
		})
	}
}

// TestManagedRules: a ceiling that lists hosts holds for rules, too, which are no settings.
func TestManagedRules(t *testing.T) {
	e, err := settings(t, "", "network.allow = ['*.example.org']", "network.mode=full")
	if err != nil {
		t.Fatal(err)
	}
	set := ruleSet(`network_rule("a.example.org", "https", "allow"); network_rule("a.example.com", "https", "allow")`)
	for host, reason := range map[string]network.Reason{"a.example.org": network.Allowed,
		"a.example.com": network.NotAllowed} {
		if a, err := Ask(e, set, host, ""); err != nil || a.Reason != reason {
			t.Errorf("%s: %+v, %v", host, a, err)
		}
	}
}

// TestFixWithinCeiling: no fix is named that the ceiling refuses.
func TestFixWithinCeiling(t *testing.T) {
	for _, tt := range []struct{ managed, host, fix string }{
		{"network.allow = ['*.example.org']", "a.example.org", "allow with --allow-host a.example.org:443"},
		{"network.allow = ['*.example.org']", "a.example.com", "the managed configuration does not allow it (/"},
		{"network.mode = 'none'", "a.example.org", "the managed configuration does not allow it (/"},
		{"network.mode = 'limited'", "a.example.org", "allow with --allow-host a.example.org:443"},
	} {
		e, err := settings(t, "", tt.managed)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Ask(e, nil, tt.host, "")
		if err != nil || !strings.Contains(a.String(), "fix    "+tt.fix) {
			t.Errorf("%s, %s: %v, %v", tt.managed, tt.host, a, err)
		}
		// The flag is accepted where it is named.
		if _, err := settings(t, "", tt.managed, "network.allow="+tt.host); (err == nil) != (a.Flag != "") {
			t.Errorf("%s, %s: flag %q, and with it: %v", tt.managed, tt.host, a.Flag, err)
		}
	}
}

func TestRules(t *testing.T) {
	const tunnel, request = "", "GET"
	for _, tt := range []struct {
		name, first, second, method string
		reason                      network.Reason
	}{
		{"https", `network_rule("a.b", "https", "allow")`, "", tunnel, network.Allowed},
		{"https is not http", `network_rule("a.b", "https", "allow")`, "", request, network.NotAllowed},
		{"both", `network_rule("a.b", "https", "allow"); network_rule("a.b", "http", "allow")`, "", request, network.Allowed},
		{"a denial is for all protocols", `network_rule("a.b", "http", "deny")`, `network_rule("a.b", "https", "allow")`, tunnel, network.Denied},
		{"the last of a file", `network_rule("a.b", "https", "deny"); network_rule("a.b", "https", "allow")`, "", tunnel, network.Allowed},
		{"the last of a file denies", `network_rule("a.b", "https", "allow"); network_rule("a.b", "https", "deny")`, "", tunnel, network.Denied},
		{"a later file", `network_rule("a.b", "https", "deny")`, `network_rule("a.b", "https", "allow")`, tunnel, network.Denied},
		{"an earlier file", `network_rule("a.b", "https", "allow")`, `network_rule("a.b", "https", "deny")`, tunnel, network.Denied},
		{"asked", `network_rule("a.b", "https", "prompt")`, "", tunnel, network.Denied},
		{"asked in another file", `network_rule("a.b", "https", "allow")`, `network_rule("a.b", "https", "prompt")`, tunnel, network.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := settings(t, "network.mode = 'full'", "")
			if err != nil {
				t.Fatal(err)
			}
			a, err := Ask(e, ruleSet(tt.first, tt.second), "a.b", tt.method)
			if err != nil || a.Reason != tt.reason {
				t.Errorf("%+v, %v, want %s", a, err, tt.reason)
			}
		})
	}
	e, err := settings(t, "network.mode = 'full'", "")
	if err != nil {
		t.Fatal(err)
	}
	bad := new(network.EntryError)
	if _, err := Ask(e, ruleSet(`network_rule("a b:c", "https", "allow")`), "a.b", ""); err == nil {
		t.Error("a file that does not load opens hosts")
	}
	if _, err := Ask(e, ruleSet(`network_rule("a..b", "https", "deny")`), "a.b", ""); !errors.As(err, &bad) ||
		!strings.HasPrefix(bad.Entry.Source, "a.rules:1:") {
		t.Errorf("a host that is not valid: %v", err)
	}
}

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, user, host, method string
		flags                    []string
		text                     string
	}{
		{"allowed", "", "A.example.com", "", []string{"network.allow=*.example.com"}, "a.example.com:443: allowed\n  entry  *.example.com (--flag)\n  mode   full\n  note   its addresses"},
		{"denied", "network.allow = ['*']", "a.b:80", "", []string{"network.deny=a.b"}, "a.b:80: denied: an entry denies it\n  entry  a.b (--flag)\n  mode   full\n  fix    the deny entry \"a.b\""},
		{"a miss", "network.mode = 'full'", "a.b", "", nil, "a.b:443: denied: no entry allows it\n  mode   full\n  fix    allow with --allow-host a.b:443\n"},
		{"asked", "network.mode = 'full'\nnetwork.ask = true", "a.b", "", nil, "a.b:443: asked about: no entry allows it\n"},
		{"a local name", "network.allow = ['*']", "localhost:3000", "", nil, "localhost:3000: denied: it is local or private, and no entry for it allows it\n  mode   full\n  fix    allow with --allow-host localhost:3000\n"},
		{"a denied address of a local name", "network.allow = ['localhost']\nnetwork.deny = ['127.0.0.1', '[::1]']", "localhost", "", nil, "localhost:443: denied: an entry denies it\n  entry  [::1] ("},
		{"an address", "network.allow = ['[2001:db8::]/32']", "[2001:db8::7]:80", "", nil, "[2001:db8::7]:80: allowed\n  entry  [2001:db8::]/32 ("},
		{"a method", "network.mode = 'limited'\nnetwork.allow = ['a.b']", "a.b", "POST", nil, "POST a.b:80: denied: the mode limited does not permit it\n"},
		{"TLS", "network.mode = 'limited'\nnetwork.allow = ['a.b']", "a.b", "", nil, "a.b:443: allowed\n  entry  a.b ("},
		{"TLS that is not opened", "network.mode = 'limited'\nnetwork.allow = ['**.a.b']\nnetwork.mitm.exclude = ['c.a.b']", "c.a.b", "", nil, "c.a.b:443: denied: its TLS cannot be looked into\n  entry  c.a.b ("},
		{"a URL", "network.mode = 'limited'\nnetwork.allow = ['a.b']", "https://a.b/x?y", "", nil, "a.b:443: allowed\n"},
		{"reading a URL", "network.mode = 'limited'\nnetwork.allow = ['a.b']", "https://a.b:8443/x", "HEAD", nil, "HEAD a.b:8443: allowed\n"},
		{"writing to a URL", "network.mode = 'limited'\nnetwork.allow = ['a.b']", "https://a.b", "POST", nil, "POST a.b:443: denied: the mode limited does not permit it\n"},
		{"reading a URL that is not opened", "network.mode = 'limited'\nnetwork.allow = ['a.b']\nnetwork.mitm.exclude = ['*']", "https://a.b", "GET", nil, "GET a.b:443: denied: its TLS cannot be looked into\n"},
		{"off", "", "a.b", "", nil, "a.b:443: denied: the network is off\n  mode   none\n  fix    allow with --allow-host a.b:443\n"},
		{"off, with entries", "network.mode = 'none'\nnetwork.allow = ['a.b']", "a.b", "", nil, "a.b:443: denied: the network is off\n  mode   none\n  fix    allow with --net proxy\n"},
		{"off, with a denial", "network.deny = ['a.b']", "a.b", "", nil, "a.b:443: denied: the network is off\n  mode   none\n  fix    the deny entry"},
		{"the host's network", "network.mode = 'host'", "a.b", "", nil, "a.b:443: allowed; commands have the network of the host, and nothing is judged\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := settings(t, tt.user, "", tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Ask(e, nil, tt.host, tt.method)
			if err != nil || !strings.HasPrefix(a.String(), tt.text) ||
				a.Allowed() != strings.Contains(tt.text, ": allowed") {
				t.Errorf("%v, %v\nwant %s", a, err, tt.text)
			}
		})
	}
	e, err := settings(t, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var bad *network.HostError
	if _, err := Ask(e, nil, "a..b", ""); !errors.As(err, &bad) {
		t.Errorf("a host that is not valid: %v", err)
	}
}
