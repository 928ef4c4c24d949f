// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestAdd adds to texts as people write them: all that was there stays, byte for byte.
func TestAdd(t *testing.T) {
	for _, test := range []struct{ name, text, key, want string }{
		{"empty", "", "grants", "grants = [\"x\"]\n"},
		{"empty, in a table", "", "project.grants", "[project]\ngrants = [\"x\"]\n"},
		{"one element", "grants = [\"git\"] # why\n", "grants", "grants = [\"git\", \"x\"] # why\n"},
		{"no elements", "grants = [] # why\n", "grants", "grants = [\"x\"] # why\n"},
		{"no elements, a comment", "grants = [ # none\n]\n", "grants", "grants = [ # none\n  \"x\",\n]\n"},
		{"comments for elements", "grants = [\n  # \"git\",\n]\n", "grants", "grants = [\n  \"x\",\n  # \"git\",\n]\n"},
		{"there already", "grants = [ 'x' ]\n", "grants", "grants = [ 'x' ]\n"},
		{"trailing comma", "grants = [\"git\", ]\n", "grants", "grants = [\"git\", \"x\", ]\n"},
		{"quoted key, tight", "\"grants\"=['git']", "grants", "\"grants\"=['git', \"x\"]"},
		{
			"several lines", "grants = [\n  \"a\", # one\n  \"b\"  # two\n]\nquiet = true\n", "grants",
			"grants = [\n  \"a\", # one\n  \"b\",  # two\n  \"x\"\n]\nquiet = true\n",
		},
		{"several lines, trailing comma", "grants = [\n\t\"a\", # one\n] # end\n", "grants", "grants = [\n\t\"a\", # one\n\t\"x\",\n] # end\n"},
		{"bracket on the line", "grants = [\n  \"a\",\n  \"b\"]\n", "grants", "grants = [\n  \"a\",\n  \"b\", \"x\"]\n"},
		{"two on the line", "grants = [\n  \"a\", \"b\",\n]\n", "grants", "grants = [\n  \"a\", \"b\", \"x\",\n]\n"},
		{"comma on the next line", "grants = [\n  \"a\"\n  , ]\n", "grants", "grants = [\n  \"a\",\n  \"x\"\n  , ]\n"},
		{"no indentation", "grants = [\n\"a\"\n]\n", "grants", "grants = [\n\"a\",\n\"x\"\n]\n"},
		{"brackets in strings", "grants = [\"]\", '# no']\n", "grants", "grants = [\"]\", '# no', \"x\"]\n"},
		{"string of several lines", "grants = [\"\"\"\na\nb\"\"\"]\n", "grants", "grants = [\"\"\"\na\nb\"\"\", \"x\"]\n"},
		{"line ends", "quiet = true\r\n[project]\r\ngrants = [\r\n  \"a\",\r\n]\r\n", "project.grants", "quiet = true\r\n[project]\r\ngrants = [\r\n  \"a\",\r\n  \"x\",\r\n]\r\n"},
		{"line ends, new table", "quiet = true\r\n", "project.grants", "quiet = true\r\n\r\n[project]\r\ngrants = [\"x\"]\r\n"},
		{"line ends, new key", "[project] # p\r\nallow = []\r\n", "project.grants", "[project] # p\r\ngrants = [\"x\"]\r\nallow = []\r\n"},
		{"no final newline", "quiet = true", "project.grants", "quiet = true\n\n[project]\ngrants = [\"x\"]\n"},
		{"header at the end", "[ project ]", "project.grants", "[ project ]\ngrants = [\"x\"]"},
		{"other tables", "[project]\nallow = []\n\n[limits]\npids = 1\n", "project.grants", "[project]\ngrants = [\"x\"]\nallow = []\n\n[limits]\npids = 1\n"},
		{"inline table", "project = { allow = [\"unix\"] }\n", "project.grants", "project = { grants = [\"x\"], allow = [\"unix\"] }\n"},
		{"empty inline table", "project = {}\n", "project.grants", "project = { grants = [\"x\"] }\n"},
		{"array in an inline table", "project = { grants = [\"a\"], read = [] }\n", "project.grants", "project = { grants = [\"a\", \"x\"], read = [] }\n"},
		{"dotted key", "project.grants = [\"a\"]\n", "project.grants", "project.grants = [\"a\", \"x\"]\n"},
		{"beside dotted keys", "# c\nproject.read = [\n  \"a\" ]\n", "project.grants", "# c\nproject.grants = [\"x\"]\nproject.read = [\n  \"a\" ]\n"},
		{"table below only", "[project.environment]\nset = {}\n", "project.grants", "[project.environment]\nset = {}\n\n[project]\ngrants = [\"x\"]\n"},
		{"above the first header", "quiet = true # q\n\n# p\n[profiles.p]\n", "grants", "quiet = true # q\ngrants = [\"x\"]\n\n# p\n[profiles.p]\n"},
		{"below an array", "deny = [\n  \"a\",\n  # [more]\n\n]\n[profiles.p]\n", "grants", "deny = [\n  \"a\",\n  # [more]\n\n]\ngrants = [\"x\"]\n[profiles.p]\n"},
		{"headers only", "# mine\n\n# p\n[profiles.p]\ngrants = []\n", "grants", "# mine\n\ngrants = [\"x\"]\n\n# p\n[profiles.p]\ngrants = []\n"},
		{"header in the first line", "# p\n[profiles.p]\n", "grants", "grants = [\"x\"]\n\n# p\n[profiles.p]\n"},
		{"comments only", "# none", "grants", "# none\n\ngrants = [\"x\"]\n"},
		{"no array", "[project]\ngrants = \"git\"\n", "project.grants", ""},
		{"no table", "project = 1\n", "project.grants", ""},
		{"no strings", "grants = [[1]]\n", "grants", ""},
		{"invalid", "grants = [\n", "grants", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := AddTOML([]byte(test.text), strings.Split(test.key, "."), "x", true)
			var bad *TOMLError
			if test.want == "" && !errors.As(err, &bad) || test.want != "" && err != nil ||
				string(got) != test.want {
				t.Errorf("%q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

// TestAddValue writes values that are there or not.
func TestAddValue(t *testing.T) {
	for _, test := range []struct{ name, text, key, want string }{
		{"new", "[project]\n", "project.network", "[project]\nnetwork = \"x\"\n"},
		{"replaced", "[network]\nmode  =  'none'# why\n", "network.mode", "[network]\nmode  =  \"x\"# why\n"},
		{"the same", "network = { mode = 'x' }", "network.mode", "network = { mode = 'x' }"},
		{"no string", "[network]\nmode = true\n", "network.mode", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := AddTOML([]byte(test.text), strings.Split(test.key, "."), "x", false)
			if (err == nil) != (test.want != "") || string(got) != test.want {
				t.Errorf("%q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

// FuzzAdd: a text with an element more says what it said and that, and has each of its lines; a
// second time nothing changes.
func FuzzAdd(f *testing.F) {
	for _, text := range []string{
		"", "grants = [\n  \"a\", # one\n]\n", "project = { grants = ['a'] }\r\n",
		"project.read = []\n[project.x]\n", "[project]\ngrants = [] # no\n",
		"a = [[1, {b = 2}]]\n[grants]\n", "a = \"\"\"\n\"\"\"\n# c\n[[x]]",
	} {
		f.Add([]byte(text), "x\n\"", true)
		f.Add([]byte(text), "git", false)
	}
	f.Fuzz(func(t *testing.T, text []byte, element string, project bool) {
		path := []string{"grants"}
		if project {
			path = []string{"project", "grants"}
		}
		before := slices.Clone(text)
		out, err := AddTOML(text, path, element, true)
		if !slices.Equal(text, before) {
			t.Fatal("the text was changed")
		}
		if err != nil {
			return
		}
		items, err := ParseTOML(out)
		i := slices.IndexFunc(items, func(i TOMLItem) bool { return slices.Equal(i.Path, path) })
		if err != nil || i < 0 {
			t.Fatalf("%v in %q", err, out)
		}
		list := items[i].Value.List
		if !slices.ContainsFunc(list, func(v TOMLValue) bool { return v.Kind == String && v.Text == element }) {
			t.Errorf("%q has no %q", out, element)
		}
		if again, err := AddTOML(out, path, element, true); err != nil || string(again) != string(out) {
			t.Errorf("again %q, %v", again, err)
		}
		if !contains(string(out), string(text)) {
			t.Errorf("%q lost something of %q", out, text)
		}
	})
}

// contains reports whether text has the characters of part in their order.
func contains(text, part string) bool {
	for i := range len(part) {
		at := strings.IndexByte(text, part[i])
		if at < 0 {
			return false
		}
		text = text[at+1:]
	}
	return true
}
