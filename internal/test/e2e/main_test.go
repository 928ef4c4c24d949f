// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestMain(m *testing.M) {
	e2e.PlayBenchmark()
	playDriver()
	testenv.DefaultSignals()
	testenv.MostlyWait()
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.bench=") }) {
		os.Exit(m.Run()) // benchmarks do not wait for what they leave behind
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// enough is far more than any of these tests takes.
const enough = 2 * time.Minute

// newRunner returns a Runner on this machine that is closed with the test, and
// fails the test if that leaves descriptors open.
func newRunner(t *testing.T, p sandbox.Policy) *sallyport.Runner {
	t.Helper()
	if !testenv.HasUserNS() && p.Mode() == sandbox.Managed {
		testenv.NeedUserNS(t)
	}
	before := openFDs()
	r := &sallyport.Runner{Policy: p}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if after := openFDs(); after > before {
			t.Errorf("%d descriptors are open after Close, %d before the first run", after, before)
		}
	})
	return r
}

// openFDs counts this process's descriptors; 0 on systems that do not list them.
func openFDs() int {
	if r, w, err := os.Pipe(); err == nil { // the runtime keeps two from the first on that it polls
		r.Close()
		w.Close()
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// within fails the test if f, which returns how long something took, never stays within
// the limit. A busy machine delays some runs; what is slow by design is slow in all.
func within(t *testing.T, limit time.Duration, f func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 5 {
		d := f()
		if d <= limit {
			return
		}
		took = append(took, d)
	}
	t.Errorf("it took %v, want at most %v", took, limit)
}

// run runs c and fails the test if there is no result or it takes too long.
func run(t *testing.T, r *sallyport.Runner, c *sallyport.Cmd) *sallyport.Result {
	t.Helper()
	type answer struct {
		res *sallyport.Result
		err error
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	done := make(chan answer, 1)
	go func() {
		res, err := r.Run(t.Context(), c)
		done <- answer{res, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			t.Fatalf("%q: %v", append(c.Args, c.Script), a.err)
		}
		return a.res
	case <-time.After(enough):
		t.Fatalf("%q took more than %v", append(c.Args, c.Script), enough)
	}
	return nil
}

// sh returns a command that runs a script in the plain shell.
func sh(script string) *sallyport.Cmd { return &sallyport.Cmd{Script: script, Shell: "sh"} }

// marked lists the processes whose arguments hold mark, as this machine sees them.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, f := range files {
		if args, err := os.ReadFile(f); err == nil && strings.Contains(string(args), mark) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}
