// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package access

import "errors"

// ErrBusy is the end of a connection for which no socket is free; of Linux.
var ErrBusy = errors.ErrUnsupported

// listening reports that it is not known which services this machine has.
func listening(uint16) bool { return false }
