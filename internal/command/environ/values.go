// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"encoding/base64"
	"slices"
	"strings"
)

// Masked stands for a value that looks like a secret.
const Masked = "***"

// The characters that end a value within a text.
const (
	spaces = " \t\r\n\v\f"
	quotes = `"'`
)

// A tokenForm is a form of tokens: a beginning, and at least so many letters, digits or
// characters of more.
type tokenForm struct {
	begin string
	least int
	more  string
}

// tokenForms are forms that providers give to tokens and to nothing else.
var tokenForms = []tokenForm{
	{"ghp_", 36, ""}, {"gho_", 36, ""}, {"ghs_", 36, ""}, {"ghu_", 36, ""}, {"ghr_", 36, ""},
	{"github_pat_", 22, "_"},
	{"glpat-", 20, "_-."},
	{"npm_", 36, ""},
	{"sk-ant-", 20, "_-"},
	{"sk-proj-", 20, "_-"},
	{"sk_live_", 16, ""},
	{"xoxb-", 20, "-"}, {"xoxp-", 20, "-"},
	{"eyJhbGciOi", 20, "_-."}, {"eyJ0eXAiOi", 20, "_-."}, // JSON web tokens: {"alg": and {"typ":
}

// secretParameters are the names of secrets in connection strings and in the queries of
// addresses, in lower case.
var secretParameters = []string{"password", "passwd", "pwd", "accountkey", "sharedaccesskey"}

// authorizations begin a header with a secret, in lower case.
var authorizations = []string{"authorization: basic ", "authorization: bearer ", "authorization: token "}

// SecretValue reports whether a value is a secret in form: it contains an address with a
// password (scheme://user:password@host), a private key in PEM form or its base64, a token
// of a known form, a connection string with a password, or a header Authorization. It
// knows only forms that are hardly anything else.
func SecretValue(value string) bool {
	lower := strings.ToLower(value)
	return maskValues(value) != value || hasEncodedKey(value) || hasParameter(lower) ||
		slices.ContainsFunc(authorizations, func(a string) bool { return strings.Contains(lower, a) })
}

// maskValues replaces what is a secret in form.
func maskValues(text string) string {
	return maskTokens(maskAddresses(maskKeys(text)))
}

// maskKeys replaces private keys in PEM form, with their first and last line. One without
// a last line reaches to the end of the text.
func maskKeys(text string) string {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	var b strings.Builder
	for {
		i := strings.Index(text, begin)
		if i < 0 {
			break
		}
		label := text[i+len(begin):]
		label, _, _ = strings.Cut(label[:min(len(label), 64)], dashes)
		if !strings.HasSuffix(strings.TrimSuffix(label, " BLOCK"), "PRIVATE KEY") {
			b.WriteString(text[:i+len(begin)])
			text = text[i+len(begin):]
			continue
		}
		b.WriteString(text[:i] + Masked)
		_, text, _ = strings.Cut(text[i:], end)
		_, text, _ = strings.Cut(text, dashes)
	}
	b.WriteString(text)
	return b.String()
}

// hasEncodedKey reports whether a text contains the base64 form of a private key's
// beginning. Certificates have the same beginning up to the label.
func hasEncodedKey(text string) bool {
	const begin = "LS0tLS1CRUdJTi" // -----BEGIN
	for {
		i := strings.Index(text, begin)
		if i < 0 {
			return false
		}
		label, _ := base64.StdEncoding.DecodeString(text[i : i+min(64, (len(text)-i)&^3)])
		if strings.Contains(string(label), "PRIVATE KEY") {
			return true
		}
		text = text[i+len(begin):]
	}
}

// maskAddresses replaces the passwords in all addresses of a text.
func maskAddresses(text string) string {
	const mark = "://"
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			break
		}
		rest := text[i+len(mark):]
		b.WriteString(text[:i+len(mark)])
		text = rest
		if i == 0 || !isNameByte(b.String()[b.Len()-len(mark)-1]) {
			continue // no scheme
		}
		// The next address begins in the rest, if there is one.
		if next := strings.Index(rest, mark); next >= 0 {
			rest = rest[:next]
		}
		if end := strings.IndexAny(rest, spaces); end >= 0 {
			rest = rest[:end]
		}
		if from, to := password(rest); from < to {
			b.WriteString(text[:from] + Masked)
			text = text[to:]
		}
	}
	b.WriteString(text)
	return b.String()
}

// password returns where in an address behind its scheme the password is; from is to if
// there is none. A password that was not escaped may contain what ends the authority of
// an address: then what would be the port is not one.
func password(address string) (from, to int) {
	authority := address
	if end := strings.IndexAny(address, "/?#"); end >= 0 {
		authority = address[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	colon := strings.IndexByte(authority, ':')
	if at < 0 && colon >= 0 && authority[0] != '[' && !isPort(authority[colon+1:]) {
		at = strings.LastIndexByte(address, '@')
	}
	if colon < 0 || colon+1 >= at {
		return 0, 0
	}
	return colon + 1, at
}

// isPort reports whether a text begins like a port: by digits, or a mark for what is filled in
// later, and no letter directly behind.
func isPort(s string) bool {
	s = strings.TrimLeft(s, "0123456789")
	return s == "" || !isNameByte(s[0])
}

// maskTokens replaces tokens of known forms.
func maskTokens(text string) string {
	for _, form := range tokenForms {
		if strings.Contains(text, form.begin) {
			text = maskForm(text, form)
		}
	}
	return text
}

// maskForm replaces tokens of one form. One that begins within a word is none.
func maskForm(text string, form tokenForm) string {
	var b strings.Builder
	last := byte(' ') // before text
	for {
		i := strings.Index(text, form.begin)
		if i < 0 {
			break
		}
		if i > 0 {
			last = text[i-1]
		}
		size := len(form.begin)
		b.WriteString(text[:i])
		text = text[i:]
		if !isAlphanumeric(last) {
			for size < len(text) && (isAlphanumeric(text[size]) ||
				strings.IndexByte(form.more, text[size]) >= 0) {
				size++
			}
		}
		if size >= len(form.begin)+form.least {
			b.WriteString(Masked)
		} else {
			b.WriteString(text[:size])
		}
		last, text = text[size-1], text[size:]
	}
	b.WriteString(text)
	return b.String()
}

// hasParameter reports whether a text in lower case contains NAME=VALUE of a secret
// parameter at its beginning or behind one of ";?&". What refers to a variable is no
// value.
func hasParameter(lower string) bool {
	for {
		before, after, ok := strings.Cut(lower, "=")
		if !ok {
			return false
		}
		name := before[strings.LastIndexAny(before, ";?&")+1:]
		if slices.Contains(secretParameters, name) && after != "" &&
			!strings.ContainsAny(after[:1], spaces+quotes+";&$") {
			return true
		}
		lower = after
	}
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// isNameByte reports whether names of flags, variables and schemes contain c. Bytes of
// characters beyond ASCII count.
func isNameByte(c byte) bool {
	return isAlphanumeric(c) || c == '_' || c == '-' || c == '.' || c == '+' || c >= 0x80
}
