// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import "testing"

func TestUpdate(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, chunks, want, wrong string }{
		{"the first end of a line for new ones", "a\r\nb\n", "@@\n-b\n+c\n+d", "a\r\nc\r\nd\r\n", ""},
		{"lone carriage returns", "a\rb\r", "@@\n-b\n+c", "a\rc\r", ""},
		{"a byte-order mark stays", "\uFEFFa\nb\n", "@@\n-b\n+c", "\uFEFFa\nc\n", ""},
		{"a byte-order mark belongs to its line", "\uFEFFa\n", "@@\n-a\n+c", "",
			"Failed to find expected lines in f:\na"},
		{"kept lines as the file has them", "a \n\tb\n", "@@\n a\n-b\n+c", "a \nc\n", ""},
		{"an exact line before a folded one", "a\u2014b\na-b\n", "@@\n-a-b\n+x", "a\u2014b\nx\n", ""},
		{"an ellipsis is not folded", "a\u2026\n", "@@\n-a...\n+x", "",
			"Failed to find expected lines in f:\na..."},
		{"no space at the end of a patch", "a\n", "@@\n-a\n-\n+b\n+", "b\n", ""},
		{"an empty line that is missing, before new ones", "a\n", "@@\n a\n \n+b", "a\n\nb\n", ""},
		{"the tail only", "x\ny\nx\n", "@@\n-x\n+z\n*** End of File", "x\ny\nz\n", ""},
		{"after a context", "x\nf\nx\n", "@@ f\n-x\n+z", "x\nf\nz\n", ""},
		{"a new line goes to the end", "x\nf\nx", "@@ x\n+z", "x\nf\nx\nz\n", ""},
		{"a new line before a later chunk", "x\ny\n", "@@\n+z\n@@\n-x\n+w", "w\ny\nz\n", ""},
		{"overlap", "a\nb\nc\n", "@@\n a\n-b\n@@\n-b\n+c", "", "Failed to find expected lines in f:\nb"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, err := Parse("*** Begin Patch\n*** Update File: f\n" + test.chunks + "\n*** End Patch")
			if err != nil {
				t.Fatal(err)
			}
			got, err := update("f", test.file, p.Hunks[0].Chunks, new(work))
			wrong := ""
			if err != nil {
				wrong = err.Error()
			}
			if string(got) != test.want || wrong != test.wrong {
				t.Errorf("got %q, %q; want %q, %q", got, wrong, test.want, test.wrong)
			}
		})
	}
}
