// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seccomp makes the system call filter of a confined command: a classic BPF
// program that the Linux kernel runs before each call.
//
// The main flow: [Program] takes [Options], builds the deny list, and compiles it; the
// launcher hands the words to the kernel. [Openings] lists the parts of the deny list
// that can be opened by name. [Filter] is the general form, for other lists.
//
// The program is a balanced binary search over the call numbers, because the kernel
// evaluates a filter once for every number when it is installed, to find the calls that
// are always allowed: a flat list would make each start measurably slower.
//
// To debug a denial: the call fails with the errno of the list, nothing is killed.
// strace of the command (it works inside where ptrace is allowed) names the call and its
// arguments.
//
// The package holds data and pure functions only, all safe for concurrent use, and makes
// no system call. It builds on every system and knows the calls of linux/amd64 and
// linux/arm64. It refuses to judge what lies behind a pointer argument, because the
// memory can change between the check and the call: where that matters the whole call is
// denied, or a comment next to the rule states the gap.
package seccomp

import (
	"errors"
	"fmt"
)

// An Instruction is one step of a classic BPF program, laid out as struct sock_filter of
// linux/filter.h.
type Instruction struct {
	// Code is the operation, a sum of the parts in linux/bpf_common.h.
	Code uint16
	// JT and JF are the numbers of instructions to skip when a conditional jump
	// holds and when it does not.
	JT, JF uint8
	// K is the operand: a value, an offset, or the distance of a plain jump.
	K uint32
}

// An Action is the kernel's answer to a call, encoded as the SECCOMP_RET values of
// linux/seccomp.h. [Filter.Compile] returns an error for the zero Action, so that a
// forgotten field never means "allow".
type Action uint32

const (
	// Notify suspends the call and hands it to the supervisor that holds the
	// filter's listener. Without a listener the call fails with ENOSYS.
	Notify Action = 0x7fc00000
	// Allow lets the call pass.
	Allow Action = 0x7fff0000

	// errnoBase is SECCOMP_RET_ERRNO; the low 16 bits hold the number.
	errnoBase Action = 0x00050000
	// maxErrno is the kernel's MAX_ERRNO: it cuts a larger number.
	maxErrno = 4095
)

// Errno returns the action that makes a call fail with the error number n, which must be
// 1 to 4095: zero would tell the program that the denied call has succeeded.
func Errno(n uint16) Action { return errnoBase | Action(n) }

// valid reports whether a filter may give the answer a.
func (a Action) valid() bool {
	return a == Allow || a == Notify || a > errnoBase && a <= errnoBase+maxErrno
}

// A CondOp is a comparison of unsigned numbers. The zero CondOp is invalid.
type CondOp uint8

const (
	// Eq holds when the argument equals Value.
	Eq CondOp = iota + 1
	// Ne holds when the argument differs from Value.
	Ne
	// MaskedEq holds when the argument's bits under Mask equal Value.
	MaskedEq
	// MaskedNe holds when the argument's bits under Mask differ from Value; with
	// Value zero: when any of the bits is set.
	MaskedNe
)

// A Cond is a condition on one argument of a call. The zero Cond is invalid.
type Cond struct {
	// Arg is the argument's position, 0 to 5.
	Arg int
	// Int says that the kernel takes the argument as 32 bits (an int, a mode_t), so
	// only those are compared. Without it a program could put other bits into the
	// upper half, which the kernel drops, and pass by a comparison.
	Int bool
	// Op is the comparison.
	Op CondOp
	// Mask selects bits for MaskedEq and MaskedNe, and is zero for the others.
	Mask uint64
	// Value is what the argument is compared with. It lies inside of Mask for the
	// masked comparisons, and in 32 bits where Int is set.
	Value uint64
}

// A Rule is the answer to one system call. The zero Rule is invalid.
type Rule struct {
	// Name is the system call, as in asm/unistd.h without the prefix.
	Name string
	// When are the conditions; all must hold. Empty means always.
	When []Cond
	// Action is the answer.
	Action Action
	// Opening is the opening without which the rule is there. Empty means that none opens
	// what it refuses. It does not change the program.
	Opening string
}

// A Filter is a set of rules for one architecture. The zero Filter is invalid.
//
// A filter also answers ENOSYS to calls of another calling convention: a foreign audit
// architecture (32-bit x86 on amd64, 32-bit arm on arm64) and the x32 numbers of amd64
// (bit 30 and above). The rules are about the numbers of one table, and the other tables
// would be a way around them. A kernel without those tables gives the same answer, so
// programs go on after it. The number -1, by which a debugger cancels a call of the
// program that it traces, gets Default.
type Filter struct {
	// Arch is the machine, "amd64" or "arm64" (spelled as GOARCH).
	Arch string
	// Rules are the exceptions to Default. Of several rules for one call the first
	// whose conditions hold gives the answer. A rule for a call that only the other
	// architecture has is skipped.
	Rules []Rule
	// Default is the answer to a call without a matching rule.
	Default Action
	// NotifyForeign hands calls of another calling convention to the supervisor, which must
	// answer ENOSYS, in place of that answer.
	NotifyForeign bool
}

// ErrFilter is wrapped by the errors about an invalid filter.
var ErrFilter = errors.New("seccomp: invalid filter")

// UnsupportedArchError reports an architecture without a table of system calls.
type UnsupportedArchError struct {
	// Arch is the unknown name; it may be empty.
	Arch string
}

// Error returns one sentence with the names that are known.
func (e *UnsupportedArchError) Error() string {
	return fmt.Sprintf("seccomp: no system call table for architecture %q; use amd64 or arm64", e.Arch)
}

// validate returns an error for the first fault of f.
func (f Filter) validate() error {
	if archOf(f.Arch) == nil {
		return &UnsupportedArchError{Arch: f.Arch}
	}
	if !f.Default.valid() {
		return fmt.Errorf("%w: invalid default action %#x", ErrFilter, uint32(f.Default))
	}
	for i, r := range f.Rules {
		if !r.Action.valid() {
			return fmt.Errorf("%w: rule %d (%s): invalid action %#x", ErrFilter, i, r.Name, uint32(r.Action))
		}
		for _, c := range r.When {
			if fault := c.fault(); fault != "" {
				return fmt.Errorf("%w: rule %d (%s): %s", ErrFilter, i, r.Name, fault)
			}
		}
	}
	return nil
}

// fault returns what is wrong with c, or "".
func (c Cond) fault() string {
	masked := c.Op == MaskedEq || c.Op == MaskedNe
	switch {
	case c.Arg < 0 || c.Arg > 5:
		return fmt.Sprintf("invalid argument %d, only 0 to 5 exist", c.Arg)
	case c.Op < Eq || c.Op > MaskedNe:
		return fmt.Sprintf("invalid comparison %d", c.Op)
	case masked != (c.Mask != 0):
		return "a masked comparison needs a mask, and no other takes one"
	case masked && c.Value&^c.Mask != 0:
		return "the value has bits outside of the mask"
	case c.Int && (c.Mask>>32 != 0 || c.Value>>32 != 0):
		return "a 32-bit argument is compared with more than 32 bits"
	}
	return ""
}
