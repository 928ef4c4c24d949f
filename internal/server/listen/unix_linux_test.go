// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// listenOn runs a server on a socket and returns its path.
func listenOn(t *testing.T) string {
	t.Helper()
	o := options()
	path := filepath.Join(t.TempDir(), "s")
	o.Listen = "unix://" + path
	if url := run(t, o); url != o.Listen {
		t.Fatalf("%q, want %q", url, o.Listen)
	}
	return path
}

func TestUnix(t *testing.T) {
	path := listenOn(t)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	c, _ := meet(t, "unix://"+path, nil)
	c.served()
	if l, err := listenUnix(path); err == nil {
		t.Errorf("%v is a second server", l.Addr())
	}
}

// TestUnixTaken: only a socket of a server that has gone is replaced.
func TestUnixTaken(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dead, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path string
		ok   bool
	}{{link, false}, {file, false}, {dead, true}, {filepath.Join(dir, "missing", "s"), false}, {"s", false},
		{"", false}} {
		l, err := listenUnix(test.path)
		if (err == nil) != test.ok {
			t.Errorf("%q: %v", test.path, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// unixVar names the socket for [TestUnixClient].
const unixVar = "SALLYPORT_TEST_SOCKET"

// TestUnixClient is the client in a sandbox of [TestUnixConfined]: it prints what it is told.
func TestUnixClient(t *testing.T) {
	path := os.Getenv(unixVar)
	if path == "" {
		return // it is no client
	}
	_, response, err := dial("unix://"+path, nil)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	t.Logf("let in: %s", response.Status)
}

// TestUnixConfined: a process in a sandbox that may connect to sockets does not get a server that
// would run processes outside of it. The wall is peer.Listen.
func TestUnixConfined(t *testing.T) {
	testenv.NeedUserNS(t)
	path := listenOn(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		want   string
	}{
		{"outside", sandbox.FullAccess(), "let in: 101"},
		{"inside", sandbox.WorkspaceWrite(filepath.Dir(path), filepath.Dir(self)).WithNetwork(sandbox.NetworkHost), "refused: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e local.Executor
			defer func() { _ = e.Close() }()
			places, err := e.Places(t.Context(), filepath.Dir(path), nil, "host")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			p, err := e.Start(t.Context(), &executor.Spec{
				Args: []string{self, "-test.run=^TestUnixClient$", "-test.v"}, Dir: filepath.Dir(path),
				Env:    []string{unixVar + "=" + path, "PATH=/usr/bin:/bin", "HOME=/"},
				Policy: test.policy.Bind(places), Tmp: "host", Allow: []string{"unix"}, NoCaches: true,
				OnOutput: func(_ executor.Stream, p []byte) { out.Write(p) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("%s, want %s", out.Bytes(), test.want)
			}
		})
	}
}

// TestLockedDirectory: a process that sees the directory of a socket can lock it; the server does not wait.
func TestLockedDirectory(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	l, err := listenUnix(dir + "/a.sock")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
