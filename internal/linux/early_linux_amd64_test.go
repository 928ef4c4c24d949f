// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestFirstInstruction reaches for process 1 from the first instruction of the
// command on. While the program is loaded, process 1 is still the task that
// shares the caller's memory, so this is the earliest that anybody can try.
func TestFirstInstruction(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	name := earlyAttacker(t, a, "early", "/proc/1/mem", 1)
	for range testenv.Rounds(25, 100) {
		res := mustRun(t, a, &job{args: []string{name}, allow: []string{"ptrace"}})
		if res.code != earlyDenied {
			t.Fatalf("reached process 1: exit %d, signal %d", res.code, res.signal)
		}
	}
}

// The exit codes of the early attacker.
const (
	earlyDenied = 40
	earlyBreach = 41
)

// earlyAttacker writes a program of two hundred bytes that does nothing but try
// to open a file for reading and writing, and to trace a process, two thousand
// times.
func earlyAttacker(t *testing.T, a *arena, name, file string, pid int) string {
	t.Helper()
	code := []byte{
		0x41, 0xbc, 0xd0, 0x07, 0x00, 0x00, // mov r12d, 2000
		// again:
		0xb8, 0x02, 0x00, 0x00, 0x00, // mov eax, 2 (open)
		0x48, 0x8d, 0x3d, 0x46, 0x00, 0x00, 0x00, // lea rdi, [rip+path]
		0xbe, 0x02, 0x00, 0x00, 0x00, // mov esi, 2 (O_RDWR)
		0x31, 0xd2, // xor edx, edx
		0x0f, 0x05, // syscall
		0x48, 0x85, 0xc0, // test rax, rax
		0x79, 0x2a, // jns breach
		0xb8, 0x65, 0x00, 0x00, 0x00, // mov eax, 101 (ptrace)
		0xbf, 0x06, 0x42, 0x00, 0x00, // mov edi, PTRACE_SEIZE
		0xbe, 0x01, 0x00, 0x00, 0x00, // mov esi, 1
		0x31, 0xd2, // xor edx, edx
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0x0f, 0x05, // syscall
		0x48, 0x85, 0xc0, // test rax, rax
		0x79, 0x0f, // jns breach
		0x41, 0xff, 0xcc, // dec r12d
		0x75, 0xc7, // jnz again
		0xbf, earlyDenied, 0x00, 0x00, 0x00, // mov edi, 40
		0xeb, 0x05, // jmp exit
		0x90, 0x90, 0x90, // padding
	}
	// The jumps above are filled in here, so that they cannot be wrong.
	breachAt := len(code)
	code = append(code, 0xbf, earlyBreach, 0x00, 0x00, 0x00) // mov edi, 41
	exitAt := len(code)
	code = append(code, 0xb8, 0xe7, 0x00, 0x00, 0x00, 0x0f, 0x05) // mov eax, 231 (exit_group); syscall
	pathAt := len(code)
	code = append(append(code, file...), 0)
	binary.LittleEndian.PutUint32(code[43:], uint32(pid))
	short := func(at, to int) { code[at] = byte(int8(to - at - 1)) }
	binary.LittleEndian.PutUint32(code[14:], uint32(pathAt-18))
	short(31, breachAt)
	short(58, breachAt)
	short(63, 6)
	short(70, exitAt)

	const base, header = 0x400000, 64 + 56
	le := binary.LittleEndian
	image := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	image = le.AppendUint16(image, 2)             // executable
	image = le.AppendUint16(image, 62)            // x86-64
	image = le.AppendUint32(image, 1)             // version
	image = le.AppendUint64(image, base+header)   // entry
	image = le.AppendUint64(image, 64)            // program headers
	image = append(image, make([]byte, 8+4)...)   // no sections, no flags
	image = append(image, 64, 0, 56, 0, 1, 0)     // sizes
	image = append(image, make([]byte, 6)...)     // no sections
	image = append(image, 1, 0, 0, 0, 5, 0, 0, 0) // load, read and execute
	for _, v := range []uint64{0, base, base, uint64(header + len(code)),
		uint64(header + len(code)), 0x1000} {
		image = le.AppendUint64(image, v)
	}
	name = a.base + "/" + name
	must(t, testenv.WriteProgram(name, append(image, code...)))
	return name
}

// TestEarlyAttackerCanReach is the wall of TestFirstInstruction: where nothing
// stands in the way, the program says so.
func TestEarlyAttackerCanReach(t *testing.T) {
	testenv.NeedRoot(t) // others may be kept from tracing by the system's settings
	a := newArena(t)
	full := sandbox.FullAccess()
	pid, err := strconv.Atoi(victim(t))
	must(t, err)
	for name, program := range map[string]string{
		"open":  earlyAttacker(t, a, "open", "/proc/self/mem", 1),
		"trace": earlyAttacker(t, a, "trace", "/nonexistent", pid),
	} {
		t.Run(name, func(t *testing.T) {
			if res := mustRun(t, a, &job{policy: &full, args: []string{program}}); res.code != earlyBreach {
				t.Errorf("%+v", res)
			}
		})
	}
}
