// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// benchMain makes and removes a directory so often, and prints the nanoseconds that each call took.
func benchMain(at string, n int) error {
	begin := unix.Timespec{}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &begin); err != nil {
		return err
	}
	for range n {
		if err := unix.Mkdir(at, 0o700); err != nil {
			return err
		}
		if err := unix.Rmdir(at); err != nil {
			return err
		}
	}
	var end unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &end)
	fmt.Println((end.Nano() - begin.Nano()) / int64(2*n))
	return err
}

// BenchmarkAsking compares calls whose approver answers at once with the same calls in the workspace.
func BenchmarkAsking(b *testing.B) {
	a := newArena(b)
	for _, at := range []string{a.ws + "/new", a.out + "/new"} {
		b.Run(map[bool]string{true: "asked", false: "workspace"}[at == a.out+"/new"], func(b *testing.B) {
			j := &job{ask: says(true).ask, args: []string{os.Getenv(programVar), partAsked, "bench",
				"ws=" + a.ws, "at=" + at, fmt.Sprintf("n=%d", b.N)}}
			res, err := a.run(b, j)
			must(b, err)
			var each float64
			if _, err := fmt.Sscan(res.out, &each); err != nil {
				b.Fatalf("%+v", res)
			}
			b.ReportMetric(each, "ns/call")
		})
	}
}
