// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminal drives a shell as a person would.
func TestTerminal(t *testing.T) {
	RunAsOrdinary(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`echo "is $(tty)"; stty size; read a; echo "got $a"; stty size; stty -echo; echo blind; read b; echo "then $b"; exit 7`)
	x := StartTerminal(t, cmd, 91, 17)
	before := x.ModesBefore()
	if got := x.Expect(`is (/dev/pts/\d+)\r\n`); len(got) != 2 || !strings.HasPrefix(got[1], "/dev/pts/") {
		t.Errorf("%q", got)
	}
	x.Expect(`17 91\r\n`)
	x.Resize(40, 5)
	x.Send("one\r")
	x.Expect(`one\r\ngot one\r\n5 40\r\n`)
	x.Expect(`blind\r\n`)
	x.Send("two\r")
	x.Expect(`then two\r\n`)
	if code := x.Wait(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	after := x.Modes()
	if before.Lflag&unix.ECHO == 0 || after.Lflag&unix.ECHO != 0 {
		t.Errorf("the modes before are %+v, and after %+v", before, after)
	}
	if seen := x.Transcript(); strings.Count(seen, "two") != 1 {
		t.Errorf("echo, or no output, in %q", seen)
	}
}

// TestTerminalStreams: a stream that goes elsewhere is left there, and the signal
// of a terminal comes from what is typed.
func TestTerminalStreams(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `test -t 0 || echo piped; cat; exec sleep 600`)
	cmd.Stdin = strings.NewReader("words\n")
	x := StartTerminal(t, cmd, 80, 24)
	x.Expect(`piped\r\nwords\r\n`)
	x.Send("\x03")
	if code := x.Wait(); code != 128+int(syscall.SIGINT) {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// TestTerminalHangUp takes the terminal away.
func TestTerminalHangUp(t *testing.T) {
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`trap 'echo hup >&2; exit 9' HUP; echo ready; read a; echo "end $?" >&2`)
	cmd.Stderr = out
	x := StartTerminal(t, cmd, 80, 24)
	x.Expect("ready")
	x.HangUp()
	if code := x.Wait(); code != 9 {
		t.Errorf("exit code %d", code)
	}
	// The end of input may be read before the signal arrives.
	if text, err := os.ReadFile(out.Name()); err != nil || !strings.HasSuffix(string(text), "hup\n") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTerminalExpects: what does not come fails the test, with what was seen.
func TestTerminalExpects(t *testing.T) {
	x := StartTerminal(t, exec.CommandContext(t.Context(), "/bin/echo", "hello"), 80, 24)
	said := runFake(func(tb testing.TB) {
		x.t = tb
		x.Expect("goodbye")
	})
	if said.ended != "fail" || !strings.Contains(said.message, "hello") ||
		!strings.Contains(said.message, "goodbye") {
		t.Errorf("%s: %q", said.ended, said.message)
	}
	x.t = t
	x.Wait()
}
