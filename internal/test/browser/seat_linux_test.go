// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A seat is a user with a workspace: a home, a state directory and a daemon of its own.
type seat struct {
	t                *testing.T
	work, home, path string
	env              []string // beyond that of the tests
}

// newSeat makes one outside of /tmp, which commands in a sandbox do not see. Its daemon ends with the test.
func newSeat(t *testing.T) *seat {
	t.Helper()
	testenv.NeedUserNS(t)
	root, err := os.MkdirTemp("/var/tmp", "sallyport-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(p, 0o700) // the work directories of overlays are closed to their owner
			}
			return nil
		})
		_ = os.RemoveAll(root)
	})
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, work: root + "/project", home: root + "/home", path: filepath.Dir(path) + ":/usr/bin:/bin"}
	for dir, mode := range map[string]fs.FileMode{s.work: 0o755, s.home: 0o755, root + "/out": 0o755, root + "/run": 0o700} {
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.endDaemon)
	return s
}

// beside returns the path of something beside the workspace.
func (s *seat) beside(name string) string { return filepath.Join(filepath.Dir(s.work), name) }

// command returns the product with arguments, in the workspace and without a terminal.
func (s *seat) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Dir = s.work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(testenv.Environ(), "PATH="+s.path, "HOME="+s.home, "XDG_STATE_HOME="+s.home+"/.state",
		"XDG_CONFIG_HOME="+s.home+"/.config", "XDG_CACHE_HOME="+s.home+"/.cache", "XDG_RUNTIME_DIR="+s.beside("run"),
		"SHELL=/bin/sh", "LC_ALL=C.UTF-8", "TERM=xterm", "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// says runs the product to its end and returns its exit code and what it printed.
func (s *seat) says(args ...string) (int, string) {
	s.t.Helper()
	cmd := s.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return testenv.Code(cmd.ProcessState), string(out)
}

// must is says for a command that succeeds.
func (s *seat) must(args ...string) string {
	s.t.Helper()
	code, out := s.says(args...)
	if code != 0 {
		s.t.Fatalf("%q: exit code %d, %s", args, code, out)
	}
	return strings.TrimSuffix(out, "\n")
}

// write writes a file of the workspace, or beside it.
func (s *seat) write(name, text string) {
	s.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.work, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// read returns a file of the workspace; empty if there is none.
func (s *seat) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.work, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

// endDaemon ends the daemon, if there is one, and waits for that.
func (s *seat) endDaemon() {
	addr := &net.UnixAddr{Name: filepath.Join(s.beside("run"), "sallyport", "daemon.sock"), Net: "unix"}
	c, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			_ = syscall.Kill(int(cred.Pid), syscall.SIGTERM)
		}
	})
	_, _ = io.Copy(io.Discard, c) // until it closes the connection
}

// A served is a running console.
type served struct {
	url    string // with the token
	origin string
	cmd    *exec.Cmd
	stderr *safeBuffer
	ended  chan struct{}
}

// safeBuffer is a buffer that is written to while it is read.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// console starts `sallyport console` with flags and returns when it has printed its address.
func (s *seat) console(flags ...string) *served {
	s.t.Helper()
	c := &served{cmd: s.command(append([]string{"console"}, flags...)...), stderr: new(safeBuffer),
		ended: make(chan struct{})}
	c.cmd.Stderr = c.stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = c.cmd.Wait() // how it ended is not asked
		close(c.ended)
	}()
	s.t.Cleanup(c.end)
	if err != nil {
		<-c.ended
		s.t.Fatalf("the console has not started: %v; %s", err, c.stderr)
	}
	c.url = strings.TrimSpace(line)
	c.origin, _, _ = strings.Cut(c.url, "/#")
	return c
}

// end ends it and waits for that.
func (c *served) end() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.ended
}

// again starts a console on the same address, after the end of the first one.
func (s *seat) again(c *served, flags ...string) *served {
	s.t.Helper()
	return s.console(append([]string{"--listen", strings.TrimPrefix(c.origin, "http://")}, flags...)...)
}

// An asking is a run without a terminal that waits for an answer.
type asking struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
	err   safeBuffer
	id    string    // of the question
	at    time.Time // when it was asked
}

// event is what the tests read of a line of --jsonl.
type event struct {
	Type, ID, Decision, Source, Message, End string

	Time     time.Time
	ExitCode int `json:"exit_code"`
}

// asks starts a run that needs an approval, and returns when its question was reported.
func (s *seat) asks(words ...string) *asking {
	s.t.Helper()
	a := &asking{t: s.t, cmd: s.command(append([]string{"run", "--jsonl", "-a", "untrusted",
		"--approval-wait", "1h"}, words...)...)}
	a.cmd.Stderr = &a.err
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	a.lines = bufio.NewReader(out)
	asked := a.until("approval_requested")
	a.id, a.at = asked.ID, asked.Time
	return a
}

// until reads events up to one of a type.
func (a *asking) until(kind string) event {
	a.t.Helper()
	for {
		text, err := a.lines.ReadBytes('\n')
		if err != nil {
			a.t.Fatalf("no %s: %v; %s", kind, err, a.err.String())
		}
		var e event
		if err := json.Unmarshal(text, &e); err != nil {
			a.t.Fatalf("%s: %v", text, err)
		}
		if e.Type == kind {
			return e
		}
	}
}

// decided waits for the end, and returns the decision and the exit code of the run.
func (a *asking) decided() (event, int) {
	a.t.Helper()
	decision := a.until("approval_decided")
	_, _ = io.Copy(io.Discard, a.lines)
	_ = a.cmd.Wait() // the exit code says it
	return decision, testenv.Code(a.cmd.ProcessState)
}

// wantDecided fails the test unless the run ended with this decision of the console and this exit code.
func (a *asking) wantDecided(decision string, code int) {
	a.t.Helper()
	got, exit := a.decided()
	if got.Decision != decision || got.Source != "console" || exit != code {
		a.t.Errorf("decided %q by %q, exit code %d; want %q by console, %d; %s", got.Decision,
			got.Source, exit, decision, code,
			a.err.String())
	}
}
