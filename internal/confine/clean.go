// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

// A CleanReport says what [CleanState] found and did in one state folder. The
// member names of its JSON form stay. Nil lists are empty ones.
type CleanReport struct {
	State string `json:"state"` // the folder
	// Placeholders are the folders that stood for a protected name and are gone now.
	Placeholders []string `json:"placeholders"`
	// Folders are the private /tmp folders that were removed.
	Folders []string `json:"folders"`
	// Held is what living processes need. It was left alone.
	Held []HeldState `json:"held"`
	// Kept is what a dead process has noted as its own and is something else now.
	// Only the note was removed.
	Kept []LeftState `json:"kept"`
	// Odd is what makes no sense in the state folder and was left alone.
	Odd []LeftState `json:"odd"`
	// Failed is what could not be removed or looked at. The next start tries again.
	Failed []LeftState `json:"failed"`
	// Discarded are the boxes of the quarantine that were too old or too many.
	Discarded []string `json:"discarded"`
	// Quarantine counts the boxes that are there now, QuarantineBytes what they hold.
	Quarantine      int   `json:"quarantine"`
	QuarantineBytes int64 `json:"quarantine_bytes"`
}

// A HeldState is something that a living process needs.
type HeldState struct {
	Path    string `json:"path"`
	Holders int    `json:"holders"` // living processes, 1 or more
}

// A LeftState is something that was left where it is.
type LeftState struct {
	Path string `json:"path"`
	Why  string `json:"why"` // never empty
}
