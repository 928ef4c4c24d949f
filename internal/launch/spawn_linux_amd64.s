// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Layout of struct context (context_linux.go).
#define ctx_nr     0
#define ctx_arg0   8
#define ctx_arg1   16
#define ctx_arg2   24
#define ctx_arg3   32
#define ctx_arg4   40
#define ctx_script 48
#define ctx_slots  56
#define ctx_errno  64
#define ctx_failed 72
#define ctx_then   80

// Layout of struct call (context_linux.go).
#define call_nr    0
#define call_a0    8
#define call_a1    16
#define call_a2    24
#define call_a3    32
#define call_a4    40
#define call_a5    48
#define call_flags 56
#define call_out   64
#define call_want  72
#define call_size  80

// Bits of call.flags.
#define flag_store      0x100
#define flag_ignore     0x200
#define flag_ignore_one 0x400
#define flag_want       0x800
#define flag_check      0x1000
#define flag_fork       0x2000
#define flag_await      0x4000
#define flag_jump       0x8000

#define sys_exit_group 231
#define errno_stale    116

// func spawn(c *context) int64
//
// The parent returns with the result of the clone call. The child shares the
// parent's memory and its stack pointer, so it must neither return, push nor
// call: it walks the list of calls with registers only (R12 context, R13
// current call, R15 flags) until an execve succeeds or a call fails.
TEXT ·spawn(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ c+0(FP), R12
	MOVQ ctx_nr(R12), AX
	MOVQ ctx_arg0(R12), DI
	MOVQ ctx_arg1(R12), SI
	MOVQ ctx_arg2(R12), DX
	MOVQ ctx_arg3(R12), R10
	MOVQ ctx_arg4(R12), R8
	SYSCALL
	CMPQ AX, $0
	JEQ  child
	MOVQ AX, ret+8(FP)
	RET

child:
	MOVQ ctx_script(R12), R13

loop:
	MOVQ  call_flags(R13), R15
	MOVQ  ctx_slots(R12), BX
	MOVQ  call_a0(R13), DI
	TESTQ $1, R15
	JEQ   arg1
	MOVQ  (BX)(DI*8), DI

arg1:
	MOVQ  call_a1(R13), SI
	TESTQ $2, R15
	JEQ   arg2
	MOVQ  (BX)(SI*8), SI

arg2:
	MOVQ  call_a2(R13), DX
	TESTQ $4, R15
	JEQ   arg3
	MOVQ  (BX)(DX*8), DX

arg3:
	MOVQ  call_a3(R13), R10
	TESTQ $8, R15
	JEQ   arg4
	MOVQ  (BX)(R10*8), R10

arg4:
	MOVQ  call_a4(R13), R8
	MOVQ  call_a5(R13), R9
	TESTQ $flag_check, R15
	JNE   check
	TESTQ $flag_jump, R15
	JNE   jump
	MOVQ  call_nr(R13), AX
	SYSCALL
	TESTQ $flag_await, R15
	JNE   await
	CMPQ  AX, $-4095
	JCC   failed
	TESTQ $flag_fork, R15
	JNE   forked

	TESTQ $flag_store, R15
	JEQ   want
	MOVQ  call_out(R13), CX
	MOVQ  AX, (BX)(CX*8)

want:
	TESTQ $flag_want, R15
	JEQ   next
	CMPQ  AX, call_want(R13)
	JNE   stale

next:
	ADDQ $call_size, R13
	JMP  loop

	// The memory word at a0, masked by a1, must equal a2.
check:
	MOVQ (DI), AX
	ANDQ SI, AX
	CMPQ AX, DX
	JEQ  next

stale:
	MOVQ $errno_stale, AX
	JMP  report

failed:
	NEGQ  AX
	TESTQ $flag_ignore, R15
	JNE   next
	TESTQ $flag_ignore_one, R15
	JEQ   report
	CMPQ  AX, call_want(R13)
	JEQ   next

report:
	MOVQ AX, ctx_errno(R12)
	MOVQ R13, ctx_failed(R12)

leave:
	MOVQ $1, DI
	MOVQ $sys_exit_group, AX
	SYSCALL
	JMP  leave

	// The command's own task goes on in the list that call_want points to;
	// the first one waited for its execve (vfork) and stops when that failed.
forked:
	CMPQ AX, $0
	JEQ  second
	MOVQ call_out(R13), CX
	MOVQ AX, (BX)(CX*8)
	CMPQ ctx_errno(R12), $0
	JNE  leave
	JMP  next

second:
	MOVQ call_want(R13), R13
	JMP  loop

await:
	MOVQ call_a0(R13), DI
	MOVL (DI), AX
	CMPL AX, $0
	JEQ  loop
	JMP  next

jump:
	MOVQ ctx_then(R12), R13
	CMPQ R13, $0
	JEQ  leave
	JMP  loop

#define sys_read       0
#define sys_write      1
#define sys_close      3
#define sys_wait4      61
#define sys_kill       62
#define sys_getrusage  98
#define sys_sigwait    128
#define sys_prctl      157

#define SIGKILL 9
#define SIGUSR2 12
#define SIGCHLD 17

// The reaper: the whole program of process 1 (reaper_linux.go says what it
// does and wraps these bytes into an ELF image). It is position independent
// and uses the stack that the kernel made. R12 is the command's process id.
TEXT ·reaper(SB), NOSPLIT|NOFRAME, $0-0
	SUBQ $256, SP
	MOVQ $4, DI              // PR_SET_DUMPABLE
	XORQ SI, SI
	MOVQ $sys_prctl, AX
	SYSCALL
	MOVQ $1, DI              // descriptor 1: the command's process id
	MOVQ SP, SI
	MOVQ $8, DX
	XORQ AX, AX              // read
	SYSCALL
	MOVQ 0(SP), R12
	MOVQ $1, DI
	MOVQ $sys_close, AX
	SYSCALL

reap:
	MOVQ $-1, DI
	LEAQ 4(SP), SI           // status beside the id: one record
	MOVQ $1, DX              // WNOHANG
	XORQ R10, R10
	MOVQ $sys_wait4, AX
	SYSCALL
	CMPQ AX, $0
	JEQ  sleep
	JLT  alone               // ECHILD: nobody is left
	CMPQ AX, R12
	JNE  reap
	MOVL AX, 0(SP)
	XORQ DI, DI              // descriptor 0: the status pipe
	MOVQ SP, SI
	MOVQ $8, DX
	MOVQ $sys_write, AX
	SYSCALL
	JMP  reap

sleep:
	MOVQ $-1, 8(SP)          // every signal; all are blocked
	LEAQ 8(SP), DI
	LEAQ 64(SP), SI
	XORQ DX, DX
	MOVQ $8, R10
	MOVQ $sys_sigwait, AX
	SYSCALL
	CMPQ AX, $SIGCHLD
	JEQ  reap
	CMPQ AX, $0
	JLT  sleep
	MOVQ AX, R13
	CMPL 72(SP), $-1         // si_code SI_QUEUE: a request of the supervisor
	JNE  lone
	MOVLQSX 88(SP), DI       // si_value: whom, and with what
	MOVLQSX 92(SP), SI
	CMPQ DI, $0              // its own group is never meant
	JEQ  sleep
	MOVQ $sys_kill, AX
	SYSCALL
	JMP  sleep

lone:
	CMPQ R13, $SIGUSR2       // the supervisor is gone (full access only)
	JNE  sleep
	MOVQ R12, DI
	NEGQ DI
	MOVQ $SIGKILL, SI
	MOVQ $sys_kill, AX
	SYSCALL

	JMP  done

alone:
	MOVQ $-1, DI             // RUSAGE_CHILDREN: all that were collected
	LEAQ 8(SP), SI
	MOVQ $sys_getrusage, AX
	SYSCALL
	MOVQ $0, 0(SP)           // an empty record says so, with what they used behind it
	XORQ DI, DI
	MOVQ SP, SI
	MOVQ $152, DX            // 8 and the size of struct rusage
	MOVQ $sys_write, AX
	SYSCALL

done:
	XORQ DI, DI
	MOVQ $sys_exit_group, AX
	SYSCALL
	JMP  done
	BYTE $0x53; BYTE $0x50; BYTE $0x52; BYTE $0x45 // "SPREAPER"
	BYTE $0x41; BYTE $0x50; BYTE $0x45; BYTE $0x52

// func reaperAddr() uintptr
TEXT ·reaperAddr(SB), NOSPLIT, $0-8
	LEAQ ·reaper(SB), AX
	MOVQ AX, ret+0(FP)
	RET
