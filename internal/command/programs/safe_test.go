// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"testing"
)

// TestSafe holds the holes of the peer's list closed.
func TestSafe(t *testing.T) {
	for words, want := range map[string]bool{
		"uniq a": true, "uniq -c": true, "uniq a b": false, "uniq - b": false,
		"sed -n 1p a": true, "sed -n 1p -i": false, "sed -n 1p -fa": false,
		"rg -n a": true, "rg -nz a": false, "rg --search a": false,
		"base64 a": true, "base64 -do a": false, "base64 --ou=a": false,
		"git log --oneline": true, "git log --outp=a": false, "git diff --ext": false, "git log --output-indicator-new=x": false,
		"git status": true, "git --exec-path=a status": false, "git push": false, "git": false,
		"/bin/ls": true, "/usr/bin/ls": true, "/usr/bin/../../tmp/ls": false, "bin/ls": false, "/tmp/ls": false, "ls": true,
		"find . -files0-from a": false, "find . -name a": true,
	} {
		if got := Safe(strings.Fields(words)); got != want {
			t.Errorf("%q: safe %v, want %v", words, got, want)
		}
	}
}
