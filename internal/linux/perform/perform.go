// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perform makes one system call in the place of a command whose sandbox denies it, after an answer
// that allows exactly this call.
//
// A [Call] holds copies of everything that the call depends on. Its places were resolved when the call was
// judged, as the command saw them: a directory by its path, without symbolic links, by device and inode,
// and a name in it. [Call.Do] opens the directory anew, outside of the mounts of the sandbox, follows no
// link, compares device and inode, and acts on the descriptor. So what the command does meanwhile to its
// memory, its descriptors, its working directory and its links changes nothing: the call acts on what was
// judged, or fails.
package perform
