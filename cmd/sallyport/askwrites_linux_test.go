// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// What a person sees who is asked about a write for which a command waits.
const (
	writeQuestion = `may this command, which is waiting, do what its sandbox denies\?(?s:.*)` +
		`is waiting for the answer and has not been repeated\r\n` +
		`would open: writing to [^\r]*/out/file\r\nIt waits 1m0s for an answer(?s:.*)`
	choicesDirectory = `\[y\] once  \[s\] for this session  \[d\] all below [^ ]*/out  ` +
		`\[n\] deny  \[a\] abort  > $`
)

// TestAskWrites: a person in front of the terminal is asked while the command waits, which goes on with the
// answer and runs once.
func TestAskWrites(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name, keys string
		flags      []string
		code       int
		granted    bool
	}{
		{"its own terminal, y", "y\r", []string{"-t"}, 0, true},
		{"its own terminal, n", "n\r", []string{"-t"}, 7, false},
		{"its own terminal, a", "a\r", []string{"-t"}, 7, false},
		{"its own terminal, end of file", "\x04", []string{"-t"}, 7, false},
		{"its own terminal, ^C", "\x03", []string{"-t"}, 130, false},
		{"ours, y", "y\r", []string{"-t=false"}, 0, true},
		{"ours, n", "n\r", []string{"-t=false"}, 7, false},
		{"--json, s", "s\r", []string{"--json"}, 0, true},
		{"--json, n", "n\r", []string{"--json"}, 7, false},
		{"never", "", []string{"-t", "-a", "never"}, 7, false},
		{"turned off", "", []string{"-t", "-a", "never", "--no-ask-writes"}, 7, false},
		{"denied for good", "", []string{"-t", "--deny", "../out"}, 7, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			words := append([]string{"--ask-writes"}, test.flags...)
			x, out := d.asksOnce(t, append(words, "-c", deniedScript), writeQuestion+choicesPlain, test.keys,
				test.code)
			text, _ := os.ReadFile(filepath.Join(d.out, "file"))
			if granted := string(text) == "x\n"; granted != test.granted || d.ran() != 1 {
				t.Errorf("it ran %d times and wrote %q", d.ran(), text)
			}
			has := strings.Contains(out,
				`"granted":[{"op":"write","path":"`+d.out+`/file","by":"user"`)
			if has != (out != "" && test.granted) ||
				out != "" && !strings.Contains(out, `"attempts":1`) {
				t.Errorf("%s", out)
			}
			if t.Failed() {
				t.Logf("seen:\n%s", x.Transcript())
			}
		})
	}
}

// TestAskWritesDirectory: with the third file of a directory the directory is offered.
func TestAskWritesDirectory(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	x := d.run(t, "-t", "--ask-writes", "-c", "for i in 1 2 3 4 5; do echo $i >../out/$i || exit; done")
	for range 2 {
		x.Expect(choicesPlain)
		x.Send("y\r")
	}
	x.Expect(choicesDirectory)
	x.Send("d\r")
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if names, _ := os.ReadDir(d.out); len(names) != 5 {
		t.Errorf("%v\n%s", names, x.Transcript())
	}
}

// answering makes an approver program that says something and notes each question.
func answering(t *testing.T, script string) (program string, asked func() []string) {
	t.Helper()
	dir := t.TempDir()
	program, log := filepath.Join(dir, "approver"), filepath.Join(dir, "asked")
	text := fmt.Sprintf("#!/bin/sh\ncat >>%s\n%s\n", log, script)
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, func() []string {
		said, _ := os.ReadFile(log)
		return strings.Fields(strings.Join(strings.Split(strings.TrimSpace(string(said)), " "), "_"))
	}
}

// askedResult runs a script that asks an approver program, and returns its result.
func (d desk) askedResult(t *testing.T, program string, words ...string) *sallyport.Result {
	t.Helper()
	cmd := d.command(t, append([]string{"sallyport", "run", "-q", "--json", "--ask-writes", "--approver",
		program}, words...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !asExit(err, &exit) {
		t.Fatal(err)
	}
	var res sallyport.Result
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &res
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError) //nolint:errorlint // exec returns it as it is
	*to = e
	return ok
}

// TestAskWritesProgram: what an approver program says about writes for which a command waits.
func TestAskWritesProgram(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	const yes, no = `echo '{"decision":"approved"}'`, `echo '{"decision":"denied","message":"not there"}'`
	for _, test := range []struct {
		name, answer, script string
		flags                []string
		asked, granted       int
		made                 string // in the directory outside
	}{
		{"yes", yes, "echo x >../out/f", nil, 1, 1, "f"},
		{"no, and again", no, "echo x >../out/f; echo x >../out/f", nil, 1, 0, ""},
		{"nothing", `echo '{"decision":"none"}'`, "echo x >../out/f",
			[]string{"--approval-wait", "0.1"}, 1, 0, ""},
		{"nothing, and no one else", `echo '{"decision":"none"}'`, "echo x >../out/f", nil, 1, 0, ""},
		{"abort", `echo '{"decision":"abort"}'`, "echo x >../out/f || echo x >../out/g || exit 7", nil, 1, 0, ""},
		{"a broken answer", "echo yes", "echo x >../out/f", nil, 1, 0, ""},
		{"for the session", `echo '{"decision":"approved_for_session"}'`,
			"for i in 1 2 3; do echo x >>../out/f; done", nil, 1, 2, "f"},
		{"more than 20", yes,
			"for i in 1 2 3 4 5; do for j in 1 2 3 4 5; do mkdir ../out/$i$j; done; done; " +
				"true", nil, 20, 20, ""},
		{"rename and remove", yes, "mkdir ../out/d; echo x >f; mv f ../out/d/g; rm ../out/d/g; " +
			"rmdir ../out/d; ln -s a ../out/l", nil, 5, 5, "l"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			program, asked := answering(t, test.answer)
			res := d.askedResult(t, program, append(test.flags, "-c", "echo ran >>count; "+test.script)...)
			if len(asked()) != test.asked || len(res.Granted) != test.granted || len(res.Attempts) != 1 ||
				d.ran() != 1 || res.TimedOut {
				t.Errorf("%d questions, %+v, %d runs, %s\n%s", len(asked()), res.Granted, d.ran(), res,
					res.Output)
			}
			if _, err := os.Lstat(filepath.Join(d.out, test.made)); err != nil {
				t.Errorf("%v: %s", err, res.Output)
			}
			if abort := test.name == "abort"; abort != (res.ExitCode == 7) ||
				abort != strings.Contains(strings.Join(res.Notices, "\n"), "abort") {
				t.Errorf("exit code %d, %q", res.ExitCode, res.Notices)
			}
			said := strings.Count(strings.Join(res.Notices, "\n"), "limit of 20 questions")
			if (said == 1) != (test.asked == 20) {
				t.Errorf("%q", res.Notices)
			}
		})
	}
}

// TestAskWritesGit: git is asked about in a linked work tree, whose index is in the repository of another
// one, and the hooks and settings there stay closed.
func TestAskWritesGit(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "git")
	d := newDesk(t)
	git := func(args ...string) string {
		return d.outside(t, append([]string{"git", "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	}
	tree := filepath.Join(d.out, "tree")
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	git("worktree", "add", "-q", tree)
	before := git("config", "--list")
	program, asked := answering(t, `echo '{"decision":"approved"}'`)
	res := d.askedResult(t, program, "-C", tree, "-c", "echo x >g && git add g || exit 7; "+
		"echo x >"+d.work+"/.git/hooks/post-commit; git config a.b c; exit 0")
	staged := git("-C", tree, "diff", "--cached", "--name-only")
	if len(asked()) == 0 || res.ExitCode != 0 || staged != "g\n" {
		t.Errorf("%d questions, %+v, %s\n%s", len(asked()), res.Granted, res, res.Output)
	}
	_, err := os.Stat(d.work + "/.git/hooks/post-commit")
	if after := git("config", "--list"); err == nil || after != before {
		t.Errorf("changed: %v, %s", err, after)
	}
	for _, g := range res.Granted {
		if strings.Contains(g.Path, "hooks") || strings.Contains(g.Path, "config") {
			t.Errorf("opened %s", g.Path)
		}
	}
}

// outside runs a command without a sandbox, and returns what it prints.
func (d desk) outside(t *testing.T, words ...string) string {
	t.Helper()
	out, err := d.command(t, words...).Output()
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return string(out)
}

// TestAskWritesKilled: a command that is killed while a question is open is over, and an answer that comes
// after that opens nothing.
func TestAskWritesKilled(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	d := newDesk(t)
	a := d.asksFor(t, "touch ../out/f & read x <fifo; kill -9 $!; wait; exit 3")
	if code, out := d.says(t, "approvals"); code != 0 || !strings.Contains(out, "is waiting") {
		t.Errorf("%d, %s", code, out)
	}
	f, err := os.OpenFile(filepath.Join(d.work, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "go on")
	f.Close()
	result := a.until("result")
	if code, _ := d.says(t, "approve", a.id); code != 1 || result.ExitCode != 3 {
		t.Errorf("the answer counts: %d, %+v", code, result)
	}
	if names, _ := os.ReadDir(d.out); len(names) != 0 {
		t.Errorf("%v", names)
	}
}

// TestAskWritesInterrupted: a command that handles SIGINT gets it while a question is open, and an answer that
// comes after that opens nothing.
func TestAskWritesInterrupted(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	d := newDesk(t)
	a := d.asksFor(t, "trap 'exit 7' INT; echo x >../out/f; exit 3")
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	// A shell may look at its traps after the next command only.
	if result := a.until("result"); result.ExitCode != 7 && result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
	if code, _ := d.says(t, "approve", a.id); code != 1 {
		t.Errorf("the answer counts: %d", code)
	}
	if names, _ := os.ReadDir(d.out); len(names) != 0 {
		t.Errorf("%v", names)
	}
}

// asksFor starts a script that waits for an answer about a write. It has a fifo.
func (d desk) asksFor(t *testing.T, script string) *asking {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(d.work, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d.asks(t, "-a", "on-request", "--ask-writes", "-c", script)
}

// TestAskWritesElsewhere: another process answers, also with the directory; the run says of itself that it
// waits for an answer, and why tells what was granted.
func TestAskWritesElsewhere(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	d := newDesk(t)
	a := d.asksFor(t, "for i in 1 2 3 4 5; do echo x >../out/$i || exit; done")
	d.must(t, "approve", a.id)
	d.must(t, "approve", a.until("approval_requested").ID)
	third := a.until("approval_requested").ID
	if code, out := d.says(t, "approve", third, "--path", "/"); code != 1 {
		t.Errorf("not offered: %d, %s", code, out)
	}
	d.must(t, "approve", third, "--path", d.out)
	if result := a.until("result"); result.ExitCode != 0 || result.Attempts != 1 {
		t.Errorf("%+v", result)
	}
	if names, _ := os.ReadDir(d.out); len(names) != 5 {
		t.Errorf("%v", names)
	}
	_ = a.cmd.Wait() // its record is written then
	if out := d.must(t, "why"); !strings.Contains(out,
		"Granted while it ran: write "+d.out+"/1 (openat, by user).") {
		t.Errorf("%s", out)
	}
}

// TestAskWritesRemote: the person in front of a client is asked about a write on the server's machine.
func TestAskWritesRemote(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	d := newParlor(t)
	url := d.server(t)
	outside := filepath.Join(filepath.Dir(d.work), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		answer, own string
		code        int
	}{{"n\r", "-t=false", 1}, {"y\r", "-t=false", 0}, {"n\r", "-t", 1}, {"y\r", "-t", 0}} {
		_ = os.Remove(outside + "/made")
		x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "--remote", url, "-C", d.work,
			test.own,
			"-a", "on-request", "--ask-writes", "--", "cp", "/dev/null", outside+"/made"), 200, 24)
		x.Expect("has not been repeated")
		x.Expect("deny .*> $")
		x.Send(test.answer)
		if code := x.Wait(); code != test.code {
			t.Errorf("%s %q: exit code %d, want %d\n%s", test.own, test.answer, code, test.code, x.Transcript())
		}
		if _, err := os.Stat(outside + "/made"); (err == nil) != (test.code == 0) {
			t.Error(err)
		}
	}
}
