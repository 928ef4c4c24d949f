// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"regexp"
	"regexp/syntax"
	"sort"
	"sync"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/executor"
	plaintext "github.com/sallyport-dev/sallyport/internal/text"
)

// MaxMatch is how long a match of a [Matcher] is at most, in bytes.
const MaxMatch = 64 << 10

// A Matcher looks for the first match of a pattern in an output that grows, from an offset on. Unless it is
// raw, it sees the text without control sequences, as [plaintext.Plain] makes it. The beginning of the
// text is at that offset, and its end is where the output ends at the moment. Make one with NewMatcher.
// It is not safe for concurrent use.
type Matcher struct {
	pattern *regexp.Regexp
	behind  *regexp.Regexp // the pattern as a group after one character; nil until it is needed
	raw     bool
	plain   plaintext.Plain
	off     uint64 // of the first byte that was not taken yet
	after   uint64 // where the search has begun, or with found where the match ends
	found   bool

	text   []byte
	before bool   // text does not begin where the search began: its first character is only looked back at
	begin  uint64 // how much text is no longer held
	// where text is in the output, in order; the first one is at or before the beginning of text
	places []placing
}

// A placing says where a piece of text is in the output.
type placing struct {
	at   uint64 // of its first byte, counted from the first text of all
	off  uint64 // of that byte in the output, or with end that of the byte after what the piece stands for
	same bool   // each byte of the piece is one of the output
}

// returns finds carriage returns in a pattern: one, or an escape for one whose backslash is no escaped one.
var returns = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\r|(?:^|[^\\])(?:\\\\)*\\(?:r|x0[Dd]|x\{0*[Dd]\}|0?15)`)
})

// NewMatcher returns a Matcher for what comes after an offset. Pattern must not be nil. One that names
// a carriage return, by itself or as an escape, sees those of the output, which are line ends otherwise:
// \r\n is one, and so is \r alone. Classes that have one among others, such as \s, do not name it.
func NewMatcher(pattern *regexp.Regexp, raw bool, after uint64) *Matcher {
	m := &Matcher{pattern: pattern, raw: raw, off: after, after: after}
	m.plain.Returns = returns().MatchString(pattern.String())
	return m
}

// Look looks at the output before the offset end that it has not looked at, and returns the offset after the
// first match. All of it must have been printed, so that nothing is waited for but the system where bytes
// are in a file. What is not retained matches nothing. The end of ctx ends the search. Without a match it is
// the offset where the search has begun, and after a match the answer stays.
func (m *Matcher) Look(ctx context.Context, out executor.Output, end uint64) (after uint64, found bool) {
	for !m.found && m.off < end && ctx.Err() == nil {
		c, err := out.Read(ctx, m.off)
		if err != nil {
			break
		}
		if c.Missing > 0 {
			m.find(false) // nothing makes it longer
			m.gap()
		}
		m.off = c.Offset
		m.take(c.Data)
		m.find(m.off < end)
		m.trim()
	}
	return m.after, m.found
}

// gap forgets the text before bytes that are not retained. A line begins after them.
func (m *Matcher) gap() {
	m.begin += uint64(len(m.text))
	m.text, m.before, m.places, m.plain = nil, true, nil, plaintext.Plain{Returns: m.plain.Returns}
	m.add([]byte{'\n'}, m.off, false)
}

// take takes the next bytes.
func (m *Matcher) take(p []byte) {
	if m.raw {
		m.add(p, m.off, true)
		m.off += uint64(len(p))
		return
	}
	for len(p) > 0 {
		n, t, same := m.plain.Next(p)
		m.off += uint64(n)
		switch {
		case same:
			m.add(t, m.off-uint64(len(t)), true)
		case len(t) > 0:
			m.add(t, m.off, false)
		}
		p = p[n:]
	}
}

// add adds a piece of text.
func (m *Matcher) add(p []byte, off uint64, same bool) {
	at := m.begin + uint64(len(m.text))
	m.text = append(m.text, p...)
	if n := len(m.places); n > 0 && same && m.places[n-1].same &&
		m.places[n-1].off+(at-m.places[n-1].at) == off {
		return // it goes on
	}
	m.places = append(m.places, placing{at, off, same})
}

// find looks for a match in the text that is held. With more further text follows: what ends with the held
// text may be longer then, or none.
func (m *Matcher) find(more bool) {
	if m.found {
		return
	}
	at := m.pattern.FindIndex(m.text)
	if at != nil && m.before && at[0] == 0 {
		at = m.findBehind()
	}
	if at != nil && !(more && at[1] == len(m.text)) && len(m.text) > 0 {
		m.after, m.found = m.offset(m.begin+uint64(at[1])), true
	}
}

// findBehind returns where the pattern matches after the first character.
func (m *Matcher) findBehind() []int {
	if m.behind == nil {
		m.behind = regexp.MustCompile(`(?s:.)(` + canonical(m.pattern) + `)`)
	}
	if at := m.behind.FindSubmatchIndex(m.text); at != nil {
		return at[2:4]
	}
	return nil
}

// canonical returns the text of a pattern that stands for the same in a group.
func canonical(pattern *regexp.Regexp) string {
	parsed, err := syntax.Parse(pattern.String(), syntax.Perl)
	if err != nil { // it is one of POSIX, which has no quotes that go on
		return pattern.String()
	}
	return parsed.String()
}

// offset returns the offset in the output after the text before a place.
func (m *Matcher) offset(end uint64) uint64 {
	i := sort.Search(len(m.places), func(i int) bool { return m.places[i].at >= end }) - 1
	if i < 0 {
		return m.places[0].off // an empty match at the beginning
	}
	if p := m.places[i]; p.same {
		return p.off + (end - p.at)
	}
	return m.places[i].off
}

// trim forgets text before the longest match that can end later, and a character before that.
func (m *Matcher) trim() {
	n := len(m.text) - MaxMatch - utf8.UTFMax
	if n <= 0 {
		return
	}
	for !utf8.RuneStart(m.text[n]) && n < len(m.text)-MaxMatch {
		n++
	}
	m.text, m.before, m.begin = m.text[n:], true, m.begin+uint64(n)
	for len(m.places) > 1 && m.places[1].at <= m.begin {
		m.places = m.places[1:]
	}
}
