// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import "github.com/sallyport-dev/sallyport/internal/environ"

// EnvPolicy says which environment variables a command gets. The zero EnvPolicy passes
// the core set without variables that look like secrets. The steps, in this order:
//
//   - Inherit chooses the variables of the caller to start with.
//   - Variables that look like secrets are dropped, unless KeepSecrets is true: by a part
//     of the name, such as KEY, TOKEN, PASS or AUTH, or by a value such as an address
//     with a password or a private key. Well-known harmless names are kept.
//   - Names that match a pattern of Exclude are dropped. In a pattern '*' stands for any
//     characters and '?' for one; letter case does not matter.
//   - The variables of the caller that Named lists are added.
//   - The variables in Set are added or replaced.
//   - If IncludeOnly is not empty, only names that match one of its patterns are kept.
//   - Names in RuntimeOnly are dropped, and the variables in Runtime are added. Those
//     that tell a command about its sandbox come from sallyport in this step.
//
// Core replaces the patterns of the core set, and System names the operating system of
// the command; the executor knows both. Apply returns the environment.
type EnvPolicy = environ.Policy

// EnvInherit says which variables of the caller a command starts with. Its text forms
// are "core", "all" and "none".
type EnvInherit = environ.Inherit

// The values of EnvPolicy.Inherit.
const (
	// InheritCore starts with the few variables that programs need to find each other,
	// such as PATH, HOME and LANG.
	InheritCore EnvInherit = environ.InheritCore
	// InheritAll starts with all variables.
	InheritAll EnvInherit = environ.InheritAll
	// InheritNone starts with no variable.
	InheritNone EnvInherit = environ.InheritNone
)
