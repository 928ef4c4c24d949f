// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func needBash(t testing.TB) string {
	t.Helper()
	return testenv.NeedProgram(t, "bash")
}

// asking is a bash that runs nothing: commands are not found, and print their words to
// descriptor 3, each ended by NUL, the last of a command followed by \x01 and NUL.
const asking = `command_not_found_handle() { printf '%s\0' "$@" $'\1' >&3; }
for b in $(compgen -b); do case $b in printf | enable) ;; *) enable -n "$b" ;; esac; done; enable -n enable
`

// checkBash compares the plain list of a script with the commands that bash makes of it. Left
// out are scripts in which a command may not be reached or would run.
func checkBash(t *testing.T, bash, text string) {
	t.Helper()
	sh := parse(text)
	commands, why := sh.plain()
	if why != "" || strings.Contains(text, "||") || strings.Contains(text, "\x01") || len(commands) > 50 ||
		len(text) > 4096 {
		return
	}
	var want []string
	for _, c := range commands {
		if strings.Contains(c.Args[0], "/") || c.Args[0] == "printf" || c.Args[0] == "enable" {
			return
		}
		want = append(want, strings.Join(c.Args, "\x00"))
	}
	c := exec.Command(bash, "--norc", "--noprofile", "-c", "exec 3>&1 >/dev/null\n"+asking+text)
	c.Env, c.Dir = []string{"PATH=/nonexistent", "LC_ALL=C.UTF-8"}, t.TempDir()
	out, err := c.Output()
	got := strings.Split(strings.TrimSuffix(string(out), "\x00\x01\x00"), "\x00\x01\x00")
	slices.Sort(got) // commands of a pipeline run side by side
	slices.Sort(want)
	if !cmp.Equal(got, want) {
		t.Errorf("%q: bash runs %q (%v), the plain list is %q", text, got, err, want)
	}
}

// TestUsesBash runs spellings with a bash that finds no program, and looks for each command that
// it would have run among the uses.
func TestUsesBash(t *testing.T) {
	bash := needBash(t)
	var all []string
	for _, s := range readLines[spelling](t, "spellings.jsonl") {
		all = append(all, s.Script)
	}
	for _, b := range readLines[benign](t, "benign.jsonl") {
		all = append(all, b.Script)
	}
	commands := 0
	for _, text := range all {
		// Names with a slash would run programs, and some builtins end or stop this bash.
		if text == "" || strings.ContainsAny(text, "/~&") ||
			regexp.MustCompile(`while|until|exec|kill|wait|suspend`).MatchString(text) {
			continue
		}
		r := Read([]string{"bash", "-c", text})
		for _, argv := range bashRuns(t, bash, text) {
			commands++
			covered := len(r.Unknown) > 0 || exactly(r, argv) != No
			if !covered {
				t.Errorf("%q: bash runs %q, the uses are %q", text, argv, argvs(r.Uses))
			}
		}
	}
	if commands < 100 {
		t.Errorf("bash ran %d commands, want 100", commands)
	}
}

// TestValuesBash has scripts whose words are not what they seem.
func TestValuesBash(t *testing.T) {
	bash := needBash(t)
	for _, text := range []string{
		`t=b; z $t{a,c}`,                        // the variables ta and tc
		`g() { local t={a,b}x; z "$t"; }; g`,    // braces in a declaration
		`z b"${v[@]}"a`,                         // no words between
		`set -- a b; eval 'z "$@"'`,             // arguments of the script outside
		`z r$t''m; t=x`,                         // set later
		`t=(); z $t a`,                          // an empty array
		`t=(a b); t=c; z "${t[@]}"`,             // an array and a text
		`for t in a b; do z "${t[@]}"; done`,    // one after the other
		`IFS=,; set -- a b; z "$*"`,             // joined by the separator
		`IFS=a; t="x y"; z $t`,                  // not split at the blank
		`t=a; f() { z "$t$1"; }; f b; t=c; f d`, // values and arguments of each call
		`f() { set -- x y; z "$@"; }; f a`,      // arguments that a function changes
		`t=x; unset t; z "${t:-a}"`,             // unset again
		`if false; then t=x; fi; z r"$t"m`,      // not set on this way
		`true && t=x && z "$t"`,                 // set on the way
		`t=a; (t=b; z "$t"); z "$t"`,            // only inside
		`t=a; t+=b; t=$t$t; z "$t"`,             // in order
	} {
		r, runs := Read([]string{"bash", "-c", text}), bashRuns(t, bash, text)
		if len(runs) == 0 {
			t.Errorf("%s: bash runs nothing", text)
		}
		for _, argv := range runs {
			if exactly(r, argv) == No {
				t.Errorf("%s: bash runs %q, the uses are %q", text, argv, argvs(r.Uses))
			}
		}
	}
}

// bashRuns returns the commands that bash does not find.
func bashRuns(t *testing.T, bash, text string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", `exec 9>&1 >/dev/null
command_not_found_handle() { printf '%s\0' "$@" $'\1' >&9; }
`+text)
	c.Env, c.Dir = []string{"PATH=/nonexistent", "LC_ALL=C.UTF-8"}, t.TempDir()
	out, _ := c.Output() // its exit code is that of the script
	var all [][]string
	for _, one := range strings.Split(string(out), "\x00\x01\x00") {
		if one != "" {
			all = append(all, strings.Split(one, "\x00"))
		}
	}
	return all
}
