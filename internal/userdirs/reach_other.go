// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package userdirs

// InReach returns nil: no command is confined to a workspace on this system.
func InReach(_, _ string) error { return nil }
