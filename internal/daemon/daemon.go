// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon finds and starts the exec-server of this user that keeps detached runs.
//
// [Socket] is where it listens, [Start] starts it unless it runs. It is an ordinary exec-server
// on a unix socket, which ends by itself when it has nothing to do. The package does not speak
// with it.
package daemon

import "errors"

// ErrUnsupported says that there is no daemon on this system.
var ErrUnsupported = errors.New("detached runs are not supported on this system")

// A StartError says that the daemon could not be started.
type StartError struct {
	Reason string // a clause
	Err    error  // may be nil
}

func (e *StartError) Error() string { return "cannot start the daemon of detached runs: " + e.Reason }

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }
