// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
)

// Carries says what the value of an environment variable has programs run or load, if [RunsCode]
// is true of its name: a script of commands, whose programs are looked up in PATH, and the paths of
// files and directories, which may be relative. Code says that the value is code itself, or leads to
// some in a way that is not known.
func Carries(name, value string) (script string, paths []string, code bool) {
	kind := Holds(name)
	if kind == NoCode || value == "" {
		return "", nil, false
	}
	switch kind {
	case AFunction:
		return "", nil, true
	case GitSettings:
		return "", nil, gitRuns(name, value)
	case APrompt:
		return "", nil, expands(value)
	case AStartup:
		return "", []string{value}, strings.ContainsAny(value, "$`<")
	case ACommand:
		return strings.TrimLeft(value, "|-@ "), nil, false // LESSOPEN
	case SomeOptions:
		words := strings.Fields(value)
		code = expands(value) || slices.ContainsFunc(words, runsOption)
		return "", optionPaths(words), code
	}
	return "", filesOf(name, value), slices.Contains(codeNames, name)
}

// codeNames are variables of files that may hold code as well, and bareNames those whose words
// without a slash are no files of the current directory.
var (
	codeNames = []string{"LUA_INIT", "VIMINIT", "EXINIT", "GVIMINIT", "LESSKEY_CONTENT", "PERL5DB"}
	bareNames = []string{
		"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GTK_MODULES", "PYTHONWARNINGS",
		"PYTHONBREAKPOINT", "CORECLR_PROFILER",
		"PYTHONPLATLIBDIR", "LD_BIND_NOW", "LD_DEBUG", "LD_BIND_NOT", "LD_HWCAP_MASK", "LD_SHOW_AUXV",
		"LD_WARN", "LD_TRACE_LOADED_OBJECTS",
	}
)

// HoldsCode reports whether a variable of files may hold code as well.
func HoldsCode(name string) bool { return slices.Contains(codeNames, name) }

// filesOf returns the paths in the value of a variable that lists files or directories.
func filesOf(name, value string) []string {
	var out []string
	split := func(r rune) bool { return r == ':' || r == ';' || r == ' ' && strings.HasPrefix(name, "LD_") }
	for w := range strings.FieldsFuncSeq(value, split) {
		if strings.Contains(w, "/") || !slices.Contains(bareNames, name) {
			out = append(out, strings.TrimPrefix(w, "@"))
		}
	}
	// An empty element is the current directory.
	if !slices.Contains(bareNames, name) && (value[0] == ':' || value[len(value)-1] == ':' ||
		strings.Contains(value, "::")) {
		out = append(out, ".")
	}
	return out
}

// expands reports whether a shell that expands a text runs commands.
func expands(text string) bool {
	return strings.Contains(text, "$(") || strings.ContainsRune(text, '`') || strings.Contains(text, "@P")
}

// codeOptions begin options, in variables of options, that load code or run a command by a name
// which is no path.
var codeOptions = []string{
	"-r", "-I", "-M", "-m", "-d", "-e", "-E", "-p", "-n", "-x", "-S", "-C", "@", "-f", "-exec", "-toolexec",
	"-overlay", "-modfile", "-agent", "-javaagent",
	"-Xbootclasspath", "-Xrun", "-XX:OnError", "-XX:OnOutOfMemoryError", "-XX:Flags", "-XX:+",
	"-Djava.system.class.loader",
	"--require", "--import", "--loader", "--experimental-loader", "--eval", "--env-file", "--rsh",
	"--to-command", "--checkpoint",
	"--use-compress", "--info-script", "--new-volume", "--rmt", "--preload", "--rootdir", "--confcutdir",
	"--pyargs", "-c", "--override",
}

// plainOptions begin options that would be ones of codeOptions and load nothing.
var plainOptions = []string{"-mod=", "-p=", "-race", "-count", "-XX:+Use", "-XX:+Heap", "-Copt-level",
	"-Ctarget-cpu", "-Cdebuginfo", "-enable"}

// runsOption reports whether an option may load code.
func runsOption(w string) bool {
	begins := func(p string) bool { return strings.HasPrefix(w, p) }
	return slices.ContainsFunc(codeOptions, begins) && !slices.ContainsFunc(plainOptions, begins) ||
		strings.Contains(w, "linker=") || strings.Contains(w, "data:")
}

// optionPaths returns the paths in options: those with a slash, without what comes before "=".
func optionPaths(words []string) []string {
	var out []string
	for _, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok {
			w = value
		}
		if strings.Contains(w, "/") && !strings.Contains(w, "://") {
			out = append(out, w)
		}
	}
	return out
}

// gitPlain begin settings of git, in lower case, that run nothing.
var gitPlain = []string{
	"safe.", "user.", "color.", "advice.", "author.", "committer.", "init.defaultbranch", "core.autocrlf",
	"core.quotepath", "core.longpaths",
	"commit.gpgsign", "tag.gpgsign", "http.sslverify", "http.postbuffer", "pull.", "push.default", "fetch.",
	"protocol.version", "gc.auto",
}

// gitRuns reports whether a variable with settings of git may have git run something.
func gitRuns(name, value string) bool {
	switch {
	case strings.HasPrefix(name, "GIT_CONFIG_KEY_"):
		key := strings.ToLower(value)
		return !slices.ContainsFunc(gitPlain, func(p string) bool { return strings.HasPrefix(key, p) })
	case strings.HasPrefix(name, "GIT_CONFIG_VALUE_"), name == "GIT_CONFIG_COUNT":
		return false // the names decide
	}
	return true
}

// Alters reports whether a variable can have a program of this name, which a rule allows or which
// is known to read only, do something else when it starts.
func Alters(name, program string) bool {
	if !Replaces(name) {
		return name == "PS4" && IsShell(program)
	}
	for _, p := range []struct {
		prefix string
		names  []string
	}{
		{"LD_", nil}, {"DYLD_", nil}, {"GCONV_PATH", nil}, {"LOCPATH", nil}, {"OPENSSL_", nil},
		{"GIT_", []string{"git"}}, {"PYTHON", []string{"python", "pip", "pytest"}}, {"NODE_", []string{"node", "npm", "npx"}},
		{"PERL", []string{"perl"}}, {"RUBY", []string{"ruby"}}, {"RIPGREP_", []string{"rg"}},
	} {
		if strings.HasPrefix(name, p.prefix) {
			return p.names == nil || slices.ContainsFunc(p.names,
				func(n string) bool { return strings.HasPrefix(program, n) })
		}
	}
	return IsShell(program) && (Holds(name) == AStartup || Holds(name) == AFunction || name == "ZDOTDIR" ||
		name == "FPATH")
}
