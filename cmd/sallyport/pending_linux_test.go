// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// An asking is a run without a terminal that asks, with its events.
type asking struct {
	t     *testing.T
	seat  seat
	cmd   *exec.Cmd
	lines *bufio.Reader
	err   bytes.Buffer
	id    string // of the question
}

// line is what the tests read of a line of --jsonl.
type line struct {
	Type, ID, Decision, Source, Message, End, Output, Kind string

	ExitCode int `json:"exit_code"`
	Attempts int
}

// asks starts a run that waits for an answer, and returns when its question was reported.
func (s seat) asks(t *testing.T, words ...string) *asking {
	t.Helper()
	a := &asking{t: t, seat: s}
	a.cmd = s.command(t, append([]string{"sallyport", "run", "--jsonl", "-a", "untrusted", "--approval-wait",
		"1h"}, words...)...)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	a.cmd.Stderr = &a.err
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	a.lines = bufio.NewReader(out)
	a.id = a.until("approval_requested").ID
	return a
}

// until reads lines up to one of a type.
func (a *asking) until(kind string) line {
	a.t.Helper()
	for {
		text, err := a.lines.ReadBytes('\n')
		if err != nil {
			a.t.Fatalf("no %s: %v; %s", kind, err, a.err.String())
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			a.t.Fatal(err)
		}
		if l.Type == kind {
			return l
		}
	}
}

// end reads the rest, and returns the decision, the result and the exit code.
func (a *asking) end() (decided, result line, code int) {
	a.t.Helper()
	decided = a.until("approval_decided")
	result = a.until("result")
	_ = a.cmd.Wait() // the exit code says it
	return decided, result, testenv.Code(a.cmd.ProcessState)
}

// says runs sallyport and returns its exit code and what it printed.
func (s seat) says(t *testing.T, words ...string) (int, string) {
	t.Helper()
	cmd := s.command(t, append([]string{"sallyport"}, words...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return testenv.Code(cmd.ProcessState), string(out)
}

// must is says for a command that succeeds.
func (s seat) must(t *testing.T, words ...string) string {
	t.Helper()
	code, out := s.says(t, words...)
	if code != 0 {
		t.Fatalf("%q: exit code %d, %s", words, code, out)
	}
	return out
}

// noted returns what the audit log has about rules and approvals: what was done with which.
func (s seat) noted(t *testing.T) (all []string) {
	t.Helper()
	s.must(t, "audit", "verify")
	for line := range strings.Lines(s.must(t, "audit", "show", "--json", "--kind", "rules")) {
		var r struct {
			Body struct{ Action, Rule, Approval string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Body.Action+" "+r.Body.Rule+r.Body.Approval)
	}
	return all
}

func (s seat) sockets(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.home, "sallyport/approvals/*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestApproveElsewhere: a run that waits is answered by another process.
func TestApproveElsewhere(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name   string
		answer []string // without the ID
		code   int
		want   string // the decision
		says   string // on standard error of the run
	}{
		{"approve", []string{"approve"}, 0, "approved", ""},
		{"for the session", []string{"approve", "--session"}, 0, "approved_for_session", ""},
		{"the rule", []string{"approve", "--rule"}, 0, "approved_execpolicy_amendment", ""},
		{"deny", []string{"deny"}, 123, "denied", "rejected by user"},
		{"deny, saying why", []string{"deny", "--message", "use\x1b[2J make"}, 123, "denied", `use\x1b[2J make`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSeat(t)
			a := s.asks(t, "--", "touch", "made")
			if out := s.must(t, "approvals"); !strings.Contains(out, "question "+a.id) ||
				!strings.Contains(out, "| touch made\n") {
				t.Errorf("%s", out)
			}
			words := append(slices.Clone(test.answer), a.id)
			if out := s.must(t, words...); out != "" {
				t.Errorf("%s", out)
			}
			decided, result, code := a.end()
			_, err := os.Lstat(s.work + "/made")
			if decided.Decision != test.want || decided.Source != "user" || code != test.code ||
				result.ExitCode != code || (err == nil) != (code == 0) ||
				!strings.Contains(a.err.String(), test.says) {
				t.Errorf("%+v, %+v, exit code %d, %v; %s", decided, result, code, err, a.err.String())
			}
			if code, out := s.says(t, words...); code != 1 || strings.Count(out, "\n") != 1 {
				t.Errorf("answered twice: exit code %d, %s", code, out)
			}
			if names := s.sockets(t); len(names) != 0 {
				t.Errorf("left: %q", names)
			}
		})
	}
}

// TestRememberedElsewhere: a rule that was remembered counts in the next run, is listed, and is
// gone when it was revoked. Other lines of the file stay.
func TestRememberedElsewhere(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	file := filepath.Join(s.home, ".config/sallyport/rules/default.rules")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, []byte("# mine\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	a := s.asks(t, "--", "touch", "made")
	s.must(t, "approve", "--rule", a.id)
	a.end()
	s.must(t, "run", "-a", "untrusted", "--", "touch", "made")
	var list struct{ Rules []struct{ ID, Rule string } }
	if err := json.Unmarshal([]byte(s.must(t, "approvals", "--json")), &list); err != nil ||
		len(list.Rules) != 1 || !strings.Contains(list.Rules[0].Rule, `["touch", "made"]`) {
		t.Fatalf("%v, %+v", err, list)
	}
	if text := s.must(t, "__complete", "approvals", "revoke", "rule-"); !strings.Contains(text,
		list.Rules[0].ID) {
		t.Errorf("the completion has no ID: %s", text)
	}
	s.must(t, "approvals", "revoke", list.Rules[0].ID[:8])
	if text, err := os.ReadFile(file); err != nil || string(text) != "# mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	if code, out := s.says(t, "approvals", "revoke", list.Rules[0].ID); code != 1 {
		t.Errorf("revoked twice: exit code %d, %s", code, out)
	}
	if got, want := s.noted(t), []string{"remembered " + list.Rules[0].Rule,
		"revoked " + list.Rules[0].Rule}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
	if code, out := s.says(t, "run", "-a", "untrusted", "--", "touch", "made"); code != 123 {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// TestSessionElsewhere: an approval for the session of a running process is listed and revoked.
func TestSessionElsewhere(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	a := &asking{t: t, seat: s}
	a.cmd = s.command(t, "sallyport", "run", "--jsonl", "-a", "untrusted", "--approval-wait", "1h", "-c",
		"echo started; read x")
	a.cmd.Stdin, a.cmd.Stderr, a.cmd.SysProcAttr = in, &a.err, &syscall.SysProcAttr{Setsid: true}
	stdout, err := a.cmd.StdoutPipe()
	if err := errors.Join(err, a.cmd.Start(), in.Close()); err != nil {
		t.Fatal(err)
	}
	a.lines = bufio.NewReader(stdout)
	id := a.until("approval_requested").ID
	s.must(t, "approve", "--session", id)
	a.until("output")
	if text := s.must(t, "approvals"); !strings.Contains(text, "approved for the session of process") ||
		!strings.Contains(text, id) {
		t.Errorf("%s", text)
	}
	s.must(t, "approvals", "revoke", id)
	if code, text := s.says(t, "approvals", "revoke", id); code != 1 {
		t.Errorf("revoked twice: exit code %d, %s", code, text)
	}
	if text := s.must(t, "approvals"); strings.Contains(text, id) {
		t.Errorf("%s", text)
	}
	if got := s.noted(t); !slices.Equal(got, []string{"revoked " + id}) {
		t.Errorf("the audit log has %q", got)
	}
	_, _ = io.WriteString(out, "x\n")
	if result := a.until("result"); result.ExitCode != 0 {
		t.Errorf("%+v", result)
	}
	_ = a.cmd.Wait() // the result says it
}

// TestTwoAsk: each of two processes gets its own answer.
func TestTwoAsk(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	a, b := s.asks(t, "--", "touch", "a"), s.asks(t, "--", "touch", "b")
	if text := s.must(t, "__complete", "approve", ""); !strings.Contains(text, a.id) ||
		!strings.Contains(text, b.id) {
		t.Errorf("the completion lacks one: %s", text)
	}
	s.must(t, "deny", b.id)
	s.must(t, "approve", a.id[:12])
	if _, _, code := a.end(); code != 0 {
		t.Errorf("the first: exit code %d", code)
	}
	if _, _, code := b.end(); code != 123 {
		t.Errorf("the second: exit code %d", code)
	}
}

// TestKilledAsking: the socket of a killed process is removed by the next one who looks.
func TestKilledAsking(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	a, b := s.asks(t, "--", "touch", "a"), s.asks(t, "--", "touch", "b")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait() // it was killed
	if names := s.sockets(t); len(names) != 2 {
		t.Errorf("%q", names)
	}
	if code, out := s.says(t, "approve", a.id); code != 1 {
		t.Errorf("exit code %d, %s", code, out)
	}
	if names := s.sockets(t); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
	s.must(t, "deny", b.id)
	b.end()
}

// TestApprovalWait: without it, or when no answer comes in time, a question without a terminal is
// refused.
func TestApprovalWait(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	for _, test := range []struct{ wait, says string }{{"0", "there is no one to ask"},
		{"0.01", "no approval came in time"},
		{"0.01", "\nsallyport: a question waits 10ms for sallyport approve "}} {
		code, out := s.says(t, "run", "-a", "untrusted", "--approval-wait", test.wait, "--", "touch", "made")
		if code != 123 || !strings.Contains("\n"+out, test.says) {
			t.Errorf("%s: exit code %d, %s", test.wait, code, out)
		}
	}
	if _, err := os.Lstat(s.work + "/made"); err == nil || len(s.sockets(t)) != 0 {
		t.Errorf("it ran, or left %q", s.sockets(t))
	}
	for _, words := range [][]string{
		{"run", "--approval-wait", "-1", "--", "true"}, {"approve"}, {"deny"}, {"approve", ""}, {"approve", "--session", "--rule", "x"}, {"approve", "x", "y"},
		{"approvals", "revoke"}, {"approvals", "drop", "x"}, {"approvals", "revoke", "x", "--json"}, {"deny", "--message", "", "x"},
	} {
		if code, out := s.says(t, words...); code != 125 || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: exit code %d, %s", words, code, out)
		}
	}
	for _, words := range [][]string{{"approve", "x"}, {"deny", "x"}, {"approvals", "revoke", "x"}} {
		if code, out := s.says(t, words...); code != 1 ||
			!strings.Contains(out, "no ID begins with x; sallyport approvals lists what is open") {
			t.Errorf("%q: exit code %d, %s", words, code, out)
		}
	}
	if out := s.must(t, "approvals"); out != "No question is open, and nothing is remembered.\n" {
		t.Errorf("%s", out)
	}
}

// TestTerminalWithdrawn: the question on the terminal goes when another process answers, and the
// terminal is as it was; what is answered on the terminal cannot be answered again.
func TestTerminalWithdrawn(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, own := range []string{"-t=false", "-t"} {
		s := newSeat(t)
		x := s.run(t, "-a", "untrusted", own, "--", "touch", "made")
		x.Expect(`\[n\] deny  \[a\] abort  > $`)
		var list struct {
			Pending []struct{ Request struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(s.must(t, "approvals", "--json")), &list); err != nil ||
			len(list.Pending) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		s.must(t, "approve", list.Pending[0].Request.ID)
		x.Expect(`\nanswered elsewhere\r\n`)
		if code := x.Wait(); code != 0 || x.Modes() != x.ModesBefore() {
			t.Errorf("%s: exit code %d; seen:\n%s", own, code, x.Transcript())
		}
		x = s.run(t, "-a", "untrusted", own, "--", "touch", "other")
		x.Expect(`\[n\] deny  \[a\] abort  > $`)
		if err := json.Unmarshal([]byte(s.must(t, "approvals", "--json")), &list); err != nil ||
			len(list.Pending) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		x.Send("n\r")
		if code := x.Wait(); code != 123 {
			t.Errorf("%s: exit code %d; seen:\n%s", own, code, x.Transcript())
		}
		if code, out := s.says(t, "approve", list.Pending[0].Request.ID); code != 1 {
			t.Errorf("answered twice: exit code %d, %s", code, out)
		}
	}
}

// TestApproveInside: a command in the sandbox neither sees nor answers the question of another
// run, also where unix sockets are open to it.
func TestApproveInside(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	a := s.asks(t, "--", "touch", "made")
	socket := s.sockets(t)
	if len(socket) != 1 {
		t.Fatal(socket)
	}
	for _, flags := range [][]string{{}, {"--allow", "unix"},
		{"--allow", "unix", "--rw", filepath.Dir(s.home), "--net", "host"},
		{"--allow", "unix", "--tmp", "host", "-e", "XDG_STATE_HOME=" + s.home}} {
		run := append([]string{"run", "-q"}, flags...)
		for _, words := range [][]string{{"sallyport", "approve", a.id}, {"sallyport", "deny", a.id},
			{"sh", "-c", `test -S "$0"`, socket[0]}, {"sh", "-c", `rm "$0"`, socket[0]}} {
			if code, out := s.says(t, append(append(slices.Clone(run), "--"), words...)...); code == 0 {
				t.Errorf("%q %q: %s", flags, words, out)
			}
		}
		_, out := s.says(t, append(run, "--", "sallyport", "approvals")...)
		if strings.Contains(out, a.id) {
			t.Errorf("%q: the question is seen: %s", flags, out)
		}
	}
	s.must(t, "deny", a.id) // it is still open
	if _, _, code := a.end(); code != 123 {
		t.Errorf("exit code %d", code)
	}
}
