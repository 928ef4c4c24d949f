// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// both runs a benchmark through a gateway and a hub, and with the same exec-server directly, in turns, over
// WebSockets in this process's memory: pairs, so that a busy machine slows both.
func both(b *testing.B, run func(b *testing.B, c *client, n int)) {
	s := newSite(b)
	s.node("n1", 64, nil)
	fleet := s.client(s.gateway(gateway.Options{}), nil)
	server := execserver.New(execserver.Options{Environ: os.Environ(), Dir: b.TempDir()})
	b.Cleanup(func() { _ = server.Close() })
	direct := s.over(func(context.Context) (wire.Stream, error) {
		near, far := wire.Pipe()
		go func() { _ = server.Serve(far, "") }()
		return near, nil
	})
	var times [2][]float64
	for i := 0; b.Loop(); i++ {
		for j, c := range []*client{direct, fleet} {
			begin := now()
			run(b, c, i)
			times[j] = append(times[j], now()-begin)
		}
	}
	b.ReportMetric(median(times[0])*1000, "ms-direct")
	b.ReportMetric(median(times[1])*1000, "ms-fleet")
	b.ReportMetric(median(times[1])/median(times[0]), "ratio")
}

// BenchmarkStart guards that a process takes at most twice as long from its start to its exit through gateway
// and hub as at the same exec-server directly.
func BenchmarkStart(b *testing.B) {
	both(b, func(b *testing.B, c *client, n int) {
		id := strconv.Itoa(n)
		if err := c.start(id, "/bin/true"); err != nil {
			b.Fatal(err)
		}
		c.await(id)
	})
}

// BenchmarkOutput guards that 256 MiB of output take at most twice as long.
func BenchmarkOutput(b *testing.B) {
	both(b, func(b *testing.B, c *client, n int) {
		id := strconv.Itoa(n)
		c.counts = true
		if err := c.start(id, "head", "-c", fmt.Sprint(256<<20), "/dev/zero"); err != nil {
			b.Fatal(err)
		}
		c.await(id)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.bytes[id] != 256<<20 {
			b.Errorf("%d bytes", c.bytes[id])
		}
	})
}

// take counts output of a benchmark.
func (c *client) take(params json.RawMessage) {
	var o wire.Output
	_ = json.Unmarshal(params, &o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts {
		c.bytes[o.ProcessID] += len(o.Chunk.Chunk)
	} else {
		c.output[o.ProcessID] += string(o.Chunk.Chunk)
	}
}
