// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExplain(t *testing.T) {
	ws := WorkspaceWrite("/w").Bind(testPlaces()).WithEntries(
		GlobEntry("/w/**/.env"), PathEntry("/w/no", LevelDeny), PathEntry("/w/sub", LevelWrite),
		PathEntry("/w/ro", LevelRead))
	proxy := ws.With(Grant{Addr: "h.example:443"}, Grant{Addr: "i.example"})
	for _, tt := range []struct {
		name string
		p    Policy
		a    Access
		want Ruling
		rule string
	}{
		{"the root", ws, Access{Op: Write, Path: "/etc/hosts"}, Deny, "/=read"},
		{"reading below the root", ws, Access{Op: Read, Path: "/etc/hosts"}, Allow, "/=read"},
		{"a root that may be written", ws, Access{Op: Write, Path: "/w/x"}, Allow, "/w=write"},
		{"a protected name", ws, Access{Op: Write, Path: "/w/.git/config"}, Deny, "/w/.git=read (protected)"},
		{"an entry of one's own", ws, Access{Op: Write, Path: "/w/ro/x"}, Deny, "/w/ro=read"},
		{"a glob", ws, Access{Op: Read, Path: "/w/a/.env/x"}, Deny, "deny /w/**/.env"},
		{"a deny entry", ws, Access{Op: Read, Path: "/w/no/x"}, Deny, "/w/no=deny"},
		{"a path that is not listed", Policy{}.Bind(testPlaces()), Access{Op: Read, Path: "/srv"}, Deny, "not listed"},
		{"a shut root", mustNew(t, Managed, NetworkNone, SpecialEntry(TokenRoot, LevelDeny)), Access{Op: Read, Path: "/srv"}, Deny, "/=deny"},
		{"a path that is not clean", ws, Access{Op: Read, Path: "x"}, Deny, "unclear path"},
		{"an entry without a place", ReadOnly().WithEntries(PathEntry("no", LevelDeny)), Access{Op: Read, Path: "/x"}, Deny, "no=deny (not bound)"},
		{"everything open", unrestricted(NetworkNone), Access{Op: Write, Path: "/x"}, Allow, "/=write"},
		{"no network", ws, Access{Op: Connect, Addr: "93.184.216.34:443"}, Deny, "network=none"},
		{"a granted host", proxy, Access{Op: Connect, Addr: "H.example:443"}, Allow, "host h.example:443"},
		{"a host granted whole", proxy, Access{Op: Connect, Addr: "i.example:1"}, Allow, "host i.example"},
		{"another host", proxy, Access{Op: Connect, Addr: "j.example:443"}, Ask, "network=proxy"},
		{"listening", proxy, Access{Op: Bind, Addr: "192.0.2.1:80"}, Deny, "network=proxy"},
		{"loopback", ws, Access{Op: Connect, Addr: "127.0.0.1:80"}, Allow, "loopback"},
		{"no address", ws, Access{Op: Connect}, Deny, "unclear address"},
		{"the host's network", ws.WithNetwork(NetworkHost), Access{Op: Connect, Addr: "j.example:443"}, Allow, "network=host"},
		{"a unix socket", ws, Access{Op: Connect, Net: "unix", Addr: "@s"}, Deny, "unix sockets"},
		{"a unix socket by its path", ws.WithNetwork(NetworkHost), Access{Op: Connect, Net: "unix", Addr: "/run/s"}, Deny, "unix sockets"},
		{"listening on a unix socket", ws, Access{Op: Bind, Net: "unix", Addr: "/run/s"}, Deny, "/=read"},
		{"an abstract socket", ws.WithNetwork(NetworkHost), Access{Op: Connect, Net: "unix", Addr: "@x"}, Deny, "unix sockets"},
		{"a process outside", ws, Access{Op: Signal}, Deny, "processes outside"},
		{"a refused call", ws, Access{Op: Syscall, Call: "keyctl"}, Deny, "system call filter"},
		{"external", mustNew(t, External, NetworkNone), Access{Op: Write, Path: "/x"}, Allow, "judged outside"},
		{"full access", FullAccess(), Access{Op: Write, Path: "/x"}, Allow, "full access"},
		{"nothing", ws, Access{}, Deny, "unknown operation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, rule := tt.p.Explain(tt.a)
			if got != tt.want || rule != tt.rule {
				t.Errorf("%v, %q, want %v, %q", got, rule, tt.want, tt.rule)
			}
		})
	}
}

// TestExplainNamesRule checks that there always is a rule, and that an entry in it has the
// level of the path.
func TestExplainNamesRule(t *testing.T) {
	check(t, func(t *rapid.T) {
		p := drawPolicy(t, rapid.Bool().Draw(t, "bound"))
		for range 20 {
			a := drawAccess(t)
			got, rule := p.Explain(a)
			if want := p.Rule(a); got != want || rule == "" {
				t.Fatalf("%s\n%+v: %v by %q, want %v", describe(p), a, got, rule, want)
			}
			level := p.LevelAt(a.Path)
			if l, rule := p.explainFile(a.Path); l != level || strings.Contains(rule, "=") &&
				p.mode == Managed && !strings.Contains(rule, "="+l.String()) {
				t.Fatalf("%s\n%s: %v by %q, want %v", describe(p), a.Path, l, rule, level)
			}
		}
	})
}

func TestParseGrants(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Grant
	}{
		{"write", "--rw /a", []Grant{{Level: LevelWrite, Path: "/a"}}},
		{"two", "--grant git --rw '/a b/it'\\''s'", []Grant{{Name: "git"}, {Level: LevelWrite, Path: "/a b/it's"}}},
		{"read and host", "--ro /x --allow-host '[::2]:443'", []Grant{{Level: LevelRead, Path: "/x"}, {Addr: "[::2]:443"}}},
		{"nothing", "", nil},
		{"a flag alone", "--rw", nil},
		{"another flag", "--net host", nil},
		{"no value", "--rw ''", nil},
		{"an open quote", "--rw 'a", nil},
		{"words around", "please --rw /a", nil},
		{"a space at the end", "--rw /a ", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := ParseGrants(tt.text)
			if ok != (tt.want != nil) || len(got) != len(tt.want) {
				t.Fatalf("%v %v, want %v", got, ok, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("%v, want %v", got[i], tt.want[i])
				}
			}
		})
	}
}

// FuzzParseGrants checks that ParseGrants and String are inverse.
func FuzzParseGrants(f *testing.F) {
	for _, s := range []string{"--rw /a", "--grant 'a b'", "--ro /it'\\''s --rw \\x", "--allow-host h:1",
		"'", "\\", "  "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if grants, ok := ParseGrants(text); ok {
			var words []string
			for _, g := range grants {
				words = append(words, g.String())
			}
			again, ok := ParseGrants(strings.Join(words, " "))
			if !ok || len(again) != len(grants) {
				t.Fatalf("%q became %q and is not read", text, words)
			}
			for i := range again {
				if again[i] != grants[i] {
					t.Errorf("%v became %v", grants[i], again[i])
				}
			}
		}
		if text == "" {
			return
		}
		g := Grant{Level: LevelWrite, Path: text}
		if got, ok := ParseGrants(g.String()); !ok || len(got) != 1 || got[0] != g {
			t.Errorf("%q is read as %v", g, got)
		}
	})
}
