// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package launch starts a process by a script of steps.
//
// A [Script] is data: a flat list of [Step] values, each of them one small
// thing that the kernel is asked for ("seal-tree", "attach-root 2 /w",
// "landlock"). On Linux, [Launcher.Start] clones a child that shares the
// caller's memory for as long as the script runs (CLONE_VM and CLONE_VFORK)
// and a short assembly loop performs the list in that child. No Go code runs
// between clone and exec, nothing of the caller is copied however large its
// heap is, and a failure comes back as the step that failed and its errno.
//
// The list has two parts. Up to [OpStartCommand] it is performed by the task
// that becomes process 1: it builds the namespaces, then clones a second task
// in the same way, and finally executes the reaper, a program of a few hundred
// bytes that reports how the command ended and waits for whatever the command
// left behind. The steps after OpStartCommand are performed by the second
// task, which ends as the command.
//
// The package knows nothing of policies: what a script may touch was decided
// by whoever wrote it. It imports the standard library and x/sys only, starts
// no goroutine per process, and refuses scripts it cannot lower exactly.
package launch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// An Op says what a step does. The zero Op is no step; a script that holds one
// does not start.
type Op uint8

// The closed set of steps. The comment names the fields of [Step] that count.
const (
	OpNone Op = iota

	// OpDieWithParent asks for Signal when the thread that started us is gone,
	// and stops at once when the caller has already ended. Signal.
	OpDieWithParent
	// OpSubreaper adopts orphans where there is no own process namespace.
	OpSubreaper
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
	// OpPin puts a copy of the folder Path, with what is mounted in it and all
	// attributes of the mount that it is seen through, over the folder itself: it
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
	// OpProc makes a process file system as the detached tree Tree. Set.
	OpProc
	// OpDevpts makes a terminal file system as the detached tree Tree.
	OpDevpts
	// OpOverlay makes the detached tree Tree that shows the folder Path, and in
	// which what is written goes to Layers.Upper instead. Nothing is forced to the
	// disk, so the kernel leaves a mark in Layers.Work that has to be removed
	// before the folder is used again (overlayfs.rst, "Volatile mount"). ID,
	// Layers, Set.
	OpOverlay
	// OpMkdir makes a folder. Path, Mode.
	OpMkdir
	// OpMkfile makes an empty file. Path, Mode.
	OpMkfile
	// OpChmod changes the mode of Path, which is one of ours. Mode.
	OpChmod
	// OpSymlink makes a symbolic link at Path that leads to Dest.
	OpSymlink
	// OpPivot makes Path the root and lets the old one go.
	OpPivot
	// OpLoopback brings the loopback interface up.
	OpLoopback
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
	// OpStartCommand starts the second task; the steps behind it are its own.
	OpStartCommand
	// OpNewSession makes the task leader of a session and a process group.
	OpNewSession
	// OpTerminal makes a terminal through the multiplexer Path, with Cols and Rows, as the controlling terminal of the session that OpNewSession made. It takes the
	// place of the first Stdio standard descriptors, and its master end is sent to
	// Files.Terminal.
	OpTerminal
	// OpStdio moves the caller's three descriptors to 0, 1 and 2.
	OpStdio
	// OpLandlock restricts the task by Ruleset.
	OpLandlock
	// OpLimit sets the resource limit Resource to Soft and Hard.
	OpLimit
	// OpChdir changes to the folder Path.
	OpChdir
	// OpResetSignals unblocks all signals. The handlers were cleared before.
	OpResetSignals
	// OpCloseFiles closes every descriptor above 2, or from Value on when that is
	// set.
	OpCloseFiles
	// OpPass gives the program Files.Status as descriptor Value, which is 3 to 9.
	OpPass
	// OpMemory makes a file in memory that holds Data, open at its beginning as
	// descriptor Value, which must be the lowest one that is free.
	OpMemory
	// OpObserve installs Filter with a listener for the calls that it asks about, and
	// sends the listener to Files.Observer with the flags Value of sendmsg(2). Whoever reads there must answer from then
	// on, so nothing but what the filter lets through may follow before OpExec.
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

// An ID is the identity of a file as it was when the script was planned. The
// zero ID is not compared.
type ID struct {
	Dev uint64 `json:"dev,omitempty"` // as in stat(2)
	Ino uint64 `json:"ino,omitempty"`
}

// Layers are the folders that an overlay needs beside the one that it shows. Each
// is opened through no symbolic link and compared with its ID, when that is set.
type Layers struct {
	Upper Layer `json:"upper"` // gets what changes
	Work  Layer `json:"work"`  // the kernel's own, in the file system of Upper
}

// A Layer is one folder of an overlay.
type Layer struct {
	Path string `json:"path"`
	ID   ID     `json:"id,omitzero"`
}

// A Rule lets a task do Access (Landlock's bits) below Path, or, when Stdio is
// not zero, with the file behind standard descriptor Stdio-1.
type Rule struct {
	Path   string `json:"path,omitempty"`
	Stdio  int    `json:"stdio,omitempty"`
	Access uint64 `json:"access"`
	ID     ID     `json:"id,omitzero"` // compared with what stands at Path when it is set
}

// A Ruleset is a Landlock ruleset. What Handled names is refused unless a rule
// gives it.
type Ruleset struct {
	Handled    uint64 `json:"handled"`               // LANDLOCK_ACCESS_FS_
	HandledNet uint64 `json:"handled_net,omitempty"` // LANDLOCK_ACCESS_NET_; from ABI 4
	Scoped     uint64 `json:"scoped,omitempty"`      // LANDLOCK_SCOPE_; from ABI 6
	Rules      []Rule `json:"rules"`
}

// A Filter is a compiled seccomp program: one struct sock_filter per word, in
// the kernel's layout for a little-endian machine.
type Filter []uint64

// A Step is one step of a script. Which fields count depends on Op; the others
// are zero.
type Step struct {
	Op    Op     `json:"op"`
	Label string `json:"label,omitempty"` // what the step is for, in words
	Path  string `json:"path,omitempty"`
	Dest  string `json:"dest,omitempty"`
	Tree  int    `json:"tree,omitempty"` // trees and places are numbered from 1
	From  int    `json:"from,omitempty"`
	ID    ID     `json:"id,omitzero"`

	// Own says that Path lies in a file system that earlier steps made, so that
	// no symbolic link of somebody else's can be on the way. It saves the check.
	Own       bool   `json:"own,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
	Private   bool   `json:"private,omitempty"`
	Set       uint64 `json:"set,omitempty"`
	Clear     uint64 `json:"clear,omitempty"`
	Mode      uint32 `json:"mode,omitempty"`
	Value     uint64 `json:"value,omitempty"`
	UID       int    `json:"uid,omitempty"`
	GID       int    `json:"gid,omitempty"`
	Signal    int    `json:"signal,omitempty"`
	Resource  int    `json:"resource,omitempty"`
	Stdio     int    `json:"stdio,omitempty"` // 1 to 3
	Cols      uint16 `json:"cols,omitempty"`
	Rows      uint16 `json:"rows,omitempty"`
	Offset    int64  `json:"offset,omitempty"`
	Soft      uint64 `json:"soft,omitempty"`
	Hard      uint64 `json:"hard,omitempty"`

	Layers  *Layers  `json:"layers,omitempty"`
	Ruleset *Ruleset `json:"ruleset,omitempty"`
	Filter  Filter   `json:"filter,omitempty"`
	Data    []byte   `json:"data,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Env     []string `json:"env,omitempty"`
}

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

// A Script is what a launch does, in order.
type Script struct {
	Namespaces Namespaces `json:"namespaces"`
	Steps      []Step     `json:"steps"`
}

var opNames = [opEnd]string{
	OpDieWithParent: "die-with-parent", OpSubreaper: "subreaper", OpMapUser: "map-user",
	OpOpen: "open", OpClone: "clone", OpSetTree: "set-tree", OpSetMount: "set-mount", OpAttach: "attach", OpPin: "pin", OpReopen: "reopen",
	OpTmpfs: "tmpfs", OpProc: "proc", OpDevpts: "devpts", OpOverlay: "overlay", OpMkdir: "mkdir", OpMkfile: "mkfile", OpChmod: "chmod",
	OpSymlink: "symlink", OpPivot: "pivot", OpLoopback: "loopback-up",
	OpRefuseWrite: "refuse-write", OpDropBounding: "drop-bounding-set", OpSecureBits: "secure-bits",
	OpClearAmbient: "clear-ambient", OpNoNewPrivs: "no-new-privs", OpCaps: "capabilities",
	OpSeccomp: "seccomp", OpStartCommand: "start-command", OpNewSession: "new-session", OpTerminal: "terminal", OpStdio: "stdio",
	OpLandlock: "landlock", OpLimit: "limit", OpChdir: "chdir", OpResetSignals: "reset-signals",
	OpCloseFiles: "close-files", OpPass: "pass-descriptor", OpMemory: "memory-file", OpObserve: "observe",
	OpJoin: "join-cgroup", OpAffinity: "affinity", OpExec: "exec",
}

// String returns the name of the step as scripts print it.
func (o Op) String() string {
	if o > OpNone && o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// MarshalText writes the name of the step.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name of a step.
func (o *Op) UnmarshalText(b []byte) error {
	for i, n := range opNames {
		if n == string(b) && n != "" {
			*o = Op(i)
			return nil
		}
	}
	return fmt.Errorf("launch: unknown step %q", b)
}

// String prints the step as one line: its name, what it acts on, and, behind
// "#", what it is for.
func (s Step) String() string {
	var b strings.Builder
	s.writeTo(&b)
	return b.String()
}

// writeTo is String. A script is printed at every start, so what most steps have is
// put together without package fmt.
func (s *Step) writeTo(b *strings.Builder) {
	b.WriteString(s.Op.String())
	words := func(words ...string) {
		for _, w := range words {
			b.WriteString(w)
		}
	}
	if s.Tree != 0 {
		words(" ", strconv.Itoa(s.Tree))
	}
	if s.From != 0 {
		words(" from ", strconv.Itoa(s.From))
	}
	if s.Path != "" {
		words(" ", quote(s.Path))
	}
	if s.Dest != "" {
		words(" -> ", quote(s.Dest))
	}
	if s.Recursive {
		words(" recursive")
	}
	if s.Private {
		words(" private")
	}
	if s.Set != 0 {
		words(" +", attrs(s.Set))
	}
	if s.Clear != 0 {
		words(" -", attrs(s.Clear))
	}
	s.details(func(format string, a ...any) { fmt.Fprintf(b, " "+format, a...) })
	if s.ID != (ID{}) {
		words(" checked")
	}
	if s.Label != "" {
		words("  # ", strings.Map(printable, s.Label))
	}
}

// details prints the fields that belong to single operations.
func (s *Step) details(word func(string, ...any)) {
	switch s.Op {
	case OpMapUser:
		word("uid %d gid %d", s.UID, s.GID)
	case OpMkdir, OpMkfile, OpChmod, OpTmpfs:
		word("mode %04o", s.Mode)
	case OpReopen:
		word("as %d", s.Stdio-1)
	case OpOverlay:
		word("%s", s.Layers)
	case OpTerminal:
		word("%dx%d as 0-%d", s.Cols, s.Rows, s.Stdio-1)
	case OpDieWithParent:
		word("signal %d", s.Signal)
	case OpDropBounding:
		word("0-%d", s.Value)
	case OpSecureBits, OpCaps:
		word("%#x", s.Value)
	case OpSeccomp, OpObserve:
		word("%d instructions", len(s.Filter))
	case OpLimit:
		word("%s %s %s", resourceName(s.Resource), limit(s.Soft), limit(s.Hard))
	case OpCloseFiles:
		if s.Value != 0 {
			word("from %d", s.Value)
		}
	case OpPass:
		word("as %d", s.Value)
	case OpAffinity:
		word("%x", s.Data)
	case OpMemory:
		word("as %d, %d bytes", s.Value, len(s.Data))
	case OpLandlock:
		word("%s", s.Ruleset)
	case OpExec:
		for _, a := range s.Argv {
			word("%s", quote(a))
		}
	}
}

// String prints both folders.
func (l *Layers) String() string {
	if l == nil {
		return "no layers"
	}
	return fmt.Sprintf("upper %s work %s", quote(l.Upper.Path), quote(l.Work.Path))
}

// String prints the rules in order.
func (r *Ruleset) String() string {
	if r == nil {
		return "no ruleset"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "handles %#x", r.Handled)
	if r.HandledNet != 0 {
		fmt.Fprintf(&b, " net %#x", r.HandledNet)
	}
	if r.Scoped != 0 {
		fmt.Fprintf(&b, " scope %#x", r.Scoped)
	}
	for _, u := range r.Rules {
		if u.Stdio != 0 {
			fmt.Fprintf(&b, "; descriptor %d %#x", u.Stdio-1, u.Access)
			continue
		}
		fmt.Fprintf(&b, "; %s %#x", quote(u.Path), u.Access)
	}
	return b.String()
}

// String prints the whole script, a line per step, numbered as error reports
// number them. The steps of the second task are indented.
func (s *Script) String() string {
	var b strings.Builder
	const line = 64 // bytes, about
	b.Grow(line * (len(s.Steps) + 1))
	b.WriteString("namespaces " + s.Namespaces.String() + "\n")
	indent := ""
	for i := range s.Steps {
		number := strconv.Itoa(i + 1)
		b.WriteString("   "[min(len(number), 3):])
		b.WriteString(number)
		b.WriteString(" ")
		b.WriteString(indent)
		s.Steps[i].writeTo(&b)
		b.WriteString("\n")
		if s.Steps[i].Op == OpStartCommand {
			indent = "  "
		}
	}
	return b.String()
}

// String names the namespaces, or says "none".
func (n Namespaces) String() string {
	var words []string
	for _, w := range []struct {
		bit  Namespaces
		name string
	}{
		{NewUser, "user"}, {NewMount, "mount"}, {NewPID, "pid"}, {NewNet, "net"},
		{NewIPC, "ipc"}, {NewUTS, "uts"}, {NewCgroup, "cgroup"},
	} {
		if n&w.bit != 0 {
			words = append(words, w.name)
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

func attrs(a uint64) string {
	var words []string
	for _, w := range []struct {
		bit  uint64
		name string
	}{{AttrReadOnly, "ro"}, {AttrNoSuid, "nosuid"}, {AttrNoDev, "nodev"}, {AttrNoExec, "noexec"}} {
		if a&w.bit != 0 {
			words = append(words, w.name)
			a &^= w.bit
		}
	}
	if a != 0 {
		words = append(words, fmt.Sprintf("%#x", a))
	}
	return strings.Join(words, ",")
}

// printable keeps a label on its line.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// quote leaves plain words alone, so that scripts read well, and quotes
// whatever could be mistaken for another line or word.
func quote(s string) string {
	if s == "" {
		return `""`
	}
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '#' || r == '\'' || r == '\\' || r >= 0x7f {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

func limit(v uint64) string {
	if v == ^uint64(0) {
		return "unlimited"
	}
	return fmt.Sprint(v)
}

// resourceName names the RLIMIT_ numbers that amd64 and arm64 share.
func resourceName(r int) string {
	names := []string{
		"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile",
		"memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
	}
	if r >= 0 && r < len(names) {
		return names[r]
	}
	return fmt.Sprint(r)
}
