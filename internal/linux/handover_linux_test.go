// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestHandOver: the monitor process is stopped by its reports from when its child reads, which
// is after its first report is over, and before the child may go on.
func TestHandOver(t *testing.T) {
	ours, theirs, err := openStatus()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	m := &BubblewrapMonitor{proc: new(launch.Process), status: ours, done: make(chan struct{})}
	if _, err := theirs.WriteString("{ \"child-pid\": 1 }\n"); err != nil {
		t.Fatal(err)
	}
	go m.read()
	waiting := []unix.PollFd{{Fd: int32(theirs.Fd()), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	if n, err := testenv.Poll(waiting, time.Minute); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if armed(t, ours) {
		t.Error("reports stop the monitor process while its first one may not be over")
	}
	if _, err := io.Copy(io.Discard, theirs); err != nil {
		t.Fatal(err)
	}
	if !armed(t, ours) {
		t.Error("the child may go on, and no report stops the monitor process")
	}
	if _, err := theirs.WriteString("{ \"exit-code\": 3 }\n"); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	<-m.done
	if !m.known || m.exit != 3 || armed(t, ours) {
		t.Errorf("exit %d, known %v, armed %v", m.exit, m.known, armed(t, ours))
	}
}

// TestHandOverEnds: reading the status ends with a bubblewrap that ends before it builds anything.
func TestHandOverEnds(t *testing.T) {
	ours, theirs, err := openStatus()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	m := &BubblewrapMonitor{proc: new(launch.Process), status: ours, done: make(chan struct{})}
	go m.read()
	theirs.Close()
	<-m.done
	if m.known {
		t.Error("an exit code is known")
	}
}

func armed(t *testing.T, status *os.File) bool {
	t.Helper()
	var flags int
	err := control(status, func(fd int) (err error) {
		flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_ASYNC != 0
}
