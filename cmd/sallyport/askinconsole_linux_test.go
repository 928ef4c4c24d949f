// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// browser makes this process a console of a seat, and returns what ends that.
func (s seat) browser(t *testing.T) (end func()) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", s.home)
	end, err := listen.OpenConsole()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return end
}

// inConsole starts a run without a terminal that asks in a console, and returns its standard error, which
// must not be read before its end.
func (s seat) inConsole(t *testing.T, words ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	all := append([]string{"sallyport", "run", "-a", "untrusted"}, words...)
	cmd := s.command(t, append(all, "--", "touch", "made")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, said
}

// TestAskInConsole: a run without a terminal waits for an open console, which sees how much time is left and
// answers; without one, or when it is closed, the question is denied.
func TestAskInConsole(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	s := newSeat(t)
	settings := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(settings, []byte("ask_in_console = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"--ask-in-console"}, {"--config", settings}} {
		code, out := s.says(t, append(append([]string{"run", "-a", "untrusted"}, words...), "--", "touch",
			"made")...)
		if code != 123 || !strings.Contains(out, "no console is open that could answer") {
			t.Errorf("%q without a console: exit code %d, %s", words, code, out)
		}
	}
	end := s.browser(t)
	w, err := listen.WatchQuestions()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd, said := s.inConsole(t, "--ask-in-console")
	l, version := w.Listing(t.Context(), "")
	for len(l.Pending) == 0 || l.Pending[0].Expires == 0 {
		l, version = w.Listing(t.Context(), version)
	}
	q := &l.Pending[0]
	if left := time.Until(time.UnixMilli(q.Expires)); left > 10*time.Minute {
		t.Errorf("%v are left", left)
	}
	answer := &wire.QuestionAnswer{ID: q.Request.ID, Digest: q.Digest, Decision: "approved",
		Source: "console"}
	if err := w.Answer(answer); err != nil {
		t.Error(err)
	}
	const asks = "sallyport: asks in the console, 600 s left; sallyport approve "
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), asks) {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Lstat(s.work + "/made"); err != nil {
		t.Error(err)
	}
	out := s.must(t, "audit", "show", "--approved-by", "console")
	if !strings.Contains(out, "approved by console") {
		t.Errorf("the audit log lacks the answer: %s", out)
	}

	cmd, said = s.inConsole(t, "--ask-in-console")
	for len(l.Pending) == 0 || l.Pending[0].Expires == 0 || l.Pending[0].Request.ID == answer.ID {
		l, version = w.Listing(t.Context(), version)
	}
	end()
	_ = cmd.Wait() // the exit code says it
	if code := testenv.Code(cmd.ProcessState); code != 123 ||
		!strings.Contains(said.String(), "the console was closed") {
		t.Errorf("closed: exit code %d, %s", code, said)
	}
}

// TestConsoleInside: a command in a sandbox neither sees where consoles are nor makes one there.
func TestConsoleInside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	s.browser(t)
	dir := filepath.Join(s.home, "sallyport/consoles")
	for _, flags := range [][]string{{}, {"--allow", "unix"},
		{"--allow", "unix", "--rw", filepath.Dir(s.home), "--net", "host"}} {
		for _, script := range []string{`test -n "$(ls "$0")"`, `: >"$0/1-0123456789abcdef.sock"`} {
			words := append(append([]string{"run", "-q"}, flags...), "--", "sh", "-c", script, dir)
			if code, out := s.says(t, words...); code == 0 {
				t.Errorf("%q: %s", words, out)
			}
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}
