// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// programVar makes this test binary a program that asks.
const programVar = "SALLYPORT_TEST_APPROVER"

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(programVar); ok {
		fmt.Println(askOnce())
		os.Exit(0)
	}
	testenv.DefaultSignals()
	os.Exit(m.Run())
}

// whole is a question with all that one can have.
func whole() *approval.Request {
	return &approval.Request{
		ID: "1", Kind: approval.KindAccess, Args: []string{"cp", "a b", "x\n[y] once  > ",
			"\x1b[2J\u202e"}, Dir: "/work",
		Program: "/usr/bin/cp", Environment: "box", Reason: "it\x1b[1m failed",
		Justification: "please\n[y] once  > ",
		Requires:      []string{"write:/srv", "host:h:443"}, Runs: 1,
		Denials: []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/srv/f"},
			Errno: "EROFS", Source: sandbox.Notified}},
		Offers: []approval.Offer{{Answer: approval.ApprovedRule, Rule: []string{"cp", "a b"}},
			{Answer: approval.ApprovedHost, Host: "h", Protocol: "https"}},
		Available: []approval.Answer{approval.Approved, approval.ApprovedForSession, approval.Denied,
			approval.Abort},
	}
}

// askOnce is that program. SIGUSR1 withdraws the question.
func askOnce() string {
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGUSR1)
	defer stop()
	around := 0
	a := &Approver{Around: func(ask func()) { around++; ask() }}
	d, err := a.Approve(ctx, whole())
	if errors.Is(err, approval.ErrPass) {
		return "passed"
	}
	return fmt.Sprintf("%s %q %q %s %d %v", d.Answer, d.Rule, d.Host, d.Source, around, err)
}

// meet starts the program on a terminal.
func meet(t *testing.T) (*testenv.Terminal, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(testenv.Environ(), programVar+"=1", "GORACE=atexit_sleep_ms=0")
	out := new(bytes.Buffer)
	cmd.Stdout = out
	return testenv.StartTerminal(t, cmd, 100, 40), out
}

const choicesLine = `\[y\] once  \[s\] for this session  \[r\] remember the rule  \[h\] remember the host  \[n\] deny  \[a\] abort  > $`

// TestAnswers: each letter and word is its answer, with what is remembered.
func TestAnswers(t *testing.T) {
	const none = ` [] "" user 1 <nil>`
	for keys, want := range map[string]string{
		"y": "approved" + none, "Yes": "approved" + none, "once": "approved" + none,
		"s": "approved_for_session" + none, "SESSION": "approved_for_session" + none,
		"r": `approved_execpolicy_amendment ["cp" "a b"] "" user 1 <nil>`, "rule": `approved_execpolicy_amendment ["cp" "a b"] "" user 1 <nil>`,
		"h": `network_policy_amendment [] "h" user 1 <nil>`, "host": `network_policy_amendment [] "h" user 1 <nil>`,
		"n": "denied" + none, "no": "denied" + none, "deny": "denied" + none, "a": "abort" + none, "Abort": "abort" + none,
		"\x04": "denied" + none,
	} {
		t.Run(keys, func(t *testing.T) {
			x, out := meet(t)
			x.Expect(choicesLine)
			x.Send(keys + "\r")
			x.Wait()
			if got := strings.TrimSpace(out.String()); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// TestShows: all that the question is about, each word of others escaped or marked.
func TestShows(t *testing.T) {
	x, _ := meet(t)
	x.Expect(choicesLine)
	_, seen, reset := strings.Cut(strings.ReplaceAll(x.Transcript(), "\r\n", "\n"), "\x1b[J")
	if !reset { // the command has run
		t.Errorf("the terminal is not reset: %q", x.Transcript())
	}
	const want = `
sallyport: may this command be given more?
| cp 'a b' 'x\n[y] once  > ' '\x1b[2J\u202e'
in /work
program: /usr/bin/cp
on: box
reason: it\x1b[1m failed
the caller says:
| please
| [y] once  > 
was denied: write /srv/f (EROFS, notified)
would open: writing to /srv
would open: the host h:443
It ran already (1), and what it did then is done again.
rule that can be remembered: commands that begin with
| cp 'a b'
host that can be remembered: h, for https, on every port
`
	if !strings.HasPrefix(seen, want) {
		t.Errorf("seen:\n%s\nwant:\n%s", seen, want)
	}
	x.Send("n\r")
	x.Wait()
}

// TestWithdrawn: a question that is withdrawn, or whose terminal is gone, approves nothing; the
// terminal is as it was.
func TestWithdrawn(t *testing.T) {
	x, out := meet(t)
	x.Expect(choicesLine)
	x.Signal(syscall.SIGUSR1)
	x.Wait()
	if !strings.Contains(out.String(), "denied") || !strings.Contains(out.String(), "context canceled") ||
		x.Modes() != x.ModesBefore() {
		t.Errorf("%s", out)
	}
	x, out = meet(t)
	x.Expect(choicesLine)
	x.HangUp()
	x.Wait()
	if !strings.HasPrefix(out.String(), "denied ") {
		t.Errorf("%s", out)
	}
}

// TestNoTerminal: it passes, and asks nothing that was withdrawn before.
func TestNoTerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(testenv.Environ(), programVar+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := cmd.Output(); err != nil || string(out) != "passed\n" {
		t.Errorf("%q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := new(Approver).Approve(ctx, whole()); !errors.Is(err, context.Canceled) ||
		d.Answer.Approves() {
		t.Errorf("%v, %v", d, err)
	}
}
