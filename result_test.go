// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/output"
)

func TestOutputString(t *testing.T) {
	tests := []struct {
		name string
		in   output.Snapshot
		want string
	}{
		{"empty", output.Snapshot{}, ""},
		{"whole", output.Snapshot{Head: []byte("caf\xc3"), Tail: []byte("\xa9!")}, "café!"},
		{"a gap", output.Snapshot{Head: []byte("ab"), Tail: []byte("yz"), Omitted: 5}, "ab\n... 5 bytes omitted ...\nyz"},
		{"only the beginning", output.Snapshot{Head: []byte("ab"), Omitted: 5}, "ab"},
		{"a gap that cuts characters", output.Snapshot{Head: []byte("a\xe2\x82"), Tail: []byte("\xac\xa9z"), Omitted: 5},
			"a\n... 9 bytes omitted ...\nz"},
		{"no text at all", output.Snapshot{Head: []byte{0xff}, Tail: []byte{0x80, 0x80, 0x80, 0x80, 'z'}, Omitted: 1},
			"\ufffd\n... 4 bytes omitted ...\n\ufffdz"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := newOutput(test.in).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
