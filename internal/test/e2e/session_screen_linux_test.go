// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// seen returns what is to be seen.
func seen(t *testing.T, s *sallyport.Session) sallyport.Screen {
	t.Helper()
	v, ok := s.Screen()
	if !ok {
		t.Fatal("there is no screen")
	}
	return v
}

// shows waits until a person sees what matches. What ends each wait is output.
func shows(t *testing.T, s *sallyport.Session, pattern string) sallyport.Screen {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(enough) // some programs print for ever
	for {
		if v := seen(t, s); re.MatchString(v.String()) {
			return v
		}
		reply, err := s.Await(t.Context(), sallyport.Until{For: enough, FirstOutput: true})
		if err != nil || reply.Reason != sallyport.ReasonOutput {
			t.Fatalf("%q was never seen: %+v, %v\n%s", pattern, reply, err, seen(t, s))
		}
		select {
		case <-late:
			t.Fatalf("%q was not seen, but\n%s", pattern, seen(t, s))
		default:
		}
	}
}

// typed writes to a session that must take it.
func typed(t *testing.T, s *sallyport.Session, keys string) {
	t.Helper()
	if _, err := s.Write([]byte(keys)); err != nil {
		t.Fatal(err)
	}
}

// TestSessionScreen reads programs as a person does.
func TestSessionScreen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	dir := t.TempDir()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "this is line %d\n", i+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T, args ...string) *sallyport.Session {
		args[0] = testenv.NeedProgram(t, args[0])
		c := sallyport.Command(args...)
		c.Dir, c.TTY, c.Screen = dir, &sallyport.Size{Cols: 60, Rows: 10}, true
		c.EnvPolicy = sallyport.EnvPolicy{Set: map[string]string{"TERM": "xterm", "HOME": dir,
			"LC_ALL": "C.UTF-8"}}
		s := begin(t, r, c)
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Run("less", func(t *testing.T) {
		s := start(t, "less", "text")
		if v := shows(t, s, `(?s)^this is line 1\n.*this is line 9\n`); v.Cols != 60 || v.Rows != 10 ||
			!v.Alternate {
			t.Errorf("%+v", v)
		}
		typed(t, s, "G")
		shows(t, s, `(?s)^this is line 92\n.*this is line 100\n`)
		typed(t, s, "/line 5$\n")
		shows(t, s, "Pattern not found")
		if err := s.Resize(sallyport.Size{Cols: 40, Rows: 5}); err != nil {
			t.Fatal(err)
		}
		typed(t, s, "\r1G")
		if v := shows(t, s, `(?s)^this is line 1\n.*this is line 4\n`); v.Rows != 5 || len(v.Lines) != 5 ||
			v.Cols != 40 || v.Lines[3] != "this is line 4" {
			t.Errorf("%+v", v)
		}
		typed(t, s, "q")
		over(t, s)
		if v := seen(t, s); v.Alternate {
			t.Errorf("after the end: %+v", v)
		}
	})
	t.Run("vim", func(t *testing.T) {
		s := start(t, "vim", "-u", "NONE", "-i", "NONE", "-n", "new")
		shows(t, s, "~")
		typed(t, s, "iwritten here")
		shows(t, s, "written here")
		typed(t, s, "\x1b:wq\r")
		over(t, s)
		if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(got) != "written here\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("top", func(t *testing.T) {
		s := start(t, "top")
		shows(t, s, `(?s)^top - .*\n +PID USER `)
		typed(t, s, "q")
		over(t, s)
	})
	t.Run("a title and a progress bar", func(t *testing.T) {
		s := start(t, "sh", "-c", `printf '\033]2;the title\007 10%%\r 20%%\r100%% \033[?25l'; read x`)
		// a terminal may pass on a part of it
		send(t, s, "", sallyport.Until{For: enough, Input: true}, sallyport.ReasonInput)
		v := seen(t, s)
		if v.Title != "the title" || v.Lines[0] != "100%" || v.Col != 5 || v.Row != 0 || !v.Hidden {
			t.Errorf("%+v", v)
		}
	})
}

// TestSessionQuestions: a terminal that can be seen answers what programs ask it.
func TestSessionQuestions(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	t.Run("where the cursor is", func(t *testing.T) {
		c := sallyport.Command("sh", "-c",
			`stty -echo -icanon; printf 'ab\n\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c`)
		c.Screen = true
		s := begin(t, r, c)
		if out := strings.Join(strings.Fields(over(t, s).Output.String()), " "); !strings.HasSuffix(out,
			"033 [ 2 ; 1 R") {
			t.Errorf("%q", out)
		}
	})
	t.Run("nobody answers without a screen", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c",
			`stty -echo -icanon; printf '\033[6n'; dd bs=1 count=1 2>/dev/null | od -An -c`))
		send(t, s, "", sallyport.Until{Input: true}, sallyport.ReasonInput)
		if out := send(t, s, "x", sallyport.Until{}, sallyport.ReasonExited); !strings.Contains(out, "x") {
			t.Errorf("%q", out)
		}
		if v, ok := s.Screen(); ok {
			t.Errorf("%+v", v)
		}
	})
	t.Run("asked and never read", func(t *testing.T) {
		c := sallyport.Command("sh", "-c",
			`stty -echo -icanon; yes "$(printf '\033[6n')" | head -n 100000; echo "asked"; trap '' INT; while :; do sleep 100; done`)
		c.Screen, c.Grace = true, -1
		s := begin(t, r, c)
		send(t, s, "", sallyport.Until{For: enough, Match: regexp.MustCompile("asked\r\n$")},
			sallyport.ReasonMatch)
		if v := shows(t, s, "asked"); v.Lines[v.Row-1] != "asked" {
			t.Errorf("%s", v)
		}
		if alive, err := s.Terminate(t.Context()); !alive || err != nil {
			t.Errorf("%v, %v", alive, err)
		}
	})
	t.Run("no terminal", func(t *testing.T) {
		var bad *sallyport.CmdError
		if _, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"},
			Screen: true}); !errors.As(err, &bad) || bad.Field != "Screen" {
			t.Errorf("%v", err)
		}
		s := piped(t, r, "cat")
		if v, ok := s.Screen(); ok {
			t.Errorf("%+v", v)
		}
		if err := s.Resize(sallyport.Size{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v", err)
		}
	})
}
