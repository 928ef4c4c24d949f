// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"
#include "go_asm.h"

// Bit numbers of call.flags.
#define bit_store      8
#define bit_ignore     9
#define bit_ignore_one 10
#define bit_want       11
#define bit_check      12
#define bit_fork       13
#define bit_await      14
#define bit_jump       15

#define sys_exit_group 94
#define errno_stale    116

// func spawn(c *context) int64
//
// As on amd64. R19 context, R20 current call, R21 flags.
TEXT ·spawn(SB), NOSPLIT|NOFRAME, $0-16
	MOVD c+0(FP), R19
	MOVD context_nr(R19), R8
	MOVD context_args(R19), R0
	MOVD (context_args+8)(R19), R1
	MOVD (context_args+16)(R19), R2
	MOVD (context_args+24)(R19), R3
	MOVD (context_args+32)(R19), R4
	SVC
	CBZ  R0, child
	MOVD R0, ret+8(FP)
	RET

child:
	MOVD context_script(R19), R20

loop:
	MOVD call_flags(R20), R21
	MOVD call_args(R20), R0
	TBZ  $0, R21, arg1
	MOVD (R0), R0

arg1:
	MOVD (call_args+8)(R20), R1
	TBZ  $1, R21, arg2
	MOVD (R1), R1

arg2:
	MOVD (call_args+16)(R20), R2
	TBZ  $2, R21, arg3
	MOVD (R2), R2

arg3:
	MOVD (call_args+24)(R20), R3
	TBZ  $3, R21, arg4
	MOVD (R3), R3

arg4:
	MOVD (call_args+32)(R20), R4
	MOVD (call_args+40)(R20), R5
	TBNZ $bit_check, R21, check
	TBNZ $bit_jump, R21, jump
	MOVD call_nr(R20), R8
	SVC
	TBNZ $bit_await, R21, await
	CMN  $4095, R0
	BCS  failed
	TBNZ $bit_fork, R21, forked
	TBZ  $bit_store, R21, want
	MOVD call_out(R20), R9
	MOVD R0, (R9)

want:
	TBZ  $bit_want, R21, next
	MOVD call_want(R20), R9
	CMP  R9, R0
	BNE  stale

next:
	ADD $call__size, R20
	B   loop

	// The bits a2 of the memory word at a0 must equal a1.
check:
	MOVD (R0), R9
	AND  R2, R9
	CMP  R1, R9
	BEQ  next

stale:
	MOVD $errno_stale, R0
	B    report

failed:
	NEG  R0, R0
	TBNZ $bit_ignore, R21, next
	TBZ  $bit_ignore_one, R21, report
	MOVD call_want(R20), R9
	CMP  R9, R0
	BEQ  next

report:
	MOVD R0, context_errno(R19)
	MOVD R20, context_failed(R19)

leave:
	MOVD $1, R0
	MOVD $sys_exit_group, R8
	SVC
	B    leave

forked:
	CBZ  R0, second
	MOVD call_out(R20), R9
	MOVD R0, (R9)
	MOVD context_errno(R19), R9
	CBNZ R9, leave
	B    next

second:
	MOVD call_want(R20), R20
	B    loop

await:
	MOVD  call_args(R20), R0
	LDARW (R0), R9
	CBZW  R9, loop
	B     next

jump:
	MOVD context_then(R19), R20
	CBZ  R20, leave
	B    loop

#define sys_read    63
#define sys_write   64
#define sys_close   57
#define sys_wait4   260
#define sys_kill    129
#define sys_getpid  172
#define sys_getrusage 165
#define sys_sigwait 137
#define sys_prctl   167
#define sys_openat  56

#define SIGKILL 9
#define SIGUSR2 12
#define SIGCHLD 17

// The reaper, as on amd64. R19 is the command's process id.
TEXT ·reaper(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $256, RSP
	MOVD $4, R0
	MOVD $0, R1
	MOVD $sys_prctl, R8
	SVC
	MOVD $1, R0
	MOVD RSP, R1
	MOVD $8, R2
	MOVD $sys_read, R8
	SVC
	MOVD 0(RSP), R19
	MOVD $1, R0
	MOVD $sys_close, R8
	SVC

reap:
	MOVD $-1, R0
	ADD  $4, RSP, R1
	MOVD $3, R2              // WNOHANG and WUNTRACED
	MOVD $0, R3
	MOVD $sys_wait4, R8
	SVC
	CBZ  R0, sleep
	TBNZ $63, R0, alone
	CMP  R19, R0
	BNE  reap
	MOVW R0, 0(RSP)
	MOVD $0, R0
	MOVD RSP, R1
	MOVD $8, R2
	MOVD $sys_write, R8
	SVC
	B    reap

sleep:
	MOVD $-1, R9
	MOVD R9, 8(RSP)
	ADD  $8, RSP, R0
	ADD  $64, RSP, R1
	MOVD $0, R2
	MOVD $8, R3
	MOVD $sys_sigwait, R8
	SVC
	CMP  $SIGCHLD, R0
	BEQ  reap
	CMP  $SIGUSR2, R0        // however it was sent: a second one waiting would be dropped
	BEQ  lone
	TBNZ $63, R0, sleep
	MOVW 72(RSP), R9
	CMN  $1, R9
	BNE  sleep
	MOVW 88(RSP), R0
	MOVW 92(RSP), R1
	CBZ  R0, sleep           // its own group is never meant
	MOVD $sys_kill, R8
	SVC
	B    sleep

lone:
	MOVD $sys_getpid, R8
	SVC
	CMP  $1, R0
	BEQ  all
	NEG  R19, R0
	MOVD $SIGKILL, R1
	MOVD $sys_kill, R8
	SVC

orphans:                     // as on amd64
	MOVD $0x68742f636f72702f, R9 // "/proc/thread-self/children"
	MOVD R9, 0(RSP)
	MOVD $0x6c65732d64616572, R9
	MOVD R9, 8(RSP)
	MOVD $0x72646c6968632f66, R9
	MOVD R9, 16(RSP)
	MOVD $0x6e65, R9
	MOVD R9, 24(RSP)
	MOVD $-100, R0           // AT_FDCWD
	MOVD RSP, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $sys_openat, R8
	SVC
	TBNZ $63, R0, done
	MOVD R0, R20
	ADD  $64, RSP, R1
	MOVD $192, R2
	MOVD $sys_read, R8       // numbers, each with a space behind it
	SVC
	MOVD R0, R21
	MOVD R20, R0
	MOVD $sys_close, R8
	SVC
	ADD  $64, RSP, R22
	ADD  R22, R21            // the end of what was read
	MOVD $0, R0
	MOVD $10, R10

digit:
	CMP  R21, R22
	BGE  gather              // a number that was cut off comes again
	MOVBU.P 1(R22), R9
	CMP  $0x20, R9
	BEQ  number
	MUL  R10, R0
	SUB  $48, R9
	ADD  R9, R0
	B    digit

number:
	CBZ  R0, digit           // its own group is never meant
	MOVD $SIGKILL, R1
	MOVD $sys_kill, R8
	SVC
	MOVD $0, R0
	B    digit

gather:
	MOVD $-1, R0             // wait for one; what it leaves behind is found by the next round
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $sys_wait4, R8
	SVC
	CMP  $0, R0
	BGT  orphans
	B    done

all:
	MOVD $-1, R0             // everything in the namespace, which is collected as ever
	MOVD $SIGKILL, R1
	MOVD $sys_kill, R8
	SVC
	B    reap

alone:
	MOVD $0x7fffffff, R9     // no command has such a process id: this one holds a namespace
	CMP  R9, R19
	BGT  sleep
	MOVD $-1, R0             // RUSAGE_CHILDREN: all that were collected
	ADD  $8, RSP, R1
	MOVD $sys_getrusage, R8
	SVC
	MOVD $0, R9
	MOVD R9, 0(RSP)          // an empty record says so, with what they used behind it
	MOVD $0, R0
	MOVD RSP, R1
	MOVD $152, R2            // 8 and the size of struct rusage
	MOVD $sys_write, R8
	SVC

done:
	MOVD $0, R0
	MOVD $sys_exit_group, R8
	SVC
	B    done
	WORD $0x45525053 // "SPREAPER"
	WORD $0x52455041

// func reaperAddr() uintptr
TEXT ·reaperAddr(SB), NOSPLIT, $0-8
	MOVD $·reaper(SB), R0
	MOVD R0, ret+0(FP)
	RET
