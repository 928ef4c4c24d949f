// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply makes the changes of a stage real, and discards them.
//
// Every path is reached by directory descriptors from the recorded root on, through no link and no mount.
// Each file is the old or the new one at every moment: the new one is written to a temporary name beside
// it, and the two are exchanged. New directories appear with all that is in them. Additions come first,
// then changes, deletions last. Nothing leaves the stage before the host's file systems have been asked
// to write all of it.
package apply
