// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peer says who is at the other end of a unix socket: whether it is this user, outside of
// sandboxes. It decides nothing about what the process may do.
package peer
