// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// strangerVar has what [TestStranger] does, how it is confined, and the socket.
const strangerVar = "SALLYPORT_TEST_STRANGER"

// strange are its words; empty in a process that is no stranger.
var strange = confine() // on the first thread, of which others read how the process is confined

func confine() []string {
	words := strings.Fields(os.Getenv(strangerVar))
	if len(words) == 0 {
		return nil
	}
	var err error
	if strings.Contains(words[1], "privileges") {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if strings.Contains(words[1], "filter") {
		allows := unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &allows}
		err = errors.Join(err, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
			uintptr(unsafe.Pointer(&program)), 0, 0))
	}
	if err != nil {
		panic(err)
	}
	return words
}

// TestStranger is the other process of [TestForeignPeers]: it says what it reads from a socket, or listens
// at one until its input ends.
func TestStranger(t *testing.T) {
	if len(strange) == 0 {
		return
	}
	address := &net.UnixAddr{Name: strange[2], Net: "unix"}
	var l net.Listener
	var err error
	switch strange[0] {
	case "connects":
		c, err := net.DialUnix("unix", nil, address)
		if err == nil {
			err = c.SetDeadline(time.Now().Add(time.Minute))
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(c)
		fmt.Printf("it read %q, %v\n", text, err)
		return
	case "listens":
		l, err = net.ListenUnix("unix", address)
	case "serves":
		if l, err = ListenSocket(strange[2]); err == nil {
			err = os.Chmod(strange[2], 0o777) //nolint:gosec // who may connect is not for the mode alone
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if strange[0] == "serves" {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}
		}()
	}
	fmt.Println("it listens")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = l.Close()
}

// stranger starts one, and returns what it says; end ends it.
func stranger(t *testing.T, uid int, words ...string) (says func() string, end func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestStranger$")
	cmd.Env = append(os.Environ(), strangerVar+"="+strings.Join(words, " "))
	if testenv.IsRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid),
			Gid: uint32(uid)}}
	}
	in, err := cmd.StdinPipe()
	out, failed := cmd.StdoutPipe()
	if err = errors.Join(err, failed, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	return func() string { lines.Scan(); return lines.Text() }, func() {
		_ = in.Close()
		_ = cmd.Wait() // what it said counts
	}
}

// TestForeignPeers: neither a server nor a client has a word for a process of another user or in a sandbox;
// those before are no matter for who comes next.
func TestForeignPeers(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedSeccomp(t)
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // others must be able to reach it
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o777) //nolint:gosec // likewise
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", dir)
	for _, confined := range []string{"none", "privileges"} {
		says, end := stranger(t, os.Geteuid(), "serves", confined, dir+"/"+confined)
		defer end()
		if text := says(); text != "it listens" {
			t.Fatal(text)
		}
	}
	own := os.Geteuid()
	for _, test := range []struct {
		name, server, confined string
		uid                    int
		welcome                bool
		root                   bool // only root can be like that
	}{
		{"no new privileges", "none", "privileges", own, false, false},
		{"a filter", "none", "privileges,filter", own, false, false},
		{"a filter in a place without new privileges", "privileges", "privileges,filter", own, false, false},
		{"without new privileges as the server", "privileges", "privileges", own, true, false},
		{"another user", "none", "none", 65534, false, true},
		{"a filter of the system", "none", "filter", own, true, true},
		{"another one of this user", "none", "none", own, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && !testenv.IsRoot() {
				return // the other cases are for both
			}
			says, end := stranger(t, test.uid, "connects", test.confined, dir+"/"+test.server)
			want := `it read "", <nil>`
			if test.welcome {
				want = `it read "hello", <nil>`
			}
			if text := says(); text != want {
				t.Errorf("as a client: %s, want %s", text, want)
			}
			end()
			if test.server != "none" {
				return
			}
			path := filepath.Join(dir, strings.ReplaceAll(test.name, " ", "-"))
			says, end = stranger(t, test.uid, "listens", test.confined, path)
			defer end()
			if text := says(); text != "it listens" {
				t.Fatal(text)
			}
			dials := func(outside, want bool) {
				t.Helper()
				c, err := DialSocket(t.Context(), path, outside)
				if foreign := new(ForeignPeerError); (err == nil) != want || !want && !errors.As(err, &foreign) {
					t.Errorf("as a server, outside %v: %v", outside, err)
				}
				if c != nil {
					_ = c.Close()
				}
			}
			dials(true, test.welcome)
			dials(false, test.uid == own)
			if test.uid != own { // also behind a socket that looks like one of this user's
				if err := os.Chown(path, own, -1); err != nil {
					t.Fatal(err)
				}
				dials(false, false)
			}
		})
	}
}
