// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// options lists the commands in the values of options. The words behind may be theirs.
func (rd *reader) options(at place, name string, args []string, o scriptOption) {
	for i, w := range args[1:] {
		if w == "--" && o.kind != aTarAction {
			return
		}
		var value string
		var found, inline bool
		if strings.HasPrefix(w, "--") {
			w, value, inline = strings.Cut(w, "=")
			found = len(w) > 3 && slices.ContainsFunc(o.long, func(l string) bool { return strings.HasPrefix(l, w[2:]) })
		} else if len(w) > 1 && w[0] == '-' {
			if letter := strings.IndexAny(w[1:], o.short); letter >= 0 && o.short != "" {
				value, found = w[letter+2:], true
				inline = value != ""
			} else if slices.Contains(o.long, w[1:]) && len(w) > 2 {
				found = true // of programs that write long options with one dash
			} else if key, v, ok := strings.Cut(w[1:], "="); ok && slices.Contains(o.long, key) {
				value, found, inline = v, true, true
			}
		}
		if !found || !inline && o.glued {
			continue
		}
		after := args[i+2:]
		if !inline && len(after) > 0 {
			value, after = after[0], after[1:]
		}
		rd.option(at, name, value, after, o.kind)
	}
}

// option lists the commands in the value of one option.
func (rd *reader) option(at place, name, value string, after []string, kind valueKind) {
	switch kind {
	case aScript:
		if name == "gcc" {
			value = strings.ReplaceAll(value, ",", " ")
		}
		rd.nested(at, name, value+" "+quoted(after), nil)
	case aTarAction:
		rd.nested(at, name, strings.TrimPrefix(value, "exec="), nil)
	case anSSHSetting:
		rd.sshSetting(at, name, value)
	case aGitSetting:
		rd.gitSetting(at, value, nil)
	case aCodeFile:
		if value != "" {
			rd.file(File{Names: []string{value}})
		}
	case someCode:
		rd.code(at, name, value)
	}
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
	if dynamic(key) || key == "" && dynamic(line) {
		rd.unknown(at, DynamicScript)
	}
	switch key = strings.ToLower(strings.TrimSpace(key)); {
	case sshCommands[key]:
		value = strings.TrimSpace(strings.TrimLeft(value, blank+"="))
		value = percents().ReplaceAllString(value, Gap) // names of hosts and users
		rd.nested(at, name, value, nil)
		if text, ok := strings.CutPrefix(value, `"`); ok {
			rd.nested(at, name, strings.TrimSuffix(text, `"`), nil)
		}
	case key == "include" || key == "pkcs11provider" || key == "securitykeyprovider":
		rd.file(File{Names: []string{strings.Trim(value, blank+`="`)}})
	}
}

// percents are what ssh replaces in commands.
var percents = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[A-Za-z]`) })

// oldLetters lists what tar runs by options that are written without a dash: their values are the
// words behind, in the order of the letters.
func (rd *reader) oldLetters(at place, name string, args []string) {
	if len(args) < 2 || strings.HasPrefix(args[1], "-") {
		return
	}
	next := 2
	for i := range len(args[1]) {
		c := args[1][i]
		if strings.IndexByte("bCfFgHIKLNTVX", c) < 0 || next >= len(args) {
			continue
		}
		if c == 'I' || c == 'F' {
			rd.nested(at, name, args[next], nil)
		}
		next++
	}
}

// socat lists the commands in addresses of socat.
func (rd *reader) socat(at place, words []string) {
	for _, w := range words {
		for _, part := range strings.Split(w, "!!") {
			kind, text, ok := strings.Cut(part, ":")
			switch strings.ToLower(kind) {
			case "exec", "system", "shell", "exec1", "shell1":
				if ok {
					rd.nested(at, "socat", text, nil)
					command, _, _ := strings.Cut(text, ",")
					rd.nested(at, "socat", command, nil)
				}
			}
		}
	}
}
