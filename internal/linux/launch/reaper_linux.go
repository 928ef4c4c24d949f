// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The reaper is process 1 of a sandbox. Its code is an assembly function of
// this package (·reaper); the bytes of that function behind an ELF header are
// the whole program, so no binary lies in the tree and process 1 shares
// nothing with the caller. What it does:
//
//	become non-dumpable; read the command's process id from descriptor 1
//	loop:
//	    collect every child that has ended; write {id, status} of the command
//	        to descriptor 0, also when it was stopped; when no child is left, write
//	        an empty record with what all of them used (struct rusage) and exit
//	    wait for a signal (all are blocked, so none is lost):
//	        SIGCHLD                      collect again
//	        SIGUSR2                      (parent gone) as process 1 kill everything and
//	                                     collect again, else kill the command's group,
//	                                     then its own children until it has none (an
//	                                     orphan becomes one), and exit
//	        one queued with a value      kill(2) with the two words of the value:
//	                                     a process id and a signal
//
// A process in the sandbox can send those signals too. All it gains is a
// signal to processes that it may signal itself.
//
// The kernel would end the namespace with the reaper too, but frees the reaper's
// descriptors before it kills anything, and one of them tells other runs that this one
// is not over.

// reaperEnd marks the end of the reaper's code.
const reaperEnd = "SPREAPER"

// reaperLimit bounds the search for the mark.
const reaperLimit = 2048

func reaperAddr() uintptr

// reaperCode is the machine code of the reaper.
func reaperCode() ([]byte, error) {
	start := reaperAddr()
	text := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&start))), reaperLimit)
	n := bytes.Index(text, []byte(reaperEnd))
	if n <= 0 {
		return nil, errors.New("launch: the reaper's code has no end mark; this is a bug")
	}
	return bytes.Clone(text[:n]), nil
}

// reaperImage wraps code into the smallest ELF file the kernel loads: one
// header, one readable and executable segment.
func reaperImage(code []byte) []byte {
	const base, header = 0x400000, 64 + 56
	machine := uint16(62) // EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = 183 // EM_AARCH64
	}
	b := new(bytes.Buffer)
	le := binary.LittleEndian
	put := func(v any) { _ = binary.Write(b, le, v) } // a bytes.Buffer takes everything
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	put([]uint16{2 /* ET_EXEC */, machine})
	put(uint32(1))
	put([]uint64{base + header, 64, 0}) // entry, program headers, section headers
	put(uint32(0))
	put([]uint16{64, 56, 1, 0, 0, 0})
	size := uint64(header + len(code))
	put([]uint32{1 /* PT_LOAD */, 5 /* read, execute */})
	put([]uint64{0, base, base, size, size, 0x10000})
	b.Write(code)
	return b.Bytes()
}

// reaperFile returns a sealed file in memory with the reaper in it. It can be
// executed but not read, so that the process is not dumpable from its first
// instruction on.
func reaperFile() (int, error) {
	code, err := reaperCode()
	if err != nil {
		return -1, err
	}
	const mfdExec = 0x10 // MFD_EXEC, Linux 6.3
	n, err := unix.MemfdCreate("sallyport-reaper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if errors.Is(err, unix.EINVAL) {
		n, err = unix.MemfdCreate("sallyport-reaper", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, fmt.Errorf("launch: a file in memory for the reaper: %w (vm.memfd_noexec=2 forbids it)", err)
	}
	n, err = raise(n)
	if err != nil {
		return -1, err
	}
	image := reaperImage(code)
	if _, err = unix.Write(n, image); err == nil {
		err = unix.Fchmod(n, 0o111)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(n), unix.F_ADD_SEALS,
			unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(n)
		return -1, fmt.Errorf("launch: the reaper's file: %w", err)
	}
	return n, nil
}
