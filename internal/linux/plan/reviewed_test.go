// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"strings"
	"testing"
)

// TestProfileIsReviewed: the page that reviews the profile for a workspace names
// every operation, filter and string in it.
func TestProfileIsReviewed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/seatbelt.md")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := mac(t, macRequest(workspace()...))
	forms, err := readForms(p.Exec.Args[2])
	if err != nil {
		t.Fatal(err)
	}
	var atoms func(f form) []string
	atoms = func(f form) []string {
		out := []string{f.atom}
		for _, one := range f.list {
			out = append(out, atoms(one)...)
		}
		return out
	}
	for _, f := range forms {
		for _, atom := range atoms(f) {
			// The names of parameters that follow a pattern stand there once.
			atom = strings.TrimSuffix(atom, "_ANY_CASE")
			ours := strings.HasPrefix(atom, "WRITABLE_ROOT_1_EXCLUDED_") // "0 to 3"
			if !ours && !strings.Contains(string(page), atom) {
				t.Errorf("%s is not on the page", atom)
			}
		}
	}
}
