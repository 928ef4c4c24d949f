// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tty

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// forwarding catches signals, and never ends this process: a busy machine may keep the reader from reading
// for as long as a program may take.
func forwarding() *Signals {
	f := newSignals(new(Console))
	f.late = time.Hour
	f.begin()
	<-f.Ready
	return f
}

// TestForwardOrder sends what this process hears on, in order, and stops when it
// is asked to, also when no program reads.
func TestForwardOrder(t *testing.T) {
	f := forwarding()
	numbers := f.Numbers
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
	f.Close(false)
	select {
	case n := <-numbers:
		t.Fatalf("%d after the end", n)
	default:
	}
}

// TestSignalBeforeStart: a start that waits can be ended, and other signals wait for the program.
func TestSignalBeforeStart(t *testing.T) {
	f := forwarding()
	ended := make(chan syscall.Signal, 1)
	f.end, f.late = func(s syscall.Signal) { ended <- s }, time.Nanosecond
	f.arrived <- syscall.SIGTERM
	if s := <-ended; s != syscall.SIGTERM {
		t.Errorf("ended by %v", s)
	}
	f.arrived <- syscall.SIGUSR1
	if n := <-f.Numbers; n != int(syscall.SIGUSR1) {
		t.Errorf("signal %d, want SIGUSR1", n)
	}
	f.Close(false)
}

// TestHangUpOnce: a terminal that goes away is reported once, by the reader or by the signal.
func TestHangUpOnce(t *testing.T) {
	tests := []struct {
		name  string
		first func(*Signals)
		then  func(*Signals)
	}{
		{"the reader first", (*Signals).hangUp, func(f *Signals) { f.arrived <- syscall.SIGHUP }},
		{"the signal first", func(f *Signals) { f.arrived <- syscall.SIGHUP }, (*Signals).hangUp},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := forwarding()
			defer f.Close(false)
			var done sync.WaitGroup
			defer done.Wait()
			done.Go(func() {
				tt.first(f)
				tt.then(f)
				f.arrived <- syscall.SIGTERM
			})
			var got []int
			for n := range f.Numbers {
				if n != 0 {
					got = append(got, n)
				}
				if n == int(syscall.SIGTERM) {
					break
				}
			}
			if want := []int{int(syscall.SIGHUP), int(syscall.SIGTERM)}; !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
