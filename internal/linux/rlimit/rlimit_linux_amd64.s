// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func prlimit(l *[2]uint64) int64
TEXT ·prlimit(SB), NOSPLIT, $0-16
	MOVQ l+0(FP), R10
	XORQ DI, DI
	MOVQ $7, SI   // RLIMIT_NOFILE
	XORQ DX, DX
	MOVQ $302, AX // prlimit64
	SYSCALL
	MOVQ AX, ret+8(FP)
	RET
