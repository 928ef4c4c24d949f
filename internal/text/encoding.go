// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// sampleBytes bounds how much of an output the guess looks at.
const sampleBytes = 64 << 10

// An Encoding is an older encoding of text in single bytes.
type Encoding struct {
	Name string // as registered with IANA

	table *charmap.Charmap
	// prior settles what the bytes leave open: common encodings are a little
	// ahead, rare ones have to show more.
	prior float64
	// score judges the high character at position i of text; see [script.score].
	score func(text []rune, i int) float64
}

// encodings returns the encodings that Guess knows.
func encodings() []Encoding {
	return []Encoding{
		{"windows-1252", charmap.Windows1252, 0.2, western.score},
		{"windows-1251", charmap.Windows1251, 0.1, cyrillic.score},
		{"windows-1250", charmap.Windows1250, 0.1, central.score},
		{"windows-1254", charmap.Windows1254, 0, turkish.score},
		{"windows-1253", charmap.Windows1253, 0, greek.score},
		{"windows-1255", charmap.Windows1255, -0.5, hebrew.score},
		{"IBM866", charmap.CodePage866, 0, cyrillic.score},
		{"KOI8-R", charmap.KOI8R, 0, cyrillic.score},
		{"IBM850", charmap.CodePage850, -0.2, western.score},
		{"ISO-8859-2", charmap.ISO8859_2, -0.1, central.score},
		{"ISO-8859-5", charmap.ISO8859_5, -0.2, cyrillic.score},
	}
}

// Decode returns b as UTF-8.
func (e *Encoding) Decode(b []byte) string {
	var s strings.Builder
	s.Grow(len(b) + len(b)/2)
	for _, x := range b {
		s.WriteRune(e.table.DecodeByte(x))
	}
	return s.String()
}

// Guess returns the most likely older encoding of b; nil if b is UTF-8, looks like
// UTF-8 with damage, or no encoding is likely.
//
// It knows Western and Central European, Turkish, Greek, Hebrew and Cyrillic encodings
// (windows-125x, IBM850, IBM866, KOI8-R, ISO-8859-2 and -5). It judges by the
// frequency of letters in the languages, by the letters beside each other in a word,
// and by the places of quotation marks. A word of four letters is usually enough for
// Cyrillic or Greek. It cannot tell apart encodings that differ only in letters that
// do not occur. It does not know UTF-16, Arabic, Thai, or any encoding of Chinese,
// Japanese and Korean: the result is nil or wrong. It looks at 64 KiB at most.
func Guess(b []byte) *Encoding {
	if utf8.Valid(b) || damagedUTF8(b) {
		return nil
	}
	part, list := sample(b), encodings()
	var best *Encoding
	bestScore := 0.0
	for i := range list {
		e := &list[i]
		if s, ok := e.rate(part); ok && s > 0 && s+e.prior > bestScore {
			best, bestScore = e, s+e.prior
		}
	}
	if best != nil && best.table == charmap.CodePage866 && quotesOnly(part) {
		best = &list[0]
	}
	if best == nil || !best.covers(b) {
		return nil
	}
	return best
}

// covers reports whether every byte of b has a character. A guess that leaves some of
// the output unreadable is wrong.
func (e *Encoding) covers(b []byte) bool {
	return !slices.ContainsFunc(b, func(x byte) bool { return e.table.DecodeByte(x) == utf8.RuneError })
}

// damagedUTF8 reports whether b is more likely damaged UTF-8, such as output that was
// cut in its middle, than another encoding: at least as many characters of several
// bytes are whole as are not. In the older encodings two or three high bytes in a row
// that happen to be UTF-8 are rare.
func damagedUTF8(b []byte) bool {
	whole, broken := 0, 0
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		n, incomplete := sequence(b[i:])
		if n == 1 || incomplete || !utf8.Valid(b[i:i+n]) {
			broken++
		} else {
			whole++
		}
		i += n
	}
	return whole > 0 && whole >= broken
}

// sample returns the part of b that Guess judges: it begins a little before the first
// byte that is not ASCII.
func sample(b []byte) []byte {
	first := 0
	for first < len(b) && b[first] < utf8.RuneSelf {
		first++
	}
	b = b[max(0, first-64):]
	return b[:min(len(b), sampleBytes)]
}

// quotesOnly reports whether all high bytes of b are typographic quotes and dashes of
// windows-1252 and there is an ASCII letter. IBM866 has capital letters in their
// place, so a short text with such marks can look like Russian.
func quotesOnly(b []byte) bool {
	letter := false
	for _, x := range b {
		switch {
		case x >= utf8.RuneSelf:
			if (x < 0x91 || x > 0x97) && x != 0x99 {
				return false
			}
		case unicode.IsLetter(rune(x)):
			letter = true
		}
	}
	return letter
}

// rate adds up how well the high characters of b fit when decoded as e. It reports
// false if a byte has no character there, or one that no text contains.
func (e *Encoding) rate(b []byte) (float64, bool) {
	text := make([]rune, len(b))
	for i, x := range b {
		r := e.table.DecodeByte(x)
		if x >= utf8.RuneSelf && (r == utf8.RuneError || unicode.Is(unicode.Cc, r) ||
			unicode.Is(unicode.Cf, r) && r != 0xad) {
			return 0, false
		}
		text[i] = r
	}
	total := 0.0
	for i, x := range b {
		if x >= utf8.RuneSelf {
			if unicode.IsLetter(text[i]) {
				total += e.score(text, i)
			} else {
				total += scoreSign(text, i)
			}
		}
	}
	return total, true
}

// neighbors returns the characters before and after position i, 0 at the ends.
func neighbors(text []rune, i int) (prev, next rune) {
	if i > 0 {
		prev = text[i-1]
	}
	if i+1 < len(text) {
		next = text[i+1]
	}
	return prev, next
}

// scoreSign judges a high character that is not a letter by its place.
func scoreSign(text []rune, i int) float64 {
	const fits, harmless, strange = 0.8, 0.2, -1.5
	prev, next := neighbors(text, i)
	inWord := unicode.IsLetter(prev) && unicode.IsLetter(next)
	space := func(r rune) bool { return r == 0 || unicode.IsSpace(r) }
	good := false
	switch r := text[i]; r {
	case '’':
		good = !space(prev)
	case '“', '‘', '„', '‚', '«', '‹':
		good = !unicode.IsLetter(prev) && !space(next)
		if r == '“' || r == '‘' { // these close in some languages
			good = good || !space(prev) && !unicode.IsLetter(next)
		}
	case '”', '»', '›':
		good = !space(prev) && !unicode.IsLetter(next)
	case '–', '—':
		good = space(prev) == space(next)
	case '°':
		good = unicode.IsDigit(prev)
	case '…', '\u00a0', '€', '£', '§', '©', '®', '™', '№', '·', '•', '\u00ad':
		if !inWord {
			return harmless
		}
	default:
		if !inWord && !unicode.Is(unicode.Sm, r) {
			return -0.3
		}
	}
	if good {
		return fits
	}
	return strange
}

// A script has the frequency of the letters of a few languages that share an
// alphabet.
type script struct {
	table **unicode.RangeTable // a pointer to a variable needs no work when the program starts
	// groups of lower-case letters with the value of each letter.
	groups []group
	other  float64 // what any other letter of the alphabet is worth
	// latin scripts use ASCII letters too, and fewer high ones.
	latin bool
	// extra judges by a rule of the script; nil: it has none.
	extra func(text []rune, i int) float64
}

type group struct {
	letters string
	value   float64
}

// The tables below are in the order of frequency that is usual in printed text
// of the languages; the values are roughly the logarithm of a letter's
// frequency over that of a random letter.
var (
	western = script{table: &unicode.Latin, latin: true, other: -1, groups: []group{
		{"éäöüßàèçáíóúñãõâêîôûåøæ", 1},
		{"ëïùìòœýÿðþšžƒªº", -0.3},
	}}
	central = script{table: &unicode.Latin, latin: true, other: -1, groups: []group{
		{"áéíóúýčďěňřšťůžąćęłńśźżőűöüăâî", 1},
		{"äôľĺŕđţş", 0.3},
		{"ß", -0.3},
	}}
	turkish = script{table: &unicode.Latin, latin: true, other: -1, groups: []group{
		{"ğışiöüç", 1},
		{"âîûéäàèêëïôáíóúñß", 0},
	}}
	cyrillic = script{table: &unicode.Cyrillic, other: -1.5, extra: cyrillicPairs, groups: []group{
		{"оеаинтср", 1},
		{"влкмдпуя", 0.2},
		{"ыьгзбчйхжі", -0.4},
		{"шюцщэфъё", -2},
		{"їєґўјљњћђџ", -1.2},
	}}
	greek = script{table: &unicode.Greek, other: -1.5, extra: greekAccent, groups: []group{
		{"αοιετσςν", 1},
		{"άέήίόύώ", 0.6},
		{"ηυρπκμλ", 0.2},
		{"ωδγχθφβ", -0.5},
	}}
	hebrew = script{table: &unicode.Hebrew, other: -1.5, extra: hebrewFinal, groups: []group{
		{"יוהלאתמרבש", 0.7},
		{"נדעכחקפםןץףך", 0},
		{"צסגטז", -0.6},
	}}
)

// score judges the high letter at position i of text.
func (s *script) score(text []rune, i int) float64 {
	const strange = -2
	r := text[i]
	if !unicode.Is(*s.table, r) {
		return strange
	}
	prev, next := neighbors(text, i)
	value := s.value(unicode.ToLower(r))
	if s.extra != nil {
		value += s.extra(text, i)
	}
	// Capitals stand at the beginning of a word or among capitals.
	if unicode.IsUpper(r) {
		value -= 0.3
		if unicode.IsLower(prev) {
			value += strange
		} else if unicode.IsLetter(prev) {
			value -= 0.1
		}
	} else if unicode.IsUpper(prev) && prev >= utf8.RuneSelf && i > 1 && unicode.IsUpper(text[i-2]) {
		value += strange
	}
	for _, n := range []rune{prev, next} {
		switch {
		case !unicode.IsLetter(n):
		case s.latin && n < utf8.RuneSelf:
			value += 0.25
		case s.latin: // two accents side by side
			value -= 0.7
		case !unicode.Is(*s.table, n): // letters of two alphabets in one word
			value += strange
		}
	}
	if !unicode.IsLetter(prev) && !unicode.IsLetter(next) {
		value -= aloneCost(r)
	}
	return value
}

// aloneCost returns what a word of one high letter costs: such words are rare, except
// for a few in Latin script (French à, Portuguese é, Polish ó, Swedish å).
func aloneCost(r rune) float64 {
	if strings.ContainsRune("àéóåÀÉÓÅ", r) {
		return 0.5
	}
	return 1
}

func (s *script) value(lower rune) float64 {
	for _, g := range s.groups {
		if strings.ContainsRune(g.letters, lower) {
			return g.value
		}
	}
	return s.other
}

// cyrillicPairs judges pairs of letters that are rare in the Slavic languages.
func cyrillicPairs(text []rune, i int) float64 {
	const vowels = "аеёиоуыэюяіїє"
	prev, _ := neighbors(text, i)
	prev = unicode.ToLower(prev)
	vowelBefore := strings.ContainsRune(vowels, prev)
	switch r := unicode.ToLower(text[i]); {
	case strings.ContainsRune("ьъы", r) && (vowelBefore || !unicode.IsLetter(prev)):
		return -2
	case strings.ContainsRune(vowels, r) && prev == 'й':
		return -1
	case strings.ContainsRune(vowels, r) && vowelBefore:
		return -0.4
	}
	return 0
}

// greekAccent judges a whole word at its last letter: one of three lower-case
// letters or more carries an accent.
func greekAccent(text []rune, i int) float64 {
	if _, next := neighbors(text, i); unicode.Is(unicode.Greek, next) {
		return 0
	}
	n := 0
	for ; i >= 0 && unicode.IsLetter(text[i]); i-- {
		if unicode.IsUpper(text[i]) && n > 0 || strings.ContainsRune("άέήίόύώΐΰ", text[i]) {
			return 0
		}
		n++
	}
	if n < 3 {
		return 0
	}
	return -0.7 * float64(n)
}

// hebrewFinal judges the five letters that have a form for the end of a word, which
// is used nowhere else.
func hebrewFinal(text []rune, i int) float64 {
	if !strings.ContainsRune("םןץףך", text[i]) {
		return 0
	}
	prev, next := neighbors(text, i)
	if unicode.IsLetter(prev) && !unicode.IsLetter(next) {
		return 0.6
	}
	return -3
}
