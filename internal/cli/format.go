// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/printable"
)

// encode returns v as one line of JSON, with the letters of HTML as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	err := encodeTo(&b, v)
	return b.Bytes(), err
}

// encodeTo writes that line with one call of Write.
func encodeTo(w io.Writer, v any) error {
	if r, ok := v.(*sallyport.Result); ok { // the encoder would copy the output of a program twice more
		return r.WriteJSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// quote returns s in quotes, with what does not print escaped, and shortened when it
// is long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// sentence returns a text as one line, without a period.
func sentence(text string) string {
	return strings.TrimSuffix(printable.Line(strings.Join(strings.Fields(text), " ")), ".")
}

// bytesText writes a number of bytes for people: "512 MiB".
func bytesText(n float64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if size := math.Pow(1024, float64(4-i)); n >= size {
			return strconv.FormatFloat(math.Round(n/size*10)/10, 'f', -1, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " B"
}

// plural writes a number of things: "1 write", "3 writes".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// tilde shortens a path below the home directory.
func tilde(name, home string) string {
	if home = strings.TrimSuffix(home, "/"); home == "" {
		return name
	}
	if rest, ok := strings.CutPrefix(name, home); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return name
}

// shellWords joins words so that a shell reads the same ones.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shellWord(w)
	}
	return strings.Join(out, " ")
}

// shellWord quotes a word for a shell. What does not print is escaped in a form that
// bash, zsh and ksh read.
func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	if utf8.ValidString(w) && !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, n := utf8.DecodeRuneInString(w)
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + w[:n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range []byte(w[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(w[:n])
		}
		w = w[n:]
	}
	return b.String() + "'"
}
