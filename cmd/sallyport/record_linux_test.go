// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// answer runs sallyport without a terminal, and returns all that it says and its exit code.
func (s seat) answer(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := s.command(t, append([]string{"sallyport"}, args...)...)
	out, _ := cmd.CombinedOutput()
	return string(out), testenv.Code(cmd.ProcessState)
}

// TestRunRecord records a program on a terminal, and shows what was recorded.
func TestRunRecord(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	script := []string{"--", "sh", "-c", "echo hello; read x; echo more; read x; stty -echo; echo next; read y; exit 3"}
	record := func(flag string) {
		t.Helper()
		x := s.run(t, append([]string{"-t", flag}, script...)...)
		play(x, []turn{{"hello", "word\r"}, {"more", "\r"}, {"next", "secret\r"}})
		if code := x.Wait(); code != 3 {
			t.Errorf("exit code %d: %s", code, x.Transcript())
		}
		unchanged(t, x)
	}
	record("--record=a.cast")
	name := filepath.Join(s.work, "a.cast")
	file, err := os.ReadFile(name)
	if info, serr := os.Stat(name); err != nil || serr != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v, %v", info, err, serr)
	}
	for _, want := range []string{`"o", "hello\r\n"`, `"i", "word\r"`, `"m", "input that is not shown"`,
		`"x", "3"`} {
		if !strings.Contains(string(file), want) {
			t.Errorf("%s is not in %s", want, file)
		}
	}
	if strings.Contains(string(file), "secret") {
		t.Errorf("the secret is in %s", file)
	}
	record("--record")
	list, code := s.answer(t, "recordings")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if code != 0 || len(lines) != 2 || !strings.HasSuffix(lines[1], "exit 3") {
		t.Fatalf("%d: %s", code, list)
	}
	kept, _, _ := strings.Cut(lines[1], " ")
	const shown = "hello\nword\nmore\n\nnext\n"
	for _, test := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"run", "-t", "--record=a.cast", "true"}, "cannot record to", 125},
		{[]string{"run", "--record", "true"}, "--record records a terminal", 125},
		{[]string{"play", "--text", "a.cast"}, shown, 0},
		{[]string{"play", "--text", kept}, shown, 0},
		{[]string{"play", "a.cast"}, strings.ReplaceAll(shown, "\n", "\r\n"), 0},
		{[]string{"play", "no.cast"}, "no recording", 125},
		{[]string{"play"}, "the file of a recording is missing", 125},
		{[]string{"play", "--speed", "0", "a.cast"}, "above 0", 125},
		{[]string{"recordings", "rm", "../a.cast"}, "no recording", 125},
		{[]string{"recordings", "rm", kept}, "", 0},
		{[]string{"recordings"}, "no recordings;", 0},
		{[]string{"recordings", "--json"}, "[]\n", 0},
	} {
		if out, code := s.answer(t, test.args...); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%q: %d: %s", test.args, code, out)
		}
	}
}

// TestRecordElsewhere: --record in the words of run/start has the server record, in its directory, and a
// client names no file of it.
func TestRecordElsewhere(t *testing.T) {
	t.Parallel()
	d := newParlor(t)
	remote := []string{"--remote", d.server(t), "-C", d.work}
	id := d.start(t, "-t", "--record", "--", "echo", "first")
	d.expects(t, 0, "", "wait", id)
	x := testenv.StartTerminal(t, d.command(t, slices.Concat([]string{"sallyport", "run"}, remote,
		[]string{"--record", "--", "echo", "second"})...), 80, 24)
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, x.Transcript())
	}
	list, _, _ := d.run(t, "recordings")
	if lines := strings.Split(strings.TrimSpace(list), "\n"); len(lines) != 3 ||
		!strings.HasSuffix(lines[1], "echo second") || !strings.HasSuffix(lines[2], "echo first") {
		t.Errorf("it has\n%s", list)
	}
	words := append(append([]string{"run"}, remote...), "-t", "--record=made.cast", "--", "true")
	if _, said, code := d.run(t, words...); code != 125 ||
		!strings.Contains(said, "--record=FILE is not supported in a run of a client") {
		t.Errorf("%d: %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(d.work, "made.cast")); err == nil {
		t.Error("a client has made a file")
	}
}

// TestPlay plays on a terminal, with its keys, and lets nothing through that asks the terminal.
func TestPlay(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	const cast = `{"version":3,"term":{"cols":80,"rows":24}}
[0, "o", "one\r\n"]
[3600, "o", "\u001b[6n\u001b]0;title\u0007\u001bP$qm\u001b\\two\r\n"]
[3600, "o", "three\r\n"]
[3600, "m", "here"]
[3600, "o", "four\r\n"]
[3600, "o", "five\r\n"]
`
	if err := os.WriteFile(filepath.Join(s.work, "a.cast"), []byte(cast), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) *testenv.Terminal {
		return testenv.StartTerminal(t, s.command(t, append([]string{"sallyport", "play"}, args...)...), 80, 24)
	}
	x := start("a.cast")
	play(x, []turn{{"one", " ."}, {"two", "."}, {"three", "."}, {"four", "q"}})
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	unchanged(t, x)
	seen := x.Transcript()
	x = start("a.cast")
	play(x, []turn{{"one", "]"}, {"two(?s:.*)three", "."}, {"four", "\x03"}})
	if code := x.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(seen, "\x1b[6n") || strings.Contains(seen, "\x1bP") ||
		!strings.Contains(seen, "title") || strings.Contains(seen, "five") {
		t.Errorf("it has shown %q", seen)
	}
	for _, flag := range []string{"--speed=1000000", "--idle-limit=0.001"} {
		x := start(flag, "a.cast")
		x.Expect("five")
		if code := x.Wait(); code != 0 {
			t.Errorf("%s: exit code %d", flag, code)
		}
	}
}
