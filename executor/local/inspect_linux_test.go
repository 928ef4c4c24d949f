// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAwaitInputAfterOutput: a command waits for input when what it said before has
// been heard, and not while that is in a pipe or in the hands of a slow listener.
func TestAwaitInputAfterOutput(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, tt := range []struct {
		name string
		set  func(*executor.Spec)
	}{
		{"pipes", func(s *executor.Spec) { s.PipeStdin = true }},
		{"terminal", func(s *executor.Spec) { s.TTY = &executor.Size{Cols: 80, Rows: 24} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newExecutor(t)
			heard, goOn := make(chan struct{}, 10), make(chan struct{})
			spec := newSpec(sandbox.ReadOnly(), "sh", "-c", "echo a; read x")
			tt.set(spec)
			spec.OnOutput = func(executor.Stream, []byte) {
				heard <- struct{}{}
				<-goOn
			}
			p := start(t, e, spec)
			answer := make(chan error, 1)
			go func() {
				_, err := p.AwaitInput(t.Context())
				answer <- err
			}()
			<-heard
			select {
			case err := <-answer:
				t.Errorf("it waits, they say before its output was heard: %v", err)
				answer <- err
			case <-time.After(300 * time.Millisecond): // many looks
			}
			close(goOn)
			select {
			case err := <-answer:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(enough):
				t.Error("it never waits")
			}
			p.Stop()
			wait(t, p)
		})
	}
}
