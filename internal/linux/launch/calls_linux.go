// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A context is what the child works with. The assembly knows its layout.
type context struct {
	nr     uintptr
	args   [5]uintptr
	script *call
	errno  uintptr
	failed *call
	then   *call // where a call with flagJump goes on; nil ends the child
}

// A call is one system call of the list. The assembly knows its layout.
type call struct {
	nr    uintptr
	args  [6]uintptr
	flags uintptr
	out   uintptr
	want  uintptr
}

// Bits of call.flags. Bits 0 to 3 say that the argument is the address of a slot.
const (
	flagStore     = 0x100  // keep the result in the slot at out
	flagIgnore    = 0x200  // go on after any error
	flagIgnoreOne = 0x400  // go on after the errno want
	flagWant      = 0x800  // the result must be want
	flagCheck     = 0x1000 // no call: the bits args[2] of the word at args[0] must equal args[1]
	flagFork      = 0x2000 // clone: the new task goes on at want
	flagAwait     = 0x4000 // again, whatever it returns, while the 32-bit word at args[0] is 0
	flagJump      = 0x8000 // no call: the list goes on at context.then
)

// A slot is a word that one call fills and later calls read.
type slot *uint64

// An arg is a word for the kernel: a value, or what a slot holds.
type arg struct {
	v      uintptr
	isSlot bool
}

func num[T ~int | ~uint32 | ~uint64 | ~uintptr](v T) arg { return arg{v: uintptr(v)} }

// held is what a slot holds when the call is made.
func held(s slot) arg { return arg{v: uintptr(unsafe.Pointer(s)), isSlot: true} }

// A lowering turns steps into calls. The first mistake that it finds stays in err.
type lowering struct {
	calls  []call
	origin []origin // of each call
	step   int      // the step that is lowered
	err    *ScriptError
	fds    fds

	keep []any    // memory that the kernel reads and writes, for as long as the calls may run
	free []uint64 // the rest of the last piece of such memory

	trees    map[int]slot
	reopened [3]slot // standard descriptors that a step opened anew, or that a terminal replaces
	opened   map[reopening]slot
	terminal bool   // a terminal replaces standard descriptors
	files    []slot // that hold descriptors of trees and places, or 0
	place    slot   // scratch: the place that a step works on
	copied   slot   // scratch: a copy of it
	alone    bool   // the table of descriptors is no other task's
	left     []slot // that hold descriptors which are left open, see leave

	dies          bool    // the script has OpDieWithParent
	ownNetwork    bool    // a network namespace is made for it
	fork          int     // index of the fork call, or -1
	inCommand     bool    // what follows is performed by the second task
	second        int     // index of the second task's first call
	command       slot    // its process id
	commandShares *uint32 // 1 while it shares this process's memory
	entered       int     // index of the call that makes the first task inside, or -1
	first         slot    // its process id
	inside        *int32  // and the descriptor of its process
	insideShares  *uint32 // as commandShares
}

// An origin says what a call is for.
type origin struct {
	step int
	name string
}

// newLowering returns a lowering for about as many steps.
func newLowering(f fds, steps int) *lowering {
	usual := 4*steps + 64 // calls
	l := &lowering{
		calls: make([]call, 0, usual), origin: make([]origin, 0, usual),
		fds: f, trees: make(map[int]slot), opened: make(map[reopening]slot), fork: -1, entered: -1,
	}
	l.place, l.copied = l.newSlot(), l.newSlot()
	l.files = append(l.files, l.place, l.copied)
	return l
}

// fail notes a mistake in the step that is lowered.
func (l *lowering) fail(format string, a ...any) {
	if l.err == nil {
		l.err = &ScriptError{Step: l.step, Reason: fmt.Sprintf(format, a...)}
	}
}

// words returns n zero words, side by side, that stay where they are.
func (l *lowering) words(n int) []uint64 {
	if n > len(l.free) {
		l.free = make([]uint64, max(n, 1024))
		l.keep = append(l.keep, l.free)
	}
	w := l.free[:n:n]
	l.free = l.free[n:]
	return w
}

func (l *lowering) newSlot() slot { return &l.words(1)[0] }

// text returns a string as the kernel reads it.
func (l *lowering) text(s string) arg {
	if strings.IndexByte(s, 0) >= 0 {
		l.fail("%q contains a NUL byte", s)
	}
	w := l.words(len(s)/8 + 1) // zero behind s
	p := unsafe.Pointer(&w[0])
	copy(unsafe.Slice((*byte)(p), len(s)), s)
	return arg{v: uintptr(p)}
}

// vector returns a list of strings as execve(2) reads it.
func (l *lowering) vector(list []string) arg {
	pointers := l.words(len(list) + 1)
	for i, s := range list {
		pointers[i] = uint64(l.text(s).v)
	}
	return arg{v: uintptr(unsafe.Pointer(&pointers[0]))}
}

// pin returns the address of v, which stays where it is.
func pin[T any](l *lowering, v *T) arg {
	l.keep = append(l.keep, v)
	return arg{v: uintptr(unsafe.Pointer(v))}
}

// call appends one system call and returns it for its flags.
func (l *lowering) call(name string, nr uintptr, args ...arg) *call {
	c := call{nr: nr}
	for i, a := range args {
		c.args[i] = a.v
		if a.isSlot {
			c.flags |= 1 << i
		}
	}
	l.calls = append(l.calls, c)
	l.origin = append(l.origin, origin{l.step, name})
	return &l.calls[len(l.calls)-1]
}

func (c *call) store(s slot) {
	c.flags |= flagStore
	c.out = uintptr(unsafe.Pointer(s))
}

func (c *call) expect(v uintptr) {
	c.flags |= flagWant
	c.want = v
}

// compare appends a check of a memory word.
func (l *lowering) compare(at unsafe.Pointer, want uint64) {
	l.compareBits(at, want, ^uint64(0))
}

// compareBits appends a check of some bits of a memory word.
func (l *lowering) compareBits(at unsafe.Pointer, want, bits uint64) {
	l.call("compare", 0, arg{v: uintptr(at)}, num(want), num(bits)).flags |= flagCheck
}

// open opens path through no symbolic link, and compares its identity when there is
// one to compare with. With an identity the path may be a link itself, which is what is opened.
func (l *lowering) open(path string, id ID, flags uint64, into slot) {
	if id != (ID{}) {
		flags |= unix.O_NOFOLLOW
	}
	how := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	l.call("openat2", unix.SYS_OPENAT2, num(unix.AT_FDCWD), l.text(path), pin(l, how),
		num(unix.SizeofOpenHow)).store(into)
	if id != (ID{}) {
		l.examine(into, id)
	}
}

// examine looks at an open file and compares its identity, when there is one to compare with.
func (l *lowering) examine(file slot, id ID) *unix.Statx_t {
	st := new(unix.Statx_t)
	l.call("statx", unix.SYS_STATX, held(file), l.text(""), num(unix.AT_EMPTY_PATH),
		num(unix.STATX_INO), pin(l, st))
	if id != (ID{}) {
		l.compare(unsafe.Pointer(&st.Ino), id.Ino)
		dev := uint64(unix.Major(id.Dev)) | uint64(unix.Minor(id.Dev))<<32
		l.compare(unsafe.Pointer(&st.Dev_major), dev)
	}
	return st
}

// close closes what a slot holds, which is then 0.
func (l *lowering) close(s slot) { l.call("close", unix.SYS_CLOSE, held(s)).store(s) }

// maxLeft is how many descriptors are left open.
const maxLeft = 100

// leave is close for a place or a tree, which allows nothing that the task does not have: the program that
// it executes gets none, for all are closed at once before that, and would be by the execution. Until then
// those of the last steps stay open, which saves a call for each.
func (l *lowering) leave(s slot) {
	if !l.alone || len(l.left) == maxLeft {
		l.close(s)
		return
	}
	l.left = append(l.left, s)
}

// closeLeft closes what was left open.
func (l *lowering) closeLeft() {
	for _, s := range l.left {
		l.close(s)
	}
	l.left = nil
}

// newPlace returns a slot for a place that is left open.
func (l *lowering) newPlace() slot {
	if !l.alone {
		return l.place
	}
	return l.newSlot()
}

// above gives what a slot holds a number that OpStdio does not overwrite before it is
// used, also where the caller has closed 0 to 2, and closes the old one.
func (l *lowering) above(from, into slot) {
	l.call("fcntl", unix.SYS_FCNTL, held(from), num(unix.F_DUPFD_CLOEXEC), num(3)).store(into)
	l.close(from)
}

// message returns a message of one byte for sendmsg(2) with one descriptor, which a
// call stores in the slot.
func (l *lowering) message() (fd slot, msg arg) {
	control := l.words(3) // struct cmsghdr and the descriptor
	control[0], control[1] = uint64(unix.CmsgLen(4)), unix.SOL_SOCKET|unix.SCM_RIGHTS<<32
	iov := &unix.Iovec{Base: (*byte)(unsafe.Pointer(l.newSlot()))}
	iov.SetLen(1)
	m := &unix.Msghdr{Iov: iov, Control: (*byte)(unsafe.Pointer(&control[0]))}
	m.SetIovlen(1)
	m.SetControllen(unix.CmsgSpace(4))
	return &control[2], pin(l, m) // m points to iov
}

// write writes a whole text to a descriptor.
func (l *lowering) write(fd arg, text string) {
	l.call("write", unix.SYS_WRITE, fd, l.text(text), num(len(text))).expect(uintptr(len(text)))
}
