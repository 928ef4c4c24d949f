// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"testing"
)

func ret(k uint32) Instruction { return Instruction{Code: classRet, K: k} }

func TestVerify(t *testing.T) {
	long := make([]Instruction, maxProgram+1)
	for i := range long {
		long[i] = ret(1)
	}
	for _, tc := range []struct {
		name string
		prog []Instruction
		ok   bool
	}{
		{"one return", []Instruction{ret(1)}, true},
		{"return of the accumulator", []Instruction{{Code: classRet | retA}}, true},
		{"longest", long[:maxProgram], true},
		{"nothing", nil, false},
		{"too long", long, false},
		{"no return at the end", []Instruction{{Code: opLoad}}, false},
		{"load of the last word", []Instruction{{Code: opLoad, K: 60}, ret(0)}, true},
		{"load behind the data", []Instruction{{Code: opLoad, K: 64}, ret(0)}, false},
		{"unaligned load", []Instruction{{Code: opLoad, K: 2}, ret(0)}, false},
		{"load of a half word", []Instruction{{Code: 0x28}, ret(0)}, false},
		{"indirect load", []Instruction{{Code: 0x40}, ret(0)}, false},
		{"absolute load of the index", []Instruction{{Code: 0x21}, ret(0)}, false},
		{"load of the length", []Instruction{{Code: classLd | modeLen}, {Code: classLdx | modeLen}, ret(0)}, true},
		{"jump to the end", []Instruction{{Code: opJump, K: 1}, ret(0), ret(1)}, true},
		{"jump behind the end", []Instruction{{Code: opJump, K: 1}, ret(0)}, false},
		{"endless jump", []Instruction{{Code: opJump, K: 0xffffffff}, ret(0)}, false},
		{"jump by the index", []Instruction{{Code: opJump | srcX}, ret(0)}, false},
		{"branch to the end", []Instruction{{Code: opJEq, JT: 1, JF: 0}, ret(0), ret(1)}, true},
		{"yes behind the end", []Instruction{{Code: opJEq, JT: 1}, ret(0)}, false},
		{"no behind the end", []Instruction{{Code: opJEq, JF: 255}, ret(0)}, false},
		{"unknown branch", []Instruction{{Code: 0x55}, ret(0)}, false},
		{"division by zero", []Instruction{{Code: classAlu | aluDiv}, ret(0)}, false},
		{"division by the index", []Instruction{{Code: classAlu | aluDiv | srcX}, ret(0)}, true},
		{"remainder", []Instruction{{Code: classAlu | 0x90, K: 2}, ret(0)}, false},
		{"shift by 31", []Instruction{{Code: classAlu | aluLsh, K: 31}, ret(0)}, true},
		{"shift by 32", []Instruction{{Code: classAlu | aluRsh, K: 32}, ret(0)}, false},
		{"negation", []Instruction{{Code: classAlu | aluNeg}, ret(0)}, true},
		{"negation of the index", []Instruction{{Code: classAlu | aluNeg | srcX}, ret(0)}, false},
		{"return of the index", []Instruction{{Code: classRet | srcX}}, false},
		{"transfers", []Instruction{{Code: classMisc | miscTAX}, {Code: classMisc | miscTXA}, ret(0)}, true},
		{"unknown transfer", []Instruction{{Code: classMisc | 0x40}, ret(0)}, false},
		{"memory", []Instruction{{Code: classSt, K: 15}, {Code: classLd | modeMem, K: 15}, ret(0)}, true},
		{"memory behind the end", []Instruction{{Code: classStx, K: 16}, ret(0)}, false},
		{"store with a mode", []Instruction{{Code: classSt | modeMem}, ret(0)}, false},
		{"memory read first", []Instruction{{Code: classLdx | modeMem, K: 3}, ret(0)}, false},
		{"memory written on one way", []Instruction{
			{Code: opJEq, JT: 1}, {Code: classSt, K: 1}, {Code: classLd | modeMem, K: 1}, ret(0),
		}, false},
		{"memory written on the other way", []Instruction{
			{Code: opJEq, JF: 1}, {Code: classSt, K: 1}, {Code: classLd | modeMem, K: 1}, ret(0),
		}, false},
		{"memory written behind a jump", []Instruction{
			{Code: opJump, K: 1}, {Code: classSt, K: 1}, {Code: classLd | modeMem, K: 1}, ret(0),
		}, false},
		{"memory written on both ways", []Instruction{
			{Code: opJEq, JT: 2}, {Code: classSt, K: 1}, {Code: opJump, K: 1}, {Code: classStx, K: 1}, {Code: classLd | modeMem, K: 1}, ret(0),
		}, true},
		{"high bits in the code", []Instruction{{Code: 0x100 | classRet}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Verify(tc.prog)
			if (err == nil) != tc.ok || (err != nil && !errors.Is(err, ErrProgram)) {
				t.Errorf("error %v, want accepted %v", err, tc.ok)
			}
		})
	}
}

func TestRun(t *testing.T) {
	data := Data{NR: -1, Arch: 0x11223344, IP: 0x0102030405060708,
		Args: [6]uint64{0xa1a2a3a4b1b2b3b4, 5: 0xc1c2c3c4d1d2d3d4}}
	imm := func(v uint32) Instruction { return Instruction{Code: classLd, K: v} }
	immX := func(v uint32) Instruction { return Instruction{Code: classLdx, K: v} }
	load := func(k uint32) Instruction { return Instruction{Code: opLoad, K: k} }
	alu := func(op uint16, k uint32) Instruction { return Instruction{Code: classAlu | op, K: k} }
	end := Instruction{Code: classRet | retA}
	for _, tc := range []struct {
		name  string
		prog  []Instruction
		want  uint32
		steps int
	}{
		{"number", []Instruction{load(0), end}, 0xffffffff, 2},
		{"architecture", []Instruction{load(4), end}, 0x11223344, 2},
		{"low half of the address", []Instruction{load(8), end}, 0x05060708, 2},
		{"high half of the address", []Instruction{load(12), end}, 0x01020304, 2},
		{"low half of argument 0", []Instruction{load(16), end}, 0xb1b2b3b4, 2},
		{"high half of argument 0", []Instruction{load(20), end}, 0xa1a2a3a4, 2},
		{"high half of argument 5", []Instruction{load(60), end}, 0xc1c2c3c4, 2},
		{"length", []Instruction{{Code: classLd | modeLen}, end}, 64, 2},
		{"sum wraps", []Instruction{imm(5), alu(aluAdd, 0xfffffffe), end}, 3, 3},
		{"difference", []Instruction{imm(5), alu(aluSub, 7), end}, 0xfffffffe, 3},
		{"product", []Instruction{imm(1 << 31), alu(aluMul, 3), end}, 1 << 31, 3},
		{"quotient", []Instruction{imm(0xffffffff), alu(aluDiv, 2), end}, 0x7fffffff, 3},
		{"bits", []Instruction{imm(0b1100), alu(aluAnd, 0b0110), alu(aluOr, 1), alu(aluXor, 0b1000), end}, 0b1101, 5},
		{"shifts", []Instruction{imm(3), alu(aluLsh, 31), alu(aluRsh, 30), end}, 2, 4},
		{"shift by the index", []Instruction{imm(1), immX(33), alu(aluLsh|srcX, 0), end}, 2, 4},
		{"negation", []Instruction{imm(1), alu(aluNeg, 0), end}, 0xffffffff, 3},
		{"division by a zero index", []Instruction{imm(9), alu(aluDiv|srcX, 0), end}, 0, 2},
		{"memory", []Instruction{
			imm(7), {Code: classSt, K: 2}, immX(8), {Code: classStx, K: 3}, imm(0),
			{Code: classLdx | modeMem, K: 2}, {Code: classLd | modeMem, K: 3}, alu(aluAdd|srcX, 0), end,
		}, 15, 9},
		{"transfers", []Instruction{imm(4), {Code: classMisc | miscTAX}, imm(0), {Code: classMisc | miscTXA}, end}, 4, 5},
		{"greater", []Instruction{imm(4), {Code: classJmp | jmpGt, K: 4, JT: 1}, ret(10), ret(11)}, 10, 3},
		{"greater or equal to the index", []Instruction{imm(4), immX(4), {Code: opJGe | srcX, JT: 1}, ret(10), ret(11)}, 11, 4},
		{"any bit", []Instruction{imm(4), {Code: opJSet, K: 6, JT: 1}, ret(10), ret(11)}, 11, 3},
		{"jump", []Instruction{{Code: opJump, K: 1}, ret(10), ret(11)}, 11, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := Verify(tc.prog); err != nil {
				t.Fatal(err)
			}
			got, steps, err := Run(tc.prog, data)
			if err != nil || got != tc.want || steps != tc.steps {
				t.Errorf("got %#x in %d steps (%v), want %#x in %d", got, steps, err, tc.want, tc.steps)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		prog []Instruction
	}{
		{"nothing", nil},
		{"no return", []Instruction{{Code: opLoad}}},
		{"jump behind the end", []Instruction{{Code: opJump, K: 0xffffffff}, ret(1)}},
		{"branch behind the end", []Instruction{{Code: opJEq, JT: 200, JF: 200}, ret(1)}},
		{"bad operation", []Instruction{{Code: 0xff}, ret(1)}},
		{"load behind the data", []Instruction{{Code: opLoad, K: 1 << 30}, ret(1)}},
		{"scratch behind the end", []Instruction{{Code: classSt, K: 1 << 30}, ret(1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if ret, _, err := Run(tc.prog, Data{}); !errors.Is(err, ErrProgram) || ret != 0 {
				t.Errorf("got %#x, error %v", ret, err)
			}
		})
	}
}

// FuzzRun checks that no program makes the interpreter or the checker panic,
// that what the checker accepts runs to an answer, and that no run is longer
// than its program.
func FuzzRun(f *testing.F) {
	f.Add([]byte{0x20, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0}, int32(3), uint64(9))
	f.Add([]byte{0x05, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, int32(0), uint64(0))
	f.Add([]byte{0x02, 0, 0, 0, 1, 0, 0, 0, 0x60, 0, 0, 0, 1, 0, 0, 0, 0x16, 0, 0, 0, 0, 0, 0, 0},
		int32(0), uint64(0))
	f.Fuzz(func(t *testing.T, raw []byte, nr int32, arg uint64) {
		var prog []Instruction
		for ; len(raw) >= 8; raw = raw[8:] {
			prog = append(prog, Instruction{
				Code: binary.LittleEndian.Uint16(raw), JT: raw[2], JF: raw[3],
				K: binary.LittleEndian.Uint32(raw[4:]),
			})
		}
		accepted := Verify(prog) == nil
		_, steps, err := Run(prog, Data{NR: nr, Args: [6]uint64{arg, arg >> 7}})
		if accepted && err != nil {
			t.Errorf("accepted, but: %v", err)
		}
		if steps > len(prog) {
			t.Errorf("%d steps in %d instructions", steps, len(prog))
		}
	})
}
