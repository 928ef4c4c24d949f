// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"strings"
	"testing"
)

// TestReadStaysBelow asks for folders that a symbolic link leads to: a folder may
// turn into one between two scans.
func TestReadStaysBelow(t *testing.T) {
	dir, outside := room(t), room(t)
	put(t, outside+"/sub/secret", "")
	put(t, dir+"/real/sub/name", "")
	link(t, outside, dir+"/way")
	link(t, "real", dir+"/near")
	h, err := openRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for path, want := range map[string]string{"real/sub": "name", "way/sub": "", "way": "", "near/sub": "", "../" + outside: "", "": "near real way"} {
		var names []string
		st, err := h.read(path, func(name []byte, _ entryKind) bool {
			names = append(names, string(name))
			return true
		})
		if (err == nil) != (want != "") || (st == stamp{}) != (want == "") || len(names) != len(strings.Fields(want)) {
			t.Errorf("%q: %q, %v", path, names, err)
		}
	}
}
