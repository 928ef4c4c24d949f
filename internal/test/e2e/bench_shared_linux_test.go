// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func trueIn(ws string) *executor.Spec {
	return &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"}),
	}
}

func opened(tb testing.TB, host *linux.Host, spec *executor.Spec) *linux.Shared {
	s, err := host.Open(context.Background(), &executor.SharedSpec{Policy: spec.Policy})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// BenchmarkSharedStart guards: a start in a living shared sandbox costs at most 0.9 of one in a sandbox
// of its own, and 2.7 of a bare one. The aims are 0.5 and 1.6.
func BenchmarkSharedStart(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws, err := os.MkdirTemp(place(), "sallyport-bench-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(ws)
	spec := trueIn(ws)
	spec.NoObserver = true
	compare(b, []Variant{{"shared", started(b, opened(b, host, spec), spec)}, {"bare", bare},
		{"own", started(b, host, spec)}})
}

// BenchmarkSharedObserved guards: with an observer and four protected names in a repository it costs at
// most 0.9 of one in a sandbox of its own, and 3 of a bare one. The aim is 2 of a bare one.
func BenchmarkSharedObserved(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	for _, n := range []string{".agents", ".sallyport"} {
		if err := os.Mkdir(filepath.Join(ws, n), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	spec := trueIn(ws)
	compare(b, []Variant{{"shared", started(b, opened(b, host, spec), spec)}, {"bare", bare},
		{"own", started(b, host, spec)}})
}

// BenchmarkSharedOpen guards: to open a shared sandbox and start its first command takes at most 1.45 of a
// start in a sandbox of its own. The aim is 1.15.
func BenchmarkSharedOpen(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	spec := trueIn(workspace(b))
	ctx, f := context.Background(), null(b)
	var last *linux.Shared
	open := func() error {
		s, err := host.Open(ctx, &executor.SharedSpec{Policy: spec.Policy})
		if err != nil {
			return err
		}
		last = s
		return play(s, spec, f)
	}
	between := func() (err error) { // to close it is no part of it
		if last != nil {
			err, last = last.Close(), nil
		}
		return err
	}
	vs := []Variant{{"open", open}, {"own", started(b, host, spec)}}
	for b.Loop() {
		times, err := RoundsBetween(rounds, vs, between)
		if err == nil {
			err = between()
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(Middle(times[0]).Microseconds()), "open-us")
		b.ReportMetric(Ratio(times[0], times[1]), "x-own")
	}
}

// BenchmarkSharedRate guards: with 8 starts in flight, the rate in a shared sandbox is at least 1.3
// times that of sandboxes of their own. The aim is 2.5.
func BenchmarkSharedRate(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	spec := trueIn(workspace(b))
	const inFlight, each = 8, 12
	batch := func(run func() error) func() error {
		return func() error {
			errs := make(chan error, inFlight)
			var wg sync.WaitGroup
			for range inFlight {
				wg.Go(func() {
					for range each {
						if err := run(); err != nil {
							errs <- err
							return
						}
					}
				})
			}
			wg.Wait()
			close(errs)
			return <-errs
		}
	}
	pair := []Variant{{"shared", batch(started(b, opened(b, host, spec), spec))},
		{"own", batch(started(b, host, spec))}}
	for b.Loop() {
		times, err := Rounds(7, pair)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[1], times[0]), "x-rate-own")
		b.ReportMetric(inFlight*each/Middle(times[0]).Seconds(), "starts/s")
	}
}

// BenchmarkSharedBigTree guards: in a tree of 100 000 files with 50 repositories, a command of a shared
// sandbox starts at most 17 ms later than in an empty repository, as in BenchmarkBigTree.
func BenchmarkSharedBigTree(b *testing.B) {
	testenv.NeedUserNS(b)
	big, small := repository(b), repository(b)
	fillTree(b, big)
	host := new(linux.Host)
	defer host.Close()
	bigSpec, smallSpec := trueIn(big), trueIn(small)
	pair := []Variant{{"big", started(b, opened(b, host, bigSpec), bigSpec)},
		{"small", started(b, opened(b, host, smallSpec), smallSpec)}}
	for b.Loop() {
		times, err := Rounds(rounds, pair)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((Middle(times[0]) - Middle(times[1])).Microseconds()), "extra-us")
	}
}

// BenchmarkSharedIdle guards: an idle shared sandbox in which a command has run takes at most 64 KiB of this
// process's and its holder's resident memory.
func BenchmarkSharedIdle(b *testing.B) {
	testenv.NeedUserNS(b)
	if name := os.Getenv(idleEnv); name != "" {
		measureShared(b, name)
		return
	}
	for b.Loop() {
		for unit, n := range measuredIn(b, "BenchmarkSharedIdle", idleEnv+"x=") {
			b.ReportMetric(n, unit)
		}
	}
}

// measureShared is BenchmarkSharedIdle in the process that has the sandboxes.
func measureShared(b *testing.B, name string) {
	const count = 64
	spec := trueIn(workspace(b))
	host := new(linux.Host)
	defer host.Close()
	f := null(b)
	open := func(n int) {
		for range n {
			s := opened(b, host, spec)
			if err := play(s, spec, f); err != nil {
				b.Fatal(err)
			}
		}
	}
	open(8)
	before := resident(b)
	open(count)
	after := resident(b)
	holders, found := childMemory(b)
	text, err := json.Marshal(map[string]float64{
		"KiB-each": (after.rss-before.rss)/count + holders/found, "own-KiB-each": (after.rss - before.rss) / count, "holder-KiB-each": holders / found,
	})
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// childMemory is the resident memory of this process's children in KiB, and how many they are.
func childMemory(b *testing.B) (sum, count float64) {
	b.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		b.Fatal(err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for pid := range strings.FieldsSeq(string(text)) {
			status, err := os.ReadFile("/proc/" + pid + "/status")
			if _, rest, ok := strings.Cut(string(status), "VmRSS:"); ok && err == nil {
				var n float64
				_, _ = fmt.Sscan(rest, &n)
				sum, count = sum+n, count+1
			}
		}
	}
	if count == 0 {
		b.Fatal("no holder")
	}
	return sum, count
}
