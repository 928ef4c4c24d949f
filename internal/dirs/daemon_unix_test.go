// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// The first argument of this program as a daemon.
const (
	serves = "serves" // until it is killed; its number is a line of the file "started" beside the socket
	fails  = "fails"
	silent = "silent" // it ends without a word
	hangs  = "hangs"  // it does not listen
	loses  = "loses"  // it ends when another one listens
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if len(os.Args) == 4 && os.Args[2] == "--listen" {
		act(os.Args[1], strings.TrimPrefix(os.Args[3], "unix://"))
	}
	goleak.VerifyTestMain(m)
}

// act is the daemon.
func act(what, path string) {
	note, err := os.OpenFile(filepath.Join(filepath.Dir(path), "started"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(note, os.Getpid())
	}
	if err != nil {
		panic(err)
	}
	switch what {
	case fails:
		fmt.Fprintln(os.Stderr, "sallyport: cannot listen: it is broken\nmore")
		os.Exit(125)
	case silent:
		os.Exit(3)
	case loses:
		//nolint:noctx // it outlives this one
		other := exec.Command(os.Args[0], serves, "--listen", "unix://"+path)
		other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := other.StdoutPipe()
		if err == nil {
			err = other.Start()
		}
		if err == nil {
			_, err = bufio.NewReader(out).ReadString('\n')
		}
		fmt.Fprintln(os.Stderr, "sallyport: another one listens", err)
		os.Exit(125)
	case hangs:
		select {} //nolint:revive // a daemon that waits for a disk
	}
	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		panic(err)
	}
	session, _ := os.ReadFile("/proc/self/stat") // as far as there is one
	if f := strings.Fields(string(session)); len(f) > 5 && f[5] != f[0] {
		panic("it has no session of its own")
	}
	for _, fd := range []int{3, 4, 5, 6, 7, 8, 9} {
		if name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil &&
			strings.HasSuffix(name, "/leak") {
			panic("it has a descriptor of its starter")
		}
	}
	fmt.Println("unix://" + path)
	for { // until it is killed
		if c, err := listening.Accept(); err == nil {
			fmt.Fprintln(c, os.Getpid())
			_ = c.Close()
		}
	}
}

// daemonDir returns an environment with a directory for sockets, and that of the daemon. Daemons that
// were started there end with the test.
func daemonDir(t *testing.T) (environ []string, dir string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "sallyport")
	t.Cleanup(func() {
		for _, pid := range started(dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return append(os.Environ(), runtimeVariable+"=/", runtimeVariable+"="+base), dir
}

// started returns the processes that were started as daemons.
func started(dir string) []int {
	text, _ := os.ReadFile(filepath.Join(dir, "started")) // empty when none was
	var all []int
	for f := range strings.FieldsSeq(string(text)) {
		pid, _ := strconv.Atoi(f)
		all = append(all, pid)
	}
	return all
}

func command(t *testing.T, what string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, what}
}

// TestStart: several who start the daemon at once, connect to the same one.
func TestStart(t *testing.T) {
	environ, dir := daemonDir(t)
	leak, err := os.Create(filepath.Join(filepath.Dir(dir), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	inherited, err := syscall.Dup(int(leak.Fd())) // without close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	if path, err := DaemonSocket(func(n string) string {
		return lookUp(environ,
			n)
	}); path != "" || err != nil {
		t.Errorf("%q, %v before the first start", path, err)
	}
	var all sync.WaitGroup
	var daemons sync.Map // process numbers
	for range 8 {
		all.Go(func() {
			path, err := StartDaemon(t.Context(), command(t, serves), environ)
			if err != nil || path != filepath.Join(dir, socketName) {
				t.Errorf("%q, %v", path, err)
				return
			}
			daemons.Store(daemonOf(t, path), nil)
		})
	}
	all.Wait()
	n := 0
	daemons.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d daemons of %d that were started", n, len(started(dir)))
	}
	if path, err := DaemonSocket(func(n string) string {
		return lookUp(environ,
			n)
	}); path != filepath.Join(dir, socketName) || err != nil {
		t.Errorf("%q, %v", path, err)
	}
}

// daemonOf connects, and returns the number of the process that listens.
func daemonOf(t *testing.T, path string) (pid int) {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close()
	if _, err := fmt.Fscan(c, &pid); err != nil {
		t.Error(err)
	}
	return pid
}

// TestStartBeside: a start that fails because another process has started the daemon succeeds.
func TestStartBeside(t *testing.T) {
	environ, dir := daemonDir(t)
	path, err := StartDaemon(t.Context(), command(t, loses), environ)
	if err != nil || path != filepath.Join(dir, socketName) {
		t.Fatalf("%q, %v", path, err)
	}
	if all := started(dir); len(all) != 2 || all[1] != daemonOf(t, path) {
		t.Errorf("started: %d", all)
	}
}

func TestStartFails(t *testing.T) {
	for _, test := range []struct{ what, want string }{
		{fails, "cannot start the daemon of detached runs: cannot listen: it is broken"},
		{silent, "cannot start the daemon of detached runs: it ended before it listened (exit status 3)"},
	} {
		t.Run(test.what, func(t *testing.T) {
			environ, _ := daemonDir(t)
			_, err := StartDaemon(t.Context(), command(t, test.what), environ)
			if failed := new(DaemonError); !errors.As(err, &failed) || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		environ, dir := daemonDir(t)
		if _, err := StartDaemon(t.Context(), []string{filepath.Join(dir, "missing")},
			environ); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		environ, _ := daemonDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := StartDaemon(ctx, command(t, hangs), environ); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("long", func(t *testing.T) {
		base := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
		if err := os.Mkdir(base, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := StartDaemon(t.Context(), command(t, serves),
			[]string{runtimeVariable + "=" + base}); err == nil ||
			!strings.Contains(err.Error(), "too long for a socket; set XDG_RUNTIME_DIR") {
			t.Error(err)
		}
	})
}

// TestPlaces: a directory that others could have written is not used.
func TestPlaces(t *testing.T) {
	own := t.TempDir()
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	wide := filepath.Join(own, "wide")
	if err := errors.Join(os.Mkdir(wide, 0o700), os.Chmod(wide, 0o777)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(own, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, dir, want string }{
		{"own", own, own + "/sallyport"}, {"others can write", wide, ""}, {"missing", own + "/missing", ""},
		{"file", file, ""}, {"relative", ".", ""}, {"none", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := runtimeDir(func(string) string { return test.dir }); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	t.Run("another user's", func(t *testing.T) {
		testenv.NeedRoot(t)
		if err := os.Chown(wide, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(wide, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := runtimeDir(func(string) string { return wide }); got != "" {
			t.Errorf("%q", got)
		}
	})
	t.Run("link", func(t *testing.T) {
		if err := os.Symlink(t.TempDir(), filepath.Join(own, "sallyport")); err != nil {
			t.Fatal(err)
		}
		var foreign *safefile.ForeignError
		if _, err := DaemonSocket(func(string) string { return own }); !errors.As(err, &foreign) {
			t.Error(err)
		}
		if _, err := StartDaemon(t.Context(), command(t, serves),
			[]string{runtimeVariable + "=" + own}); !errors.As(err, &foreign) {
			t.Error(err)
		}
	})
}
