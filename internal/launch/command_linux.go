// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

// CommandPID is the process id of the command as its reaper sees it. Where the
// script makes no process namespace that is also how the caller sees it.
func (p *Process) CommandPID() int { return p.command }
