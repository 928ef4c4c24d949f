// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// repository makes a git repository outside of /tmp.
func repository(tb testing.TB) string {
	tb.Helper()
	testenv.NeedProgram(tb, "git")
	ws, err := os.MkdirTemp(place(), "sallyport-bench-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(ws) })
	cmd := exec.Command("git", "init", "-q")
	cmd.Dir = ws
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return ws
}

// once starts /bin/true with a Host of its own, as the command line does, so that
// everything that is made for it is made and removed.
func once(tb testing.TB, ws string, entries ...sandbox.Entry) func() error {
	f := null(tb)
	r := &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(ws).WithEntries(entries...).Bind(sandbox.Places{Dir: ws,
			SlashTmp: "/tmp"}),
	}
	return func() error {
		host := new(linux.Host)
		c, err := host.Start(context.Background(), r, [3]*os.File{f, f, f})
		if err != nil {
			return err
		}
		if code, _, err := c.Wait(); err != nil || code != 0 {
			return fmt.Errorf("exit %d, %w", code, err)
		}
		if err := c.WaitAll(); err != nil {
			return err
		}
		if err := c.Close(new(executor.Exit)); err != nil {
			return err
		}
		return host.Close()
	}
}

// BenchmarkBigTree guards: in a tree of 100 000 files in 2 000 directories with 50
// nested repositories, a run starts at most 17 ms later than in an empty repository: the
// search for repositories remembers nothing, and ends after 15 ms.
func BenchmarkBigTree(b *testing.B) {
	testenv.NeedUserNS(b)
	big, small := repository(b), repository(b)
	fillTree(b, big)
	pair := []Variant{{"big", once(b, big)}, {"small", once(b, small)}}
	for b.Loop() {
		times, err := Rounds(rounds, pair)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((Middle(times[0]) - Middle(times[1])).Microseconds()), "extra-us")
	}
}

// fillTree makes 100 000 files in 2 000 directories, with 50 repositories.
func fillTree(b testing.TB, big string) {
	b.Helper()
	const files, every = 50, 40
	directories := 2000
	if OnlyOnce() {
		directories = 200
	}
	for i := range directories {
		dir := filepath.Join(big, fmt.Sprintf("d%02d", i/100), fmt.Sprintf("e%02d", i%100))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		if i%every == 0 {
			git := filepath.Join(dir, ".git")
			for _, sub := range []string{"objects", "refs/heads"} {
				if err := os.MkdirAll(filepath.Join(git, sub), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			for name, text := range map[string]string{"HEAD": "ref: refs/heads/master\n",
				"config": "[core]\n\tbare = false\n"} {
				if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o644); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkDenyGlob guards: in a tree of 18 000 directories with 36 000 files, a deny pattern
// delays the first start by at most 1.5 s, and later ones by at most 50 ms.
func BenchmarkDenyGlob(b *testing.B) {
	testenv.NeedUserNS(b)
	ws := repository(b)
	directories := 18_000
	if OnlyOnce() {
		directories = 1800
	}
	for i := range directories {
		dir := filepath.Join(ws, fmt.Sprintf("d%02d", i/600), fmt.Sprintf("e%02d", i/20%30),
			fmt.Sprintf("f%02d", i%20))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	// What was just made is read again until it is too old to change unseen.
	const young = 3 * time.Second
	made := time.Now()
	deny := once(b, ws, sandbox.GlobEntry("**/.env"))
	if err := deny(); err != nil {
		b.Fatal(err)
	}
	first := time.Since(made)
	for time.Since(made) < young {
		if err := deny(); err != nil {
			b.Fatal(err)
		}
	}
	pair := []Variant{{"deny", deny}, {"none", once(b, ws)}}
	for b.Loop() {
		times, err := Rounds(rounds, pair)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(first.Milliseconds()), "first-ms")
		b.ReportMetric(float64((Middle(times[0]) - Middle(times[1])).Microseconds()), "extra-us")
	}
}
