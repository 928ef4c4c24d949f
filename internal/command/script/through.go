// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// through lists what a command with a base name runs.
func (rd *reader) through(at place, name string, args []string) {
	if programs.IsShell(name) {
		rd.shell(at, name, args)
		return
	}
	for _, o := range programs.Options(name) {
		rd.options(at, name, args, o)
	}
	if p, ok := programs.Launching(name); ok {
		rd.program(at, name, args, p)
	}
	for _, s := range programs.Subcommands(name, args) {
		rd.program(at, name+" "+s.Name, args[s.At:], s.Launcher)
	}
	if words := programs.Finding(name); words != nil {
		rd.finder(at, name, args, words)
	}
	rd.interpreter(at, name, args)
	rd.project(at, name, args)
	if !rd.builtin(at, name, args) {
		rd.special(at, name, args)
	}
	if sub, ok := strings.CutPrefix(name, "git-"); ok && sub != "" {
		rd.form(at, append([]string{"git", sub}, args[1:]...))
	}
}

// builtin lists what builtins of shells run.
func (rd *reader) builtin(at place, name string, args []string) bool {
	switch name {
	case "alias":
		rd.alias(at, args[1:])
	case "bind":
		for _, w := range args[1:] {
			if _, text, ok := strings.Cut(w, ":"); ok {
				rd.settings(at, name, text)
			}
		}
	case "declare", "export", "local", "readonly", "typeset":
		rd.sets(at, args[1:])
	case "eval":
		rd.eval(at, args[1:])
	case "hash":
		if len(args) == 4 && args[1] == "-p" {
			rd.alias(at, []string{args[3] + "=" + args[2]})
		}
	case "jobs":
		if words := args[1:]; len(words) > 1 && words[0] == "-x" {
			rd.command(at.deeper(name), afterDashes(words))
		}
	case "source", ".":
		rd.source(at, args)
	case "trap":
		if words := afterDashes(args[1:]); len(words) > 1 {
			rd.eval(at, words[:1])
		}
	default:
		return false
	}
	return true
}

// special lists what programs run that have a grammar of their own.
func (rd *reader) special(at place, name string, args []string) {
	switch name {
	case "at", "batch", "newgrp":
		rd.input(at, name, nil)
	case "cmake":
		rd.cmake(at, args)
	case "crontab":
		rd.crontab(at, name)
	case "busybox", "toybox":
		if len(args) > 1 {
			rd.command(at.deeper(name), args[1:])
		}
	case "capsh":
		if i := slices.IndexFunc(args, func(w string) bool { return w == "--" || w == "==" }); i > 0 {
			rd.shell(at, name, append([]string{"bash"}, args[i+1:]...))
		}
	case "make", "gmake":
		rd.make(at, name, args)
	case "script":
		rd.typescript(at, name, args)
	case "tmux":
		if len(args) > 2 && args[1] == "-c" {
			rd.nested(at, name, args[2], nil)
		}
	case "sg":
		if len(args) > 2 && args[2] != "-c" {
			rd.nested(at, name, strings.Join(args[2:], " "), nil)
		}
	case "socat":
		for _, text := range programs.Socat(args[1:]) {
			rd.nested(at, name, text, nil)
		}
	case "tar", "gtar", "bsdtar":
		for _, text := range programs.OldTar(args) {
			rd.nested(at, name, text, nil)
		}
	case "xargs", "gxargs":
		rd.xargs(at, name, args)
	case "watch":
		rd.watch(at, name, args)
	case "parallel":
		rd.parallel(at, name, args)
	case "git":
		rd.git(at, args)
	case "rm", "grm":
		rd.rm(at, args)
	}
}

// crontab lists the commands of a table of cron from the standard input.
func (rd *reader) crontab(at place, name string) {
	for _, text := range at.input().texts {
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(line, "#") {
				rd.nested(at, name, strings.Join(fields[min(5, len(fields)-1):], " "), nil)
				rd.nested(at, name, strings.Join(fields[1:], " "), nil) // behind @daily
			}
		}
	}
}

// make lists what variables of make may be: commands.
func (rd *reader) make(at place, name string, args []string) {
	rd.sets(at, args[1:])
	for _, w := range args[1:] {
		if key, value, ok := strings.Cut(w, "="); ok && !strings.HasPrefix(key, "-") {
			rd.settings(at, name, value)
		}
	}
}

// parallel lists the commands of parallel, of which any word may be a script.
func (rd *reader) parallel(at place, name string, args []string) {
	starts, more := programs.AnyWord(args, 1)
	if more {
		rd.limit(at, TooMany)
	}
	for _, i := range starts { // any word may be a script
		rd.nested(at, name, strings.ReplaceAll(args[i], "{}", Gap), nil)
	}
	if len(starts) < 2 && !slices.Contains(args, ":::") {
		rd.unknown(at, StandardInput)
	}
}

// typescript lists the command of script.
func (rd *reader) typescript(at place, name string, args []string) {
	if i := slices.Index(args, "--"); i > 0 {
		rd.command(at.deeper(name), args[i+1:])
	} else if words := afterDashes(args[1:]); len(words) > 1 {
		rd.perhaps(at.deeper(name), words[1:]) // of the systems that have no -c
	}
}

// watch lists the command of watch, which hands its words to a shell.
func (rd *reader) watch(at place, name string, args []string) {
	for _, i := range rd.starts(at, args, programs.Watch) {
		rd.nested(at, name, strings.Join(args[i:], " "), nil)
		rd.command(at.deeper(name), args[i:])
	}
}

// form lists another spelling of a command, and what that runs.
func (rd *reader) form(at place, args []string) {
	if rd.list(at, args, true) {
		rd.through(at, path.Base(args[0]), args)
	}
}

func afterDashes(words []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		done := words[0] == "--"
		if words = words[1:]; done {
			break
		}
	}
	return words
}

// program lists the command that a program's words end with.
func (rd *reader) program(at place, name string, args []string, p programs.Launcher) {
	if p.Idle(args) {
		return
	}
	in := at.deeper(name)
	in.maybe = in.maybe || p.Apart
	if p.Assigns {
		in.scope = &scope{outer: at.scope, at: at.offset}
	}
	starts := rd.starts(in, args, p)
	if p.Script && len(starts) > 0 {
		rd.nested(in, name, strings.Join(args[starts[0]:], " "), nil)
		for _, i := range starts {
			rd.nested(in, name, args[i], nil)
		}
	}
	if len(starts) == 0 && p.Shell && at.input().kind != inInherited {
		rd.input(at, name, []string{})
	}
	for _, i := range starts {
		if p.Assigns {
			rd.assigned(in)
		}
		rd.command(in, args[i:])
	}
}

// assigned lists the commands in variables that the command line sets.
func (rd *reader) assigned(at place) {
	for _, name := range slices.Sorted(maps.Keys(at.scope.vars)) {
		for _, a := range at.scope.vars[name].assigned {
			for _, text := range a.fixed {
				rd.value(at, name, text)
			}
		}
	}
}

// cmake lists the command of cmake -E.
func (rd *reader) cmake(at place, args []string) {
	i := slices.Index(args, "-E")
	if i < 0 || i+1 >= len(args) {
		return
	}
	if l, ok := programs.CMake[args[i+1]]; ok {
		rd.program(at, "cmake -E "+args[i+1], args[i+1:], l)
	}
}

// sets lists the commands in variables that words set.
func (rd *reader) sets(at place, words []string) {
	for _, w := range words {
		if name, text, ok := strings.Cut(w, "="); ok {
			rd.value(at, name, text)
		}
	}
}

// settings lists a command that a program may run, which is not sure.
func (rd *reader) settings(at place, through, text string) {
	in := at
	in.maybe = true
	rd.nested(in, through, text, nil)
}

// perhaps lists words that may be a command.
func (rd *reader) perhaps(at place, words []string) {
	at.maybe = true
	rd.command(at, words)
}

// starts returns where the command may begin in the words of a program. Variables that they
// set are those of the scope of at.
func (rd *reader) starts(at place, args []string, p programs.Launcher) []int {
	starts, sets, more := p.Starts(args)
	for _, w := range sets {
		name, value, _ := strings.Cut(w, "=")
		at.scope.assign(name, assignment{fixed: []string{value}})
	}
	if more {
		rd.limit(at, TooMany)
	}
	return starts
}

// shell lists the commands of the script of a shell.
func (rd *reader) shell(at place, name string, args []string) {
	script, file, odd := false, true, false
	if text, ok := wrapperScript(args); ok && (strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")) {
		rd.nested(at, name+" -c", text, []string{}) // what shells take for one more option
	}
	i := 1
	for ; i < len(args); i++ {
		w := args[i]
		if w == Rest {
			rd.unknown(at, DynamicScript)
			odd = true
			continue
		}
		if w == "--" || w == "-" {
			i++
			break
		}
		if len(w) < 2 || w[0] != '-' && w[0] != '+' {
			break
		}
		switch long := strings.HasPrefix(w, "--"); {
		case w == "--version" || w == "--help":
			return
		case w == "--rcfile" || w == "--init-file" || w == "--emulate":
			if i++; i < len(args) && w != "--emulate" {
				rd.scriptFile(at, args[0], args[i:i+1])
			}
		case name == "fish" && strings.HasPrefix(w, "-C"):
			text := w[2:]
			if i++; text != "" {
				i--
			} else if i < len(args) {
				text = args[i]
			}
			rd.nested(at, name, text, []string{})
		case strings.HasPrefix(w, "--c") && strings.Contains(w, "="), strings.HasPrefix(w, "--init-command="),
			strings.HasPrefix(w, "--execute="):
			_, text, _ := strings.Cut(w, "=")
			rd.nested(at, name, text, []string{})
			odd = true
		case long && !slices.Contains([]string{"--login", "--norc", "--noprofile", "--posix", "--restricted",
			"--verbose", "--noediting"}, w):
			odd = true
		case !long:
			letters := w[1:]
			script = script || strings.Contains(letters, "c")
			file = file && !strings.Contains(letters, "s")
			if strings.ContainsAny(letters, "oO") {
				i++ // the name of an option
				odd = odd || len(letters) > 1
			}
			odd = odd || programs.Dynamic(w)
		}
	}
	words := args[min(i, len(args)):]
	switch {
	case script:
		rd.scripts(at, name, args, words, odd)
	case file && len(words) > 0: // a file, which is a program like others
		rd.scriptFile(at, name, words)
	default:
		rd.input(at, name, append([]string{name}, words...))
	}
}

// scripts lists the commands of the script behind -c. Where the options are odd, any word
// behind the first may be it.
func (rd *reader) scripts(at place, name string, args, words []string, odd bool) {
	if odd {
		for i, w := range args[1:] {
			if !strings.HasPrefix(w, "-") {
				rd.nested(at, name+" -c", w, append([]string{}, args[i+2:]...))
			}
		}
	} else if len(words) > 0 {
		rd.nested(at, name+" -c", words[0], append([]string{}, words[1:]...))
	}
}

// scriptFile lists the commands of a script in a file, where the file is a descriptor. The words
// are the file and its arguments.
func (rd *reader) scriptFile(at place, name string, words []string) {
	if in, ok := at.descriptor(words[0]); ok && !programs.Dynamic(words[0]) {
		at.stdin = in
		rd.input(at, name, words)
		return
	}
	if words[0] == Gap || words[0] == Rest || programs.Dynamic(words[0]) &&
		(strings.HasPrefix(words[0], "/dev/") || strings.HasPrefix(words[0], "/proc/")) {
		rd.unknown(at, DynamicScript)
		return
	}
	rd.file(File{Names: words[:1]})
}

// input lists the commands of a script from the standard input.
func (rd *reader) input(at place, name string, words []string) {
	in := at.input()
	switch in.kind {
	case inText:
		for _, text := range in.texts {
			rd.nested(at, name, text, words)
		}
	case inFile:
		for _, f := range in.names {
			rd.file(File{Names: []string{f}})
		}
	default:
		rd.unknown(at, StandardInput)
		rd.sources(at, in.from)
	}
}

// eval lists the commands of words that the same shell reads again.
func (rd *reader) eval(at place, words []string) {
	in := at.deeper("eval")
	in.scope = &scope{outer: at.scope, at: at.offset}
	rd.script(in, strings.Join(afterDashes(words), " "))
}

// source lists the commands of a file, where the file is the standard input.
func (rd *reader) source(at place, args []string) {
	if words := afterDashes(args[1:]); len(words) > 0 {
		rd.scriptFile(at, args[0], words[:1])
	}
}

// alias notes aliases and lists the commands of their values.
func (rd *reader) alias(at place, words []string) {
	top := at.scope.top()
	for _, w := range words {
		if name, text, ok := strings.Cut(w, "="); ok {
			if top.aliases == nil {
				top.aliases = map[string][]string{}
			}
			if !slices.Contains(top.aliases[name], text) {
				top.aliases[name] = append(top.aliases[name], text)
				rd.nested(at, "alias", text, nil)
			}
		}
	}
}

// xargs lists the command of xargs with the words of its standard input.
func (rd *reader) xargs(at place, name string, args []string) {
	mark, split := programs.XargsMark(args)
	for _, i := range rd.starts(at, args, programs.Xargs) {
		in := at.deeper(name)
		in.stdin = input{kind: inFile} // /dev/null
		if mark != "" {
			rd.command(in, replaced(args[i:], mark, Gap))
		}
		if at.stdin.kind != inText || mark != "" || !split {
			rd.command(in, append(slices.Clip(args[i:]), Rest))
			if mark == "" {
				continue
			}
		}
		for _, text := range at.stdin.texts {
			rd.command(in, append(slices.Clip(args[i:]), strings.Fields(text)...))
			for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
				if mark != "" {
					rd.command(in, replaced(args[i:], mark, strings.TrimSpace(line)))
				}
			}
		}
	}
}

// replaced puts text in the place of a mark.
func replaced(args []string, mark, text string) []string {
	out := make([]string, len(args))
	for i, w := range args {
		out[i] = strings.ReplaceAll(w, mark, text)
	}
	return out
}

// finder lists the commands of find -exec and its kind.
func (rd *reader) finder(at place, name string, args, words []string) {
	for i, w := range args {
		if i == 0 {
			continue
		}
		command := args[i+1:]
		glued := slices.IndexFunc(words, func(o string) bool {
			return strings.HasPrefix(o, "--") && strings.HasPrefix(w, o+"=") || len(o) == 2 && len(w) > 2 &&
				strings.HasPrefix(w, o)
		})
		if glued >= 0 {
			first := strings.TrimPrefix(w[len(words[glued]):], "=")
			command = append(append([]string{}, strings.Fields(first)...), command...)
		} else if !slices.Contains(words, w) && !programs.Dynamic(w) {
			continue
		}
		if len(command) == 0 {
			continue
		}
		if end := slices.IndexFunc(command, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
			command = command[:end]
		}
		in := at.deeper(name)
		in.stdin = input{kind: inFile}
		rd.command(in, replaced(command, "{}", Gap))
	}
}

// rm lists the usual spellings of the options of rm.
func (rd *reader) rm(at place, args []string) {
	recursive, force, operands := programs.RmOptions(args)
	var options []string
	switch {
	case recursive && force:
		options = []string{"-rf", "-fr"}
	case recursive:
		options = []string{"-r", "-R"}
	case force:
		options = []string{"-f"}
	}
	for _, o := range options {
		rd.list(at, append([]string{args[0], o}, operands...), true)
	}
}
