// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import "github.com/sallyport-dev/sallyport/internal/text"

// A LostError says that the machine that ran a command, or was to run it, was lost. It is [ErrEndUnknown].
type LostError struct {
	// Machine is its name; empty where it is not known.
	Machine string
}

// Error returns one sentence.
func (e *LostError) Error() string {
	name := ""
	if e.Machine != "" {
		name = " (" + text.Word(e.Machine) + ")"
	}
	return "the machine that ran the command was lost" + name + "; what became of the command is not known"
}

// Is reports whether target is ErrEndUnknown.
func (e *LostError) Is(target error) bool { return target == ErrEndUnknown }
