// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowerObserve installs a filter with a listener and sends the listener out. From
// the one call to the other nobody could answer, so nothing that the filter asks
// about may come between them, and the sending itself is what it lets through.
func (l *lowering) lowerObserve(s *Step) error {
	if l.fds.observer == 0 {
		return &ScriptError{Step: l.step, Reason: "observe needs Files.Observer"}
	}
	if l.fork < 0 {
		return &ScriptError{Step: l.step, Reason: "observe before start-command: process 1 would wait for an answer to its own calls"}
	}
	prog, err := l.program(s)
	if err != nil {
		return err
	}
	// struct cmsghdr with one descriptor, in three slots that lie side by side, so
	// that the first call fills in what the second one sends.
	length, kind, listener := l.newSlot(), l.newSlot(), l.newSlot()
	l.words[length] = uint64(unix.CmsgLen(4))
	l.words[kind] = unix.SOL_SOCKET | unix.SCM_RIGHTS<<32
	l.call("seccomp", unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER),
		// A call that waits for its answer is interrupted by nothing but its own end:
		// otherwise every signal would make the supervisor judge it once more.
		num(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), prog).store(listener)
	iov := &unix.Iovec{Base: &l.bytes(8)[0]}
	iov.SetLen(1)
	msg := &unix.Msghdr{Iov: iov, Control: (*byte)(unsafe.Pointer(&l.words[length]))}
	msg.SetIovlen(1)
	msg.SetControllen(unix.CmsgSpace(4))
	l.keep = append(l.keep, iov)
	l.call("sendmsg", unix.SYS_SENDMSG, fd(l.fds.observer), pin(l, msg), flag(s.Value)).expect(1)
	return nil
}
