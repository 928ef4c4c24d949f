// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Handover is a pair of sockets by which a launch sends what it makes, for Files.Terminal and
// Files.Listen. A nil Handover is none.
type Handover struct {
	what   string
	ours   int
	theirs *os.File
}

// NewHandover opens the sockets. What names in errors what is passed. The caller closes it.
func NewHandover(what string) (*Handover, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: socket: %w", what, err)
	}
	return &Handover{what, pair[0], os.NewFile(uintptr(pair[1]), what)}, nil
}

// Theirs returns the end that a launch is given; nil for a nil Handover.
func (h *Handover) Theirs() *os.File {
	if h == nil {
		return nil
	}
	return h.theirs
}

// Take returns the next descriptor that a launch has sent, which does not block and is the
// caller's to close. It waits for nothing: a launch that cannot send has failed.
func (h *Handover) Take() (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(h.ours, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, fmt.Errorf("%s: receive: %w", h.what, err)
	}
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err == nil && len(msgs) == 1 {
		fds, err = unix.ParseUnixRights(&msgs[0])
	}
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(fmt.Errorf("%s: the launch sent none", h.what), err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil && !errors.Is(err, unix.EBADF) {
		// a place, from which nothing is read
		unix.Close(fds[0])
		return nil, fmt.Errorf("%s: %w", h.what, err)
	}
	return os.NewFile(uintptr(fds[0]), h.what), nil
}

// Close closes the sockets, whether or not the launch succeeded.
func (h *Handover) Close() {
	if h != nil {
		unix.Close(h.ours)
		h.theirs.Close()
	}
}
