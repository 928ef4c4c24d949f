// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestExhausted starts commands while this process may open only a few more descriptors,
// from none to all that a start needs. Whichever step fails, nothing is left.
func TestExhausted(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range survivorLevels {
		for _, with := range []string{"", "terminal", "proxy"} {
			if with == "proxy" && level != plan.LevelNative {
				continue
			}
			name := strings.TrimSuffix(levelName(level)+", "+with, ", ")
			t.Run(name, func(t *testing.T) {
				executorAt(t, level) // for what it needs
				failures, successes := 0, 0
				for more := uint64(0); successes < 2 && more < 100; more++ {
					if startExhausted(t, level, with, more) {
						successes++
					} else {
						failures++
					}
				}
				t.Logf("%d starts failed", failures)
				if failures < 5 || successes < 2 {
					t.Errorf("%d starts failed and %d did not", failures, successes)
				}
			})
		}
	}
}

// startExhausted runs one command with so many more descriptors, and reports whether it
// could be started.
func startExhausted(t *testing.T, level, with string, more uint64) bool {
	t.Helper()
	descriptors, goroutines := openFDs(), runtime.NumGoroutine()
	dir := t.TempDir()
	e := new(Executor)
	e.host.Only = level
	policy := sandbox.WorkspaceWrite()
	if level == "" {
		policy = sandbox.FullAccess()
	}
	if with == "proxy" {
		policy = policy.WithNetwork(sandbox.NetworkProxy)
	}
	spec := newSpec(policy, "true")
	spec.Dir, spec.Policy = dir, policy.Bind(sandbox.Places{Dir: dir})
	spec.PipeStdin = with != "terminal"
	if !spec.PipeStdin {
		spec.TTY = &executor.Size{}
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	first, err := unix.Dup(0) // the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(first)
	few := before
	few.Cur = uint64(first) + more
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	p, err := e.Start(t.Context(), spec)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		if x, werr := p.Wait(); werr != nil {
			t.Errorf("with %d descriptors: %+v, %v", more, x, werr)
		}
	} else if more > 60 {
		t.Logf("with %d descriptors: %v", more, err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("with %d descriptors: close: %v", more, err)
	}
	settled := func() bool {
		return openFDs() <= descriptors && runtime.NumGoroutine() <= goroutines &&
			len(process.PIDsBelow(os.Getpid())) == 0
	}
	for begin := time.Now(); !settled(); runtime.Gosched() {
		if time.Since(begin) > noneAfter {
			t.Fatalf("with %d descriptors (start: %v): %d descriptors, %d before; %d goroutines, %d before; processes %v", more, err,
				openFDs(), descriptors, runtime.NumGoroutine(), goroutines, process.Below(os.Getpid()))
		}
	}
	return err == nil
}
