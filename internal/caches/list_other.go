// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package caches

// An Entry is what one workspace has of one cache.
type Entry struct {
	Workspace string
	Cache     string
	Bytes     int64
	Files     int
	InUse     bool
}

// List returns nothing: there are no private layers on this system.
func List(string) ([]Entry, error) { return nil, nil }

// A Cleared is what [Clear] did.
type Cleared struct {
	Removed []string
	InUse   []string
}

// Clear has nothing to remove on this system.
func Clear(string, string) (Cleared, error) { return Cleared{}, nil }
