// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// BenchmarkFleet guards what a hub, a node and a gateway add on one machine, against an exec-server of the
// same program, both by WebSocket and by turns: a process takes at most twice as long from its start to its
// exit, and 256 MiB of output come at least half as fast, as JSON and as binary messages.
func BenchmarkFleet(b *testing.B) {
	program, store := benchProgram(b), filepath.Join(b.TempDir(), "hub")
	hub := serves(b, program, "fleet", "hub", "--listen", "127.0.0.1:0", "--store", store)
	serves(b, program, "fleet", "node", "--nats", hub, "--name", "n", "--slots", "4")
	gateway := serves(b, program, "fleet", "gateway", "--nats", hub, "--listen", "ws://127.0.0.1:0")
	direct := serves(b, program, "exec-server", "--listen", "ws://127.0.0.1:0")
	size := 256 << 20
	if e2e.OnlyOnce() {
		size = 8 << 20
	}
	for _, of := range []struct {
		name           string
		rounds, length int
		binary         bool
	}{{"start", 200, 0, false}, {"output", 5, size, false}, {"binary output", 5, size, true}} {
		b.Run(of.name, func(b *testing.B) {
			ways := []e2e.Variant{{Name: "fleet"}, {Name: "direct"}}
			for i, url := range []string{gateway, direct} {
				c := newCounter(b, url, of.binary)
				ways[i].Run = func() error { return c.run(of.length) }
			}
			for b.Loop() {
				times, err := e2e.Rounds(of.rounds, ways)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(e2e.Middle(times[0]).Microseconds())/1000, "ms-fleet")
				b.ReportMetric(float64(e2e.Middle(times[1]).Microseconds())/1000, "ms-direct")
				b.ReportMetric(e2e.Ratio(times[0], times[1]), "times")
			}
		})
	}
}

// serves starts a server, and returns its first line.
func serves(b *testing.B, program string, words ...string) string {
	c := exec.Command(program, words...)
	home := b.TempDir()
	c.Dir, c.Env = home, append(testenv.Environ(), "HOME="+home)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("%q says nothing: %v", words, err)
	}
	return strings.TrimSpace(line)
}

// A counter runs processes and counts their output.
type counter struct {
	*wire.Client
	last, bytes int // of the one that runs
	closed      chan struct{}
}

func newCounter(b *testing.B, url string, binary bool) *counter {
	c := &counter{closed: make(chan struct{})}
	opts := wire.ClientOptions{Name: "bench", Extensions: true, OnNotify: c.notify}
	if binary {
		opts.OnBinary = func(m []byte) {
			if o, err := wire.DecodeFrame(m); err == nil {
				c.bytes += len(o.Chunk.Chunk)
			}
		}
	}
	var err error
	if c.Client, err = wire.Connect(b.Context(), wire.ClientTarget{URL: url}, opts); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *counter) notify(method string, params json.RawMessage) {
	switch method {
	case wire.MethodOutput:
		var o wire.Output
		_ = json.Unmarshal(params, &o) // the server's own
		c.bytes += len(o.Chunk.Chunk)
	case wire.MethodClosed:
		c.closed <- struct{}{}
	}
}

// run runs a process that prints so many bytes, from its start to its end.
func (c *counter) run(length int) error {
	c.last++
	c.bytes = 0
	err := c.Call(context.Background(), "process/start", map[string]any{"processId": strconv.Itoa(c.last),
		"argv": []string{"head", "-c", strconv.Itoa(length), "/dev/zero"}, "cwd": wire.URI("/"), "tty": false,
		"env": map[string]string{"PATH": "/usr/bin:/bin"}}, nil)
	if err != nil {
		return err
	}
	select {
	case <-c.closed:
	case <-c.Done():
		return errors.New("the connection has ended")
	}
	if c.bytes != length {
		return fmt.Errorf("%d bytes of %d", c.bytes, length)
	}
	return nil
}
