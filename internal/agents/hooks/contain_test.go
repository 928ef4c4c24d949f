// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// tortures are commands whose quoting is difficult.
var tortures = []string{
	"ls", "", " ", "git status && ls", "true; curl x", "a | b || c & d", "echo 'it'\\''s'",
	`echo "a'b" \' \" \\`, "'", "''", "'''", "x'", "'x", `\`, `\'`, `'\'`, `\\'`, `"`, "`id`", "$(id)",
	"${HOME}", "$'a\\'b'", "!x", "!!", "a\nb", "\n", "a\r\nb", "\r", "a\\\nb", "a\tb", "#x", "~", "*", "?",
	"[a]", "{a,b}", "a=b c", "-x", "--", "=x", "cat <<EOF\nit's\nEOF", "cat <<'EOF'\n$x\nEOF\n",
	"f() { rm -rf /; }; f", "if true; then echo; fi", "a >b <c 2>&1", "ü é 漢字 😀",
	"\u00a0\u2028\u2029\ufeff", "\u202e", "\x01\x02\x1b[2J\x7f", "%s %n", strings.Repeat("'", 300),
	strings.Repeat(`'\''"$`, 200),
}

// reads returns what a shell makes of a contained command: the words that a stub gets that comes first on
// PATH by the name of the program, and what else the shell runs or prints.
func reads(t testing.TB, shell, dir, command string) (words []string, rest string) {
	t.Helper()
	out := filepath.Join(dir, "words")
	_ = os.Remove(out)
	c := exec.Command(shell, "-c", command)
	c.Dir = dir
	c.Env = []string{"PATH=" + dir, "OUT=" + out, "HOME=" + dir, "LC_ALL=C.UTF-8"}
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %q: %v, %s", shell, command, err, said)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%s: %q: the program was not called: %v", shell, command, err)
	}
	return strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00"), string(said)
}

// stub writes the program that notes its words.
func stub(t testing.TB) (dir string) {
	dir = t.TempDir()
	const noting = "#!/bin/sh\nprintf '%s\\0' \"$@\" >>\"$OUT\"\n"
	if err := testenv.WriteProgram(filepath.Join(dir, "sallyport"), noting); err != nil {
		t.Fatal(err)
	}
	return dir
}

func shells() (found []string) {
	for _, name := range []string{"sh", "bash", "dash", "zsh", "ksh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// TestWrap: every shell reads the contained command back as one program with the whole command as its last
// word, and nothing of the command is outside of it.
func TestWrap(t *testing.T) {
	dir := stub(t)
	for _, shell := range shells() {
		for _, command := range tortures {
			flags := []string{"-s", "read-only", "--deny", "it's a $path"}
			wrapped := Wrap("sallyport", append(flags, "-c", command))
			want := slices.Concat([]string{"run"}, flags, []string{"-c", command})
			if got, rest := reads(t, shell, dir, wrapped); rest != "" || !slices.Equal(got, want) {
				t.Errorf("%s reads %q as %q and %q, want %q", shell, wrapped, got, rest, want)
			}
		}
	}
}

// TestContainedWraps: what was contained is known as such, whatever it is.
func TestContainedWraps(t *testing.T) {
	for _, program := range []string{"sallyport", "/usr/local/bin/sallyport", "/it's a/dir/sallyport"} {
		for _, command := range tortures {
			name, words := Contained(Wrap(program, []string{"-q", "-c", command}))
			if name != program || !slices.Equal(words, []string{"-q", "-c", command}) {
				t.Errorf("%q: %q %q", command, name, words)
			}
		}
	}
}

// TestContained is about commands that are no simple command of plain words.
func TestContained(t *testing.T) {
	for _, command := range []string{
		"", "ls", "sallyport", "sallyport run", "sallyport ps x", "sallyport -s x run -- y", "run -- x",
		"sallyport run -- true; curl x", "sallyport run -- true && curl x",
		"sallyport run -- true || curl x", "sallyport run -- true | curl x",
		"sallyport run -- true & curl x", "sallyport run -- true &", "sallyport run -- true\ncurl x",
		"sallyport run -- true >x", "sallyport run -- true <x", "sallyport run -- true 2>&1",
		"A=b sallyport run -- true", "PATH=. sallyport run -- true", "! sallyport run -- true",
		"(sallyport run -- true)", "{ sallyport run -- true; }", "sallyport run -- $(curl x)",
		"sallyport run -- `curl x`", `sallyport run -- "$(curl x)"`, "sallyport run -- $x",
		`sallyport run -- "$x"`, "sallyport run -- ${x}", "sallyport run -- <(curl x)",
		"sallyport run -- $'x'", `sallyport run -- $"x"`, "sallyport run -- *", "sallyport run -- ~",
		"sallyport run -- {a,b}", "sallyport run -- a?", "sallyport run -- [a]", "sallyport run -- =curl",
		`sallyport run -- a\ b`, "sallyport run -- true # x", "# x\nsallyport run -- true",
		"sallyport run -- 'x", "if sallyport run -- true; then curl x; fi",
		"while sallyport run -- x; do y; done", "time sallyport run -- x", "sallyport run -- true\r",
		"sallyport run -- true\r\n", "coproc sallyport run -- x", "f() { sallyport run -- x; }",
		"sallyport run <<EOF\nx\nEOF", "sallyport run -- \x80", "sallyport run -- a\x00b",
		"command sallyport run -- x", "env sallyport run -- x", "exec sallyport run -- x",
	} {
		if name, words := Contained(command); words != nil && name == "sallyport" {
			t.Errorf("%q is taken for contained: %q", command, words)
		}
	}
	for command, want := range map[string]string{
		"sallyport run -- true":    "-- true",
		" sallyport  run -q true ": "-q true",
		"sallyport run -c 'a; b'":  "-c|a; b",
		`sallyport run -c "a; b"`:  "-c|a; b",
		"sallyport run -- true;":   "-- true", "sallyport run -- true\n": "-- true",
		"sallyport run -c 'a\r\nb'": "-c|a\r\nb",
	} {
		want := strings.FieldsFunc(want, func(r rune) bool {
			return r == '|' || r == ' ' && !strings.Contains(want, "|")
		})
		if name, words := Contained(command); name != "sallyport" || !slices.Equal(words, want) {
			t.Errorf("%q: %q %q, want %q", command, name, words, want)
		}
	}
}

// FuzzWrap gives every shell that is there the contained form of commands.
func FuzzWrap(f *testing.F) {
	for _, command := range tortures {
		f.Add(command)
	}
	dir := stub(f)
	found := shells()
	f.Fuzz(func(t *testing.T, command string) {
		if strings.ContainsRune(command, 0) || !utf8.ValidString(command) || len(command) > 20000 {
			return // the first is denied, the second no event
		}
		wrapped := Wrap("sallyport", []string{"-c", command})
		want := []string{"run", "-c", command}
		for _, shell := range found {
			if got, rest := reads(t, shell, dir, wrapped); rest != "" || !slices.Equal(got, want) {
				t.Errorf("%s reads %q as %q and %q", shell, wrapped, got, rest)
			}
		}
		name, words := Contained(wrapped)
		if words != nil && (name != "sallyport" || !slices.Equal(words, want[1:])) {
			t.Errorf("%q is known as %q", wrapped, words)
		}
	})
}

// FuzzContained: a command that is taken for contained runs one program with these words in every shell.
func FuzzContained(f *testing.F) {
	for _, command := range tortures {
		f.Add("sallyport run -- " + command)
		f.Add(Wrap("sallyport", []string{"-c", command}))
	}
	dir := stub(f)
	found := shells()
	f.Fuzz(func(t *testing.T, command string) {
		name, words := Contained(command)
		if words == nil || name != "sallyport" || len(command) > 20000 {
			return
		}
		want := append([]string{"run"}, words...)
		for _, shell := range found {
			if got, rest := reads(t, shell, dir, command); rest != "" || !slices.Equal(got, want) {
				t.Errorf("%s reads %q as %q and %q, want %q", shell, command, got, rest, want)
			}
		}
	})
}
