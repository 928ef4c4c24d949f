// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"slices"
	"sync"
)

// A File is the file of a unix socket, which is held open, so that its number is not used again.
type File struct {
	Dev uint64
	Ino uint64
}

// A Registry knows the unix sockets of a shared sandbox. A group is the same text for commands of equal
// rights, and an owner is a command. The zero Registry is ready for use.
type Registry struct {
	mu     sync.Mutex
	owners map[any]string // groups
	files  map[File]claimed
	// names are those that were seen at sockets. One that sockets of several groups had, one after the
	// other, is reached by none of them.
	names map[string][]claimed
}

type claimed struct {
	owner any
	group string
}

// Join adds a command of a group.
func (r *Registry) Join(owner any, group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owners == nil {
		r.owners, r.files, r.names = map[any]string{}, map[File]claimed{}, map[string][]claimed{}
	}
	r.owners[owner] = group
}

// Leave removes a command with what is known of it.
func (r *Registry) Leave(owner any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, owner)
	for f, b := range r.files {
		if b.owner == owner {
			delete(r.files, f)
		}
	}
	for name, all := range r.names {
		all = slices.DeleteFunc(all, func(b claimed) bool { return b.owner == owner })
		if r.names[name] = all; len(all) == 0 {
			delete(r.names, name)
		}
	}
}

// Bound says that a command of a group has bound a socket to a file, which is held open until Forget.
func (r *Registry) Bound(owner any, group string, f File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files != nil {
		r.files[f] = claimed{owner, group}
	}
}

// Forget says that the file is held open no longer.
func (r *Registry) Forget(f File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, f)
}

// Named says that a socket of a command of a group has an abstract name.
func (r *Registry) Named(owner any, group, name string) {
	const most = 4096 // names; of those beyond it nothing is known
	r.mu.Lock()
	defer r.mu.Unlock()
	b := claimed{owner, group}
	if all := r.names[name]; r.names != nil && !slices.Contains(all, b) &&
		(all != nil || len(r.names) < most) {
		r.names[name] = append(all, b)
	}
}

// ReachesFile reports whether a command of the group may connect to a file: one of the group has bound it.
func (r *Registry) ReachesFile(group string, f File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.files[f]
	return ok && b.group == group
}

// ReachesName reports whether a command of the group may connect to an abstract name: it was seen at a
// socket of the group and of no other, or there are no commands of other groups at all.
func (r *Registry) ReachesName(group, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all := r.names[name]; len(all) > 0 {
		return !slices.ContainsFunc(all, func(b claimed) bool { return b.group != group })
	}
	for _, other := range r.owners {
		if other != group {
			return false
		}
	}
	return true
}
