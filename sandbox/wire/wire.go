// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes the JSON form of sandbox policies that the Codex protocol
// defines: the PermissionProfile ([ParseProfile], [MarshalProfile], [MarshalProfileURI]).
//
// The parser ignores members that it does not know and rejects repeated members, wrong
// types, unknown words and relative paths with a [*ParseError]. The package does not
// approximate: a policy that the form cannot express exactly is not written. It looks
// at no file and binds no place; see [sandbox.Policy.Bind].
package wire

import (
	"errors"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// ParseError reports a member of the form that is invalid.
type ParseError struct {
	Member string // such as `file_system.entries[2].access`; empty for the whole object
	Reason string // such as "must be an array"
}

// Error returns one sentence with the member and the reason.
func (e *ParseError) Error() string {
	s := "invalid permission profile: "
	if e.Member != "" {
		s += e.Member + ": "
	}
	return text.Line(s + e.Reason)
}

// lossy is the error for what the form cannot express.
func lossy(reason string) error {
	return errors.New(text.Line("policy cannot be written as a permission profile: " + reason))
}
