// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestDaemonEnds leaves a daemon behind that holds standard output. It must be
// seen, and must end with the tree.
func TestDaemonEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	r, w := pipe(t)
	_, errW := pipe(t)
	defer errW.Close()
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	c, err := a.start(a.request(&job{args: []string{os.Getenv(programVar), partAttack, "daemon"}}), nil,
		null, w, errW)
	w.Close()
	must(t, err)
	text := drain(r)
	code, _, err := c.Wait()
	if code != 0 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	alive := c.Survivors()
	if len(alive) == 0 {
		t.Error("no survivor was seen")
	}
	for _, s := range alive {
		if s.Name != "sh" && s.Name != "sleep" || s.PID <= 0 {
			t.Errorf("survivor %+v", s)
		}
	}
	select {
	case got := <-text:
		t.Errorf("standard output was closed before the daemon was ended: %q", got)
	default:
	}
	must(t, c.Kill())
	must(t, c.WaitAll())
	must(t, c.Close(new(executor.Exit)))
	if got := <-text; !strings.Contains(got, "daemon OK") || strings.Contains(got, "read:") {
		t.Errorf("output %q", got)
	}
}

// TestKilledFrontEnd kills the program that started the sandbox, with SIGKILL.
// The command holds a pipe, which ends when, and only when, the last of its
// processes has.
func TestKilledFrontEnd(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for name, attack := range map[string]string{"command": "hold", "daemon": "daemon,hold"} {
		t.Run(name, func(t *testing.T) {
			f := startFront(t, a, "hold", attack)
			must(t, f.cmd.Process.Kill())
			_ = f.cmd.Wait()
			must(t, f.out.SetReadDeadline(time.Now().Add(patience)))
			if _, err := io.Copy(io.Discard, f.reader); err != nil {
				t.Errorf("the tree outlived its front end: %v", err)
			}
		})
	}
}

// A front is another program with a command in a sandbox.
type front struct {
	cmd    *exec.Cmd
	in     *os.File // the command's standard input
	out    *os.File // its output
	reader *bufio.Reader
	root   int // process id of the root of the tree
}

// startFront starts a front end and waits until its command says READY.
func startFront(t *testing.T, a *arena, part, attacks string) *front {
	t.Helper()
	in, inW := pipe(t)
	outR, out := pipe(t)
	reportR, report := pipe(t)
	args := strings.Join([]string{os.Getenv(programVar), partAttack, attacks}, "\x01")
	cmd := exec.Command(os.Getenv(programVar), partFront, part, "ws="+a.ws, "level="+
		a.host.Only, "args="+args)
	cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+a.base+"/state", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.ExtraFiles = []*os.File{report}
	must(t, cmd.Start())
	for _, f := range []*os.File{in, out, report} {
		f.Close()
	}
	f := &front{cmd: cmd, in: inW, out: outR, reader: bufio.NewReader(outR)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		inW.Close()
		outR.Close()
		reportR.Close()
	})
	must(t, outR.SetReadDeadline(time.Now().Add(patience)))
	f.expect(t, "hold READY")
	line, err := bufio.NewReader(reportR).ReadString('\n')
	must(t, err)
	f.root, err = strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	return f
}

// expect reads until a line.
func (f *front) expect(t *testing.T, want string) {
	t.Helper()
	for {
		line, err := f.reader.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %q: %q %v", want, line, err)
		}
		if strings.TrimSpace(line) == want {
			return
		}
	}
}

// TestHostCloses ends what runs when the Host does.
func TestHostCloses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	r, w := pipe(t)
	in, inW := pipe(t)
	defer inW.Close()
	c, err := a.start(a.request(&job{args: []string{os.Getenv(programVar), partAttack, "hold"}}),
		nil, in, w, w)
	w.Close()
	in.Close()
	must(t, err)
	text := drain(r)
	must(t, a.host.Close())
	if got := <-text; strings.Contains(got, "read:") {
		t.Errorf("%q", got)
	}
	must(t, c.WaitAll())
	if code, _, err := c.Wait(); err != nil || code != 128+int(unix.SIGKILL) {
		t.Errorf("a killed command ended with %d, %v", code, err)
	}
	must(t, c.Close(new(executor.Exit)))
}

// TestProcessOne signals process 1 from inside, which must go on and report.
func TestProcessOne(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	a.expect(t, wordDenied, &job{}, []string{"kill-1"})
	res := mustRun(t, a, &job{args: sh(`kill -9 1; kill -TERM 1; kill -USR1 1; exit 7`)})
	if res.code != 7 || res.lost != nil {
		t.Errorf("%+v", res)
	}
}

func TestSignals(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	tests := []struct {
		name   string
		script string
		do     func(c *Child) error
		code   int
		signal int
	}{
		{"group", `echo; exec sleep 1000`, func(c *Child) error { return c.Signal(unix.SIGTERM, false) }, 143, 15},
		{"tree", `echo; exec sleep 1000`, func(c *Child) error { return c.Signal(unix.SIGINT, true) }, 130, 2},
		{"handled", `trap 'exit 9' USR1; echo; while :; do sleep 0.01; done`, func(c *Child) error { return c.Signal(unix.SIGUSR1, false) }, 9, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, w := pipe(t)
			defer r.Close()
			j := &job{args: sh(test.script), stdout: w}
			j.during = func(c *Child) {
				w.Close()
				_, err := r.Read(make([]byte, 1))
				must(t, err)
				must(t, test.do(c))
			}
			res := mustRun(t, a, j)
			if res.code != test.code || res.signal != test.signal || res.lost != nil {
				t.Errorf("%+v", res)
			}
		})
	}
	t.Run("kill", func(t *testing.T) {
		res := mustRun(t, a, &job{args: sh(`exec sleep 1000`), during: func(c *Child) { must(t, c.Kill()) }})
		if res.code != 137 || res.signal != 9 || res.lost != nil { // the reaper still tells
			t.Errorf("%+v", res)
		}
	})
	t.Run("after the end", func(t *testing.T) {
		mustRun(t, a, &job{args: sh(`:`), during: func(c *Child) {
			must(t, c.WaitAll())
			if err := c.Signal(unix.SIGTERM, true); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("%v", err)
			}
		}})
	})
}

func TestExitCodes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	full := sandbox.FullAccess()
	for name, j := range map[string]*job{"sandboxed": {}, "full access": {policy: &full}} {
		t.Run(name, func(t *testing.T) {
			for script, want := range map[string][2]int{":": {0, 0}, "exit 3": {3, 0}, "exit 255": {255, 0},
				"kill -9 $$": {137, 9}, "kill -SEGV $$": {139, 11}} {
				j.args = sh(script)
				if res := mustRun(t, a, j); [2]int{res.code, res.signal} != want || res.lost != nil {
					t.Errorf("%s: %+v", script, res)
				}
			}
		})
	}
}

// TestManyAtOnce starts commands from many goroutines and looks for descriptors
// and goroutines that stay.
func TestManyAtOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	warm := newArena(t)
	mustRun(t, warm, &job{args: sh(`:`)})
	must(t, warm.host.Close())
	before := descriptors(t)
	a := newArena(t)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			res, err := a.run(t, &job{args: sh(`echo $$; exit 5`)})
			if err != nil || res.code != 5 || res.out != "2\n" {
				t.Errorf("%+v %v", res, err)
			}
			_, err = a.run(t, &job{args: sh(`:`), dir: a.base + "/none"})
			if err == nil {
				t.Error("started in a missing directory")
			}
		})
	}
	wg.Wait()
	// Close waits for the reapers that are still on their way out.
	must(t, a.host.Close())
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("%q are open, before it was %q", after, before)
	}
	goleak.VerifyNone(t)
}

// descriptors names what this process has open, sorted.
func descriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var out []string
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil { // the directory that was just read is closed
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return out
}

func TestStartAfterCancel(t *testing.T) {
	a := newArena(t)
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := a.host.Start(ctx, a.request(&job{args: sh(`:`)}),
		[3]*os.File{os.Stdin, os.Stdout, os.Stderr}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
