// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"math"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
)

// TestUsageSources checks which source of a peak is preferred.
func TestUsageSources(t *testing.T) {
	rusage := launch.Usage{Known: true, User: 3, System: 4, Peak: 100 << 20, Read: 5, Written: 6}
	for _, test := range []struct {
		name   string
		caller int64
		u      launch.Usage
		s      seen
		peak   int64
		by     string
	}{
		{"more than the caller", 10 << 20, rusage, seen{}, 100 << 20, executor.ByRusage},
		{"as much as the caller", 100 << 20, rusage, seen{}, 0, ""},
		{"a little more", 97 << 20, rusage, seen{}, 0, ""},
		{"nothing known of the caller", math.MaxInt64, rusage, seen{}, 0, ""},
		{"watched", 100 << 20, rusage, seen{memory: 7}, 7, executor.ByWatch},
		{"reaper killed", 1, launch.Usage{}, seen{}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &Bounds{callerPeak: test.caller}
			got := b.usage(test.u, "", counted{}, test.s)
			if (got.PeakMemory == nil) != (test.peak == 0) || got.PeakMemory != nil &&
				*got.PeakMemory != test.peak || got.PeakMemoryBy != test.by {
				t.Errorf("%+v", got)
			}
			if known := got.CPU != nil && *got.CPU == 7 && *got.Read == 5 &&
				*got.Written == 6; known != test.u.Known {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestParseMemoryFiles(t *testing.T) {
	if got := parseStatm("100 25 3 1 0 9 0\n"); got != 25 {
		t.Errorf("%d", got)
	}
	for _, text := range []string{"", "1", "1 x", "1 -5", "1 99999999999999999999"} {
		if got := parseStatm(text); got != 0 {
			t.Errorf("%q: %d", text, got)
		}
	}
	const rollup = "00400000-7fff [rollup]\nRss: 9 kB\nPss: 8 kB\nPss_Anon: 5 kB\nPss_File: 2 kB\nPss_Shmem: 1 kB\nSwapPss: 4 kB\n"
	if got, ok := parseRollup(rollup); got != 10<<10 || !ok {
		t.Errorf("%d, %v", got, ok)
	}
	if got, ok := parseRollup("Pss: 8 kB\n"); ok {
		t.Errorf("%d of a kernel that does not tell", got)
	}
}

func FuzzMemoryFiles(f *testing.F) {
	f.Add("1 2 3\nPss_Anon: 5 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, _ := parseRollup(text)
		if m := parseStatm(text); m < 0 || n < 0 {
			t.Errorf("%d, %d", m, n)
		}
	})
}
