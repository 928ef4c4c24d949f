// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// The kinds of lines that the log writes about itself; those of others are in their Records.
const (
	kindSegment    = "segment"    // the first line of a file
	kindCheckpoint = "checkpoint" // a signed note about all lines before
	kindRecovered  = "recovered"  // what a writer found that was not as it was left
	kindLost       = "lost"       // records that could not be kept
	kindEvent      = "event"      // the JSON form of an event.Event
)

// maxLine is how long a line may be, in bytes with its end.
const maxLine = 1 << 20

// A sum is a SHA-256 sum, in lower case hexadecimal digits where it is written down.
type sum [sha256.Size]byte

// MarshalText returns hexadecimal digits.
func (s sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads what MarshalText returns, and nothing else.
func (s *sum) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) || bytes.ContainsAny(text, "ABCDEF") {
		return fmt.Errorf("%q is no SHA-256 sum", text)
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// A line is one line of a log. It has one spelling:
//
//	{"n":17,"prev":"HEX64","time":"RFC3339","kind":"WORD","body":{...},"hash":"HEX64"}
type line struct {
	n    uint64
	prev sum
	time time.Time
	kind string
	body []byte // a JSON object on one line
	hash sum    // of the text before the member hash
}

const (
	hashMember = `,"hash":"`
	tailLen    = len(hashMember) + 2*sha256.Size + len(`"}`)
)

// appendLine appends a line with its end, and returns the hash of it.
func appendLine(b []byte, l line) ([]byte, sum) {
	start := len(b)
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, l.n, 10)
	b = append(b, `,"prev":"`...)
	b = hex.AppendEncode(b, l.prev[:])
	b = append(b, `","time":"`...)
	b = l.time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","kind":"`...)
	b = append(b, l.kind...)
	b = append(b, `","body":`...)
	b = append(b, l.body...)
	hash := sum(sha256.Sum256(b[start:]))
	b = append(b, hashMember...)
	b = hex.AppendEncode(b, hash[:])
	return append(b, "\"}\n"...), hash
}

// A malformed says why a text is no line.
type malformed string

// Error returns a clause.
func (m malformed) Error() string { return string(m) }

// The reasons, but those about members.
const (
	errForm = malformed("it is not a line of an audit log")
	errHash = malformed("it was changed: its hash is not that of its text")
)

// parseLine reads a line without its end. Of a line that was changed it returns what can be read,
// and an error.
func parseLine(text []byte) (line, error) {
	var l line
	rest, ok := bytes.CutPrefix(text, []byte(`{"n":`))
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseUint(string(rest[:digits]), 10, 64)
	if !ok || err != nil || n == 0 || rest[0] == '0' {
		return l, errForm
	}
	l.n = n
	prev, rest, ok := member(rest[digits:], `,"prev":"`)
	if !ok || l.prev.UnmarshalText(prev) != nil {
		return l, errForm
	}
	at, rest, ok := member(rest, `,"time":"`)
	if !ok || !l.setTime(at) {
		return l, errForm
	}
	kind, rest, ok := member(rest, `,"kind":"`)
	if !ok || !isKind(string(kind)) {
		return l, errForm
	}
	l.kind = string(kind)
	rest, ok = bytes.CutPrefix(rest, []byte(`,"body":`))
	if !ok || len(rest) < tailLen {
		return l, errForm
	}
	l.body = rest[:len(rest)-tailLen]
	tail, end, ok := member(rest[len(l.body):], hashMember)
	if !ok || string(end) != "}" || l.hash.UnmarshalText(tail) != nil || !isObject(l.body) {
		return l, errForm
	}
	if l.hash != sha256.Sum256(text[:len(text)-tailLen]) {
		return l, errHash
	}
	return l, nil
}

// member cuts a member, which begins with a prefix, and its text, which has no quotes.
func member(text []byte, prefix string) (value, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(text, []byte(prefix))
	if !ok {
		return nil, nil, false
	}
	return bytes.Cut(rest, []byte(`"`))
}

// setTime takes a time in the one spelling that a line has.
func (l *line) setTime(text []byte) bool {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return false
	}
	l.time = at.UTC()
	return string(text) == l.time.Format(time.RFC3339Nano)
}

// isKind reports whether a word may be the kind of a line.
func isKind(word string) bool {
	for _, r := range word {
		if (r < 'a' || r > 'z') && r != '_' {
			return false
		}
	}
	return word != "" && len(word) <= 32
}

// isObject reports whether a text is a JSON object on one line.
func isObject(text []byte) bool {
	return len(text) > 0 && text[0] == '{' && json.Valid(text) && bytes.IndexByte(text, '\n') < 0
}
