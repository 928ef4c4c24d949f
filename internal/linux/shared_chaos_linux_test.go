// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// chaosTime is how long something is killed: in the long run a minute by both tests and both users together.
func chaosTime() time.Duration {
	if testenv.IsLong() {
		return 15 * time.Second
	}
	return time.Second
}

// chaosRandom makes the choices; SALLYPORT_TEST_SEED repeats those of another run.
func chaosRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("SALLYPORT_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("SALLYPORT_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// A chaosVictim is a command of the chaos, and what was killed of it.
type chaosVictim struct {
	child           *Child
	line            string
	command, reaper atomic.Bool
}

// The lines that commands run, and the code with which each ends unless it is killed.
var chaosLines = []struct {
	line string
	code int
}{
	{`exit 3`, 3}, {`sleep 1000 & exit 3`, 3}, {`cat /dev/zero | head -c 100000 >/tmp/$$; exit 3`, 3},
	{`exec sleep 1000`, -2}, {`sleep 1000 & sleep 1000 & wait; exit 4`, -2}, {`(setsid sleep 1000 &) ; exec sleep 1000`, -2},
}

// TestSharedChaos kills commands, their reapers and holders at any moment: every end has its true cause, and
// nothing is left.
func TestSharedChaos(t *testing.T) {
	testenv.RunAsOrdinary(t)
	warm := newArena(t)
	ws := warm.open(t, warm.policy())
	mustRun(t, warm, &job{in: ws, args: sh(`:`)})
	must(t, ws.Close())
	must(t, warm.host.Close())
	a := newArena(t)
	null := nulls(t)
	before := look(t, a.base)
	r := chaosRandom(t)
	var sandboxes, commands, cut int
	for end := time.Now().Add(chaosTime()); cut == 0 || time.Now().Before(end); {
		// a busy machine needs longer for one
		n, c := chaosRound(t, a, rand.New(rand.NewPCG(r.Uint64(), r.Uint64())), null)
		sandboxes, commands, cut = sandboxes+1, commands+n, cut+c
		if t.Failed() {
			break
		}
	}
	t.Logf("%d sandboxes, %d commands, of which %d ended with theirs", sandboxes, commands, cut)
	must(t, a.host.Close())
	before.gone(t, a.base, 0)
	goleak.VerifyNone(t)
}

// chaosRound lives the life of one sandbox.
func chaosRound(t *testing.T, a *arena, r *rand.Rand, null [3]*os.File) (commands, cut int) {
	t.Helper()
	p := a.policy()
	if r.IntN(4) == 0 {
		p = p.WithNetwork(sandbox.NetworkProxy)
	}
	s, err := a.host.Open(context.Background(), &executor.SharedSpec{Policy: p})
	must(t, err)
	var holderKilled atomic.Bool
	var mu sync.Mutex
	var alive []*chaosVictim
	var count, cutCount atomic.Int32
	var group sync.WaitGroup
	fate := 3 + r.IntN(30) // after so many starts the holder is killed, or the sandbox is closed
	half := make(chan struct{})
	for range 3 {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		group.Go(func() {
			for {
				n := int(count.Add(1))
				if n == fate/2 {
					close(half)
				}
				if n > fate {
					return
				}
				pick := chaosLines[own.IntN(len(chaosLines))]
				policy := p
				if own.IntN(3) == 0 {
					policy = p.WithEntries(sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny))
				}
				c, err := s.Start(context.Background(),
					a.request(&job{policy: &policy, args: sh(pick.line)}), null)
				if err != nil {
					if !errors.Is(err, executor.ErrSharedEnded) || !holderKilled.Load() {
						t.Errorf("%s: %T %v, the holder was killed: %v", pick.line, err, err,
							holderKilled.Load())
					}
					return
				}
				v := &chaosVictim{child: c, line: pick.line}
				mu.Lock()
				alive = append(alive, v)
				other := alive[own.IntN(len(alive))]
				mu.Unlock()
				chaosKill(own, other)
				if pick.code < 0 {
					chaosKill(own, v)
					if !v.command.Load() && !v.reaper.Load() {
						v.command.Store(true)
						_ = c.Signal(unix.SIGKILL, true)
					}
				}
				mu.Lock()
				alive = remove(alive, v)
				mu.Unlock()
				e := finish(t, c)
				if errors.Is(e.Broken, executor.ErrSharedEnded) {
					cutCount.Add(1)
				}
				v.judge(t, e, pick.code, holderKilled.Load())
			}
		})
	}
	if r.IntN(3) > 0 {
		group.Go(func() {
			<-half // others start commands meanwhile
			holderKilled.Store(true)
			s.holder.WhileThere(func() { must(t, unix.Kill(s.holder.PID(), unix.SIGKILL)) })
		})
	}
	group.Wait()
	must(t, s.Close())
	return int(count.Load()), int(cutCount.Load())
}

func remove(all []*chaosVictim, v *chaosVictim) (out []*chaosVictim) {
	for _, o := range all {
		if o != v {
			out = append(out, o)
		}
	}
	return out
}

// chaosKill may kill a process of a command, or its reaper.
func chaosKill(r *rand.Rand, v *chaosVictim) {
	switch r.IntN(6) {
	case 0:
		v.reaper.Store(true)
		v.child.proc.WhileThere(func() { _ = unix.Kill(v.child.PID(), unix.SIGKILL) })
	case 1, 2:
		v.command.Store(true)
		for _, pid := range v.child.Processes() {
			v.child.proc.WhileThere(func() { _ = unix.Kill(pid, unix.SIGKILL) })
		}
	}
}

// judge checks that the end of a command is one that what was killed explains.
func (v *chaosVictim) judge(t *testing.T, e *executor.Exit, code int, holder bool) {
	t.Helper()
	killed := v.command.Load() || v.reaper.Load()
	switch {
	case e.Broken != nil && (!holder || !errors.Is(e.Broken, executor.ErrSharedEnded)):
		t.Errorf("%s: broken by %v, the holder was killed: %v", v.line, e.Broken, holder)
	case e.Code == code && e.Signal == 0:
	case e.Broken != nil || killed:
		if e.Code != 128+e.Signal && e.Code != -1 && e.Code != 4 && e.Code != code {
			t.Errorf("%s: ended with %d, signal %d", v.line, e.Code, e.Signal)
		}
	default:
		t.Errorf("%s: nothing was killed, holder %v, and it ended with %d, signal %d, broken %v", v.line,
			holder, e.Code, e.Signal, e.Broken)
	}
}

// sharedFront is a front end that starts commands in a shared sandbox until it is killed. Its first line
// names the holder; the lines of its commands follow.
func sharedFront(h *Host, spec *executor.Spec) int {
	s, err := h.Open(context.Background(), &executor.SharedSpec{Policy: spec.Policy})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.holder.PID())
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			for round := 0; ; round++ {
				one := *spec
				one.Args = sh([]string{`echo; exec sleep 1000`, `echo`,
					`echo; sleep 1000 & exit 0`}[(i+round)%3])
				c, err := s.Start(context.Background(), &one, [3]*os.File{os.Stdin, os.Stdout, os.Stdout})
				if err != nil {
					fmt.Println("ERROR", err)
					return
				}
				if (i+round)%3 > 0 {
					_, _, _ = c.Wait()
					_ = c.Kill()
					_ = c.WaitAll()
					_ = c.Close(new(executor.Exit))
				}
				if round > 20 {
					forever()
				}
			}
		})
	}
	group.Wait()
	return 1
}

// TestSharedFrontKilled kills the front end of a shared sandbox at any moment: the kernel ends all that was
// in it, and the next start removes what it has left on the disk.
func TestSharedFrontKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	mustRun(t, a, &job{args: sh(`:`)}) // makes the state directory
	before := look(t, a.base)
	r := chaosRandom(t)
	rounds := 0
	for end := time.Now().Add(chaosTime()); time.Now().Before(end) && !t.Failed(); rounds++ {
		killFront(t, a, r.IntN(12))
	}
	t.Logf("%d front ends", rounds)
	next := &arena{host: new(Host), base: a.base, ws: a.ws, out: a.out}
	if res, err := next.run(t, &job{args: sh(`echo fine`)}); err != nil || res.out != "fine\n" {
		t.Errorf("%+v, %v", res, err)
	}
	must(t, next.host.Close())
	before.gone(t, a.base, 0)
	must(t, a.host.Close())
	for _, n := range []string{".codex", ".agents", ".sallyport"} {
		if _, err := os.Lstat(a.ws + "/" + n); err == nil {
			t.Errorf("%s is left", n)
		}
	}
}

// killFront starts a front end and kills it after so many lines of its commands.
func killFront(t *testing.T, a *arena, lines int) {
	t.Helper()
	in, inW := pipe(t)
	outR, out := pipe(t)
	defer inW.Close()
	defer outR.Close()
	cmd := exec.Command(os.Getenv(programVar), partFront, "shared", "ws="+a.ws, "args=:")
	cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+a.base+"/state", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	must(t, cmd.Start())
	in.Close()
	out.Close()
	must(t, outR.SetReadDeadline(time.Now().Add(patience)))
	reader := bufio.NewReader(outR)
	line, err := reader.ReadString('\n')
	must(t, err)
	holder, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%q", line)
	}
	handle, err := unix.PidfdOpen(holder, 0)
	must(t, err)
	defer unix.Close(handle)
	for range lines {
		if line, err := reader.ReadString('\n'); err != nil || strings.HasPrefix(line, "ERROR") {
			t.Errorf("%q, %v", line, err)
		}
	}
	must(t, cmd.Process.Signal(unix.SIGSTOP)) // it makes no more, once all of its threads have stopped
	if _, err := unix.Wait4(cmd.Process.Pid, nil, unix.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	all := []int{handle}
	for _, child := range childrenBelow(cmd.Process.Pid) {
		pid, _, _ := strings.Cut(child, " ")
		if fd, err := unix.PidfdOpen(number(pid), 0); err == nil {
			defer unix.Close(fd)
			all = append(all, fd)
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("commands outlive their front end: %v", err)
	}
	for i, fd := range all { // reapers end behind their commands
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := testenv.Poll(poll, patience); n != 1 {
			t.Errorf("process %d of %d outlives its front end: %d, %v", i, len(all), n, err)
		}
	}
}
