// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// promptProgramVar makes this test binary a program that asks. With the race detector it ends at once.
const (
	promptProgramVar = "SALLYPORT_TEST_PROMPT"
	noRaceSleep      = "GORACE=atexit_sleep_ms=0"
)

// ask is that program: it waits for the end of standard input, quotes a text and asks. SIGUSR1
// ends it early.
func ask(text string) string {
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGUSR1)
	defer stop()
	fmt.Fprintln(os.Stderr, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	t, err := OpenPrompt(ctx)
	switch {
	case errors.Is(err, ErrNoTerminal):
		return "no terminal: " + err.Error()
	case err != nil:
		return fmt.Sprintf("%q %v", "", err)
	}
	err = errors.Join(t.Show("The question\n"), t.Quote(text))
	key := ""
	if err == nil {
		key, err = t.Ask(Choice{"y", []string{"yes", "once"}, "do it"}, Choice{"n", []string{"no"}, "do not"})
	}
	return fmt.Sprintf("%q %v", key, errors.Join(err, t.Close()))
}

// A user is in front of a program that asks.
type user struct {
	*testenv.Terminal
	begin  func()
	result *bytes.Buffer
}

// meet starts the program, which waits for begin. The words are put before its name.
func meet(t *testing.T, text string, words ...string) user {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words = append(words, self)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append(testenv.Environ(), promptProgramVar+"="+text, noRaceSleep)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	result := new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout = in, result
	u := user{testenv.StartTerminal(t, cmd, 80, 24), func() { out.Close() }, result}
	u.Expect(`ready\r\n`)
	return u
}

// want waits for the end, and compares what the program has got.
func (u user) want(t *testing.T, want string) {
	t.Helper()
	u.Wait()
	if got := strings.TrimSpace(u.result.String()); got != want {
		t.Errorf("the answer is %s, want %s; seen:\n%s", got, want, u.Transcript())
	}
}

const lineOfChoices = `\[y\] do it  \[n\] do not  > $`

// TestAnswers: letters and words in any case, and everything else is no in the end.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		typed []string // each after the line of choices
		want  string
	}{
		"letter":       {[]string{"y\r"}, `"y"`},
		"capital":      {[]string{"Y\r"}, `"y"`},
		"word":         {[]string{"once\r"}, `"y"`},
		"spaces":       {[]string{"  YES \r"}, `"y"`},
		"no":           {[]string{"no\r"}, `"n"`},
		"edited":       {[]string{"n\x7fy\r"}, `"y"`},
		"again":        {[]string{"maybe\r", "\r", "ye\r", "y\r"}, `"y"`},
		"never":        {[]string{"maybe\r", "\r", "yn\r", "y y\r"}, `""`},
		"end of file":  {[]string{"\x04"}, `""`},
		"end of line":  {[]string{"y\x04\x04"}, `""`},
		"literal end":  {[]string{"\x16\x04y\r"}, `""`},
		"long":         {[]string{strings.Repeat(" ", 255) + "y" + strings.Repeat(" ", 255) + "x\r", "n\r"}, `"n"`},
		"long and yes": {[]string{strings.Repeat(" ", 1000) + "y\r"}, `"y"`},
	} {
		t.Run(name, func(t *testing.T) {
			u := meet(t, "")
			u.begin()
			for _, keys := range test.typed {
				u.Expect(lineOfChoices)
				u.Send(keys)
			}
			u.want(t, test.want+" <nil>")
		})
	}
}

// TestTypedAhead: what was typed before the line of choices was shown, or before a page was, is
// no answer.
func TestTypedAhead(t *testing.T) {
	u := meet(t, strings.Repeat("text\n", 30))
	u.Send("\r\ry\ryes\ry")
	u.Expect(`y\r\nyes\r\ny$`) // the terminal has it
	u.begin()
	u.Expect(`see more --$`)
	u.Send("y\r")
	u.Expect(lineOfChoices)
	u.Send("n\r")
	u.want(t, `"n" <nil>`)
}

// TestPages: all is shown, in order, and no answer counts before its end.
func TestPages(t *testing.T) {
	var text, want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i)
		fmt.Fprintf(&want, "| line %d\r\n", i)
	}
	u := meet(t, text.String())
	u.begin()
	for range 4 { // 23 rows each
		u.Expect(`see more --$`)
		u.Send("y\r")
	}
	u.Expect(lineOfChoices)
	u.Send("n\r")
	u.want(t, `"n" <nil>`)
	seen := strings.ReplaceAll(u.Transcript(), "-- press Enter to see more --y\r\n", "")
	if !strings.Contains(seen, "ready\r\nThe question\r\n"+want.String()+"[y]") {
		t.Errorf("seen:\n%s", seen)
	}
}

// TestLooksLikeChoices: nothing in a text stands where the line of choices does.
func TestLooksLikeChoices(t *testing.T) {
	u := meet(t, "a\r[y] do it\n"+strings.Repeat(" ", 78)+"[y] do it\n"+strings.Repeat("界", 38)+
		"a[y] do it\n[y] no end")
	u.begin()
	u.Expect(lineOfChoices)
	u.Send("n\r")
	u.want(t, `"n" <nil>`)
	begins := 0
	for line := range strings.SplitSeq(u.Transcript(), "\r\n") {
		if strings.HasPrefix(line, "[y]") {
			begins++
		}
	}
	if begins != 1 || strings.Contains(strings.ReplaceAll(u.Transcript(), "\r\n", ""), "\r") {
		t.Errorf("%d lines look like choices:\n%q", begins, u.Transcript())
	}
}

// TestEscapes: what moves a terminal, or turns or hides text, is shown as code.
func TestEscapes(t *testing.T) {
	u := meet(t, "\x1b[2J\x1b]0;t\a\x9b1m \u202eevil\u200b \u2028\u2066 \xff\tx\x7f\x08")
	u.begin()
	u.Expect(lineOfChoices)
	u.Send("n\r")
	u.want(t, `"n" <nil>`)
	if want := `| \x1b[2J\x1b]0;t\a\x9b1m \u202eevil\u200b \u2028\u2066 \xff\tx\x7f\b` +
		"\r\n"; !strings.Contains(u.Transcript(), want) {
		t.Errorf("%q", u.Transcript())
	}
}

// TestModes: a terminal that a program has left in another mode takes whole lines, and gets its
// modes back.
func TestModes(t *testing.T) {
	u := meet(t, "")
	modes := u.Modes()
	modes.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	modes.Iflag &^= unix.ICRNL
	modes.Oflag &^= unix.OPOST
	u.SetModes(modes)
	u.begin()
	u.Expect(lineOfChoices)
	u.Send("y\r")
	u.want(t, `"y" <nil>`)
	if u.Modes() != modes {
		t.Errorf("modes before %+v, after %+v", modes, u.Modes())
	}
}

// TestHangUp: a terminal that is gone is no.
func TestPromptHangUp(t *testing.T) {
	for _, at := range []string{lineOfChoices, `see more --$`} {
		u := meet(t, strings.Repeat("\n", strings.Count(at, "more")*30))
		u.begin()
		u.Expect(at)
		u.HangUp()
		u.want(t, `"" <nil>`)
	}
}

// TestCanceled: the end of the context ends a question, also where the user has stopped output.
func TestCanceled(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		u := meet(t, "")
		modes := u.Modes()
		if stopped {
			u.Send("\x13") // Control-S
			u.begin()
		} else {
			u.begin()
			u.Expect(lineOfChoices)
		}
		u.Signal(syscall.SIGUSR1)
		u.want(t, `"" context canceled`)
		if u.Modes() != modes {
			t.Error("the modes have changed")
		}
	}
}

// TestNoTerminal: without a terminal, or in the background of one, nothing is asked.
func TestPromptNoTerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(testenv.Environ(), promptProgramVar+"=", noRaceSleep)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := cmd.Output(); err != nil || string(out) != "no terminal: "+ErrNoTerminal.Error()+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	u := meet(t, "", "sh", "-mc", `"$0" & wait $!`)
	u.begin()
	u.want(t, "no terminal: "+ErrNoTerminal.Error()+": this process is in the background")
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		line string
		cols int
		want int
	}{
		{"", 5, 0}, {"abc", 5, 3}, {"abcde", 5, 5}, {"abcdef", 5, 5}, {"a", 0, 1}, {"ab", 0, 1}, {"äb", 1, 2}, {"ééé", 5, 4},
	} {
		if got := split(test.line, test.cols); got != test.want {
			t.Errorf("%q in %d columns: %d, want %d", test.line, test.cols, got, test.want)
		}
	}
}
