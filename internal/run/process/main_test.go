// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// playVar makes the test binary play a program instead of running tests.
const playVar = "PROC_TEST_PLAY"

// programs are what the test binary can play. Their arguments are os.Args[1:].
func programs() map[string]func(args []string) int {
	return map[string]func([]string) int{
		"stubborn": playStubborn,
		"escape":   playEscape,
		"holder":   playHolder,
		"zeros":    playZeros,
	}
}

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if play, ok := programs()[os.Getenv(playVar)]; ok {
		os.Exit(play(os.Args[1:]))
	}
	testenv.DefaultSignals()
	goleak.VerifyTestMain(m)
}

// playStubborn ignores SIGTERM and says so, then waits for its input to end.
func playStubborn([]string) int {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("stubborn")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// playEscape starts a holder in a session of its own, whose input is descriptor 3.
func playEscape([]string) int {
	c := play("holder")
	c.Stdin, c.Stdout = os.NewFile(3, "input"), os.Stdout
	c.SysProcAttr = ownSession()
	if err := c.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("parent")
	return 0
}

// playHolder keeps its output open until its input ends, writing what it reads.
func playHolder([]string) int {
	_, _ = io.Copy(os.Stdout, os.Stdin)
	return 0
}

// playZeros writes that many bytes.
func playZeros(args []string) int {
	n, _ := strconv.Atoi(args[0])
	for buf := make([]byte, 64<<10); n > 0; {
		w, err := os.Stdout.Write(buf[:min(len(buf), n)])
		if err != nil {
			return 1
		}
		n -= w
	}
	return 0
}

// play returns the command that plays a program.
func play(name string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), playVar+"="+name)
	return c
}

// plainChild is a command of package os/exec: its tree is its process group.
type plainChild struct {
	cmd *exec.Cmd
}

// launchPlain starts c on streams.
func launchPlain(c *exec.Cmd, s *Streams) (*plainChild, error) {
	c.Stdin, c.Stdout, c.Stderr = s.Files()[0], s.Files()[1], s.Files()[2]
	c.SysProcAttr = ownGroup()
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &plainChild{c}, nil
}

func (c *plainChild) Wait() (code, signal int, err error) {
	state, err := c.cmd.Process.Wait()
	if err != nil {
		return 0, 0, err
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal()), nil
	}
	return state.ExitCode(), 0, nil
}

func (c *plainChild) WaitAll() error { return nil }

func (c *plainChild) Signal(sig syscall.Signal, _ bool) error {
	return killGroup(c.cmd.Process.Pid, sig)
}

func (c *plainChild) Kill() error                    { return killGroup(c.cmd.Process.Pid, syscall.SIGKILL) }
func (c *plainChild) Survivors() []executor.Survivor { return nil }
func (c *plainChild) Terminal() *os.File             { return nil }
func (c *plainChild) Close(*executor.Exit) error     { return nil }

// collected is output.
type collected struct {
	mu   sync.Mutex
	all  []byte
	by   [2][]byte
	runs int
}

func (h *collected) output(s executor.Stream, p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, p...)
	h.by[s] = append(h.by[s], p...)
	h.runs++
}

func (h *collected) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.all)
}

// checkFDs fails the test if descriptors are left when it ends.
func checkFDs(t *testing.T) {
	t.Helper()
	// The runtime opens some of its own with the first pipe.
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	before := openFDs()
	t.Cleanup(func() {
		if after := openFDs(); after > before {
			t.Errorf("%d descriptors are open after the test, %d before", after, before)
		}
	})
}

// openFDs counts this process's descriptors; 0 on systems that do not list them.
func openFDs() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// soon fails the test when f takes bound or longer in each of several tries: the machine
// may be busy.
func soon(t *testing.T, bound time.Duration, f func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 10 {
		d := f()
		if took = append(took, d); d < bound {
			return
		}
	}
	t.Errorf("it took %v, want less than %v", took, bound)
}

// within fails the test when f takes longer than d, which is generous.
func within(t *testing.T, d time.Duration, what string, f func()) time.Duration {
	t.Helper()
	start := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s took more than %v", what, d)
	}
	return time.Since(start)
}

// countTo returns the lines "0" to n-1.
func countTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}
