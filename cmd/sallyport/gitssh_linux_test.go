// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// sshServer greets each client as servers of SSH do, and passes on what clients begin with.
func sshServer(t *testing.T) (port string, clients <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	seen := make(chan string, 8)
	go func() {
		defer close(seen)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(c, "SSH-2.0-test\r\n")
			line, _ := bufio.NewReader(c).ReadString('\n')
			_ = c.Close()
			seen <- line
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, seen
}

// TestManagedGitSSH: OpenSSH, which knows of no proxy, gets from git in a command to a server that an entry
// names, with no variable for it, and to no other.
func TestManagedGitSSH(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	testenv.NeedProgram(t, "ssh")
	s := newManagedStage(t)
	port, clients := sshServer(t)
	refused, strangers := sshServer(t)
	script := "git ls-remote ssh://git@localhost:" + port + "/r.git; git ls-remote ssh://git@localhost:" +
		refused + "/r.git; echo end"
	out, err := s.command(t, nil, "--allow-host", "localhost:"+port, "--", "sh", "-c",
		script).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "end\n") {
		t.Fatalf("%q, %v", out, err)
	}
	select {
	case line := <-clients:
		if !strings.HasPrefix(line, "SSH-2.0-OpenSSH") {
			t.Errorf("the server got %q", line)
		}
	case <-time.After(time.Minute):
		t.Errorf("the server that is allowed was not reached: %q", out)
	}
	select {
	case line := <-strangers:
		t.Errorf("the other server got %q", line)
	default:
	}
}
