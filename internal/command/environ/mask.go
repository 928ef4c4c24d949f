// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
)

// Mask returns words of a command line in which what looks like a secret is replaced
// by [Masked]:
//
//   - the value of a flag, variable or parameter of which [SecretName] is true
//     ("--token=x", "--token x", "API_KEY=x");
//   - what follows such a name and a colon ("X-Api-Key: x"), without the scheme of an
//     authorization;
//   - the password of short flags ("mysql -pX", "sshpass -p X", "curl -u me:X");
//   - what is a secret in form, such as a password in an address; see [SecretValue].
//
// Scripts and other words with spaces are looked at word by word. A secret without such a
// mark stays. The slice is the caller's own.
func Mask(args []string) []string {
	out := slices.Clone(args)
	m := masking{}
	for i, arg := range args {
		arg = maskValues(arg)
		switch {
		case !strings.ContainsAny(arg, spaces):
			out[i] = m.word(arg)
		case m.next == anything && i > 0 && isScriptFlag(args[i-1]), !m.whole(arg):
			out[i] = maskWords(arg)
		default:
			out[i] = m.word(arg)
		}
	}
	return out
}

// MaskText does what [Mask] does for a command line that is one text. The space between
// its words stays as it is.
func MaskText(text string) string { return maskWords(maskValues(text)) }

// isScriptFlag reports whether a shell takes the next argument for a script.
func isScriptFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c")
}

// expect says what the next word of a command line is, unless it is a flag.
type expect uint8

const (
	anything     expect = iota
	expectSecret        // a secret
	expectPair          // a user and a password, with a colon between
)

// A masking looks at words one after the other.
type masking struct {
	next  expect
	flags []passwordFlag // of the last program that has some
}

// maskWords masks the words of a text. What quotes hold together is one word.
func maskWords(text string) string {
	var b strings.Builder
	m := masking{}
	for text != "" {
		if strings.IndexByte(spaces, text[0]) >= 0 {
			if text[0] == '\n' {
				m = masking{} // a line of a script ends
			}
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		end := plainEnd(text)
		switch {
		case m.next != anything || end == 0 || end < len(text) && strings.IndexByte(spaces, text[end]) < 0:
			end = wordEnd(text)
			b.WriteString(m.shellWord(text[:end]))
		default: // as most words of a long text
			b.WriteString(text[:end])
			if flags := flagsOf(text[:end]); flags != nil {
				m.flags = flags
			}
		}
		text = text[end:]
	}
	return b.String()
}

// plainEnd returns the length of what begins a text and has no part in a flag, a pair, an address or a
// quote, and begins or ends no command.
func plainEnd(text string) int {
	for i := range len(text) {
		if !isAlphanumeric(text[i]) && text[i] != '_' {
			return i
		}
	}
	return len(text)
}

// wordEnd returns the length of the first word of a text. Quotes and a backslash before a
// space hold it together; a quote that is not closed does not.
func wordEnd(text string) int {
	for i := 0; ; i++ {
		n := strings.IndexAny(text[i:], spaces+quotes)
		if n < 0 {
			return len(text)
		}
		if i += n; strings.IndexByte(spaces, text[i]) >= 0 {
			if text[i] == ' ' && i > 0 && text[i-1] == '\\' {
				continue
			}
			return i
		}
		i += max(strings.IndexByte(text[i+1:], text[i])+1, 0)
	}
}

// whole reports whether a word with spaces is one value: it is expected to be a secret,
// or begins with the name or flag of one.
func (m *masking) whole(w string) bool {
	first := w[:strings.IndexAny(w, spaces)]
	_, isFlag := m.flag(w)
	return m.next != anything || isFlag || secretSeparator(first) >= 0
}

// shellWord returns what may be kept of a word of a script. Quotes in it may hold another
// script: "ssh host 'run --token x'".
func (m *masking) shellWord(w string) string {
	if !strings.ContainsAny(w, spaces) || m.whole(w) {
		return m.word(w)
	}
	var b strings.Builder
	for {
		open := strings.IndexAny(w, quotes)
		if open < 0 {
			break
		}
		size := strings.IndexByte(w[open+1:], w[open])
		if size < 0 {
			break
		}
		mark, inside := w[open:open+1], w[open+1:open+1+size]
		b.WriteString(maskWords(w[:open]) + mark + maskWords(inside) + mark)
		w = w[open+size+2:]
	}
	return b.String() + w
}

// word returns what may be kept of a word. One with spaces in it is a whole value.
func (m *masking) word(w string) string {
	bare := strings.Trim(w, quotes)
	if bare == "" {
		m.next = anything
		return w
	}
	if strings.Trim(bare, ";|&") == "" {
		*m = masking{} // another command begins
		return w
	}
	expected := m.next
	m.next = anything
	shown := m.shown(w, bare, expected)
	if strings.HasSuffix(bare, ";") {
		*m = masking{}
	}
	return shown
}

// shown does the work of word.
func (m *masking) shown(w, bare string, expected expect) string {
	isFlag := strings.HasPrefix(bare, "-")
	switch {
	case isFlag: // what is expected is missing, or this is not it
	case expected == expectSecret && slices.Contains(schemes, strings.ToLower(bare)):
		m.next = expectSecret
		return w
	case expected == expectSecret:
		return Masked + closing(w)
	case expected == expectPair && strings.Contains(bare, ":"):
		return maskPair(w)
	}
	if shown, ok := m.flag(w); ok {
		return shown
	}
	if i := secretSeparator(w); i >= 0 {
		return m.pair(w, i)
	}
	switch {
	case isFlag && takesSecret(bare):
		m.next = expectSecret
	case !isFlag:
		// In "$(mysql" and "x|mysql" the program is not at the beginning.
		program := bare[strings.LastIndexAny(bare, "/\\|&;(`")+1:]
		if flags := flagsOf(strings.TrimSuffix(program, ".exe")); flags != nil {
			m.flags = flags
		}
	}
	return w
}

// schemes stand between the name of a header and its secret.
var schemes = []string{"bearer", "basic", "digest", "token"}

// pair returns what may be kept of a name and its value, with the separator at i. A
// header ends with its line, any other value with the word.
func (m *masking) pair(w string, i int) string {
	name, rest := w[:i+1], w[i+1:]
	if strings.Trim(rest, quotes+spaces) == "" {
		if w[i] == ':' {
			m.next = expectSecret
		}
		return w
	}
	if w[i] == '=' {
		return name + Masked + closing(w)
	}
	line, more := rest, ""
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		line, more = rest[:end], maskWords(rest[end:])
	}
	secret := strings.TrimLeft(line, spaces)
	name += line[:len(line)-len(secret)]
	if end := strings.IndexAny(secret, spaces); end >= 0 &&
		slices.Contains(schemes, strings.ToLower(secret[:end])) {
		name += secret[:end+1]
	}
	return name + Masked + closing(line) + more
}

// ownGrant begins the names of grants, as in "--grant credentials:aws", which are no secret.
const ownGrant = "credentials"

// secretSeparator returns the index of the first '=' or ':' behind a name that looks
// like that of a secret, or -1. It looks at what is before the first space alone.
func secretSeparator(w string) int {
	for i := range len(w) {
		if strings.IndexByte(spaces, w[i]) >= 0 {
			return -1
		}
		if w[i] != '=' && w[i] != ':' {
			continue
		}
		end := i // without the marks of "key":, TOKEN+= and a[key]=
		for n := 0; n < 3 && end > 0 && strings.IndexByte(`"'])}?!`, w[end-1]) >= 0; n++ {
			end--
		}
		start := end
		for start > 0 && isNameByte(w[start-1]) {
			start--
		}
		if w[i] == ':' {
			inPath := start > 0 && (w[start-1] == '/' || w[start-1] == '@') ||
				strings.HasPrefix(w[i+1:], "//")
			isGrant := w[start:i] == ownGrant && len(w) > i+1 && isNameByte(w[i+1])
			if inPath || isGrant {
				continue
			}
		}
		if SecretName(w[start:end]) {
			return i
		}
	}
	return -1
}

// maskPair masks the password of "user:password".
func maskPair(w string) string {
	i := strings.IndexByte(w, ':')
	if i < 0 || strings.Trim(w[i+1:], quotes) == "" {
		return w
	}
	return w[:i+1] + Masked + closing(w)
}

// closing is the quote at the end of a word, so that scripts stay readable.
func closing(w string) string {
	if n := len(w); n > 0 && strings.IndexByte(quotes, w[n-1]) >= 0 {
		return w[n-1:]
	}
	return ""
}
