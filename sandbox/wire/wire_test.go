// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sallyport-dev/sallyport/sandbox"
	"pgregory.net/rapid"
)

// observed returns the profiles that a peer of version 0.169.0 was seen to
// send and to accept, one in each line.
func observed(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/observed_profiles.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) < 4 {
		t.Fatalf("only %d observed profiles", len(lines))
	}
	return lines
}

// What a peer wrote is written again byte for byte.
func TestObservedProfiles(t *testing.T) {
	names := []string{"workspace-write", "read-only", "workspace-write", "full-access"}
	for i, line := range observed(t) {
		p, err := ParseProfile(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if i < len(names) && p.Name() != names[i] {
			t.Errorf("%s: name %q, want %q", line, p.Name(), names[i])
		}
		out, err := MarshalProfile(p)
		if err != nil || !bytes.Equal(out, line) {
			t.Errorf("%s\nis written as %s, error %v", line, out, err)
		}
		b := p.Bind(testPlaces())
		if _, err := b.Resolve(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if i == 0 && (b.LevelAt("/w/.aws/x") != sandbox.LevelRead ||
			b.LevelAt("/w/.sallyport") != sandbox.LevelRead || b.LevelAt("/w/a") != sandbox.LevelWrite) {
			t.Errorf("%s: wrong levels", line)
		}
	}
}

func managed(fs string) string {
	return `{"type":"managed","file_system":` + fs + `,"network":"restricted"}`
}

func entries(list string) string { return managed(`{"type":"restricted","entries":[` + list + `]}`) }

func TestParseProfile(t *testing.T) {
	special := func(token, sub string) sandbox.Place {
		return sandbox.Place{Kind: sandbox.PlaceSpecial, Token: token, Subpath: sub}
	}
	for _, tt := range []struct {
		name, in string
		want     []sandbox.Entry
	}{
		{"none at all", entries(``), nil},
		{"path", entries(`{"path":{"type":"path","path":"/a//b/../c"},"access":"write"}`), []sandbox.Entry{sandbox.PathEntry("/a/c", sandbox.LevelWrite)}},
		{"uri", entries(`{"path":{"type":"path","path":"file:///a%20b"},"access":"read"}`), []sandbox.Entry{sandbox.PathEntry("/a b", sandbox.LevelRead)}},
		{"short uri", entries(`{"path":{"type":"path","path":"file:/a"},"access":"read"}`), []sandbox.Entry{sandbox.PathEntry("/a", sandbox.LevelRead)}},
		{"uri with host", entries(`{"path":{"type":"path","path":"FILE://localhost/a"},"access":"read"}`), []sandbox.Entry{sandbox.PathEntry("/a", sandbox.LevelRead)}},
		{"uri of bytes", entries(`{"path":{"type":"path","path":"file:///%FF"},"access":"read"}`), []sandbox.Entry{sandbox.PathEntry("/\xff", sandbox.LevelRead)}},
		{"none means deny", entries(`{"path":{"type":"path","path":"/a"},"access":"none"}`), []sandbox.Entry{sandbox.PathEntry("/a", sandbox.LevelDeny)}},
		{"skip", entries(`{"path":{"type":"path","path":"/a"},"access":"read","missing_path_behavior":"skip"}`),
			[]sandbox.Entry{{Place: sandbox.Place{Path: "/a"}, Level: sandbox.LevelRead, SkipMissing: true}}},
		{"nulls are absent", entries(`{"path":{"type":"special","value":{"kind":"project_roots","subpath":null}},"access":"read","missing_path_behavior":null}`),
			[]sandbox.Entry{{Place: special(sandbox.TokenProjectRoots, ""), Level: sandbox.LevelRead}}},
		{"glob", entries(`{"path":{"type":"glob_pattern","pattern":"**/*.env"},"access":"deny"}`), []sandbox.Entry{sandbox.GlobEntry("**/*.env")}},
		{"specials", entries(`{"path":{"type":"special","value":{"kind":"minimal"}},"access":"read"},{"path":{"type":"special","value":{"kind":"tmpdir"}},"access":"write"}`),
			[]sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenMinimal, sandbox.LevelRead),
				sandbox.SpecialEntry(sandbox.TokenTmpDir, sandbox.LevelWrite)}},
		{"alias", entries(`{"path":{"type":"special","value":{"kind":"current_working_directory"}},"access":"write"}`), []sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelWrite)}},
		{"subpath", entries(`{"path":{"type":"special","value":{"kind":"project_roots","subpath":"a/./b/"}},"access":"read"}`), []sandbox.Entry{{Place: special(sandbox.TokenProjectRoots, "a/b"), Level: sandbox.LevelRead}}},
		{"subpath of all", entries(`{"path":{"type":"special","value":{"kind":"project_roots","subpath":"."}},"access":"read"}`), []sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelRead)}},
		{"members that are not known", entries(`{"path":{"type":"path","path":"/a","x":1},"access":"read","y":[]}`), []sandbox.Entry{sandbox.PathEntry("/a", sandbox.LevelRead)}},
		{"unrestricted", managed(`{"type":"unrestricted"}`), []sandbox.Entry{sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelWrite)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParseProfile([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, p.Entries(), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProfileModes(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     sandbox.Policy
	}{
		{"disabled", `{"type":"disabled"}`, sandbox.FullAccess()},
		{"external restricted", `{"type":"external","network":"restricted"}`, mustNew(t, sandbox.External, sandbox.NetworkNone)},
		{"external enabled", `{"type":"external","network":"enabled"}`, mustNew(t, sandbox.External, sandbox.NetworkHost)},
		{"unrestricted", `{"type":"managed","file_system":{"type":"unrestricted"},"network":"enabled"}`, sandbox.FullAccess().WithNetwork(sandbox.NetworkNone).WithNetwork(sandbox.NetworkHost)},
		{"depth", `{"type":"managed","file_system":{"type":"restricted","entries":[],"glob_scan_max_depth":3},"network":"enabled"}`, mustNew(t, sandbox.Managed, sandbox.NetworkHost).WithGlobScanDepth(3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParseProfile([]byte(tt.in))
			if err != nil || !p.Equal(tt.want) {
				t.Fatalf("%v, error %v", p, err)
			}
			if out, err := MarshalProfile(p); err != nil || string(out) != tt.in {
				t.Errorf("written as %s, error %v", out, err)
			}
		})
	}
}

// Unknown tokens come out exactly as they went in, odd spacing included.
func TestUnknownTokensAreKept(t *testing.T) {
	for _, tt := range []struct{ name, value, token string }{
		{"new kind", `{"kind":"home_dirs"}`, "home_dirs"},
		{"with members and spaces", `{ "kind" : "future" , "depth":3.50,"x":"<&>\u00e9", "n":[1, 2] }`, "future"},
		{"wrapped", `{"kind":"unknown","path":":future","subpath":"a"}`, "future"},
		{"wrapped with nothing", `{"kind":"unknown"}`, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := entries(`{"path":{"type":"special","value":` + tt.value + `},"access":"write"}`)
			p, err := ParseProfile([]byte(in))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Entries()[0].Place.Token; got != tt.token {
				t.Errorf("token %q", got)
			}
			p = p.Bind(testPlaces())
			r, err := p.Resolve()
			if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], tt.token) {
				t.Errorf("warnings %q, error %v", r.Warnings, err)
			}
			if out, err := MarshalProfile(p); err != nil || string(out) != in {
				t.Errorf("written as %s, error %v", out, err)
			}
		})
	}
	made, err := MarshalProfile(sandbox.ReadOnly().WithEntries(sandbox.SpecialEntry("future",
		sandbox.LevelRead)))
	if err != nil || !strings.Contains(string(made), `{"kind":"unknown","path":":future"}`) {
		t.Errorf("a token made here is written as %s, error %v", made, err)
	}
}

func TestParseProfileRefuses(t *testing.T) {
	entry := func(place, rest string) string { return entries(`{"path":` + place + rest + `}`) }
	for _, tt := range []struct{ name, in, want string }{
		{"empty", ``, "unexpected end"},
		{"cut off", `{"type":"dis`, "unexpected end"},
		{"null", `null`, "not an object"},
		{"array", `[]`, "not an object"},
		{"text after", `{"type":"disabled"} x`, "text after"},
		{"not UTF-8", "{\"type\":\"\xff\"}", "UTF-8"},
		{"too deep", `{"type":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "deeply"},
		{"no type", `{}`, "type: missing"},
		{"type of another type", `{"type":1}`, "type: must be a string"},
		{"unknown type", `{"type":"open"}`, `"open"`},
		{"case matters", `{"Type":"disabled"}`, "type: missing"},
		{"repeated member", `{"type":"managed","type":"disabled"}`, `repeated member "type"`},
		{"repeated member below", entry(`{"type":"path","path":"/a","path":"/b"}`, `,"access":"read"`), `repeated member "path"`},
		{"repeated member by escape", `{"type":"managed","\u0074ype":"disabled"}`, `repeated member "type"`},
		{"no network", `{"type":"managed","file_system":{"type":"unrestricted"}}`, "network: missing"},
		{"unknown network", `{"type":"external","network":"open"}`, `network: must be restricted or enabled, not "open"`},
		{"network of another type", `{"type":"external","network":true}`, "network: must be a string"},
		{"no file system", `{"type":"managed","network":"enabled"}`, "file_system: missing"},
		{"file system of another type", managed(`[]`), "file_system: must be an object"},
		{"unknown file system", managed(`{"type":"x"}`), "file_system.type"},
		{"no entries", managed(`{"type":"restricted"}`), "file_system.entries: missing"},
		{"entries of another type", managed(`{"type":"restricted","entries":{}}`), "file_system.entries: must be an array"},
		{"depth zero", managed(`{"type":"restricted","entries":[],"glob_scan_max_depth":0}`), "glob_scan_max_depth"},
		{"depth in parts", managed(`{"type":"restricted","entries":[],"glob_scan_max_depth":1.5}`), "glob_scan_max_depth"},
		{"depth as text", managed(`{"type":"restricted","entries":[],"glob_scan_max_depth":"3"}`), "glob_scan_max_depth"},
		{"entry of another type", entries(`1`), "file_system.entries[0]: must be an object"},
		{"entry null", entries(`null`), "file_system.entries[0]: must be an object"},
		{"no path", entries(`{"access":"read"}`), "file_system.entries[0].path: missing"},
		{"no access", entry(`{"type":"path","path":"/a"}`, ``), "file_system.entries[0].access: missing"},
		{"unknown access", entries(`{"path":{"type":"path","path":"/a"},"access":"read"},{"path":{"type":"path","path":"/a"},"access":"rw"}`), `file_system.entries[1].access: must be read, write or deny, not "rw"`},
		{"unknown missing behavior", entry(`{"type":"path","path":"/a"}`, `,"access":"read","missing_path_behavior":"create"`), "missing_path_behavior"},
		{"unknown place", entry(`{"type":"regex"}`, `,"access":"read"`), "entries[0].path.type"},
		{"relative path", entry(`{"type":"path","path":"a"}`, `,"access":"read"`), "entries[0].path.path: must be an absolute path"},
		{"empty path", entry(`{"type":"path","path":""}`, `,"access":"read"`), "entries[0].path.path"},
		{"zero byte", entry(`{"type":"path","path":"/a\u0000"}`, `,"access":"read"`), "NUL byte"},
		{"half a character", entry(`{"type":"path","path":"/a\ud800"}`, `,"access":"deny"`), "entries[0].path.path: contains the replacement character"},
		{"uri of another host", entry(`{"type":"path","path":"file://h/a"}`, `,"access":"read"`), "another host"},
		{"uri with query", entry(`{"type":"path","path":"file:///a?b"}`, `,"access":"read"`), "query"},
		{"uri with fragment", entry(`{"type":"path","path":"file:///a#b"}`, `,"access":"read"`), "fragment"},
		{"uri with zero byte", entry(`{"type":"path","path":"file:///a%00"}`, `,"access":"read"`), "not a file URI"},
		{"uri that is relative", entry(`{"type":"path","path":"file:a"}`, `,"access":"read"`), "not a file URI"},
		{"other scheme", entry(`{"type":"path","path":"https://h/a"}`, `,"access":"read"`), "absolute path"},
		{"glob that reads", entry(`{"type":"glob_pattern","pattern":"/a/*"}`, `,"access":"read"`), "a glob pattern can only deny"},
		{"glob that is broken", entry(`{"type":"glob_pattern","pattern":"/a/["}`, `,"access":"deny"`), "no matching"},
		{"no value", entry(`{"type":"special"}`, `,"access":"read"`), "entries[0].path.value: missing"},
		{"no kind", entry(`{"type":"special","value":{}}`, `,"access":"read"`), "entries[0].path.value.kind: missing"},
		{"empty kind", entry(`{"type":"special","value":{"kind":""}}`, `,"access":"read"`), "entries[0].path.value.kind"},
		{"known token in disguise", entry(`{"type":"special","value":{"kind":"unknown","path":":root"}}`, `,"access":"read"`), "entries[0].path.value.kind"},
		{"subpath that climbs", entry(`{"type":"special","value":{"kind":"project_roots","subpath":"../x"}}`, `,"access":"read"`), "entries[0].path.value.subpath"},
		{"subpath of another type", entry(`{"type":"special","value":{"kind":"project_roots","subpath":1}}`, `,"access":"read"`), "entries[0].path.value.subpath"},
		{"subpath where none may be", entry(`{"type":"special","value":{"kind":"tmpdir","subpath":"x"}}`, `,"access":"read"`), "entries[0].path.value.subpath"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParseProfile([]byte(tt.in))
			var we *ParseError
			if !errors.As(err, &we) || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasPrefix(err.Error(), "invalid permission profile: ") {
				t.Errorf("error %v, want a ParseError with %q", err, tt.want)
			}
			if !p.Equal(sandbox.Policy{}) {
				t.Error("the policy that comes with an error is not the zero one")
			}
		})
	}
}

func TestMarshalRefusesLoss(t *testing.T) {
	ws := sandbox.WorkspaceWrite()
	skip := func(e sandbox.Entry) sandbox.Entry { e.SkipMissing = true; return e }
	for _, tt := range []struct {
		name string
		p    sandbox.Policy
		ok   bool // can be written
	}{
		{"protected names spelled out", ws.WithEntries(skip(sandbox.Entry{Place: sandbox.Place{Kind: sandbox.PlaceSpecial, Token: sandbox.TokenProjectRoots, Subpath: ".git"}, Level: sandbox.LevelRead})), true},
		{"protected names of a root", ws.WithEntries(sandbox.PathEntry("/a", sandbox.LevelWrite), skip(sandbox.PathEntry("/a/.git", sandbox.LevelRead))), true},
		{"protected names of no root", ws.WithEntries(skip(sandbox.PathEntry("/a/.git", sandbox.LevelRead))), true},
		{"redundant reads", sandbox.ReadOnly().WithEntries(sandbox.PathEntry("/a", sandbox.LevelRead)), true},
		{"proxy", sandbox.ReadOnly().With(sandbox.Grant{Addr: "h:1"}), true},
		{"zero", sandbox.Policy{}, true},
		{"without workspaces", sandbox.WorkspaceWrite("/w"), true},
		{"carve-out", ws.WithEntries(sandbox.PathEntry("/a", sandbox.LevelRead)), true},
		{"denial", ws.WithEntries(sandbox.PathEntry("/a", sandbox.LevelDeny)), true},
		{"glob", ws.WithEntries(sandbox.GlobEntry("/a/*")), true},
		{"everything writable", ws.WithEntries(sandbox.PathEntry("/", sandbox.LevelWrite)), true},
		{"nothing but writable", mustNew(t, sandbox.Managed, sandbox.NetworkNone, sandbox.PathEntry("/", sandbox.LevelWrite)), true},
		{"unrestricted", sandbox.FullAccess().WithNetwork(sandbox.NetworkNone).WithNetwork(sandbox.NetworkHost), true},
		{"unknown token that reads", sandbox.ReadOnly().WithEntries(sandbox.SpecialEntry("x", sandbox.LevelRead)), true},
		{"unknown token that writes", ws.WithEntries(sandbox.SpecialEntry("x", sandbox.LevelWrite)), true},
		{"writable platform", ws.WithEntries(sandbox.SpecialEntry(sandbox.TokenMinimal, sandbox.LevelWrite)), true},
		{"not UTF-8", ws.WithEntries(sandbox.PathEntry("/\xff", sandbox.LevelWrite)), false},
		{"glob not UTF-8", ws.WithEntries(sandbox.GlobEntry("/a/\xff*")), false},
		{"relative", sandbox.WorkspaceWrite("a"), false},
		{"unusable", sandbox.ReadOnly().WithEntries(sandbox.PathEntry("/a\x00", sandbox.LevelDeny)), false},
		{"named", ws.With(sandbox.Grant{Name: "git"}), false},
		{"raw of a known token", sandbox.ReadOnly().WithEntries(sandbox.Entry{Place: sandbox.Place{Kind: sandbox.PlaceSpecial, Token: "x", Raw: `{"kind":"root"}`}, Level: sandbox.LevelWrite}), false},
		{"raw that is no JSON", sandbox.ReadOnly().WithEntries(sandbox.Entry{Place: sandbox.Place{Kind: sandbox.PlaceSpecial, Token: "x", Raw: `}`}, Level: sandbox.LevelWrite}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := MarshalProfile(tt.p)
			if tt.ok != (err == nil) || err != nil &&
				!strings.HasPrefix(err.Error(), "policy cannot be written as a permission profile: ") {
				t.Errorf("%s, error %v", out, err)
			}
		})
	}
}

func TestMarshalProfileURI(t *testing.T) {
	p := mustNew(t, sandbox.Managed, sandbox.NetworkNone, sandbox.PathEntry("/a b?#%", sandbox.LevelWrite),
		sandbox.PathEntry("/\xff", sandbox.LevelRead))
	out, err := MarshalProfileURI(p)
	if err != nil || !strings.Contains(string(out), `"file:///a%20b%3F%23%25"`) ||
		!strings.Contains(string(out), `"file:///%FF"`) {
		t.Fatalf("%s, error %v", out, err)
	}
	if q, err := ParseProfile(out); err != nil || !q.Equal(p) {
		t.Errorf("read back as %v, error %v", q.Entries(), err)
	}
}

// TestRoundTrip checks that what can be written means the same when it is read again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		for _, write := range []func(sandbox.Policy) ([]byte, error){MarshalProfile, MarshalProfileURI} {
			out, err := write(p)
			if err != nil {
				continue
			}
			q, err := ParseProfile(out)
			if err != nil {
				t.Fatalf("%v\nis written as %s: %v", p.Entries(), out, err)
			}
			sameMeaning(t, p.Bind(testPlaces()), q.Bind(testPlaces()), out)
		}
	})
}

// sameMeaning checks that two bound policies give the same answers. Covers compares
// places that are not bound as text, which a token drawn here does not keep.
func sameMeaning(t *rapid.T, p, q sandbox.Policy, wire []byte) {
	special := func(e sandbox.Entry) bool {
		return e.Place.Kind == sandbox.PlaceSpecial && e.Place.Token != sandbox.TokenRoot
	}
	if !slices.ContainsFunc(p.Entries(), special) && (!p.Covers(q) || !q.Covers(p)) {
		t.Fatalf("%v\nis written as %s\nand read as %v", p.Entries(), wire, q.Entries())
	}
	for range 5 {
		if a := drawAccess(t); p.Rule(a) != q.Rule(a) {
			t.Fatalf("%v\nis written as %s\nand read as %v\nwhich differs on %+v", p.Entries(), wire,
				q.Entries(), a)
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	for _, line := range observed(f) {
		f.Add(line)
	}
	f.Add([]byte(`{"type":"external","network":"restricted"}`))
	f.Add([]byte(managed(`{"type":"unrestricted"}`)))
	f.Add([]byte(entries(`{"path":{"type":"glob_pattern","pattern":"/a/**/*.env"},"access":"none"}`)))
	f.Add([]byte(entries(`{"path":{"type":"special","value":{"kind":"unknown", "path":":x","y":1.0}},"access":"read"}`)))
	f.Add([]byte(entries(`{"path":{"type":"path","path":"file:///a%20b"},"access":"write","missing_path_behavior":"skip"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile(data)
		if err != nil {
			return
		}
		_ = p.Bind(testPlaces()).Rule(sandbox.Access{Op: sandbox.Write, Path: "/w/a"})
		out, err := MarshalProfileURI(p)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", data, err)
		}
		q, err := ParseProfile(out)
		if err != nil || !q.Equal(p) {
			t.Fatalf("%s is written as %s and read as %v, error %v", data, out, q.Entries(), err)
		}
		again, err := MarshalProfileURI(q)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%s is written again as %s, error %v", out, again, err)
		}
	})
}
