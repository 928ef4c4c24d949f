// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

// HungMounts is the function in which a goroutine waits for the server of a mount of this machine that
// does not answer: one for each such mount. They are no leaks of a test.
const HungMounts = "github.com/sallyport-dev/sallyport/internal/linux/hostfacts.readMount"
