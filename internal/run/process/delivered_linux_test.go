// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestDelivered checks that bytes count as delivered when Output has returned from them,
// not when they were read.
func TestDelivered(t *testing.T) {
	tests := []struct {
		name string
		pump func(t *testing.T, cfg *Config) (p pump, end *os.File)
	}{
		{"pipes", func(t *testing.T, cfg *Config) (pump, *os.File) {
			t.Helper()
			p, ends, err := newPump(cfg, [2]bool{true, true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ends[0].Close() })
			return p, ends[1]
		}},
		{"terminal", func(t *testing.T, cfg *Config) (pump, *os.File) {
			t.Helper()
			master, slave := testenv.OpenTerminal(t, 80, 24)
			p, err := newTerminal(cfg, master)
			if err != nil {
				t.Fatal(err)
			}
			return p, slave
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var order Order
			defer order.Close()
			reading, goOn := make(chan struct{}), make(chan struct{})
			p, end := tt.pump(t, &Config{Order: &order, Output: func(executor.Stream, []byte) {
				reading <- struct{}{}
				<-goOn
			}})
			if !p.delivered() {
				t.Error("before anything was written")
			}
			if _, err := end.WriteString("a"); err != nil {
				t.Fatal(err)
			}
			if p.delivered() {
				t.Error("it was not read yet")
			}
			p.start()
			<-reading
			if p.delivered() {
				t.Error("Output has not returned yet")
			}
			close(goOn)
			begin := time.Now()
			for !p.delivered() {
				if time.Since(begin) > enough {
					t.Fatal("it is never delivered")
				}
			}
			_ = end.Close()
			p.commandEnded()
			p.finish()
		})
	}
}

// TestDeliveredAtTheEnd asks while pipes are closed.
func TestDeliveredAtTheEnd(t *testing.T) {
	for range 100 {
		p := start(t, Config{}, sh("echo a; echo b >&2"))
		for over := false; !over; {
			p.Delivered()
			select {
			case <-p.done:
				over = true
			default:
			}
		}
		wait(t, p)
		if !p.Delivered() {
			t.Fatal("something was not delivered, and everything is over")
		}
	}
}
