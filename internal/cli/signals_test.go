// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"os"
	"syscall"
	"testing"
)

// TestForwardOrder sends what this process hears on, in order, and stops when it
// is told to, also when nobody listens.
func TestForwardOrder(t *testing.T) {
	f := forwardSignals(nil)
	numbers := f.channel()
	<-f.ready
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if err := self.Signal(s); err != nil {
			t.Fatal(err)
		}
		if got := <-numbers; got != int(s) {
			t.Fatalf("got %d, want %d", got, int(s))
		}
	}
	f.stop(false)
	select {
	case n := <-numbers:
		t.Fatalf("%d after the end", n)
	default:
	}
}
