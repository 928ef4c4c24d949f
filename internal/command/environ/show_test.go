// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestShowCommand(t *testing.T) {
	tests := []struct {
		name string
		args []string
		most int
		want string
	}{
		{"nothing", nil, 200, ""},
		{"words", []string{"sleep", "60"}, 200, "sleep 60"},
		{"empty words", []string{"a", "", "b"}, 200, "a  b"},
		{"control characters", []string{"echo", "a\x1b[31mb\nc\u202ed"}, 200, "echo a?[31mb c?d"},
		{"not UTF-8", []string{"echo", "a\xffb"}, 200, "echo a?b"},
		{"variable", []string{"env", "API_KEY=abc", "PATH=/bin"}, 200, "env API_KEY=*** PATH=/bin"},
		{"flag with a sign", []string{"curl", "--token=abc"}, 200, "curl --token=***"},
		{"flag and word", []string{"curl", "--secret-id", "abc", "x"}, 200, "curl --secret-id *** x"},
		{"two flags", []string{"curl", "--token", "--quiet", "x"}, 200, "curl --token --quiet x"},
		{"in a script", []string{"sh", "-c", "export MY_TOKEN=abc; run --api-key xyz now"}, 200, "sh -c export MY_TOKEN=*** run --api-key *** now"},
		{"header", []string{"curl", "-H", "Authorization: Bearer abc", "u"}, 200, "curl -H Authorization: Bearer *** u"},
		{"own header", []string{"curl", "-H", "X-Api-Key: abc"}, 200, "curl -H X-Api-Key: ***"},
		{"an address is none", []string{"git", "clone", "https://keys.example/x"}, 200, "git clone https://keys.example/x"},
		{"cut", []string{strings.Repeat("x", 300)}, 10, "xxxxxxx..."},
		{"cut at a character", []string{"aaaaaa\u00e9\u00e9\u00e9"}, 10, "aaaaaa..."},
		{"exact", []string{"0123456789"}, 10, "0123456789"},
		{"no room", []string{"abc"}, 0, ""},
		{"little room", []string{"abcdef"}, 2, ".."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ShowCommand(tt.args, tt.most); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzShowCommand(f *testing.F) {
	f.Add("sh", "-c", "TOKEN=x y", 20)
	f.Add("\xff\x1b", "--key", "\u202e", 3)
	f.Fuzz(func(t *testing.T, a, b, c string, most int) {
		got := ShowCommand([]string{a, b, c}, most)
		if len(got) > max(most, 0) || !utf8.ValidString(got) {
			t.Fatalf("%q has %d bytes, at most %d", got, len(got), most)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q holds %q", got, r)
			}
		}
	})
}
