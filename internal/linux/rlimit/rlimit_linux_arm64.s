// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func prlimit(l *[2]uint64) int64
TEXT ·prlimit(SB), NOSPLIT, $0-16
	MOVD l+0(FP), R3
	MOVD $0, R0
	MOVD $7, R1   // RLIMIT_NOFILE
	MOVD $0, R2
	MOVD $261, R8 // prlimit64
	SVC
	MOVD R0, ret+8(FP)
	RET
