// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// BenchmarkApply applies 10 000 files beside cp -a of the same files, and reports the median of the
// ratios. New has only new files, changed replaces those of the host. Removing the stage counts.
func BenchmarkApply(b *testing.B) {
	cp := testenv.NeedProgram(b, "cp")
	for _, changed := range []bool{false, true} {
		b.Run(fmt.Sprintf("changed=%v", changed), func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				ratios = append(ratios, applyBesideCopy(b, cp, changed, len(ratios)%2 == 0))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x_cp")
		})
	}
}

const benchFiles = 10_000

// applyBesideCopy returns how many times as long an apply takes as a copy.
func applyBesideCopy(b *testing.B, cp string, changed, first bool) float64 {
	top := b.TempDir()
	x := newTrial(b, mkdir(b, top, "x"))
	copied := mkdir(b, top, "copied")
	if changed {
		fill(b, x.root, "old text")
		fill(b, copied, "old text")
	}
	fill(b, filepath.Join(x.dir, "upper"), "new")
	x.open()
	var applied, copying time.Duration
	apply := func() {
		start := time.Now()
		a, err := Apply(context.Background(), x.stage, executor.ApplyOptions{})
		if err == nil {
			err = safefile.RemoveTreePath(filepath.Join(x.dir, "upper"))
		}
		if applied = time.Since(start); err != nil || len(a.Applied) != benchFiles {
			b.Fatal(err, len(a.Applied))
		}
	}
	if first {
		apply()
	}
	fill(b, filepath.Join(top, "from"), "new")
	start := time.Now()
	if out, err := exec.Command(cp, "-a", filepath.Join(top, "from")+"/.",
		copied).CombinedOutput(); err != nil {
		b.Fatal(string(out))
	}
	copying = time.Since(start)
	if !first {
		apply()
	}
	return applied.Seconds() / copying.Seconds()
}

// fill makes files of about 2 KiB in directories.
func fill(b testing.TB, dir, text string) {
	b.Helper()
	for i := range benchFiles {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		const lines = 300
		body := strings.Repeat(fmt.Sprintf("%s %d\n", text, i), lines)
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i)), []byte(body), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

var _ = changes.Now
