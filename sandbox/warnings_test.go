// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	real := func(name string) string {
		if name == "/w/link" {
			return "/home/u"
		}
		return name
	}
	for _, c := range []struct {
		name, dir string
		policy    Policy
		want      []string // words of each warning, in order
	}{
		{"directory in the home", "/home/u/w", WorkspaceWrite(), nil},
		{"the home", "/home/u", WorkspaceWrite(), []string{"/home/u is the home directory"}},
		{"the home by a link", "/w/link", WorkspaceWrite(), []string{"/w/link (that is /home/u) is the home directory"}},
		{"above the home", "/home", WorkspaceWrite(), []string{"/home contains the home directory"}},
		{"name that only begins alike", "/hom", WorkspaceWrite(), nil},
		{"system", "/etc", WorkspaceWrite(), []string{"/etc is a system directory"}},
		{"below a system directory", "/var/tmp/w", WorkspaceWrite(), nil},
		{"another root", "/w", WorkspaceWrite().WithEntries(PathEntry("/usr", LevelWrite)), []string{"/usr is a system directory"}},
		{"two", "/home/u", WorkspaceWrite().WithEntries(PathEntry("/var", LevelWrite)), []string{"/var is", "/home/u is"}},
		{"reading only", "/home/u", ReadOnly(), nil},
		{"nothing", "/home/u", Policy{}, nil},
		{"narrowed to reading", "/w", WorkspaceWrite().WithEntries(PathEntry("/etc", LevelWrite), PathEntry("/etc", LevelRead)), nil},
		{"full access", "/", FullAccess(), nil},
		{"ignored entry", "/w", WorkspaceWrite().WithEntries(SpecialEntry("moon", LevelRead)), []string{"moon"}},
		{"broken", "/home/u", WorkspaceWrite().WithEntries(PathEntry("", LevelDeny)), []string{"/home/u is"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bound := c.policy.Bind(Places{Dir: c.dir, SlashTmp: "/tmp", Minimal: []string{"/usr"}})
			got := bound.Warnings("/home/u", real)
			if len(got) != len(c.want) {
				t.Fatalf("%q", got)
			}
			for i, w := range c.want {
				if !strings.Contains(got[i], w) {
					t.Errorf("%q does not say %q", got[i], w)
				}
			}
			if bound.Warnings("", nil) == nil && len(c.want) > 0 && strings.Contains(c.want[0], "system") {
				t.Error("nothing without a home")
			}
		})
	}
}
