// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/dirs"
)

// firstPassed is the first descriptor that a service manager passes, see sd_listen_fds(3).
const firstPassed = 3

// activated returns the socket that the service manager has opened for this process. Clients of a
// unix socket are judged as those of one that is made here.
func activated() (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("no socket was passed to this process: fd:// is for a service that systemd starts with a socket unit")
	}
	if n := os.Getenv("LISTEN_FDS"); n != "1" {
		return nil, fmt.Errorf("LISTEN_FDS is %q; have exactly one ListenStream= in the socket unit", n)
	}
	f := os.NewFile(firstPassed, "LISTEN_FDS")
	defer f.Close()
	if listens, err := unix.GetsockoptInt(firstPassed, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil ||
		listens != 1 {
		return nil, errors.New("the passed descriptor does not accept connections; set ListenStream= and Accept=no in the socket unit")
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use the passed socket: %w", err)
	}
	switch l := l.(type) {
	case *net.TCPListener:
		return l, nil
	case *net.UnixListener:
		if filepath.IsAbs(l.Addr().String()) {
			return dirs.OwnListener(l), nil
		}
	}
	return nil, errors.Join(fmt.Errorf("the passed socket %s is neither a TCP socket nor a unix socket with a path; change ListenStream= of the socket unit", l.Addr()), l.Close())
}
