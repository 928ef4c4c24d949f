// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Sandbox is what confined a command: the policy that was asked for, by name, and
// what the executor enforced.
type Sandbox struct {
	Mode    string          `json:"mode"` // the name of the policy, such as "workspace-write"
	Network sandbox.Network `json:"network"`
	// Apart is why the command of a shared sandbox ran in one of its own; empty where it did not.
	Apart string `json:"apart,omitempty"`
	executor.Sandbox
}

// MarshalJSON returns the members mode, network, level, mechanism, weaker, hidden and observed.
// A nil mechanism is an empty list.
func (s Sandbox) MarshalJSON() ([]byte, error) {
	type plain Sandbox // without this method
	s.Mechanism = list(s.Mechanism)
	return encode(plain(s))
}
