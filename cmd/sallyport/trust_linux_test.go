// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// newTrustSeat is newSeat with a project that was never trusted.
func newTrustSeat(t *testing.T) (seat, string) {
	t.Helper()
	s := newSeat(t)
	rule := filepath.Join(s.work, ".sallyport/rules/x.rules")
	if err := errors.Join(os.MkdirAll(filepath.Dir(rule), 0o755),
		os.WriteFile(rule, []byte("# \x1b[2J\u202eone\n"), 0o600),
		os.WriteFile(filepath.Join(s.work, ".sallyport/config.toml"),
			[]byte(strings.Repeat("# comment\n", 30)+"# end\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return s, rule
}

// trusts reports whether the project is trusted: then the command asks nothing.
func (s seat) trusts(t *testing.T) bool {
	t.Helper()
	cmd := s.command(t, "sallyport", "trust")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	out, _ := cmd.CombinedOutput()
	already := strings.HasSuffix(string(out), "is trusted already.\n")
	if already != (cmd.ProcessState.ExitCode() == 0) || !already && cmd.ProcessState.ExitCode() != 123 {
		t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), out)
	}
	return already
}

const trustChoices = `\[y\] trust these files  \[n\] do not trust them  > $`

// TestTrust: the files are shown whole, escaped, and only an answer to that is yes.
func TestTrust(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	shown := []turn{{`\(never trusted before\)\r\n`, ""}, {`see more --$`, "y\r"},
		{`\| # end\r\n\r\n.sallyport/rules/x.rules, 13 bytes:\r\n\| # \\x1b\[2J\\u202eone\r\n\r\n`, ""}}
	for name, test := range map[string]struct {
		keys []string // each after the line of choices
		code int
	}{
		"yes":         {[]string{"y\r"}, 0},
		"no":          {[]string{"n\r"}, 123},
		"enter":       {[]string{"\r", "no\r"}, 123},
		"other words": {[]string{"ok\r", "trust\r", "yy\r", "1\r"}, 123},
		"end of file": {[]string{"\x04"}, 123},
		"interrupted": {[]string{"\x03"}, 123},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTrustSeat(t)
			// Neither standard input nor output has to do with it.
			x := testenv.StartTerminal(t, s.command(t, "sh", "-c", "yes | sallyport trust | cat"), 80, 24)
			play(x, shown)
			for _, keys := range test.keys {
				x.Expect(trustChoices)
				x.Send(keys)
			}
			x.Wait()
			if s.trusts(t) != (test.code == 0) {
				t.Errorf("seen:\n%s", x.Transcript())
			}
		})
	}
}

// TestTrustCodes: the answer is the exit code.
func TestTrustCodes(t *testing.T) {
	t.Parallel()
	for keys, code := range map[string]int{"y\r": 0, "n\r": 123, "\x04": 123, "\x03": 123} {
		s, _ := newTrustSeat(t)
		x := testenv.StartTerminal(t, s.command(t, "sallyport", "trust", s.work), 80, 50)
		x.Expect(trustChoices)
		x.Send(keys)
		if got := x.Wait(); got != code || x.Modes() != x.ModesBefore() {
			t.Errorf("%q: exit code %d, want %d; seen:\n%s", keys, got, code, x.Transcript())
		}
	}
}

// TestTrustTypedAhead: what was typed before is no answer.
func TestTrustTypedAhead(t *testing.T) {
	t.Parallel()
	s, _ := newTrustSeat(t)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	cmd := s.command(t, "sh", "-c", "read go && exec sallyport trust")
	cmd.Stdin = in
	x := testenv.StartTerminal(t, cmd, 80, 50)
	x.Send("y\ryes\r")
	x.Expect(`y\r\nyes\r\n$`) // the terminal has it
	fmt.Fprintln(out, "go")
	x.Expect(trustChoices)
	x.Send("n\r")
	if code := x.Wait(); code != 123 || s.trusts(t) {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
}

// TestTrustHangUp: a terminal that is taken away is no.
func TestTrustHangUp(t *testing.T) {
	t.Parallel()
	s, _ := newTrustSeat(t)
	x := testenv.StartTerminal(t, s.command(t, "sallyport", "trust"), 80, 50)
	x.Expect(trustChoices)
	x.HangUp()
	if code := x.Wait(); code != 123 || s.trusts(t) {
		t.Errorf("exit code %d", code)
	}
}

// TestTrustSwapped: a file that is changed while the question is open is not trusted.
func TestTrustSwapped(t *testing.T) {
	t.Parallel()
	s, rule := newTrustSeat(t)
	x := testenv.StartTerminal(t, s.command(t, "sallyport", "trust"), 80, 50)
	x.Expect(trustChoices)
	if err := os.WriteFile(rule, []byte("# planted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.Send("y\r")
	if code := x.Wait(); code != 0 || s.trusts(t) {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
	x = testenv.StartTerminal(t, s.command(t, "sallyport", "trust"), 80, 50)
	x.Expect(`\(rules/x.rules changed since \d{4}-\d\d-\d\d\)(?s:.*)` + trustChoices)
	x.Signal(syscall.SIGTERM)
	if code := x.Wait(); code != 123 {
		t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
	}
}

// TestTrustInside: a command in the sandbox, which could answer on its own terminal, cannot reach
// the records: it neither trusts nor revokes.
func TestTrustInside(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s, _ := newTrustSeat(t)
	x := s.run(t, "--tmp", "host", "--", "sallyport", "trust")
	x.Expect(`see more --$`)
	x.Send("\r")
	x.Expect(trustChoices)
	x.Send("y\r")
	if code := x.Wait(); code != 125 || s.trusts(t) {
		t.Errorf("it has trusted the project, exit code %d; seen:\n%s", code, x.Transcript())
	}
	x = testenv.StartTerminal(t, s.command(t, "sallyport", "trust"), 80, 50)
	x.Expect(trustChoices)
	x.Send("y\r")
	x.Wait()
	x = s.run(t, "--tmp", "host", "--", "sallyport", "trust", "--revoke")
	if code := x.Wait(); code != 125 || !s.trusts(t) {
		t.Errorf("it has revoked the trust, or the user could not give it, exit code %d; seen:\n%s", code,
			x.Transcript())
	}
	if out, err := s.command(t, "sallyport", "trust",
		"--revoke").CombinedOutput(); err != nil || s.trusts(t) {
		t.Errorf("%v, %s", err, out)
	}
}
