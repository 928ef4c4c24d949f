// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// Listening reports whether a program of this process's network listens for TCP connections at a port of its
// loopback interface. It looks at the first 4 MiB of each list of the kernel, and connects to nothing.
func Listening(port uint16) bool {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		const most = 4 << 20
		found := listening(io.LimitReader(f, most), port)
		_ = f.Close()
		if found {
			return true
		}
	}
	return false
}

// listening looks at one list: "N: ADDRESS:PORT ADDRESS:PORT STATE ...", where numbers are hexadecimal.
func listening(list io.Reader, port uint16) bool {
	const (
		state = "0A" // TCP_LISTEN
		local = 1
		has   = 3
	)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) <= has || words[has] != state {
			continue
		}
		addr, text, _ := strings.Cut(words[local], ":")
		n, err := strconv.ParseUint(text, 16, 16)
		if err == nil && uint16(n) == port && atLoopback(addr) {
			return true
		}
	}
	return false
}

// atLoopback reports whether connections to 127.0.0.1 or ::1 come to a socket: it is bound there, or to
// every address. The words of an address are in the order of bytes of the machine.
func atLoopback(addr string) bool {
	const four, mapped = "0100007F", "0000000000000000FFFF0000" // and as a big endian machine prints them
	return strings.Trim(addr, "0") == "" || addr == four || addr == "7F000001" ||
		addr == mapped+four || addr == "000000000000000000000000"+"01000000" ||
		addr == "00000000000000000000000000000001"
}
