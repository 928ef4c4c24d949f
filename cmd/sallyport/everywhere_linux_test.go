// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A given is what a command got: its variables, what it read, and the rest of its defaults.
type given struct {
	Env      []string
	Read     string
	Mode     string
	Network  string
	Level    string
	Withheld []string
}

// bare returns a command with no variables but those of the test, whatever the machine has.
func (s seat) bare(t *testing.T, variables []string, args ...string) *exec.Cmd {
	cmd := s.command(t, args...)
	cmd.Env = append(variables, "PATH="+s.path, "HOME="+s.home, "XDG_STATE_HOME="+s.home, "SHELL=/bin/sh",
		"TERM=xterm", "GORACE="+noRaceSleep)
	return cmd
}

// TestSameEverywhere runs one command on a terminal, in a pipeline and as CI does. It gets the
// same variables, reads its standard input, and has the same defaults.
func TestSameEverywhere(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const script = `read a; echo "read $a"; /usr/bin/env`
	extra := []string{"PLAIN=plain", "GITHUB_TOKEN=secret", "DATABASE_URL=postgres://me:sesame@db/x",
		"GOFLAGS=-mod=mod", "CI=true"}
	words := []string{"sallyport", "run", "--", "sh", "-c", script}
	begin := func(t *testing.T) (seat, *exec.Cmd) {
		s := newSeat(t)
		return s, s.bare(t, slices.Clone(extra), words...)
	}
	places := map[string]func(*testing.T) given{
		"terminal": func(t *testing.T) given {
			s, cmd := begin(t)
			x := testenv.StartTerminal(t, cmd, 80, 24)
			x.Send("words\r")
			if code := x.Wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			_, out, _ := strings.Cut(x.Transcript(), "read ") // after the echo
			return what(t, s, strings.ReplaceAll("read "+out, "\r", ""))
		},
		"pipe": func(t *testing.T) given {
			s, cmd := begin(t)
			cmd.Stdin = strings.NewReader("words\n")
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			return what(t, s, string(out))
		},
		"output to a pipe": func(t *testing.T) given {
			s, cmd := begin(t)
			cmd.Args = []string{"sh", "-c", `echo words | "$@" | cat`, "sh", "sallyport", "run", "--",
				"sh", "-c", script}
			cmd.Path = "/bin/sh"
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			return what(t, s, string(out))
		},
	}
	want := places["terminal"](t)
	if !slices.Contains(want.Env, "PLAIN=plain") ||
		!slices.Equal(want.Withheld, []string{"DATABASE_URL", "GITHUB_TOKEN"}) || want.Read != "read words" {
		t.Errorf("on a terminal: %+v", want)
	}
	for name, place := range places {
		if diff := cmp.Diff(want, place(t)); diff != "" {
			t.Errorf("%s: (-terminal +here)\n%s", name, diff)
		}
	}
}

// what reads what a run printed and recorded. Directories differ between seats.
func what(t *testing.T, s seat, out string) given {
	t.Helper()
	root := strings.TrimSuffix(s.work, "/w")
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(out, root, "ROOT")), "\n")
	g := given{Read: lines[0], Env: slices.Sorted(slices.Values(lines[1:]))}
	text, err := s.command(t, "sallyport", "why", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var why struct {
		Record struct {
			Sandbox  struct{ Mode, Network, Level string }
			Withheld []string
		}
	}
	if err := json.Unmarshal(text, &why); err != nil {
		t.Fatal(err)
	}
	r := why.Record
	g.Mode, g.Network, g.Level, g.Withheld = r.Sandbox.Mode, r.Sandbox.Network, r.Sandbox.Level, r.Withheld
	return g
}

// TestMissedVariable: a program that fails for want of a withheld variable is told apart from
// others by its output; `why` and -v name what was withheld in any case.
func TestMissedVariable(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const line = "sallyport: withheld from the environment: NPM_TOKEN; pass one with -e NPM_TOKEN"
	s := newSeat(t)
	start := func(script string) string {
		cmd := s.bare(t, []string{"NPM_TOKEN=t", "API_KEY=k"}, "sallyport", "run", "--", "sh", "-c", script)
		x := testenv.StartTerminal(t, cmd, 80, 24)
		x.Wait()
		return x.Transcript()
	}
	for script, want := range map[string]bool{
		`echo 'Failed to replace env in config: ${NPM_TOKEN}'; exit 1`: true,
		`echo 'NPM_TOKEN missing'`:                                     false, // it succeeds
		`echo 'MY_NPM_TOKEN and NPM_TOKENS are missing'; exit 1`:       false,
		`exit 1`: false,
	} {
		if out := start(script); strings.Contains(out, line) != want || strings.Contains(out, "API_KEY") {
			t.Errorf("%s: %q", script, out)
		}
	}
	out, err := s.command(t, "sallyport", "why").Output()
	if err != nil || !strings.Contains(string(out),
		"\nWithheld from the environment: API_KEY, NPM_TOKEN; pass one with -e API_KEY.\n") {
		t.Errorf("why: %s, %v", out, err)
	}
	cmd := s.bare(t, []string{"NPM_TOKEN=t", "API_KEY=k"}, "sallyport", "run", "-v", "--", "true")
	if out, err := cmd.CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "sallyport: withheld from the environment: API_KEY, NPM_TOKEN;") {
		t.Errorf("-v: %s, %v", out, err)
	}
}
