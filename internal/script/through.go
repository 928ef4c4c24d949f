// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// through lists what a command with a base name runs.
func (rd *reader) through(at place, name string, args []string) {
	if shells()[name] {
		rd.shell(at, name, args)
		return
	}
	if o, ok := scriptOptions()[name]; ok {
		rd.options(at, name, args, o)
	}
	if p, ok := programs()[name]; ok {
		rd.program(at, name, args, p)
	}
	if words, ok := finders()[name]; ok {
		rd.finder(at, name, args, words)
	}
	switch name {
	case "alias":
		rd.alias(at, args[1:])
	case "busybox", "toybox":
		if len(args) > 1 {
			rd.command(at.deeper(name), args[1:])
		}
	case "eval":
		rd.eval(at, args[1:])
	case "hash":
		if len(args) == 4 && args[1] == "-p" {
			rd.alias(at, []string{args[3] + "=" + args[2]})
		}
	case "source", ".":
		rd.source(at, args)
	case "trap":
		if words := afterDashes(args[1:]); len(words) > 1 {
			rd.eval(at, words[:1])
		}
	case "xargs", "gxargs":
		rd.xargs(at, name, args)
	case "watch":
		for _, i := range rd.starts(at, args, watchOptions) {
			rd.nested(at, name, strings.Join(args[i:], " "), nil)
			rd.command(at.deeper(name), args[i:])
		}
	case "parallel":
		starts := rd.rest(at, args, 1)
		for _, i := range starts { // any word may be a script
			rd.nested(at, name, strings.ReplaceAll(args[i], "{}", Gap), nil)
		}
		if len(starts) < 2 && !slices.Contains(args, ":::") {
			rd.unknown(at, StandardInput)
		}
	case "git":
		rd.git(at, args)
	case "rm", "grm":
		rd.rm(at, args)
	}
	if sub, ok := strings.CutPrefix(name, "git-"); ok && sub != "" {
		rd.form(at, append([]string{"git", sub}, args[1:]...))
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
func (rd *reader) program(at place, name string, args []string, p program) {
	for _, w := range args[1:] {
		if p.never != "" && strings.HasPrefix(w, "-") && w != "--" && strings.ContainsAny(w, p.never) {
			return
		}
		if !strings.HasPrefix(w, "-") || w == "--" {
			break
		}
	}
	in := at.deeper(name)
	if p.assigns {
		in.scope = &scope{outer: at.scope, at: at.offset}
	}
	starts := rd.starts(in, args, p)
	if len(starts) == 0 && p.shell && at.stdin.kind != inInherited {
		rd.input(at, name, at.stdin.texts, []string{})
	}
	for _, i := range starts {
		if p.assigns {
			rd.assigned(in)
		}
		rd.command(in, args[i:])
	}
}

// assigned lists the commands in variables that the command line sets.
func (rd *reader) assigned(at place) {
	for _, name := range slices.Sorted(maps.Keys(at.scope.vars)) {
		if commandVariables()[name] {
			for _, a := range at.scope.vars[name].assigned {
				rd.setting(at, name, a.fixed)
			}
		}
	}
}

// starts returns where the command may begin in the words of a program. Variables that they
// set are those of the scope of at.
func (rd *reader) starts(at place, args []string, p program) []int {
	skip := p.skip
	for i := 1; i < len(args); i++ {
		w := args[i]
		switch name, value, cut := strings.Cut(w, "="); {
		case w == Rest, p.loose:
			return rd.rest(at, args, i)
		case w == "--":
			i++
			for p.assigns && i < len(args) && assigns(at, args[i]) {
				i++
			}
			if i += skip; i < len(args) {
				return []int{i}
			}
			return nil
		case strings.HasPrefix(w, "--"):
			if !cut && p.takes(w[2:]) {
				i++
			}
		case len(w) > 1 && w[0] == '-':
			if at := strings.IndexAny(w[1:], p.short); at >= 0 && at+2 == len(w) {
				i++
			}
		case p.assigns && cut && syntax.ValidName(name):
			at.scope.assign(name, assignment{fixed: []string{value}})
		case skip > 0:
			skip--
		default:
			return []int{i}
		}
	}
	return nil
}

// assigns notes a word that sets a variable.
func assigns(at place, word string) bool {
	name, value, ok := strings.Cut(word, "=")
	if ok = ok && syntax.ValidName(name); ok {
		at.scope.assign(name, assignment{fixed: []string{value}})
	}
	return ok
}

// rest returns all positions from i at which a command can begin.
func (rd *reader) rest(at place, args []string, i int) []int {
	var all []int
	for ; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-") {
			continue
		}
		if len(all) == maxStarts {
			rd.limit(at, TooMany)
			break
		}
		all = append(all, i)
	}
	return all
}

// takes reports whether a long option, which may be abbreviated, takes a value.
func (p program) takes(name string) bool {
	return slices.ContainsFunc(p.long, func(o string) bool { return strings.HasPrefix(o, name) })
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
			i++
		case long && !slices.Contains([]string{"--login", "--norc", "--noprofile", "--posix", "--restricted", "--verbose", "--noediting"}, w):
			odd = true
		case !long:
			letters := w[1:]
			script = script || strings.Contains(letters, "c")
			file = file && !strings.Contains(letters, "s")
			if strings.ContainsAny(letters, "oO") {
				i++ // the name of an option
				odd = odd || len(letters) > 1
			}
			odd = odd || dynamic(w)
		}
	}
	words := args[min(i, len(args)):]
	switch {
	case script:
		rd.scripts(at, name, args, words, odd)
	case file && len(words) > 0: // a file, which is a program like others
		if texts := at.stdin.texts; words[0] == "/dev/stdin" || words[0] == "/dev/fd/0" || words[0] == "/proc/self/fd/0" {
			rd.input(at, name, texts, words)
		} else if words[0] == Gap || words[0] == Rest {
			rd.unknown(at, DynamicScript)
		}
	default:
		rd.input(at, name, at.stdin.texts, append([]string{name}, words...))
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

// input lists the commands of a script from the standard input.
func (rd *reader) input(at place, name string, texts, words []string) {
	if at.stdin.kind != inText {
		if at.stdin.kind != inFile {
			rd.unknown(at, StandardInput)
		}
		return
	}
	for _, text := range texts {
		rd.nested(at, name, text, words)
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
		switch words[0] {
		case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
			rd.input(at, args[0], at.stdin.texts, nil)
		case Gap, Rest:
			rd.unknown(at, DynamicScript)
		}
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
	mark := ""
	for i, w := range args[1:] {
		switch {
		case w == "-I" && i+2 < len(args):
			mark = args[i+2]
		case strings.HasPrefix(w, "-I") || strings.HasPrefix(w, "-i"):
			mark = w[2:]
		case strings.HasPrefix(w, "--replace"):
			mark = strings.TrimPrefix(strings.TrimPrefix(w, "--replace"), "=")
		}
		if mark == "" && (w == "-i" || w == "--replace") {
			mark = "{}"
		}
	}
	for _, i := range rd.starts(at, args, xargsOptions) {
		in := at.deeper(name)
		in.stdin = input{kind: inFile} // /dev/null
		if mark != "" {
			rd.command(in, replaced(args[i:], mark, Gap))
		}
		if at.stdin.kind != inText || mark != "" {
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
		if !slices.Contains(words, w) && !dynamic(w) || i == 0 || i+1 == len(args) {
			continue
		}
		command := args[i+1:]
		if end := slices.IndexFunc(command, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
			command = command[:end]
		}
		in := at.deeper(name)
		in.stdin = input{kind: inFile}
		rd.command(in, replaced(command, "{}", Gap))
	}
}

// options lists the commands in the values of options. The words behind may be theirs.
func (rd *reader) options(at place, name string, args []string, o scriptOption) {
	for i, w := range args[1:] {
		var value string
		var found, inline bool
		if strings.HasPrefix(w, "--") {
			w, value, inline = strings.Cut(w, "=")
			found = len(w) > 3 && slices.ContainsFunc(o.long, func(l string) bool { return strings.HasPrefix(l, w[2:]) })
		} else if len(w) > 1 && w[0] == '-' && o.short != "" {
			if letter := strings.IndexAny(w[1:], o.short); letter >= 0 {
				value, found = w[letter+2:], true
				inline = value != ""
			}
		}
		after := args[i+2:]
		if !inline && len(after) > 0 {
			value, after = after[0], after[1:]
		}
		if found && o.prefix == nil {
			rd.nested(at, name, value+" "+quoted(after), nil)
		}
		for _, p := range o.prefix {
			if found && len(value) >= len(p) && strings.EqualFold(value[:len(p)], p) {
				rd.nested(at, name, strings.TrimLeft(value[len(p):], "= "), nil)
			}
		}
	}
}

// git lists git's command without the options before it, and what its settings run.
func (rd *reader) git(at place, args []string) {
	starts := rd.starts(at, args, gitOptions)
	if len(starts) == 0 {
		return
	}
	first := starts[0]
	command := args[first:]
	if first > 1 {
		for _, i := range starts {
			rd.form(at, append([]string{"git"}, args[i:]...))
		}
	}
	for i, w := range args[1:first] {
		switch {
		case w == "-c":
			rd.gitSetting(at, args[i+2], command)
		case strings.HasPrefix(w, "-c"):
			rd.gitSetting(at, w[2:], command)
		}
	}
	rd.options(at, "git "+command[0], command, scriptOptions()["git "+command[0]])
	switch words := afterDashes(command[1:]); {
	case command[0] == "submodule" && len(words) > 1 && words[0] == "foreach":
		rd.nested(at, "git submodule foreach", strings.Join(afterDashes(words[1:]), " "), nil)
	case command[0] == "bisect" && len(words) > 1 && words[0] == "run":
		rd.command(at.deeper("git bisect run"), words[1:])
	case command[0] == "config" && len(words) > 1:
		for i, w := range words[:len(words)-1] {
			rd.gitSetting(at, w+"="+words[i+1], nil)
		}
	}
}

// gitSetting lists what a setting of git runs. The words of the command line are those behind
// git's own options.
func (rd *reader) gitSetting(at place, setting string, command []string) {
	key, value, _ := strings.Cut(setting, "=")
	key = strings.ToLower(key)
	section, name, _ := strings.Cut(key, ".")
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		name = name[dot+1:]
	}
	switch {
	case section == "alias":
		words := []string{}
		if len(command) > 0 && (strings.EqualFold(command[0], strings.TrimPrefix(key, "alias."))) {
			words = command[1:]
		}
		if text, shell := strings.CutPrefix(value, "!"); shell {
			rd.nested(at, "git alias", text+" "+quoted(words), nil)
		} else {
			rd.nested(at, "git alias", "git "+value+" "+quoted(words), nil)
		}
	case gitCommands()[section+"."+name] || section == "pager":
		rd.nested(at, "git "+key, strings.TrimPrefix(value, "!"), nil)
	}
}

// rm lists the usual spellings of the options of rm.
func (rd *reader) rm(at place, args []string) {
	recursive, force, operands := rmOptions(args)
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
