// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gitpaths

import "syscall"

// openFlags do not wait for the other end of a named pipe.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
