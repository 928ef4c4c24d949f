// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"flag"
	"os"
	"path"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// A spelling is a command line that runs what a rule forbids.
type spelling struct {
	Script string   `json:"script,omitempty"` // for bash -c
	Argv   []string `json:"argv,omitempty"`
	Rule   []string `json:"rule"`
	Found  string   `json:"found"` // yes or maybe
}

func (s spelling) words() []string {
	if s.Argv != nil {
		return s.Argv
	}
	return []string{"bash", "-c", s.Script}
}

// A benign command line runs nothing that is forbidden.
type benign struct {
	Script string `json:"script"`
	Plain  int    `json:"plain"`           // commands of the plain list; 0 is opaque
	Found  string `json:"found,omitempty"` // maybe, or unknown: where a careful caller asks
}

// match is how sure it is that a command line runs what begins with the words.
func match(r *Reading, words []string) Certainty {
	var pattern [][]string
	for _, w := range words {
		pattern = append(pattern, []string{w})
	}
	found := No
	for i := range r.Uses {
		found = max(found, r.Uses[i].Begins(pattern,
			func(token, word string) bool { return token == path.Base(word) }))
	}
	return found
}

var answers = map[Certainty]string{No: "", Maybe: "maybe", Yes: "yes"}

// write replaces a file of testdata with one JSON object a line.
func write[T any](t *testing.T, name string, all []T) {
	t.Helper()
	f, err := os.Create(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	for _, v := range all {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpellings finds rm -rf and git push however they are spelled.
func TestSpellings(t *testing.T) {
	all := readLines[spelling](t, "spellings.jsonl")
	count := map[string]int{}
	for i, s := range all {
		r := Read(s.words())
		got := answers[match(r, s.Rule)]
		if got == "" || got != s.Found && !*update {
			t.Errorf("%q: %q, want %q, that it runs %q; found %q", s.words(), got, s.Found, s.Rule,
				argvs(r.Uses))
		}
		if s.Rule[0] == "rm" && got == "yes" && !r.Dangerous() {
			t.Errorf("%q is not called dangerous", s.words())
		}
		all[i].Found = got
		count[s.Rule[0]]++
	}
	if *update {
		write(t, "spellings.jsonl", all)
	}
	if count["rm"] < 80 || count["git"] < 80 {
		t.Errorf("the table has %v spellings, want 80 of each", count)
	}
}

// TestBenign reads everyday commands: none is taken for what it is not.
func TestBenign(t *testing.T) {
	all := readLines[benign](t, "benign.jsonl")
	asked := 0
	for i, b := range all {
		r := Read([]string{"bash", "-c", b.Script})
		found := max(match(r, []string{"rm", "-rf"}), match(r, []string{"git", "push"}))
		if found == Yes || r.Dangerous() {
			t.Errorf("%q is taken for something else: %q", b.Script, argvs(r.Uses))
		}
		got := benign{b.Script, len(r.Plain), answers[found]}
		if found == No && len(r.Unknown) > 0 {
			got.Found = "unknown"
		}
		if got.Found != "" {
			asked++
		}
		if got != b && !*update {
			t.Errorf("%q: %d plain commands, %q; want %d, %q", b.Script, got.Plain, got.Found,
				b.Plain, b.Found)
		}
		all[i] = got
	}
	if *update {
		write(t, "benign.jsonl", all)
	}
	if len(all) < 300 || asked > 12 {
		t.Errorf("%d commands, %d of them not read to their end; want 300 and at most 12", len(all), asked)
	}
}
