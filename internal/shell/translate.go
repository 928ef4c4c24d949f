// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// Profile is a user's shell with what its start needs.
type Profile struct {
	Shell
	// RC is the start file of interactive shells, such as ~/.bashrc, loaded
	// before the command. Empty loads none; the caller checks that it exists.
	RC string
	// Bash is a bash on a machine whose user has PowerShell, for scripts that
	// are written for bash. Empty means there is none.
	Bash string
}

// TranslateForProfile returns the argument vector that runs argv through the
// user's own shell. It is the rule of the earliest public exec tools, kept for
// their preset: only when the user's shell is PowerShell or useProfile is true
// is anything changed, and where nothing better can be said argv comes back as
// it is. Approvals are about the argv given, not about the result.
//
//   - bash and zsh: a login shell loads RC, then runs the command in a subshell.
//   - PowerShell: ["bash", "-lc", script] runs in Bash if there is one, else the
//     script is tried in PowerShell, whose complaint then tells the model where
//     it is. Another command that is not PowerShell already becomes its script.
//
// The result may share memory with argv, which is not changed.
func TranslateForProfile(argv []string, user Profile, useProfile bool) []string {
	if len(argv) == 0 || (user.Kind != PowerShell && !useProfile) {
		return argv
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return argv // no script can hold it
		}
	}
	script, isBash := bashScript(argv)
	switch user.Kind {
	case Bash, Zsh:
		if !isBash {
			script = join(argv, quotePOSIX)
		}
		if user.RC != "" {
			// The newline keeps a comment at the end from eating the bracket.
			script = "source " + quotePOSIX(user.RC) + " && (" + script + "\n)"
		}
		return []string{user.Path, "-lc", script}
	case PowerShell:
		switch {
		case isBash && user.Bash != "":
			return []string{user.Bash, "-lc", script}
		case isBash:
		case argv[0] == user.Path || KindOf(argv[0]) == PowerShell:
			return argv
		default:
			script = join(argv, quotePowerShell)
			if strings.HasPrefix(script, "'") {
				script = "& " + script // else it would be a string, not a call
			}
		}
		return []string{user.Path, "-NoProfile", "-Command", script}
	}
	return argv
}

// bashScript returns the script of exactly ["bash", "-lc", script], the form in
// which models write their commands.
func bashScript(argv []string) (string, bool) {
	if len(argv) == 3 && argv[0] == "bash" && argv[1] == "-lc" {
		return argv[2], true
	}
	return "", false
}

func join(argv []string, quote func(string) string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = quote(arg)
	}
	return strings.Join(words, " ")
}

// plain reports whether s is one word in every shell: letters, digits and a few
// signs that none of them gives a meaning inside a word.
func plain(s, more string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("_./:-", c) >= 0:
		case strings.IndexByte(more, c) >= 0:
		default:
			return false
		}
	}
	return true
}

func quotePOSIX(s string) string {
	if plain(s, "%+") && !reserved(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reserved reports whether an unquoted word may be grammar instead of the name
// of a program (bash(1), "reserved words").
func reserved(s string) bool {
	switch s {
	case "if", "then", "elif", "else", "fi", "time", "for", "in", "until", "while", "do", "done",
		"case", "esac", "coproc", "select", "function", "foreach", "end", "repeat", "nocorrect":
		return true
	}
	return false
}

// quotePowerShell doubles every kind of single quote, because PowerShell takes
// the typographic ones (U+2018 to U+201B) for the plain one.
func quotePowerShell(s string) string {
	if plain(s, `\`) {
		return s
	}
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		if r == '\'' || (r >= 0x2018 && r <= 0x201b) {
			b.WriteRune(r)
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}
