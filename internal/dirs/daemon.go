// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import "errors"

// ErrNoDaemon says that there is no daemon on this system.
var ErrNoDaemon = errors.New("detached runs are not supported on this system")

// A DaemonError says that the daemon could not be started.
type DaemonError struct {
	Reason string // a clause
	Err    error  // may be nil
}

func (e *DaemonError) Error() string { return "cannot start the daemon of detached runs: " + e.Reason }

// Unwrap returns Err.
func (e *DaemonError) Unwrap() error { return e.Err }
