// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify has the kernel's notifications of system calls: how a launch hands its [Listener] over, how
// one waits for a call and answers it, and the lists of what was denied. What becomes of a call is decided by
// package observer.
package notify
