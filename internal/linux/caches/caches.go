// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package caches gives commands private layers over the caches of toolchains.
//
// A run asks [Store.Prepare]: [Detect] finds the toolchains of its workspace by the
// files that mark them, and named grants such as "cache:npm" add others. Each cache
// gets an overlay over the host's directory, or a private directory that a variable
// of the environment names. What a command writes stays with its workspace. [List]
// and [Clear] are for users who look after the layers.
//
// Outside of the state directory the package makes missing directories of caches that the
// table marks, and changes nothing else. It mounts nothing: it returns rules, overlays and an environment for
// the plan. It never gives one workspace the layers of another, and two runs never write to one layer at a
// time.
package caches

// An Entry is what one workspace has of one cache. The member names of its JSON form stay.
type Entry struct {
	Workspace string `json:"workspace"` // empty if its record is missing
	Cache     string `json:"cache"`     // name in the table
	Bytes     int64  `json:"bytes"`     // size of the regular files
	Files     int    `json:"files"`     // everything but directories, marks of removed files among it
	InUse     bool   `json:"in_use"`    // a run holds one of the slots with it
}

// Cleared is what [Clear] did. Both lists name workspaces.
type Cleared struct {
	Removed []string // lost layers
	InUse   []string // have layers that a run holds, which stay
}
