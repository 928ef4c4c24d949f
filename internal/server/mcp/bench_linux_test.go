// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// BenchmarkMCPExec compares exec of true, a round trip in lines in a sandbox, with true in bwrap, a
// process of its own, in turns: the bar is 1.2.
func BenchmarkMCPExec(b *testing.B) {
	bwrap := testenv.NeedProgram(b, "bwrap")
	c, dir := speak(b)
	var ours, theirs []time.Duration
	for b.Loop() {
		began := time.Now()
		c.exec(1, members{"cmd": "true"})
		c.next()
		ours = append(ours, time.Since(began))
		began = time.Now()
		cmd := exec.Command(bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev",
			"/dev", "--proc", "/proc",
			"--tmpfs", "/tmp", "--bind", dir, dir, "--chdir", dir, "true")
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(began))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	b.ReportMetric(float64(ours[len(ours)/2].Microseconds()), "us/exec-p50")
	b.ReportMetric(float64(theirs[len(theirs)/2].Microseconds()), "us/bwrap-p50")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(theirs[len(theirs)/2]), "ratio")
	_ = c.in.Close()
	if err := <-c.done; err != nil {
		b.Error(err)
	}
}
