// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import "os"

// Files are the descriptors that a launch is given beside its script. Steps name
// them by their place here. All stay the caller's to close, which it may do as soon as
// Start has returned. Stdin, Stdout and Stderr must be set; nil means none elsewhere.
type Files struct {
	Stdin, Stdout, Stderr *os.File

	// Hold are kept open by the reaper until nothing of the tree is left, also when the
	// caller is gone by then: a lock on one lasts as long as what it guards is in use. Nil
	// ones are left out.
	Hold []*os.File
	// Observer is the end of a seqpacket or stream socket by which OpObserve sends the
	// listener, in one message of one byte. The caller should close it as soon as Start
	// has returned: the other end then reports when nothing was sent.
	Observer *os.File
	// Terminal is such an end for OpTerminal, for the master end of the terminal.
	Terminal *os.File
	// Listen is such an end for OpListen. Each of these steps sends one message.
	Listen *os.File
	// Enter are open namespaces (/proc/PID/ns) that a script with Enter begins in. They are
	// entered in order, so a user namespace must come before what it owns.
	Enter []*os.File
	// Share is an end as Observer, for OpShare. Each of these steps sends one message.
	Share *os.File
	// Trees are detached trees for OpTake.
	Trees []*os.File
	// Status is what OpPass gives to the program.
	Status *os.File
	// Extra are those that OpCloseFiles gives to the program under the numbers of their keys,
	// which are above 2.
	Extra map[int]*os.File
	// Cgroup is the directory of a control group of version 2 in which the first task
	// starts (CLONE_INTO_CGROUP, Linux 5.7; on older kernels it enters first of all).
	Cgroup *os.File
	// Join are open lists of control groups, one for each OpJoin.
	Join []*os.File
}
