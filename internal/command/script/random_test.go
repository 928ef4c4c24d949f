// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// A writer writes scripts of the constructs whose values are followed.
type writer struct {
	*rand.Rand
	depth int
}

func (w *writer) pick(all ...string) string { return all[w.IntN(len(all))] }

func (w *writer) name() string { return w.pick("v", "u", "t") }

// text is part of a word.
func (w *writer) text() string { return w.pick("a", "b", "c", "d", ",", "-") }

func (w *writer) part() string {
	v := w.name()
	switch w.IntN(22) {
	case 0:
		return `"` + w.text() + " " + w.text() + `"`
	case 1:
		return "'" + w.text() + "'"
	case 2:
		return `\` + w.text()
	case 3, 4, 5:
		return "$" + v
	case 6, 7:
		return `"$` + v + `"`
	case 8:
		return "${" + v + ":-" + w.text() + "}"
	case 9:
		return "${" + v + ":+" + w.text() + "}"
	case 10:
		return "${" + v + "[0]}"
	case 11:
		return `"${` + v + `[@]}"`
	case 12:
		return w.pick("$1", "$2", `"$@"`, "$*", `"$*"`, "$@")
	case 13:
		return "$(echo " + w.word() + ")"
	case 14:
		return `"$(printf '%s' ` + w.word() + `)"`
	case 15:
		return "{" + w.text() + "," + w.text() + "x}"
	case 16:
		return `$'\x61'`
	case 17:
		return "${" + v + w.pick("#a", "%b", "/a/b", ":1") + "}"
	case 18:
		return "${" + v + ":=" + w.text() + "}"
	}
	return w.text()
}

func (w *writer) word() string {
	var b strings.Builder
	for range 1 + w.IntN(3) {
		b.WriteString(w.part())
	}
	return b.String()
}

func (w *writer) words(least int) string {
	var all []string
	for range least + w.IntN(3) {
		all = append(all, w.word())
	}
	return strings.Join(all, " ")
}

func (w *writer) stmts() string {
	if w.depth++; w.depth > 3 {
		w.depth--
		return "z " + w.words(1)
	}
	var all []string
	for range 1 + w.IntN(4) {
		all = append(all, w.stmt())
	}
	w.depth--
	return strings.Join(all, "; ")
}

func (w *writer) stmt() string {
	v := w.name()
	switch w.IntN(18) {
	case 0, 1, 2:
		return v + "=" + w.word()
	case 3:
		return v + "+=" + w.word()
	case 4:
		return v + "=(" + w.words(0) + ")"
	case 5:
		return v + "+=(" + w.words(1) + ")"
	case 6:
		return "f() { " + w.stmts() + "; }; f " + w.words(1)
	case 7:
		return "for " + v + " in " + w.words(1) + "; do " + w.stmts() + "; done"
	case 8:
		return "if " + w.pick("true", "false") + "; then " + w.stmts() + "; else " + w.stmts() + "; fi"
	case 9:
		return "set -- " + w.words(1)
	case 10:
		return "shift"
	case 11:
		return "eval " + programs.QuoteWords([]string{w.stmts()})
	case 12:
		return w.pick("IFS=,", "IFS=a", "unset IFS", "IFS=")
	case 13:
		return "( " + w.stmts() + ")"
	case 14:
		return "g() { local " + v + "=" + w.word() + "; " + w.stmts() + "; }; g " + w.words(1)
	}
	return "z" + w.pick("", "$"+v) + " " + w.words(1)
}

// TestRandomScripts looks for commands that bash makes of random scripts among the uses.
// SALLYPORT_TEST_SEED chooses other scripts.
func TestRandomScripts(t *testing.T) {
	bash := needBash(t)
	seed, _ := strconv.ParseUint(os.Getenv("SALLYPORT_TEST_SEED"), 10, 64) // 0 without it
	w := writer{Rand: rand.New(rand.NewPCG(seed, 37))}
	commands, sure := 0, 0
	for range 100 {
		text := w.stmts()
		r := Read([]string{"bash", "-c", text})
		for _, argv := range bashRuns(t, bash, text) {
			commands++
			found := exactly(r, argv)
			if found == Yes {
				sure++
			} else if found == No && !limited(r) {
				t.Errorf("%s\nbash runs %q, the uses are %.2000q", text, argv, argvs(r.Uses))
			}
		}
	}
	t.Logf("%d commands, %d for sure", commands, sure)
	if commands < 100 {
		t.Errorf("bash ran %d commands, want 100", commands)
	}
}

// limited reports whether a limit was reached, behind which there may be other commands.
func limited(r *Reading) bool {
	return slices.ContainsFunc(r.Unknown, func(u Unknown) bool {
		return u.Why == TooMany ||
			u.Why == TooDeep
	})
}

// exactly is how sure it is that a command line runs a command with these words first.
func exactly(r *Reading, argv []string) Certainty {
	var pattern [][]string
	for _, w := range argv {
		pattern = append(pattern, []string{w})
	}
	found := No
	for i := range r.Uses {
		found = max(found, r.Uses[i].Begins(pattern, nil))
	}
	return found
}
