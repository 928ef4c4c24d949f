// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "fmt"

// The parts of an operation code, from linux/bpf_common.h.
const (
	classMask = 0x07
	classLd   = 0x00
	classLdx  = 0x01
	classSt   = 0x02
	classStx  = 0x03
	classAlu  = 0x04
	classJmp  = 0x05
	classRet  = 0x06
	classMisc = 0x07

	modeAbs = 0x20 // with the word size, which is 0
	modeImm = 0x00
	modeMem = 0x60
	modeLen = 0x80

	srcX = 0x08 // the operand is the index register, not K
	retA = 0x10 // the answer is the accumulator, not K

	aluAdd = 0x00
	aluSub = 0x10
	aluMul = 0x20
	aluDiv = 0x30
	aluOr  = 0x40
	aluAnd = 0x50
	aluLsh = 0x60
	aluRsh = 0x70
	aluNeg = 0x80
	aluXor = 0xa0

	jmpJA  = 0x00
	jmpEq  = 0x10
	jmpGt  = 0x20
	jmpGe  = 0x30
	jmpSet = 0x40

	miscTAX = 0x00
	miscTXA = 0x80
)

const (
	// dataSize is sizeof(struct seccomp_data).
	dataSize = 64
	// memWords is BPF_MEMWORDS, the size of the scratch memory.
	memWords = 16
)

// Verify reports whether the kernel would accept prog as a seccomp filter, by
// the rules of bpf_check_classic, check_load_and_stores and
// seccomp_check_filter in the kernel's net/core/filter.c and kernel/seccomp.c:
// 1 to 4096 instructions, known operations only, aligned loads inside the call's
// data, jumps inside the program, no division by a constant zero, no shift by 32
// or more, no read of scratch memory that was not written on every way there,
// and a return at the end. The error wraps [ErrProgram] and names the
// instruction; nil means accepted.
func Verify(prog []Instruction) error {
	if len(prog) == 0 || len(prog) > maxProgram {
		return fmt.Errorf("%w: it has %d instructions, the kernel takes 1 to %d", ErrProgram,
			len(prog), maxProgram)
	}
	for pc, in := range prog {
		fault := in.fault()
		if fault == "" && in.Code&classMask == classJmp {
			fault = in.jumpFault(uint64(len(prog) - pc - 1))
		}
		if fault != "" {
			return fmt.Errorf("%w: instruction %d: %s", ErrProgram, pc, fault)
		}
	}
	if prog[len(prog)-1].Code&classMask != classRet {
		return fmt.Errorf("%w: the last instruction is no return", ErrProgram)
	}
	return verifyMemory(prog)
}

// fault says what is wrong with an instruction, "" for nothing; jumps are not
// followed.
func (in Instruction) fault() string {
	switch in.Code & classMask {
	case classLd, classLdx:
		return in.loadFault()
	case classSt, classStx:
		if in.Code&^classMask != 0 {
			break
		}
		return in.memoryFault()
	case classAlu:
		return in.aluFault()
	case classJmp:
		switch in.Code &^ (classMask | srcX) {
		case jmpEq, jmpGt, jmpGe, jmpSet:
			return ""
		case jmpJA:
			if in.Code&srcX == 0 {
				return ""
			}
		}
	case classRet:
		if rest := in.Code &^ classMask; rest == 0 || rest == retA {
			return ""
		}
	case classMisc:
		if rest := in.Code &^ classMask; rest == miscTAX || rest == miscTXA {
			return ""
		}
	}
	return in.unknown()
}

// unknown is the fault of an operation that seccomp does not take.
func (in Instruction) unknown() string { return fmt.Sprintf("operation %#x is not allowed", in.Code) }

// memoryFault checks an index into the scratch memory.
func (in Instruction) memoryFault() string {
	if in.K >= memWords {
		return fmt.Sprintf("scratch word %d does not exist", in.K)
	}
	return ""
}

// loadFault checks a load into the accumulator or the index register.
func (in Instruction) loadFault() string {
	abs := in.Code&classMask == classLd && in.Code&^classMask == modeAbs
	switch mode := in.Code &^ classMask; {
	case abs && (in.K >= dataSize || in.K%4 != 0):
		return fmt.Sprintf("offset %d is not an aligned word of the call's data", in.K)
	case abs, mode == modeImm, mode == modeLen:
		return ""
	case mode == modeMem:
		return in.memoryFault()
	}
	return in.unknown()
}

// aluFault checks an arithmetic operation.
func (in Instruction) aluFault() string {
	constant := in.Code&srcX == 0
	switch in.Code &^ (classMask | srcX) {
	case aluAdd, aluSub, aluMul, aluAnd, aluOr, aluXor:
		return ""
	case aluDiv:
		if constant && in.K == 0 {
			return "it divides by zero"
		}
		return ""
	case aluLsh, aluRsh:
		if constant && in.K >= 32 {
			return fmt.Sprintf("it shifts by %d", in.K)
		}
		return ""
	case aluNeg:
		if constant {
			return ""
		}
	}
	return in.unknown()
}

// jumpFault checks that a jump lands on one of the rest instructions after it.
func (in Instruction) jumpFault(rest uint64) string {
	far := uint64(max(in.JT, in.JF))
	if in.Code == classJmp|jmpJA {
		far = uint64(in.K)
	}
	if far >= rest {
		return "it jumps behind the end"
	}
	return ""
}

// verifyMemory checks that scratch memory is written before it is read. Jumps
// only lead forward, so one pass sees every way to an instruction before it.
func verifyMemory(prog []Instruction) error {
	written := make([]uint16, len(prog)) // words written on every way there
	for i := range written {
		written[i] = 0xffff
	}
	now := uint16(0)
	for pc, in := range prog {
		now &= written[pc]
		switch in.Code & classMask {
		case classSt, classStx:
			now |= 1 << in.K
		case classLd, classLdx:
			if in.Code&^classMask == modeMem && now&(1<<in.K) == 0 {
				return fmt.Errorf("%w: instruction %d: scratch word %d is read before it is written",
					ErrProgram, pc, in.K)
			}
		case classJmp:
			if in.Code == classJmp|jmpJA {
				written[pc+1+int(in.K)] &= now
			} else {
				written[pc+1+int(in.JT)] &= now
				written[pc+1+int(in.JF)] &= now
			}
			now = 0xffff
		case classRet:
			// The kernel keeps what holds here for the instruction behind,
			// which makes it stricter than needed; the same is done here.
		}
	}
	return nil
}
