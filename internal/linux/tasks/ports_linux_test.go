// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// server opens ports on both versions of IP and prints them.
const server = `
import socket
s = [socket.create_server(('127.0.0.1', 0))]
try:
    s.append(socket.create_server(('::1', 0), family=socket.AF_INET6))
except OSError: pass
b = socket.socket()
b.bind(('127.0.0.1', 0))
u = socket.socket(type=socket.SOCK_DGRAM)
u.bind(('127.0.0.1', 0))
c = socket.create_connection(s[0].getsockname())
print('ports', *sorted(x.getsockname()[1] for x in s), 'end')
input()
`

// TestListeningPorts finds the ports of a tree, and only those of it.
func TestListeningPorts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, python)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	foreign := portOf(t, other)

	c := start(t, "sh", "-c", python+" -c \"$0\"; :", server)
	c.until(0, "end")
	want := printed(t, c)
	got, err := ListeningPorts(c.pids(), false)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	all, err := ListeningPorts(c.pids(), true)
	if err != nil || !slices.Contains(all, foreign) {
		t.Errorf("all of the namespace: %v, %v; want %d among them", all, err, foreign)
	}
	for _, port := range want {
		if !slices.Contains(all, port) {
			t.Errorf("all of the namespace: %v, want %v among them", all, want)
		}
	}
	if got, err := ListeningPorts([]int{c.cmd.Process.Pid}, false); len(got) != 0 || err != nil {
		t.Errorf("the shell alone: %v, %v", got, err)
	}
}

// portOf returns the port that is listened on.
func portOf(t *testing.T, listener net.Listener) int {
	t.Helper()
	address, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return int(address.Port())
}

// printed returns the ports that the server has printed.
func printed(t *testing.T, c *console) []int {
	t.Helper()
	text := c.text()
	var ports []int
	for _, word := range strings.Fields(text[strings.Index(text,
		"ports")+len("ports") : strings.Index(text, "end")]) {
		var port int
		if _, err := fmt.Sscan(word, &port); err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// TestListeningPortsOwnNetwork finds the ports in a network namespace of its own, and
// none of ours.
func TestListeningPortsOwnNetwork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	c := start(t, "unshare", "-Urn", "sh", "-c", "ip link set lo up && "+python+" -c \"$0\"", server)
	testenv.NeedProgram(t, "ip")
	c.until(0, "end")
	got, err := ListeningPorts(c.pids(), true)
	if diff := cmp.Diff(printed(t, c), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestListeningPortsWithoutProcess asks about processes that do not exist.
func TestListeningPortsWithoutProcess(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := start(t, "true")
	<-c.ended
	for _, pids := range [][]int{nil, {0, -1}, {c.cmd.Process.Pid}} {
		got, err := ListeningPorts(pids, true)
		if len(got) != 0 || !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v: %v, %v", pids, got, err)
		}
	}
	// A dead one in front of a living one is passed over.
	if _, err := ListeningPorts([]int{c.cmd.Process.Pid, os.Getpid()}, false); err != nil {
		t.Error(err)
	}
}

// TestListeningPortsRefused has a process in the tree that cannot be looked into:
// there may be more ports than were found.
func TestListeningPortsRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := portOf(t, listener)
	c := start(t, "su")
	c.until(0, "assword:")
	got, err := ListeningPorts([]int{os.Getpid(), c.cmd.Process.Pid}, false)
	if !slices.Contains(got, port) || !errors.Is(err, errRefused) {
		t.Errorf("%v, %v", got, err)
	}
}
