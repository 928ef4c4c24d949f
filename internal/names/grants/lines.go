// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import "strings"

// A grammar is how a form with one setting on a line is written.
type grammar struct {
	comments   string // characters that begin one
	separators string // between a name and a value; the first of these
	indents    bool   // an indented line without a name goes on with the value before
	backslash  bool   // so does a line behind one that ends with a backslash
	brackets   bool   // a line in brackets begins a section
	open       string // what begins a value of several lines, which is not understood
}

func (f form) grammar() grammar {
	switch f {
	case git:
		return grammar{comments: "#;", separators: "=", backslash: true, brackets: true}
	case properties:
		return grammar{comments: "#!", separators: "=: \t", backslash: true}
	case spaced:
		return grammar{comments: "#", separators: " \t"}
	case toml:
		return grammar{comments: "#", separators: "=", indents: true, brackets: true, open: `"""|'''`}
	case yaml, bundle:
		return grammar{comments: "#", separators: ":", open: `|>&*!{`}
	}
	return grammar{comments: "#;", separators: "=:", indents: true, brackets: true}
}

// A reading is the state between two lines.
type reading struct {
	name string // of the last setting
	more bool   // the next line goes on with its value
	list int    // brackets that are open in it
}

// lines is mask for forms with one setting on a line. Comments that may have a secret are left out.
func (m *masking) lines(text string) string {
	g := m.form.grammar()
	var b strings.Builder
	var at reading
	for line := range strings.Lines(text) {
		end := line[len(strings.TrimRight(line, "\r\n")):]
		b.WriteString(m.line(g, &at, strings.TrimSuffix(line, end)))
		b.WriteString(end)
	}
	m.failed = m.failed || at.more || at.list > 0
	return b.String()
}

// settingName reports whether a text is the name of a setting, quoted or not.
func settingName(text string) bool {
	text = strings.TrimPrefix(text, "- ")
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') {
		return strings.IndexByte(text[1:], text[0]) == len(text)-2
	}
	return text != "" && text[0] != '-' && text[0] != '[' &&
		strings.IndexFunc(text, func(r rune) bool {
			return !isLetter(r) &&
				!strings.ContainsRune("_@/.:*-[]", r)
		}) < 0
}

func (m *masking) line(g grammar, at *reading, line string) string {
	trimmed := strings.TrimSpace(line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case at.more || at.list > 0:
		return m.goesOn(g, at, line)
	case trimmed == "":
		return line
	case strings.IndexByte(g.comments, trimmed[0]) >= 0:
		if secretKeyIn(trimmed) || m.probe(trimmed) {
			m.changed = true
			return trimmed[:1]
		}
		return line
	case g.brackets && trimmed[0] == '[':
		at.name = ""
		m.alias = m.form == git && strings.HasPrefix(strings.ToLower(trimmed), "[alias")
		return m.text(line)
	case g.open != "" && (trimmed == "---" || trimmed == "..."):
		return line
	}
	name, sep, value := split(m.form, g, trimmed)
	indented := g.indents && indent != "" && at.name != ""
	if sep == "" || !settingName(name) || strings.Contains(line[:len(indent)+len(name)+len(sep)], "://") ||
		strings.HasPrefix(value, "//") && strings.Contains(sep, ":") {
		return m.bare(at, line, indented)
	}
	if indented && m.isSecret(at.name) {
		return indent + SecretDummy // it may be the second line of a secret
	}
	at.name = name
	if opens(g, value) {
		m.failed = true
		return ""
	}
	if g.backslash && continued(value) {
		at.more = true
		if m.isSecret(name) {
			m.failed = true // the parts of it are not known
		}
	}
	at.list = lists(m.form, value)
	return indent + name + sep + m.value(name, value)
}

// split cuts a line at its first separator, with the spaces around it.
func split(f form, g grammar, line string) (name, sep, value string) {
	from := 0
	if strings.IndexByte(`"'`, line[0]) >= 0 { // a name in quotes
		if from = strings.IndexByte(line[1:], line[0]) + 2; from < 2 {
			return line, "", ""
		}
	}
	i := strings.IndexAny(line[from:], g.separators)
	if f == ini && strings.HasPrefix(line, "//") { // npm's names of registries have colons
		i = strings.IndexByte(line[from:], '=')
	} else if f == ini && i >= 0 && line[from+i] == ':' && strings.HasPrefix(line, "@") {
		i = strings.IndexByte(line[from:], '=')
	}
	if i < 0 {
		return line, "", ""
	}
	i += from
	if f == yaml || f == bundle {
		for i < len(line) && i+1 < len(line) && line[i+1] != ' ' { // a colon in a name
			next := strings.IndexByte(line[i+1:], ':')
			if next < 0 {
				return line, "", ""
			}
			i += 1 + next
		}
	}
	end := i
	for end < len(line) && strings.IndexByte(" \t", line[end]) >= 0 {
		end++
	}
	if end < len(line) && strings.IndexByte(g.separators, line[end]) >= 0 {
		end++
	}
	for end < len(line) && strings.IndexByte(" \t", line[end]) >= 0 {
		end++
	}
	name = strings.TrimRight(line[:i], " \t")
	return name, line[len(name):end], line[end:]
}

// bare is a line without a name: it goes on with a value, is a word of a list, or a switch.
func (m *masking) bare(at *reading, line string, indented bool) string {
	word := strings.TrimSpace(line)
	switch {
	case indented && m.isSecret(at.name):
		m.changed = true
		m.secrets = append(m.secrets, word)
		return line[:strings.Index(line, word)] + SecretDummy
	case indented:
		return m.text(line)
	case (m.form == yaml || m.form == bundle) && strings.HasPrefix(word, "- "):
		if m.isSecret(at.name) {
			return line[:strings.Index(line, word)] + "- " + m.replace(word[2:], SecretDummy)
		}
		if opens(m.form.grammar(), word[2:]) {
			m.failed = true
			return ""
		}
		return m.text(line)
	case m.form == ini && settingName(word) && len(word) <= 32 && !secretKey(word):
		return m.text(line) // a switch
	}
	m.failed = true
	return ""
}

// goesOn is a line of a value that began on another one.
func (m *masking) goesOn(g grammar, at *reading, line string) string {
	at.more = g.backslash && continued(line)
	at.list = max(at.list+lists(m.form, line), 0)
	if m.isSecret(at.name) || strings.ContainsAny(line, "=:") && secretKeyIn(line) {
		m.failed = true
		return ""
	}
	return m.text(line)
}

// continued reports whether a line ends with a backslash that is not escaped.
func continued(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// lists returns how many brackets a value of TOML or YAML opens more than it closes.
func lists(f form, value string) int {
	if f != toml && f != yaml {
		return 0
	}
	return strings.Count(value, "[") - strings.Count(value, "]")
}

// opens reports whether a value is written in a way that is not understood.
func opens(g grammar, value string) bool {
	for _, mark := range strings.Split(g.open, "|") {
		if mark != "" && len(mark) == 3 && strings.HasPrefix(value, mark) {
			return true
		}
	}
	if strings.HasPrefix(g.open, "|") { // YAML: single characters
		return value != "" && strings.IndexByte(g.open, value[0]) >= 0
	}
	// An inline table has names of its own.
	return g.open != "" && strings.Contains(value, "{") && secretKeyIn(value)
}

// probe reports whether a text has a secret in form.
func (m *masking) probe(text string) bool {
	p := masking{form: m.form}
	p.text(text)
	return p.changed || p.failed
}

// secretKeyIn reports whether a word of a text is the name of a secret.
func secretKeyIn(text string) bool {
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return strings.ContainsRune(" \t=:,{}\"'", r) }) {
		if secretKey(word) {
			return true
		}
	}
	return false
}
