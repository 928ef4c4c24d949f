// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"io"
	"os"
	"strings"
)

// Listening reports whether a program of this process's network listens for TCP connections at a port of its
// loopback interface. It reads the kernel's lists, as far as they are in its format, and connects to nothing.
func Listening(port uint16) bool {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		found := listensAt(f, int(port))
		_ = f.Close()
		if found {
			return true
		}
	}
	return false
}

// listensAt looks at one list.
func listensAt(list io.Reader, port int) (found bool) {
	_ = eachSocket(list, func(s socket, listens bool) {
		found = found || listens && s.port == port && s.loopback
	})
	return found
}

// atLoopback reports whether connections to 127.0.0.1 or ::1 come to a socket: it is bound there, or to
// every address. The words of an address are in the order of bytes of the machine.
func atLoopback(addr string) bool {
	const four, mapped = "0100007F", "0000000000000000FFFF0000" // and as a big endian machine prints them
	return strings.Trim(addr, "0") == "" || addr == four || addr == "7F000001" ||
		addr == mapped+four || addr == "000000000000000000000000"+"01000000" ||
		addr == "00000000000000000000000000000001"
}
