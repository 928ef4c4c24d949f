// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// measureEnv makes the test binary a small program that runs its arguments and
// prints their peak memory. A child's peak counts that of its parent at the
// time of the fork, so the parent must be small.
const measureEnv = "SALLYPORT_BENCH_MEASURE"

// PlayBenchmark does not return where this binary is a program that a benchmark measures.
func PlayBenchmark() {
	if heap := os.Getenv(heapEnv); heap != "" {
		os.Exit(heapMain(heap))
	}
	if what := os.Getenv(transferEnv); what != "" {
		os.Exit(transferMain(what))
	}
	if count := os.Getenv(writesEnv); count != "" {
		os.Exit(writesMain(count))
	}
	if count := os.Getenv(sendsEnv); count != "" {
		os.Exit(sendsMain(count))
	}
	if size := os.Getenv(printsEnv); size != "" {
		os.Exit(printsMain(size))
	}
	if os.Getenv(measureEnv) == "" {
		return
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(),
		func(e string) bool { return strings.HasPrefix(e, measureEnv+"=") })
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		os.Exit(1)
	}
	fmt.Println(usage.Maxrss)
	os.Exit(0)
}

// release builds the program as it is released, and installs it: a copy. What the
// linker has written is in small pieces in the kernel's memory, because it writes
// through a mapping; each start takes one part in twenty longer from them than from a
// file that was copied, or read from a disk, as what others install is.
func release(tb testing.TB) string {
	dir := tb.TempDir()
	built, name := filepath.Join(dir, "built"), filepath.Join(dir, "sallyport")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built,
		"github.com/sallyport-dev/sallyport/cmd/sallyport")
	cmd.Env = append(testenv.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(built)
	if err == nil {
		err = testenv.WriteProgram(name, program)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return name
}

// BenchmarkWholeProcess guards: the program started, a command run in its
// sandbox and the program ended takes at most 1.4 of a short bubblewrap line,
// and 0.2 of what the native "codex sandbox" takes where it is installed.
func BenchmarkWholeProcess(b *testing.B) {
	testenv.NeedUserNS(b)
	testenv.NeedProgram(b, "bwrap")
	program, ws := release(b), workspace(b)
	run := func(args ...string) func() error {
		return func() error {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = ws
			return cmd.Run()
		}
	}
	vs := []Variant{
		{"sallyport", run(program, "run", "--", "/bin/true")},
		{"bwrap-short", run(append(shortBwrap(ws), "/bin/true")...)},
		{"bare", run("/bin/true")},
	}
	if codex, err := exec.LookPath("codex"); err == nil {
		vs = append(vs, Variant{"codex", run(codex, "sandbox", "--", "/bin/true")})
	}
	if native := os.Getenv("SALLYPORT_BENCH_CODEX"); native != "" {
		// the binary that the codex wrapper starts
		vs = append(vs, Variant{"codex-native", run(native, "sandbox", "--", "/bin/true")})
	}
	compare(b, vs)
}

// captureSize is what BenchmarkCapture sends through the pipes.
const captureSize = 512 << 20

// BenchmarkCapture guards: 512 MiB through the pipes of a captured command take
// at most 1.5 of the time of "head | cat", and the program that does it, its
// JSON answer included, stays below 32 MiB.
func BenchmarkCapture(b *testing.B) {
	testenv.NeedUserNS(b)
	program, ws := release(b), workspace(b)
	size := strconv.Itoa(captureSize)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws)}
	defer r.Close()
	vs := []Variant{
		{"captured", func() error {
			cmd := sallyport.Command("head", "-c", size, "/dev/zero")
			cmd.Dir = ws
			res, err := r.Run(context.Background(), cmd)
			if err == nil && (res.ExitCode != 0 || res.Stdout.Total != captureSize) {
				err = fmt.Errorf("exit %d after %d bytes", res.ExitCode, res.Stdout.Total)
			}
			return err
		}},
		{"head-cat", func() error { return exec.Command("sh", "-c", "head -c "+size+" /dev/zero | cat >/dev/null").Run() }},
	}
	for b.Loop() {
		times, err := Rounds(rounds/2, vs)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-head-cat")
		b.ReportMetric(float64(Middle(times[0]).Milliseconds()), "captured-ms")
	}
	b.ReportMetric(peak(b, ws, program, "run", "--json", "--", "head", "-c", size,
		"/dev/zero")/1024, "peak-MiB")
}

// peak runs a program below a small parent and returns its peak memory in KiB.
func peak(b *testing.B, dir string, args ...string) float64 {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), measureEnv+"=1")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib
}

// BenchmarkThreads guards: 200 commands at once need no thread each.
func BenchmarkThreads(b *testing.B) {
	testenv.NeedUserNS(b)
	ws := workspace(b)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws)}
	defer r.Close()
	const commands = 200
	for b.Loop() {
		gate, release := io.Pipe()
		started := make(chan struct{}, commands)
		var wg sync.WaitGroup
		errs := make([]error, commands)
		for i := range commands {
			wg.Go(func() {
				cmd := sallyport.Command("sh", "-c", "echo up; read line")
				cmd.Dir, cmd.Stdin = ws, gate
				cmd.Stdout = writerFunc(func(p []byte) (int, error) {
					started <- struct{}{}
					return len(p), nil
				})
				_, errs[i] = r.Run(context.Background(), cmd)
			})
		}
		for range commands {
			<-started
		}
		b.ReportMetric(threads(b), "threads")
		release.Close()
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			b.Fatal(err)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// threads is how many threads this process has.
func threads(b *testing.B) float64 {
	b.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	return float64(len(entries))
}
