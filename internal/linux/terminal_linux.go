// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A masterSocket is the pair of sockets by which a launch sends the master end of the terminal
// that it makes.
type masterSocket struct {
	ours   int
	theirs *os.File
}

func openMaster() (*masterSocket, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("terminal: socket: %w", err)
	}
	return &masterSocket{pair[0], os.NewFile(uintptr(pair[1]), "terminal")}, nil
}

// take returns the master end that a launch has sent. A launch that cannot send it fails.
func (t *masterSocket) take() (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(t.ours, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, fmt.Errorf("terminal: receive: %w", err)
	}
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err == nil && len(msgs) == 1 {
		fds, err = unix.ParseUnixRights(&msgs[0])
	}
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("terminal: the launch sent none"), err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// close closes the sockets, whether or not the launch succeeded.
func (t *masterSocket) close() {
	unix.Close(t.ours)
	t.theirs.Close()
}
