// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/output"
)

// TestDecoded reads output that is not UTF-8; the rows are those of the exec tool.
func TestDecoded(t *testing.T) {
	whole := func(text string) output.Snapshot {
		return output.Snapshot{Head: []byte(text), Total: uint64(len(text))}
	}
	cut := func(head, tail string) output.Snapshot {
		return output.Snapshot{Head: []byte(head), Tail: []byte(tail), Omitted: 7, Total: uint64(len(head)+len(tail)) + 7}
	}
	for _, tt := range []struct {
		name   string
		output output.Snapshot
		want   string
	}{
		{"nothing", output.Snapshot{}, ""},
		{"row 21: windows-1251", whole("\xef\xf0\xe8\xec\xe5\xf0"), "пример"},
		{"row 22: IBM866", whole("\xaf\xe0\xa8\xac\xa5\xe0"), "пример"},
		{"row 23: punctuation of windows-1252", whole("\x93\x94 test \x96 dash"), "“” test – dash"},
		{"row 23: not capitals of IBM866", whole("\x92\x91 was it"), "’‘ was it"},
		{"row 24: Latin", whole("caf\xe9"), "café"},
		{"row 25: no encoding fits", whole("\xff\xfe\xfd"), "\ufffd\ufffd\ufffd"},
		{"row 26: stray byte", whole("a\xffb"), "aÿb"},
		{"row 27: valid UTF-8", whole("пример caf\u00e9"), "пример café"},
		{"row 28: capitals of IBM866", whole("\x8f\x90\x88"), "ПРИ"},
		{"damaged UTF-8", whole("日本\xe8"), "日本\ufffd"},
		{"gap in windows-1251", cut("\xef\xf0\xe8\xec\xe5\xf0 ", " \xef\xf0\xe8\xec\xe5\xf0"), "пример " + output.Marker(7) + " пример"},
		{"gap in a character of UTF-8", cut("text \xe4\xb8", "\x96 text"), "text " + output.Marker(10) + " text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newOutput(tt.output).Decoded(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutputPlain(t *testing.T) {
	for _, test := range []struct{ name, printed, want string }{
		{"nothing", "", ""},
		{"no sequences", "one\ntwo\n", "one\ntwo\n"},
		{"colors and modes", "\x1b[?2004h\x1b[1;32mready\x1b[0m\r\n", "ready\n"},
		{"a title and a link", "\x1b]0;title\a\x1b]8;;https://x\x1b\\here\x1b]8;;\x1b\\", "here"},
		{"bytes that are not UTF-8", "\x1b[31m\xff\x1b[m", "\ufffd"},
		{"a line that is written anew", "10%\r20%\r\n", "10%\n20%\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOutput(output.Snapshot{Head: []byte(test.printed), Total: uint64(len(test.printed))})
			if got := o.Plain(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
