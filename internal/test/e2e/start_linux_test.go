// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// rounds is how often each variant runs: the medians need at least 30.
const rounds = 60

// null is a descriptor for standard streams that nobody listens to.
func null(tb testing.TB) *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

// started returns a function that starts what r describes and waits for its end.
func started(tb testing.TB, in starter, r *executor.Spec) func() error {
	f := null(tb)
	return func() error { return play(in, r, f) }
}

// starter is a host or a shared sandbox.
type starter interface {
	Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*linux.Child, error)
}

// play starts what r describes and waits for its end.
func play(in starter, r *executor.Spec, f *os.File) error {
	c, err := in.Start(context.Background(), r, [3]*os.File{f, f, f})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(new(executor.Exit)) }()
	if code, _, err := c.Wait(); err != nil || code != 0 {
		return fmt.Errorf("exit %d, %w", code, err)
	}
	return c.WaitAll()
}

// confined returns a function that runs /bin/true under the default policy.
func confined(tb testing.TB, host *linux.Host, ws string) func() error {
	r := &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"}),
	}
	return started(tb, host, r)
}

func bare() error { return exec.Command("/bin/true").Run() }

// shortBwrap is the line that people type.
func shortBwrap(ws string) []string {
	return []string{
		"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", ws, ws,
		"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc",
	}
}

// fullBwrap asks bubblewrap for the same walls as the native level, as far as
// it can: namespaces, mounts, covers, and a filter of the same rules. It has
// no Landlock.
func fullBwrap(host *linux.Host, ws, tmp, state string) []string {
	line := []string{
		"bwrap", "--new-session", "--die-with-parent", "--unshare-all", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--tmpfs", "/sys",
		"--ro-bind", "/sys/devices/system", "/sys/devices/system", "--bind", tmp, "/tmp", "--tmpfs", state,
		"--bind", ws, ws,
	}
	for _, n := range sandbox.ProtectedNames() {
		line = append(line, "--ro-bind-try", filepath.Join(ws, n), filepath.Join(ws, n))
	}
	facts := host.Facts()
	for _, n := range facts.ProcCovers {
		line = append(line, "--ro-bind", "/proc/"+n, "/proc/"+n)
	}
	for _, n := range facts.ProcMasks {
		line = append(line, "--ro-bind", "/dev/null", "/proc/"+n)
	}
	return append(line, "--chdir", ws, "--seccomp", "3")
}

// filterFile writes the default filter as bubblewrap wants it.
func filterFile(tb testing.TB, host *linux.Host) string {
	prog, err := seccomp.Program(seccomp.Options{Arch: host.Facts().Arch, OwnPID: true})
	if err != nil {
		tb.Fatal(err)
	}
	var b []byte
	for _, w := range prog {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	name := filepath.Join(tb.TempDir(), "filter")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func runWithFilter(line []string, filter string) error {
	f, err := os.Open(filter)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(line[0], append(line[1:len(line):len(line)], "/bin/true")...)
	cmd.ExtraFiles = []*os.File{f}
	return cmd.Run()
}

// placeEnv names the directory in which workspaces are made. Where many files were
// removed in the last minutes, ext4 takes a millisecond to find a free inode for a new one.
const placeEnv = "SALLYPORT_BENCH_DIR"

func place() string {
	if dir := os.Getenv(placeEnv); dir != "" {
		return dir
	}
	return "/var/tmp"
}

// workspace is a directory with two protected names, outside of /tmp.
func workspace(tb testing.TB) string {
	ws, err := os.MkdirTemp(place(), "sallyport-bench-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(ws) })
	for _, n := range []string{".git", ".codex"} {
		if err := os.Mkdir(filepath.Join(ws, n), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return ws
}

// variants are the ways to start /bin/true.
func variants(tb testing.TB, host *linux.Host) []Variant {
	ws, tmp := workspace(tb), tb.TempDir()
	vs := []Variant{{"native", confined(tb, host, ws)}, {"bare", bare}}
	if _, err := exec.LookPath("bwrap"); err != nil {
		return vs
	}
	filter := filterFile(tb, host)
	full := fullBwrap(host, ws, tmp, tb.TempDir())
	short := shortBwrap(ws)
	return append(vs,
		Variant{"bwrap-same", func() error { return runWithFilter(full, filter) }},
		Variant{"bwrap-short", func() error {
			return exec.Command(short[0], append(short[1:len(short):len(short)], "/bin/true")...).Run()
		}})
}

// compare reports the middle of every variant, and the ratios of the first one
// to the others.
func compare(b *testing.B, vs []Variant) {
	b.Helper()
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

// BenchmarkStart guards: a start with every wall on costs at most 0.35 of
// bubblewrap with the same isolation, 0.55 of a short bubblewrap line and 3.6
// of a bare start.
func BenchmarkStart(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	vs := variants(b, host)
	compare(b, vs)
}

// BenchmarkRate guards: with 8 starts in flight, the rate is at least 3 times
// that of bubblewrap with the same isolation.
func BenchmarkRate(b *testing.B) {
	testenv.NeedUserNS(b)
	testenv.NeedProgram(b, "bwrap")
	host := new(linux.Host)
	defer host.Close()
	vs := variants(b, host)
	const inFlight, each = 8, 12
	batch := func(run func() error) func() error {
		return func() error {
			var wg sync.WaitGroup
			errs := make([]error, inFlight)
			for i := range inFlight {
				wg.Go(func() {
					for range each {
						if err := run(); err != nil {
							errs[i] = err
						}
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	pair := []Variant{{"native", batch(vs[0].Run)}, {"bwrap-same", batch(vs[2].Run)}}
	for b.Loop() {
		times, err := Rounds(7, pair)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[1], times[0]), "x-rate-bwrap-same")
		b.ReportMetric(inFlight*each/Middle(times[0]).Seconds(), "starts/s")
	}
}

// BenchmarkLandlockStart guards: a start without namespaces costs at most 1.5 of
// a bare one.
func BenchmarkLandlockStart(b *testing.B) {
	testenv.NeedLandlock(b, plan.LandlockLeast)
	host := &linux.Host{Only: plan.LevelLandlock}
	defer host.Close()
	compare(b, []Variant{{"landlock", confined(b, host, workspace(b))}, {"bare", bare}})
}
