// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// knows has a supervisor take a socket for one of the command's.
func knows(t *testing.T, path string) func(*Supervisor) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	must(t, err)
	return func(s *Supervisor) {
		var f facts
		if errno := (&request{Supervisor: s, scratch: new(scratch)}).stat(fd, "", &f); errno != 0 {
			t.Error(errno)
		}
		s.listening = append(s.listening, listening{fd, f.dev, f.ino})
	}
}

// boundAt makes a socket that is bound and does not listen.
func boundAt(path string) (int, error) {
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return sock, unix.Bind(sock, &unix.SockaddrUnix{Name: path})
}

// connectTo prints how a connect ends.
func connectTo(what, path string) {
	c, err := net.Dial("unix", path)
	if err == nil {
		err = c.Close()
	}
	fmt.Println(what+":", outcome(errors.Unwrap(errors.Unwrap(err))))
}

// connectAll connects to sockets of its own and of the host, in a directory with both.
func connectAll(dir string) error {
	runtime.LockOSThread() // binding and listening in one thread is one step
	l, err := net.Listen("unix", dir+"/own")
	if err != nil {
		return err
	}
	defer l.Close()
	connectTo("own", dir+"/own")
	if err := errors.Join(os.Rename(dir+"/own", dir+"/renamed"),
		os.Link(dir+"/renamed", dir+"/linked")); err != nil {
		return err
	}
	connectTo("renamed", dir+"/renamed")
	connectTo("linked", dir+"/linked")
	connectTo("dead", dir+"/dead")
	_, early := boundAt(dir + "/early")
	connectTo("early", dir+"/early")
	connectTo("host", dir+"/host")
	if err := errors.Join(early, os.Rename(dir+"/host", dir+"/own")); err != nil {
		return err
	}
	connectTo("host, by a name of its own", dir+"/own")

	// The host makes sockets now: one in the place and with the number of one that the command
	// has removed, and one that a name will lead to that the command has bound elsewhere.
	if err := os.Mkdir(dir+"/a", 0o755); err != nil {
		return err
	}
	sock, err := boundAt(dir + "/a/s")
	if err != nil {
		return err
	}
	removed, err := net.Listen("unix", dir+"/again")
	if err != nil {
		return err
	}
	removed.Close()
	fmt.Println("removed")
	if _, err := os.ReadFile(dir + "/go"); err != nil {
		return err
	}
	connectTo("host, with the same number", dir+"/again")
	if err := errors.Join(os.Rename(dir+"/a", dir+"/b"), os.Rename(dir+"/c", dir+"/a"),
		unix.Listen(sock, 1)); err != nil {
		return err
	}
	connectTo("host, in a directory of that name", dir+"/a/s")
	return nil
}

// TestSocketsOfTheHost: in a place that the command may write to, it reaches the sockets on
// which its own tasks listen, and no others.
func TestSocketsOfTheHost(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir := short(t)
	answering(t, dir+"/host", "secret")
	dead, err := boundAt(dir + "/dead")
	must(t, err)
	unix.Close(dead)
	must(t, os.Mkdir(dir+"/c", 0o755))
	must(t, unix.Mkfifo(dir+"/go", 0o600))

	o := start(t, Config{}, nil, "/proc/self/exe", "connect-all", dir)
	var lines []string
	out := bufio.NewScanner(o.out)
	for out.Scan() && out.Text() != "removed" {
		lines = append(lines, out.Text())
	}
	answering(t, dir+"/again", "secret")
	answering(t, dir+"/c/s", "secret")
	f, err := os.OpenFile(dir+"/go", os.O_WRONLY, 0)
	must(t, err)
	f.Close()
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	o.wait(t)
	want := []string{
		"own: done", "renamed: done", "linked: done",
		"dead: connection refused", "early: connection refused",
		"host: permission denied", "host, by a name of its own: permission denied",
		"host, with the same number: permission denied",
		"host, in a directory of that name: permission denied", "done",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	var denied []string
	for _, d := range o.Close().Denials {
		denied = append(denied, strings.TrimPrefix(d.Addr, dir))
	}
	<-o.done
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s is still open", to)
		}
	}
	if want := []string{"/host", "/own", "/again", "/a/s"}; !slices.Equal(denied, want) {
		t.Errorf("denied %q, want %q", denied, want)
	}
}

// TestHandedInListener: a socket of the host that the command was given, and calls listen(2)
// on, does not become one of its own.
func TestHandedInListener(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, private := range []bool{true, false} {
		r := selfRequest(t)
		r.cfg.PrivateNetwork = private
		sock, err := boundAt(short(t) + "/s")
		must(t, err)
		defer unix.Close(sock)
		if !private {
			if r.keep(sock); len(r.listening) != 1 {
				t.Fatal("a socket of the command is not kept")
			}
			r.listening, r.began = nil, time.Now().Add(time.Hour)
		}
		if r.keep(sock); len(r.listening) != 0 {
			t.Errorf("private network %v: it is kept", private)
		}
	}
}

// TestManyListeners: files without a name make room first, then the oldest one does.
func TestManyListeners(t *testing.T) {
	testenv.RunAsOrdinary(t)
	r, dir := selfRequest(t), short(t)
	keep := func(i int) {
		sock, err := boundAt(fmt.Sprint(dir, "/", i))
		must(t, err)
		defer unix.Close(sock)
		r.keep(sock)
		r.keep(sock)
	}
	keep(0)
	oldest := r.listening[0].ino
	for i := 1; i < maxListening; i++ {
		keep(i)
	}
	must(t, os.Remove(dir+"/5"))
	keep(maxListening)
	if len(r.listening) != maxListening || r.listening[0].ino != oldest {
		t.Errorf("%d are kept, the oldest one: %v", len(r.listening), r.listening[0].ino == oldest)
	}
	keep(maxListening + 1)
	if len(r.listening) != maxListening || r.listening[0].ino == oldest {
		t.Errorf("%d are kept, the oldest one: %v", len(r.listening), r.listening[0].ino == oldest)
	}
}
