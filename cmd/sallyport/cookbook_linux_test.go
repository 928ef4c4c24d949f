// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// checked matches the blocks of the cookbook that are run, with the program that they need.
var checked = regexp.MustCompile("(?s)<!-- checked: (\\S+) -->\n```console\n(.*?)```")

// TestCookbook runs the checked blocks of docs/cookbook.md, each in a workspace of its own, and
// compares what they print: "$ " begins a command, "[exit N]" ends one that fails.
func TestCookbook(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	page, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := checked.FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("the cookbook has no checked block")
	}
	program, err := exec.LookPath("sallyport")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range blocks {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			testenv.NeedProgram(t, block[1])
			home := workRoot(t)
			w := filepath.Join(home, "w")
			if err := os.Mkdir(w, 0o755); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(block[2]) {
				command, ok := strings.CutPrefix(line, "$ ")
				if !ok {
					continue
				}
				got.WriteString(line)
				cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
				cmd.Dir = w
				cmd.Env = append(testenv.Environ(), "HOME="+home, "XDG_STATE_HOME="+
					filepath.Join(home, "state"),
					"PATH="+filepath.Dir(program)+":/usr/bin:/bin", "GORACE="+noRaceSleep, "LC_ALL=C.UTF-8",
					"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=A",
					"GIT_COMMITTER_EMAIL=a@b.c")
				out, err := cmd.CombinedOutput()
				got.WriteString(strings.ReplaceAll(string(out), home, "~"))
				if exit := new(exec.ExitError); errors.As(err, &exit) {
					fmt.Fprintf(&got, "[exit %d]\n", testenv.Code(exit.ProcessState))
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if got.String() != block[2] {
				t.Errorf("it printed\n%s\nthe cookbook says\n%s", got.String(), block[2])
			}
		})
	}
}
