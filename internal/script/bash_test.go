// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/testenv"
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
	if why != "" || strings.Contains(text, "||") || strings.Contains(text, "\x01") || len(commands) > 50 || len(text) > 4096 {
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
