// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// sessionRunner returns a Runner whose sessions run in the sandbox.
func sessionRunner(t *testing.T) *sallyport.Runner {
	t.Helper()
	return newRunner(t, sandbox.WorkspaceWrite())
}

// begin starts a session; on a terminal unless the Cmd says otherwise.
func begin(t *testing.T, r *sallyport.Runner, c *sallyport.Cmd) *sallyport.Session {
	t.Helper()
	if c.TTY == nil && !c.OpenStdin {
		c.TTY = new(sallyport.Size)
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	s, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// send writes and waits, and fails the test when the reason is another one.
func send(t *testing.T, s *sallyport.Session, text string, u sallyport.Until, want sallyport.Reason) string {
	t.Helper()
	if u.For == 0 {
		u.For = enough
	}
	reply, err := s.Send(t.Context(), []byte(text), u)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Reason != want {
		t.Fatalf("%q ended with %s, want %s: %q", text, reply.Reason, want, reply.Output)
	}
	return reply.Output.String()
}

func TestSession(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	bash := testenv.NeedProgram(t, "bash")
	shell := func(t *testing.T) *sallyport.Session {
		t.Helper()
		s := begin(t, r, sallyport.Command(bash, "--norc", "--noprofile", "-i"))
		send(t, s, "", sallyport.Until{Input: true}, sallyport.ReasonInput)
		return s
	}
	t.Run("row3 state stays", func(t *testing.T) {
		s := shell(t)
		send(t, s, "export VALUE=from\"\"-before\n", sallyport.Until{Input: true}, sallyport.ReasonInput)
		if out := send(t, s, "echo $VALUE\n", sallyport.Until{Input: true}, sallyport.ReasonInput); !strings.Contains(out, "from-before\r\n") {
			t.Errorf("%q", out)
		}
	})
	t.Run("row4 sessions are apart", func(t *testing.T) {
		a, b := shell(t), shell(t)
		send(t, a, "V=only-\"\"here\n", sallyport.Until{Input: true}, sallyport.ReasonInput)
		if out := send(t, b, "echo \"<$V>\"\n", sallyport.Until{Input: true}, sallyport.ReasonInput); !strings.Contains(out, "<>\r\n") {
			t.Errorf("%q", out)
		}
		if out := send(t, a, "echo \"<$V>\"\n", sallyport.Until{Input: true}, sallyport.ReasonInput); !strings.Contains(out, "<only-here>\r\n") {
			t.Errorf("%q", out)
		}
	})
	t.Run("row5 what comes later", func(t *testing.T) {
		s := shell(t)
		if out := send(t, s, "until test -e go; do sleep 0.01; done; echo la\"\"ter\n", sallyport.Until{For: 50 * time.Millisecond, Input: true}, sallyport.ReasonDeadline); strings.Contains(out, "later") {
			t.Errorf("%q", out)
		}
		if err := os.WriteFile(filepath.Join(s.Info().Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if out := send(t, s, "", sallyport.Until{Input: true}, sallyport.ReasonInput); !strings.Contains(out, "later\r\n") {
			t.Errorf("%q", out)
		}
	})
	t.Run("row6 exit", func(t *testing.T) {
		s := shell(t)
		reply, err := s.Send(t.Context(), []byte("exit 3\n"), sallyport.Until{Input: true, For: enough})
		if err != nil || reply.Reason != sallyport.ReasonExited || reply.Result == nil || reply.Result.ExitCode != 3 {
			t.Fatalf("%+v, %v", reply, err)
		}
		if _, err := s.Write([]byte("more\n")); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("a write after the end: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := r.Session(s.ID()); ok {
			t.Error("it is still known")
		}
	})
	t.Run("row18 list", func(t *testing.T) {
		s := shell(t)
		var found bool
		for _, i := range r.Sessions() {
			found = found || i.ID == s.ID() && i.Running && i.TTY && i.Args[0] == bash && i.ExitCode == -1
		}
		if !found {
			t.Errorf("%+v lacks %s", r.Sessions(), s.ID())
		}
		for _, want := range []bool{true, false} {
			if alive, err := s.Terminate(t.Context()); err != nil || alive != want {
				t.Errorf("%v, %v", alive, err)
			}
		}
		if res, err := s.Wait(t.Context()); err != nil || res.End != sallyport.EndCanceled {
			t.Errorf("it was terminated: %v, %v", res, err)
		}
	})
	if _, err := r.TerminateAll(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSessionPrompts: programs that ask are answered when they ask.
func TestSessionPrompts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := sessionRunner(t)
	t.Run("row49 a prompt answers at once", func(t *testing.T) {
		s := begin(t, r, sallyport.Command(testenv.NeedProgram(t, "python3"), "-q"))
		send(t, s, "", sallyport.Until{Input: true}, sallyport.ReasonInput)
		// At once, unless the machine is busy with something else each time.
		least := enough
		for try := 0; try < 20 && least > time.Second; try++ {
			begin := time.Now()
			if out := send(t, s, "print(6 * 7)\n", sallyport.Until{Input: true}, sallyport.ReasonInput); !strings.Contains(out, "42\r\n") {
				t.Errorf("%q", out)
			}
			least = min(least, time.Since(begin))
		}
		if least > time.Second {
			t.Errorf("the fastest answer took %v", least)
		}
	})
	t.Run("password", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c", `printf 'Password: '; stty -echo; read p; stty echo; echo "got $p"`))
		reply, err := s.Await(t.Context(), sallyport.Until{Input: true, For: enough})
		if err != nil || reply.Reason != sallyport.ReasonPassword || reply.Output.String() != "Password: " {
			t.Fatalf("%+v, %v", reply, err)
		}
		if out := send(t, s, "secret\n", sallyport.Until{Input: true}, sallyport.ReasonExited); out != "got secret\r\n" {
			t.Errorf("%q", out)
		}
	})
}

func TestSessionConditions(t *testing.T) {
	r := sessionRunner(t)
	for _, c := range []struct {
		name, script string
		until        sallyport.Until
		want         sallyport.Reason
		out          string
	}{
		{"exit", `echo a; exit 1`, sallyport.Until{}, sallyport.ReasonExited, "a\n"},
		{"first output", `sleep 0.05; echo a; sleep 60`, sallyport.Until{FirstOutput: true}, sallyport.ReasonOutput, "a\n"},
		{"bytes", `echo 123; sleep 0.05; echo 456; sleep 60`, sallyport.Until{Bytes: 8}, sallyport.ReasonBytes, "123\n456\n"},
		{"match", `echo not; sleep 0.05; echo rea; echo dy; sleep 60`, sallyport.Until{Match: regexp.MustCompile(`rea\ndy`)}, sallyport.ReasonMatch, "not\nrea\ndy\n"},
		{"quiet", `echo a; sleep 0.05; echo b; sleep 60`, sallyport.Until{Quiet: 2 * time.Second}, sallyport.ReasonQuiet, "a\nb\n"},
		{"quiet without output", `sleep 60`, sallyport.Until{Quiet: 100 * time.Millisecond}, sallyport.ReasonQuiet, ""},
		{"deadline", `echo a; sleep 60`, sallyport.Until{For: 3 * time.Second}, sallyport.ReasonDeadline, "a\n"},
		{"input on a pipe", `echo a; read x; sleep 60`, sallyport.Until{Input: true}, sallyport.ReasonInput, "a\n"},
		{"busy", `sleep 60`, sallyport.Until{Input: true, For: 200 * time.Millisecond}, sallyport.ReasonDeadline, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // some take seconds, so that a busy machine does not matter
			cmd := sh(c.script)
			cmd.OpenStdin = true
			s := begin(t, r, cmd)
			defer s.Close()
			if c.until.For == 0 {
				c.until.For = enough
			}
			reply, err := s.Await(t.Context(), c.until)
			if err != nil || reply.Reason != c.want || reply.Output.String() != c.out || reply.Offset != uint64(len(c.out)) {
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
	t.Run("what a terminal means", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("cat"))
		defer s.Close()
		send(t, s, "", sallyport.Until{}, sallyport.ReasonInput)
		send(t, s, "", sallyport.Until{For: 200 * time.Millisecond, ExitOnly: true}, sallyport.ReasonDeadline)
		var bad *sallyport.UntilError
		if _, err := s.Await(t.Context(), sallyport.Until{ExitOnly: true, Bytes: 1}); !errors.As(err, &bad) || bad.Field != "ExitOnly" {
			t.Errorf("%v", err)
		}
	})
	t.Run("port", func(t *testing.T) {
		s := begin(t, r, sallyport.Command(testenv.NeedProgram(t, "python3"), "-c", "import http.server; http.server.HTTPServer(('127.0.0.1', 4567), None).serve_forever()"))
		defer s.Close()
		reply, err := s.Await(t.Context(), sallyport.Until{Port: true, For: enough})
		if err != nil || reply.Reason != sallyport.ReasonPort || reply.Port != 4567 {
			t.Errorf("%+v, %v", reply, err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("sh", "-c", "echo kept; sleep 60"))
		defer s.Close()
		send(t, s, "", sallyport.Until{For: 300 * time.Millisecond, Match: regexp.MustCompile("never")}, sallyport.ReasonDeadline)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Await(ctx, sallyport.Until{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("bad", func(t *testing.T) {
		s := begin(t, r, sallyport.Command("cat"))
		defer s.Close()
		var bad *sallyport.UntilError
		if _, err := s.Await(t.Context(), sallyport.Until{Quiet: -1}); !errors.As(err, &bad) || bad.Field != "Quiet" {
			t.Errorf("%v", err)
		}
	})
}

// TestSessionInput is what becomes of input that nobody takes.
func TestSessionInput(t *testing.T) {
	r := sessionRunner(t)
	for _, c := range []struct {
		name string
		cmd  *sallyport.Cmd
		want error
		some bool // a part of it is taken
	}{
		{"none", sh("sleep 60"), sallyport.ErrInputClosed, false},
		{"a full pipe", &sallyport.Cmd{Script: "sleep 60", Shell: "sh", OpenStdin: true}, sallyport.ErrInputFull, true},
		{"a full terminal", &sallyport.Cmd{Script: "stty -icanon; echo ready; sleep 60", Shell: "sh", TTY: new(sallyport.Size)}, sallyport.ErrInputFull, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // nobody takes it, for seconds
			c.cmd.Dir = t.TempDir()
			s, err := r.Start(t.Context(), c.cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if c.cmd.TTY != nil {
				send(t, s, "", sallyport.Until{Match: regexp.MustCompile("ready")}, sallyport.ReasonMatch)
			}
			n, err := s.Write(make([]byte, 4<<20))
			if !errors.Is(err, c.want) || (n > 0) != c.some {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		s := begin(t, r, &sallyport.Cmd{Args: []string{"cat"}, OpenStdin: true})
		if _, err := s.Write([]byte("all")); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseInput(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("late")); !errors.Is(err, sallyport.ErrInputClosed) && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v", err)
		}
		res, err := s.Wait(t.Context())
		if err != nil || res.ExitCode != 0 || res.Output.String() != "all" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("given twice", func(t *testing.T) {
		var bad *sallyport.CmdError
		if _, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("")}); !errors.As(err, &bad) || bad.Field != "Stdin" {
			t.Errorf("%v", err)
		}
	})
}

// TestSessionTable is about the cap.
func TestSessionTable(t *testing.T) {
	r := sessionRunner(t)
	r.MaxSessions = 4
	t.Run("row50 refusal", func(t *testing.T) {
		var ids []string
		for range 4 {
			ids = append(ids, begin(t, r, sallyport.Command("cat")).ID())
		}
		dir := t.TempDir()
		var many *sallyport.TooManySessionsError
		_, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"}, Dir: dir})
		if !errors.As(err, &many) || many.Max != 4 || len(many.Candidates) != 4 || many.Candidates[0].ID != ids[0] || !strings.Contains(err.Error(), ids[0]) {
			t.Fatalf("%v", err)
		}
		for _, id := range ids {
			if s, ok := r.Session(id); !ok || !s.Info().Running {
				t.Errorf("%s was ended", id)
			}
		}
		reply, err := must(r.Session(ids[0])).Await(t.Context(), sallyport.Until{For: time.Nanosecond})
		if err != nil || len(reply.Notices) != 1 {
			t.Errorf("%+v, %v", reply, err)
		}
		if n, err := r.TerminateAll(t.Context()); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("a start that fails gives its place back", func(t *testing.T) {
		for range 10 {
			if _, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"no-such-program"}, Dir: t.TempDir()}); err == nil || errors.As(err, new(*sallyport.TooManySessionsError)) {
				t.Fatalf("%v", err)
			}
		}
	})
	t.Run("row39 the end of the caller's context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := r.Start(ctx, &sallyport.Cmd{Args: []string{"cat"}, TTY: new(sallyport.Size), Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if out := send(t, s, "still here\n", sallyport.Until{Match: regexp.MustCompile(`here\r\nstill here`)}, sallyport.ReasonMatch); out == "" {
			t.Error("nothing came")
		}
	})
}

func must(s *sallyport.Session, _ bool) *sallyport.Session { return s }

// TestSessionsParallel: row38, two sessions go on side by side, one does one thing after
// the other.
func TestSessionsParallel(t *testing.T) {
	r := sessionRunner(t)
	var all sync.WaitGroup
	for range 8 {
		s := begin(t, r, sallyport.Command("cat"))
		for i := range 4 {
			all.Go(func() {
				word := "word" + strconv.Itoa(i)
				reply, err := s.Send(t.Context(), []byte(word+"\n"), sallyport.Until{For: enough, Match: regexp.MustCompile(word + `\r\n` + word + `\r\n`)})
				if err != nil || reply.Reason != sallyport.ReasonMatch {
					t.Errorf("%s: %+v, %v", word, reply, err)
				}
			})
		}
	}
	all.Wait()
}

// TestSessionPublish: this machine reaches the server of a session, over several calls, while the session
// lives and not after it; meanwhile no other command gets the port.
func TestSessionPublish(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	testenv.NeedUserNS(t)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite()} // descriptors are not counted: splice(2) leaves pipes in a pool
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	_ = l.Close()
	published := []network.Publish{{Port: 3000, HostPort: uint16(addr.Port)}}
	c := sallyport.Command(python, "-q", "-u", "-c", `import socket
s = socket.create_server(("127.0.0.1", 3000))
print("ready")
while True:
    a = s.accept()[0]
    a.sendall(b"inside")
    a.close()
    print("served")
`)
	c.Publish = published
	s := begin(t, r, c)
	send(t, s, "", sallyport.Until{Match: regexp.MustCompile("ready")}, sallyport.ReasonMatch)
	for range 2 {
		if text, err := answerAt(addr.Port); text != "inside" || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
		send(t, s, "", sallyport.Until{Match: regexp.MustCompile("served")}, sallyport.ReasonMatch)
	}
	other := sallyport.Command(python, "-c", "pass")
	other.Publish, other.Dir = published, t.TempDir()
	var refused *sandbox.UnsupportedError
	if _, err := r.Run(t.Context(), other); err == nil || errors.As(err, &refused) {
		t.Errorf("the port is in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := answerAt(addr.Port); err == nil {
		t.Errorf("after the end: %q", text)
	}
	if res, err := s.Wait(t.Context()); err != nil || len(res.Sandbox.Published) != 1 || res.Sandbox.Published[0] != published[0] {
		t.Errorf("%+v, %v", res, err)
	}
}

// answerAt returns what a port of this machine says first.
func answerAt(port int) (string, error) {
	c, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(enough))
	text, err := io.ReadAll(c)
	return string(text), err
}
