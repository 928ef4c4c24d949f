// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Swap exchanges two names again and again until the end of t.
func Swap(t testing.TB, a, b string) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}
