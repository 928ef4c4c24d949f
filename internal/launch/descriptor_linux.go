// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPassed is the highest number that a script may give a descriptor. The
// caller's own descriptors may have any number above 2, so these must be low
// and taken in order.
const maxPassed = 9

// lowerDescriptor lowers the steps that give a program more descriptors than
// the three standard ones.
func (l *lowering) lowerDescriptor(s *Step) error {
	if s.Value < 3 || s.Value > maxPassed {
		return &ScriptError{Step: l.step, Reason: "the new descriptor must be 3 to 9"}
	}
	if s.Op == OpPass {
		if l.fds.pass == 0 {
			return &ScriptError{Step: l.step, Reason: "pass-descriptor needs Files.Status"}
		}
		l.call("dup3", unix.SYS_DUP3, fd(l.fds.pass), flag(s.Value), zero())
		return nil
	}
	name, err := l.cstring("sallyport")
	if err != nil {
		return err
	}
	l.call("memfd_create", unix.SYS_MEMFD_CREATE, name, zero()).expect(uintptr(s.Value))
	if len(s.Data) == 0 {
		return nil
	}
	l.keep = append(l.keep, s.Data)
	size := uintptr(len(s.Data))
	l.call("write", unix.SYS_WRITE, flag(s.Value), arg{v: uintptr(unsafe.Pointer(&s.Data[0]))}, num(size)).expect(size)
	l.call("lseek", unix.SYS_LSEEK, flag(s.Value), zero(), num(unix.SEEK_SET))
	return nil
}
