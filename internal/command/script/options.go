// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"regexp"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// options lists the commands in the values of options. The words behind may be theirs.
func (rd *reader) options(at place, name string, args []string, o programs.Option) {
	for _, v := range o.Values(args) {
		rd.option(at, name, v.Text, v.After, o.Kind)
	}
}

// option lists the commands in the value of one option.
func (rd *reader) option(at place, name, value string, after []string, kind programs.Kind) {
	switch kind {
	case programs.ScriptValue:
		switch name {
		case "gcc", "g++", "cc", "c++", "clang":
			value = strings.ReplaceAll(value, ",", " ")
		case "env":
			value = splitString(value)
		}
		rd.nested(at, name, value+" "+programs.QuoteWords(after), nil)
	case programs.TarAction:
		rd.nested(at, name, strings.TrimPrefix(value, "exec="), nil)
	case programs.SSHSetting:
		rd.sshSetting(at, name, value)
	case programs.GitSetting:
		rd.gitSetting(at, value, nil)
	case programs.CodeFile:
		if value != "" {
			rd.codeFile(at, name, value)
		}
	case programs.AptSetting:
		if key, text, _ := strings.Cut(value, "="); programs.AptCommand(strings.ToLower(key)) {
			rd.nested(at, name, text, nil)
		}
	case programs.ApartValue:
		_, text, _ := strings.Cut(value, "=")
		rd.settings(at, name, value)
		rd.settings(at, name, text)
	case programs.SomeCode:
		rd.code(at, name, value)
	}
}

// splitString returns what env(1) runs by the value of -S, as a script. That may begin with further options.
func splitString(value string) string {
	blanks := strings.NewReplacer(`\\`, `\\`, `\_`, " ", `\t`, " ", `\n`, " ", `\r`, " ", `\f`,
		" ", `\v`, " ")
	value = strings.TrimLeft(blanks.Replace(value), " \t\r\n\f\v")
	if strings.HasPrefix(value, "-") {
		return "env " + value
	}
	return value
}

// sshSetting lists the command of a line of the configuration of ssh, in which the keyword may
// have quotes, and blanks before it.
func (rd *reader) sshSetting(at place, name, line string) {
	const blank = " \t\r\n\f"
	line = strings.TrimLeft(line, blank)
	var key, value string
	if text, ok := strings.CutPrefix(line, `"`); ok {
		key, value, _ = strings.Cut(text, `"`)
	} else if i := strings.IndexAny(line, blank+"="); i >= 0 {
		key, value = line[:i], line[i:]
	}
	if programs.Dynamic(key) || key == "" && programs.Dynamic(line) {
		rd.unknown(at, DynamicScript)
	}
	switch key = strings.ToLower(strings.TrimSpace(key)); {
	case programs.SSHCommand(key):
		value = strings.TrimSpace(strings.TrimLeft(value, blank+"="))
		value = percents().ReplaceAllString(value, Gap) // names of hosts and users
		rd.nested(at, name, value, nil)
		if text, ok := strings.CutPrefix(value, `"`); ok {
			rd.nested(at, name, strings.TrimSuffix(text, `"`), nil)
		}
	case programs.SSHFile(key):
		rd.file(File{Names: []string{strings.Trim(value, blank+`="`)}})
	}
}

// percents are what ssh replaces in commands.
var percents = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[A-Za-z]`) })
