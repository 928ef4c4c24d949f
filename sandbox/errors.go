// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "errors"

// An UnsupportedError says that the machine cannot build what a policy needs.
// The command must not be started.
type UnsupportedError struct {
	Need string // what the policy needs, such as "user namespaces"
	Have string // what was found instead, a clause such as "this kernel forbids them"
	Hint string // how to mend it, a clause; may be empty
}

// Error returns one sentence with the need, the finding and, when there is
// one, the mend.
func (e *UnsupportedError) Error() string {
	s := "sandbox: needs " + e.Need + ", but " + e.Have
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// A HiddenError says that something without which a command cannot start is not
// among what its policy shows. The command must not be started.
type HiddenError struct {
	What string // what it is, such as "the program" or "the working directory"
	Path string
}

// Error returns one sentence that names the path and the mend.
func (e *HiddenError) Error() string {
	return "sandbox: " + e.What + " " + e.Path + " is not visible under this policy; add --ro " + e.Path + " to show it"
}

// A PolicyError says which entry of a policy cannot be used and why.
type PolicyError struct {
	Entry  string // the entry as a person writes it, such as `/repo=write`; may be empty
	Reason string // a clause, with the mend where there is one
}

// Error returns one sentence that names the entry.
func (e *PolicyError) Error() string {
	if e.Entry == "" {
		return "sandbox: " + e.Reason
	}
	return "sandbox: entry " + e.Entry + ": " + e.Reason
}

// reasonOf returns the clause of an error of this package without what it
// names, for an error that names it already.
func reasonOf(err error) string {
	var pe *PolicyError
	var ge *GlobError
	switch {
	case errors.As(err, &pe):
		return pe.Reason
	case errors.As(err, &ge):
		return ge.Reason
	}
	return err.Error()
}
