// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/environ"
)

// Masked stands for what looked like a secret.
const Masked = "***"

// Mask returns words of a command line in which what looks like a secret is replaced
// by [Masked]: the value of a flag or variable whose name looks like that of one
// ("--token=x", "--token x", "API_KEY=x"), what follows such a name and a colon
// ("Authorization: Bearer x"), and passwords in addresses. Words with spaces in them,
// such as scripts, are looked at word by word. It goes by names alone, so a secret
// without such a name stays. The slice is the caller's own.
func Mask(words []string) []string {
	out := slices.Clone(words)
	m := masking{}
	for i, w := range out {
		if strings.ContainsAny(w, " \t\r\n") && !m.next {
			out[i] = maskText(w)
			continue
		}
		out[i] = m.word(w)
	}
	return out
}

// maskText masks the words of a text and leaves the space between them as it is.
func maskText(text string) string {
	var b strings.Builder
	m := masking{}
	for text != "" {
		n := strings.IndexAny(text, " \t\r\n")
		switch {
		case n < 0:
			n = len(text)
		case n == 0:
			b.WriteByte(text[0])
			if text[0] == '\n' {
				m.next = false // a line of a script ends
			}
			text = text[1:]
			continue
		}
		b.WriteString(m.word(text[:n]))
		text = text[n:]
	}
	return b.String()
}

// A masking looks at words one after the other.
type masking struct {
	next bool // the next word is a secret, unless it is a flag
}

// word returns what may be kept of a word.
func (m *masking) word(w string) string {
	const quotes = `"'`
	after := m.next
	m.next = false
	bare := strings.Trim(w, quotes)
	if after && w != "" && !strings.HasPrefix(bare, "-") {
		switch strings.ToLower(bare) {
		case "bearer", "basic", "token":
			m.next = true // as in Authorization: Bearer x
			return w
		}
		return Masked + closing(w)
	}
	if name, _, ok := strings.Cut(w, "="); ok && secret(name) {
		return name + "=" + Masked + closing(w)
	}
	if name, value, ok := strings.Cut(w, ":"); ok && secret(name) {
		if strings.Trim(value, quotes) == "" {
			m.next = true
			return w
		}
		return name + ":" + Masked + closing(w)
	}
	m.next = strings.HasPrefix(bare, "-") && !strings.Contains(bare, "=") && secret(bare)
	return maskAddress(w)
}

// closing is the quote at the end of a word, so that scripts stay readable.
func closing(w string) string {
	if n := len(w); n > 0 && (w[n-1] == '"' || w[n-1] == '\'') {
		return w[n-1:]
	}
	return ""
}

// secret reports whether a name looks like that of a secret.
func secret(name string) bool {
	upper := strings.ToUpper(name)
	return environ.LooksSecret(name) || slices.ContainsFunc(
		[]string{"PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTHORIZATION"},
		func(part string) bool { return strings.Contains(upper, part) })
}

// maskAddress masks the password of scheme://user:password@host.
func maskAddress(w string) string {
	scheme, rest, ok := strings.Cut(w, "://")
	if !ok {
		return w
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return w
	}
	user, _, ok := strings.Cut(authority[:at], ":")
	if !ok {
		return w
	}
	return scheme + "://" + user + ":" + Masked + authority[at:] + tail
}
