// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func text(name, text string) Source { return Source{Name: name, Text: []byte(text)} }

func TestZero(t *testing.T) {
	var d Decision
	var s *Set
	if res := s.Check([]string{"a"}); d != Forbid || res.Decision != Forbid || res.Err != nil ||
		len(res.Matches) != 0 {
		t.Errorf("%v, %+v", d, res)
	}
	allowed, denied := s.Hosts()
	if s.Err() != nil || s.Networks() != nil || allowed != nil || denied != nil {
		t.Error("a nil Set says something")
	}
	if res := Load(Host{}).Check(nil); res.Decision != Forbid || len(res.Matches) != 0 {
		t.Errorf("%+v of no words", res)
	}
}

// TestBrokenAmongGood: what a broken file says is not known, so nothing is allowed; what
// the others forbid stays forbidden.
func TestBrokenAmongGood(t *testing.T) {
	s := Load(Host{},
		text("a", `prefix_rule(["ls"]); prefix_rule(["rm"], "forbidden"); network_rule("a", "https", "allow"); network_rule("b", "https", "deny")`),
		text("b", `prefix_rule(["ls"], "forbidden")`+"\nx = ["),
		Source{Name: "c", Err: fs.ErrPermission},
		text("d", `prefix_rule(["cat"])`),
	)
	for _, argv := range [][]string{{"ls"}, {"rm"}, {"cat"}, {"other"}} {
		if res := s.Check(argv); res.Decision != Forbid || res.Err == nil {
			t.Errorf("%q: %+v", argv, res)
		}
	}
	if m := s.Check([]string{"rm"}).Matches; len(m) != 1 || m[0].Decision != Forbid || m[0].File != "a" {
		t.Errorf("the neighbor's rule: %+v", m)
	}
	if text := s.Err().Error(); !strings.Contains(text, "b:2:5: '[' is not closed") ||
		!strings.Contains(text, "c: permission denied") {
		t.Error(text)
	}
	var e *LoadError
	if !errors.As(s.Err(), &e) || !errors.Is(s.Err(), fs.ErrPermission) {
		t.Errorf("%#v", s.Err())
	}
	if allowed, denied := s.Hosts(); len(allowed) != 0 || !slices.Equal(denied, []string{"b"}) {
		t.Errorf("hosts %q, %q", allowed, denied)
	}
}

func TestSandbox(t *testing.T) {
	s := Load(Host{}, text("a", `
prefix_rule(["go"])
prefix_rule(["go", "test"], sandbox = "outside")
prefix_rule(["go", "test", "x"], "prompt", sandbox = "read-only")
prefix_rule(["go", "test", "x"], "prompt", sandbox = "workspace-write")
prefix_rule(["make"], sandbox = "workspace-write")
`))
	for _, test := range []struct {
		command  string
		decision Decision
		sandbox  Sandbox
	}{
		{"go build", Allow, Unsaid},
		{"go test", Allow, Outside},
		{"go test x", Prompt, ReadOnly},
		{"make", Allow, WorkspaceWrite},
	} {
		if res := s.Check(strings.Fields(test.command)); res.Decision != test.decision ||
			res.Sandbox != test.sandbox {
			t.Errorf("%s: %v, %v", test.command, res.Decision, res.Sandbox)
		}
	}
	if got := fmt.Sprint(Outside, ReadOnly, Forbid, Prompt); got != "outside read-only forbidden prompt" {
		t.Error(got)
	}
}

// TestNarrow: a project's file makes nothing possible that the user's files do not.
func TestNarrow(t *testing.T) {
	host := Host{Dir: "/w"}
	user := text("user", `prefix_rule(["rm"], "forbidden"); network_rule("a", "https", "deny")`)
	project := Source{Name: "project", Narrow: true, Text: []byte(`
prefix_rule(["ls"], match = ["ls"])
prefix_rule(["make"], "prompt", sandbox = "outside")
prefix_rule(["go"], "prompt", sandbox = "read-only")
network_rule("a", "https", "allow")
network_rule("b", "https", "deny")
host_executable("rm", [])
`)}
	s := Load(host, user, project)
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	if m := s.Check([]string{"ls"}).Matches; len(m) != 0 {
		t.Errorf("an allow of a project counts: %+v", m)
	}
	if res := s.Resolve([]string{"/bin/rm"}, host); len(res.Matches) != 1 {
		t.Error("a host_executable of a project takes a rule away")
	}
	if res := s.Check([]string{"make"}); res.Decision != Prompt || res.Sandbox != Unsaid {
		t.Errorf("make: %+v", res)
	}
	if res := s.Check([]string{"go"}); res.Decision != Prompt || res.Sandbox != ReadOnly {
		t.Errorf("go: %+v", res)
	}
	if allowed, denied := s.Hosts(); len(allowed) != 0 || !slices.Equal(denied, []string{"a", "b"}) {
		t.Errorf("hosts %q, %q", allowed, denied)
	}
}

func TestRequirements(t *testing.T) {
	good := Requirement{Pos: Pos{Line: 3, Col: 2}, Pattern: [][]string{{"git", "Hg"}, {"push"}},
		Decision: "forbidden", Justification: "ask first", Canonical: true}
	s := Load(Host{}, text("user", `prefix_rule(["git"])`),
		Source{Name: "/etc/managed", Required: []Requirement{good}})
	res := s.Check([]string{"git", "Push"})
	if s.Err() != nil || res.Decision != Forbid || len(res.Matches) != 2 ||
		res.Matches[1].Pos != (Pos{"/etc/managed", 3, 2}) {
		t.Errorf("%v, %+v", s.Err(), res)
	}
	if res := s.Check([]string{"hg", "push"}); len(res.Matches) != 1 ||
		res.Matches[0].Justification != "ask first" {
		t.Errorf("%+v", res)
	}
	for name, change := range map[string]func(*Requirement){
		"invalid decision \"allow\"":                   func(q *Requirement) { q.Decision = "allow" },
		"decision is missing; give prompt":             func(q *Requirement) { q.Decision = "" },
		"pattern cannot be empty":                      func(q *Requirement) { q.Pattern = nil },
		"pattern alternatives cannot be empty":         func(q *Requirement) { q.Pattern = [][]string{{"a"}, {}} },
		"invalid rule: justification cannot be empty":  func(q *Requirement) { q.Justification = " " },
		"m:7: rules.prefix_rules[0]: invalid decision": func(q *Requirement) { q.Decision, q.Pos = "x", Pos{Line: 7} },
	} {
		q := good
		change(&q)
		s := Load(Host{}, text("user", `prefix_rule(["git"])`), Source{Name: "m", Required: []Requirement{q}})
		if s.Err() == nil || !strings.Contains(s.Err().Error(), name) ||
			s.Check([]string{"git"}).Decision != Forbid {
			t.Errorf("%s: %v", name, s.Err())
		}
	}
}

func TestNetworks(t *testing.T) {
	s := Load(Host{}, text("a", `
network_rule("A:443", "https_connect", "allow", "why")
network_rule("b", "http", "deny")
network_rule("a", "http", "forbidden")
network_rule("b", "socks5_tcp", "allow")
network_rule("b", "http", "prompt")
`), text("b", `network_rule("c", "socks5_udp", "allow"); network_rule("b", "http", "allow")`))
	if allowed, denied := s.Hosts(); !slices.Equal(allowed, []string{"c", "b"}) ||
		!slices.Equal(denied, []string{"a"}) {
		t.Errorf("%q, %q", allowed, denied)
	}
	all := s.Networks()
	if len(all) != 7 || all[0] != (NetworkRule{Pos{"a", 2, 1}, "a", "https", Allow, "why"}) {
		t.Errorf("%+v", all)
	}
}

func TestAmend(t *testing.T) {
	s := Load(Host{}, text("a", `prefix_rule(["ls"]); prefix_rule(["git", "push"], "prompt")`))
	for _, test := range []struct {
		name   string
		prefix []string
		line   string
		added  bool
	}{
		{"new", []string{"go", "te st", `a"\é<`, "\t"}, `prefix_rule(pattern=["go", "te st", "a\"\\é<", "\t"], decision="allow")`, true},
		{"known", []string{"ls", "-l"}, `prefix_rule(pattern=["ls", "-l"], decision="allow")`, false},
		{"asked so far", []string{"git", "push"}, `prefix_rule(pattern=["git", "push"], decision="allow")`, true},
		{"an interpreter and a script", []string{"python3", "a.py"}, `prefix_rule(pattern=["python3", "a.py"], decision="allow")`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			next, line, err := s.Amend(test.prefix)
			if err != nil || line != test.line || (next != s) != test.added {
				t.Fatalf("%v, %s, %v", next, line, err)
			}
			if res := next.Check(test.prefix); !slices.ContainsFunc(res.Matches,
				func(m Match) bool { return m.Decision == Allow }) {
				t.Errorf("in memory: %+v", res)
			}
			again, err := Parse("line", []byte(line))
			if err != nil || again.Check(test.prefix).Decision != Allow {
				t.Errorf("the line: %v", err)
			}
		})
	}
	if len(s.Check([]string{"go", "te st"}).Matches) != 0 ||
		s.Check([]string{"git", "push"}).Decision != Prompt {
		t.Error("the Set has changed")
	}
	if next, _, err := (*Set)(nil).Amend([]string{"a"}); err != nil ||
		next.Check([]string{"a"}).Decision != Allow {
		t.Errorf("a nil Set: %v", err)
	}
}

func TestAmendRefused(t *testing.T) {
	s := Load(Host{})
	for _, test := range []struct {
		command string
		refused bool
	}{
		{"bash", true}, {"/bin/sh -c", true}, {"zsh -lc", true}, {"python3", true}, {"python3.12 -c", true}, {"/usr/bin/node -e", true},
		{"env", true}, {"env -i", true}, {"sudo", true}, {"git", true}, {"rm", true}, {"rm -rf", true}, {"npm run", true}, {"pwsh -NoProfile -Command", true},
		{"cmd.exe /c", true}, {`C:\x\powershell.exe`, true}, {"perl -e", true}, {"xargs", true}, {"Rscript", true},
		{"bash build.sh", false}, {"git push", false}, {"rm -rf build", false}, {"npm run test", false}, {"sudo -n ls", false}, {"ls", false}, {"pythonic", false},
	} {
		next, line, err := s.Amend(strings.Fields(test.command))
		if got := errors.Is(err, ErrTooWide); got != test.refused || got && (next != s || line != "") {
			t.Errorf("%s: %v", test.command, err)
		}
	}
	for _, prefix := range [][]string{nil, {"a\xff"}, {"a\x00"}} {
		var e *AmendError
		if _, _, err := s.Amend(prefix); !errors.As(err, &e) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestAmendNetwork(t *testing.T) {
	s := Load(Host{})
	for _, test := range []struct {
		rule NetworkRule
		line string
	}{
		{NetworkRule{Host: "A.example:443", Protocol: "https", Decision: Allow}, `network_rule(host="a.example", protocol="https", decision="allow")`},
		{NetworkRule{Host: "b", Protocol: "http-connect", Decision: Forbid, Justification: `x"`}, `network_rule(host="b", protocol="https", decision="deny", justification="x\"")`},
		{NetworkRule{Host: "c", Protocol: "socks5_udp", Decision: Prompt}, `network_rule(host="c", protocol="socks5_udp", decision="prompt")`},
	} {
		next, line, err := s.AmendNetwork(test.rule)
		if err != nil || line != test.line || len(next.Networks()) != 1 || len(s.Networks()) != 0 {
			t.Errorf("%+v: %s, %v", test.rule, line, err)
		}
		if again, err := Parse("line", []byte(line)); err != nil ||
			again.Networks()[0].Host != next.Networks()[0].Host {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, r := range []NetworkRule{{Host: "*", Protocol: "https"}, {Host: "a", Protocol: "ftp"},
		{Host: "a\xff", Protocol: "http"}, {Host: "a", Protocol: "http", Justification: " "}} {
		var e *AmendError
		if _, line, err := s.AmendNetwork(r); !errors.As(err, &e) || line != "" {
			t.Errorf("%+v: %s, %v", r, line, err)
		}
	}
}

// TestIndex compares the index with comparing every rule.
func TestIndex(t *testing.T) {
	words := rapid.SampledFrom([]string{"a", "b", "c", "A", "B", ""})
	rapid.Check(t, func(t *rapid.T) {
		s := &Set{}
		for range rapid.IntRange(0, 60).Draw(t, "rules") {
			r := rule{canonical: rapid.Bool().Draw(t, "canonical")}
			for range rapid.IntRange(1, 4).Draw(t, "length") {
				r.pattern = append(r.pattern, rapid.SliceOfN(words, 1, 3).Draw(t, "alternatives"))
			}
			s.rules = append(s.rules, r.expand()...)
		}
		s.build()
		argv := rapid.SliceOfN(words, 1, 5).Draw(t, "argv")
		var want []int32
		for i, r := range s.rules {
			words := slices.Clone(argv)
			for i := range words {
				if r.canonical {
					words[i] = strings.ToLower(words[i])
				}
			}
			fits := len(r.pattern) <= len(words)
			for i := 0; fits && i < len(r.pattern); i++ {
				fits = slices.Contains(r.pattern[i], words[i])
			}
			if fits {
				want = append(want, int32(i))
			}
		}
		if got := s.find(nil, argv); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", argv, got, want)
		}
	})
}

// manyRules are 10 000 rules, of which 5 000 begin with the same words.
func manyRules() []byte {
	var b strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&b, "prefix_rule(pattern = [\"tool%d\", [\"build\", \"test\"]], decision = \"prompt\", justification = \"no\")\n", i)
		fmt.Fprintf(&b, "prefix_rule(pattern = [\"git\", \"push\", \"remote%d\"], decision = \"forbidden\")\n", i)
	}
	return []byte(b.String())
}

// BenchmarkParse: loading 10 000 rules takes at most 150 ms.
func BenchmarkParse(b *testing.B) {
	text := manyRules()
	for b.Loop() {
		if _, err := Parse("f", text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck: judging a command against 10 000 rules takes at most 5 us, and 0.1 ms where
// thousands begin with its first word; it allocates nothing but the matches.
func BenchmarkCheck(b *testing.B) {
	s, err := Parse("f", manyRules())
	if err != nil {
		b.Fatal(err)
	}
	for name, argv := range map[string][]string{"none": {"git", "push", "x"}, "first": {"tool7", "test", "x"},
		"third": {"git", "push", "remote4999", "main"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if res := s.Check(argv); len(res.Matches) > 1 {
					b.Fatal(res)
				}
			}
		})
	}
}

// TestCheckAllocates holds the claim of BenchmarkCheck about memory.
func TestCheckAllocates(t *testing.T) {
	s, err := Parse("f", manyRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		argv []string
		want float64
	}{{"no match", []string{"git", "push", "x"}, 0}, {"a match", []string{"git", "push", "remote7"}, 1}} {
		if got := testing.AllocsPerRun(100, func() { s.Check(test.argv) }); got != test.want {
			t.Errorf("%s: %v allocations, want %v", test.name, got, test.want)
		}
	}
}
