// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// story notes output and the exit of a command in the order in which they are told.
type story struct {
	mu     sync.Mutex
	text   strings.Builder
	exited chan struct{} // closed with the exit
}

func (s *story) config() Config {
	return Config{
		PipeStdin: true, AwaitStreams: true,
		Output: func(_ executor.Stream, p []byte) { s.note(string(p)) },
		Exited: func(code, signal int) {
			s.note(fmt.Sprintf("exit %d %d\n", code, signal))
			close(s.exited)
		},
	}
}

func (s *story) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(text)
}

// TestExitedAfterOutput: the exit is told after everything that was printed before it.
func TestExitedAfterOutput(t *testing.T) {
	for range 20 {
		s := story{exited: make(chan struct{})}
		wait(t, start(t, s.config(), sh("seq 20000; exit 3")))
		if got := s.text.String(); !strings.HasSuffix(got, "\n20000\nexit 3 0\n") {
			t.Fatalf("%.200q", got[max(0, len(got)-40):])
		}
	}
}

// TestAwaitStreams: the exit is told while another process holds the streams, which goes on
// until it is ready.
func TestAwaitStreams(t *testing.T) {
	s := story{exited: make(chan struct{})}
	p := start(t, s.config(), sh("exec 3<&0; (read x <&3; echo late) & echo now; exit 3"))
	within(t, enough, "the exit", func() { <-s.exited })
	if _, err := io.WriteString(p, "go\n"); err != nil {
		t.Fatal(err)
	}
	x := wait(t, p)
	if got := s.text.String(); got != "now\nexit 3 0\nlate\n" || x.StreamsLeftOpen || x.Code != 3 {
		t.Errorf("%q, %+v", got, x)
	}
}

// TestAwaitStreamsStops: Stop ends the wait for streams.
func TestAwaitStreamsStops(t *testing.T) {
	s := story{exited: make(chan struct{})}
	p := start(t, s.config(), sh("sleep 60 & exit 3"))
	within(t, enough, "the exit", func() { <-s.exited })
	p.Stop()
	if x := wait(t, p); !x.StreamsLeftOpen || x.Code != 3 {
		t.Errorf("%+v", x)
	}
}
