// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layers makes and locks the directories of sallyport's own that overlays write to.
//
// An overlay needs an upper directory, which gets what is written, and a work directory, which is the
// kernel's. [Make] makes both below a directory, and [Unmark] prepares them for another mount. [OpenLocked]
// opens a directory so that no other process uses it: the lock is held as long as a process has a copy of the
// descriptor open, so that of the sandbox holds it until its last process has ended.
//
// The package mounts nothing and knows neither caches nor stages.
package layers
