// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkOthers measures requests of a client that makes one now and then, alone and while what others
// have started, which have no connection any more, prints without end.
func BenchmarkOthers(b *testing.B) {
	floods := map[string]func(server testServer){
		"alone": func(testServer) {},
		"processes": func(server testServer) {
			for i := range 10 {
				c, _ := meet(b, server, nil)
				c.started(script(fmt.Sprint("flood", i), "/", "yes"))
				_ = c.close()
			}
		},
		"runs": func(server testServer) {
			d := drive(b, server, nil)
			for range 10 {
				d.start(nil, "yes")
			}
			_ = d.close()
		},
	}
	for _, name := range []string{"alone", "processes", "runs"} {
		b.Run(name, func(b *testing.B) {
			server := run(b, runOptions())
			floods[name](server)
			c, _ := meet(b, server, nil)
			var took []time.Duration
			for b.Loop() {
				<-time.After(2 * time.Millisecond)
				begin := time.Now()
				if m := c.call("environment/status", nil); m.Error != nil {
					b.Fatal(m.Error)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
