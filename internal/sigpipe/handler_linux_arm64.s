// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define sys_write 64

// As on amd64, with the number in R0. The kernel's own code, to which LR leads, goes
// back to where the signal came.
TEXT handler<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	SUB  $16, RSP
	MOVB R0, (RSP)
	MOVW ·end(SB), R0
	MOVD RSP, R1
	MOVD $1, R2
	MOVD $sys_write, R8
	SVC
	ADD  $16, RSP
	RET

TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVD $handler<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVD ZR, ret+0(FP)
	RET
