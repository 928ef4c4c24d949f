// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define sys_write        1
#define sys_rt_sigreturn 15

// The kernel calls this with the signal's number in DI, on the signal stack of
// whatever thread it likes and with all signals blocked, and restores every register
// afterwards. A byte below the stack pointer is ours: nothing is pushed.
TEXT handler<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVB DI, -8(SP)
	MOVL ·end(SB), DI
	LEAQ -8(SP), SI
	MOVL $1, DX
	MOVL $sys_write, AX
	SYSCALL
	RET

TEXT restorer<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVL $sys_rt_sigreturn, AX
	SYSCALL
	INT  $3

TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVQ $handler<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVQ $restorer<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
