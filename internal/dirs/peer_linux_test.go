// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestGonePeer: a process that connects, leaves its connection to others and ends is confined,
// whatever has its number now.
func TestGonePeer(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	who, err := PeerOf(a)
	if err != nil {
		t.Fatal(err)
	}
	if !who.Own() || who.pid != os.Getpid() || who.Confined() {
		t.Errorf("this process: %+v", who)
	}
	who.Close()
	child := exec.Command("true")
	handle := -1
	child.SysProcAttr = &syscall.SysProcAttr{PidFD: &handle}
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	gone := Peer{uid: os.Geteuid(), pid: os.Getpid(), handle: handle} // the number of a living process
	defer gone.Close()
	if !gone.Confined() {
		t.Error("a process that has ended may answer")
	}
	if left := (Peer{uid: os.Geteuid(), pid: child.Process.Pid, handle: -1}); !left.Confined() {
		t.Error("a process that cannot be looked at may answer")
	}
}

// TestCloseOther: the end of a listener removes its name, and no other one in a directory that has got the
// number of its own.
func TestCloseOther(t *testing.T) {
	dir := places(t)
	l, err := ListenSocket(dir + "/dead")
	if err != nil {
		t.Fatal(err)
	}
	l.(*ownSocket).remove() //nolint:errcheck,forcetypeassert // of this package
	other, err := os.Open(t.TempDir())
	if err == nil {
		defer other.Close()
		err = os.WriteFile(filepath.Join(other.Name(), "dead"), nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(other.Name(), "dead")); err != nil {
		t.Error(err)
	}
}
