// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import "github.com/sallyport-dev/sallyport/internal/text"

// A ForeignPeerError reports a socket, or a process that listens at it, which is not to be spoken with.
type ForeignPeerError struct{ Path string }

// Error returns one sentence with the fix.
func (e *ForeignPeerError) Error() string {
	return "the process that listens at " + text.Word(e.Path) +
		" is another user's, or it or this process is in a sandbox; end it and remove the socket"
}
