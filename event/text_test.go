// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzText lets encoding/json judge.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x00b\x1f\x7f", "\"\\/\b\f\n\r\t", "<&>", "é€😀", "\u2028\u2029\u202a", "\xff\xc3", "\xe2\x80", "ends in \xf0\x9f\x98"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		got, want := appendText(nil, s), bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		if !bytes.Equal(got, want) {
			t.Errorf("%q became %s, want %s", s, got, want)
		}
		if len(got) > textSize(s)+5*bytes.Count([]byte(s), []byte{0xff}) && bytes.Equal([]byte(s), bytes.ToValidUTF8([]byte(s), nil)) {
			t.Errorf("%q takes %d bytes, announced were %d", s, len(got), textSize(s))
		}
	})
}
