// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import "testing"

func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"valid", "a\u20ac\uFFFD", ""},
		{"no first byte", "ab\xff", "invalid utf-8 sequence of 1 bytes from index 2"},
		{"one byte of two", "\xc3(", "invalid utf-8 sequence of 1 bytes from index 0"},
		{"two bytes of three", "a\xe2\x82b", "invalid utf-8 sequence of 2 bytes from index 1"},
		{"three bytes of four", "\xf0\x9f\x98b", "invalid utf-8 sequence of 3 bytes from index 0"},
		{"cut", "a\xe2\x82", "incomplete utf-8 byte sequence from index 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := invalidUTF8(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
