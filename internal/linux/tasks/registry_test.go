// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import "testing"

// TestRegistry: who reaches which socket of a shared sandbox.
func TestRegistry(t *testing.T) {
	file, other := File{1, 2}, File{1, 3}
	for _, test := range []struct {
		name string
		do   func(r *Registry)
		file bool // group "a" reaches file
		path bool // group "a" reaches the name "n"
	}{
		{"nothing is bound, and there are no others", func(r *Registry) { r.Join(1, "a") }, false, true},
		{"nothing is known at all", func(*Registry) {}, false, true},
		{"nothing is bound, and another group is there", func(r *Registry) { r.Join(1, "a"); r.Join(2, "b") }, false, false},
		{"the other group has left", func(r *Registry) { r.Join(1, "a"); r.Join(2, "b"); r.Leave(2) }, false, true},
		{"bound by the own group", func(r *Registry) {
			r.Join(1, "a")
			r.Join(2, "b")
			r.Bound(1, "a", file)
			r.Named(1, "a", "n")
		}, true, true},
		{"bound by another command of the group", func(r *Registry) {
			r.Join(1, "a")
			r.Join(2, "a")
			r.Bound(2, "a", file)
			r.Named(2, "a", "n")
		}, true, true},
		{"bound by another group", func(r *Registry) {
			r.Join(1, "a")
			r.Join(2, "b")
			r.Bound(2, "b", file)
			r.Named(2, "b", "n")
		}, false, false},
		{"had by the own group, and by another one later", func(r *Registry) {
			r.Join(1, "a")
			r.Join(2, "b")
			r.Named(1, "a", "n")
			r.Named(2, "b", "n")
		}, false, false},
		{"the one that bound it has left", func(r *Registry) {
			r.Join(1, "a")
			r.Join(2, "a")
			r.Join(3, "b")
			r.Bound(2, "a", file)
			r.Named(2, "a", "n")
			r.Leave(2)
		}, false, false},
		{"the file is gone", func(r *Registry) { r.Join(1, "a"); r.Bound(1, "a", file); r.Forget(file) }, false, true},
		{"another file", func(r *Registry) { r.Join(1, "a"); r.Bound(1, "a", other) }, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := new(Registry)
			test.do(r)
			if got := r.ReachesFile("a", file); got != test.file {
				t.Errorf("the file is reached: %t", got)
			}
			if got := r.ReachesName("a", "n"); got != test.path {
				t.Errorf("the name is reached: %t", got)
			}
		})
	}
}
