// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
)

// Members returns the members of a valid JSON object, which are parts of it, with their names, or
// the elements of an array, with nil.
func Members(data []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for at := space(data, 1); at < len(data) && data[at] != '}' &&
			data[at] != ']'; at = space(data, at+1) {
			var name []byte
			if data[0] == '{' {
				end := past(data, at)
				name, _ = textOf(data[at:end]) // it is valid
				at = space(data, space(data, end)+1)
			}
			end := past(data, at)
			if !yield(name, data[at:end]) {
				return
			}
			if at = space(data, end); at >= len(data) || data[at] != ',' {
				return
			}
		}
	}
}

// space returns where what is no space begins, from a place on.
func space(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\r' || data[at] == '\n') {
		at++
	}
	return at
}

// past returns where the value at a place ends.
func past(data []byte, at int) int {
	switch data[at] {
	case '"':
		return pastText(data, at)
	case '{', '[':
		depth := 0
		for at < len(data) {
			switch data[at] {
			case '"':
				at = pastText(data, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if at++; depth == 0 {
				break
			}
		}
		return at
	}
	if n := bytes.IndexAny(data[at:], ",]} \t\r\n"); n >= 0 {
		return at + n
	}
	return len(data)
}

// pastText returns where the string at a place ends.
func pastText(data []byte, at int) int {
	for at++; at < len(data); at++ {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			break
		}
		escapes := 0
		for escapes < n && data[at+n-1-escapes] == '\\' {
			escapes++
		}
		if at += n; escapes%2 == 0 {
			return at + 1
		}
	}
	return len(data)
}

// TypeName names the type of a JSON value for an error message.
func TypeName(value []byte) string {
	switch value[0] {
	case '"':
		return "string " + string(value[:min(len(value), 80)])
	case '{':
		return "map"
	case '[':
		return "sequence"
	case 't', 'f':
		return "boolean `" + string(value) + "`"
	case 'n':
		return "null"
	}
	return "number"
}

// Base64 decodes base64. Padding is needed. The errors are in the words that clients know.
func Base64(s []byte) ([]byte, error) {
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Strict().Decode(decoded, s)
	at := -1
	var corrupt base64.CorruptInputError
	if err == nil {
		at = bytes.IndexAny(s, "\r\n")
	} else if errors.As(err, &corrupt) && int(corrupt) < len(s) && !base64Symbol(s[corrupt]) {
		at = int(corrupt)
	}
	switch {
	case at >= 0:
		return nil, fmt.Errorf("Invalid symbol %d, offset %d.", s[at], at) //nolint:staticcheck // clients know this text
	case err != nil:
		return nil, errors.New("Invalid padding") //nolint:staticcheck // clients know this text
	}
	return decoded[:n], nil
}

// base64Symbol reports whether a byte may stand in base64, padding included.
func base64Symbol(c byte) bool {
	return bytes.IndexByte([]byte("+/="), c) >= 0 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' ||
		c >= 'a' && c <= 'z'
}
