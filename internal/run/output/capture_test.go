// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestCaptureOrder(t *testing.T) {
	// Each piece is "o" or "e" and the text that stream prints.
	for _, tt := range []struct {
		name            string
		limit           Limit
		pieces          []string
		out, err        string
		combined        string
		combinedOmitted uint64
	}{
		{"interleaved", Limit{Bytes: 100}, []string{"oone\n", "etwo\n", "othree\n"}, "one\nthree\n", "two\n", "one\ntwo\nthree\n", 0},
		{"aggregate overflows, streams do not", Limit{Bytes: 10}, []string{"oabcd", "eABCD", "oefgh"}, "abcdefgh", "ABCD", "abcdA" + "Defgh", 2},
		{"tail of the aggregate lies in a head", Limit{Bytes: 4}, []string{"oabcdef", "eX"}, "abef", "X", "ab" + "fX", 3},
		{"one stream", Limit{Bytes: 4}, []string{"oab", "ocd", "oef"}, "abef", "", "abef", 2},
		{"nothing kept", Limit{}, []string{"oab", "ecd"}, "", "", "", 4},
		{"beginnings, all that is kept in order", Limit{Bytes: 3, HeadOnly: true}, []string{"oab", "eABCD", "ocd"}, "abc", "ABC", "abABCc", 2},
		{"lines", Limit{Bytes: 99, Lines: 1}, []string{"oa\nb", "eA\nB", "oc"}, "a\n", "A\n", "a\nA\n", 3},
		{"unlimited", Limit{Unlimited: true}, []string{"oa", "eb", "oc", "ed"}, "ac", "bd", "abcd", 0},
		{"empty pieces", Limit{Bytes: 9}, []string{"oa", "e", "ob"}, "ab", "", "ab", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCapture(tt.limit)
			for _, p := range tt.pieces {
				s := executor.Stdout
				if p[0] == 'e' {
					s = executor.Stderr
				}
				c.Write(s, []byte(p[1:]))
			}
			got := c.Snapshot()
			for _, x := range []struct{ name, got, want string }{
				{"stdout", string(got.Stdout.Bytes()), tt.out},
				{"stderr", string(got.Stderr.Bytes()), tt.err},
				{"combined", string(got.Combined.Bytes()), tt.combined},
			} {
				if x.got != x.want {
					t.Errorf("%s %q, want %q", x.name, x.got, x.want)
				}
			}
			if got.Combined.Omitted != tt.combinedOmitted {
				t.Errorf("combined omits %d, want %d", got.Combined.Omitted, tt.combinedOmitted)
			}
		})
	}
}
