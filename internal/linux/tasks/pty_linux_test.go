// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// patience is how long a test waits for something that must come. It is long because
// test machines are slow; no test takes it.
const patience = 2 * time.Minute

// A console is a program on a terminal, or with a pipe as its input, with all that it
// has written.
type console struct {
	t      testing.TB
	cmd    *exec.Cmd
	input  *os.File // the master, or the write end of the pipe
	output *os.File // the master, or the read end of another pipe
	isPipe bool
	ended  chan struct{} // closed when the process was waited for

	mu      sync.Mutex
	said    []byte
	last    time.Time
	changed chan struct{}
}

// openTerminal returns the two ends of a new terminal; the master is in the poller.
func openTerminal(t testing.TB) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "ptmx"), slave
}

// start starts a program on a terminal of its own.
func start(t testing.TB, args ...string) *console {
	t.Helper()
	master, slave := openTerminal(t)
	defer slave.Close()
	c := &console{t: t, cmd: command(t, args...), input: master}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.run(master)
	return c
}

// startPipe starts a program that reads a pipe and writes to another one.
func startPipe(t testing.TB, args ...string) *console {
	t.Helper()
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	t.Cleanup(func() { read.Close() })
	c := &console{t: t, cmd: command(t, args...), input: write, isPipe: true}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.run(read)
	return c
}

// command returns the command in an environment without surprises. It skips t where the
// program, or one that a shell script runs, is missing.
func command(t testing.TB, args ...string) *exec.Cmd {
	for _, program := range []string{"less", "setsid"} {
		if slices.ContainsFunc(args[1:],
			func(arg string) bool { return slices.Contains(strings.Fields(arg), program) }) {
			testenv.NeedProgram(t, program)
		}
	}
	cmd := exec.Command(testenv.NeedProgram(t, args[0]), args[1:]...)
	home := t.TempDir()
	for _, entry := range testenv.Environ() {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "TERM", "PS1", "HOME", "INPUTRC", "LESS", "EDITOR", "TMUX", "LANG", "LC_ALL", "SHELL":
		default:
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "TERM=xterm", "SHELL=/bin/sh", "PS1=PROMPT> ", "HOME="+home, "LC_ALL=C",
		"NODE_REPL_HISTORY=", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Dir = home
	return cmd
}

// run starts the command, and the collecting of its output unless that is nil.
// Everything ends with the test.
func (c *console) run(output *os.File) {
	c.t.Helper()
	c.changed, c.ended = make(chan struct{}), make(chan struct{})
	if err := c.cmd.Start(); err != nil {
		c.t.Fatalf("start %q: %v", c.cmd.Args, err)
	}
	c.t.Cleanup(func() {
		for _, pid := range c.pids() {
			unix.Kill(pid, unix.SIGKILL)
		}
		unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL) // it leads a group
		c.cmd.Process.Kill()
		if c.output == nil {
			c.cmd.Wait()
			return
		}
		c.input.Close()
		c.output.Close() // a process may still have the other end open
		<-c.ended
		if c.t.Failed() {
			c.t.Logf("output of %q:\n%q", c.cmd.Args, c.text())
		}
	})
	if output != nil {
		c.collect(output)
	}
}

// collect starts the goroutine that collects the output and waits for the process.
func (c *console) collect(output *os.File) {
	c.t.Helper()
	c.output = output
	raw, err := output.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		for c.take(raw) {
		}
		c.cmd.Wait()
	}()
}

// take waits for output and takes it, in one step for everybody who asks when the last
// came. It reports false at the end of the output.
func (c *console) take(raw syscall.RawConn) bool {
	more := false
	err := raw.Read(func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		var buf [4096]byte
		n, err := unix.Read(int(fd), buf[:])
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		if more = n > 0 && err == nil || errors.Is(err, unix.EINTR); n > 0 {
			c.said = append(c.said, buf[:n]...)
			c.touched()
		}
		return true
	})
	return more && err == nil
}

// touched notes that there was output or input just now.
func (c *console) touched() {
	c.last = time.Now()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.said)
}

func (c *console) lastChange() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *console) nextChange() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// send writes input.
func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.input.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched()
}

// until blocks until the output from the offset on has the text, and returns the
// offset after it.
func (c *console) until(from int, text string) int {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		next := c.nextChange()
		if all := c.text(); from <= len(all) {
			if i := strings.Index(all[from:], text); i >= 0 {
				return from + i + len(text)
			}
		}
		select {
		case <-next:
		case <-c.ended:
			if !strings.Contains(c.text()[from:], text) {
				c.t.Fatalf("%q ended without %q:\n%q", c.cmd.Args, text, c.text()[from:])
			}
		case <-deadline.C:
			c.t.Fatalf("%q never says %q, only:\n%q; look: %+v", c.cmd.Args, text, c.text()[from:], c.look())
		}
	}
}

// pids lists the tree of the console's process.
func (c *console) pids() []int { return treeOf(c.cmd.Process.Pid) }

// treeOf lists a process and its descendants.
func treeOf(root int) []int {
	children := map[int][]int{}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], pid)
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// look takes one look.
func (c *console) look() Look {
	if c.isPipe {
		look := Pipe(c.input, c.pids())
		if c.unread() && look.Waiting {
			return Look{Known: true, Why: "there is output that was not read yet"}
		}
		return look
	}
	return Terminal(c.input, c.pids())
}

// unread reports whether there is output that was not taken yet.
func (c *console) unread() bool {
	c.t.Helper()
	end, err := endOf(c.output)
	if err != nil {
		c.t.Fatal(err)
	}
	n, err := end.number(unix.TIOCINQ)
	if err != nil {
		c.t.Fatal(err)
	}
	return n > 0
}

// await waits until the program waits for input.
func (c *console) await() Look {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	look, err := Await(ctx, c.look, c.lastChange, c.nextChange)
	if err != nil {
		c.t.Fatalf("%q: %v; last look: %+v; output:\n%q", c.cmd.Args, err, look, c.text())
	}
	return look
}

// never looks n times, every 5 ms, and fails with the first yes. It ends sooner when
// the program does, and returns the looks.
func (c *console) never(n int) []Look {
	c.t.Helper()
	var looks []Look
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range n {
		look := c.look()
		if looks = append(looks, look); look.Waiting {
			c.t.Fatalf("%q: waits, says %+v; output:\n%q", c.cmd.Args, look, c.text())
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return looks
		}
	}
	return looks
}

// settled blocks until a look says the reason.
func (c *console) settled(why string) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		look := c.look()
		if strings.Contains(look.Why, why) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			c.t.Fatalf("%q: no look says %q, the last is %+v", c.cmd.Args, why, look)
		}
	}
}
