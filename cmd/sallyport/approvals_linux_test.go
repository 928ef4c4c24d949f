// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A desk is a seat with a directory outside of the workspace, to which deniedScript writes.
type desk struct {
	seat
	out string
}

// deniedScript says that it ran, reads a word, and needs what it is denied.
const deniedScript = "echo ran >>count; echo attempt; echo x >>../out/file || exit 7; echo done"

func newDesk(t *testing.T) desk {
	t.Helper()
	s := newSeat(t)
	d := desk{s, filepath.Join(filepath.Dir(s.work), "out")}
	if err := os.Mkdir(d.out, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

// ran returns how often the script ran.
func (d desk) ran() int {
	text, _ := os.ReadFile(filepath.Join(d.work, "count"))
	return bytes.Count(text, []byte("ran\n"))
}

// asksOnce runs a command on a terminal, answers its one question with keys, unless these are empty,
// and expects its exit code. It returns what --json has printed.
func (d desk) asksOnce(t *testing.T, words []string, question, keys string,
	code int) (*testenv.Terminal, string) {
	t.Helper()
	cmd := d.command(t, append([]string{"sallyport", "run"}, words...)...)
	var out bytes.Buffer
	if slices.Contains(words, "--json") {
		cmd.Stdout = &out
	}
	x := testenv.StartTerminal(t, cmd, 240, 40)
	if keys != "" {
		x.Expect(question)
		x.Send(keys)
	}
	if got := x.Wait(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	unchanged(t, x)
	return x, out.String()
}

// The lines of choices.
const (
	choicesPlain = `\[y\] once  \[s\] for this session  \[n\] deny  \[a\] abort  > $`
	choicesRule  = `\[y\] once  \[s\] for this session  \[r\] remember the rule  \[n\] deny  \[a\] abort  > $`
)

// TestPromptAnswers: every letter and word of a question before a run.
func TestPromptAnswers(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name string
		keys []string // each after the line of choices
		code int
		rule bool // is remembered
	}{
		{"y", []string{"y\r"}, 0, false},
		{"once", []string{"Once\r"}, 0, false},
		{"yes", []string{"YES\r"}, 0, false},
		{"s", []string{"s\r"}, 0, false},
		{"session", []string{"session\r"}, 0, false},
		{"r", []string{"r\r"}, 0, true},
		{"rule", []string{"rule\r"}, 0, true},
		{"h, which is not offered", []string{"h\r", "host\r", "n\r"}, 123, false},
		{"n", []string{"n\r"}, 123, false},
		{"deny", []string{"deny\r"}, 123, false},
		{"a", []string{"a\r"}, 123, false},
		{"abort", []string{"abort\r"}, 123, false},
		{"three wrong answers, and then", []string{"x\r", "\r", "yn\r", "y\r"}, 0, false},
		{"four wrong answers", []string{"x\r", "\r", "yn\r", "sure\r"}, 123, false},
		{"end of file", []string{"\x04"}, 123, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			x := d.run(t, "-a", "untrusted", "--", "cp", "/dev/null", "copy")
			for _, keys := range test.keys {
				x.Expect(choicesRule)
				x.Send(keys)
			}
			if code := x.Wait(); code != test.code {
				t.Errorf("exit code %d, want %d; seen:\n%s", code, test.code, x.Transcript())
			}
			unchanged(t, x)
			if _, err := os.Lstat(filepath.Join(d.work, "copy")); (err == nil) != (test.code == 0) {
				t.Errorf("the copy: %v", err)
			}
			kept, err := os.ReadFile(filepath.Join(d.home, ".config/sallyport/rules/default.rules"))
			if test.rule != bytes.Contains(kept, []byte(`["cp", "/dev/null", "copy"]`)) {
				t.Fatalf("the rules are %q, %v", kept, err)
			}
			if test.rule { // the second run is not asked
				if x := d.run(t, "-a", "untrusted", "--", "cp", "/dev/null", "copy"); x.Wait() != 0 ||
					strings.Contains(x.Transcript(), "[y]") {
					t.Errorf("seen:\n%s", x.Transcript())
				}
			}
		})
	}
}

// TestPromptShows: the whole command, over pages, escaped, and no answer before its end.
func TestPromptShows(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	script := "touch ran # \x1b[2J\u202eevil\u200b\n" + strings.Repeat("# 0123456789\n", 400) + "# the end"
	x := d.run(t, "-a", "untrusted", "--justification", "it is \x1b[31murgent", "-c", script)
	pages := 0
	for {
		at := x.Expect(`see more --$|> $`)
		if at[0] == "> " {
			break
		}
		pages++
		x.Send("y\r") // only turns the page
	}
	seen := x.Transcript()
	if pages < 10 || strings.Count(seen, "| # 0123456789\r\n") != 400 {
		t.Errorf("%d pages, %d lines", pages, strings.Count(seen, "| # 0123456789\r\n"))
	}
	for _, want := range []string{`| touch ran # \x1b[2J\u202eevil\u200b` + "\r\n", "| # the end\r\n",
		"the caller says:", `| it is \x1b[31murgent`} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if strings.Contains(seen, "\x1b[2J") || strings.Contains(seen, "\u202e") {
		t.Errorf("raw:\n%q", seen)
	}
	x.Send("n\r")
	if x.Wait() != 123 {
		t.Error("it was not refused")
	}
}

// TestPromptShowsOneLine: a word of 5000 characters is shown to its end, over pages.
func TestPromptShowsOneLine(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	var word strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&word, "%04d-", i)
	}
	x := d.run(t, "-a", "untrusted", "--", "cp", "/dev/null", word.String())
	for x.Expect(`see more --$|> $`)[0] != "> " {
		x.Send("\r")
	}
	seen := strings.ReplaceAll(x.Transcript(), "-- press Enter to see more --\r\n", "")
	if !strings.Contains(strings.ReplaceAll(seen, "\r\n| ", ""), "cp /dev/null "+word.String()+"\r\n") {
		t.Errorf("seen:\n%s", seen)
	}
	x.Send("n\r")
	if x.Wait() != 123 {
		t.Error("it was not refused")
	}
}

// TestPromptTypedAhead: what was typed before the line of choices is no answer.
func TestPromptTypedAhead(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, flag := range []string{"-t", "-t=false"} {
		t.Run("while the command ran "+flag, func(t *testing.T) {
			d := newDesk(t)
			x := d.run(t, flag, "-c", "stty -echo; echo ready; read x; "+deniedScript)
			x.Expect(`ready\r\n`)
			x.Send("go\ry\ryes\ry\r")
			x.Expect(choicesPlain)
			x.Send("n\r")
			if x.Wait() != 7 || d.ran() != 1 {
				t.Errorf("it ran %d times; seen:\n%s", d.ran(), x.Transcript())
			}
		})
	}
	d := newDesk(t)
	x := testenv.StartTerminal(t, d.command(t, "sh", "-c",
		`read x; exec sallyport run -a untrusted -- cp /dev/null copy`), 80, 24)
	x.Send("begin\ry\ryes\ry\r")
	x.Expect(`> $`)
	x.Send("n\r")
	if x.Wait() != 123 {
		t.Errorf("seen:\n%s", x.Transcript())
	}
}

// TestPromptRetry: a command that was denied something is run again where that is approved; how
// often it ran is told, and a refusal leaves the first end.
func TestPromptRetry(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name, keys string
		flags      []string
		code, runs int
		attempts   string
	}{
		{"its own terminal, y", "y\r", []string{"-t"}, 0, 2, ""},
		{"its own terminal, n", "n\r", []string{"-t"}, 7, 1, ""},
		{"its own terminal, end of file", "\x04", []string{"-t"}, 7, 1, ""},
		{"ours, y", "y\r", []string{"-t=false"}, 0, 2, ""},
		{"ours, n", "n\r", []string{"-t=false"}, 7, 1, ""},
		{"a", "a\r", []string{"-t=false"}, 7, 1, ""},
		{"--json, y", "y\r", []string{"--json"}, 0, 2, `"attempts":2`},
		{"--json, n", "n\r", []string{"--json"}, 7, 1, `"attempts":1`},
		{"--jsonl, s", "s\r", []string{"--jsonl"}, 0, 2, `"attempts":2`},
		{"a guess is never asked about", "", []string{"--no-observer"}, 7, 1, ""},
		{"never", "", []string{"-a", "never"}, 7, 1, ""},
		{"denied for good", "", []string{"--deny", "../out"}, 7, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			words := append([]string{"sallyport", "run"}, append(test.flags, "-c", deniedScript)...)
			cmd := d.command(t, words...)
			var out bytes.Buffer
			if test.attempts != "" {
				cmd.Stdout = &out
			}
			x := testenv.StartTerminal(t, cmd, 80, 24)
			if test.keys != "" {
				x.Expect(`may this command be given more\?`)
				x.Expect(`would open: writing to [^\r]*/out\r\nIt ran already \(1\), and what it did then is done again.\r\n` + choicesPlain)
				x.Send(test.keys)
			}
			if code := x.Wait(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			unchanged(t, x)
			if d.ran() != test.runs || !strings.Contains(out.String(), test.attempts) ||
				(test.attempts != "") != (out.Len() > 0) {
				t.Errorf("it ran %d times, want %d; %s", d.ran(), test.runs, out.Bytes())
			}
			if first := strings.Contains(out.String(),
				`"first":{"end":"exited","exit_code":7`); test.attempts != "" && first != (test.runs == 2) {
				t.Errorf("%s", out.Bytes())
			}
			if t.Failed() {
				t.Logf("seen:\n%s", x.Transcript())
			}
		})
	}
}

// TestPromptKeys: keys that are typed after a command was run again reach it.
func TestPromptKeys(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	x := d.run(t, "-t", "-c",
		`echo ran >>count; printf 'name? '; read name; echo "hello $name"; echo x >>../out/file || exit 7`)
	play(x, []turn{{`name\? $`, "Ada\r"}, {choicesPlain, "y\r"}, {`name\? $`, "Grace\r"},
		{`hello Grace\r\n`, ""}})
	if x.Wait() != 0 || d.ran() != 2 {
		t.Errorf("it ran %d times; seen:\n%s", d.ran(), x.Transcript())
	}
	unchanged(t, x)
}

// TestPromptCanceled: a signal ends a question; nothing runs then, the terminal is as it was, and
// the result has the first attempt.
func TestPromptCanceled(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, flags := range [][]string{{"-t"}, {"-t=false"}, {"--json"}, {"--escalate"}} {
			t.Run(sig.String()+" "+flags[0], func(t *testing.T) {
				d := newDesk(t)
				cmd := d.command(t, append([]string{"sallyport", "run", "-c", deniedScript}, flags...)...)
				cmd.Args = append(append([]string{"sallyport", "run"}, flags...), "-c", deniedScript)
				var out bytes.Buffer
				if flags[0] == "--json" {
					cmd.Stdout = &out
				}
				x := testenv.StartTerminal(t, cmd, 80, 24)
				x.Expect(choicesPlain)
				x.Signal(sig)
				if code := x.Wait(); code != 128+int(sig) {
					t.Errorf("exit code %d; seen:\n%s", code, x.Transcript())
				}
				unchanged(t, x)
				want := map[bool]int{true: 0, false: 1}[flags[0] == "--escalate"]
				if d.ran() != want {
					t.Errorf("it ran %d times, want %d", d.ran(), want)
				}
				if text := out.String(); flags[0] == "--json" &&
					(!strings.Contains(text, `"end":"canceled"`) ||
						!strings.Contains(text, `"first":{"end":"exited","exit_code":7`) ||
						!strings.Contains(text, `"attempts":1`)) {
					t.Errorf("%s", text)
				}
			})
		}
	}
}

// TestPromptHangUp: a terminal that is gone is no.
func TestPromptHangUp(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name string
		args []string
		runs int
	}{
		{"before a run", []string{"-a", "untrusted", "-c", deniedScript}, 0},
		{"after a run", []string{"-t=false", "-c", deniedScript}, 1},
		{"after a run on its own terminal", []string{"-t", "-c", deniedScript}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			x := d.run(t, test.args...)
			x.Expect(`> $`)
			x.HangUp()
			x.Wait()
			if d.ran() != test.runs {
				t.Errorf("it ran %d times, want %d", d.ran(), test.runs)
			}
		})
	}
}

// TestPromptStreams: standard input is no terminal and answers nothing; input that is used up is
// not given twice, and without a terminal there is no question.
func TestPromptStreams(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	t.Run("a pipe as input", func(t *testing.T) {
		d := newDesk(t)
		x := testenv.StartTerminal(t, d.command(t, "sh", "-c", `yes | sallyport run -a on-request -c "$0"`,
			deniedScript), 80, 24)
		if code := x.Wait(); code != 7 || d.ran() != 1 || strings.Contains(x.Transcript(), "[y]") {
			t.Errorf("exit code %d, it ran %d times; seen:\n%s", code, d.ran(), x.Transcript())
		}
	})
	t.Run("a file as input", func(t *testing.T) {
		d := newDesk(t)
		if err := os.WriteFile(filepath.Join(d.work, "in"), []byte("skipped\nword\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		x := testenv.StartTerminal(t, d.command(t, "sh", "-c",
			`{ read x; sallyport run -a on-request -c "$0"; } <in`, "read w; echo got $w; "+
				deniedScript), 80, 24)
		play(x, []turn{{`got word\r\n`, ""}, {choicesPlain, "y\r"}, {`got word\r\n`, ""}})
		if x.Wait() != 0 || d.ran() != 2 {
			t.Errorf("it ran %d times; seen:\n%s", d.ran(), x.Transcript())
		}
	})
	for name, test := range map[string]struct {
		flags []string
		code  int
		says  string
	}{
		"no retry":             {[]string{"-a", "on-request"}, 7, ""},
		"no one to ask":        {[]string{"-a", "on-request", "--escalate"}, 123, "there is no one to ask"},
		"never is the default": {[]string{"--escalate"}, 122, ""},
	} {
		t.Run("no terminal: "+name, func(t *testing.T) {
			d := newDesk(t)
			cmd := d.command(t, append(append([]string{"sallyport", "run"}, test.flags...), "-c",
				deniedScript)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != test.code ||
				!strings.Contains(string(out), test.says) || strings.Contains(string(out), "[y]") {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

// TestPromptStopped: Control-Z does not stop a question, and the answer counts.
func TestPromptStopped(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	d := newDesk(t)
	x := d.run(t, "-t", "-c", deniedScript)
	x.Expect(choicesPlain)
	x.Send("\x1a")
	x.Expect(`\^Z`)
	x.Send("y\r")
	if x.Wait() != 0 || d.ran() != 2 {
		t.Errorf("it ran %d times; seen:\n%s", d.ran(), x.Transcript())
	}
	unchanged(t, x)
}

// TestApprovalsDocument: the questions in docs/approvals.md are what is shown, and its approver works.
func TestApprovalsDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile(`(?m)^program: /.*\n`) // where it is differs between machines
	doc := program.ReplaceAllString(string(text), "")
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		choices string
		words   []string
	}{
		{choicesRule, []string{"-a", "untrusted", "--", "cp", "/dev/null", "copy"}},
		{choicesPlain, []string{"-q", "-c", "echo x >../out/file"}},
	} {
		d := newDesk(t)
		x := testenv.StartTerminal(t,
			d.command(t, append([]string{"sallyport", "run"}, test.words...)...), 200, 40)
		x.Expect(test.choices)
		seen := strings.ReplaceAll(x.Transcript(), "\r\n", "\n")
		seen = strings.NewReplacer(d.work, "/home/dev/project", d.out,
			"/home/dev/out").Replace(seen[strings.Index(seen, "sallyport: may"):])
		if !program.MatchString(seen) {
			t.Errorf("no program:\n%s", seen)
		}
		seen = program.ReplaceAllString(seen, "")
		if !strings.Contains(doc, "```text\n"+seen+"\n```\n") {
			t.Errorf("not in the document:\n%s", seen)
		}
		x.Send("n\r")
		x.Wait()
	}
	d := newDesk(t)
	_, script, _ := strings.Cut(doc, "```sh\n")
	script, _, _ = strings.Cut(script, "```")
	approver := filepath.Join(d.home, "approver")
	if err := testenv.WriteProgram(approver, script); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flag, says string
		code       int
	}{
		{"--escalate", "refused: it asks to run outside the sandbox: nothing leaves the sandbox", 123},
		{"--ask-for=" + d.out, "there is no one to ask", 123},
	} {
		cmd := d.command(t, "sallyport", "run", "-a", "on-request", "--approver", approver,
			test.flag, "-c", "true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.says) {
			t.Errorf("%s: exit code %d, %s", test.flag, cmd.ProcessState.ExitCode(), out)
		}
	}
}
