// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

// This file is the table of what each version (ABI) of Linux's Landlock can deny: which rights a ruleset may
// name on a given kernel. The script makes the calls.

// A LandlockRight is one bit of a ruleset's file system access (LANDLOCK_ACCESS_FS_ in
// linux/landlock.h).
type LandlockRight = uint64

// The file system rights. The comment is the ABI that brought them.
const (
	LandlockExecute    LandlockRight = 1 << 0  // 1
	LandlockWriteFile  LandlockRight = 1 << 1  // 1
	LandlockReadFile   LandlockRight = 1 << 2  // 1
	LandlockReadDir    LandlockRight = 1 << 3  // 1
	LandlockRemoveDir  LandlockRight = 1 << 4  // 1
	LandlockRemoveFile LandlockRight = 1 << 5  // 1
	LandlockMakeChar   LandlockRight = 1 << 6  // 1
	LandlockMakeDir    LandlockRight = 1 << 7  // 1
	LandlockMakeReg    LandlockRight = 1 << 8  // 1
	LandlockMakeSock   LandlockRight = 1 << 9  // 1
	LandlockMakeFifo   LandlockRight = 1 << 10 // 1
	LandlockMakeBlock  LandlockRight = 1 << 11 // 1
	LandlockMakeSym    LandlockRight = 1 << 12 // 1
	LandlockRefer      LandlockRight = 1 << 13 // 2: rename and link across directories
	LandlockTruncate   LandlockRight = 1 << 14 // 3
	LandlockIoctlDev   LandlockRight = 1 << 15 // 5
)

// The scopes (LANDLOCK_SCOPE_), from ABI 6.
const (
	LandlockScopeAbstractUnixSocket uint64 = 1 << 0
	LandlockScopeSignal             uint64 = 1 << 1
)

// A LandlockABI is a version of Landlock as the kernel reports it. Zero means that it is not
// available.
type LandlockABI int

// LandlockLeastUseful is the oldest ABI that does not break ordinary work: before it, every
// rename across directories is denied.
const LandlockLeastUseful LandlockABI = 2

const landlockWrites = LandlockWriteFile | LandlockRemoveDir | LandlockRemoveFile | LandlockMakeChar |
	LandlockMakeDir | LandlockMakeReg | LandlockMakeSock | LandlockMakeFifo | LandlockMakeBlock |
	LandlockMakeSym

// Writes returns the rights that change something, as far as this ABI knows them.
func (a LandlockABI) Writes() LandlockRight {
	var r LandlockRight
	if a >= 1 {
		r = landlockWrites
	}
	if a >= 2 {
		r |= LandlockRefer
	}
	if a >= 3 {
		r |= LandlockTruncate
	}
	if a >= 5 {
		r |= LandlockIoctlDev
	}
	return r
}

// FileWrites returns those of Writes that a rule for a file, as opposed to a directory,
// may give. The kernel rejects rules with others.
func (a LandlockABI) FileWrites() LandlockRight {
	return a.Writes() & (LandlockWriteFile | LandlockTruncate | LandlockIoctlDev)
}

// Scopes returns the scopes that this ABI knows.
func (a LandlockABI) Scopes() uint64 {
	if a >= 6 {
		return LandlockScopeAbstractUnixSocket | LandlockScopeSignal
	}
	return 0
}
