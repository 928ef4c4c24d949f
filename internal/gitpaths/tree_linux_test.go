// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"strings"
	"testing"
)

// TestTreeFollowsNoLink opens directories that a symbolic link leads to: a directory
// can become one between two scans.
func TestTreeFollowsNoLink(t *testing.T) {
	dir, outside := tempDir(t), tempDir(t)
	put(t, outside+"/sub/secret", "")
	put(t, dir+"/real/sub/name", "")
	link(t, outside, dir+"/way")
	link(t, "real", dir+"/near")
	top, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.close()
	for path, want := range map[string]string{"real/sub": "name", "way/sub": "", "way": "", "near/sub": "", "../" + outside: "", "": "near real way"} {
		var names []string
		f, err := top.open(path)
		if err == nil {
			names, err = f.Readdirnames(-1)
			f.Close()
		}
		if (err == nil) != (want != "") || len(names) != len(strings.Fields(want)) {
			t.Errorf("%q: %q, %v", path, names, err)
		}
	}
	for path, want := range map[string]bool{"real": true, "real/sub": true, "near": false, "near/sub": false} {
		below, err := openTree(dir + "/" + path)
		if below.close(); (err == nil) != want {
			t.Errorf("openTree of %q: %v", path, err)
		}
	}
}
