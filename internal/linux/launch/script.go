// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package launch starts a process by a script of steps.
//
// A [Script] is data: a flat list of [Step] values, each of them one small
// request to the kernel ("set-tree 2 +ro", "attach 2 /w", "landlock"). On Linux, [Launcher.Start] clones
// a child that shares the caller's memory for as long as the script runs (CLONE_VM and CLONE_VFORK) and
// a short assembly loop performs the list in that child. No Go code runs between clone and exec, nothing
// of the caller is copied however large its heap is, and a failure comes back as the step that failed
// and its errno.
//
// The list has two parts. Up to [OpStartCommand] it is performed by the task
// that becomes process 1: it builds the namespaces, then clones a second task
// in the same way, and finally executes the reaper, a program of a few hundred
// bytes that reports how the command ended and waits for the command's
// orphans. The steps after OpStartCommand are performed by the second
// task, which ends as the command.
//
// [Files] are the descriptors that a launch is given beside its script. A
// [Preforked] task is cloned while the script is still planned.
//
// A [LandlockABI] says which rights a ruleset may name on a kernel.
//
// The package knows nothing of policies: the planner decided what a script may
// touch. It imports the standard library and x/sys only, starts
// no goroutine per process, and refuses scripts that it cannot perform exactly.
package launch

import "reflect"

// Op is the operation of a step. The zero Op is none; a script that holds one
// does not start.
type Op uint8

// The closed set of steps. The comment names the fields of [Step] that count.
const (
	OpNone Op = iota

	// OpDieWithParent kills the task when the thread that started it is gone, and stops
	// at once when the caller has already ended. From OpStartCommand on the reaper is told
	// instead: it kills everything in its process namespace, or the command's group where it
	// has none, and in a namespace it ends when nothing is left there. The kernel would do
	// that too, but frees the reaper's descriptors first.
	OpDieWithParent
	// OpSubreaper adopts orphans where there is no own process namespace.
	OpSubreaper
	// OpShare opens Path, a namespace of this task such as /proc/self/ns/net, or takes the
	// detached tree Tree, which stays, and sends it to Files.Share. Who gets it can start
	// other scripts there, see Script.Enter. Label.
	OpShare
	// OpPart gives the task a mount namespace of its own, a copy of the one that it is in.
	// Descriptors that were opened before stay in that one; trees that are not attached do not.
	OpPart
	// OpTake copies the tree that is entry From of Files.Trees, counted from 1, or the file Path in
	// it, into the detached tree Tree. The entry must be a tree that was made by a step such as OpTmpfs
	// and shared: Linux before 6.15 copies only what is in the task's own namespace.
	OpTake
	// OpExpectMount stops the launch unless a mount has its root at Path, with ID when that
	// is set.
	OpExpectMount
	// OpHold becomes the reaper of a namespace that has no command, as the last step in place of
	// OpStartCommand and OpExec: it waits, and collects what becomes its child, until it is
	// killed. Everything in its process namespace ends with it.
	OpHold
	// OpMapUser maps one user and one group into the new user namespace. UID, GID.
	OpMapUser
	// OpOpen opens Path as a place (O_PATH), following no symbolic link, and
	// keeps it as Tree. ID is compared when it is set.
	OpOpen
	// OpClone copies the mount at Path (or at the opened place From, when Path
	// is empty) into the detached tree Tree. Recursive, ID.
	OpClone
	// OpSetTree sets and clears mount attributes of the detached tree Tree.
	// Set, Clear, Recursive.
	OpSetTree
	// OpSetMount does the same to the mount at Path. Set, Clear, Recursive,
	// Private.
	OpSetMount
	// OpAttach puts the tree Tree at Path, following no symbolic link. ID is
	// compared with what stands there when it is set.
	OpAttach
	// OpPin puts a copy of the directory Path, with what is mounted in it and all
	// attributes of the mount that it is seen through, over the directory itself: it
	// stays the same, and can be neither moved nor removed. ID is compared when it
	// is set.
	OpPin
	// OpReopen opens Path anew as standard descriptor Stdio-1, with the open
	// flags Value and at Offset, in place of the caller's own. A descriptor keeps
	// the mount that it was opened through, and with it the right to change
	// modes and times of a file outside; the new one has the mount that stands
	// at Path when the step runs. ID is compared when it is set.
	OpReopen
	// OpTmpfs makes a file system in memory as the detached tree Tree. Mode.
	OpTmpfs
	// OpProc makes a process file system as the detached tree Tree. Set. With a Value that is not 0
	// the processes are seen that one may not trace.
	OpProc
	// OpDevpts makes a terminal file system as the detached tree Tree.
	OpDevpts
	// OpOverlay makes the detached tree Tree that shows the directory Path under
	// Layers.Lower, and in which what is written goes to Layers.Upper instead. Nothing is forced to the
	// disk, so the kernel leaves a mark in Layers.Work that has to be removed
	// before the directory is used again (overlayfs.rst, "Volatile mount"). ID,
	// Layers, Set.
	OpOverlay
	// OpMkdir makes a directory. Path, Mode.
	OpMkdir
	// OpMkfile makes an empty file, with Tree in that tree. Path, Mode.
	OpMkfile
	// OpChmod changes the mode of Path, which is one of ours. Mode.
	OpChmod
	// OpSymlink makes a symbolic link at Path that leads to Dest.
	OpSymlink
	// OpPivot makes Path the root and lets the old one go.
	OpPivot
	// OpLoopback brings the loopback interface up.
	OpLoopback
	// OpListen makes a TCP socket that listens at Path, an address of the loopback interface with
	// a port such as 127.0.0.1:3128, or with the Value SOCK_DGRAM a UDP socket there or at another
	// address that the namespace has, and sends it to Files.Listen. It comes before OpStartCommand, so
	// the command finds the socket ready and has no descriptor of it. With an empty Path it makes a TCP
	// socket of the family Value (AF_INET or AF_INET6) that is not bound: who gets it can connect
	// inside.
	OpListen
	// OpNetlink sends Data, messages of which one asks for an acknowledgment, to the part Value of
	// the kernel (a NETLINK_ constant). The launch stops if it does not acknowledge.
	OpNetlink
	// OpSetting writes Data to the kernel setting Path, which is relative to the process
	// file system Tree. A setting of the network is that of the task's network namespace.
	OpSetting
	// OpRefuseWrite proves that Path cannot be opened for writing: the launch
	// stops when it can. A missing Path is fine.
	OpRefuseWrite
	// OpDropBounding empties the bounding set up to capability Value.
	OpDropBounding
	// OpSecureBits sets the secure bits Value.
	OpSecureBits
	// OpClearAmbient empties the ambient set.
	OpClearAmbient
	// OpNoNewPrivs sets no_new_privs.
	OpNoNewPrivs
	// OpCaps sets the permitted and effective sets to Value and empties the
	// inheritable one.
	OpCaps
	// OpSeccomp installs Filter.
	OpSeccomp
	// OpTerminal makes a terminal through the multiplexer Path, with Cols and Rows, as the
	// controlling terminal of the reaper's session. It takes the place of the command's first
	// Stdio standard descriptors, and its master end is sent to Files.Terminal. It comes
	// before OpStartCommand.
	OpTerminal
	// OpStartCommand starts the second task; the steps behind it are its own.
	OpStartCommand
	// OpNewGroup makes the task leader of a process group, in the foreground of the terminal
	// of OpTerminal. The session is the reaper's: so the group is no orphan, and a stop by
	// the terminal's keys (SIGTSTP) stops it instead of being dropped (setpgid(2)).
	OpNewGroup
	// OpStdio moves the caller's three descriptors to 0, 1 and 2.
	OpStdio
	// OpLandlock restricts the task by Ruleset.
	OpLandlock
	// OpLimit sets the resource limit Resource to Soft and Hard.
	OpLimit
	// OpChdir changes to the directory Path.
	OpChdir
	// OpResetSignals unblocks all signals. The handlers were cleared before.
	OpResetSignals
	// OpCloseFiles closes every descriptor above 2, or from Value on when that is
	// set, but those of Keep, which become those of Files.Extra. Keep is sorted.
	OpCloseFiles
	// OpPass gives the program Files.Status as descriptor Value, which is 3 to 9.
	OpPass
	// OpMemory makes a file in memory that holds Data, open at its beginning as
	// descriptor Value, which must be the lowest one that is free.
	OpMemory
	// OpObserve installs Filter with a listener for the calls that it asks about, and
	// sends the listener to Files.Observer with the flags Value of sendmsg(2). The reader must answer
	// from then on, so nothing but what the filter lets through may follow before OpExec.
	OpObserve
	// OpJoin moves the task into the control group whose file "tasks" is entry From of
	// Files.Join, counted from 1. The kernel judges by who opened the file
	// (cgroups(7)), so it works inside a new user namespace.
	OpJoin
	// OpAffinity keeps the task to the processors whose bits are set in Data, the
	// lowest bit of the first byte being processor 0 (sched_setaffinity(2)).
	OpAffinity
	// OpExec becomes the program Path with Argv and Env.
	OpExec
	opEnd
)

// Mount attributes for Step.Set and Step.Clear; the values of the kernel's
// MOUNT_ATTR_ constants (linux/mount.h).
const (
	AttrReadOnly uint64 = 0x1
	AttrNoSuid   uint64 = 0x2
	AttrNoDev    uint64 = 0x4
	AttrNoExec   uint64 = 0x8
)

// ID is the identity of a file as it was when the script was planned. The
// zero ID is not compared.
type ID struct {
	Dev uint64 // as in stat(2)
	Ino uint64
}

// Layers are the directories that an overlay needs beside the one that it shows. Each
// is opened through no symbolic link and compared with its ID, when that is set.
type Layers struct {
	Upper Layer // gets what changes
	Work  Layer // the kernel's own, in the file system of Upper
	// Lower are shown over the directory and below Upper, the first one uppermost. The
	// zero Layer is none.
	Lower [MaxLower]Layer
}

// MaxLower is how many directories an overlay shows at most beside its own.
const MaxLower = 6

// Layer is one directory of an overlay.
type Layer struct {
	Path string
	ID   ID
}

// Rule lets a task do Access (Landlock's bits) below Path, or, when Stdio is
// not zero, with the file behind standard descriptor Stdio-1.
type Rule struct {
	Path   string
	Stdio  int
	Access uint64
	ID     ID // compared with what stands at Path when it is set
}

// Ruleset is a Landlock ruleset. What Handled names is denied unless a rule
// allows it.
type Ruleset struct {
	Handled    uint64 // LANDLOCK_ACCESS_FS_
	HandledNet uint64 // LANDLOCK_ACCESS_NET_; from ABI 4
	Scoped     uint64 // LANDLOCK_SCOPE_; from ABI 6
	Rules      []Rule
}

// Filter is a compiled seccomp program: one struct sock_filter per word, in
// the kernel's layout for a little-endian machine.
type Filter []uint64

// Step is one step of a script. Which fields count depends on Op; the others
// are zero.
type Step struct {
	Op    Op
	Label string // what the step is for, in words
	Path  string
	Dest  string
	Tree  int // trees and places are numbered from 1
	From  int
	ID    ID

	// Own says that Path lies in a file system that earlier steps made, so that
	// another process can have put no symbolic link on the way. It saves the check.
	Own       bool
	Recursive bool
	Private   bool
	Set       uint64
	Clear     uint64
	Mode      uint32
	Value     uint64
	Keep      []int
	UID       int
	GID       int
	Resource  int
	Stdio     int // 1 to 3
	Cols      uint16
	Rows      uint16
	Offset    int64
	Soft      uint64
	Hard      uint64

	Layers  *Layers
	Ruleset *Ruleset
	Filter  Filter
	Data    []byte
	Argv    []string
	Env     []string
}

// SameSteps reports whether two lists have the same steps, every member of them.
func SameSteps(a, b []Step) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }

// Namespaces are the CLONE_NEW flags of the first task (linux/sched.h).
type Namespaces uint64

// The namespaces that a script may ask for.
const (
	NewMount  Namespaces = 0x00020000
	NewCgroup Namespaces = 0x02000000
	NewUTS    Namespaces = 0x04000000
	NewIPC    Namespaces = 0x08000000
	NewUser   Namespaces = 0x10000000
	NewPID    Namespaces = 0x20000000
	NewNet    Namespaces = 0x40000000
)

// Script is what a launch does, in order.
type Script struct {
	// Enter says that the first task is made in the namespaces of Files.Enter, with
	// Namespaces of its own on top. False begins in those of the caller.
	Enter      bool       `json:"enter,omitempty"`
	Namespaces Namespaces `json:"namespaces"`
	Steps      []Step     `json:"steps"`
}
