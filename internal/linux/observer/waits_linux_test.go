// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// lingering returns the last descriptor of a socket whose close waits for an hour: its peer
// does not read what was sent.
func lingering(t *testing.T) int {
	t.Helper()
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(server) })
	must(t, unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(server, 1))
	at, err := unix.Getsockname(server)
	must(t, err)
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.Connect(sock, at))
	for err = nil; err == nil; {
		err = unix.Sendto(sock, make([]byte, 1<<16), unix.MSG_DONTWAIT, nil)
	}
	must(t, unix.SetsockoptLinger(sock, unix.SOL_SOCKET, unix.SO_LINGER,
		&unix.Linger{Onoff: 1, Linger: 3600}))
	return sock
}

// TestLingeringSocket: a socket that the command has closed, so that the duplicate is the
// last one, is closed without the wait that the command has asked for.
func TestLingeringSocket(t *testing.T) {
	r := selfRequest(t)
	r.l = new(notify.Listener) // no task waits there
	sock := lingering(t)
	own, errno := r.duplicate(int32(sock))
	if errno != 0 {
		t.Fatal(errno)
	}
	unix.Close(sock)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		(&connecting{request: r, sock: own, addr: &tasks.Address{}}).finish(0)
	}()
	select {
	case <-closed:
	case <-time.After(bound):
		t.Fatal("the close still waits")
	}
}

// bound is how long something may take on a busy machine that must not take for ever.
const bound = 30 * time.Second

// stuckJudge does not rule on its path before it is over.
type stuckJudge struct {
	path        string
	asked, over chan struct{}
}

func (j *stuckJudge) Rule(a protect.Access) protect.Ruling {
	if a.Path == j.path {
		close(j.asked)
		<-j.over
	}
	return protect.Ruling{Allow: true}
}
func (*stuckJudge) EveryName(string) bool          { return true }
func (*stuckJudge) EveryDirectory(string) bool     { return true }
func (*stuckJudge) Hidden(sandbox.Op, string) bool { return false }

// TestCloseBounded: the end of a supervision does not wait for a call that is still being
// judged, whatever the reason.
func TestCloseBounded(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := t.TempDir()
	j := &stuckJudge{path: dir + "/d", asked: make(chan struct{}), over: make(chan struct{})}
	o := start(t, Config{Writable: []string{"/"}, Judge: j}, nil, "/bin/mkdir", dir+"/d")
	<-j.asked
	must(t, o.p.Kill())
	o.wait(t)
	closed := make(chan struct{})
	go func() { defer close(closed); o.Close() }()
	select {
	case <-closed:
	case <-time.After(bound):
		t.Error("Close still waits")
	}
	close(j.over)
	<-o.done
	<-closed
}

// connectForever connects to a listener whose queue is full, takes away the time limit that
// the supervisor sets, and says so when the supervisor has not set it again for a while.
func connectForever(path string) error {
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	go func() { _ = unix.Connect(sock, &unix.SockaddrUnix{Name: path}) }()
	none := unix.Timeval{}
	for since := time.Now(); time.Since(since) < 4*tasks.Interval; {
		limit, err := unix.GetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
		if err != nil {
			return err
		}
		if *limit == none {
			continue
		}
		if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &none); err != nil {
			return err
		}
		since = time.Now()
	}
	fmt.Println("connecting")
	select {}
}

// TestConnectForever: a connect whose time limit the command has removed, to a program that
// does not accept and lives on, is given up with the command.
func TestConnectForever(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := short(t)
	path := dir + "/full"
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(l)
	must(t, unix.Bind(l, &unix.SockaddrUnix{Name: path}))
	must(t, unix.Listen(l, 0))
	first, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(first)
	must(t, unix.Connect(first, &unix.SockaddrUnix{Name: path})) // the queue has room for one

	o := start(t, Config{Writable: []string{dir}}, knows(t, path), "/proc/self/exe", "connect-forever", path)
	said := make([]byte, len("connecting"))
	if _, err := io.ReadFull(o.out, said); err != nil {
		t.Error(err)
	}
	must(t, o.p.Kill())
	o.wait(t)
	o.Close()
	select {
	case <-o.done:
	case <-time.After(bound):
		t.Error("the connect still waits")
		unix.Close(l)
	}
}
