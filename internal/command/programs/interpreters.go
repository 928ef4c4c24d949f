// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// An Interpreter reads code from options, from the file that its first operand names, and else
// from its standard input. The options of one letter are code, names of files with code, and
// others with a value; "rest" are letters with a value in the same word.
type Interpreter struct {
	code, file, value, rest string
	codes, files, values    []string // long options
	module                  string   // a letter whose value is a module
	First                   bool     // the first operand is code, unless an option gives code
	commands                []string // first operands behind which another one stands
	Settings                bool     // operands are no code
}

// interpreters are they, by the names of programs without versions.
var interpreters = sync.OnceValue(func() map[string]Interpreter {
	awk := Interpreter{code: "e", file: "fiEl", value: "Fv", First: true, codes: []string{"source"},
		files: []string{"file", "include", "exec", "load"}, values: []string{"field-separator", "assign"}}
	sed := Interpreter{code: "e", file: "f", value: "l", rest: "i", First: true,
		codes: []string{"expression"}, files: []string{"file"}, values: []string{"line-length"}}
	python := Interpreter{code: "c", value: "WXQ", module: "m", values: []string{"check-hash-based-pycs"}}
	node := Interpreter{code: "ep", file: "r", value: "C", codes: []string{"eval", "print"},
		files:    []string{"require", "import", "loader", "experimental-loader", "env-file", "test-reporter"},
		commands: []string{"run"}}
	perl := Interpreter{code: "eE", file: "I", rest: "iMmFxCDVd0"}
	vim := Interpreter{code: "c", file: "Su", value: "tTrwW", codes: []string{"cmd"}, files: []string{"s"},
		Settings: true}
	sql := Interpreter{code: "ce", file: "f", value: "hpUduPDSvRFTLAE", codes: []string{"command", "execute"},
		files: []string{"file", "init-command"}, Settings: true}
	all := map[string]Interpreter{
		"awk": awk, "gawk": awk, "mawk": awk, "nawk": awk, "sed": sed, "gsed": sed,
		"python": python, "pypy": python, "node": node, "nodejs": node, "bun": node, "deno": node, "tsx": node, "ts-node": node,
		"perl": perl,
		"ruby": {code: "e", file: "rI", value: "CE", rest: "i0FKTWx"},
		"php":  {code: "rBRE", file: "fFzc", value: "dtTgS"},
		"lua":  {code: "e", file: "l"}, "luajit": {code: "e", file: "l"},
		"tclsh": {}, "wish": {}, "expect": {code: "c", file: "f"}, "osascript": {code: "e", value: "l"},
		"Rscript": {code: "e"}, "R": {code: "e", file: "f", codes: []string{"file"}, Settings: true},
		"julia": {code: "eE", file: "L", value: "pJtH", codes: []string{"eval", "print"}, files: []string{"load"}},
		"pwsh":  {}, "elixir": {code: "e", file: "r", codes: []string{"eval"}}, "guile": {code: "c", file: "ls"}, "groovy": {code: "e"},
		"vim": vim, "vi": vim, "nvim": vim, "ex": vim, "view": vim, "gvim": vim,
		"emacs": {file: "l", codes: []string{"eval", "execute"}, files: []string{"load", "script"}, Settings: true},
		"psql":  sql, "mysql": sql, "mariadb": sql,
		"gdb":     {file: "x", codes: []string{"ex", "eval-command", "iex"}, files: []string{"command", "init-command"}, Settings: true},
		"lldb":    {code: "oO", file: "sS", codes: []string{"one-line"}, files: []string{"source"}, Settings: true},
		"gnuplot": {code: "e"}, "m4": {}, "dc": {code: "e", file: "f"}, "bats": {}, "cmake": {files: []string{"P"}, Settings: true}, "ansible-playbook": {file: "i"}, "cscript": {},
	}
	return all
})

// Language returns the interpreter with a name, which may end with a version.
func Language(name string) (Interpreter, bool) {
	in, ok := interpreters()[name] // m4
	if !ok {
		in, ok = interpreters()[strings.TrimRight(name, "0123456789.")]
	}
	return in, ok
}

// Told is what an interpreter is told to run.
type Told struct {
	Codes   []string // texts in its language
	Files   []string
	Modules []string

	after int // where the words begin that are arguments of the code
}

// tell takes the words of an interpreter apart.
func (in *Interpreter) tell(args []string) (t Told) {
	t.after = len(args)
	for i := 1; i < len(args); i++ {
		w := args[i]
		value := func(inline string) string {
			if inline == "" && i+1 < len(args) && !(in.Settings && strings.HasPrefix(args[i+1], "-")) {
				i++
				return args[i]
			}
			return inline
		}
		switch {
		case w == "--":
			t.operand(in, args, i+1)
			return t
		case strings.HasPrefix(w, "+") && in.Settings && len(w) > 1: // of vi
			t.Codes = append(t.Codes, w[1:])
		case strings.HasPrefix(w, "-") && len(w) > 1 && in.long(w, value, &t):
		case len(w) > 1 && w[0] == '-' && w[1] != '-':
			if in.letters(w, value, &t) {
				t.after = i + 1
				return t
			}
		case strings.HasPrefix(w, "--"):
		case slices.Contains(in.commands, w) && len(t.Files) == 0:
		case w == "eval" && len(in.commands) > 0:
			t.Codes = append(t.Codes, value(""))
			t.after = i + 1
			return t
		default:
			if in.Settings {
				continue
			}
			t.operand(in, args, i)
			return t
		}
	}
	return t
}

// operand takes the first operand.
func (t *Told) operand(in *Interpreter, args []string, i int) {
	switch {
	case i >= len(args) || in.Settings:
	case in.First && len(t.Codes)+len(t.Files) == 0:
		t.Codes = append(t.Codes, args[i])
	case in.First || len(t.Codes) > 0:
	case args[i] == "-":
	default:
		t.Files = append(t.Files, args[i])
		t.after = i + 1
		return
	}
	t.after = len(args) // of data
	if !in.First {
		t.after = i
	}
}

// long takes a long option, which some programs write with one dash.
func (in *Interpreter) long(w string, value func(string) string, t *Told) bool {
	name, inline, _ := strings.Cut(strings.TrimPrefix(w[1:], "-"), "=")
	switch {
	case slices.Contains(in.codes, name):
		t.Codes = append(t.Codes, value(inline))
	case slices.Contains(in.files, name):
		t.Files = append(t.Files, value(inline))
	case slices.Contains(in.values, name):
		value(inline)
	default:
		return false
	}
	return true
}

// letters takes a word of short options. It reports true where arguments follow.
func (in *Interpreter) letters(w string, value func(string) string, t *Told) bool {
	for j := 1; j < len(w); j++ {
		rest, c := w[j+1:], w[j:j+1]
		switch {
		case strings.Contains(in.code, c):
			t.Codes = append(t.Codes, value(rest))
			return in.module != "" // python ends there
		case in.module == c:
			t.Modules = append(t.Modules, value(rest))
			return true
		case strings.Contains(in.file, c):
			t.Files = append(t.Files, value(rest))
			return false
		case strings.Contains(in.value, c):
			value(rest)
			return false
		case strings.Contains(in.rest, c):
			return false
		}
	}
	return false
}

// tellPowerShell takes the words of PowerShell apart.
func tellPowerShell(args []string) (t Told) {
	for i := 1; i < len(args); i++ {
		switch w := strings.ToLower(args[i]); {
		case strings.HasPrefix("-command", w) && len(w) > 1 && i+1 < len(args):
			t.Codes = append(t.Codes, strings.Join(args[i+1:], " "))
			return t
		case strings.HasPrefix("-encodedcommand", w) && len(w) > 1:
			return t
		case strings.HasPrefix("-file", w) && len(w) > 1 && i+1 < len(args):
			t.Files = append(t.Files, args[i+1])
			return t
		case !strings.HasPrefix(w, "-"):
			t.Files = append(t.Files, args[i])
			return t
		}
	}
	return t
}

// Tell returns what an interpreter with this name is told to run.
func (in *Interpreter) Tell(name string, args []string) Told {
	if name == "pwsh" {
		return tellPowerShell(args)
	}
	return in.tell(args)
}

// executes finds what runs texts that are no constants, in code; in sed, the command and the flag e.
var executes = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{
		regexp.MustCompile("\\b(?:system|exec\\w*|popen\\w*|Popen|spawn\\w*|subprocess|shell_exec|passthru|proc_open|qx)\\b|`" +
			`|\|&?\s*(?:"|getline|\w+\s*[;}])`),
		regexp.MustCompile(`(?m)(?:^|[^\w\\\s])[gpiImM0-9]*e[gpiImM0-9]*\s*(?:$|[;}])`),
	}
})

// Executes reports whether code in the language of a program may run what it is given.
func Executes(name, code string) bool {
	if strings.HasSuffix(name, "sed") {
		return executes()[1].MatchString(code)
	}
	return executes()[0].MatchString(code)
}

// wordy are programs whose code is commands of words, as in a shell.
var wordy = []string{"make", "gmake", "ed", "expect", "tclsh", "wish", "gnuplot", "m4", "dc", "pwsh",
	"cmake", "sqlite3"}

// Wordy reports whether the code of a program is commands of words, as in a shell.
func Wordy(name string) bool { return slices.Contains(wordy, name) }
