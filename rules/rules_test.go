// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A row is one vector; testdata/execpolicy/README.md says what is binding.
type row struct {
	ID      string
	Rules   []string
	Argv    []string
	Resolve bool `json:"resolve_host_executables"`
	Exit    int
	Out     struct {
		MatchedRules []struct{ PrefixRuleMatch vectorMatch }
		Decision     string
	}
	Error struct {
		Stage, File, Class, Message, Example string
		Line, Column                         int
		Unmatched                            []string
	}
	Order string
}

type vectorMatch struct {
	MatchedPrefix                            []string
	Decision, Justification, ResolvedProgram string
}

// unsupported are the vectors that this interpreter does not accept.
var unsupported = map[string]string{
	"ep-sl_types-225": "type annotations are not supported",
}

func vectors(t testing.TB) []row {
	t.Helper()
	f, err := os.Open("testdata/execpolicy/rows.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) != 286 {
		t.Fatalf("%d vectors, want 286", len(all))
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, r := range vectors(t) {
		t.Run(r.ID, func(t *testing.T) {
			host := Host{Dir: "/cwd", Home: "/home/user"}
			set := Load(host, readAll(r.Rules)...)
			why, gap := unsupported[r.ID]
			switch {
			case gap:
				if set.Err() == nil || !strings.Contains(set.Err().Error(), why) {
					t.Errorf("%v, want %s", set.Err(), why)
				}
			case r.Exit != 0:
				checkError(t, r, set)
			default:
				if set.Err() != nil {
					t.Fatal(set.Err())
				}
				checkMatches(t, r, set, host)
			}
		})
	}
}

// readAll reads files of testdata as package rules/files does, without its care.
func readAll(names []string) []Source {
	var all []Source
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata/execpolicy", name))
		all = append(all, Source{Name: name, Text: text, Err: err})
	}
	return all
}

func checkMatches(t *testing.T, r row, set *Set, host Host) {
	t.Helper()
	res := set.Check(r.Argv)
	if r.Resolve {
		res = set.Resolve(r.Argv, host)
	}
	var got, want []vectorMatch
	for _, m := range res.Matches {
		if m.Line == 0 || m.Col == 0 || !slices.Contains(r.Rules, m.File) {
			t.Errorf("the rule has no place: %v", m.Pos)
		}
		got = append(got, vectorMatch{m.Prefix, m.Decision.String(), m.Justification, m.Program})
	}
	for _, m := range r.Out.MatchedRules {
		m.PrefixRuleMatch.ResolvedProgram = strings.ReplaceAll(m.PrefixRuleMatch.ResolvedProgram,
			"{CWD}", "/cwd")
		want = append(want, m.PrefixRuleMatch)
	}
	if r.Order == "any" {
		byText := func(a, b vectorMatch) int {
			return strings.Compare(strings.Join(a.MatchedPrefix, "\x00")+a.Decision+a.Justification,
				strings.Join(b.MatchedPrefix, "\x00")+b.Decision+b.Justification)
		}
		slices.SortFunc(got, byText)
		slices.SortFunc(want, byText)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(want) > 0 && res.Decision.String() != r.Out.Decision {
		t.Errorf("decision %v, want %s", res.Decision, r.Out.Decision)
	}
}

func checkError(t *testing.T, r row, set *Set) {
	t.Helper()
	var e *LoadError
	if !errors.As(set.Err(), &e) {
		t.Fatalf("%v, want %s", set.Err(), r.Error.Message)
	}
	if e.File != r.Error.File || e.Unread != (r.Error.Stage == "read") {
		t.Errorf("%#v, want %s %s", e, r.Error.Stage, r.Error.File)
	}
	switch r.Error.Class {
	case "rule":
		if strings.TrimSpace(e.Text) != r.Error.Message || e.Line != r.Error.Line || e.Col != r.Error.Column {
			t.Errorf("%v, want %d:%d: %s", e, r.Error.Line, r.Error.Column, r.Error.Message)
		}
	case "starlark":
		if e.Line != r.Error.Line {
			t.Errorf("%v, want line %d: %s", e, r.Error.Line, r.Error.Message)
		}
	case "example_unmatched":
		_, list, _ := strings.Cut(e.Text, "unmatched examples: ")
		var got []string
		if err := json.Unmarshal([]byte(list), &got); err != nil || !slices.Equal(got, r.Error.Unmatched) {
			t.Errorf("%v: %v, want %q", e, err, r.Error.Unmatched)
		}
	case "example_matched":
		if !strings.HasSuffix(e.Text, "`: "+r.Error.Example) {
			t.Errorf("%v, want %s", e, r.Error.Example)
		}
	}
	if e.Line == 0 && !e.Unread {
		t.Errorf("%v: no line", e)
	}
	if res := set.Check(r.Argv); res.Err == nil || res.Decision != Forbid {
		t.Errorf("%+v of a set that did not load", res)
	}
}
