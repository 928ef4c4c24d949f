// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage keeps stages: what commands changed in copy-on-write layers over directories of the host,
// until it is applied or discarded.
//
// The layout below the state directory:
//
//	stages/ID/              locked by the run that uses it
//	stages/ID/record.json   [Record]
//	stages/ID/N/upper, work of the N-th root
//	stages/ID/base          what the host's files were; see package changes
//
// A stage gets its name when it is complete, so a crash leaves none that is half made. The package reads and
// changes no file of the host's, and mounts nothing.
package stage
