// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import "testing"

// TestForms: no file whose values have a form may have words for a shell, but for the name of a
// branch, which may have them. All may be empty.
func TestForms(t *testing.T) {
	for name, k := range gitNames() {
		if name != "BISECT_START" && k.Form != nil && len(k.Form([]byte("$(evil)\n"))) == 0 {
			t.Errorf("%s may have words for a shell", name)
		}
		if k.Form != nil && len(k.Form(nil)) > 0 {
			t.Errorf("%s must not be empty: git makes a file before it writes to it", name)
		}
	}
}

// TestSteps: lines of lists of steps that git writes, and those that run something or that git
// does not know.
func TestSteps(t *testing.T) {
	for line, good := range map[string]bool{
		"pick 1234abcd a; $(b)": true, "p 1234": true, "fixup -C 1234abcd x": true, "merge -C 1234abcd topic # Merge": true,
		"label onto": true, "reset [new root]": true, "reset onto # x": true, "update-ref refs/heads/a": true, "break": true, "noop": true,
		"": true, "# exec x": true, "; exec x": true, "pic": true, "e": true,
		"exec x": false, "x y": false, "x": false, "exec": false, "merge -C --exec topic": false, "merge -x 1234 topic": false, "pick --exec=x": false,
		"label $(x)\x1b": false, "label ~x": false, "update-ref --stdin": false, "run x": false, "$(x)": false, "`x`": false,
		"break\x07": false, "label -x": false,
	} {
		if step(line) != good {
			t.Errorf("%q: %v", line, !good)
		}
	}
}
