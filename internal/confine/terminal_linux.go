// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A masterInbox is where the master end of a terminal arrives that a launch makes.
type masterInbox struct {
	ours   int
	theirs *os.File
}

// awaitMaster makes the socket that a launch sends the master end to.
func awaitMaster() (*masterInbox, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("terminal: socket: %w", err)
	}
	return &masterInbox{pair[0], os.NewFile(uintptr(pair[1]), "terminal")}, nil
}

// errNoMaster is not expected: a launch that could not send it has failed.
var errNoMaster = errors.New("terminal: the launch sent none")

// take returns what a launch that has succeeded has sent.
func (m *masterInbox) take() (*os.File, error) {
	var data [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	var oobn int
	for {
		var err error
		_, oobn, _, _, err = unix.Recvmsg(m.ours, data[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoMaster, err)
		}
		break
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) != 1 {
		return nil, errors.Join(errNoMaster, err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errNoMaster, err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// close ends the inbox, whatever became of the launch.
func (m *masterInbox) close() {
	unix.Close(m.ours)
	m.theirs.Close()
}
