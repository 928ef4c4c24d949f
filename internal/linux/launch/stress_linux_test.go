// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// collectGarbage collects without a break until the test ends.
func collectGarbage(t *testing.T) {
	t.Helper()
	percent := debug.SetGCPercent(1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
		debug.SetGCPercent(percent)
	})
}

// TestManyAtOnce holds 200 commands at once: each ends with its own status, and
// none needs a thread of this process.
func TestManyAtOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, k := range []kind{plain, own} {
		t.Run(kinds[k].name, func(t *testing.T) {
			collectGarbage(t)
			const count = 200
			l := launcher(t)
			hold, release := pipe(t) // the commands wait for its end
			n := null(t)
			running := make([]*Process, count)
			const starters = 16 // a goroutine in a short system call may have a thread
			var wg sync.WaitGroup
			for first := range starters {
				wg.Go(func() {
					for i := first; i < count; i += starters {
						grow(i)
						p, err := l.Start(script(k,
							shStep(fmt.Sprintf("read x; exit %d", i%251))), hold, n, n)
						if err != nil {
							t.Error(err)
							return
						}
						running[i] = p
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				return
			}
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				t.Fatal(err)
			}
			threads, err := strconv.Atoi(statusField(string(status), "Threads"))
			if err != nil || threads > count/4 {
				t.Errorf("%d threads, %v, for %d commands", threads, err, count)
			}
			release.Close()
			for i, p := range running {
				wg.Go(func() {
					if st := finishAll(t, p); st.ExitStatus() != i%251 {
						t.Errorf("command %d ended with %#x", i, uint32(st))
					}
				})
			}
			wg.Wait()
		})
	}
}

// grow makes the stack of a goroutine larger, by a different amount for each, so
// that it is moved at different points of a launch.
func grow(n int) int {
	var space [256]byte
	if n <= 0 {
		return len(space)
	}
	space[n%256] = byte(n)
	return grow(n%40-1) + int(space[n%256])
}

// TestCloseWhileStarting closes a launcher under load: each launch either
// happens and is ended, or is refused.
func TestCloseWhileStarting(t *testing.T) {
	for range 20 {
		var l starter
		n := null(t)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				p, err := l.Start(script(plain, shStep("exec sleep 1000")), n, n, n)
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := p.WaitAll(); err != nil {
					t.Error(err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		runtime.Gosched()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		l.reapers.Wait()
	}
	wantNoChildren(t)
}

// fastest is the shortest of many launches; the shortest is what noise of the
// machine disturbs least.
func fastest(t *testing.T, l *starter, s *Script) time.Duration {
	t.Helper()
	best := time.Hour
	n := null(t)
	for range 40 {
		began := time.Now()
		p, err := l.Start(s, n, n, n)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(began))
		finishAll(t, p)
	}
	return best
}

// TestHeapDoesNotCount: a launch copies nothing of the caller, so a large heap
// must not slow it down.
func TestHeapDoesNotCount(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	s := script(own, Step{Op: OpExec, Path: "/bin/true", Argv: []string{"true"}})
	small := fastest(t, l, s)
	heap := make([]byte, 256<<20)
	for i := 0; i < len(heap); i += unix.Getpagesize() {
		heap[i] = 1
	}
	large := fastest(t, l, s)
	runtime.KeepAlive(heap)
	// To copy the page tables of such a heap takes some fifty times as long as a
	// whole launch; a busy machine does not.
	if large > 5*small {
		t.Errorf("with 256 MiB %v, without %v", large, small)
	}
}
