// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seccomp turns a list of rules about system calls, written by name,
// into a classic BPF program that the Linux kernel runs before each call of a
// confined process. It also holds the list of calls that a confined command is
// refused by default, and the names under which single parts of that list can
// be opened again.
//
// Main flow: [Default] builds a [Filter] from [Options]; [Filter.Compile] makes
// the program; a launcher hands the memory of the returned slice to the kernel.
// [Filter.Lines] says the same rules in words. [Verify] repeats the kernel's
// own acceptance check and [Run] its interpreter, so that a program can be
// tested without a kernel, and for a machine other than this one.
//
// The program is a balanced binary search over the call numbers. When a filter
// is installed the kernel evaluates it once for every call number (to remember
// which calls are always allowed), so a flat list of comparisons would make
// each start of a command measurably slower.
//
// How to debug a refusal: the calls fail with the errno that [Filter.Lines]
// shows, nothing is killed. strace of the command (it works inside where ptrace
// is allowed) names the call and its arguments; [Run] with the same [Data] tells
// whether the filter gave the answer or the kernel did.
//
// The package refuses to do anything to a process: it makes no system call, and
// it holds data and pure functions only, all safe for concurrent use. It builds
// on every system and knows the calls of linux/amd64 and linux/arm64. It cannot
// judge what lies in memory behind a pointer argument, because the memory can
// change between the check and the call: where that matters the whole call is
// refused or the gap is stated next to the rule.
package seccomp

import (
	"errors"
	"fmt"
)

// Instruction is one step of a classic BPF program. Its layout is that of
// struct sock_filter in linux/filter.h, so a slice of instructions can be
// passed to the kernel as it lies in memory.
type Instruction struct {
	// Code is the operation, a sum of the parts in linux/bpf_common.h.
	Code uint16
	// JT and JF are the numbers of instructions to skip when a conditional jump
	// holds and when it does not. Zero means the next instruction.
	JT, JF uint8
	// K is the operand: a value, an offset, or the distance of a plain jump.
	K uint32
}

// Action is the kernel's answer to a call, in the encoding of the
// SECCOMP_RET_* values in linux/seccomp.h. The zero value is no action:
// [Filter.Compile] refuses it, so that a forgotten field never means "allow".
// (For the kernel a zero return means "kill the thread"; this package never
// writes one.)
type Action uint32

// The answers that need no number. An errno is made by [Errno].
const (
	// KillProcess ends the whole process with SIGSYS.
	KillProcess Action = 0x80000000
	// Trap sends SIGSYS to the thread, which the program may handle.
	Trap Action = 0x00030000
	// Notify suspends the call and hands it to the supervisor that holds the
	// filter's listener; without a listener the call fails with ENOSYS.
	Notify Action = 0x7fc00000
	// Log lets the call pass and leaves a line in the kernel's audit log.
	Log Action = 0x7ffc0000
	// Allow lets the call pass.
	Allow Action = 0x7fff0000

	// errnoBase is SECCOMP_RET_ERRNO; the low 16 bits carry the number.
	errnoBase Action = 0x00050000
	// maxErrno is the kernel's MAX_ERRNO: a larger number is cut to it.
	maxErrno = 4095
)

// Errno returns the action that makes a call fail with the error number n,
// without running it. n must be 1 to 4095; [Filter.Compile] refuses others
// (zero would tell the program that the refused call has succeeded).
func Errno(n uint16) Action { return errnoBase | Action(n) }

// Errno returns the error number of an action made by the function Errno, and
// false for all other actions.
func (a Action) Errno() (uint16, bool) {
	if a&0xffff0000 != errnoBase {
		return 0, false
	}
	return uint16(a & 0xffff), true
}

// valid reports whether a is an answer that a filter may give.
func (a Action) valid() bool {
	switch a {
	case KillProcess, Trap, Notify, Log, Allow:
		return true
	}
	n, ok := a.Errno()
	return ok && n >= 1 && n <= maxErrno
}

// CondOp is a comparison. The zero value is none and is refused.
type CondOp uint8

// The comparisons. All are unsigned.
const (
	// Eq holds when the argument equals Value.
	Eq CondOp = iota + 1
	// Ne holds when the argument differs from Value.
	Ne
	// MaskedEq holds when the argument's bits under Mask equal Value.
	MaskedEq
	// MaskedNe holds when the argument's bits under Mask differ from Value;
	// with Value zero: when any of the bits is set.
	MaskedNe
	// Lt holds when the argument is less than Value.
	Lt
	// Le holds when the argument is at most Value.
	Le
	// Gt holds when the argument is greater than Value.
	Gt
	// Ge holds when the argument is at least Value.
	Ge
)

// Cond is a condition on one argument of a call. The zero value is refused by
// [Filter.Compile].
type Cond struct {
	// Arg is the argument's position, 0 to 5.
	Arg int
	// Int says that the kernel takes this argument as a 32-bit value (an int,
	// an unsigned int, a mode_t): only the low 32 bits are compared. Without it
	// a program could put garbage into the upper half, which the kernel cuts
	// off, and so slip past an equality. False compares all 64 bits.
	Int bool
	// Op is the comparison.
	Op CondOp
	// Mask selects bits for MaskedEq and MaskedNe and must not be zero there;
	// it must be zero for the other comparisons.
	Mask uint64
	// Value is what the argument is compared with. It must lie inside Mask for
	// the masked comparisons, and inside 32 bits when Int is set.
	Value uint64
}

// Rule is the answer to one system call. The zero value is refused.
type Rule struct {
	// Name is the system call, as in asm/unistd.h without the prefix.
	Name string
	// When are the conditions; all must hold. Nil or empty means always.
	When []Cond
	// Action is the answer. Zero is refused.
	Action Action
	// Words tells people what When means, to follow the call's name ("with
	// family unix"). Empty: [Filter.Lines] prints the conditions as they are.
	// It has no influence on the program.
	Words string
}

// Filter is a set of rules for one architecture. The zero value is refused by
// [Filter.Compile].
//
// Besides the rules each filter answers ENOSYS to calls of another calling
// convention: a foreign audit architecture (32-bit x86 on amd64, 32-bit arm on
// arm64) and the x32 numbers of amd64 (bit 30 and above). The rules speak about
// the numbers of one table only, and other tables would be a way around them.
// ENOSYS, rather than an end of the process, is what a kernel without those
// tables answers, so programs that only try them go on normally. The number -1,
// by which a debugger cancels a call of the program it traces, gets Default.
type Filter struct {
	// Arch is the machine, "amd64" or "arm64" (spelled as GOARCH).
	Arch string
	// Rules are the exceptions to Default. Of several rules for one call the
	// first whose conditions hold gives the answer. A rule for a call that this
	// architecture lacks but another one has (open on arm64) is skipped.
	Rules []Rule
	// Default is the answer to everything without a matching rule. Zero is
	// refused.
	Default Action
}

// ErrFilter is wrapped by the errors about a filter that means nothing: a
// missing action, an impossible condition.
var ErrFilter = errors.New("seccomp: invalid filter")

// ErrTooLong is returned when a filter needs more than the 4096 instructions
// that the kernel takes (BPF_MAXINSNS in linux/bpf_common.h).
var ErrTooLong = errors.New("seccomp: the filter is too long for the kernel, use fewer rules")

// ErrProgram is wrapped by the errors about a program that the kernel would not
// accept or that cannot be run.
var ErrProgram = errors.New("seccomp: invalid program")

// UnsupportedArchError says that there are no tables for an architecture.
type UnsupportedArchError struct {
	// Arch is the unknown name; it may be empty.
	Arch string
}

// Error returns one sentence with the names that are known.
func (e *UnsupportedArchError) Error() string {
	return fmt.Sprintf("seccomp: no system call table for architecture %q, only for amd64 and arm64", e.Arch)
}

// UnknownSyscallError says that no known architecture has a system call.
type UnknownSyscallError struct {
	// Name is the unknown name; it may be empty.
	Name string
}

// Error returns one sentence.
func (e *UnknownSyscallError) Error() string {
	return fmt.Sprintf("seccomp: unknown system call %q, check the spelling", e.Name)
}

// validate reports the first fault of f.
func (f Filter) validate() error {
	if archOf(f.Arch) == nil {
		return &UnsupportedArchError{Arch: f.Arch}
	}
	if !f.Default.valid() {
		return fmt.Errorf("%w: default action %#x is none", ErrFilter, uint32(f.Default))
	}
	for i, r := range f.Rules {
		if !r.Action.valid() {
			return fmt.Errorf("%w: rule %d (%s): action %#x is none", ErrFilter, i, r.Name, uint32(r.Action))
		}
		for _, c := range r.When {
			if fault := c.fault(); fault != "" {
				return fmt.Errorf("%w: rule %d (%s): %s", ErrFilter, i, r.Name, fault)
			}
		}
	}
	return nil
}

// fault says in words what is wrong with c, "" for nothing.
func (c Cond) fault() string {
	masked := c.Op == MaskedEq || c.Op == MaskedNe
	switch {
	case c.Arg < 0 || c.Arg > 5:
		return fmt.Sprintf("argument %d does not exist, only 0 to 5", c.Arg)
	case c.Op < Eq || c.Op > Ge:
		return fmt.Sprintf("comparison %d does not exist", c.Op)
	case masked && c.Mask == 0:
		return "a masked comparison needs a mask"
	case !masked && c.Mask != 0:
		return "this comparison takes no mask"
	case masked && c.Value&^c.Mask != 0:
		return "the value has bits outside the mask"
	case c.Int && (c.Mask>>32 != 0 || c.Value>>32 != 0):
		return "a 32-bit argument is compared with more than 32 bits"
	}
	return ""
}
