// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dirs knows the directories in which sallyport keeps what outlives a run: the
// state directory itself, the private /tmp directories in it and the sockets in it.
//
// [Dir] creates the state directory, [NewTmp] a private /tmp in it, which is locked as long
// as its owner lives, so that [Clean] and the next start can tell what a killed run has
// left. Every directory belongs to one user and is closed to all others. The package
// refuses a state directory that is a symbolic link, that another user has made, or that
// others can enter.
//
// [ProtectedDirs] lists where the settings of the user are, which no command may write to, and
// [Config] returns the one that is read.
//
// Unix sockets of this user are in the state directory: [ListenSocket] makes them and [DialSocket] reaches
// them, and [PeerOf] says who is at the other end: whether it is this user, outside of sandboxes. It decides
// nothing about what that process may do. [DaemonSocket] is where the exec-server of this user listens that
// keeps detached runs, and [StartDaemon] starts it unless it runs: an ordinary exec-server, which ends by
// itself when it has nothing to do.
package dirs

import "github.com/sallyport-dev/sallyport/internal/names/guard"

// A Report says what [Clean] found and did in one state directory. Nil lists are empty.
type Report struct {
	State string `json:"state"` // the directory
	// TmpDirs are the private /tmp directories that were removed.
	TmpDirs []string `json:"tmp_dirs"`
	// Report is about protected names and the quarantine; Held, Unknown and Failed are
	// about private /tmp directories as well.
	guard.Report
}
