// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// TestHelpNamesEveryFlag keeps help text, parser and completion together.
func TestHelpNamesEveryFlag(t *testing.T) {
	help := runHelp()
	_, offered := complete([]string{"run"}, "-")
	for _, f := range new(args.Options).Flags() {
		inHelp := strings.Contains(help, f.Name())
		inCompletion := slices.ContainsFunc(offered,
			func(c candidate) bool { return c[0] == f.Name() && c[1] != "" })
		if inHelp == f.Hidden || !inCompletion {
			t.Errorf("%s: in the help %v, in the completion %v", f.Name(), inHelp, inCompletion)
		}
		if f.Short != 0 && !strings.Contains(help, "-"+string(rune(f.Short))+", "+f.Name()) {
			t.Errorf("%s: the help has no -%c", f.Name(), f.Short)
		}
		for _, w := range choices(&f) {
			if f.Long != "shell" && !strings.Contains(help, w) {
				t.Errorf("%s: the help has no %s", f.Name(), w)
			}
		}
	}
}

// TestHelpFits keeps every help text readable on a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	texts := map[string]string{"overview": overview()}
	for _, v := range commands() {
		if v.short != "" {
			texts[v.name] = v.usage()
		}
	}
	for name, help := range texts {
		for line := range strings.Lines(help) {
			if len([]rune(line)) > 81 || strings.ContainsAny(line, "\t\x1b") {
				t.Errorf("%s: too long, or more than text: %q", name, line)
			}
		}
	}
}

func TestComplete(t *testing.T) {
	tests := []struct {
		name   string
		before []string
		word   string
		kind   syntax.FlagKind
		want   []string // all of these, in any order
		not    []string // none of these
	}{
		{name: "verbs", kind: syntax.Words, want: []string{"run", "hook", "doctor", "version", "completion", "help"}, not: []string{completeName}},
		{name: "verb", word: "d", kind: syntax.Words, want: []string{"doctor"}, not: []string{"run"}},
		{name: "flags", before: []string{"run"}, word: "--d", kind: syntax.Words, want: []string{"--deny", "--detach"}, not: []string{"--remote", "--rw"}},
		{name: "words of a flag", before: []string{"run", "-s"}, kind: syntax.Words, want: []string{"read-only", "full-access"}},
		{name: "words after an equals sign", before: []string{"run"}, word: "--net=h", kind: syntax.Words, want: []string{"--net=host"}},
		{name: "words of the last flag of a cluster", before: []string{"run", "-qs"}, word: "r", kind: syntax.Words, want: []string{"read-only"}},
		{name: "openings", before: []string{"run", "--allow"}, word: "p", kind: syntax.Words, want: []string{"ptrace", "perf"}},
		{name: "directories", before: []string{"run", "-C"}, kind: syntax.Directories},
		{name: "files", before: []string{"run", "--rw"}, kind: syntax.Files},
		{name: "words or directories, words", before: []string{"run", "--tmp"}, word: "h", kind: syntax.Words, want: []string{"host"}},
		{name: "words or directories, directories", before: []string{"run", "--tmp"}, word: "/v", kind: syntax.Directories},
		{name: "a value without candidates", before: []string{"run", "--timeout"}, kind: syntax.Words},
		{name: "a program", before: []string{"run", "-q", "-s", "read-only"}, word: "gi", kind: syntax.Programs},
		{name: "a program after dashes", before: []string{"run", "--"}, kind: syntax.Programs},
		{name: "arguments", before: []string{"run", "ls"}, word: "-", kind: syntax.Files},
		{name: "arguments after dashes", before: []string{"run", "-q", "--", "ls", "-s"}, kind: syntax.Files},
		{name: "after a script", before: []string{"run", "-c", "make"}, word: "", kind: syntax.Files},
		{name: "after an unknown flag", before: []string{"run", "--what"}, word: "--js", kind: syntax.Words, want: []string{"--json", "--jsonl"}},
		{name: "shells", before: []string{"completion"}, word: "z", kind: syntax.Words, want: []string{"zsh"}},
		{name: "verbs to explain", before: []string{"help"}, word: "r", kind: syntax.Words, want: []string{"run"}},
		{name: "words of caches", before: []string{"caches"}, kind: syntax.Words, want: []string{"clear", "--json"}},
		{name: "flags of caches clear", before: []string{"caches", "clear"}, word: "-", kind: syntax.Words, want: []string{"--all"}},
		{name: "a workspace to clear", before: []string{"caches", "clear"}, kind: syntax.Directories},
		{name: "flags of check", before: []string{"check"}, word: "-", kind: syntax.Words, want: []string{"--rules", "--json"}},
		{name: "a program to check", before: []string{"check"}, word: "g", kind: syntax.Programs},
		{name: "its arguments", before: []string{"check", "git"}, word: "p", kind: syntax.Files},
		{name: "flags of doctor", before: []string{"doctor"}, word: "-", kind: syntax.Words, want: []string{"--json"}},
		{name: "words of hook", before: []string{"hook"}, word: "", kind: syntax.Words,
			want: []string{"claude", "codex", "cursor", "gemini", "doctor", "--mode"}},
		{name: "a word of hook", before: []string{"hook"}, word: "c", kind: syntax.Words,
			want: []string{"claude", "codex", "cursor"}, not: []string{"gemini"}},
		{name: "flags of a hook", before: []string{"hook", "codex"}, word: "--", kind: syntax.Words,
			want: []string{"--mode", "--deny", "--sandbox"}, not: []string{"--command", "--remote"}},
		{name: "modes of a hook", before: []string{"hook", "codex", "--mode"}, word: "j",
			kind: syntax.Words, want: []string{"judge"}},
		{name: "flags of hook doctor", before: []string{"hook", "doctor"}, word: "-", kind: syntax.Words,
			not: []string{"--mode"}},
		{name: "flags of version", before: []string{"version"}, word: "-", kind: syntax.Words, want: []string{"--verbose"}},
		{name: "a verb that does not exist", before: []string{"fly"}, kind: syntax.Files},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind, got := complete(tt.before, tt.word)
			if kind != tt.kind {
				t.Errorf("kind %s, want %s", kind, tt.kind)
			}
			has := func(word string) bool {
				return slices.ContainsFunc(got, func(c candidate) bool { return c[0] == word })
			}
			for _, w := range tt.want {
				if !has(w) {
					t.Errorf("%s is not offered: %v", w, got)
				}
			}
			for _, w := range tt.not {
				if has(w) {
					t.Errorf("%s is offered", w)
				}
			}
			if len(tt.want) == 0 && len(got) != 0 {
				t.Errorf("offered %v, want nothing", got)
			}
		})
	}
}
