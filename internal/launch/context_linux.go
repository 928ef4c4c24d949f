// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A context is what the child works with. The assembly knows its layout.
type context struct {
	nr     uintptr
	args   [5]uintptr
	script *call
	slots  *uint64
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

// Bits of call.flags. Bits 0 to 3 say that the argument is the number of a slot.
const (
	flagStore     = 0x100  // keep the result in slot out
	flagIgnore    = 0x200  // go on after any error
	flagIgnoreOne = 0x400  // go on after the errno want
	flagWant      = 0x800  // the result must be want
	flagCheck     = 0x1000 // no call: the word at args[0], masked, must equal args[2]
	flagFork      = 0x2000 // vfork: the new task goes on at want
	flagAwait     = 0x4000 // again, whatever it returns, while the 32-bit word at args[0] is 0
	flagJump      = 0x8000 // no call: the list goes on at context.then
)

// A slot is a word that one step fills and later ones read.
type slot uintptr

// An arg is a word for the kernel: a number, or the content of a slot.
type arg struct {
	v      uintptr
	isSlot bool
}

func num(v uintptr) arg                 { return arg{v: v} }
func (s slot) arg() arg                 { return arg{v: uintptr(s), isSlot: true} }
func fd(n int) arg                      { return arg{v: uintptr(n)} }
func atCwd() arg                        { return arg{v: ^uintptr(99)} } // AT_FDCWD is -100
func flag(v uint64) arg                 { return arg{v: uintptr(v)} }
func zero() arg                         { return arg{} }
func errnoWord(e syscall.Errno) uintptr { return uintptr(e) }

// A lowering turns steps into calls. Memory that the kernel reads is kept in
// keep for as long as the calls may run.
type lowering struct {
	calls  []call
	origin []int    // which step a call belongs to
	names  []string // what the call is, for error reports
	step   int
	keep   []any
	chunk  []byte
	words  []uint64 // the slots; never grows, because the kernel gets addresses in it
	used   slot
	trees  map[int]slot
	// reopened are the slots of standard descriptors that a step opened anew.
	reopened map[int]slot
	terminal bool // a terminal takes the place of standard descriptors
	opened   map[reopening]slot
	fds      fds
	place    slot // scratch: the place that a step works on
	copied   slot // scratch: a copy of it; 0 before it is needed
	fork     int  // index of the fork call, or -1
	second   int  // index of the second task's first call
}

// A reopening is what one OpReopen asks for.
type reopening struct {
	path   string
	id     ID
	flags  uint64
	offset int64
}

func (l *lowering) bytes(n int) []byte {
	if n > 1024 {
		b := make([]byte, n)
		l.keep = append(l.keep, b)
		return b
	}
	n = (n + 7) &^ 7
	if len(l.chunk) < n {
		l.chunk = make([]byte, 8192)
		l.keep = append(l.keep, l.chunk)
	}
	b := l.chunk[:n:n]
	l.chunk = l.chunk[n:]
	return b
}

func (l *lowering) cstring(s string) (arg, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return arg{}, &ScriptError{Step: l.step, Reason: fmt.Sprintf("%q contains a NUL byte", s)}
	}
	b := l.bytes(len(s) + 1)
	copy(b, s)
	b[len(s)] = 0
	return arg{v: uintptr(unsafe.Pointer(&b[0]))}, nil
}

func pin[T any](l *lowering, v *T) arg {
	l.keep = append(l.keep, v)
	return arg{v: uintptr(unsafe.Pointer(v))}
}

func (l *lowering) newSlot() slot {
	s := l.used
	l.used++
	return s
}

// slotAddr is where the kernel finds slot s in memory.
func (l *lowering) slotAddr(s slot) arg {
	return arg{v: uintptr(unsafe.Pointer(&l.words[s]))}
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
	l.origin = append(l.origin, l.step)
	l.names = append(l.names, name)
	return &l.calls[len(l.calls)-1]
}

func (c *call) store(s slot) {
	c.flags |= flagStore
	c.out = uintptr(s)
}

func (c *call) expect(v uintptr) {
	c.flags |= flagWant
	c.want = v
}

func (c *call) ignoreErrno(e syscall.Errno) {
	c.flags |= flagIgnoreOne
	c.want = errnoWord(e)
}

// compare appends a check of a memory word.
func (l *lowering) compare(at unsafe.Pointer, mask, want uint64) {
	c := l.call("compare", 0, arg{v: uintptr(at)}, flag(mask), flag(want))
	c.flags |= flagCheck
}

// open opens path as a place, through no symbolic link, and compares its
// identity when there is one to compare with.
func (l *lowering) open(path string, id ID, flags uint64, into slot) error {
	p, err := l.cstring(path)
	if err != nil {
		return err
	}
	how := pin(l, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	l.call("openat2", unix.SYS_OPENAT2, atCwd(), p, how, num(unix.SizeofOpenHow)).store(into)
	if id != (ID{}) {
		l.identify(into, id)
	}
	return nil
}

// identify compares the file behind a descriptor with an identity.
func (l *lowering) identify(s slot, id ID) {
	st := new(unix.Statx_t)
	empty := l.bytes(8)
	empty[0] = 0
	l.call("statx", unix.SYS_STATX, s.arg(), arg{v: uintptr(unsafe.Pointer(&empty[0]))},
		num(unix.AT_EMPTY_PATH), num(unix.STATX_INO), pin(l, st))
	l.compare(unsafe.Pointer(&st.Ino), ^uint64(0), id.Ino)
	dev := uint64(unix.Major(id.Dev)) | uint64(unix.Minor(id.Dev))<<32
	l.compare(unsafe.Pointer(&st.Dev_major), ^uint64(0), dev)
}

func (l *lowering) close(s slot) { l.call("close", unix.SYS_CLOSE, s.arg()) }

func (l *lowering) empty() arg {
	b := l.bytes(8)
	b[0] = 0
	return arg{v: uintptr(unsafe.Pointer(&b[0]))}
}

func (l *lowering) tree(n int) (slot, error) {
	s, ok := l.trees[n]
	if !ok {
		return 0, &ScriptError{Step: l.step, Reason: fmt.Sprintf("tree %d was not made by an earlier step", n)}
	}
	return s, nil
}

func (l *lowering) newTree(n int) (slot, error) {
	if n <= 0 {
		return 0, &ScriptError{Step: l.step, Reason: "the step needs a tree number"}
	}
	if _, ok := l.trees[n]; ok {
		return 0, &ScriptError{Step: l.step, Reason: fmt.Sprintf("tree %d is made twice", n)}
	}
	s := l.newSlot()
	l.trees[n] = s
	return s, nil
}

// vector builds the kernel's form of an argument list.
func (l *lowering) vector(words []string) (arg, error) {
	total := 0
	for _, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			return arg{}, &ScriptError{Step: l.step, Reason: fmt.Sprintf("%q contains a NUL byte", w)}
		}
		total += len(w) + 1
	}
	text := make([]byte, total)
	ptrs := make([]uintptr, len(words)+1)
	at := 0
	for i, w := range words {
		ptrs[i] = uintptr(unsafe.Pointer(&text[at]))
		at += copy(text[at:], w) + 1
	}
	l.keep = append(l.keep, text, ptrs)
	return arg{v: uintptr(unsafe.Pointer(&ptrs[0]))}, nil
}
