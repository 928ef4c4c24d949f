// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// address returns a socket address of a family with what follows it.
func address(family uint16, rest ...byte) *tasks.Address {
	a := &tasks.Address{Len: 2 + len(rest)}
	binary.NativeEndian.PutUint16(a.Raw[:], family)
	copy(a.Raw[2:], rest)
	return a
}

// endedRequest is selfRequest for a call that waits no longer.
func endedRequest(t *testing.T) *request {
	t.Helper()
	r := selfRequest(t)
	r.l = new(notify.Listener) // of no filter
	return r
}

// TestConnectNetlink: a netlink socket connects to the kernel, to no other program and no group: for these
// the kernel would look at the rights of this process.
func TestConnectNetlink(t *testing.T) {
	for _, c := range []struct {
		name string
		addr *tasks.Address
		want syscall.Errno
	}{
		{"the kernel", address(unix.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0},
		{"no address", address(unix.AF_UNSPEC), 0},
		{"a program", address(unix.AF_NETLINK, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0), unix.EPERM},
		{"the first group", address(unix.AF_NETLINK, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0), unix.EPERM},
		{"the last group", address(unix.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80), unix.EPERM},
		{"too short", address(unix.AF_NETLINK, 0, 0, 0, 0, 0, 0), unix.EPERM},
	} {
		if got := (&connecting{addr: c.addr}).netlink(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestConnectInherited: a socket of the host's network, which the command was handed, connects to nothing.
func TestConnectInherited(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r := endedRequest(t)
	r.cfg.PrivateNetwork = true
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(sock)
	loopback := address(unix.AF_INET, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	if errno := (&connecting{request: r, sock: sock, addr: loopback}).internet(); errno != unix.EACCES {
		t.Errorf("%v", errno)
	}
}

// TestConnectEnded: an address that was read when the task had ended, and another one may have got its
// number, is judged for no one.
func TestConnectEnded(t *testing.T) {
	r := endedRequest(t)
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(sock)
	if errno := (&connecting{request: r, sock: sock,
		addr: address(unix.AF_UNIX, '/', 'x')}).check(); errno != unix.EINTR {
		t.Errorf("%v", errno)
	}
}

// TestConnectUnseen: the file of a socket on a mount that the command does not have is not reached, also
// where a descriptor leads there.
func TestConnectUnseen(t *testing.T) {
	testenv.NeedRoot(t) // only root can make a mount outside of a namespace
	dir := short(t)
	l, err := net.Listen("unix", dir+"/s")
	must(t, err)
	defer l.Close()
	mount, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	must(t, err)
	defer unix.Close(mount)
	r := endedRequest(t)
	for at, want := range map[string]syscall.Errno{
		dir + "/s":                               unix.EINTR, // no task waits
		fmt.Sprintf("/proc/self/fd/%d/s", mount): unix.EACCES,
	} {
		if file, errno := (&connecting{request: r}).target(at); errno != want {
			t.Errorf("%s: %d, %v, want %v", at, file, errno, want)
		}
	}
}

// TestPlantedLinks: where this process makes the call, it follows no link that another user has put into a
// shared directory.
func TestPlantedLinks(t *testing.T) {
	testenv.NeedRoot(t)
	dir := short(t)
	shared := filepath.Join(dir, "shared")
	must(t, os.Mkdir(shared, 0o700))
	must(t, os.Chmod(shared, 0o777|os.ModeSticky))
	must(t, os.WriteFile(dir+"/to", nil, 0o600))
	const other = 65534
	for name, owner := range map[string]int{"ours": 0, "theirs": other} {
		must(t, os.Symlink(dir+"/to", shared+"/"+name))
		must(t, os.Lchown(shared+"/"+name, owner, owner))
	}
	for _, c := range []struct {
		name string
		kind kind
		want syscall.Errno
	}{
		{"ours", kindConnect, 0},
		{"theirs", kindConnect, unix.EACCES},
		{"theirs", kindOpen, 0}, // the kernel makes the call, and sees the link
	} {
		r := selfRequest(t)
		r.kind = c.kind
		p, failed := r.find(atCwd, []byte(shared+"/"+c.name), true)
		var errno syscall.Errno
		if failed != nil {
			errno = failed.errno
		} else {
			p.close()
		}
		if errno != c.want {
			t.Errorf("%s, call %v: %v, want %v", c.name, c.kind, errno, c.want)
		}
	}
}

// TestManyOwnLinks: of files with further names that the command has made a number is remembered; one beyond
// it counts as having names elsewhere.
func TestManyOwnLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, known := range []int{maxOwn - 1, maxOwn} {
		r := selfRequest(t)
		r.own = make(map[fileID]bool, maxOwn)
		for i := range known {
			r.own[fileID{ino: uint64(i), born: -1}] = true
		}
		file := t.TempDir() + "/file"
		must(t, os.WriteFile(file, nil, 0o600))
		p, failed := r.find(atCwd, []byte(file), true)
		if failed != nil {
			t.Fatal(failed.errno)
		}
		r.rememberLink(&p)
		p.close()
		must(t, os.Link(file, file+"2"))
		fd, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
		must(t, err)
		var f facts
		if errno := r.stat(fd, "", &f); errno != 0 {
			t.Fatal(errno)
		}
		if got := r.linkedElsewhere(fd, &f); got != (known == maxOwn) {
			t.Errorf("%d are known: it has names elsewhere: %v", known, got)
		}
		unix.Close(fd)
	}
}
