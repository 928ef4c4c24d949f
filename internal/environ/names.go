// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Core returns the names that InheritCore inherits on a system, in the words of
// GOOS; empty means a Unix. They are patterns in the sense of [Match]. On a Unix
// they are those of [PeerCore] and what programs need to talk to a terminal in
// the user's language and time zone.
func Core(system string) []string {
	core := PeerCore(system)
	if system == "windows" {
		return core
	}
	return append(core, "LC_*", "TERM", "COLORTERM", "TZ")
}

// PeerCore returns the names that "core" means in the configuration and the
// protocol of Codex, for compatibility with peers that count on exactly those.
// The system is given in the words of GOOS; empty means a Unix.
func PeerCore(system string) []string {
	if system == "windows" {
		return []string{
			"PATH", "PATHEXT", "SHELL", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE",
			"USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
			"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PROGRAMDATA",
			"LOCALAPPDATA", "APPDATA", "TEMP", "TMP", "TMPDIR", "POWERSHELL", "PWSH",
		}
	}
	return []string{
		"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG",
		"LC_ALL", "LC_CTYPE", "LOGNAME", "USER",
	}
}

// LooksSecret reports whether a name looks like that of a secret: it contains
// KEY, SECRET or TOKEN in any letter case. It is a guess about names; values are
// not looked at.
func LooksSecret(name string) bool {
	upper := strings.ToUpper(name)
	return strings.Contains(upper, "KEY") || strings.Contains(upper, "SECRET") || strings.Contains(upper, "TOKEN")
}

// Forbidden reports whether no command ever gets a variable of this name,
// whatever the policy says: the two that carry the identity of an agent's own
// model account. Letter case does not matter.
func Forbidden(name string) bool {
	return strings.EqualFold(name, "OPENAI_FEDERATION_RULE_ID") ||
		strings.EqualFold(name, "OPENAI_IDENTITY_TOKEN_FILE")
}

// Match reports whether a whole name matches pattern, in which '*' stands for
// any characters, also none, and '?' for exactly one. Everything else stands for
// itself; letter case does not matter. Its time grows with the product of the
// lengths at worst, never faster.
func Match(pattern, name string) bool { return compile(pattern).match(name) }

// glob is a pattern in upper case.
type glob string

func compile(pattern string) glob { return glob(strings.ToUpper(pattern)) }

func compileAll(patterns []string) []glob {
	var out []glob
	for _, p := range patterns {
		out = append(out, compile(p))
	}
	return out
}

func matchAny(globs []glob, name string) bool {
	return slices.ContainsFunc(globs, func(g glob) bool { return g.match(name) })
}

// match walks both strings once. After a mismatch it lets the last '*' take one
// more character; earlier stars never need another try, because the part
// between two of them was matched as early as possible.
func (g glob) match(name string) bool {
	name = strings.ToUpper(name)
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
	return strings.Trim(string(g[gi:]), "*") == ""
}
