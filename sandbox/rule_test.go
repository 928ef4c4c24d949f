// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"slices"
	"testing"
)

// testPlaces is a plain machine.
func testPlaces() Places {
	return Places{
		Dir: "/w", Workspaces: []string{"/w"}, TmpDir: "/var/tmp/me", SlashTmp: "/tmp",
		Minimal: []string{"/usr", "/bin", "/etc/ld.so.cache"}, Home: "/home/me",
	}
}

// mustNew is New for tables.
func mustNew(t *testing.T, mode Mode, net Network, es ...Entry) Policy {
	t.Helper()
	p, err := New(mode, net, es...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRuleFiles(t *testing.T) {
	ws := WorkspaceWrite("/w").Bind(testPlaces())
	nested := ReadOnly().WithEntries(PathEntry("/repo", LevelWrite), PathEntry("/repo/a", LevelDeny),
		PathEntry("/repo/a/b", LevelWrite))
	for _, tt := range []struct {
		name string
		p    Policy
		op   Op
		path string
		want Ruling
	}{
		{"zero reads the platform", Policy{}.Bind(testPlaces()), Read, "/usr/bin/ls", Allow},
		{"zero runs the platform", Policy{}.Bind(testPlaces()), Exec, "/bin/sh", Allow},
		{"zero reads nothing else", Policy{}.Bind(testPlaces()), Read, "/etc/passwd", Deny},
		{"zero writes nothing", Policy{}.Bind(testPlaces()), Write, "/usr/x", Deny},
		{"zero unbound reads nothing", Policy{}, Read, "/usr/bin/ls", Deny},
		{"read-only reads", ReadOnly(), Read, "/etc/passwd", Allow},
		{"read-only does not write", ReadOnly(), Write, "/tmp/x", Deny},
		{"workspace writes inside", ws, Write, "/w/a/b", Allow},
		{"workspace writes its root", ws, Write, "/w", Allow},
		{"workspace does not write a sibling with the same prefix", ws, Write, "/wx/a", Deny},
		{"workspace writes slash tmp", ws, Write, "/tmp/x", Allow},
		{"workspace writes TMPDIR", ws, Write, "/var/tmp/me/x", Allow},
		{"workspace does not write beside TMPDIR", ws, Write, "/var/tmp/you", Deny},
		{"workspace reads all", ws, Read, "/etc/passwd", Allow},
		{"git is protected", ws, Write, "/w/.git/hooks/pre-commit", Deny},
		{"git itself is protected", ws, Write, "/w/.git", Deny},
		{"git is readable", ws, Read, "/w/.git/HEAD", Allow},
		{"gitignore is not git", ws, Write, "/w/.gitignore", Allow},
		{"agents is protected", ws, Write, "/w/.agents/x", Deny},
		{"codex is protected", ws, Write, "/w/.codex/config.toml", Deny},
		{"sallyport is protected", ws, Write, "/w/.sallyport", Deny},
		{"only at the top", ws, Write, "/w/sub/.git/config", Allow},
		{"explicit entry wins over protection", ws.WithEntries(PathEntry("/w/.git", LevelWrite)), Write, "/w/.git/HEAD", Allow},
		{"nothing is protected inside an opened name", ws.WithEntries(PathEntry("/w/.git", LevelWrite)), Write, "/w/.git/.codex", Allow},
		{"explicit write below a protected name", ws.WithEntries(PathEntry("/w/.git/objects", LevelWrite)), Write, "/w/.git/objects/x", Allow},
		{"and only there", ws.WithEntries(PathEntry("/w/.git/objects", LevelWrite)), Write, "/w/.git/config", Deny},
		{"nested: writable", nested, Write, "/repo/c", Allow},
		{"nested: hidden", nested, Read, "/repo/a/c", Deny},
		{"nested: hidden itself", nested, Read, "/repo/a", Deny},
		{"nested: reopened", nested, Write, "/repo/a/b/c", Allow},
		{"tie of write and read is read", ReadOnly().WithEntries(PathEntry("/x", LevelWrite), PathEntry("/x", LevelRead)), Write, "/x/y", Deny},
		{"tie of write and deny is deny", ReadOnly().WithEntries(PathEntry("/x", LevelDeny), PathEntry("/x/", LevelWrite)), Read, "/x/y", Deny},
		{"glob denies", ws.WithEntries(GlobEntry("/w/**/*.env")), Read, "/w/a/prod.env", Deny},
		{"glob denies what is in a match", ws.WithEntries(GlobEntry("/w/**/secrets")), Read, "/w/a/secrets/k", Deny},
		{"glob leaves the rest", ws.WithEntries(GlobEntry("/w/**/*.env")), Write, "/w/a/prod.envx", Allow},
		{"entry does not reopen a glob", ws.WithEntries(GlobEntry("/w/*.env"), PathEntry("/w/a.env", LevelWrite)), Read, "/w/a.env", Deny},
		{"relative path", ws, Read, "etc/passwd", Deny},
		{"unclean path", ws, Write, "/w/../etc/x", Deny},
		{"trailing slash", ws, Write, "/w/a/", Deny},
		{"empty path", ws, Read, "", Deny},
		{"zero byte", ws, Write, "/w/a\x00b", Deny},
		{"full access", FullAccess(), Write, "/etc/passwd", Allow},
		{"full access knows no clean paths", FullAccess(), Write, "x", Allow},
		{"unknown operation", ws, OpUnknown, "/w/a", Deny},
		{"unknown operation under full access", FullAccess(), OpUnknown, "/w/a", Deny},
		{"operation out of range", ws, Op(99), "/w/a", Deny},
		{"unbound workspace gives nothing", WorkspaceWrite(), Write, "/w/a", Deny},
		{"unbound workspace keeps reads", WorkspaceWrite(), Read, "/w/a", Allow},
		{"unbound deny shuts everything", ReadOnly().WithEntries(SpecialEntry(TokenProjectRoots, LevelDeny)), Read, "/x", Deny},
		{"relative read shuts writes", ws.WithEntries(PathEntry("x", LevelRead)), Write, "/w/a", Deny},
		{"relative read leaves reads", ws.WithEntries(PathEntry("x", LevelRead)), Read, "/w/a", Allow},
		{"relative glob shuts everything", ws.WithEntries(GlobEntry("*.env")), Read, "/w/a", Deny},
		{"unusable entry shuts everything", ws.WithEntries(Entry{}), Read, "/w/a", Deny},
		{"unknown token is ignored", ws.WithEntries(SpecialEntry("future", LevelRead)), Write, "/w/a", Allow},
		{"unknown token that denies shuts everything", ws.WithEntries(SpecialEntry("future", LevelDeny)), Read, "/w/a", Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Rule(Access{Op: tt.op, Path: tt.path}); got != tt.want {
				t.Errorf("Rule(%v %q) = %v, want %v", tt.op, tt.path, got, tt.want)
			}
		})
	}
}

func TestRuleNetwork(t *testing.T) {
	none, host := ReadOnly(), ReadOnly().WithNetwork(NetworkHost)
	proxy := none.With(Grant{Addr: "Example.com:443"}, Grant{Addr: "any.example"},
		Grant{Addr: "[2001:DB8::1]:80"})
	hostW := WorkspaceWrite("/w").Bind(testPlaces()).WithNetwork(NetworkHost)
	for _, tt := range []struct {
		name string
		p    Policy
		a    Access
		want Ruling
	}{
		{"none", none, Access{Op: Connect, Addr: "example.com:443", Net: "tcp"}, Deny},
		{"none: loopback", none, Access{Op: Connect, Addr: "127.9.9.9:80", Net: "tcp"}, Allow},
		{"none: loopback v6", none, Access{Op: Connect, Addr: "[::1]:80", Net: "udp"}, Allow},
		{"none: mapped loopback", none, Access{Op: Connect, Addr: "[::ffff:127.0.0.1]:80"}, Allow},
		{"none: localhost", none, Access{Op: Connect, Addr: "LOCALHOST.:80", Net: "http"}, Allow},
		{"none: not localhost", none, Access{Op: Connect, Addr: "localhost.example.com:80"}, Deny},
		{"none: bind loopback", none, Access{Op: Bind, Addr: "127.0.0.1:0"}, Allow},
		{"none: bind all", none, Access{Op: Bind, Addr: "0.0.0.0:8080"}, Allow},
		{"none: bind all v6", none, Access{Op: Bind, Addr: "[::]:8080"}, Allow},
		{"none: bind elsewhere", none, Access{Op: Bind, Addr: "10.0.0.1:80"}, Deny},
		{"none: junk", none, Access{Op: Connect, Addr: "127.0.0.1:80:80"}, Deny},
		{"none: empty", none, Access{Op: Connect}, Deny},
		{"host", host, Access{Op: Connect, Addr: "example.com:443"}, Allow},
		{"host: bind", host, Access{Op: Bind, Addr: "10.0.0.1:80"}, Allow},
		{"proxy: asks", proxy, Access{Op: Connect, Addr: "other.example:443"}, Ask},
		{"proxy: granted", proxy, Access{Op: Connect, Addr: "EXAMPLE.COM.:443"}, Allow},
		{"proxy: granted at another port", proxy, Access{Op: Connect, Addr: "example.com:80"}, Ask},
		{"proxy: granted at every port", proxy, Access{Op: Connect, Addr: "any.example:1"}, Allow},
		{"proxy: granted v6", proxy, Access{Op: Connect, Addr: "[2001:db8:0::1]:80"}, Allow},
		{"proxy: bind is not asked about", proxy, Access{Op: Bind, Addr: "10.0.0.1:80"}, Deny},
		{"proxy: junk is not asked about", proxy, Access{Op: Connect, Addr: "a b:80"}, Deny},
		{"unix: private network", none, Access{Op: Connect, Net: "unix", Addr: "/run/docker.sock"}, Deny},
		{"unix: host network, read-only place", hostW, Access{Op: Connect, Net: "unix", Addr: "/run/docker.sock"}, Deny},
		{"unix: host network, writable place", hostW, Access{Op: Connect, Net: "unix", Addr: "/w/s"}, Allow},
		{"unix: abstract", hostW, Access{Op: Connect, Net: "unix", Addr: "@x"}, Deny},
		{"unix: abstract under full access", FullAccess(), Access{Op: Connect, Net: "unix", Addr: "@x"}, Allow},
		{"signal", host, Access{Op: Signal}, Deny},
		{"signal: external", mustNew(t, External, NetworkNone), Access{Op: Signal}, Allow},
		{"external: files", mustNew(t, External, NetworkNone), Access{Op: Write, Path: "/etc/x"}, Allow},
		{"external: network", mustNew(t, External, NetworkNone), Access{Op: Connect, Addr: "a:1"}, Deny},
		{"full", FullAccess(), Access{Op: Connect, Addr: "a:1"}, Allow},
		{"full, network taken away", FullAccess().WithNetwork(NetworkNone), Access{Op: Connect, Addr: "a:1"}, Deny},
		{"full, network taken away: files", FullAccess().WithNetwork(NetworkNone), Access{Op: Write, Path: "/w/.git/x"}, Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Rule(tt.a); got != tt.want {
				t.Errorf("Rule(%+v) = %v, want %v", tt.a, got, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mode  Mode
		net   Network
		entry []Entry
	}{
		{"unknown mode", 9, NetworkHost, nil},
		{"unknown network", Managed, 9, nil},
		{"full without network", Full, NetworkNone, nil},
		{"full with entries", Full, NetworkHost, []Entry{PathEntry("/w", LevelDeny)}},
		{"external with entries", External, NetworkNone, []Entry{PathEntry("/w", LevelDeny)}},
		{"empty path", Managed, NetworkNone, []Entry{PathEntry("", LevelRead)}},
		{"zero byte", Managed, NetworkNone, []Entry{PathEntry("/a\x00", LevelRead)}},
		{"unknown level", Managed, NetworkNone, []Entry{PathEntry("/a", 9)}},
		{"unknown kind", Managed, NetworkNone, []Entry{{Place: Place{Kind: 9, Path: "/a"}}}},
		{"glob that reads", Managed, NetworkNone, []Entry{{Place: Place{Kind: PlaceGlob, Path: "/a/*"}, Level: LevelRead}}},
		{"glob without a fixed directory", Managed, NetworkNone, []Entry{GlobEntry("/**/x")}},
		{"empty glob", Managed, NetworkNone, []Entry{GlobEntry("")}},
		{"empty token", Managed, NetworkNone, []Entry{SpecialEntry("", LevelRead)}},
		{"subpath that climbs", Managed, NetworkNone, []Entry{{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: "a/../../b"}}}},
		{"absolute subpath", Managed, NetworkNone, []Entry{{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: "/a"}}}},
		{"subpath of root", Managed, NetworkNone, []Entry{{Place: Place{Kind: PlaceSpecial, Token: TokenRoot, Subpath: "a"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.mode, tt.net, tt.entry...)
			var pe *PolicyError
			if !errors.As(err, &pe) || pe.Reason == "" {
				t.Errorf("New: error %v, want a PolicyError", err)
			}
			if p.Rule(Access{Op: Read, Path: "/a"}) != Deny {
				t.Error("the policy that comes with an error allows something")
			}
		})
	}
}

func TestName(t *testing.T) {
	pl := testPlaces()
	sub := func(name string, l Level) Entry {
		return Entry{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: name}, Level: l,
			SkipMissing: true}
	}
	for _, tt := range []struct {
		name string
		p    Policy
		want string
	}{
		{"zero", Policy{}, "custom"},
		{"read-only", ReadOnly(), "read-only"},
		{"read-only, bound", ReadOnly().Bind(pl), "read-only"},
		{"read-only with network", ReadOnly().WithNetwork(NetworkHost), "read-only"},
		{"workspace", WorkspaceWrite(), "workspace-write"},
		{"workspace, bound", WorkspaceWrite("/a", "b").Bind(pl), "workspace-write"},
		{"workspace with another root", WorkspaceWrite().WithEntries(PathEntry("/c", LevelWrite)), "workspace-write"},
		{"workspace with protected names spelled out", WorkspaceWrite().WithEntries(sub(".git", LevelRead)), "workspace-write"},
		{"workspace with a carve-out", WorkspaceWrite().WithEntries(sub("doc", LevelRead)), "custom"},
		{"workspace with a denial", WorkspaceWrite().WithEntries(PathEntry("/c", LevelDeny)), "custom"},
		{"workspace with a glob", WorkspaceWrite().WithEntries(GlobEntry("/c/*")), "custom"},
		{"everything writable", ReadOnly().With(Grant{Level: LevelWrite, Path: "/"}), "custom"},
		{"full", FullAccess(), "full-access"},
		{"external", mustNew(t, External, NetworkHost), "external"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Name(); got != tt.want {
				t.Errorf("Name() = %q, want %q", got, tt.want)
			}
		})
	}
	if got, want := WorkspaceWrite().String(), "workspace-write, network none"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestDenies(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    Policy
		want bool
	}{
		{"preset", WorkspaceWrite("/w"), false},
		{"closed root", mustNew(t, Managed, NetworkNone, SpecialEntry(TokenRoot, LevelDeny), PathEntry("/", LevelDeny)), false},
		{"path", ReadOnly().WithEntries(PathEntry("/x", LevelDeny)), true},
		{"glob", ReadOnly().WithEntries(GlobEntry("/x/*")), true},
		{"special", ReadOnly().WithEntries(SpecialEntry(TokenTmpDir, LevelDeny)), true},
		{"full", FullAccess(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Denies(); got != tt.want {
				t.Errorf("Denies() = %v, want %v", got, tt.want)
			}
		})
	}
}

// Entries added to a policy that confines nothing must not be lost.
func TestWithEntriesOnOpenPolicies(t *testing.T) {
	deny := PathEntry("/secret", LevelDeny)
	for _, tt := range []struct {
		name string
		p    Policy
	}{
		{"full", FullAccess()},
		{"external", mustNew(t, External, NetworkHost)},
		{"unrestricted", FullAccess().WithNetwork(NetworkProxy)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := tt.p.WithEntries(deny)
			if q.Mode() != Managed || q.Network() != tt.p.Network() {
				t.Errorf("mode %v, network %v", q.Mode(), q.Network())
			}
			if q.LevelAt("/secret/x") != LevelDeny || q.LevelAt("/other") != LevelWrite {
				t.Errorf("levels %v and %v", q.LevelAt("/secret/x"), q.LevelAt("/other"))
			}
			if !tt.p.WithEntries().Equal(tt.p) {
				t.Error("no entries change the policy")
			}
		})
	}
}

func TestProtectedNamesIsACopy(t *testing.T) {
	ProtectedNames()[0] = "x"
	if got := ProtectedNames(); !slices.Equal(got, []string{".git", ".agents", ".codex", ".sallyport"}) {
		t.Errorf("ProtectedNames() = %v", got)
	}
	for _, n := range ProtectedNames() {
		if !isProtectedName(n) {
			t.Errorf("isProtectedName(%q) = false", n)
		}
	}
}
