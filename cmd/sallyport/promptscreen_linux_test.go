// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The terminal of these tests is large enough for a question without a page.
const viewCols, viewRows = 200, 40

// view returns what the terminal shows.
func view(x *testenv.Terminal) text.Snapshot {
	s := text.NewScreen(viewCols, viewRows)
	_, _ = s.Write([]byte(x.Transcript())) // it cannot fail
	return s.Snapshot()
}

// readable checks that the terminal shows the whole question about another attempt, each row by
// itself, and nothing below it, on the main screen with the cursor behind the choices.
func readable(t *testing.T, d desk, x *testenv.Terminal, command string) {
	t.Helper()
	v := view(x)
	want := []string{
		"sallyport: may this command be given more?", "| " + command, "in " + d.work, "program: ...",
		"reason: it failed, and was denied what it may need", "was denied: write " + d.out +
			"/file (EROFS, notified)",
		"would open: writing to " + d.out, "It ran already (1), and what it did then is done again.",
		"[y] once  [s] for this session  [n] deny  [a] abort  >",
	}
	begin := slices.Index(v.Lines, want[0])
	if begin < 0 {
		t.Fatalf("no question is shown:\n%s\nseen:\n%q", v, x.Transcript())
	}
	rows := v.Lines[begin:]
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	for i, row := range rows {
		if strings.HasPrefix(row, "program: /") {
			rows[i] = "program: ..." // where it is differs between machines
		}
	}
	last := begin + len(want) - 1
	if !slices.Equal(rows, want) || v.Alternate || !v.Cursor.Visible || v.Cursor.Row != last ||
		v.Cursor.Col != len(want[len(want)-1])+1 {
		t.Errorf("shown, with the cursor %+v, on the alternate screen %v:\n%s", v.Cursor, v.Alternate, v)
	}
}

// TestPromptAfterDrawing: a command that has drawn on the terminal, and left it so when it failed,
// hides or changes nothing of the question about another attempt, which begins on a terminal in
// its usual state.
func TestPromptAfterDrawing(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const fake = "\x1b[H\x1b[2Jsallyport: may this command be given less?\r\n| true\r\n[y] once  [n] deny  > "
	for _, test := range []struct{ name, leaves string }{
		{"the alternate screen", "\x1b[?1049h\x1b[?25l\x1b[?1002;1006;2004h\x1b[2J\x1b[10;10Hdrawn"},
		{"an alternate screen with all that is saved beside it", "\x1b[20;30r\x1b[?6h\x1b(0\x1b[?1049h\x1b[5;9r\x1b[?6h\x1b(0"},
		{"text that looks like a question, and one row that scrolls", fake + "\x1b7\x1b[40;40r\x1b[40;1H"},
		{"text below the cursor", strings.Repeat("a row of the command\r\n", 39) + "\x1b[H"},
		{"text on the right", strings.Repeat(strings.Repeat(" ", 150)+"of the command\r\n", 39) + "\x1b[3;1H"},
		{"line drawing", "\x1b(0\x1b)0\x0e"},
		{"insertion without wrapping, and no cursor", "\x1b[4h\x1b[20h\x1b[?7l\x1b[?25l"},
		{"a title without an end", "\x1b]0;"},
		{"a string without an end", "\x1bP1"},
		{"a sequence without an end", "\x1b[1;"},
	} {
		for _, flag := range []string{"-t", "-t=false"} {
			t.Run(test.name+" "+flag, func(t *testing.T) {
				d := newDesk(t)
				const draw = "#!/bin/sh\necho ran >>count\nif { echo x >../out/file; } 2>/dev/null; then stty -a; echo second; exit; fi\nstty raw -echo\nprintf %%s '%s'\nexit 7\n"
				if err := testenv.WriteProgram(filepath.Join(d.work, "draw"),
					fmt.Sprintf(draw, test.leaves)); err != nil {
					t.Fatal(err)
				}
				x := testenv.StartTerminal(t,
					d.command(t, "sh", "-c", `echo before; exec sallyport run "$0" -- ./draw`, flag),
					viewCols, viewRows)
				x.Expect(choicesPlain)
				readable(t, d, x, "./draw")
				// Where the cursor may be anywhere, it has scrolled out of the screen.
				if test.name == "the alternate screen" && flag == "-t" &&
					!slices.Contains(view(x).Lines, "before") {
					t.Errorf("the main screen is lost:\n%s", view(x))
				}
				x.Send("y\r")
				x.Expect(`\nopost(?s:.*)[^-]icanon(?s:.*)[^-]echo (?s:.*)second\r\n`)
				if x.Wait() != 0 || d.ran() != 2 {
					t.Errorf("it ran %d times; seen:\n%q", d.ran(), x.Transcript())
				}
				unchanged(t, x)
				if v := view(x); v.Alternate || !v.Cursor.Visible || !slices.Contains(v.Lines, "second") {
					t.Errorf("at the end it shows:\n%s", v)
				}
				modes := []string{";1002;", ";1006;", ";2004;"}
				if flag == "-t=false" {
					modes = append(modes, "\x1b[?1047l") // nothing has followed what was written
				} else if strings.Contains(test.leaves, "1049") {
					modes = append(modes, "\x1b[?1049l")
				} else if strings.Contains(x.Transcript(), "\x1b[?1049l") {
					t.Error("a screen is left that was not there")
				}
				for _, mode := range modes {
					if i := strings.LastIndex(x.Transcript(), mode); i < strings.Index(x.Transcript(),
						test.leaves) {
						t.Errorf("%q is not reset", mode)
					}
				}
			})
		}
	}
}

// TestPromptStoppedOutput: a question is shown where the command has stopped the output.
func TestPromptStoppedOutput(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "python3")
	d := newDesk(t)
	const script = `python3 -c 'import termios; termios.tcflow(1, termios.TCOOFF)'; { echo x >../out/file; } 2>/dev/null || exit 7`
	x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "-t=false", "-c", script),
		viewCols, viewRows)
	x.Expect(choicesPlain)
	readable(t, d, x, script)
	x.Send("n\r")
	if code := x.Wait(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	unchanged(t, x)
}

// TestPromptDumb: a terminal without control sequences gets none.
func TestPromptDumb(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	cmd := d.command(t, "sallyport", "run", "-t=false", "-c", deniedScript)
	cmd.Env = append(cmd.Env, "TERM=dumb")
	x := testenv.StartTerminal(t, cmd, viewCols, viewRows)
	x.Expect(choicesPlain)
	x.Send("n\r")
	if x.Wait() != 7 || strings.Contains(x.Transcript(), "\x1b") {
		t.Errorf("seen:\n%q", x.Transcript())
	}
}

// TestPromptVim: an editor that was denied a write and quits with an error, or is killed, leaves a
// readable question, and has its screen again when it runs again.
func TestPromptVim(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "vim")
	const script = "vim -u NONE -i NONE -n -N note.txt || exit 7"
	for name, keys := range map[string]string{"quit": ":cq\r",
		"killed": ":call system('kill -KILL $PPID')\r"} {
		for _, answer := range []string{"y", "n"} {
			t.Run(name+" "+answer, func(t *testing.T) {
				d := newDesk(t)
				x := testenv.StartTerminal(t, d.command(t, "sallyport", "run", "-t", "-c", script),
					viewCols, viewRows)
				play(x, []turn{{`note\.txt`, "otext\x1b:w! ../out/file\r"}, {`E212`, "\r" + keys},
					{choicesPlain, ""}})
				readable(t, d, x, script)
				x.Send(answer + "\r")
				code := 7
				if answer == "y" {
					play(x, []turn{{`\x1b\[\?1049h`, ""}, {`note\.txt`, "otext\x1b:w! ../out/file\r"},
						{`written`, ":q!\r"}})
					code = 0
				}
				if got := x.Wait(); got != code {
					t.Errorf("exit code %d, want %d; seen:\n%q", got, code, x.Transcript())
				}
				unchanged(t, x)
				if v := view(x); v.Alternate || !v.Cursor.Visible {
					t.Errorf("at the end it shows:\n%s", v)
				}
			})
		}
	}
}
