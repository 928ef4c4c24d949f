// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/nearest"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/internal/why"
)

// completeName is the hidden command that the completion scripts call:
// sallyport __complete WORD..., the last one being the word at the cursor. It
// prints the kind of thing that fits there, and then one candidate a line, with a
// tab and a description after it.
const completeName = "__complete"

// A completionKind says where the candidates for a word come from. The zero kind is
// nowhere.
type completionKind string

// The kinds that the scripts know, and those that become words before.
const (
	completeWords       completionKind = "words" // the lines that follow
	completeFiles       completionKind = "files"
	completeDirectories completionKind = "directories"
	completePrograms    completionKind = "commands" // in PATH
	completeOpenings    completionKind = "openings" // of --allow
	completeGrants      completionKind = "grants"   // of --grant
)

const completionHelp = `Print a completion script for a shell.

  sallyport completion bash|zsh|fish|powershell

For this shell session:

  source <(sallyport completion bash)
  sallyport completion fish | source
  sallyport completion powershell | Out-String | Invoke-Expression
`

// The scripts call the hidden command and show what it prints. In bash a candidate loses
// its description; "=" and ":" split words there, so the words of the command line are
// joined again first, and a candidate loses what stands before them.
//
//go:embed completion
var completionScripts embed.FS

var completionShells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand(_ context.Context, env *Env, _ *options, words []string) error {
	shell := strings.Join(words, "")
	if !slices.Contains(completionShells, shell) {
		return failure("invalid shell %s (%s)%s", quote(shell), strings.Join(completionShells, ", "), nearest.Clause(shell, completionShells, ""))
	}
	script, err := completionScripts.ReadFile("completion/" + shell)
	if err != nil {
		return err
	}
	return env.write(string(script))
}

func completeCommand(_ context.Context, env *Env, _ *options, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	kind, candidates := complete(words[:last], words[last])
	lines := []string{string(kind)}
	for _, c := range candidates {
		lines = append(lines, strings.TrimSuffix(printable.Line(c.word)+"\t"+printable.Line(c.about), "\t"))
	}
	return env.write(strings.Join(lines, "\n") + "\n")
}

type candidate struct{ word, about string }

// complete returns what fits at the place of word, after the words before it.
func complete(before []string, word string) (completionKind, []candidate) {
	if len(before) == 0 {
		kind, all := commandNames(nil)
		return kind, startingWith(all, word)
	}
	c, err := findCommand(before[0])
	switch {
	case err != nil:
		return completeFiles, nil
	case c.flags == nil:
		return completeRun(before[1:], word)
	}
	kind, all := completeWords, []candidate(nil)
	if c.offer != nil && !strings.HasPrefix(word, "-") {
		kind, all = c.offer(before[1:])
	}
	if kind == completeWords && (all == nil || word == "") {
		all = append(all, flagNames(c.allFlags(new(options)))...)
	}
	return kind, startingWith(all, word)
}

func commandNames([]string) (completionKind, []candidate) {
	var all []candidate
	for _, c := range commands() {
		if c.short != "" {
			all = append(all, candidate{c.name, c.short})
		}
	}
	return completeWords, all
}

func shellNames([]string) (completionKind, []candidate) {
	var all []candidate
	for _, s := range completionShells {
		all = append(all, candidate{word: s})
	}
	return completeWords, all
}

func directories([]string) (completionKind, []candidate) { return completeDirectories, nil }

func cacheWords(before []string) (completionKind, []candidate) {
	if slices.Contains(before, "clear") {
		return completeDirectories, nil
	}
	return completeWords, []candidate{{word: "clear"}}
}

// recordedRuns are the IDs of the last runs, the very last one first.
func recordedRuns([]string) (completionKind, []candidate) {
	const most = 20
	log, _ := readRuns() // what cannot be read is not offered
	var all []candidate
	for _, r := range slices.Backward(log.Records) {
		all = append(all, candidate{r.Run, why.Summary(r)})
	}
	return completeWords, all[:min(len(all), most)]
}

func flagNames(flags []flag) []candidate {
	var all []candidate
	for _, f := range flags {
		if !f.unsupported {
			about, _, _ := strings.Cut(f.help, "\n")
			all = append(all, candidate{f.name(), about})
		}
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
		return completeWords, startingWith(flagNames(flags), word)
	}
	return afterFlags(nil, script)
}

// afterFlags is what fits behind the flags of run: a program, then its
// arguments, about which files are the best guess.
func afterFlags(words []string, script bool) (completionKind, []candidate) {
	if len(words) == 0 && !script {
		return completePrograms, nil
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

// completions say what completes the values of flags that have no words.
var completions = map[string]completionKind{
	"rw": completeFiles, "ro": completeFiles, "deny": completeFiles, "rules": completeFiles, "config": completeFiles,
	"grant": completeGrants, "allow": completeOpenings, "tmp": completeDirectories, "cd": completeDirectories, "ask-for": completeFiles, "approver": completePrograms,
}

// choices are the words that fit as the value of a flag.
func (f *flag) choices() []string {
	if k := config.Find(f.key); k != nil && f.words == nil && !k.IsList() {
		return k.Words
	}
	return f.words
}

// values is what fits as the value of a flag. Prefix stands before each word.
func values(f *flag, prefix, word string) (completionKind, []candidate) {
	var all []candidate
	for _, w := range f.choices() {
		all = append(all, candidate{prefix + w, ""})
	}
	kind := cmp.Or(f.kind, completions[f.long])
	switch kind {
	case completeOpenings:
		for _, o := range seccomp.Openings() {
			all = append(all, candidate{prefix + o.Name, o.Opens})
		}
	case completeGrants:
		for _, g := range protect.NamedGrants() {
			all = append(all, candidate{prefix + g.Name, g.Opens})
		}
	}
	found := startingWith(all, prefix+word)
	if kind == "" || len(found) > 0 || len(all) > 0 && kind != completeDirectories {
		return completeWords, found
	}
	return kind, nil
}

// startingWith returns the candidates that begin with word.
func startingWith(all []candidate, word string) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.word, word) })
}
