// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// keptLines is how many lines about denials follow a command.
const keptLines = 5

// A keptGroup is denials that one line tells.
type keptGroup struct {
	op       sandbox.Op
	evidence bool
	grant    string
	rule     string
	errno    string // of a single one
	times    int    // of a single one
	targets  []string
}

// kept gathers denials: those that one grant opens belong together, and without one
// those that the same rule keeps in one folder.
func kept(ds []sandbox.Denial) []keptGroup {
	type key struct {
		op       sandbox.Op
		evidence bool
		by       string
	}
	at := map[key]int{}
	var groups []keptGroup
	for _, d := range ds {
		k := key{d.Op, d.Source.Evidence(), "grant " + d.Grant}
		switch {
		case d.Grant != "":
		case d.Op == sandbox.Read || d.Op == sandbox.Write || d.Op == sandbox.Exec:
			k.by = "rule " + d.Rule + " " + path.Dir(d.Path)
		default:
			k.by = "target " + d.Target()
		}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, keptGroup{op: d.Op, evidence: k.evidence, grant: d.Grant, rule: d.Rule, errno: d.Errno})
		}
		g := &groups[i]
		g.targets = append(g.targets, d.Target())
		g.times += max(d.Count, 1)
	}
	return groups
}

// line tells the group, with paths below home shortened.
func (g keptGroup) line(home string) string {
	words := "kept from " + g.doing(home)
	if !g.evidence {
		words = "probably " + words
	}
	switch {
	case g.grant != "":
		words += ": allow with " + shellGrant(g.grant)
	case forbids(g.rule):
		words += ": forbidden by " + shown(g.rule)
	case g.rule == ruleSockets:
		words += ": --allow unix opens unix sockets"
	}
	return words
}

// ruleSockets is the rule about unix sockets, in the words of sandbox.Policy.Explain.
const ruleSockets = "unix sockets"

// forbids reports whether a rule is a deny entry, which nothing reopens.
func forbids(rule string) bool {
	return strings.HasPrefix(rule, "deny ") || strings.HasSuffix(rule, "=deny")
}

// doing says what was refused: "writing /etc/hosts (EROFS)".
func (g keptGroup) doing(home string) string {
	what := g.targets[0]
	var about []string
	if n := len(g.targets); n > 1 {
		what = commonFolder(g.targets)
		about = append(about, fmt.Sprintf("%d files", n))
	} else {
		if g.errno != "" {
			about = append(about, shown(g.errno))
		}
		if g.times > 1 {
			about = append(about, fmt.Sprintf("%d times", g.times))
		}
	}
	words := doing(g.op)
	if what != "" {
		words += " " + shown(tilde(what, home))
	} else if g.op != sandbox.Signal {
		words += " something"
	}
	if len(about) > 0 {
		words += " (" + strings.Join(about, ", ") + ")"
	}
	return words
}

// doing is the operation as a person says it.
func doing(op sandbox.Op) string {
	switch op {
	case sandbox.Read:
		return "reading"
	case sandbox.Write:
		return "writing"
	case sandbox.Exec:
		return "running"
	case sandbox.Connect:
		return "connecting to"
	case sandbox.Bind:
		return "listening on"
	case sandbox.Signal:
		return "reaching a process outside"
	}
	return "doing"
}

// keptNotes are the lines about denials after a command. When the command succeeded
// there is one line about all that was seen: programs try much that they can do
// without.
func keptNotes(ds []sandbox.Denial, omitted int, home string, succeeded bool) []string {
	var seen []sandbox.Denial
	var lines []string
	for _, g := range kept(ds) {
		// A guess from words of the output tells people nothing new, unless it
		// comes with what would help.
		if !g.evidence && g.grant != "" {
			lines = append(lines, g.line(home))
		}
	}
	for _, d := range ds {
		if d.Source.Evidence() {
			seen = append(seen, d)
		}
	}
	if len(seen) == 0 {
		return lines
	}
	if succeeded {
		return append(lines, keptSummary(seen, omitted))
	}
	left := len(seen) + omitted
	for i, g := range kept(seen) {
		if i == keptLines {
			break
		}
		lines = append(lines, g.line(home))
		left -= len(g.targets)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: sallyport why", left))
	}
	return lines
}

// keptSummary is one line for all.
func keptSummary(seen []sandbox.Denial, omitted int) string {
	n := len(seen) + omitted
	mixed := slices.ContainsFunc(seen, func(d sandbox.Denial) bool { return d.Op != seen[0].Op })
	what := doing(seen[0].Op) + " " + counted(n, "place")
	if mixed || seen[0].Op == sandbox.Signal {
		what = counted(n, "thing")
	}
	return "kept from " + what + "; sallyport why tells"
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// commonFolder returns the deepest folder that all paths have in common; a path
// among them that is a folder of the others counts as one.
func commonFolder(names []string) string {
	at := names[0]
	for _, n := range names[1:] {
		for at != "/" && at != "." && n != at && !strings.HasPrefix(n, at+"/") {
			at = path.Dir(at)
		}
	}
	return at
}

// tilde shortens a path below the home folder.
func tilde(name, home string) string {
	if home = strings.TrimSuffix(home, "/"); home == "" {
		return name
	}
	if name == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(name, home+"/"); ok {
		return "~/" + rest
	}
	return name
}

// shellGrant writes a grant so that it can be pasted into a shell and moves no
// terminal.
func shellGrant(grant string) string {
	gs, ok := sandbox.ParseGrants(grant)
	if !ok {
		return shown(grant)
	}
	var words []string
	for _, g := range gs {
		words = append(words, grantWords(g)...)
	}
	return shellWords(words)
}

// grantWords returns a grant as two words of a command line.
func grantWords(g sandbox.Grant) []string {
	flag, _, _ := strings.Cut(g.String(), " ")
	switch {
	case flag == "":
		return nil
	case g.Name != "":
		return []string{flag, g.Name}
	case g.Addr != "":
		return []string{flag, g.Addr}
	}
	return []string{flag, g.Path}
}

// shellWords joins words so that a shell reads the same ones.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shellWord(w)
	}
	return strings.Join(out, " ")
}

// shellWord quotes a word for a shell. What does not print is escaped in a form that
// bash, zsh and ksh read.
func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	if utf8.ValidString(w) && !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, n := utf8.DecodeRuneInString(w)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + w[:n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range []byte(w[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(w[:n])
		}
		w = w[n:]
	}
	return b.String() + "'"
}
