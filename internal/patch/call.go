// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A Call is a command that applies a patch.
type Call struct {
	Text string // of the patch
	Dir  string // to which the command changes first; empty if it does not
}

// ErrBare says that a command is a patch, without the program that applies it.
var ErrBare = errors.New("patch detected without explicit call to apply_patch. " +
	`Rerun as ["apply_patch", "<patch>"]`)

// programs are the names by which models call the tool.
var programs = []string{"apply_patch", "applypatch"}

// CallOf returns the call that an argument vector is, or nil. It is one where the program is called with the
// text, or a shell with a script that is one here-document for it, after "cd DIR &&" or alone. Nothing in the
// document is expanded, whatever its tag. All else is an ordinary command. The error is [ErrBare].
func CallOf(args []string) (*Call, error) {
	if len(args) == 2 && slices.Contains(programs, args[0]) {
		return &Call{Text: args[1]}, nil
	}
	script, ok := scriptOf(args)
	if c := document(script); ok && c != nil {
		return c, nil
	}
	if len(args) == 1 {
		script, ok = args[0], true
	}
	if _, err := Parse(script); ok && err == nil {
		return nil, ErrBare
	}
	return nil, nil //nolint:nilnil // an ordinary command
}

// scriptOf returns the script that an argument vector has a shell run.
func scriptOf(args []string) (script string, ok bool) {
	const fewest, most = 3, 4
	if len(args) < fewest || len(args) > most {
		return "", false
	}
	name := strings.ToLower(args[0][strings.LastIndexAny(args[0], `/\`)+1:])
	flags := args[1 : len(args)-1]
	switch strings.TrimSuffix(name, ".exe") {
	case "bash", "zsh", "sh":
		ok = len(flags) == 1 && (flags[0] == "-c" || flags[0] == "-lc")
	case "pwsh", "powershell":
		ok = strings.EqualFold(flags[len(flags)-1], "-command") &&
			(len(flags) == 1 || strings.EqualFold(flags[0], "-noprofile"))
	case "cmd":
		ok = len(flags) == 1 && strings.EqualFold(flags[0], "/c")
	}
	return args[len(args)-1], ok
}

// document reads a script that is nothing but one here-document for the program, or returns nil.
func document(script string) *Call {
	first, body, found := strings.Cut(strings.Trim(script, " \t\r\n"), "\n")
	if !found {
		return nil
	}
	c := &Call{}
	first = strings.Trim(first, " \t\r")
	if rest, ok := strings.CutPrefix(first, "cd "); ok {
		dir, rest, joined := strings.Cut(rest, "&&")
		if c.Dir, ok = plainWord(strings.Trim(dir, " \t")); !ok || !joined {
			return nil
		}
		first = strings.TrimLeft(rest, " \t")
	}
	name, word, ok := strings.Cut(first, "<<")
	tag, plain := plainWord(strings.Trim(word, " \t"))
	if !ok || !plain || !slices.Contains(programs, strings.TrimRight(name, " \t")) {
		return nil
	}
	end := "\n" + tag
	text, ok := strings.CutSuffix("\n"+body, end)
	if !ok || strings.Contains(text+"\n", end+"\n") {
		return nil // it goes on after the document
	}
	c.Text = strings.TrimPrefix(text, "\n")
	return c
}

// plainWord returns the text of one word of a shell, plain or in one pair of quotes, in which nothing is
// expanded. A dash at the beginning would be an option, or "cd -".
func plainWord(word string) (text string, ok bool) {
	if n := len(word); n > 1 && (word[0] == '\'' || word[0] == '"') && word[n-1] == word[0] {
		word = word[1 : n-1]
		return word, word != "" && !strings.ContainsAny(word, "'\"\\$`\n") && word[0] != '-'
	}
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./@%+,:=", r)
	}
	bad := strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) >= 0
	return word, word != "" && !bad && word[0] != '-'
}

// In returns the directory of relative names, for a command that runs in dir.
func (c *Call) In(dir string) string {
	if filepath.IsAbs(c.Dir) {
		return filepath.Clean(c.Dir)
	}
	return filepath.Join(dir, c.Dir)
}
