// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// measureEnv makes the test binary a small program that runs its arguments and
// prints their peak memory. A child's peak counts that of its parent at the
// time of the fork, so the parent must be small.
const measureEnv = "SALLYPORT_BENCH_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(measureEnv) == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(measureEnv)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
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

// release builds the program as it is released.
func release(tb testing.TB) string {
	name := filepath.Join(tb.TempDir(), "sallyport")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", name, "github.com/sallyport-dev/sallyport/cmd/sallyport")
	cmd.Env = append(testenv.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return name
}

// BenchmarkWholeProcess guards: the program started, a command run in its
// sandbox and the program ended takes at most 1.3 of a short bubblewrap line,
// and 0.1 of what "codex sandbox" takes where that can be had.
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
	for b.Loop() {
		times, err := Rounds(rounds, vs)
		if err != nil {
			b.Fatal(err)
		}
		for i := range vs {
			b.ReportMetric(float64(Middle(times[i]).Microseconds()), vs[i].Name+"-us")
			if i > 0 {
				b.ReportMetric(Ratio(times[0], times[i]), "x-"+vs[i].Name)
			}
		}
	}
}

// BenchmarkCapture guards: 512 MiB through the pipes of a captured command take
// at most 1.5 of the time of "head | cat", and the program stays below 32 MiB.
func BenchmarkCapture(b *testing.B) {
	testenv.NeedUserNS(b)
	program, ws := release(b), workspace(b)
	const size = "536870912"
	vs := []Variant{
		{"captured", func() error {
			cmd := exec.Command(program, "run", "--json", "--", "head", "-c", size, "/dev/zero")
			cmd.Dir = ws
			out, err := cmd.Output()
			if err != nil {
				return err
			}
			var res struct {
				Bytes int64 `json:"stdout_bytes"`
			}
			if err := json.Unmarshal(out, &res); err != nil || strconv.FormatInt(res.Bytes, 10) != size {
				return fmt.Errorf("captured %d bytes: %w", res.Bytes, err)
			}
			return nil
		}},
		{"head-cat", func() error { return exec.Command("sh", "-c", "head -c "+size+" /dev/zero | cat >/dev/null").Run() }},
	}
	for b.Loop() {
		times, err := Rounds(7, vs)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-head-cat")
		b.ReportMetric(float64(Middle(times[0]).Milliseconds()), "captured-ms")
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self, program, "run", "--json", "--", "head", "-c", size, "/dev/zero")
	cmd.Env = append(os.Environ(), measureEnv+"=1")
	cmd.Dir, cmd.Stderr = ws, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	kib, err := strconv.ParseFloat(string(out[:len(out)-1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(kib/1024, "peak-MiB")
}
