// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/plainfile"
)

// An order is a value in a git directory that leads git to a program, or to a path that
// it writes to, and that is not one of git's own words.
type order struct {
	path  string // what is harmful because of it
	value string
	why   string
}

// orderFiles are the files with such values, below the git directory of a work tree.
var orderFiles = [...]struct {
	name   string
	whole  bool // without this file git cannot go on: its directory is harmful
	values func(text []byte) []string
	why    string
}{
	{"rebase-merge/git-rebase-todo", true, todoCommands, "git rebase --continue would run the commands in its list"},
	{"sequencer/todo", true, todoCommands, "its list has commands that git does not write there"},
	{"rebase-merge/strategy", false, strategies, whyStrategy},
	{"rebase-apply/strategy", false, strategies, whyStrategy},
	{"rebase-merge/strategy_opts", false, strategyWords, whyOption},
	{"rebase-apply/strategy_opts", false, strategyWords, whyOption},
	{"rebase-merge/gpg_sign_opt", false, signWords, whyOption},
	{"rebase-apply/gpg_sign_opt", false, signWords, whyOption},
	{"rebase-apply/apply-opt", true, applyWords, "git am --continue would give these options to git apply, which can write to any file"},
	{"sequencer/opts", false, sequencerValues, "git cherry-pick --continue would run the merge strategy, or give the options to one, that it names"},
	{"BISECT_START", false, startWords, "git bisect reset would give it to git checkout as an option"},
	{"BISECT_NAMES", false, quotedOnly, "git bisect visualize of older versions would run it in a shell"},
	{"MERGE_RR", false, rerereNames, "git rerere would write to the file outside of the work tree that it names"},
	{"pid", false, anything, "git instaweb stop would signal the processes that it names"},
}

// Why orders are harmful.
const (
	whyStrategy = "git rebase --continue would run the program git-merge-STRATEGY for the strategy that it names"
	whyOption   = "git rebase --continue would give it to another program as an option"
	whyWeb      = "git instaweb start would run the programs and configurations in it"
	whyIndex    = "git checkout would write to a path outside of the work tree, or in .git, that it names"
)

// maxOrder is the size in bytes up to which such a file is read.
const maxOrder = 16 << 20

// orders returns the orders in all git directories of a repository.
func (r *Repository) orders(c *Cache, hash int) []order {
	var all []order
	for _, dir := range r.gitDirs() {
		for _, f := range orderFiles {
			file := join(dir, filepath.FromSlash(f.name))
			text, err := ReadFile(file, maxOrder)
			if absent(err) || errors.Is(err, plainfile.ErrNotPlain) {
				continue
			}
			harmful := file
			if f.whole {
				harmful = filepath.Dir(file)
			}
			values := []string{""} // what cannot be read counts as one order
			if err == nil {
				values = f.values(text)
			}
			for _, value := range values {
				all = append(all, order{path: harmful, value: value, why: f.why})
			}
		}
		var broken *IndexError
		if _, err := c.gitlinks(join(dir, indexName), hash); errors.As(err, &broken) && broken.outside {
			all = append(all, order{path: broken.Path, value: broken.Why, why: whyIndex})
		}
		all = append(all, webOrders(join(dir, "gitweb"))...)
	}
	return all
}

// maxWeb bounds how many files of git instaweb are looked at.
const maxWeb = 1024

// webOrders returns one order for each file that git instaweb keeps in a git directory.
func webOrders(dir string) []order {
	var found []order
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return nil
		}
		if absent(err) {
			return nil
		}
		st, _ := lstatStamp(path) // the zero one is new as well
		found = append(found, order{path: dir, value: fmt.Sprint(path, st), why: whyWeb})
		if len(found) == maxWeb {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// todoCommands returns the commands in the list of a rebase in progress: lines that
// begin with "exec" or "x" (todo_command_info in git's sequencer.c).
func todoCommands(text []byte) []string {
	var commands []string
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		for _, word := range []string{"exec", "x"} {
			rest, ok := bytes.CutPrefix(line, []byte(word))
			if ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t') {
				commands = append(commands, string(line))
			}
		}
	}
	return commands
}

// ownStrategies are the merge strategies that are part of git (all_strategy in
// builtin/merge.c).
var ownStrategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// strategies returns a strategy that is none of git's.
func strategies(text []byte) []string {
	if value := oneLine(text); value != "" && !slices.Contains(ownStrategies, value) {
		return []string{value}
	}
	return nil
}

// oneLine returns the text of a file as read_oneliner of sequencer.c does.
func oneLine(text []byte) string {
	value, _ := strings.CutSuffix(cString(text), "\n")
	return strings.TrimSuffix(value, "\r")
}

// strategyOption reports whether a word is an option of the strategies ort and
// recursive (parse_merge_opt in merge-ort-wrappers.c), without dashes.
func strategyOption(word string) bool {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "ours", "theirs", "patience", "histogram", "minimal", "ignore-space-change", "ignore-all-space",
		"ignore-space-at-eol", "ignore-cr-at-eol", "renormalize", "no-renormalize", "no-renames":
		return word == name
	case "subtree", "find-renames", "rename-threshold", "diff-algorithm":
		return !strings.ContainsAny(value, "\"'\\")
	}
	return false
}

// strategyWords returns the text when one of its words is no option of a strategy.
func strategyWords(text []byte) []string {
	for _, word := range strings.Fields(oneLine(text)) {
		word, ok := strings.CutPrefix(word, "--")
		if !ok || !strategyOption(word) {
			return []string{string(text)}
		}
	}
	return nil
}

// signWords returns an option that says more than to sign with the user's own key.
func signWords(text []byte) []string {
	if value := oneLine(text); value != "" && value != "-S" {
		return []string{value}
	}
	return nil
}

// sequencerValues returns the values in the options of a cherry-pick or revert that
// name a strategy, an option or a key that is not git's own (populate_opts_cb in
// sequencer.c). The other values are numbers.
func sequencerValues(text []byte) []string {
	entries, err := ParseConfig(text)
	if err != nil {
		return []string{string(text)}
	}
	var values []string
	for _, entry := range entries {
		own := true
		switch entry.Key {
		case "options.strategy":
			own = slices.Contains(ownStrategies, entry.Value)
		case "options.strategy-option":
			own = strategyOption(entry.Value)
		case "options.gpg-sign":
			own = entry.Value == ""
		}
		if !own {
			values = append(values, entry.Key+" "+entry.Value)
		}
	}
	return values
}

// applyWords returns the options for git apply that git am does not pass on.
func applyWords(text []byte) []string {
	words, ok := quoted(oneLine(text))
	if !ok {
		return []string{string(text)}
	}
	return slices.DeleteFunc(words, func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "--whitespace", "--ignore-space-change", "--ignore-whitespace", "--directory", "--exclude", "--include", "--reject":
			return true
		}
		return value == "" && (strings.HasPrefix(name, "-C") || strings.HasPrefix(name, "-p"))
	})
}

// quoted splits words that git has quoted (sq_dequote_to_strvec in quote.c).
func quoted(text string) (words []string, ok bool) {
	var word strings.Builder
	for text = strings.TrimSpace(text); text != ""; {
		inside, rest, closed := strings.Cut(strings.TrimPrefix(text, "'"), "'")
		if text[0] != '\'' || !closed {
			return nil, false
		}
		word.WriteString(inside)
		switch {
		case strings.HasPrefix(rest, `\''`), strings.HasPrefix(rest, `\!'`):
			word.WriteByte(rest[1])
			text = rest[2:]
		case rest == "", strings.TrimLeft(rest, " \t") != rest:
			words = append(words, word.String())
			word.Reset()
			text = strings.TrimLeft(rest, " \t")
		default:
			return nil, false
		}
	}
	return words, true
}

// quotedOnly returns a line that is not a row of quoted words.
func quotedOnly(text []byte) []string {
	var values []string
	for line := range strings.Lines(string(text)) {
		if _, ok := quoted(line); !ok {
			values = append(values, line)
		}
	}
	return values
}

// startWords returns the name of a branch that is an option.
func startWords(text []byte) []string {
	if strings.HasPrefix(string(text), "-") {
		return []string{string(text)}
	}
	return nil
}

// rerereNames returns the paths in the list of conflicts that are not in the work tree
// (read_rr in rerere.c).
func rerereNames(text []byte) []string {
	var names []string
	for record := range strings.SplitSeq(string(text), "\x00") {
		if _, name, ok := strings.Cut(record, "\t"); ok && !insideName(name) {
			names = append(names, name)
		}
	}
	return names
}

// anything returns the text itself.
func anything(text []byte) []string { return []string{string(text)} }
