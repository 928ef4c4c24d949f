// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
)

// Data is the input of a filter: struct seccomp_data of
// linux/seccomp.h on a little-endian machine. The zero value is call number 0
// of an unknown architecture.
type Data struct {
	// NR is the call's number in the convention that Arch names.
	NR int32
	// Arch is the AUDIT_ARCH_* value; see AuditArch.
	Arch uint32
	// IP is the address of the instruction that made the call.
	IP uint64
	// Args are the arguments as they lie in the registers, all 64 bits.
	Args [6]uint64
}

// word returns the 32 bits at an aligned offset below 64.
func (d *Data) word(offset uint32) uint32 {
	var v uint64
	switch i := offset / 8; i {
	case 0:
		v = uint64(d.Arch)<<32 | uint64(uint32(d.NR))
	case 1:
		v = d.IP
	default:
		v = d.Args[i-2]
	}
	if offset%8 == 4 {
		v >>= 32
	}
	return uint32(v)
}

// ErrProgram is wrapped by the errors about a program that the kernel would not accept or
// that cannot be run.
var ErrProgram = errors.New("invalid program")

// errOutside is wrapped by the error of [Run] for a program that leaves its own
// bounds; a program that [Verify] accepts cannot.
var errOutside = errors.New("it runs out of its bounds")

// machine is the state of a running program.
type machine struct {
	a, x uint32
	mem  [memWords]uint32
}

// Run executes prog on data by the rules of the kernel's interpreter and returns
// the answer in the encoding of [Action] and the number of instructions that
// ran. Arithmetic is on 32 bits and wraps; a division by a zero register ends
// the program with the answer 0; a shift by a register uses its low five bits.
// The error wraps [ErrProgram] for an operation that [Verify] rejects, or a jump
// out of the program.
func Run(prog []Instruction, data Data) (ret uint32, steps int, err error) {
	var m machine
	for pc := 0; pc >= 0 && pc < len(prog); pc++ {
		in := prog[pc]
		steps++
		if fault := in.fault(); fault != "" {
			return 0, steps, fmt.Errorf("%w: instruction %d: %s", ErrProgram, pc, fault)
		}
		switch in.Code & classMask {
		case classRet:
			if in.Code == classRet|retA {
				return m.a, steps, nil
			}
			return in.K, steps, nil
		case classJmp:
			pc += m.skip(in)
		case classAlu:
			if in.Code == classAlu|aluDiv|srcX && m.x == 0 {
				return 0, steps, nil
			}
			m.compute(in)
		default:
			m.move(in, &data)
		}
	}
	return 0, steps, fmt.Errorf("%w: %w", ErrProgram, errOutside)
}

// operand is the second operand of in.
func (m *machine) operand(in Instruction) uint32 {
	if in.Code&srcX != 0 {
		return m.x
	}
	return in.K
}

// skip returns how many instructions a jump leaves out.
func (m *machine) skip(in Instruction) int {
	v := m.operand(in)
	holds := false
	switch in.Code &^ (classMask | srcX) {
	case jmpJA:
		return int(in.K)
	case jmpEq:
		holds = m.a == v
	case jmpGt:
		holds = m.a > v
	case jmpGe:
		holds = m.a >= v
	case jmpSet:
		holds = m.a&v != 0
	}
	if holds {
		return int(in.JT)
	}
	return int(in.JF)
}

// compute runs an arithmetic operation whose divisor is not zero.
func (m *machine) compute(in Instruction) {
	v := m.operand(in)
	switch in.Code &^ (classMask | srcX) {
	case aluAdd:
		m.a += v
	case aluSub:
		m.a -= v
	case aluMul:
		m.a *= v
	case aluDiv:
		m.a /= v
	case aluOr:
		m.a |= v
	case aluAnd:
		m.a &= v
	case aluXor:
		m.a ^= v
	case aluLsh:
		m.a <<= v & 31
	case aluRsh:
		m.a >>= v & 31
	case aluNeg:
		m.a = -m.a
	}
}

// move runs a load, a store or a transfer between the registers.
func (m *machine) move(in Instruction, data *Data) {
	switch in.Code & classMask {
	case classLd:
		m.a = m.value(in, data)
	case classLdx:
		m.x = m.value(in, data)
	case classSt:
		m.mem[in.K] = m.a
	case classStx:
		m.mem[in.K] = m.x
	case classMisc:
		if in.Code&^classMask == miscTAX {
			m.x = m.a
		} else {
			m.a = m.x
		}
	}
}

// value returns what a load reads.
func (m *machine) value(in Instruction, data *Data) uint32 {
	switch in.Code &^ classMask {
	case modeAbs:
		return data.word(in.K)
	case modeMem:
		return m.mem[in.K]
	case modeLen:
		return dataSize
	}
	return in.K // modeImm
}
