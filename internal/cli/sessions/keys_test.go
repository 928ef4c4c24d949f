// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"strings"
	"testing"
)

func TestUnescape(t *testing.T) {
	for _, test := range []struct{ in, want, err string }{
		{`plain`, "plain", ""}, {``, "", ""}, {`a\nb\r\t\e\\`, "a\nb\r\t\x1b\\", ""}, {`\x03\xfF`, "\x03\xff", ""}, {"ü", "ü", ""},
		{`a\`, "", "ends with a backslash"}, {`\q`, "", `unknown escape "\\q"`}, {`\x`, "", "two hexadecimal digits"}, {`\x1`, "", "two hexadecimal digits"},
		{`\xg0`, "", "two hexadecimal digits"}, {`\x+1`, "", "two hexadecimal digits"},
	} {
		t.Run(test.in, func(t *testing.T) {
			got, err := unescape(test.in)
			if test.err == "" && (err != nil || string(got) != test.want) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%q, %v, want %s", got, err, test.err)
			}
		})
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{`a\n`, `\x0`, `\`, `\\\x7f`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := unescape(in)
		if err == nil && !strings.Contains(in, `\`) && string(got) != in {
			t.Errorf("%q became %q", in, got)
		}
	})
}

func TestKeys(t *testing.T) {
	for _, test := range []struct{ list, want, err string }{
		{`ctrl-\`, "\x1c", ""}, {"ctrl-p,ctrl-q", "\x10\x11", ""}, {"CTRL-A,d", "\x01d", ""}, {"ctrl-@", "\x00", ""}, {"ctrl-]", "\x1d", ""}, {"~", "~", ""},
		{"", "", `invalid key ""`}, {"ctrl-", "", "invalid key"}, {"ctrl-1", "", "invalid key"}, {"ctrl-p,", "", "invalid key"}, {"esc", "", "invalid key"}, {"ü", "", "invalid key"},
	} {
		t.Run(test.list, func(t *testing.T) {
			got, err := parseKeys(test.list)
			if test.err == "" && (err != nil || string(got) != test.want) {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%q, %v, want %s", got, err, test.err)
			}
		})
	}
}

func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"ctrl-p,ctrl-q", `ctrl-\`, "a,b", ","} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if keys, err := parseKeys(list); err == nil && len(keys) != strings.Count(list, ",")+1 {
			t.Errorf("%q from %q", keys, list)
		}
	})
}

// TestKeyring: keys that detach are passed on when they are not all there, in their order.
func TestKeyring(t *testing.T) {
	for _, test := range []struct {
		name, keys string
		typed      []string
		want       string
		detach     bool
	}{
		{"none", "\x1c", []string{"ab", "c"}, "abc", false},
		{"one", "\x1c", []string{"ab\x1ccd"}, "ab", true},
		{"two at once", "pq", []string{"apq"}, "a", true},
		{"two one by one", "pq", []string{"a", "p", "q"}, "a", true},
		{"half", "pq", []string{"ap", "b"}, "apb", false},
		{"half, held", "pq", []string{"ap"}, "a", false},
		{"first again", "pq", []string{"p", "p", "q"}, "p", true},
		{"overlap", "aab", []string{"aaab"}, "a", true},
		{"overlap, one by one", "abac", []string{"a", "b", "a", "b", "a", "c"}, "ab", true},
		{"overlap in vain", "abac", []string{"ababx"}, "ababx", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := keyring{keys: []byte(test.keys)}
			out, detach := "", false
			for _, typed := range test.typed {
				var keys []byte
				keys, detach = k.pass([]byte(typed))
				out += string(keys)
			}
			if out != test.want || detach != test.detach {
				t.Errorf("%q, %v, want %q, %v", out, detach, test.want, test.detach)
			}
		})
	}
}
