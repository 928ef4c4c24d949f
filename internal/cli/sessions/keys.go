// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
)

// newWriteID returns an ID for one write.
func newWriteID() string { return rand.Text() }

// unescape returns the bytes that a text with escapes stands for.
func unescape(s string) ([]byte, error) {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; i == len(s) {
			return nil, explain.NewError(`the text ends with a backslash; write \\ for one`)
		}
		switch s[i] {
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'e':
			out = append(out, '\x1b')
		case '\\':
			out = append(out, '\\')
		case 'x':
			n, err := strconv.ParseUint(s[min(i+1, len(s)):min(i+3, len(s))], 16, 8)
			if err != nil || i+3 > len(s) {
				return nil, explain.NewError(`\x needs two hexadecimal digits, such as \x03`)
			}
			out = append(out, byte(n))
			i += 2
		default:
			return nil, explain.NewError(`unknown escape %q; use \n, \r, \t, \e, \\ or \xHH`, s[i-1:i+1])
		}
	}
	return out, nil
}

// defaultKeys detach.
const defaultKeys = `ctrl-\`

// parseKeys returns the keys of a list such as "ctrl-p,ctrl-q" or "ctrl-a,d".
func parseKeys(list string) ([]byte, error) {
	var keys []byte
	for word := range strings.SplitSeq(list, ",") {
		name, control := strings.CutPrefix(strings.ToLower(word), "ctrl-")
		switch {
		case control && len(name) == 1 && (name[0] >= 'a' && name[0] <= 'z' ||
			strings.ContainsAny(name, `@[\]^_`)):
			keys = append(keys, strings.ToUpper(name)[0]&0x1f)
		case !control && len(word) == 1 && word[0] > ' ' && word[0] < 0x7f:
			keys = append(keys, word[0])
		default:
			return nil, fmt.Errorf(`invalid key %q; use ctrl- with a letter or one of @[\]^_, or a character, with commas between`, shortened(word))
		}
	}
	return keys, nil
}

// A keyring looks for keys that detach among those that are typed.
type keyring struct {
	keys []byte // empty: none detach
	held int    // how many of them came last, and were not passed on
}

// pass returns the keys to pass on, and whether the last of those that detach has come: what is
// behind it is dropped.
func (k *keyring) pass(typed []byte) (out []byte, detach bool) {
	if len(k.keys) == 0 {
		return typed, false
	}
	for _, b := range typed {
		// The keys before may be the beginning of another try.
		for k.held > 0 && b != k.keys[k.held] {
			n := k.held
			for k.held--; k.held > 0 && string(k.keys[n-k.held:n]) != string(k.keys[:k.held]); {
				k.held--
			}
			out = append(out, k.keys[:n-k.held]...)
		}
		if b != k.keys[k.held] {
			out = append(out, b)
			continue
		}
		if k.held++; k.held == len(k.keys) {
			k.held = 0
			return out, true
		}
	}
	return out, false
}
