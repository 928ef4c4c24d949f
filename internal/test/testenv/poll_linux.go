// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Poll waits until a descriptor has an event, at most a time. It goes on after signals: the runtime sends
// some to its own threads.
func Poll(fds []unix.PollFd, most time.Duration) (n int, err error) {
	for end := time.Now().Add(most); ; {
		n, err = unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
