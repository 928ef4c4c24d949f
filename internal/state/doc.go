// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state knows the directories in which sallyport keeps what outlives a run: the
// state directory itself and the private /tmp directories in it.
//
// Every directory belongs to one user and is closed to all others. A private /tmp is
// locked for as long as its owner lives, so that [Clean] and the next start can tell what
// a killed run has left.
package state
