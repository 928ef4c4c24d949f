// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// readLines decodes a file of testdata, one JSON object a line.
func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s:%d: %v", name, len(all)+1, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

func argvs(commands []Command) [][]string {
	var all [][]string
	for _, c := range commands {
		all = append(all, c.Args)
	}
	return all
}

// stricter are the scripts that the peer splits and this package does not, with the reason.
var stricter = map[string]Reason{
	"zz a\rb":     Character, // bash has no blank there, the peer has
	"zz \"a\rb\"": Character,
	"zz\r\nyy":    Character,
	"time zz":     Compound, // a keyword
	"coproc zz":   Compound,
	"then zz":     Syntax,
}

type plainRow struct {
	Script string   `json:"script"`
	Plain  bool     `json:"plain"`
	First  []string `json:"first_command"`
}

// TestPlainVectors compares the plain parse with the peer's on its probe of characters and syntax.
func TestPlainVectors(t *testing.T) {
	used := 0
	for _, r := range readLines[plainRow](t, "plain.jsonl") {
		got := Read([]string{"/bin/bash", "-lc", r.Script})
		if why, ok := stricter[r.Script]; ok {
			used++
			if !r.Plain || got.Opaque != why {
				t.Errorf("%q: opaque because of %q, want %q, and that the peer splits it", r.Script,
					got.Opaque, why)
			}
			continue
		}
		if (len(got.Plain) > 0) != r.Plain {
			t.Errorf("%q: plain %v (%s), want %v", r.Script, len(got.Plain) > 0, got.Opaque, r.Plain)
		} else if r.Plain && !cmp.Equal(got.Plain[0].Args, r.First) {
			t.Errorf("%q: first command %q, want %q", r.Script, got.Plain[0].Args, r.First)
		}
	}
	if used != len(stricter) {
		t.Errorf("%d of %d recorded differences are in the vectors", used, len(stricter))
	}
}

// safe reports whether all commands are known to read only.
func safe(r *Reading) bool {
	return len(r.Plain) > 0 && !slices.ContainsFunc(r.Plain,
		func(c Command) bool { return !programs.Safe(c.Args) })
}

// Differences to the peer in rows.jsonl, all of them stricter. The words of a row are joined by
// blanks.
var (
	notSafe = []string{
		"./ls", "subdir/cat nofile", "/nonexistent/echo hi", // other programs of that name
		"base64 --out=x",           // an abbreviation
		"find -files0-from nofile", // reads names from a file
		"rg -nz x nofile",          // several options in one word
	}
	dangerousToo = []string{
		"rm --forc /nonexistent/x",
		"sudo -n rm -rf /nonexistent/x",
		"sudo -u root rm -rf /nonexistent/x",
		"env -u A rm -rf /nonexistent/x",
		"command rm -rf /nonexistent/x",
		"nice rm -rf /nonexistent/x",
		"timeout 1 rm -rf /nonexistent/x",
		"xargs rm -rf",
		"busybox rm -rf /nonexistent/x",
		"nohup rm -rf /nonexistent/x",
		"exec rm -rf /nonexistent/x",
		"bash -x -c rm -rf /nonexistent/x",
		"eval rm -rf /nonexistent/x",
		"bash -lc cmd=rm; $cmd -rf /nonexistent/x",
		"bash -lc r\\m -rf /nonexistent/x",
		"bash -lc rm -${X}rf /nonexistent/x",
		"bash -lc sh -c \"$X rm -rf /nonexistent/x\"",
		"bash -lc xargs rm -rf < /dev/null",
		"bash -lc find /nonexistent -exec rm -rf {} +",
		"bash -lc coproc rm -rf /nonexistent/x",
		"bash -lc alias ll=\"rm -rf /nonexistent/x\"",
	}
	notPlain = []string{"bash -lc time ls", "bash -lc coproc rm -rf /nonexistent/x"} // keywords
)

// TestRowVectors compares lists of safe and dangerous commands with the peer's.
func TestRowVectors(t *testing.T) {
	type row struct {
		Argv      []string   `json:"argv"`
		Safe      bool       `json:"safe"`
		Dangerous bool       `json:"dangerous"`
		Plain     bool       `json:"plain"`
		Commands  [][]string `json:"commands"`
	}
	used := map[string]bool{}
	differs := func(list []string, words string) bool {
		used[words] = used[words] || slices.Contains(list, words)
		return slices.Contains(list, words)
	}
	for _, r := range readLines[row](t, "rows.jsonl") {
		got, words := Read(r.Argv), strings.Join(r.Argv, " ")
		if want := r.Safe && !differs(notSafe, words); safe(got) != want {
			t.Errorf("%q: safe %v, want %v", r.Argv, safe(got), want)
		}
		if want := r.Dangerous || differs(dangerousToo, words); got.Dangerous() != want {
			t.Errorf("%q: dangerous %v, want %v", r.Argv, got.Dangerous(), want)
		}
		if !got.Wrapper {
			if r.Plain || len(got.Plain) != 1 {
				t.Errorf("%q is no wrapper: want one command as it is, got %q", r.Argv, argvs(got.Plain))
			}
			continue
		}
		switch want := r.Plain && !differs(notPlain, words); {
		case (got.Plain != nil) != want:
			t.Errorf("%q: plain %v (%s), want %v", r.Argv, got.Plain != nil, got.Opaque, want)
		case want && !cmp.Equal(argvs(got.Plain), r.Commands):
			t.Errorf("%q: commands %q, want %q", r.Argv, argvs(got.Plain), r.Commands)
		}
	}
	for _, words := range slices.Concat(notSafe, dangerousToo, notPlain) {
		if !used[words] {
			t.Errorf("the recorded difference %q is not in the vectors", words)
		}
	}
}

// decisionRules are those of decisions.jsonl that forbid or prompt.
var decisionRules = [][][]string{{{"git"}, {"push"}}, {{"rm"}}, {{"zzz"}}, {{"Del"}}}

// TestDecisionVectors looks for every command that the peer refused or asked about because of a
// rule.
func TestDecisionVectors(t *testing.T) {
	type row struct {
		Script  string `json:"script"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	}
	equal := func(token, word string) bool {
		return token == path.Base(word) || token == "Del" && strings.EqualFold(token, word)
	}
	n := 0
	for _, r := range readLines[row](t, "decisions.jsonl") {
		byRule := strings.Contains(r.Reason, "policy forbids") || strings.Contains(r.Reason, "use trash") ||
			strings.Contains(r.Reason, "deep") ||
			strings.Contains(r.Reason, "shared history") || strings.Contains(r.Reason, "by policy")
		if !byRule || r.Outcome == "run" {
			continue
		}
		n++
		found := false
		got := Read([]string{"/bin/bash", "-lc", r.Script})
		for _, rule := range decisionRules {
			for _, c := range got.Uses {
				found = found || c.Begins(rule, equal) == Yes
			}
		}
		if !found {
			t.Errorf("%q: the peer's outcome is %s (%s), nothing is found in %q", r.Script, r.Outcome,
				r.Reason, argvs(got.Uses))
		}
	}
	if n < 30 {
		t.Errorf("only %d rows are about rules", n)
	}
}
