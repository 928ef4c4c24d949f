// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"unicode/utf8"
)

// sequence looks at the UTF-8 sequence at the start of p, which is not empty.
// It returns the length of its longest part that could begin a character (the
// "maximal subpart" of the Unicode standard, chapter 3.9), at least 1, and
// whether p is incomplete only at its end.
func sequence(p []byte) (n int, incomplete bool) {
	lo, hi := byte(0x80), byte(0xbf)
	var want int
	switch c := p[0]; {
	case c >= 0xc2 && c <= 0xdf:
		want = 2
	case c >= 0xe0 && c <= 0xef:
		want = 3
		switch c {
		case 0xe0:
			lo = 0xa0 // below are overlong forms
		case 0xed:
			hi = 0x9f // above are surrogates
		}
	case c >= 0xf0 && c <= 0xf4:
		want = 4
		switch c {
		case 0xf0:
			lo = 0x90 // below are overlong forms
		case 0xf4:
			hi = 0x8f // above is no Unicode
		}
	default:
		return 1, false
	}
	for n = 1; n < want; n++ {
		if n == len(p) {
			return n, true
		}
		if p[n] < lo || p[n] > hi {
			return n, false
		}
		lo, hi = 0x80, 0xbf
	}
	return n, false
}

// Decode returns p as valid UTF-8, with one U+FFFD for every maximal subpart that is
// not a character, as browsers (WHATWG Encoding) and Rust do. Package unicode/utf8
// would put one for every byte. Valid input stays as it is.
func Decode(p []byte) string {
	if utf8.Valid(p) {
		return string(p)
	}
	var b strings.Builder
	b.Grow(len(p) + len(p)/8)
	for len(p) > 0 {
		n := validPrefix(p)
		b.Write(p[:n])
		if p = p[n:]; len(p) == 0 {
			break
		}
		n, _ = sequence(p)
		b.WriteRune(utf8.RuneError)
		p = p[n:]
	}
	return b.String()
}

// validPrefix returns the length of the longest prefix of p that is UTF-8.
func validPrefix(p []byte) int {
	i := 0
	for i < len(p) {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// A Splitter cuts a stream of chunks at the boundaries of characters, so that a
// consumer who decodes each chunk never sees half of one. It passes bytes on at once
// that cannot become a character; only a beginning of one, at most three bytes, waits
// for its rest. All chunks joined, and what Flush returns, are the bytes pushed. The
// zero Splitter is ready to use, by one goroutine at a time.
type Splitter struct {
	held  [utf8.UTFMax - 1]byte
	n     int
	joint []byte
}

// Push takes the next chunk and returns what can be passed on: p itself or a
// part of it when nothing was held back, else memory of the Splitter that is
// valid until the next Push. The result may be empty. p is not changed.
func (s *Splitter) Push(p []byte) (whole []byte) {
	if s.n > 0 {
		s.joint = append(append(s.joint[:0], s.held[:s.n]...), p...)
		p = s.joint
	}
	s.n = copy(s.held[:], p[len(p)-Unfinished(p):])
	return p[:len(p)-s.n]
}

// Flush returns the bytes that are held back, for the end of the stream; nil if
// there are none. The result is new memory.
func (s *Splitter) Flush() []byte {
	if s.n == 0 {
		return nil
	}
	out := append([]byte(nil), s.held[:s.n]...)
	s.n = 0
	return out
}

// Unfinished returns how many bytes at the end of p begin a character whose rest can
// still come: 0 to 3.
func Unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		rest := p[len(p)-n:]
		if utf8.RuneStart(rest[0]) {
			if m, incomplete := sequence(rest); incomplete && m == n {
				return n
			}
			return 0
		}
	}
	return 0
}

// Whole returns head and tail, the text before and after a gap, without the parts of
// characters that the gap has cut.
func Whole(head, tail []byte) (h, t []byte) {
	for n := 1; n < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); n++ {
		tail = tail[1:]
	}
	return head[:len(head)-Unfinished(head)], tail
}
