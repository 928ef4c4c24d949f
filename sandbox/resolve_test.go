// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// auto are the rules that protect the top of a writable root.
func auto(root string) []PathRule {
	var rs []PathRule
	for _, n := range []string{".agents", ".codex", ".git", ".sallyport"} {
		rs = append(rs, PathRule{Path: root + "/" + n, Level: LevelRead, SkipMissing: true, Auto: true})
	}
	return rs
}

func protectedOf(root string) []string {
	return []string{root + "/.agents", root + "/.codex", root + "/.git", root + "/.sallyport"}
}

func concat[T any](lists ...[]T) []T {
	var out []T
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func TestResolve(t *testing.T) {
	gitRead := Entry{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: ".git"}, Level: LevelRead, SkipMissing: true}
	for _, tt := range []struct {
		name string
		p    Policy
		want Resolved
	}{
		{"zero", Policy{}, Resolved{Paths: []PathRule{
			{Path: "/bin", Level: LevelRead, SkipMissing: true},
			{Path: "/etc/ld.so.cache", Level: LevelRead, SkipMissing: true},
			{Path: "/usr", Level: LevelRead, SkipMissing: true},
		}}},
		{"read-only", ReadOnly(), Resolved{Root: LevelRead}},
		{"full", FullAccess(), Resolved{Mode: Full, Network: NetworkHost, Root: LevelWrite, Writable: []WritableRoot{{Root: "/"}}}},
		{"workspace", WorkspaceWrite(), Resolved{
			Root: LevelRead,
			Paths: concat(
				[]PathRule{{Path: "/tmp", Level: LevelWrite}}, auto("/tmp"),
				[]PathRule{{Path: "/var/tmp/me", Level: LevelWrite, SkipMissing: true}}, auto("/var/tmp/me"),
				[]PathRule{{Path: "/w", Level: LevelWrite}}, auto("/w")),
			Writable: []WritableRoot{
				{Root: "/tmp", Protected: protectedOf("/tmp")},
				{Root: "/w", Protected: protectedOf("/w")},
				{Root: "/var/tmp/me", Protected: protectedOf("/var/tmp/me")},
			},
		}},
		{"carve-outs, nesting, explicit protected names", ReadOnly().WithEntries(
			PathEntry("/r", LevelWrite), PathEntry("/r/ro", LevelRead), PathEntry("/r/no", LevelDeny),
			PathEntry("/r/no/in", LevelWrite), PathEntry("/r/no/in/ro", LevelRead),
			PathEntry("/r/.git", LevelWrite), PathEntry("/r/.codex", LevelRead),
			PathEntry("/elsewhere", LevelDeny), GlobEntry("/r/**/*.env"), GlobEntry("/r/**/*.env"),
		), Resolved{
			Root: LevelRead,
			Paths: concat([]PathRule{
				{Path: "/elsewhere", Level: LevelDeny},
				{Path: "/r", Level: LevelWrite},
				{Path: "/r/.agents", Level: LevelRead, SkipMissing: true, Auto: true},
				{Path: "/r/.codex", Level: LevelRead},
				{Path: "/r/.git", Level: LevelWrite},
				{Path: "/r/.sallyport", Level: LevelRead, SkipMissing: true, Auto: true},
				{Path: "/r/no", Level: LevelDeny},
				{Path: "/r/no/in", Level: LevelWrite},
			}, auto("/r/no/in"), []PathRule{
				{Path: "/r/no/in/ro", Level: LevelRead},
				{Path: "/r/ro", Level: LevelRead},
			}),
			Globs: []string{"/r/**/*.env"},
			Writable: []WritableRoot{
				{Root: "/r", ReadOnly: []string{"/r/.codex", "/r/ro"}, Denied: []string{"/r/no"}, Protected: []string{"/r/.agents", "/r/.sallyport"}},
				{Root: "/r/.git"},
				{Root: "/r/no/in", ReadOnly: []string{"/r/no/in/ro"}, Protected: protectedOf("/r/no/in")},
			},
		}},
		{"a protected name that a peer spells out stays protected", ReadOnly().WithEntries(SpecialEntry(TokenProjectRoots, LevelWrite), gitRead), Resolved{
			Root:     LevelRead,
			Paths:    concat([]PathRule{{Path: "/w", Level: LevelWrite}}, auto("/w")),
			Writable: []WritableRoot{{Root: "/w", Protected: protectedOf("/w")}},
		}},
		{"everything writable", mustNew(t, Managed, NetworkHost, SpecialEntry(TokenRoot, LevelWrite)), Resolved{
			Network: NetworkHost, Root: LevelWrite, Paths: auto(""),
			Writable: []WritableRoot{{Root: "/", Protected: protectedOf("")}},
		}},
		{"skip missing only if all say so", mustNew(t, Managed, NetworkNone,
			Entry{Place: Place{Path: "/a"}, Level: LevelRead, SkipMissing: true}, PathEntry("/a", LevelRead)),
			Resolved{Paths: []PathRule{{Path: "/a", Level: LevelRead}}}},
		{"hosts and names", ReadOnly().With(Grant{Addr: "b:1"}, Grant{Addr: "a"}, Grant{Name: "git"}, Grant{Name: "git"}),
			Resolved{Network: NetworkProxy, Root: LevelRead, Hosts: []string{"a", "b:1"}, Named: []string{"git"}}},
		{"unknown token", ReadOnly().WithEntries(SpecialEntry("future", LevelWrite)), Resolved{Root: LevelRead, Warnings: []string{"entry :future=write is ignored: this version does not know the place"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.p.Bind(testPlaces()).Resolve()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    Policy
		want string // part of the message
	}{
		{"minimal not bound", Policy{}, ":minimal=read"},
		{"workspaces not bound", WorkspaceWrite(), ":project_roots=write"},
		{"relative", ReadOnly().WithEntries(PathEntry("a", LevelRead)), "a=read"},
		{"home not bound", ReadOnly().WithEntries(PathEntry("~/a", LevelRead)), "~/a=read"},
		{"relative glob", ReadOnly().WithEntries(GlobEntry("*.env")), "*.env=deny"},
		{"zero byte", ReadOnly().WithEntries(PathEntry("/a\x00", LevelRead)), "NUL byte"},
		{"unknown denial", ReadOnly().WithEntries(SpecialEntry("keys", LevelDeny)).Bind(testPlaces()), ":keys=deny"},
		{"denied TMPDIR that is not there", ReadOnly().WithEntries(SpecialEntry(TokenTmpDir, LevelDeny)).Bind(Places{Dir: "/w"}), ":tmpdir=deny"},
		{"denied slash tmp that is not there", ReadOnly().WithEntries(SpecialEntry(TokenSlashTmp, LevelDeny)).Bind(Places{Dir: "/w"}), ":slash_tmp=deny"},
		{"bad glob after binding", ReadOnly().WithEntries(GlobEntry("[")).Bind(testPlaces()), "matching"},
		{"places that are relative", WorkspaceWrite().Bind(Places{Dir: "w"}), ":project_roots=write"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.p.Resolve()
			var pe *PolicyError
			if !errors.As(err, &pe) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Resolve: error %v, want a PolicyError with %q", err, tt.want)
			}
		})
	}
}

func TestBind(t *testing.T) {
	two := Places{Dir: "/d", Workspaces: []string{"/a[1]", "/b/", "/a[1]", "rel"}, Home: "/home/me", Minimal: []string{"/usr", "/etc/x"}}
	at := func(name string, l Level) Entry { return PathEntry(name, l) }
	skip := func(e Entry) Entry { e.SkipMissing = true; return e }
	for _, tt := range []struct {
		name string
		in   []Entry
		pl   Places
		want []Entry
	}{
		{"every workspace", []Entry{SpecialEntry(TokenProjectRoots, LevelWrite)}, two, []Entry{at("/a[1]", LevelWrite), at("/b", LevelWrite)}},
		{"subpath", []Entry{{Place: Place{Kind: PlaceSpecial, Token: TokenProjectRoots, Subpath: "x/y"}, Level: LevelRead, SkipMissing: true}}, two,
			[]Entry{skip(at("/a[1]/x/y", LevelRead)), skip(at("/b/x/y", LevelRead))}},
		{"no workspaces", []Entry{SpecialEntry(TokenProjectRoots, LevelWrite)}, Places{Dir: "/d"}, []Entry{at("/d", LevelWrite)}},
		{"dot", []Entry{at(".", LevelWrite)}, two, []Entry{at("/d", LevelWrite)}},
		{"up", []Entry{at("../x", LevelWrite)}, two, []Entry{at("/x", LevelWrite)}},
		{"home", []Entry{at("~/x", LevelWrite), at("~", LevelRead)}, two, []Entry{at("/home/me/x", LevelWrite), at("/home/me", LevelRead)}},
		{"a file named tilde", []Entry{at("./~", LevelRead)}, two, []Entry{at("/d/~", LevelRead)}},
		{"unclean", []Entry{at("/x//y/../z/", LevelWrite)}, two, []Entry{at("/x/z", LevelWrite)}},
		{"root", []Entry{SpecialEntry(TokenRoot, LevelRead)}, two, []Entry{at("/", LevelRead)}},
		{"absent temporary directories", []Entry{SpecialEntry(TokenTmpDir, LevelWrite), SpecialEntry(TokenSlashTmp, LevelWrite)}, two, nil},
		{"present temporary directories", []Entry{SpecialEntry(TokenTmpDir, LevelWrite), SpecialEntry(TokenSlashTmp, LevelWrite)}, testPlaces(),
			[]Entry{skip(at("/var/tmp/me", LevelWrite)), at("/tmp", LevelWrite)}},
		{"glob", []Entry{GlobEntry("**/*.env")}, two, []Entry{GlobEntry("/d/**/*.env")}},
		{"workspace glob", []Entry{GlobEntry("codex-project-roots://**/*.env")}, two, []Entry{GlobEntry(`/a\[1\]/**/*.env`), GlobEntry("/b/**/*.env")}},
		{"home glob", []Entry{GlobEntry("~/.ssh/*")}, two, []Entry{GlobEntry("/home/me/.ssh/*")}},
		{"minimal", []Entry{SpecialEntry(TokenMinimal, LevelRead)}, two, []Entry{skip(at("/usr", LevelRead)), skip(at("/etc/x", LevelRead))}},
		{"minimal does not narrow", []Entry{SpecialEntry(TokenMinimal, LevelRead), at("/usr", LevelWrite), at("/etc", LevelDeny)}, two,
			[]Entry{at("/usr", LevelWrite), at("/etc", LevelDeny)}},
		{"minimal under a readable root", []Entry{SpecialEntry(TokenMinimal, LevelRead), SpecialEntry(TokenRoot, LevelWrite)}, two, []Entry{at("/", LevelWrite)}},
		{"minimal that denies", []Entry{SpecialEntry(TokenMinimal, LevelDeny)}, two, []Entry{at("/usr", LevelDeny), at("/etc/x", LevelDeny)}},
		{"unknown", []Entry{SpecialEntry("future", LevelRead)}, two, []Entry{SpecialEntry("future", LevelRead)}},
		{"nothing known", []Entry{at("x", LevelRead), GlobEntry("*.env"), GlobEntry("~/x"), SpecialEntry(TokenProjectRoots, LevelRead)}, Places{},
			[]Entry{at("x", LevelRead), GlobEntry("*.env"), GlobEntry("~/x"), SpecialEntry(TokenProjectRoots, LevelRead)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustNew(t, Managed, NetworkNone, tt.in...).Bind(tt.pl)
			if d := cmp.Diff(tt.want, p.Entries(), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if q := p.Bind(tt.pl); !q.Equal(p) {
				t.Errorf("binding again changes %v to %v", p.Entries(), q.Entries())
			}
		})
	}
}

// TestBindGlobEscapesDirectory checks that a glob below a workspace whose name has
// wildcards denies there and nowhere else.
func TestBindGlobEscapesDirectory(t *testing.T) {
	p := ReadOnly().WithEntries(GlobEntry("*.env")).Bind(Places{Dir: `/w*[a]{b}\`})
	if got := p.LevelAt(`/w*[a]{b}\/x.env`); got != LevelDeny {
		t.Errorf("inside: %v", got)
	}
	if got := p.LevelAt(`/wxa{b}/x.env`); got != LevelRead {
		t.Errorf("elsewhere: %v", got)
	}
}
