// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ourFlag is a flag of the command line in a text for people: a word after others.
var ourFlag = regexp.MustCompile(` --(rw|ro|deny|grant|tmp|net|allow|level|profile|timeout|no-[a-z]+|protect-[a-z-]+)\b`)

// flagRooms know the command line: they are it, or write what it reads.
var flagRooms = []string{
	"internal/cli/", "internal/cli/explain/", "internal/cli/args/", "internal/cli/sessions/",
	"internal/cli/explain/", "internal/test/e2e/", "internal/test/testenv/", "internal/cli/explain/",
	"internal/cli/args/",
	"internal/run/runs/needs.go", // why a run cannot join a named sandbox
	// the table of named grants, for doctor, and the reasons of its rules
	"internal/names/protect/",
	"internal/linux/observer/hand_linux.go", // the reason of a denial
}

// TestErrorsWithoutFlags: programs that use the library have no flags, so no text outside of
// the command line names one.
func TestErrorsWithoutFlags(t *testing.T) {
	sources, err := parseSources(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if strings.HasSuffix(s.path, "_test.go") ||
			slices.ContainsFunc(flagRooms, func(r string) bool { return strings.HasPrefix(s.path, r) }) {
			continue
		}
		for _, text := range namingFlags(s.file) {
			t.Errorf("%s: %s names a flag of the command line", s.path, text)
		}
	}
}

func namingFlags(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING && ourFlag.MatchString(lit.Value) {
			found = append(found, lit.Value)
		}
		return true
	})
	return found
}

// TestErrorsWithoutFlagsFinds: the check sees what it is for.
func TestErrorsWithoutFlagsFinds(t *testing.T) {
	s, err := parseSource("a.go",
		"package a\nvar x, y, z = \"it is hidden; add --ro to show it\", \"--ro-bind\", \"a -- b\" // --rw\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := namingFlags(s.file); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
