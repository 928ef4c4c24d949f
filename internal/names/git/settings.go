// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
)

// A settingKind says what a setting of git names.
type settingKind uint8

const (
	setsDir     settingKind = iota + 1 // a directory of programs, which may be missing
	setsFile                           // a file that chooses programs, which may be missing
	setsProgram                        // a command line
)

// A setting is a path that a configuration names and that git obeys.
type setting struct {
	key, path string // "~" is expanded
	kind      settingKind
}

// settings are the keys of configurations that name what git runs, or what chooses it. A "*"
// stands for a name of the user's. Programs that need a question to a person first are here as
// well: git asks for a password, an editor or a pager in many commands.
var settings = map[string]settingKind{
	"core.hookspath": setsDir, "init.templatedir": setsDir,
	"core.attributesfile": setsFile,
	"core.fsmonitor":      setsProgram, "core.sshcommand": setsProgram, "core.editor": setsProgram, "core.pager": setsProgram,
	"core.askpass": setsProgram, "core.gitproxy": setsProgram, "core.alternaterefscommand": setsProgram, "sequence.editor": setsProgram,
	"gpg.program": setsProgram, "gpg.*.program": setsProgram, "gpg.ssh.defaultkeycommand": setsProgram,
	"credential.helper": setsProgram, "credential.*.helper": setsProgram, "pager.*": setsProgram, "alias.*": setsProgram, "alias.*.command": setsProgram,
	"diff.external": setsProgram, "diff.*.command": setsProgram, "diff.*.textconv": setsProgram, "merge.*.driver": setsProgram,
	"filter.*.clean": setsProgram, "filter.*.smudge": setsProgram, "filter.*.process": setsProgram, "interactive.difffilter": setsProgram,
	"uploadpack.packobjectshook": setsProgram, "remote.*.uploadpack": setsProgram, "remote.*.receivepack": setsProgram,
	"trailer.*.command": setsProgram, "trailer.*.cmd": setsProgram, "tar.*.command": setsProgram, "submodule.*.update": setsProgram,
	"difftool.*.cmd": setsProgram, "difftool.*.path": setsProgram, "mergetool.*.cmd": setsProgram, "mergetool.*.path": setsProgram,
	"browser.*.cmd": setsProgram, "man.*.cmd": setsProgram, "guitool.*.cmd": setsProgram, "sendemail.sendmailcmd": setsProgram, "sendemail.smtpserver": setsProgram,
	"sendemail.tocmd": setsProgram, "sendemail.cccmd": setsProgram, "instaweb.httpd": setsProgram, "hook.*.command": setsProgram,
	"help.browser": setsProgram, "web.browser": setsProgram, "imap.tunnel": setsProgram,
}

// kindOf returns what the setting with a key names, or zero.
func kindOf(key string) settingKind {
	if kind, ok := settings[key]; ok {
		return kind
	}
	section, rest, _ := strings.Cut(key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return settings[section+".*"+rest[i:]]
	}
	return settings[section+".*"]
}

// programWords returns the words of a command line that may be paths: of the program, and of the
// script that an interpreter runs.
func programWords(value string) []string {
	const between = " \t\n;&|()<>\"'`="
	var words []string
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(value, "!"),
		func(r rune) bool { return strings.ContainsRune(between, r) }) {
		// else it is a word, or in PATH
		path := strings.Contains(word, "/") || strings.Contains(strings.Trim(word, "."), ".")
		if path && !strings.HasPrefix(word, "-") && !strings.ContainsAny(word, "$%*") &&
			len(words) < maxWords {
			words = append(words, word)
		}
	}
	return words
}

// maxWords bounds how many words of one command line are looked at.
const maxWords = 16

// setting adds what a setting names, relative to the directory start. A program that is missing
// is left out: builds make programs, and a name that is no path is one in PATH.
func (c *configReader) setting(start string, s setting) {
	why := "named by " + s.key
	switch s.kind {
	case setsDir:
		c.hookDir(start, s.path, "directory that "+s.key+" names")
	case setsFile:
		c.follow(start, s.path, "file that "+s.key+" names")
	case setsProgram:
		at, err := follow(start, s.path)
		if err == nil && !at.missing && at.mode.IsRegular() {
			c.follow(start, s.path, why)
		}
	}
}
