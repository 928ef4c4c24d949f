// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes the JSON forms of sandbox policies that the Codex
// protocol defines: the older SandboxPolicy ([ParseLegacy], [MarshalLegacy]) and the
// newer PermissionProfile ([ParseProfile], [MarshalProfile], [MarshalProfileURI]).
//
// Both parsers ignore members that they do not know and reject repeated members, wrong
// types, unknown words and relative paths with a [*ParseError]. The package does not
// approximate: a policy that a form cannot express exactly is a [*LossyError]. It looks
// at no file and binds no place; see [sandbox.Policy.Bind].
package wire

import "github.com/sallyport-dev/sallyport/internal/printable"

// The names of the forms in errors.
const (
	formLegacy  = "sandbox policy"
	formProfile = "permission profile"
)

// ParseError reports a member of a form that is invalid.
type ParseError struct {
	Form   string // "sandbox policy" or "permission profile"
	Member string // such as `file_system.entries[2].access`; empty for the whole object
	Reason string // such as "must be an array"
}

// Error returns one sentence with the form, the member and the reason.
func (e *ParseError) Error() string {
	s := "invalid " + e.Form + ": "
	if e.Member != "" {
		s += e.Member + ": "
	}
	return printable.Line(s + e.Reason)
}

// LossyError reports a policy that a form cannot express without changing what it
// allows. A back end that knows only that form must refuse the policy.
type LossyError struct {
	Form   string // "sandbox policy" or "permission profile"
	Reason string // what the form cannot express
}

// Error returns one sentence with the form and the reason.
func (e *LossyError) Error() string {
	return printable.Line("policy cannot be written as a " + e.Form + ": " + e.Reason)
}
