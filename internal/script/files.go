// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// A File is one that a program reads as code, or as settings that run code.
type File struct {
	// Names are where it is looked up: the first that exists is read. They may contain Gap.
	Names []string
	// Maybe says that it is a file whose content may be taken for code, or may not.
	Maybe bool
	// Project says that the program reads it without being told.
	Project bool
}

// A code is a text in the language of a program that is not a shell.
type code struct {
	text string
	by   string
	at   place
}

// An interpreter reads code from options, from the file that its first operand names, and else
// from its standard input. The options of one letter are code, names of files with code, and
// others with a value; "rest" are letters with a value in the same word.
type interpreter struct {
	code, file, value, rest string
	codes, files, values    []string // long options
	module                  string   // a letter whose value is a module
	first                   bool     // the first operand is code, unless an option gives code
	commands                []string // first operands behind which another one stands
	settings                bool     // operands are no code
}

// interpreters are they, by the names of programs without versions.
var interpreters = sync.OnceValue(func() map[string]interpreter {
	awk := interpreter{code: "e", file: "fiEl", value: "Fv", first: true, codes: []string{"source"}, files: []string{"file", "include", "exec", "load"}, values: []string{"field-separator", "assign"}}
	sed := interpreter{code: "e", file: "f", value: "l", rest: "i", first: true, codes: []string{"expression"}, files: []string{"file"}, values: []string{"line-length"}}
	python := interpreter{code: "c", value: "WXQ", module: "m", values: []string{"check-hash-based-pycs"}}
	node := interpreter{code: "ep", file: "r", value: "C", codes: []string{"eval", "print"}, files: []string{"require", "import", "loader", "experimental-loader", "env-file", "test-reporter"}, commands: []string{"run"}}
	perl := interpreter{code: "eE", file: "I", rest: "iMmFxCDVd0"}
	vim := interpreter{code: "c", file: "Su", value: "tTrwW", codes: []string{"cmd"}, files: []string{"s"}, settings: true}
	sql := interpreter{code: "ce", file: "f", value: "hpUduPDSvRFTLAE", codes: []string{"command", "execute"}, files: []string{"file", "init-command"}, settings: true}
	all := map[string]interpreter{
		"awk": awk, "gawk": awk, "mawk": awk, "nawk": awk, "sed": sed, "gsed": sed,
		"python": python, "pypy": python, "node": node, "nodejs": node, "bun": node, "deno": node, "tsx": node, "ts-node": node,
		"perl": perl,
		"ruby": {code: "e", file: "rI", value: "CE", rest: "i0FKTWx"},
		"php":  {code: "rBRE", file: "fFzc", value: "dtTgS"},
		"lua":  {code: "e", file: "l"}, "luajit": {code: "e", file: "l"},
		"tclsh": {}, "wish": {}, "expect": {code: "c", file: "f"}, "osascript": {code: "e", value: "l"},
		"Rscript": {code: "e"}, "R": {code: "e", file: "f", codes: []string{"file"}, settings: true},
		"julia": {code: "eE", file: "L", value: "pJtH", codes: []string{"eval", "print"}, files: []string{"load"}},
		"pwsh":  {}, "elixir": {code: "e", file: "r", codes: []string{"eval"}}, "guile": {code: "c", file: "ls"}, "groovy": {code: "e"},
		"vim": vim, "vi": vim, "nvim": vim, "ex": vim, "view": vim, "gvim": vim,
		"emacs": {file: "l", codes: []string{"eval", "execute"}, files: []string{"load", "script"}, settings: true},
		"psql":  sql, "mysql": sql, "mariadb": sql,
		"gdb":     {file: "x", codes: []string{"ex", "eval-command", "iex"}, files: []string{"command", "init-command"}, settings: true},
		"lldb":    {code: "oO", file: "sS", codes: []string{"one-line"}, files: []string{"source"}, settings: true},
		"gnuplot": {code: "e"}, "m4": {}, "dc": {code: "e", file: "f"}, "bats": {}, "ansible-playbook": {file: "i"}, "cscript": {},
	}
	return all
})

// language returns the interpreter with a name, which may end with a version.
func language(name string) (interpreter, bool) {
	in, ok := interpreters()[strings.TrimRight(name, "0123456789.")]
	return in, ok
}

// told is what an interpreter is told to run.
type told struct {
	codes   []string
	files   []string
	modules []string
	after   int // where the words begin that are arguments of the code
}

// tell takes the words of an interpreter apart.
func (in *interpreter) tell(args []string) (t told) {
	t.after = len(args)
	for i := 1; i < len(args); i++ {
		w := args[i]
		value := func(inline string) string {
			if inline == "" && i+1 < len(args) && !(in.settings && strings.HasPrefix(args[i+1], "-")) {
				i++
				return args[i]
			}
			return inline
		}
		switch {
		case w == "--":
			t.operand(in, args, i+1)
			return t
		case strings.HasPrefix(w, "+") && in.settings && len(w) > 1: // of vi
			t.codes = append(t.codes, w[1:])
		case strings.HasPrefix(w, "-") && len(w) > 1 && in.long(w, value, &t):
		case len(w) > 1 && w[0] == '-' && w[1] != '-':
			if in.letters(w, value, &t) {
				t.after = i + 1
				return t
			}
		case strings.HasPrefix(w, "--"):
		case slices.Contains(in.commands, w) && len(t.files) == 0:
		case w == "eval" && len(in.commands) > 0:
			t.codes = append(t.codes, value(""))
			t.after = i + 1
			return t
		default:
			if in.settings {
				continue
			}
			t.operand(in, args, i)
			return t
		}
	}
	return t
}

// operand takes the first operand.
func (t *told) operand(in *interpreter, args []string, i int) {
	switch {
	case i >= len(args) || in.settings:
	case in.first && len(t.codes)+len(t.files) == 0:
		t.codes = append(t.codes, args[i])
	case in.first || len(t.codes) > 0:
	case args[i] == "-":
	default:
		t.files = append(t.files, args[i])
		t.after = i + 1
		return
	}
	t.after = len(args) // of data
	if !in.first {
		t.after = i
	}
}

// long takes a long option, which some programs write with one dash.
func (in *interpreter) long(w string, value func(string) string, t *told) bool {
	name, inline, _ := strings.Cut(strings.TrimPrefix(w[1:], "-"), "=")
	switch {
	case slices.Contains(in.codes, name):
		t.codes = append(t.codes, value(inline))
	case slices.Contains(in.files, name):
		t.files = append(t.files, value(inline))
	case slices.Contains(in.values, name):
		value(inline)
	default:
		return false
	}
	return true
}

// letters takes a word of short options. It reports true where arguments follow.
func (in *interpreter) letters(w string, value func(string) string, t *told) bool {
	for j := 1; j < len(w); j++ {
		rest, c := w[j+1:], w[j:j+1]
		switch {
		case strings.Contains(in.code, c):
			t.codes = append(t.codes, value(rest))
			return in.module != "" // python ends there
		case in.module == c:
			t.modules = append(t.modules, value(rest))
			return true
		case strings.Contains(in.file, c):
			t.files = append(t.files, value(rest))
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

// interpreter notes the code and the files of an interpreter.
func (rd *reader) interpreter(at place, name string, args []string) {
	in, ok := language(name)
	if !ok {
		if open(args) > 0 || slices.Contains(wordy, name) { // it may take its input for code
			for _, text := range at.input().texts {
				rd.code(at, name, text)
			}
		}
		return
	}
	t := in.tell(args)
	if name == "pwsh" {
		t = tellPowerShell(args)
	}
	for _, text := range t.codes {
		rd.code(at, name, text)
	}
	for _, f := range t.files {
		if other, ok := at.descriptor(f); ok && other.kind == inText {
			for _, text := range other.texts {
				rd.code(at, name, text)
			}
			continue
		}
		rd.file(File{Names: []string{f}})
	}
	for _, m := range t.modules {
		dir := strings.ReplaceAll(m, ".", "/")
		rd.file(File{Names: []string{dir + ".py", dir + "/__main__.py", dir + "/__init__.py"}})
	}
	if len(t.codes)+len(t.files)+len(t.modules) > 0 && !in.settings || in.first {
		return
	}
	switch stdin := at.input(); stdin.kind {
	case inText:
		for _, text := range stdin.texts {
			rd.code(at, name, text)
		}
	case inFile:
		if !in.settings {
			rd.file(File{Names: stdin.names})
		}
	case inUnknown:
		if !in.settings {
			rd.sources(at, stdin.from)
		}
	}
}

// tellPowerShell takes the words of PowerShell apart.
func tellPowerShell(args []string) (t told) {
	for i := 1; i < len(args); i++ {
		switch w := strings.ToLower(args[i]); {
		case strings.HasPrefix("-command", w) && len(w) > 1 && i+1 < len(args):
			t.codes = append(t.codes, strings.Join(args[i+1:], " "))
			return t
		case strings.HasPrefix("-encodedcommand", w) && len(w) > 1:
			return t
		case strings.HasPrefix("-file", w) && len(w) > 1 && i+1 < len(args):
			t.files = append(t.files, args[i+1])
			return t
		case !strings.HasPrefix(w, "-"):
			t.files = append(t.files, args[i])
			return t
		}
	}
	return t
}

// code notes a text in another language.
func (rd *reader) code(at place, by, text string) {
	if text == "" || len(rd.reading.codes) >= maxStarts || len(text) > maxScript {
		return
	}
	at.maybe = true
	rd.reading.codes = append(rd.reading.codes, code{text, by, at})
}

// projectFiles are the files in the current directory that programs read without being told. Those
// with a directory take it as the value of an option.
var projectFiles = sync.OnceValue(func() map[string][]string {
	make := []string{"GNUmakefile", "makefile", "Makefile"}
	npm := []string{"package.json"}
	compose := []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}
	return map[string][]string{
		"make": make, "gmake": make, "bmake": make, "remake": make,
		"npm": npm, "pnpm": npm, "yarn": npm, "bun": npm, "turbo": {"turbo.json"}, "nx": {"nx.json"}, "gulp": {"gulpfile.js"}, "grunt": {"Gruntfile.js"},
		"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml"}, "mage": {"magefile.go"}, "rake": {"Rakefile"},
		"invoke": {"tasks.py"}, "inv": {"tasks.py"}, "fab": {"fabfile.py"}, "nox": {"noxfile.py"}, "tox": {"tox.ini", "tox.toml", "pyproject.toml"}, "doit": {"dodo.py"},
		"scons": {"SConstruct"}, "waf": {"wscript"}, "meson": {"meson.build"}, "ant": {"build.xml"}, "mvn": {"pom.xml"}, "gradle": {"build.gradle", "build.gradle.kts"},
		"docker-compose": compose, "vagrant": {"Vagrantfile"}, "cmake": {"CMakeLists.txt"}, "ctest": {"CTestTestfile.cmake"}, "ninja": {"build.ninja"}, "b2": {"Jamroot"},
		"lerna": npm, "npm-run-all": npm, "run-s": npm, "run-p": npm, "earthly": {"Earthfile"}, "foreman": {"Procfile"}, "honcho": {"Procfile"}, "overmind": {"Procfile"},
	}
})

// quietProjects are commands of such programs that run nothing of the project.
const quietProjects = " --version --help -v -h help ls list view info audit outdated why config root bin whoami search fund docs repo bugs ping star "

// project notes what a program reads that is not named on its command line.
func (rd *reader) project(name string, args []string) {
	names, ok := projectFiles()[name]
	if !ok {
		return
	}
	dir, named := "", false
	for i := 1; i < len(args); i++ {
		w := args[i]
		value := ""
		switch {
		case i == 1 && strings.Contains(quietProjects, " "+w+" "):
			return
		case slices.Contains([]string{"-C", "--directory", "-f", "--file", "--makefile", "--justfile", "-P", "--prefix", "--cwd", "-S"}, w) && i+1 < len(args):
			i++
			value = args[i]
		case strings.HasPrefix(w, "--"):
			_, value, _ = strings.Cut(w, "=")
			w, _, _ = strings.Cut(w, "=")
		case len(w) > 2 && (strings.HasPrefix(w, "-C") || strings.HasPrefix(w, "-f")):
			w, value = w[:2], w[2:]
		}
		switch {
		case value == "":
		case w == "-f" || w == "--file" || w == "--makefile" || w == "--justfile" || w == "-P" && name == "cmake":
			named = true
			rd.file(File{Names: []string{path.Join(dir, value)}})
		case w == "-C" || w == "--directory" || w == "--prefix" || w == "--cwd" || w == "-S":
			if path.IsAbs(value) {
				dir = value
			} else {
				dir = path.Join(dir, value)
			}
		}
	}
	if named {
		return
	}
	at := make([]string, len(names))
	for i, n := range names {
		at[i] = path.Join(dir, n)
	}
	rd.file(File{Names: at, Project: true})
}
