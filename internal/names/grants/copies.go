// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
)

// SecretDummy stands for a secret in the copy of a file.
const SecretDummy = "hidden-by-sallyport"

// A form is what settings are written in.
type form uint8

const (
	none       form = iota
	ini             // NAME = VALUE; a line that is indented goes on with the value before
	git             // the same, and lines are indented as one likes
	properties      // of Java: a separator may be a colon or a space, a line goes on behind a backslash
	spaced          // NAME VALUE
	toml
	yaml
	bundle // YAML of Bundler, in which names of hosts have passwords
	xmlText
	jsonText
)

// A masking makes the copy of one file.
type masking struct {
	form    form
	secrets []string // what was replaced
	failed  bool     // something is not understood
	changed bool
	alias   bool // the section is one of names that the user has chosen
}

// mask returns a text in which secrets are replaced. It is false where the text is not understood,
// so that nothing of it can be shown.
func mask(f form, text string) (copied string, changed, ok bool) {
	m := &masking{form: f}
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", false, false
	case f == xmlText:
		copied = m.xml(text)
	case f == jsonText:
		copied = m.json(text)
	default:
		copied = m.lines(text)
	}
	// CredentialsOf was replaced at one place must not stand at another one, and nothing that has the form
	// of a secret may be left.
	const telling = 6 // bytes: shorter ones are found by chance
	left := func(secret string) bool { return len(secret) >= telling && strings.Contains(copied, secret) }
	if m.failed || m.changed && (environ.SecretValue(copied) || slices.ContainsFunc(m.secrets, left)) {
		return "", false, false
	}
	return copied, m.changed, true
}

// suspicious reports whether a text that is not understood may have a secret.
func suspicious(f form, text string) bool {
	lower := strings.ToLower(text)
	return environ.SecretValue(text) || f != git && slices.ContainsFunc(
		[]string{"passw", "token", "secret", "_auth", "apikey", "api_key", "api-key", "private key"},
		func(w string) bool { return strings.Contains(lower, w) })
}

// harmlessKeys are parts of names of settings that [environ.SecretName] takes for secrets and that
// are none: which program keeps secrets, where a file is, who signs.
var harmlessKeys = []string{
	"keyring", "credsstore", "credhelper", "credentialprovider", "credentialhelper", "credentialprocess",
	"tokenhelper", "alwaysauth", "authtype", "authmethod", "signingkey",
	"keyfile", "certfile", "cafile", "keyserver", "keyid", "keychain", "authorname", "authoremail",
	"authorurl", "authprompt", "sslkey", "sslcert", "askpass",
}

// secretParts are parts of names of settings whose values are secrets beside those of environment
// variables.
var secretParts = []string{"otp", "cookie", "header", "signature"}

// secretKey reports whether the value of a setting is a secret by its name. Of a path of names the
// last one counts.
func secretKey(name string) bool {
	if i := strings.LastIndexAny(name, ":/"); i >= 0 {
		name = name[i+1:]
	}
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "", "\"", "", "'", "").Replace(name))
	if slices.ContainsFunc(harmlessKeys, func(part string) bool { return strings.Contains(plain, part) }) {
		return false
	}
	return environ.SecretName(name) || slices.ContainsFunc(secretParts,
		func(part string) bool { return strings.Contains(plain, part) })
}

// noSecret reports whether a value is no secret whatever its name is: a word for a switch, a short number, or
// what is filled in from the environment.
func noSecret(value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "false", "yes", "no", "null", "none", "~":
		return true
	}
	if len(value) <= 5 && strings.Trim(value, "0123456789") == "" {
		return true
	}
	name, ok := strings.CutPrefix(value, "$")
	if rest, braced := strings.CutPrefix(name, "{"); braced {
		name, ok = strings.CutSuffix(rest, "}")
	}
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// value returns what stands for the value of a setting.
func (m *masking) value(name, value string) string {
	bare := strings.Trim(value, `"' `)
	switch {
	case noSecret(bare):
		return value
	case m.isSecret(name):
		return m.replace(value, SecretDummy)
	}
	return m.text(value)
}

// isSecret is secretKey for the form.
func (m *masking) isSecret(name string) bool {
	if m.alias {
		return false
	}
	if m.form == bundle { // BUNDLE_GEMS__EXAMPLE__COM is the host gems.example.com
		upper := strings.ToUpper(strings.Trim(name, `"'`))
		if strings.Contains(upper, "__") && !strings.HasPrefix(upper, "BUNDLE_MIRROR__") &&
			!strings.HasPrefix(upper, "BUNDLE_LOCAL__") && !strings.HasPrefix(upper, "BUNDLE_BUILD__") {
			return true
		}
	}
	return secretKey(name)
}

// replace returns the dummy in the quotes of a value.
func (m *masking) replace(value, dummy string) string {
	trimmed := strings.TrimSpace(value)
	secret, quote := trimmed, ""
	if n := len(trimmed); n > 0 && (trimmed[0] == '"' || trimmed[0] == '\'') {
		quote = trimmed[:1]
		end := strings.Index(trimmed[1:], quote)
		if end < 0 || strings.Contains(trimmed, strings.Repeat(quote, 3)) {
			m.failed = true // it goes on in the next line
			return ""
		}
		secret = trimmed[1 : 1+end]
	}
	if secret == "" || secret == dummy {
		return value
	}
	m.changed = true
	m.secrets = append(m.secrets, secret)
	return value[:strings.Index(value, trimmed)] + quote + dummy + quote
}

// longUser is how long the user of an address is that is taken for a token, in bytes.
const longUser = 16

// text replaces what is a secret in form: the user and password of an address, values of its query,
// tokens, keys, headers.
func (m *masking) text(text string) string {
	out := m.addresses(text)
	if strings.Contains(out, environ.Masked) {
		return out
	}
	masked := environ.MaskText(out)
	if masked != out {
		m.changed = true
		out = strings.ReplaceAll(masked, environ.Masked, SecretDummy)
	}
	if environ.SecretValue(out) {
		m.changed = true
		return SecretDummy
	}
	return out
}

// addresses replaces secrets in the addresses of a text.
func (m *masking) addresses(text string) string {
	const mark = "://"
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		i += len(mark)
		scheme := text[:i-len(mark)]
		scheme = scheme[strings.LastIndexFunc(scheme,
			func(r rune) bool { return !strings.ContainsRune("+-.", r) && !isLetter(r) })+1:]
		b.WriteString(text[:i])
		rest := text[i:]
		end := strings.IndexAny(rest, " \t\r\n\"'<>")
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(m.address(scheme, rest[:end]))
		text = rest[end:]
	}
}

func isLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// address replaces secrets in one, behind its scheme.
func (m *masking) address(scheme, address string) string {
	authority, rest := address, ""
	if i := strings.IndexAny(address, "/?#"); i >= 0 {
		authority, rest = address[:i], address[i:]
	}
	at := strings.LastIndexByte(authority, '@')
	colon := strings.IndexByte(authority, ':')
	if at < 0 && colon >= 0 && !strings.HasPrefix(authority, "[") &&
		strings.Trim(authority[colon+1:], "0123456789") != "" && strings.Contains(rest, "@") {
		m.failed = true // a password with a slash that was not escaped
		return ""
	}
	if at >= 0 && (strings.Contains(authority[:at], ":") ||
		strings.HasPrefix(strings.ToLower(scheme), "http") && at >= longUser) {
		m.note(authority[:at])
		authority = SecretDummy + authority[at:]
	}
	if before, query, ok := strings.Cut(rest, "?"); ok {
		rest = before + "?" + m.query(query)
	}
	return authority + rest
}

func (m *masking) note(secret string) {
	m.changed = true
	for part := range strings.SplitSeq(secret, ":") {
		m.secrets = append(m.secrets, part)
	}
}

// query replaces the values of a query whose names are those of secrets.
func (m *masking) query(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if ok && value != "" && (secretKey(name) || strings.EqualFold(name, "sig")) {
			m.note(value)
			parts[i] = name + "=" + SecretDummy
		}
	}
	return strings.Join(parts, "&")
}

// basicDummy is the dummy where the base64 of USER:PASSWORD is expected.
func basicDummy() string { return base64.StdEncoding.EncodeToString([]byte("hidden:" + SecretDummy)) }
