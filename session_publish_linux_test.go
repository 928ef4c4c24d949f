// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSessionPublish: this machine reaches the server of a session, over several calls, while the session
// lives and not after it; meanwhile no other command gets the port.
func TestSessionPublish(t *testing.T) {
	testenv.RunAsOrdinary(t)
	python := testenv.NeedProgram(t, "python3")
	testenv.NeedUserNS(t)
	r := &Runner{Policy: sandbox.WorkspaceWrite()} // descriptors are not counted: splice(2) leaves pipes in a pool
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	_ = l.Close()
	published := []network.Publish{{Port: 3000, HostPort: uint16(addr.Port)}}
	c := Command(python, "-q", "-u", "-c", `import socket
s = socket.create_server(("127.0.0.1", 3000))
print("ready")
while True:
    a = s.accept()[0]
    a.sendall(b"inside")
    a.close()
    print("served")
`)
	c.Publish = published
	s := begin(t, r, c)
	send(t, s, "", Until{Match: regexp.MustCompile("ready")}, ReasonMatch)
	for range 2 {
		if text, err := answerAt(addr.Port); text != "inside" || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
		send(t, s, "", Until{Match: regexp.MustCompile("served")}, ReasonMatch)
	}
	other := Command(python, "-c", "pass")
	other.Publish, other.Dir = published, t.TempDir()
	var refused *sandbox.UnsupportedError
	if _, err := r.Run(t.Context(), other); err == nil || errors.As(err, &refused) {
		t.Errorf("the port is in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := answerAt(addr.Port); err == nil {
		t.Errorf("after the end: %q", text)
	}
	if res, err := s.Wait(t.Context()); err != nil || len(res.Sandbox.Published) != 1 || res.Sandbox.Published[0] != published[0] {
		t.Errorf("%+v, %v", res, err)
	}
}

// answerAt returns what a port of this machine says first.
func answerAt(port int) (string, error) {
	c, err := net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(enough))
	text, err := io.ReadAll(c)
	return string(text), err
}
