// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"embed"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// completeName is the hidden command that the completion scripts call:
// sallyport __complete WORD..., the last one being the word at the cursor. It
// prints the kind of thing that fits there, and then one candidate a line, with a
// tab and a description after it.
const completeName = "__complete"

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
		return explain.NewError("invalid shell %s (%s)%s", syntax.QuoteFlag(shell),
			strings.Join(completionShells, ", "), syntax.NearestClause(shell, completionShells, ""))
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
		lines = append(lines, strings.TrimSuffix(text.Line(c[0])+"\t"+text.Line(c[1]), "\t"))
	}
	return env.write(strings.Join(lines, "\n") + "\n")
}

// A candidate is a word, and what it is about; that may be empty.
type candidate = [2]string

// complete returns what fits at the place of word, after the words before it.
func complete(before []string, word string) (syntax.FlagKind, []candidate) {
	if len(before) == 0 {
		kind, all := commandNames(nil)
		return kind, startingWith(all, word)
	}
	c, err := findCommand(before[0])
	if verb := subcommand(before); verb != nil {
		c, err, before = verb, nil, before[1:]
	}
	switch {
	case err != nil:
		return syntax.Files, nil
	case c.flags == nil:
		return completeRun(before[1:], word)
	}
	kind, all := syntax.Words, []candidate(nil)
	if c.offer != nil && !strings.HasPrefix(word, "-") {
		kind, all = c.offer(before[1:])
	}
	if kind == syntax.Words && (all == nil || word == "") {
		flags := c.allFlags(new(options))
		if c.flagsAfter != nil {
			flags = c.flagsAfter(before[1:])
		}
		all = append(all, flagNames(flags)...)
	}
	return kind, startingWith(all, word)
}

func commandNames([]string) (syntax.FlagKind, []candidate) {
	var all []candidate
	for _, c := range shownCommands() {
		all = append(all, candidate{c.name, c.short})
	}
	return syntax.Words, all
}

func shellNames([]string) (syntax.FlagKind, []candidate) {
	var all []candidate
	for _, s := range completionShells {
		all = append(all, candidate{s})
	}
	return syntax.Words, all
}

func directories([]string) (syntax.FlagKind, []candidate) { return syntax.Directories, nil }

func patchWords([]string) (syntax.FlagKind, []candidate) { return syntax.Files, nil }

func cacheWords(before []string) (syntax.FlagKind, []candidate) {
	if slices.Contains(before, "clear") {
		return syntax.Directories, nil
	}
	return syntax.Words, []candidate{{"clear"}}
}

// recordedRuns are the IDs of the last runs, the very last one first.
func recordedRuns([]string) (syntax.FlagKind, []candidate) {
	const most = 20
	log, _ := audits.ReadRuns(&System().Env, true) // what cannot be read is not offered
	var all []candidate
	for _, r := range slices.Backward(log.Records) {
		all = append(all, candidate{r.Run, explain.Summary(r)})
	}
	return syntax.Words, all[:min(len(all), most)]
}

func flagNames(flags []syntax.Flag) []candidate {
	var all []candidate
	for _, f := range flags {
		about, _, _ := strings.Cut(f.Help, "\n")
		all = append(all, candidate{f.Name(), about})
	}
	return all
}

// completeRun is complete for the words after run.
func completeRun(before []string, word string) (syntax.FlagKind, []candidate) {
	flags := new(args.Options).Flags()
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
		script = script || f.Short == 'c'
		if f.Value == "" || inline {
			continue
		}
		if len(before) == 0 {
			return values(f, "", word)
		}
		before = before[1:]
	}
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "--") {
		if f := syntax.FindLong(flags, name[2:]); f != nil {
			return values(f, name+"=", value)
		}
	}
	if strings.HasPrefix(word, "-") {
		return syntax.Words, startingWith(flagNames(flags), word)
	}
	return afterFlags(nil, script)
}

// afterFlags is what fits behind the flags of run: a program, then its
// arguments, about which files are the best guess.
func afterFlags(words []string, script bool) (syntax.FlagKind, []candidate) {
	if len(words) == 0 && !script {
		return syntax.Programs, nil
	}
	return syntax.Files, nil
}

// flagOf returns the flag that a word names, the last one of a cluster, and
// whether the word holds its value too.
func flagOf(flags []syntax.Flag, word string) (f *syntax.Flag, inline bool) {
	if strings.HasPrefix(word, "--") {
		name, _, has := strings.Cut(word[2:], "=")
		return syntax.FindLong(flags, name), has
	}
	for i := 1; i < len(word); i++ {
		if f = syntax.FindShort(flags, word[i]); f == nil || f.Value != "" {
			return f, i+1 < len(word)
		}
	}
	return f, false
}

// choices are the words that fit as the value of a flag.
func choices(f *syntax.Flag) []string {
	if k := config.Find(f.Key); k != nil && f.Words == nil && !k.IsList() {
		return k.Words
	}
	return f.Words
}

// values is what fits as the value of a flag. Prefix stands before each word.
func values(f *syntax.Flag, prefix, word string) (syntax.FlagKind, []candidate) {
	var all []candidate
	for _, w := range choices(f) {
		all = append(all, candidate{prefix + w, ""})
	}
	kind := f.Kind
	switch kind {
	case syntax.Openings:
		for _, o := range seccomp.Openings() {
			all = append(all, candidate{prefix + o.Name, o.Opens})
		}
	case syntax.Grants:
		for _, g := range protect.NamedGrants() {
			all = append(all, candidate{prefix + g.Name, g.Opens})
		}
	}
	found := startingWith(all, prefix+word)
	if kind == "" || len(found) > 0 || len(all) > 0 && kind != syntax.Directories {
		return syntax.Words, found
	}
	return kind, nil
}

// startingWith returns the candidates that begin with word.
func startingWith(all []candidate, word string) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c[0], word) })
}
