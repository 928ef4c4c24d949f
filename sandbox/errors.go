// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "github.com/sallyport-dev/sallyport/internal/text"

// UnsupportedError reports that the machine cannot enforce what a policy needs. The command
// must not be started.
type UnsupportedError struct {
	Need string // what the policy needs, such as "user namespaces"
	Have string // what was found instead, such as "this kernel forbids them"
	Hint string // how to fix it; may be empty
	// Level is one with fewer walls that this machine has and that was not accepted; empty for none.
	Level string
}

// Error returns one sentence with the need, the finding and the hint.
func (e *UnsupportedError) Error() string {
	s := "sandbox: needs " + e.Need + ", but " + e.Have
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	if e.Level != "" {
		s += "; or accept the level " + e.Level + ", which has fewer walls"
	}
	return text.Line(s)
}

// HiddenError reports that the policy does not show something that a command needs to start.
// The command must not be started.
type HiddenError struct {
	What string // such as "the program" or "the working directory"
	Path string
}

// Error returns one sentence with the path and the fix.
func (e *HiddenError) Error() string {
	name := text.Word(e.Path)
	return "sandbox: " + text.Line(e.What) + " " + name +
		" is not visible under this policy; make it readable to show it"
}

// PolicyError reports an invalid policy or an invalid entry of one.
type PolicyError struct {
	Entry  string // the entry, such as "/repo=write"; may be empty
	Reason string // why it is invalid, and the fix where there is one
}

// Error returns one sentence with the entry and the reason.
func (e *PolicyError) Error() string {
	if e.Entry == "" {
		return "sandbox: " + text.Line(e.Reason)
	}
	return "sandbox: entry " + text.Word(e.Entry) + ": " + text.Line(e.Reason)
}

// WiderError reports that a policy allows more than another one, which bounds it.
type WiderError struct {
	What string // the first thing that is more, behind "it may", such as "write /srv"
}

// Error returns one sentence with what is more and the fix.
func (e *WiderError) Error() string {
	return "sandbox: the policy is wider than the one that bounds it: it may " + text.Line(e.What) +
		"; leave that out"
}
