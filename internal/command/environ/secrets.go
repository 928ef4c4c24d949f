// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
)

// A place says where in a name the text of a rule has to be. The words of a name are its
// runs of letters.
type place uint8

const (
	inWord      place = iota // anywhere in a word
	wholeWord                // a word
	lastWord                 // the last word
	acrossWords              // in all letters of the name together
)

// A nameRule is a part of names that look like those of secrets.
type nameRule struct {
	text string
	in   place
}

// secretNames are the parts of names that look like those of secrets. What is not
// innocent by innocentWords or harmlessNames is a secret: an unknown name with such a
// part is withheld.
var secretNames = []nameRule{
	{"KEY", inWord},
	{"SECRET", inWord},
	{"TOKEN", inWord},
	{"PASS", inWord},
	{"PWD", inWord},
	{"PW", lastWord},
	{"CRED", inWord},
	{"AUTH", inWord},
	{"PAT", wholeWord}, // personal access token; PATH and PATTERN are other words
	{"PATS", wholeWord},
	{"SESSION", inWord},
	{"DSN", inWord},
	{"PRIVATE", inWord},
	{"WEBHOOK", acrossWords},
	{"CONNECTIONSTRING", acrossWords},
	{"CONNSTR", acrossWords},
}

// innocentWords contain the text of a rule by chance. Only the word itself is innocent:
// MONKEY is, MONKEY_API_KEY is not.
var innocentWords = []string{
	// KEY: animals, typing, and names of products.
	"BINDKEY", "DONKEY", "DONKEYS", "HOCKEY", "HOTKEY", "HOTKEYS", "JOCKEY", "KEYBIND", "KEYBINDING",
	"KEYBINDINGS",
	"KEYBINDS", "KEYBOARD", "KEYBOARDS", "KEYCLOAK", "KEYCODE", "KEYCODES", "KEYED", "KEYFRAME", "KEYFRAMES",
	"KEYLESS", "KEYMAP", "KEYMAPS", "KEYNOTE", "KEYPAD", "KEYPRESS", "KEYSERVER", "KEYSTONE", "KEYSTROKE",
	"KEYSTROKES", "KEYSYM", "KEYTIMEOUT", "KEYWORD", "KEYWORDS", "LESSKEY", "LESSKEYIN", "MICKEY", "MONKEY",
	"MONKEYPATCH", "MONKEYS", "TURKEY", "WHISKEY",
	// SECRET and TOKEN.
	"SECRETARY", "TOKENIZATION", "TOKENIZE", "TOKENIZED", "TOKENIZER", "TOKENIZERS",
	// PASS, and programs that ask for a password.
	"ASKPASS", "BYPASS", "BYPASSED", "BYPASSES", "COMPASS", "COMPASSION", "ENCOMPASS", "IMPASSE", "MULTIPASS",
	"OVERPASS", "PASSAGE", "PASSAGES", "PASSED", "PASSENGER", "PASSENGERS", "PASSES", "PASSING", "PASSIVE",
	"PASSTHROUGH", "PASSTHRU", "SURPASS", "TRESPASS", "UNDERPASS",
	// PWD: Playwright's switch for debugging.
	"PWDEBUG",
	// CRED.
	"ACCREDITED", "CREDITS", "CREDO", "DISCREDIT", "INCREDIBLE", "INCREDIBUILD", "SACRED",
	// AUTH.
	"AUTHENTICITY", "AUTHOR", "AUTHORED", "AUTHORING", "AUTHORITIES", "AUTHORITY", "AUTHORS", "AUTHORSHIP",
	"COAUTHOR", "COAUTHORS", "ICEAUTHORITY", "XAUTHORITY",
	// SESSION and PRIVATE.
	"OBSESSION", "POSSESSION", "POSSESSIONS", "PRIVATEER",
}

type harmlessName struct{ name, why string }

// harmlessNames are known not to hold a secret, although a rule fits. A '?' stands for
// one character.
var harmlessNames = []harmlessName{
	{"PWD", "the working directory"},
	{"OLDPWD", "the working directory before"},
	{"SSH_AUTH_SOCK", "the path of a socket; the policy decides about connecting"},
	{"XAUTHLOCALHOSTNAME", "a host name"},
	{"XDG_SESSION_CLASS", "a word such as user"},
	{"XDG_SESSION_DESKTOP", "the name of a desktop"},
	{"XDG_SESSION_ID", "a number of logind"},
	{"XDG_SESSION_PATH", "a path on the bus"},
	{"XDG_SESSION_TYPE", "a word such as wayland"},
	{"DBUS_SESSION_BUS_ADDRESS", "the address of a socket; the policy decides about connecting"},
	{"DBUS_SESSION_BUS_PID", "a process id"},
	{"DBUS_SESSION_BUS_WINDOWID", "a window"},
	{"DBUS_LAUNCHD_SESSION_BUS_SOCKET", "the path of a socket"},
	{"DESKTOP_SESSION", "the name of a desktop"},
	{"GDMSESSION", "the name of a desktop"},
	{"GNOME_DESKTOP_SESSION_ID", "a fixed text"},
	{"MATE_DESKTOP_SESSION_ID", "a fixed text"},
	{"KDE_FULL_SESSION", "true"},
	{"KDE_SESSION_UID", "a user id"},
	{"KDE_SESSION_VERSION", "a version"},
	{"KONSOLE_DBUS_SESSION", "a path on the bus"},
	{"LXQT_SESSION_CONFIG", "the name of a configuration"},
	{"SESSION_MANAGER", "the address of a socket"},
	{"SESSIONNAME", "Console, or a name of a remote desktop"},
	{"SECURITYSESSIONID", "a number of macOS"},
	{"SHELL_SESSION_DID_INIT", "1, of Apple's Terminal"},
	{"SHELL_SESSIONS_DISABLE", "1, of Apple's Terminal"},
	{"TERM_SESSION_ID", "a number of a terminal window"},
	{"ITERM_SESSION_ID", "a number of a terminal window"},
	{"WT_SESSION", "a number of a terminal window"},
	{"ZELLIJ_SESSION_NAME", "a name that the user chose"},
	{"ATUIN_SESSION", "a number of a shell"},
	{"MCFLY_SESSION_ID", "a number of a shell"},
	{"POSH_SESSION_ID", "a number of a shell"},
	{"STARSHIP_SESSION_KEY", "a number of a shell"},
	{"GIT_CONFIG_KEY_?", "the name of a setting; without it git fails"},
	{"GIT_CONFIG_KEY_??", "the name of a setting; without it git fails"},
	{"APT_KEY_DONT_WARN_ON_DANGEROUS_USAGE", "a switch in container images"},
	{"PYTHON_KEYRING_BACKEND", "the name of a class"},
	{"TOX_TESTENV_PASSENV", "names of variables"},
	{"GOPRIVATE", "patterns of module paths"},
	{"npm_config_always_auth", "a switch"},
	{"npm_config_auth_type", "a word such as web"},
	{"npm_package_private", "a switch"},
	{"MAX_TOKENS", "a count"},
	{"MAX_OUTPUT_TOKENS", "a count"},
	{"MAX_THINKING_TOKENS", "a count"},
	{"MAX_MCP_OUTPUT_TOKENS", "a count"},
	{"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "a count"},
}

// SecretName reports whether a name looks like that of a secret, in any letter case. It
// does not look at values; see [SecretValue].
func SecretName(name string) bool {
	upper := strings.ToUpper(name)
	words := strings.FieldsFunc(upper, func(r rune) bool { return r < 'A' || r > 'Z' })
	all := strings.Join(words, "")
	return slices.ContainsFunc(secretNames, func(r nameRule) bool {
		return strings.Contains(all, r.text) &&
			r.fits(words)
	}) &&
		!slices.ContainsFunc(harmlessNames, func(h harmlessName) bool { return match(h.name, upper) })
}

// fits reports whether a rule whose text is in the letters of a name fits the words of it.
func (r nameRule) fits(words []string) bool {
	switch r.in {
	case inWord:
		return slices.ContainsFunc(words, func(word string) bool {
			return strings.Contains(word, r.text) && !slices.Contains(innocentWords, word)
		})
	case wholeWord:
		return slices.Contains(words, r.text)
	case lastWord:
		return words[len(words)-1] == r.text
	}
	return true // acrossWords
}
