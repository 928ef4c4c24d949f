// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import "testing"

// TestWhole: what is shown of output whose beginning is not begins with a whole line or sequence.
func TestWhole(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"rest of a line\nnext\n":         "next\n",
		";102;103m\x1b[1mtext":           "\x1b[1mtext",
		"\x96\x8c\xe4\xb8\x96\x1b[mtext": "\x1b[mtext",
		"title\x1b\\text\nnext":          "next",
		"102m\nnext\x1b[m":               "next\x1b[m",
		"\x96no end of a line":           "no end of a line",
	} {
		if got := string(whole([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
