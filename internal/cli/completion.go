// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/protect"
)

// completeName is the hidden verb that the completion scripts call:
// sallyport __complete WORD..., the last one being the word at the cursor. It
// prints the kind of thing that fits there, and then one candidate a line, with a
// tab and a description after it.
const completeName = "__complete"

// A completionKind says who knows the candidates for a word. The zero kind is
// nobody.
type completionKind string

const (
	completeWords    completionKind = "words" // the lines that follow
	completeFiles    completionKind = "files"
	completeFolders  completionKind = "folders"
	completeCommands completionKind = "commands" // programs in PATH
	// completeOpenings are the names of --allow; the shell sees them as words.
	completeOpenings completionKind = "openings"
	// completeGrants are the names of --grant; the shell sees them as words.
	completeGrants completionKind = "grants"
)

func completionUsage() string {
	return `Print a completion script for a shell.

  sallyport completion bash|zsh|fish|powershell

For this shell session:  source <(sallyport completion bash)
For fish:                sallyport completion fish | source
For PowerShell:          sallyport completion powershell | Out-String | Invoke-Expression
`
}

func completionVerb(_ context.Context, env *Env, args []string) error {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	var help bool
	words, err := parse([]flag{{long: "help", short: 'h', set: on(&help)}}, args)
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(completionUsage()))
	case len(words) != 1:
		return usage("completion needs one shell: %s", strings.Join(shells, ", "))
	}
	script, ok := map[string]string{
		"bash": bashScript, "zsh": zshScript, "fish": fishScript, "powershell": powershellScript,
	}[words[0]]
	if !ok {
		return usage("there is no completion for %s%s", quote(words[0]), hint(words[0], shells, "choose from "+strings.Join(shells, ", ")))
	}
	return env.put([]byte(script))
}

func completeVerb(_ context.Context, env *Env, args []string) error {
	if len(args) == 0 {
		args = []string{""}
	}
	kind, candidates := complete(args[:len(args)-1], args[len(args)-1])
	var b strings.Builder
	fmt.Fprintln(&b, kind)
	for _, c := range candidates {
		b.WriteString(c.word)
		if c.about != "" {
			b.WriteString("\t" + c.about)
		}
		b.WriteString("\n")
	}
	return env.put([]byte(b.String()))
}

type candidate struct{ word, about string }

// complete returns what fits at the place of word, after the words before it.
func complete(before []string, word string) (completionKind, []candidate) {
	if len(before) == 0 {
		var all []candidate
		for _, v := range verbs() {
			if v.short != "" {
				all = append(all, candidate{v.name, v.short})
			}
		}
		return completeWords, beginning(all, word)
	}
	switch before[0] {
	case "run":
		return completeRun(before[1:], word)
	case "completion":
		return completeWords, beginning(named("bash", "zsh", "fish", "powershell"), word)
	case "help":
		return complete(nil, word)
	case "doctor":
		return completeWords, beginning(named("--clean", "--json", "--help"), word)
	case "caches":
		if slices.Contains(before, "clear") {
			if strings.HasPrefix(word, "-") {
				return completeWords, beginning(named("--all", "--help"), word)
			}
			return completeFolders, nil
		}
		return completeWords, beginning(named("clear", "--json", "--help"), word)
	case "why":
		if len(before) == 1 && !strings.HasPrefix(word, "-") {
			return completeWords, beginning(recordedRuns(), word)
		}
		return completeWords, beginning(named("--list", "--json", "--help"), word)
	case "version":
		return completeWords, beginning(named("--verbose", "--json", "--help"), word)
	}
	return completeFiles, nil
}

// recordedRuns are the identities of the last runs, the very last one first.
func recordedRuns() []candidate {
	const most = 20
	log, err := readRuns()
	if err != nil {
		return nil
	}
	var all []candidate
	for _, r := range slices.Backward(log.Records) {
		if len(all) == most {
			break
		}
		all = append(all, candidate{r.Run, shortEnd(r) + ": " + shortCommand(r)})
	}
	return all
}

// completeRun is complete for the words after run.
func completeRun(before []string, word string) (completionKind, []candidate) {
	flags := runFlags(&runOptions{})
	script := false
	for len(before) > 0 {
		w := before[0]
		if w == "--" {
			return afterFlags(before[1:], script)
		}
		if len(w) < 2 || w[0] != '-' {
			return afterFlags(before, script)
		}
		f, inline := flagOf(flags, w)
		before = before[1:]
		if f == nil {
			continue
		}
		script = script || f.short == 'c'
		if f.value == "" || inline {
			continue
		}
		if len(before) == 0 {
			return values(f, "", word)
		}
		before = before[1:]
	}
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "--") {
		if f := findLong(flags, name[2:]); f != nil {
			return values(f, name+"=", value)
		}
	}
	if strings.HasPrefix(word, "-") {
		var all []candidate
		for i := range flags {
			if flags[i].missing == "" {
				about, _, _ := strings.Cut(flags[i].help, "\n")
				all = append(all, candidate{flags[i].name(), about})
			}
		}
		return completeWords, beginning(all, word)
	}
	return afterFlags(nil, script)
}

// afterFlags is what fits behind the flags of run: a program, then its
// arguments, about which files are the best guess.
func afterFlags(words []string, script bool) (completionKind, []candidate) {
	if len(words) == 0 && !script {
		return completeCommands, nil
	}
	return completeFiles, nil
}

// flagOf returns the flag that a word names, the last one of a cluster, and
// whether the word holds its value too.
func flagOf(flags []flag, word string) (f *flag, inline bool) {
	if strings.HasPrefix(word, "--") {
		name, _, has := strings.Cut(word[2:], "=")
		return findLong(flags, name), has
	}
	for i := 1; i < len(word); i++ {
		if f = findShort(flags, word[i]); f == nil || f.value != "" {
			return f, i+1 < len(word)
		}
	}
	return f, false
}

// values is what fits as the value of a flag. Prefix stands before each word.
func values(f *flag, prefix, word string) (completionKind, []candidate) {
	var all []candidate
	for _, w := range f.words {
		all = append(all, candidate{prefix + w, ""})
	}
	if f.kind == completeOpenings {
		for _, o := range openings() {
			all = append(all, candidate{prefix + o.Name, o.Opens})
		}
	}
	if f.kind == completeGrants {
		for _, g := range protect.NamedGrants() {
			all = append(all, candidate{prefix + g.Name, g.Opens})
		}
	}
	if found := beginning(all, prefix+word); len(found) > 0 || len(all) > 0 && f.kind != completeFolders {
		return completeWords, found
	}
	if f.kind == "" {
		return completeWords, nil
	}
	return f.kind, nil
}

// beginning returns the candidates that begin with word.
func beginning(all []candidate, word string) []candidate {
	var found []candidate
	for _, c := range all {
		if strings.HasPrefix(c.word, word) {
			found = append(found, c)
		}
	}
	return found
}

func named(words ...string) []candidate {
	all := make([]candidate, len(words))
	for i, w := range words {
		all[i].word = w
	}
	return all
}
