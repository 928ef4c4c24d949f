// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// activatedArg is the argument with which this program is a server on a socket that was passed.
const activatedArg = "activated"

// activatedMain is that server.
func activatedMain() error {
	o := options()
	o.Listen, o.Stdout = activatedURL, os.Stdout
	return Run(context.Background(), o)
}

// TestActivated: a server takes the socket that a service manager has opened. What is no such
// socket, or is not for this process, is refused, and so is a port that other machines reach.
func TestActivated(t *testing.T) {
	file := func(t *testing.T, l interface{ File() (*os.File, error) }, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	tcp := func(address string) func(*testing.T) *os.File {
		return func(t *testing.T) *os.File {
			l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)))
			return file(t, l, err)
		}
	}
	socket := func(name string) func(*testing.T) *os.File {
		return func(t *testing.T) *os.File {
			l, err := net.ListenUnix("unix",
				&net.UnixAddr{Name: strings.ReplaceAll(name, "DIR", t.TempDir()), Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
			}
			return file(t, l, err)
		}
	}
	const own = "LISTEN_PID=$$ LISTEN_FDS=1"
	for _, test := range []struct {
		name, environ string
		passed        func(*testing.T) *os.File
		want          string // how the first line begins
	}{
		{"unix socket", own, socket("DIR/s"), "unix:///"},
		{"port", own, tcp("127.0.0.1:0"), "ws://127.0.0.1:"},
		{"port for other machines", own, tcp("0.0.0.0:0"), "0.0.0.0:"},
		{"abstract socket", own, socket("@sallyport-test-DIR"), "cannot listen: the passed socket @"},
		{"no variables", "", tcp("127.0.0.1:0"), "cannot listen: no socket was passed"},
		{"another process", "LISTEN_PID=1 LISTEN_FDS=1", tcp("127.0.0.1:0"), "cannot listen: no socket was passed"},
		{"two sockets", "LISTEN_PID=$$ LISTEN_FDS=2", tcp("127.0.0.1:0"), `cannot listen: LISTEN_FDS is "2"`},
		{"file", own, func(t *testing.T) *os.File {
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}, "cannot listen: the passed descriptor does not accept connections"},
		{"datagrams", own, func(t *testing.T) *os.File {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
			return file(t, c, err)
		}, "cannot listen: the passed descriptor does not accept connections"},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := activate(t, test.environ, test.passed(t))
			if !strings.HasPrefix(first, test.want) {
				t.Fatalf("%q, want %q", first, test.want)
			}
			if !strings.Contains(test.want, "://") {
				return
			}
			c, _ := meet(t, first, nil)
			all := map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{},
				"set": map[string]string{}, "includeOnly": []string{}}
			c.start("/", "echo \"${LISTEN_PID-}${LISTEN_FDS-}\" $(ls /proc/self/fd)",
				map[string]any{"envPolicy": all})
			if _, got := c.ended(); got != " 0 1 2 3\n" { // 3 is that of ls
				t.Errorf("the process has %q", got)
			}
		})
	}
}

// activate starts a server with a passed descriptor, and returns the first line that it prints.
func activate(t *testing.T, environ string, passed *os.File) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// exec keeps the number of the process
	cmd := exec.Command("sh", "-c", environ+` exec "$0" `+activatedArg, program)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{passed}, os.Stderr
	cmd.Env = append(os.Environ(), "LISTEN_FDNAMES=x")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	_ = passed.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
