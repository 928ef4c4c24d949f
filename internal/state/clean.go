// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package state

// A Report says what [Clean] found and did in one state folder. The
// member names of its JSON form stay. Nil lists are empty ones.
type Report struct {
	State string `json:"state"` // the folder
	// Placeholders are the folders that stood for a protected name and are gone now.
	Placeholders []string `json:"placeholders"`
	// Folders are the private /tmp folders that were removed.
	Folders []string `json:"folders"`
	// Held is what living processes need. It was left alone.
	Held []Held `json:"held"`
	// Kept is what a dead process has noted as its own and is something else now.
	// Only the note was removed.
	Kept []Left `json:"kept"`
	// Odd is what makes no sense in the state folder and was left alone.
	Odd []Left `json:"odd"`
	// Failed is what could not be removed or looked at. The next start tries again.
	Failed []Left `json:"failed"`
	// Discarded are the boxes of the quarantine that were too old or too many.
	Discarded []string `json:"discarded"`
	// Quarantine counts the boxes that are there now, QuarantineBytes what they hold.
	Quarantine      int   `json:"quarantine"`
	QuarantineBytes int64 `json:"quarantine_bytes"`
}

// A Held is something that a living process needs.
type Held struct {
	Path    string `json:"path"`
	Holders int    `json:"holders"` // living processes, 1 or more
}

// A Left is something that was left where it is.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"` // never empty
}
