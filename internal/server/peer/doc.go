// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peer makes and reaches the unix sockets of this user, and says who is at the other end:
// whether it is this user, outside of sandboxes. All servers and clients of the product on this
// machine use it. It decides nothing about what the process may do.
//
// [DaemonSocket] is where the exec-server of this user listens that keeps detached runs, and
// [StartDaemon] starts it unless it runs. It is an ordinary exec-server on a unix socket, which ends
// by itself when it has nothing to do.
package peer

import "github.com/sallyport-dev/sallyport/internal/text"

// A ForeignError reports a socket, or a process that listens at it, which is not to be spoken with.
type ForeignError struct{ Path string }

// Error returns one sentence with the fix.
func (e *ForeignError) Error() string {
	return "the process that listens at " + text.Word(e.Path) +
		" is another user's, or it or this process is in a sandbox; end it and remove the socket"
}
