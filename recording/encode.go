// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The headers of both versions.
type (
	headerV3 struct {
		Version   int               `json:"version"`
		Term      termV3            `json:"term"`
		Timestamp int64             `json:"timestamp"`
		Command   string            `json:"command,omitempty"`
		Title     string            `json:"title,omitempty"`
		IdleLimit float64           `json:"idle_time_limit,omitempty"`
		Env       map[string]string `json:"env,omitempty"`
	}
	termV3 struct {
		Cols int    `json:"cols"`
		Rows int    `json:"rows"`
		Type string `json:"type,omitempty"`
	}
	headerV2 struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp"`
		Command   string            `json:"command,omitempty"`
		Title     string            `json:"title,omitempty"`
		Env       map[string]string `json:"env,omitempty"`
	}
)

// header returns the first line of a recording, without its end.
func header(o *Options, spec *executor.Spec, start time.Time) []byte {
	size := executor.Size{}
	if spec.TTY != nil {
		size = *spec.TTY
	}
	size = size.OrUsual()
	env := map[string]string{}
	for _, v := range spec.Env {
		name, value, _ := strings.Cut(v, "=")
		if name == "TERM" || name == "SHELL" {
			env[name] = value
		}
	}
	command := text.Decode([]byte(strings.Join(spec.Args, " ")))
	var h any = headerV2{2, int(size.Cols), int(size.Rows), start.Unix(), command, o.Title, env}
	if o.Format == V3 {
		term := termV3{int(size.Cols), int(size.Rows), env["TERM"]}
		delete(env, "TERM")
		h = headerV3{Version: 3, Term: term, Timestamp: start.Unix(), Command: command, Title: o.Title, Env: env}
	}
	line, _ := json.Marshal(h) // numbers and strings do not fail
	return line
}

// appendEvent appends the line of an event. The time is in microseconds.
func appendEvent(b []byte, at int64, code byte, data []byte) []byte {
	const second, digits = 1_000_000, 6
	b = append(b, '[')
	b = strconv.AppendInt(b, at/second, 10)
	b = append(b, '.')
	fraction := strconv.AppendInt(nil, second+at%second, 10) // with a digit in front
	b = append(b, fraction[len(fraction)-digits:]...)
	b = append(b, `, "`...)
	b = append(b, code)
	b = append(b, `", "`...)
	b = appendText(b, data)
	return append(b, '"', ']', '\n')
}

// escapes has for each byte of ASCII what stands for it in a string of JSON after the backslash; 0 for the
// byte itself.
var escapes = func() (t [256]byte) {
	for c := range ' ' {
		t[c] = 'u'
	}
	for c, e := range map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r',
		'\t': 't'} {
		t[c] = e
	}
	return t
}()

// appendText appends a text as in a string of JSON. For each part that is not UTF-8 there is one U+FFFD.
func appendText(b, p []byte) []byte {
	if !utf8.Valid(p) {
		p = []byte(text.Decode(p))
	}
	const hex = "0123456789abcdef"
	from := 0
	for i := plainPrefix(p); i < len(p); i++ {
		c := p[i]
		e := escapes[c]
		if e == 0 {
			i += plainPrefix(p[i+1:])
			continue
		}
		b = append(append(b, p[from:i]...), '\\', e)
		if e == 'u' {
			b = append(b, '0', '0', hex[c>>4], hex[c&15])
		}
		from = i + 1
	}
	return append(b, p[from:]...)
}

// plainPrefix returns how many bytes p begins with that a string of JSON has as they are, or up to 15
// less.
func plainPrefix(p []byte) int {
	n := 0
	for ; n+16 <= len(p); n += 16 {
		a, b := special(binary.LittleEndian.Uint64(p[n:])), special(binary.LittleEndian.Uint64(p[n+8:]))
		switch {
		case a|b == 0:
		case a != 0:
			return n + bits.TrailingZeros64(a)/8
		default:
			return n + 8 + bits.TrailingZeros64(b)/8
		}
	}
	return n
}

// special returns a word of which the lowest bit that is set is the top bit of the first byte of w that needs an
// escape. With one bit turned, the quotation mark follows the controls.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	low, slash := w^ones*('"'^' '), w^ones*'\\'
	return ((low-ones*(' '+1))&^low | (slash-ones)&^slash) & tops
}
