// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// git lists git's command without the options before it, and what its settings run.
func (rd *reader) git(at place, args []string) {
	starts := rd.starts(at, args, programs.Git)
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
		case strings.HasPrefix(w, "--config-env"):
			_, value, ok := strings.Cut(w, "=")
			if !ok {
				value = args[min(i+2, len(args)-1)]
			}
			rd.gitVariables(at, value, command)
		case strings.HasPrefix(w, "--exec-path="):
			rd.file(File{Names: []string{w[len("--exec-path="):]}})
		}
	}
	for _, w := range args[1:] { // a remote that is a command
		if _, text, ok := strings.Cut(w, "ext::"); ok {
			rd.external(at, text)
		}
	}
	for _, o := range programs.Options("git " + command[0]) {
		rd.options(at, "git "+command[0], command, o)
	}
	switch words := afterDashes(command[1:]); {
	case command[0] == "remote-ext" && len(words) > 1:
		rd.nested(at, "git remote-ext", words[1], nil)
	case command[0] == "for-each-repo" && len(words) > 0:
		rd.form(at, append([]string{"git"}, words...))
	case command[0] == "merge-index" && len(words) > 0:
		rd.command(at.deeper("git merge-index"), words)
	case (command[0] == "shell" || command[0] == "web--browse") && len(words) > 0:
		rd.nested(at, "git "+command[0], strings.Join(words, " "), nil)
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

// external lists the command of a remote, in which "% " is a blank within a word.
func (rd *reader) external(at place, text string) {
	rd.nested(at, "git ext::", strings.NewReplacer("%%", "%", "% ", `\ `).Replace(text), nil)
}

// gitSetting lists what a setting of git runs. The words of the command line are those behind
// git's own options.
func (rd *reader) gitSetting(at place, setting string, command []string) {
	key, value, _ := strings.Cut(setting, "=")
	if _, text, ok := strings.Cut(setting, "ext::"); ok {
		base, _, _ := strings.Cut(text, ".insteadof")
		base, _, _ = strings.Cut(base, ".insteadOf")
		rd.external(at, base)
	}
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
		if text, sh := strings.CutPrefix(value, "!"); sh {
			rd.nested(at, "git alias", text+" "+programs.QuoteWords(words), nil)
		} else {
			rd.nested(at, "git alias", "git "+value+" "+programs.QuoteWords(words), nil)
		}
	case programs.GitCommand(section + "." + name):
		rd.nested(at, "git "+key, strings.TrimPrefix(value, "!"), nil)
		if key == "credential.helper" || strings.HasPrefix(key, "credential.") {
			rd.nested(at, "git "+key, "git credential-"+value, nil)
		}
	case programs.GitFile(section+"."+name) && value != "":
		rd.codeFile(at, "git", value)
	case strings.Contains(key, Gap) || key == Rest:
		rd.unknown(at, DynamicScript)
	}
}

// gitVariables lists what a setting of git runs whose value is that of a variable.
func (rd *reader) gitVariables(at place, setting string, command []string) {
	key, variable, _ := strings.Cut(setting, "=")
	texts, _, from := at.scope.lookup(variable, at.offset)
	for _, text := range texts {
		rd.gitSetting(at, key+"="+text, command)
	}
	if from == computed || len(texts) == 0 {
		rd.unknown(at, DynamicScript)
	}
}

// gitVariable lists what the settings in variables of git run.
func (rd *reader) gitVariable(at place, name, text string) {
	number, isValue := strings.CutPrefix(name, "GIT_CONFIG_VALUE_")
	switch {
	case name == "GIT_CONFIG_PARAMETERS":
		all := at.words(text)
		if all == nil {
			rd.unknown(at, DynamicScript)
		}
		for _, words := range all {
			for _, w := range words {
				rd.gitSetting(at, w, nil)
			}
		}
	case isValue:
		keys, _, from := at.scope.lookup("GIT_CONFIG_KEY_"+number, at.offset)
		for _, key := range keys {
			rd.gitSetting(at, key+"="+text, nil)
		}
		if from == computed || len(keys) == 0 {
			rd.unknown(at, DynamicScript)
		}
	}
}
