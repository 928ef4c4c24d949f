// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"
#include "go_asm.h"

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
	MOVQ context_nr(R12), AX
	MOVQ context_args(R12), DI
	MOVQ (context_args+8)(R12), SI
	MOVQ (context_args+16)(R12), DX
	MOVQ (context_args+24)(R12), R10
	MOVQ (context_args+32)(R12), R8
	SYSCALL
	CMPQ AX, $0
	JEQ  child
	MOVQ AX, ret+8(FP)
	RET

child:
	MOVQ context_script(R12), R13

loop:
	MOVQ  call_flags(R13), R15
	MOVQ  call_args(R13), DI
	TESTQ $1, R15
	JEQ   arg1
	MOVQ  (DI), DI

arg1:
	MOVQ  (call_args+8)(R13), SI
	TESTQ $2, R15
	JEQ   arg2
	MOVQ  (SI), SI

arg2:
	MOVQ  (call_args+16)(R13), DX
	TESTQ $4, R15
	JEQ   arg3
	MOVQ  (DX), DX

arg3:
	MOVQ  (call_args+24)(R13), R10
	TESTQ $8, R15
	JEQ   arg4
	MOVQ  (R10), R10

arg4:
	MOVQ  (call_args+32)(R13), R8
	MOVQ  (call_args+40)(R13), R9
	TESTQ $const_flagCheck, R15
	JNE   check
	TESTQ $const_flagJump, R15
	JNE   jump
	MOVQ  call_nr(R13), AX
	SYSCALL
	TESTQ $const_flagAwait, R15
	JNE   await
	CMPQ  AX, $-4095
	JCC   failed
	TESTQ $const_flagFork, R15
	JNE   forked

	TESTQ $const_flagStore, R15
	JEQ   want
	MOVQ  call_out(R13), CX
	MOVQ  AX, (CX)

want:
	TESTQ $const_flagWant, R15
	JEQ   next
	CMPQ  AX, call_want(R13)
	JNE   stale

next:
	ADDQ $call__size, R13
	JMP  loop

	// The bits a2 of the memory word at a0 must equal a1.
check:
	ANDQ 0(DI), DX
	CMPQ SI, DX
	JEQ  next

stale:
	MOVQ $errno_stale, AX
	JMP  report

failed:
	NEGQ  AX
	TESTQ $const_flagIgnore, R15
	JNE   next
	TESTQ $const_flagIgnoreOne, R15
	JEQ   report
	CMPQ  AX, call_want(R13)
	JEQ   next

report:
	MOVQ AX, context_errno(R12)
	MOVQ R13, context_failed(R12)

leave:
	MOVQ $1, DI
	MOVQ $sys_exit_group, AX
	SYSCALL
	JMP  leave

	// The new task goes on in the list that call_want points to, beside the one that
	// made it, which stops when something has failed by now.
forked:
	CMPQ AX, $0
	JEQ  second
	MOVQ call_out(R13), CX
	MOVQ AX, (CX)
	CMPQ context_errno(R12), $0
	JNE  leave
	JMP  next

second:
	MOVQ call_want(R13), R13
	JMP  loop

await:
	MOVQ call_args(R13), DI
	MOVL (DI), AX
	CMPL AX, $0
	JEQ  loop
	JMP  next

jump:
	MOVQ context_then(R12), R13
	CMPQ R13, $0
	JEQ  leave
	JMP  loop

#define sys_read       0
#define sys_write      1
#define sys_close      3
#define sys_getpid     39
#define sys_wait4      61
#define sys_kill       62
#define sys_getrusage  98
#define sys_sigwait    128
#define sys_prctl      157
#define sys_openat     257

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
	MOVQ $3, DX              // WNOHANG and WUNTRACED
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
	CMPQ AX, $SIGUSR2        // however it was sent: a second one waiting would be dropped
	JEQ  lone
	CMPQ AX, $0
	JLT  sleep
	CMPL 72(SP), $-1         // si_code SI_QUEUE: a request of the supervisor
	JNE  sleep
	MOVLQSX 88(SP), DI       // si_value: whom, and with what
	MOVLQSX 92(SP), SI
	CMPQ DI, $0              // its own group is never meant
	JEQ  sleep
	MOVQ $sys_kill, AX
	SYSCALL
	JMP  sleep

lone:
	MOVQ $sys_getpid, AX     // the supervisor is gone
	SYSCALL
	CMPQ AX, $1
	JEQ  all
	MOVQ R12, DI
	NEGQ DI
	MOVQ $SIGKILL, SI
	MOVQ $sys_kill, AX
	SYSCALL

orphans:                     // those that left the group: each becomes a child of this subreaper
	MOVQ $0x68742f636f72702f, AX // "/proc/thread-self/children"
	MOVQ AX, 0(SP)
	MOVQ $0x6c65732d64616572, AX
	MOVQ AX, 8(SP)
	MOVQ $0x72646c6968632f66, AX
	MOVQ AX, 16(SP)
	MOVQ $0x6e65, AX
	MOVQ AX, 24(SP)
	MOVQ $-100, DI           // AT_FDCWD
	MOVQ SP, SI
	XORQ DX, DX
	XORQ R10, R10
	MOVQ $sys_openat, AX
	SYSCALL
	CMPQ AX, $0
	JLT  done
	MOVQ AX, BX
	MOVQ BX, DI
	LEAQ 64(SP), SI
	MOVQ $192, DX
	XORQ AX, AX              // read: numbers, each with a space behind it
	SYSCALL
	MOVQ AX, R13
	MOVQ BX, DI
	MOVQ $sys_close, AX
	SYSCALL
	LEAQ 64(SP), BX
	ADDQ BX, R13             // the end of what was read
	XORQ DI, DI

digit:
	CMPQ BX, R13
	JGE  gather              // a number that was cut off comes again
	MOVBQZX 0(BX), AX
	INCQ BX
	CMPQ AX, $0x20
	JEQ  number
	IMUL3Q $10, DI, DI
	LEAQ -48(DI)(AX*1), DI
	JMP  digit

number:
	CMPQ DI, $0              // its own group is never meant
	JEQ  digit
	MOVQ $SIGKILL, SI
	MOVQ $sys_kill, AX
	SYSCALL
	XORQ DI, DI
	JMP  digit

gather:
	MOVQ $-1, DI             // wait for one; what it leaves behind is found by the next round
	XORQ SI, SI
	XORQ DX, DX
	XORQ R10, R10
	MOVQ $sys_wait4, AX
	SYSCALL
	CMPQ AX, $0
	JGT  orphans
	JMP  done

all:
	MOVQ $-1, DI             // everything in the namespace, which is collected as ever
	MOVQ $SIGKILL, SI
	MOVQ $sys_kill, AX
	SYSCALL
	JMP  reap

alone:
	CMPQ R12, $0x7fffffff    // no command has such a process id: this one holds a namespace
	JGT  sleep
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
