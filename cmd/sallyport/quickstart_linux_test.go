// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// projects matches the blocks of the quick start: the project in testdata/quickstart, the program
// that it needs, and what is typed and seen.
var projects = regexp.MustCompile("(?s)<!-- project: (\\S+), needs (\\S+) -->\n```console\n(.*?)```")

// TestQuickstart does what docs/quickstart.md shows as a new user with an empty home directory, and
// compares what is seen: "$ " begins a command, "> y" is an answer on a terminal, "[exit N]" ends a
// command that fails. With SALLYPORT_TEST_UPDATE it writes what it has seen into the page.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	const name = "../../docs/quickstart.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := projects.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 6 {
		t.Fatalf("the page has %d projects", len(blocks))
	}
	for _, block := range blocks {
		if _, err := exec.LookPath(block[2]); err != nil && block[2] != "go" {
			continue // which tools a machine has decides
		}
		if block[2] == "go" && (!testenv.IsLong() || os.Geteuid() == 0) {
			continue // it compiles the standard library anew: once is enough, as a new user
		}
		t.Run(block[1], func(t *testing.T) {
			needed := testenv.NeedProgram(t, block[2])
			got := newcomer(t, block[1], needed).session(t, block[3])
			if got != block[3] && os.Getenv("SALLYPORT_TEST_UPDATE") != "" {
				page = []byte(strings.Replace(string(page), block[3], got, 1))
			} else if got != block[3] {
				t.Errorf("it printed\n%s\nthe page says\n%s", got, block[3])
			}
		})
	}
	if os.Getenv("SALLYPORT_TEST_UPDATE") != "" {
		if err := os.WriteFile(name, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newcomer is newSeat with the workspace in an empty home, and a project in it.
func newcomer(t *testing.T, project, program string) seat {
	t.Helper()
	s := newSeat(t)
	s.home = filepath.Dir(s.work)
	if err := os.Remove(filepath.Join(s.home, "home")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(s.work, os.DirFS(filepath.Join("testdata/quickstart", project))); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(program)
	if project == "rust" { // rustup's program looks for the real one in the home directory
		root, err := exec.CommandContext(t.Context(), filepath.Join(bin, "rustc"), "--print",
			"sysroot").Output()
		if err != nil {
			t.Fatal(err)
		}
		bin = filepath.Join(strings.TrimSpace(string(root)), "bin")
	}
	s.path += ":" + bin
	return s
}

// quoted matches a file that is shown.
var quoted = regexp.MustCompile(`(?m)(?:^\| .*\n)+`)

// session plays the commands of a block, and returns the block as it is seen. The page shows the
// first file whole.
func (s seat) session(t *testing.T, block string) string {
	t.Helper()
	var got strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, seen, _ := strings.Cut(part, "\n")
		cmd := s.command(t, "sh", "-c", command)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Join(s.home, ".local/state"),
			"CARGO_TERM_COLOR=never", "NO_COLOR=1")
		var out string
		var code int
		if strings.Contains(seen, "  > y") {
			x := testenv.StartTerminal(t, cmd, 100, 100)
			x.Expect(trustChoices)
			x.Send("y\r")
			code = x.Wait()
			out = x.Transcript()
		} else {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as a program runs it, without a terminal
			text, err := cmd.CombinedOutput()
			if out, code = string(text), testenv.Code(cmd.ProcessState); err != nil && code <= 0 {
				t.Fatal(err)
			}
		}
		out = strings.ReplaceAll(out, s.program("sallyport"), "/usr/local/bin/sallyport")
		text := strings.ReplaceAll(strings.ReplaceAll(s.shorten(out), "\r", ""), s.home, "~")
		if !strings.HasPrefix(quoted.FindString(seen), "| #") {
			text = quoted.ReplaceAllString(text, "| ...\n")
		}
		fmt.Fprintf(&got, "$ %s\n%s", command, text)
		if code != 0 {
			fmt.Fprintf(&got, "[exit %d]\n", code)
		}
	}
	return got.String()
}

// shown matches what differs from run to run: the size of a file with names of the home directory,
// and directories of go.
var shown = regexp.MustCompile(`(\d+)( bytes:)|(/tmp/go-build)\d+`)

// shorten makes a text that of a home directory with the name "~".
func (s seat) shorten(text string) string {
	at := shown.FindStringSubmatchIndex(text)
	switch {
	case at == nil:
		return text
	case at[6] >= 0:
		return shown.ReplaceAllString(text, "${3}1")
	}
	size, _ := strconv.Atoi(text[at[2]:at[3]])
	size -= strings.Count(quoted.FindString(strings.ReplaceAll(text, "\r", "")),
		s.home) * (len(s.home) - len("~"))
	return text[:at[2]] + strconv.Itoa(size) + text[at[3]:]
}
