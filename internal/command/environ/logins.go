// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
)

// loginWords are how names end of what is a user name or a password, behind that of a proxy.
var loginWords = []string{
	"user", "username", "user_name", "login", "userpwd", "pass", "passwd", "password", "auth",
	"auth_user", "auth_pass",
	"auth_password", "authorization", "credentials", "userpass",
}

// loginStems are what stands before these words in names of variables, beside the variables of the table.
// Properties of Java (JAVA_TOOL_OPTIONS, _JAVA_OPTIONS, JDK_JAVA_OPTIONS, JAVA_OPTS, MAVEN_OPTS, MAVEN_ARGS,
// GRADLE_OPTS, ANT_OPTS, SBT_OPTS, JVM_OPTS and more) need none of them: their names end in "proxy" or
// "socks" before these words, whichever variable has them.
var loginStems = []string{
	"proxy", "socks", "socks5", "tsocks", "socks_proxy", "socks5_proxy", "cloudsdk_proxy", "cgi_http_proxy",
	"npm_config__proxy", "npm_config_socks_proxy", "ssh_proxy", "cntlm",
}

// WithoutLogins returns the environment without user names and passwords for proxies: a command without a
// network reaches no proxy, and one with a managed network not these. Variables that have nothing else
// go, and so do addresses of proxies with a login; options of Java, settings of git and others lose
// theirs. It does not change env.
func WithoutLogins(env []string) []string {
	out := make([]string, 0, len(env))
	gitKeys := false
	for _, entry := range env {
		lower := strings.ToLower(entry)
		if !strings.Contains(lower, "proxy") && !strings.Contains(lower, "socks") &&
			!strings.HasPrefix(lower, "cntlm") {
			out = append(out, entry)
			continue
		}
		gitKeys = gitKeys || strings.HasPrefix(entry, gitKey)
		name, value, _ := strings.Cut(entry, "=")
		if !isLogin(name) && !isAddressWithLogin(name, value) {
			out = append(out, name+"="+withoutAddressLogins(withoutProperties(value)))
		}
	}
	if gitKeys {
		withoutGitLogins(out)
	}
	return out
}

// isLogin reports whether a variable has a user name or a password for a proxy.
func isLogin(name string) bool {
	name = strings.ToLower(name)
	if property, ok := strings.CutPrefix(name, "org_gradle_project_systemprop."); ok {
		return isLoginProperty(property)
	}
	stem, ok := cutLoginWord(name)
	return ok && (slices.Contains(loginStems, stem) ||
		slices.ContainsFunc(proxyTable, func(r row) bool { return strings.ToLower(r.name) == stem }))
}

// isLoginProperty reports whether a property of Java, in lower case, is a user name or a password for a
// proxy.
func isLoginProperty(name string) bool {
	stem, ok := cutLoginWord(name)
	return ok && (strings.HasSuffix(stem, "proxy") || strings.HasSuffix(stem, "socks") ||
		strings.HasSuffix(stem, "socks5"))
}

// cutLoginWord cuts one of the words off a name in lower case, with what separates it.
func cutLoginWord(name string) (stem string, ok bool) {
	for _, word := range loginWords {
		if stem, ok := strings.CutSuffix(name, word); ok && stem != "" {
			if stem = strings.TrimRight(stem, "._-"); !strings.HasSuffix(stem, "auth") {
				return stem, true
			}
		}
	}
	return "", false
}

// isAddressWithLogin reports whether a variable is the address of a proxy with a login.
func isAddressWithLogin(name, value string) bool {
	if slices.ContainsFunc(proxyTable, func(r row) bool { return r.name == name }) {
		return strings.Contains(value, "@")
	}
	name = strings.ToLower(name)
	_, after, isURL := strings.Cut(value, "://")
	return isURL && !strings.ContainsAny(value, " \t\n'\"") && strings.Contains(after, "@") &&
		(strings.Contains(name, "proxy") || strings.Contains(name, "socks"))
}

// withoutProperties removes the options that set a property of Java with a login.
func withoutProperties(value string) string {
	for at := 0; ; {
		n := strings.Index(value[at:], "-D")
		if n < 0 {
			return value
		}
		from := at + n
		name, _, isSet := strings.Cut(value[from+len("-D"):], "=")
		if !isSet || !isLoginProperty(strings.ToLower(name)) {
			at = from + len("-D")
			continue
		}
		if from > 0 && (value[from-1] == '"' || value[from-1] == '\'') {
			from--
		}
		to := from + wordLength(value[from:])
		if rest := strings.TrimLeft(value[to:], " \t\r\n"); from == 0 || rest == "" {
			value = strings.TrimRight(value[:from], " \t\r\n") + rest
		} else {
			value = value[:from] + rest
		}
		at = from
		if at > len(value) {
			return value
		}
	}
}

// wordLength is how long the first word of options is: up to a blank that stands in no quotes. What is
// in quotes that do not end is one word.
func wordLength(options string) int {
	quote := byte(0)
	for i := 0; i < len(options); i++ {
		switch c := options[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			return i
		}
	}
	return len(options)
}

// withoutAddressLogins removes logins from addresses of proxies in options and settings: behind a word with
// "proxy" in it, such as "--proxy http://USER:PASSWORD@HOST" and "'http.proxy'='...'".
func withoutAddressLogins(value string) string {
	const separators = "'\"=: \t"
	for at := 0; ; {
		n := strings.Index(value[at:], "://")
		if n < 0 {
			return value
		}
		at += n + len("://")
		before := strings.TrimRight(strings.TrimRight(value[:at-len("://")],
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"), separators)
		key := strings.ToLower(before[strings.LastIndexAny(before, separators)+1:])
		end := len(value)
		if i := strings.IndexAny(value[at:], "/'\" \t\n"); i >= 0 {
			end = at + i
		}
		login := strings.LastIndexByte(value[at:end], '@')
		if login >= 0 && (strings.Contains(key, "proxy") || strings.Contains(key, "socks")) {
			value = value[:at] + value[at+login+1:]
		}
	}
}

const gitKey, gitValue = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"

// withoutGitLogins removes logins from settings of git that stand in pairs of variables.
func withoutGitLogins(env []string) {
	for _, entry := range env {
		number, setting, _ := strings.Cut(strings.TrimPrefix(entry, gitKey), "=")
		if !strings.HasPrefix(entry, gitKey) || !strings.Contains(strings.ToLower(setting), "proxy") {
			continue
		}
		head := gitValue + number + "="
		for i, other := range env {
			if address, ok := strings.CutPrefix(other, head); ok {
				scheme, rest, isURL := strings.Cut(address, "://")
				if !isURL {
					scheme, rest = "", address
				} else {
					scheme += "://"
				}
				env[i] = head + scheme + rest[strings.LastIndexByte(rest, '@')+1:]
			}
		}
	}
}
