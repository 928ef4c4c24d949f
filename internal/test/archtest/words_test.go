// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A term is a word that the project's glossary replaces.
type term struct {
	name    string // for the list of true uses
	pattern *regexp.Regexp
	use     string // the word of the glossary
	inTests bool   // it is checked in tests, too
	near    string // a part of all that the pattern matches, which is faster to look for
}

// terms are checked in names, comments, messages, tests and documents.
var terms = []term{
	{"kept from", regexp.MustCompile(`(?i)\b(kept|keeps?|keeping) (it |them |the command |commands? )?from (be|re|wri|runn|conn|list|some|any|what)\w*`), "denied, blocked", false, "from "},
	{"to be had", regexp.MustCompile(`(?i)\b(can(not)?|to|could|may|might) be had\b`), "available, not available, supported", true, "be had"},
	{"mend", regexp.MustCompile(`(?i)\b(mend|mends|mended|mending)\b`), "fix, hint", true, "mend"},
	{"folder", regexp.MustCompile(`(?i)folders?\b`), "directory", true, "folder"},
	{"head start", regexp.MustCompile(`(?i)\bhead ?starts?\b`), "prefork", true, "head"},
	{"spare", regexp.MustCompile(`(?i)\bspares?\b`), "pool", true, "spare"},
	{"whoever", regexp.MustCompile(`(?i)\b(whoever|somebody|nobody)\b`), "user, caller, owner, the process", false, "o"},
	{"cure", regexp.MustCompile(`(?i)\b(cures?|cured)\b`), "suggestion, suggested fix", true, "cure"},
	{"time was up", regexp.MustCompile(`(?i)\btime (was|is) up\b`), "time limit exceeded, timed out", true, " up"},
	{"wanted more", regexp.MustCompile(`(?i)\bwant(s|ed) more \w+ than\b`), "limit exceeded", true, " more "},
	{"means nothing", regexp.MustCompile(`(?i)\bmeans nothing\b`), "invalid", true, "means nothing"},
	{"come into being", regexp.MustCompile(`(?i)\b(come|comes|came|coming) into being\b`), "appear, be created", true, " into being"},
	{"verdict", regexp.MustCompile(`(?i)\bverdicts?\b`), "decision", true, "verdict"},
	{"hunt", regexp.MustCompile(`(?i)\b(hunt|hunts|hunted|bury|buries)\b`), "kill the process tree, remove", true, "u"},
	{"keeper", regexp.MustCompile(`\b[kK]eepers?\b`), "protector, holder process, owner", true, "keeper"},
	{"desk", regexp.MustCompile(`\b[dD]esks?\b`), "questions about hosts", false, "desk"},
	{"board", regexp.MustCompile(`\b[bB]oards?\b`), "open questions", false, "board"},
	{"sight", regexp.MustCompile(`(?i)\bsights?\b`), "view, what was seen", false, "sight"},
	{"door", regexp.MustCompile(`(?i)\bdoors?\b`), "server, handler, protocol", false, "door"},
	{"house", regexp.MustCompile(`(?i)\bhouse\b`), "project, code", false, "house"},
	{"story", regexp.MustCompile(`(?i)\bstor(y|ies)\b`), "what happens, steps", false, "stor"},
	{"gathering", regexp.MustCompile(`(?i)\bgathering\b`), "look, facts", true, "gathering"},
	{"lend", regexp.MustCompile(`(?i)\b(lend|lends|lent|lender)\b`), "share, give", true, "len"},
	{"led away", regexp.MustCompile(`(?i)\b(led|leads?|leading)( \w+)? away\b`), "redirected", true, " away"},
	{"handed on", regexp.MustCompile(`(?i)\b(handed|hands?|handing) (on|over)\b`), "passed", true, "hand"},
	{"what is there", regexp.MustCompile(`(?i)\bwhat is there\b`), "what exists", false, "what is there"},
	{"ear", regexp.MustCompile(`\b(ear|ears)\b`), "fan-out, relay", true, "ear"},
}

// A use is a place where a term is right.
type use struct {
	file, term, why string
}

// trueUses are the places where a replaced term is the right word.
var trueUses = []use{
	{"internal/linux/caches/table.go", "folder", "names of yarn's variables"},
	{"internal/names/grants/table.go", "keeper", "a file of a password manager"},
	{"CHANGELOG.md", "board", "the name before"},
	{"docs/decisions/0021-words.md", "mend", "the words before"},
	{"docs/decisions/0021-words.md", "wanted more", "the words before"},
	{"docs/decisions/0021-words.md", "means nothing", "the words before"},
	{"docs/decisions/0021-words.md", "whoever", "the words before"},
	{"internal/test/testenv/ordinary_linux.go", "whoever", "the user nobody"},
}

// TestWords looks for the terms that the glossary replaces.
func TestWords(t *testing.T) {
	dir := moduleDir(t)
	used := make([]bool, len(trueUses))
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		inside = filepath.ToSlash(inside)
		if entry.IsDir() {
			base := entry.Name()
			if name != dir && (base[0] == '.' && base != ".ci" || base == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || inside == "internal/test/archtest/words_test.go" || !speaks(inside) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, finding := range checkWords(inside, string(text), used) {
			t.Error(finding)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range trueUses {
		if u.why == "" || !used[i] {
			t.Errorf("%s: the true use of %q has no reason or is no longer there", u.file, u.term)
		}
	}
}

// speaks reports whether people read the words of a file.
func speaks(name string) bool {
	if strings.HasPrefix(name, ".ci/") {
		return true
	}
	return slices.Contains([]string{".go", ".md", ".txtar", ".yml"}, filepath.Ext(name))
}

// checkWords returns the lines with a term that is no true use, and notes the uses.
func checkWords(name, text string, used []bool) []string {
	var findings []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		lower := strings.ToLower(line)
		for _, term := range terms {
			if !term.inTests && strings.HasSuffix(name, "_test.go") || !strings.Contains(lower, term.near) ||
				!term.pattern.MatchString(line) {
				continue
			}
			i := slices.IndexFunc(trueUses, func(u use) bool { return u.file == name && u.term == term.name })
			if i >= 0 {
				used[i] = true
				continue
			}
			findings = append(findings, fmt.Sprintf("%s:%d: %q: the glossary says %s: %s", name, number,
				term.name, term.use, strings.TrimSpace(line)))
		}
	}
	return findings
}

// TestWordsFind uses every term once.
func TestWordsFind(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"it was kept from writing", "kept from"},
		{"no overlay can be had", "to be had"},
		{"what would mend it", "mend"},
		{"the working folder", "folder"},
		{"stateFolder", "folder"},
		{"a head start", "head start"},
		{"a spare", "spare"},
		{"for whoever asks", "whoever"},
		{"the cure", "cure"},
		{"its time was up", "time was up"},
		{"it wanted more memory than it may have", "wanted more"},
		{"a Cmd that means nothing", "means nothing"},
		{"names that come into being", "come into being"},
		{"the verdict", "verdict"},
		{"hunt it", "hunt"},
		{"an ear hears", "ear"},
		{"the Keeper", "keeper"},
		{"a nil Desk", "desk"},
		{"connections that are led away", "led away"},
		{"leads connections away", "led away"},
		{"it is handed on", "handed on"},
		{"hands over the listener", "handed on"},
		{"layers that it lends", "lend"},
		{"by what is there", "what is there"},
		{"a blocked write to a directory is kept for later", ""},
	} {
		t.Run(test.line, func(t *testing.T) {
			got := checkWords("x.go", test.line, nil)
			if test.want == "" && len(got) > 0 || test.want != "" &&
				(len(got) != 1 || !strings.Contains(got[0], `"`+test.want+`"`)) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
