// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWith(t *testing.T) {
	ws := WorkspaceWrite("/w").Bind(testPlaces())
	for _, tt := range []struct {
		name string
		p    Policy
		g    Grant
		a    Access
		want Ruling
	}{
		{"write", ws, Grant{Level: LevelWrite, Path: "/data"}, Access{Op: Write, Path: "/data/x"}, Allow},
		{"read", Policy{}.Bind(testPlaces()), Grant{Level: LevelRead, Path: "/data"}, Access{Op: Read, Path: "/data/x"}, Allow},
		{"read does not write", Policy{}.Bind(testPlaces()), Grant{Level: LevelRead, Path: "/data"}, Access{Op: Write, Path: "/data/x"}, Deny},
		{"a protected name", ws, Grant{Level: LevelWrite, Path: "/w/.git"}, Access{Op: Write, Path: "/w/.git/HEAD"}, Allow},
		{"a new root protects its names", ws, Grant{Level: LevelWrite, Path: "/data"}, Access{Op: Write, Path: "/data/.git/x"}, Deny},
		{"a root inside a root takes nothing away", ws, Grant{Level: LevelWrite, Path: "/w/sub"}, Access{Op: Write, Path: "/w/sub/.git/x"}, Allow},
		{"over a read entry", ws.WithEntries(PathEntry("/w/ro", LevelRead)), Grant{Level: LevelWrite, Path: "/w/ro"}, Access{Op: Write, Path: "/w/ro/x"}, Allow},
		{"not over a deny entry", ws.WithEntries(PathEntry("/w/no", LevelDeny)), Grant{Level: LevelWrite, Path: "/w/no"}, Access{Op: Read, Path: "/w/no/x"}, Deny},
		{"not below a deny entry", ws.WithEntries(PathEntry("/w/no", LevelDeny)), Grant{Level: LevelWrite, Path: "/w/no/x"}, Access{Op: Read, Path: "/w/no/x"}, Deny},
		{"not above a deny entry", ws.WithEntries(PathEntry("/d/no", LevelDeny)), Grant{Level: LevelWrite, Path: "/d"}, Access{Op: Read, Path: "/d/no/x"}, Deny},
		{"not over a glob", ws.WithEntries(GlobEntry("/w/*.env")), Grant{Level: LevelWrite, Path: "/w/a.env"}, Access{Op: Read, Path: "/w/a.env"}, Deny},
		{"under a closed root", mustNew(t, Managed, NetworkNone, SpecialEntry(TokenRoot, LevelDeny)), Grant{Level: LevelRead, Path: "/d"}, Access{Op: Read, Path: "/d"}, Allow},
		{"the root", mustNew(t, Managed, NetworkNone, SpecialEntry(TokenRoot, LevelDeny)), Grant{Level: LevelRead, Path: "/"}, Access{Op: Read, Path: "/d"}, Allow},
		{"an unclean path", ws, Grant{Level: LevelWrite, Path: "/x/../etc"}, Access{Op: Write, Path: "/etc/x"}, Deny},
		{"a level of nothing", ws, Grant{Path: "/data"}, Access{Op: Write, Path: "/data"}, Deny},
		{"a level out of range", ws, Grant{Level: 9, Path: "/data"}, Access{Op: Write, Path: "/data"}, Deny},
		{"a host", ws, Grant{Addr: "h.example:443"}, Access{Op: Connect, Addr: "h.example:443"}, Allow},
		{"a host opens asking", ws, Grant{Addr: "h.example:443"}, Access{Op: Connect, Addr: "i.example:443"}, Ask},
		{"a pattern", ws, Grant{Addr: "*.example:443"}, Access{Op: Connect, Addr: "h.example:443"}, Deny},
		{"a unix socket", ws, Grant{Net: "unix", Addr: "/run/x.sock"}, Access{Op: Connect, Net: "unix", Addr: "/run/x.sock"}, Deny},
		{"external keeps its files", mustNew(t, External, NetworkNone), Grant{Level: LevelRead, Path: "/d"}, Access{Op: Write, Path: "/d"}, Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := tt.p.With(tt.g)
			if got := q.Rule(tt.a); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if !q.Covers(tt.p) {
				t.Error("the result does not cover the policy")
			}
		})
	}
}

func TestCovers(t *testing.T) {
	ws := WorkspaceWrite("/w").Bind(testPlaces())
	ext := mustNew(t, External, NetworkNone)
	for _, tt := range []struct {
		name string
		p, q Policy
		want bool
	}{
		{"full covers workspace", FullAccess(), WorkspaceWrite(), true},
		{"workspace does not cover full", ws, FullAccess(), false},
		{"full covers external", FullAccess(), mustNew(t, External, NetworkHost), true},
		{"external does not cover full", mustNew(t, External, NetworkHost), FullAccess(), false},
		{"external covers managed", ext, WorkspaceWrite(), true},
		{"external without network", ext, ReadOnly().WithNetwork(NetworkHost), false},
		{"managed does not cover external", unrestricted(NetworkHost), ext, false},
		{"unrestricted covers workspace", unrestricted(NetworkNone), WorkspaceWrite(), true},
		{"everything writable protects names, unrestricted does not", mustNew(t, Managed, NetworkNone, SpecialEntry(TokenRoot, LevelWrite)), unrestricted(NetworkNone), false},
		{"read-only covers zero", ReadOnly(), Policy{}, true},
		{"zero does not cover read-only", Policy{}, ReadOnly(), false},
		{"workspace covers read-only", WorkspaceWrite(), ReadOnly(), true},
		{"bound workspace covers read-only", ws, ReadOnly(), true},
		{"read-only does not cover workspace", ReadOnly(), ws, false},
		{"unbound against bound", WorkspaceWrite("/w"), WorkspaceWrite(), false},
		{"network", ReadOnly(), ReadOnly().WithNetwork(NetworkProxy), false},
		{"hosts", ReadOnly().With(Grant{Addr: "a"}), ReadOnly().With(Grant{Addr: "a:1"}), true},
		{"hosts, the other way", ReadOnly().With(Grant{Addr: "a:1"}), ReadOnly().With(Grant{Addr: "a"}), false},
		{"host network covers hosts", ReadOnly().WithNetwork(NetworkHost), ReadOnly().With(Grant{Addr: "a"}), true},
		{"named", ReadOnly(), ReadOnly().With(Grant{Name: "git"}), false},
		{"a redundant entry is no difference", ws, ws.WithEntries(PathEntry("/etc", LevelRead)), true},
		{"a redundant entry is no difference, the other way", ws.WithEntries(PathEntry("/etc", LevelRead)), ws, true},
		{"fewer globs", ws, ws.WithEntries(GlobEntry("/w/*.env")), true},
		{"more globs", ws.WithEntries(GlobEntry("/w/*.env")), ws, false},
		{"a place not bound yet brings protected names", mustNew(t, Managed, NetworkNone,
			PathEntry("/", LevelWrite), PathEntry("/.git", LevelWrite), PathEntry("/.agents", LevelWrite),
			PathEntry("/.codex", LevelWrite),
			PathEntry("/.sallyport", LevelWrite), SpecialEntry(TokenProjectRoots, LevelWrite)),
			unrestricted(NetworkNone), false},
		{"an unusable entry", ReadOnly().WithEntries(PathEntry("", LevelWrite)), ReadOnly(), false},
		{"a carve-out", ws.WithEntries(PathEntry("/w/ro", LevelRead)), ws, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Covers(tt.q); got != tt.want {
				t.Errorf("Covers = %v", got)
			}
		})
	}
}

func TestGrantString(t *testing.T) {
	for _, tt := range []struct {
		name string
		g    Grant
		want string
	}{
		{"zero", Grant{}, ""},
		{"write", Grant{Level: LevelWrite, Path: "/etc"}, "--rw /etc"},
		{"read", Grant{Level: LevelRead, Path: "/x"}, "--ro /x"},
		{"nothing", Grant{Path: "/x"}, ""},
		{"host", Grant{Net: "https", Addr: "example.com:443"}, "--allow-host example.com:443"},
		{"v6", Grant{Addr: "[::2]:443"}, "--allow-host '[::2]:443'"},
		{"name", Grant{Name: "git"}, "--grant git"},
		{"unix", Grant{Net: "unix", Addr: "/run/x"}, ""},
		{"opening", Grant{Opening: "ptrace"}, "--allow ptrace"},
		{"spaces", Grant{Level: LevelWrite, Path: "/a b/it's"}, `--rw '/a b/it'\''s'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.g.String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestDenialJSON(t *testing.T) {
	d := Denial{
		Access: Access{Op: Write, Path: "/etc/x", Net: "tcp"}, Errno: "EROFS", Source: Notified, PID: 12,
		Program: "/bin/sh", Rule: "/=read", Grant: "--rw /etc/x", Time: time.Unix(1, 0),
	}
	for _, tt := range []struct {
		name string
		d    Denial
		want string
	}{
		{"full", d, `{"op":"write","path":"/etc/x","addr":"","call":"","errno":"EROFS","source":"notified","pid":12,"program":"/bin/sh","rule":"/=read","grant":"--rw /etc/x","count":1}`},
		{"call", Denial{Access: Access{Op: Syscall, Call: "keyctl"}, Grant: "--allow keyring"}, `{"op":"syscall","path":"","addr":"","call":"keyctl","errno":"","source":"guessed","pid":0,"program":"","rule":"","grant":"--allow keyring","count":1}`},
		{"zero", Denial{}, `{"op":"unknown","path":"","addr":"","call":"","errno":"","source":"guessed","pid":0,"program":"","rule":"","grant":"","count":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := json.Marshal(tt.d)
			if err != nil || string(b) != tt.want {
				t.Fatalf("%s, error %v, want %s", b, err, tt.want)
			}
			var back Denial
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			want := tt.d
			want.Time, want.Net, want.Count = time.Time{}, "", 1
			if back != want {
				t.Errorf("read back as %+v", back)
			}
		})
	}
	for _, bad := range []string{`{"op":"fly"}`, `{"source":"heard"}`, `[]`, `{"pid":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    fmt.Stringer
		want string
	}{
		{"denial", Denial{Access: Access{Op: Write, Path: "/etc/x"}, Errno: "EROFS", Source: Notified}, "write /etc/x (EROFS, notified)"},
		{"guess", Denial{Access: Access{Op: Connect, Addr: "h:1"}}, "probably connect h:1 (guessed)"},
		{"signal", Access{Op: Signal}, "signal"},
		{"call", Access{Op: Syscall, Call: "socket(AF_UNIX, SOCK_DGRAM)", Path: "/x"}, "syscall socket(AF_UNIX, SOCK_DGRAM)"},
		{"op out of range", Op(99), "unknown"},
		{"ruling out of range", Ruling(99), "unknown"},
		{"level", LevelWrite, "write"},
		{"mode", External, "external"},
		{"network", NetworkProxy, "proxy"},
		{"source", Audited, "audited"},
		{"entry", Entry{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: ".git"}, Level: LevelRead}, ":project_roots/.git=read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.v.String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	type words struct {
		Op      Op
		Ruling  Ruling
		Level   Level
		Network Network
		Source  Source
	}
	in := words{Exec, Ask, LevelRead, NetworkProxy, Proxied}
	b, err := json.Marshal(in)
	if want := `{"Op":"exec","Ruling":"ask","Level":"read","Network":"proxy","Source":"proxied"}`; err != nil || string(b) != want {
		t.Fatalf("%s, error %v, want %s", b, err, want)
	}
	var out words
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("read back as %+v, error %v", out, err)
	}
	for _, bad := range []string{`{"Op":"x"}`, `{"Ruling":"x"}`, `{"Level":"x"}`, `{"Network":"x"}`,
		`{"Source":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil || out != in {
			t.Errorf("%s: error %v, value %+v", bad, err, out)
		}
	}
	if l, err := ParseLevel("none"); err != nil || l != LevelDeny {
		t.Errorf("none is %v, error %v", l, err)
	}
	if Guessed.Evidence() || !Proxied.Evidence() || Source(99).Evidence() {
		t.Error("Evidence is wrong")
	}
}

func TestUnsupportedError(t *testing.T) {
	err := fmt.Errorf("start: %w", &UnsupportedError{Need: "user namespaces",
		Have: "this kernel forbids them", Hint: "run sysctl x"})
	var u *UnsupportedError
	if !errors.As(err, &u) ||
		u.Error() != "sandbox: needs user namespaces, but this kernel forbids them; run sysctl x" {
		t.Errorf("%v", err)
	}
	if got := (&UnsupportedError{Need: "a", Have: "b"}).Error(); got != "sandbox: needs a, but b" {
		t.Errorf("%q", got)
	}
}

func TestBounds(t *testing.T) {
	ws := WorkspaceWrite("/w").Bind(testPlaces())
	links := func(name string) string {
		if rest, ok := strings.CutPrefix(name, "/link"); ok {
			return "/w" + rest
		}
		if rest, ok := strings.CutPrefix(name, "/w/out"); ok {
			return "/etc" + rest
		}
		return name
	}
	for _, tt := range []struct {
		name string
		p, q Policy
		want string // empty where p bounds q
	}{
		{"the same", ws, ws, ""},
		{"full access bounds all", FullAccess(), FullAccess(), ""},
		{"full access bounds a grant", FullAccess(), ws.With(Grant{Name: "git"}), ""},
		{"full access without a sandbox", unrestricted(NetworkHost), FullAccess(), "run outside of the sandbox"},
		{"by a link outside", ReadOnly().WithEntries(PathEntry("/w", LevelWrite)), ReadOnly().WithEntries(PathEntry("/w/out/x", LevelWrite)), "write /etc/x"},
		{"a link to what it has", ReadOnly().WithEntries(PathEntry("/w", LevelWrite)), ReadOnly().WithEntries(PathEntry("/link/x", LevelWrite)), ""},
		{"it has a link", ReadOnly().WithEntries(PathEntry("/link", LevelWrite)), ReadOnly().WithEntries(PathEntry("/w/x", LevelWrite)), ""},
		{"a denied link", ReadOnly().WithEntries(PathEntry("/w/out", LevelDeny)), ReadOnly(), "read /etc"},
		{"full access", ws, FullAccess(), "run outside of the sandbox"},
		{"a network", ws, ws.WithNetwork(NetworkProxy), "use the network proxy"},
		{"a host", ws.With(Grant{Addr: "a"}), ws.With(Grant{Addr: "b"}), "reach other hosts"},
		{"a grant", ws, ws.With(Grant{Name: "git"}), "use the grant git"},
		{"a pattern", ws.WithEntries(GlobEntry("/w/*.env")), ws, "use what is denied by a pattern, or a place that is not known"},
		{"every file", ws, FullAccess().WithNetwork(NetworkNone), "write /"},
		{"every file of a sandbox", ws, unrestricted(NetworkNone), "write /"},
		{"an external sandbox", mustNew(t, External, NetworkNone), mustNew(t, External, NetworkHost), "use the network host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var wider *WiderError
			switch err := tt.p.Bounds(tt.q, links); {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, &wider) || wider.What != tt.want):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
