// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// reviewedAnswers are those of the model in the run that docs/approvals.md shows.
var reviewedAnswers = []string{
	`{"outcome":"deny","risk_level":"high","user_authorization":"unknown","rationale":"Nothing shows why it has to leave the sandbox."}`,
	`{"outcome":"allow","risk_level":"low","user_authorization":"unknown","rationale":"It copies one page to the directory that it was denied."}`,
}

// TestReviewedDocument plays the run in docs/approvals.md, with a model that gives the answers above,
// and compares each line. A … stands for a part of a line that the page leaves out; nothing else
// may be missing. The command prints nothing, because output comes in pieces that differ.
func TestReviewedDocument(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	page, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "<!-- reviewed run -->\n```console\n")
	block, _, ok := strings.Cut(block, "```\n")
	if !ok {
		t.Fatal("the page shows no run")
	}
	server := model(reviewedAnswers...)
	defer server.Close()
	d := newDesk(t)
	settings := filepath.Join(d.home, ".config/sallyport/config.toml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("approval = \"on-request\"\n[reviewer]\nmodel = \"example-1\"\nbase_url = %q\n", server.URL)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.work, "index.html"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testenv.WriteProgram(filepath.Join(d.work, "deploy"),
		"#!/bin/sh\nexec cp index.html ../out/ 2>/dev/null\n"); err != nil {
		t.Fatal(err)
	}
	places := strings.NewReplacer(d.work, "/home/dev/site", d.out, "/home/dev/out")
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, shown, _ := strings.Cut(part, "\n")
		cmd := d.command(t, "sh", "-c", command)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
		out, _ := cmd.CombinedOutput()
		printed := places.Replace(string(out))
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			printed += fmt.Sprintf("[exit %d]\n", code)
		}
		want, got := strings.Split(strings.TrimSpace(shown), "\n"),
			strings.Split(strings.TrimSpace(printed), "\n")
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, the page has %d:\n%s", command, len(got), len(want), printed)
		}
		for i := range min(len(want), len(got)) {
			if !shortened(want[i], got[i]) {
				t.Errorf("%s: line %d is\n%s\nthe page has\n%s", command, i+1, got[i], want[i])
			}
		}
	}
	if _, err := os.Stat(filepath.Join(d.out, "index.html")); err != nil {
		t.Error(err)
	}
}

// shortened reports whether a line is one that is shown with … for what was left out.
func shortened(shown, line string) bool {
	parts := strings.Split(shown, "…")
	if len(parts) == 1 {
		return shown == line
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(line, first) || !strings.HasSuffix(line[len(first):], last) {
		return false
	}
	line = strings.TrimSuffix(line[len(first):], last)
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok := strings.Cut(line, part)
		if !ok {
			return false
		}
		line = rest
	}
	return true
}

// TestShortened: what is shown differs from a line in nothing but what it leaves out.
func TestShortened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		shown, line string
		want        bool
	}{
		{"abc", "abc", true},
		{"abc", "abcd", false},
		{"a…d", "abcd", true},
		{"a…", "abcd", true},
		{"…d", "abcd", true},
		{"a…c…e", "abcde", true},
		{"a…c…e", "abde", false},
		{"b…d", "abcd", false},
		{"a…c", "abcd", false},
		{"ab…bc", "abc", false},
		{"a…c…b…d", "abcd", false},
	} {
		if got := shortened(test.shown, test.line); got != test.want {
			t.Errorf("%q of %q: %v", test.shown, test.line, got)
		}
	}
}
