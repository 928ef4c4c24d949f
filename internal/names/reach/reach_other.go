// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package reach

// A Reach knows what commands can change: nothing on this system.
type Reach struct{}

// New returns a Reach for which nothing is in reach: no command is confined on this system.
func New(Area) *Reach { return &Reach{} }

// Of returns nil.
func (r *Reach) Of(string) error { return nil }

// Program returns nil.
func (r *Reach) Program(string, []string) error { return nil }

// Command returns nil.
func (r *Reach) Command([]string, string, []string) error { return nil }

// Words returns nil.
func (r *Reach) Words([]string) error { return nil }

// Path returns the list.
func (r *Reach) Path(list string) string { return list }

// Environ returns the environment.
func (r *Reach) Environ(_ string, env []string) (kept, dropped []string) { return env, nil }

// A Site is where commands begin.
type Site struct {
	Reach *Reach
	Dir   string
	Env   []string
	Login bool
}

// Named returns nil.
func (*Site) Named([]string) error { return nil }

// Outside returns nil.
func (*Site) Outside([]string) error { return nil }
