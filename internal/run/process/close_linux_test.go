// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestCloseStream checks that a pipe whose reading was given up has no reader, whether the pump
// waits, or Output has not returned, and that the other stream is read to its end.
func TestCloseStream(t *testing.T) {
	for _, test := range []struct {
		name   string
		closed executor.Stream
		inside bool // of Output
	}{{"waiting", 0, false}, {"delivering", 0, true}, {"stderr", 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			var order Order
			defer order.Close()
			other := 1 - test.closed
			came, goOn, got := make(chan struct{}, 8), make(chan struct{}), [2]string{}
			p, ends, err := newPump(&Config{Order: &order, Output: func(s executor.Stream, b []byte) {
				got[s] += string(b)
				came <- struct{}{}
				<-goOn
			}}, [2]bool{true, true})
			if err != nil {
				t.Fatal(err)
			}
			p.start()
			write := func(s executor.Stream, text string) {
				if _, err := ends[s].WriteString(text); err != nil {
					t.Fatal(err)
				}
				<-came
			}
			write(test.closed, "before")
			if !test.inside {
				close(goOn)
			}
			p.closeStream(test.closed)
			p.closeStream(test.closed) // once more changes nothing
			if test.inside {
				close(goOn)
			}
			// An error condition of the write end is told without being asked for.
			fds := []unix.PollFd{{Fd: int32(ends[test.closed].Fd())}}
			if n, err := testenv.Poll(fds, enough); n != 1 ||
				fds[0].Revents&unix.POLLERR == 0 {
				t.Fatalf("it has a reader: %v, %v", fds, err)
			}
			if _, err := ends[test.closed].WriteString("x"); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("a write: %v", err)
			}
			write(other, "one ")
			write(other, "two")
			closeFiles(ends[:])
			<-p.eof()
			p.finish()
			if got[test.closed] != "before" || got[other] != "one two" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCloseStreamAtTheEnd: a stream may be closed while the pump finishes, which does not wait for the
// other one then.
func TestCloseStreamAtTheEnd(t *testing.T) {
	for i := range 500 {
		p, ends, err := newPump(&Config{Output: func(executor.Stream, []byte) {}}, [2]bool{true, true})
		if err != nil {
			t.Fatal(err)
		}
		p.start()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.closeStream(executor.Stdout)
			if i%2 == 0 {
				p.closeStream(executor.Stderr)
			}
		}()
		p.finish()
		<-done
		closeFiles(ends[:])
	}
}
