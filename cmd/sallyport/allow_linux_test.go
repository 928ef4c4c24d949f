// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// projectConfig is the file of the project of a seat.
func (s seat) projectConfig() string { return filepath.Join(s.work, ".sallyport/config.toml") }

// allow starts sallyport config allow on a terminal.
func (s seat) allow(t *testing.T, args ...string) *testenv.Terminal {
	t.Helper()
	return testenv.StartTerminal(t,
		s.command(t, append([]string{"sallyport", "config", "allow"}, args...)...), 200, 60)
}

// write writes files of the project: name, text, and so on.
func (s seat) write(t *testing.T, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(s.work, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte(files[i+1]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAllow: the file is shown as it will be, and after yes it is so, and trusted; another
// answer changes nothing.
func TestAllow(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	for _, test := range []struct {
		name string
		keys string
		code int
	}{
		{"yes", "y\r", 0},
		{"no", "n\r", 123},
		{"end of file", "\x04", 123},
		{"interrupted", "\x03", 123},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSeat(t)
			x := s.allow(t, "--grant", "git", "--rw", s.home, "--net", "host")
			x.Expect(`/w\s+\(with project.write = \["[^\n]*/home"\], with project.grants = \["git"\], with project.network = "host"\)\r\n(?s:.*)` +
				`\| \[project\]\r\n\| network = "host"\r\n\| grants = \["git"\]\r\n\| write = \["[^\n]*/home"\]\r\n\r\n` + trustChoices)
			if _, err := os.Lstat(s.projectConfig()); err == nil {
				t.Error("it is written before the answer")
			}
			x.Send(test.keys)
			if code := x.Wait(); code != test.code || x.Modes() != x.ModesBefore() {
				t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
			}
			if _, err := os.Lstat(filepath.Dir(s.projectConfig())); (err == nil) != (test.code == 0) {
				t.Errorf("%v", err)
			}
			if test.code != 0 {
				return
			}
			if !s.trusts(t) {
				t.Error("it is not trusted")
			}
			if seen := x.Transcript(); !strings.HasSuffix(seen, "> y\r\n") {
				t.Errorf("after the answer it prints %q", seen[strings.LastIndex(seen, "> "):])
			}
			// Once more, there is nothing to ask.
			if out, err := s.command(t, "sallyport", "config", "allow", "--grant",
				"git").CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

// TestAllowShowsAll: nothing is trusted along with it that was not shown.
func TestAllowShowsAll(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.write(t, ".sallyport/config.toml", "# mine\r\nlevel = 'native'", ".sallyport/rules/x.rules",
		"# planted\n")
	x := s.allow(t, "--grant", "git")
	x.Expect(`\(never trusted before, with project.grants = \["git"\]\)(?s:.*)\| # mine\S*\r\n\| level = 'native'\S*\r\n(?s:.*)\| grants = \["git"\](?s:.*)x.rules, 10 bytes:\r\n\| # planted\r\n\r\n` + trustChoices)
	x.Send("y\r")
	if code := x.Wait(); code != 0 || !s.trusts(t) {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
	if text, err := os.ReadFile(s.projectConfig()); err != nil ||
		string(text) != "# mine\r\nlevel = 'native'\r\n\r\n[project]\r\ngrants = [\"git\"]\r\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAllowSwapped: what is changed while the question is open is not written over, and what
// was not shown is not trusted.
func TestAllowSwapped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, says string }{
		{"configuration", ".sallyport/config.toml", `config.toml is not changed: it was changed by another program at the same time; try again\r\n$`},
		{"rules", ".sallyport/rules/x.rules", `.sallyport is not trusted: it was changed by another program at the same time; try again\r\n$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSeat(t)
			s.write(t, ".sallyport/config.toml", "# mine\n")
			x := s.allow(t, "--grant", "git")
			x.Expect(trustChoices)
			s.write(t, test.file, "# planted\n")
			x.Send("y\r")
			x.Expect(test.says)
			if code := x.Wait(); code != 125 || s.trusts(t) {
				t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
			}
			if text, err := os.ReadFile(filepath.Join(s.work, test.file)); err != nil ||
				string(text) != "# planted\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestAllowInside: a command in the sandbox, which can answer on its own terminal, changes no
// settings: not those of the project, not the user's.
func TestAllowInside(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		mode  string
		files []string
		code  int
	}{
		{"workspace-write", nil, 125},
		{"workspace-write", []string{".sallyport/config.toml", "# mine\n"}, 125},
		{"full-access", nil, 0}, // the attack works without the sandbox
	} {
		s := newSeat(t)
		s.write(t, test.files...)
		x := s.run(t, "-s", test.mode, "--tmp", "host", "--rw", s.home, "--", "sallyport", "config", "allow",
			"--grant", "gpu")
		x.Expect(trustChoices)
		x.Send("y\r")
		if code := x.Wait(); code != test.code {
			t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
		}
		text, err := os.ReadFile(s.projectConfig())
		if changed := err == nil && string(text) != "# mine\n"; changed != (test.code == 0) || err == nil &&
			s.trusts(t) != changed {
			t.Errorf("%q, %v; seen:\n%s", text, err, x.Transcript())
		}
	}
}

// TestAllowBesideRun: what the user allows while a command runs, in a project that had no settings, stays and
// counts. The observer keeps it as it is; without one, what the command has changed is not trusted, and is
// quarantined.
func TestAllowBesideRun(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name, script string
		flags        []string
		kept         bool
	}{
		{"left alone", ":", nil, true},
		{"left alone, no observer", ":", []string{"--no-observer"}, true},
		{"changed", "echo x >> .sallyport/config.toml", nil, true},
		{"changed, no observer", "echo x >> .sallyport/config.toml", []string{"--no-observer"}, false},
		{"removed", "rm -r .sallyport", nil, true},
		{"replaced", "mkdir new; mv .sallyport old; mv new .sallyport", nil, true},
		{"more rules", "mkdir .sallyport/rules; echo x > .sallyport/rules/x.rules", nil, true},
		{"more rules, no observer", "mkdir .sallyport/rules; echo x > .sallyport/rules/x.rules",
			[]string{"--no-observer"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSeat(t)
			x := s.run(t, append(test.flags, "-a", "never", "--", "sh", "-c",
				"echo begun; read line; "+test.script)...)
			x.Expect("begun")
			a := s.allow(t, "--net", "host")
			a.Expect(trustChoices)
			a.Send("y\r")
			if code := a.Wait(); code != 0 || !s.trusts(t) {
				t.Errorf("exit code %d; seen:\n%s", code, a.Transcript())
			}
			x.Send("\r")
			x.Wait()
			text, err := os.ReadFile(s.projectConfig())
			kept := string(text) == "[project]\nnetwork = \"host\"\n" && s.trusts(t)
			moved := strings.Contains(x.Transcript(), "quarantined")
			if kept != test.kept || !kept && err == nil || kept == moved {
				t.Errorf("%q, %v; seen:\n%s", text, err, x.Transcript())
			}
			unfinished := func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), "-new") }
			if names, err := os.ReadDir(s.work); err != nil || slices.ContainsFunc(names, unfinished) {
				t.Errorf("%v, %v", names, err)
			}
		})
	}
}
