// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package landlock holds the table of what each version (ABI) of Linux's Landlock can
// deny: which rights a ruleset may name on a given kernel. The launch script makes the
// calls. The package makes no system call.
package landlock

// A Right is one bit of a ruleset's file system access (LANDLOCK_ACCESS_FS_ in
// linux/landlock.h).
type Right = uint64

// The file system rights. The comment is the ABI that brought them.
const (
	Execute    Right = 1 << 0  // 1
	WriteFile  Right = 1 << 1  // 1
	ReadFile   Right = 1 << 2  // 1
	ReadDir    Right = 1 << 3  // 1
	RemoveDir  Right = 1 << 4  // 1
	RemoveFile Right = 1 << 5  // 1
	MakeChar   Right = 1 << 6  // 1
	MakeDir    Right = 1 << 7  // 1
	MakeReg    Right = 1 << 8  // 1
	MakeSock   Right = 1 << 9  // 1
	MakeFifo   Right = 1 << 10 // 1
	MakeBlock  Right = 1 << 11 // 1
	MakeSym    Right = 1 << 12 // 1
	Refer      Right = 1 << 13 // 2: rename and link across directories
	Truncate   Right = 1 << 14 // 3
	IoctlDev   Right = 1 << 15 // 5
)

// The scopes (LANDLOCK_SCOPE_), from ABI 6.
const (
	ScopeAbstractUnixSocket uint64 = 1 << 0
	ScopeSignal             uint64 = 1 << 1
)

// An ABI is a version of Landlock as the kernel reports it. Zero means that it is not
// available.
type ABI int

// LeastUseful is the oldest ABI that does not break ordinary work: before it, every
// rename across directories is denied.
const LeastUseful ABI = 2

const write1 = WriteFile | RemoveDir | RemoveFile | MakeChar | MakeDir | MakeReg | MakeSock | MakeFifo | MakeBlock | MakeSym

// Writes returns the rights that change something, as far as this ABI knows them.
func (a ABI) Writes() Right {
	var r Right
	if a >= 1 {
		r = write1
	}
	if a >= 2 {
		r |= Refer
	}
	if a >= 3 {
		r |= Truncate
	}
	if a >= 5 {
		r |= IoctlDev
	}
	return r
}

// FileWrites returns those of Writes that a rule for a file, as opposed to a directory,
// may give. The kernel rejects rules with others.
func (a ABI) FileWrites() Right { return a.Writes() & (WriteFile | Truncate | IoctlDev) }

// Scopes returns the scopes that this ABI knows.
func (a ABI) Scopes() uint64 {
	if a >= 6 {
		return ScopeAbstractUnixSocket | ScopeSignal
	}
	return 0
}
