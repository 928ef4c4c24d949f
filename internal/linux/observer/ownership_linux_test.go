// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"testing"
)

// TestUnmapped: which ids a command cannot give depends on the level, and for groups on the user.
func TestUnmapped(t *testing.T) {
	const keep, other, member = ^uint32(0), 54321, 54322
	own, ownGroup := uint32(os.Geteuid()), uint32(os.Getegid())
	for _, tt := range []struct {
		name         string
		owner, group uint32
		root, flat   bool // may change owners; the level has no user namespace
		want         bool
	}{
		{name: "nothing", owner: keep, group: keep, root: true},
		{name: "itself", owner: own, group: ownGroup, root: true},
		{name: "another user", owner: other, group: keep, root: true, want: true},
		{name: "another group", owner: keep, group: other, root: true, want: true},
		{name: "a further group of root", owner: keep, group: member, root: true, want: true},
		{name: "a further group of root, no namespace", owner: keep, group: member, root: true, flat: true},
		{name: "a further group of an ordinary user", owner: keep, group: member},
		{name: "another user with a further group", owner: other, group: member, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Supervisor{groups: []int{member}, chowns: tt.root}
			if tt.flat {
				s.cfg.Writable = []string{}
			}
			r := &request{Supervisor: s, call: call{owner: tt.owner, group: tt.group}}
			if got := r.unmapped(); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
