// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/recording"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A recorded session is what became of one.
type recordedSession struct {
	file   string            // as text
	events []recording.Event // of it
	shown  string            // what the session has shown
	result *sallyport.Result
}

// of joins the data of events of one kind.
func (s *recordedSession) of(code rune) string {
	var b strings.Builder
	for _, e := range s.events {
		if e.Code == code {
			b.WriteString(e.Data)
		}
	}
	return b.String()
}

// recordSession records a session that do drives.
func recordSession(t *testing.T, r *sallyport.Runner, c *sallyport.Cmd, do func(s *sallyport.Session)) *recordedSession {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.cast")
	c.TTY, c.Record = new(sallyport.Size), recording.New(recording.Options{
		Open: func() (*os.File, error) { return os.Create(path) }})
	s := begin(t, r, c)
	defer s.Close()
	do(s)
	res, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := &recordedSession{result: res}
	for d, err := range s.Deltas(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all.shown += string(d.Data)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all.file = string(file)
	sum := sha256.Sum256(file)
	if made := res.Recording; made == nil || made.Path != path || made.SHA256 != hex.EncodeToString(sum[:]) ||
		made.Bytes != int64(len(file)) || made.Gaps != 0 || made.Error != "" {
		t.Errorf("it is %+v", made)
	}
	in, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all.events = append(all.events, e)
	}
	if all.of('o') != all.shown {
		t.Errorf("the session has shown %q, and the recording %q", all.shown, all.of('o'))
	}
	return all
}

// The secret that is typed is made of two parts, so that no test types it by chance. Nothing searches for a
// part of it, for programs may wrap lines.
const typedSecret = "Sw0rd" + "-fish-7"

// TestRecordingHides: what a program reads without showing it is not in the recording, and the rest is.
func TestRecordingHides(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	await := func(s *sallyport.Session, want sallyport.Reason) {
		t.Helper()
		send(t, s, "", sallyport.Until{Input: true}, want)
	}
	for _, test := range []struct {
		name    string
		program string
		args    []string
		do      func(s *sallyport.Session)
		typed   string // the input that is recorded
		hidden  int64
	}{
		{"stty of a shell", "sh", []string{"-c", `printf 'Password: '; stty -echo; read p; stty echo; echo; read x; echo "got ${#p} $x"; read x`}, func(s *sallyport.Session) {
			await(s, sallyport.ReasonPassword)
			send(t, s, typedSecret+"\n", sallyport.Until{Input: true}, sallyport.ReasonInput)
			// It goes on: what is typed last is not in the recording if the terminal is gone before it
			// is looked at.
			send(t, s, "plain\n", sallyport.Until{Input: true}, sallyport.ReasonInput)
			if _, err := s.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, "plain\n", 1},
		{"key by key", "sh", []string{"-c", `stty -echo; read p; echo "got ${#p}"`}, func(s *sallyport.Session) {
			await(s, sallyport.ReasonPassword)
			for _, key := range typedSecret + "\n" {
				typed(t, s, string(key))
			}
		}, "", 1},
		{"getpass of Python", "python3", []string{"-c", `import getpass; print(len(getpass.getpass()))`}, func(s *sallyport.Session) {
			await(s, sallyport.ReasonPassword)
			typed(t, s, typedSecret+"\n")
		}, "", 1},
		{"ssh-keygen", "ssh-keygen", []string{"-q", "-t", "ed25519", "-f", "key"}, func(s *sallyport.Session) {
			await(s, sallyport.ReasonPassword)
			send(t, s, typedSecret+"\n", sallyport.Until{Input: true}, sallyport.ReasonPassword)
			typed(t, s, typedSecret+"\n")
		}, "", 2},
		{"keys that a program reads itself", "python3", []string{"-c", "import tty, sys; tty.setraw(0); print('ready', end='', flush=True); print(len(sys.stdin.read(12)))"}, func(s *sallyport.Session) {
			await(s, sallyport.ReasonInput)
			typed(t, s, typedSecret)
		}, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sallyport.Command(append([]string{testenv.NeedProgram(t, test.program)}, test.args...)...)
			c.EnvPolicy = sallyport.EnvPolicy{Set: map[string]string{"TERM": "xterm", "LC_ALL": "C.UTF-8", "PS1": "$ "}}
			got := recordSession(t, r, c, test.do)
			if got.result.ExitCode != 0 && got.result.End != sallyport.EndCanceled {
				t.Errorf("it ended with %+v: %q", got.result, got.shown)
			}
			if strings.Contains(got.shown, typedSecret) {
				t.Fatalf("the program itself has shown it: %q", got.shown)
			}
			if strings.Contains(got.file, typedSecret) || strings.Contains(got.of('i'), typedSecret) {
				t.Errorf("the secret is in the recording: %s", got.file)
			}
			if in := got.of('i'); in != test.typed || got.result.Recording.Hidden != test.hidden {
				t.Errorf("the input is %q, and %d lines are hidden: %s", in, got.result.Recording.Hidden, got.file)
			}
			if marks := strings.Count(got.of('m'), "input that is not shown"); int64(marks) != test.hidden {
				t.Errorf("there are %d marks: %s", marks, got.file)
			}
			if got.of('x') != strconv.Itoa(got.result.ExitCode) {
				t.Errorf("the exit code is %q", got.of('x'))
			}
		})
	}
}

// TestRecordingTells: sizes, denials, other attempts, the exit code, and the event in its place.
func TestRecordingTells(t *testing.T) {
	testenv.NeedUserNS(t)
	var events []event.Event
	r := newRunner(t, sandbox.WorkspaceWrite())
	r.Events = event.SinkFunc(func(e event.Event) { events = append(events, e) })
	c := sallyport.Command("sh", "-c", "read x; stty size; (: > /etc/sallyport-denied); exit 7")
	got := recordSession(t, r, c, func(s *sallyport.Session) {
		send(t, s, "", sallyport.Until{Input: true}, sallyport.ReasonInput)
		if err := s.Resize(sallyport.Size{Cols: 99, Rows: 33}); err != nil {
			t.Fatal(err)
		}
		typed(t, s, "\n")
	})
	if !strings.Contains(got.shown, "33 99") || got.of('r') != "99x33" || got.of('x') != "7" ||
		!strings.Contains(got.of('m'), "denied: write /etc/sallyport-denied") {
		t.Errorf("the recording is %s", got.file)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Body.Kind() == "recorded" })
	if i < 0 || i != len(events)-2 || events[i].Body != event.Body(*got.result.Recording) {
		t.Errorf("the event is number %d of %d", i, len(events))
	}
}

// TestRecordingFails: a recording that cannot be made is told, and the command runs.
func TestRecordingFails(t *testing.T) {
	testenv.NeedUserNS(t)
	r := newRunner(t, sandbox.WorkspaceWrite())
	for _, test := range []struct{ name, path string }{
		{"no directory", "/nonexistent/a.cast"},
		{"a full disk", "/dev/full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sallyport.Command("sh", "-c", "echo hello; exit 7")
			c.Dir, c.TTY, c.Record = t.TempDir(), new(sallyport.Size), recording.New(recording.Options{
				Open: func() (*os.File, error) { return os.OpenFile(test.path, os.O_WRONLY, 0) }})
			res, err := r.Run(t.Context(), c)
			if err != nil || res.ExitCode != 7 || res.Stdout.String() != "hello\r\n" {
				t.Fatalf("%+v, %v", res, err)
			}
			if made := res.Recording; made == nil || made.Error == "" || !slices.ContainsFunc(res.Notices,
				func(n string) bool { return strings.Contains(n, "the recording ended") }) {
				t.Errorf("it is %+v: %q", made, res.Notices)
			}
		})
	}
	t.Run("no terminal", func(t *testing.T) {
		c := sallyport.Command("true")
		c.Dir, c.Record = t.TempDir(), recording.New(recording.Options{})
		if res, err := r.Run(t.Context(), c); err != nil || res.Recording != nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
