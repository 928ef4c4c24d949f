// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Core returns the names that InheritCore inherits on a system as in GOOS; empty means a
// Unix. They are patterns. On a Unix they are the names that "core" means in the
// configuration of Codex, and those that programs need to talk to a terminal in the
// user's language and time zone.
func Core(system string) []string {
	if system == "windows" {
		return []string{
			"PATH", "PATHEXT", "SHELL", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE",
			"USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
			"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PROGRAMDATA",
			"LOCALAPPDATA", "APPDATA", "TEMP", "TMP", "TMPDIR", "POWERSHELL", "PWSH",
		}
	}
	return []string{
		"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LOGNAME", "USER",
		"LC_*", "TERM", "COLORTERM", "TZ",
	}
}

// Forbidden reports whether no command gets a variable of this name, whatever the policy
// says: the two that carry the identity of an agent's own model account. Letter case
// does not matter.
func Forbidden(name string) bool {
	return strings.EqualFold(name, "OPENAI_FEDERATION_RULE_ID") ||
		strings.EqualFold(name, "OPENAI_IDENTITY_TOKEN_FILE")
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

// match reports whether a whole name matches a pattern. It walks both strings once:
// after a mismatch the last '*' takes one more character; earlier ones need no other
// try, because the part between two of them was matched as early as possible.
func match(pattern, name string) bool {
	g, name := strings.ToUpper(pattern), strings.ToUpper(name)
	star, retry := -1, 0
	gi, ni := 0, 0
	for ni < len(name) {
		_, size := utf8.DecodeRuneInString(name[ni:])
		switch {
		case gi < len(g) && g[gi] == '*':
			star, retry = gi, ni
			gi++
		case gi < len(g) && g[gi] == '?':
			gi++
			ni += size
		case gi < len(g) && g[gi] == name[ni]:
			gi++
			ni++
		case star >= 0:
			_, step := utf8.DecodeRuneInString(name[retry:])
			retry += step
			gi, ni = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(g[gi:], "*") == ""
}
