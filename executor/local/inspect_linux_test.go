// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAwaitInputAfterOutput checks that a command counts as waiting for input when its
// earlier output was delivered, and not while that is in a pipe or a slow OnOutput.
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
			output, goOn := make(chan struct{}, 10), make(chan struct{})
			spec := newSpec(sandbox.ReadOnly(), "sh", "-c", "echo a; read x")
			tt.set(spec)
			spec.OnOutput = func(executor.Stream, []byte) {
				output <- struct{}{}
				<-goOn
			}
			p := start(t, e, spec)
			answer := make(chan error, 1)
			go func() {
				_, err := p.AwaitInput(t.Context())
				answer <- err
			}()
			<-output
			select {
			case err := <-answer:
				t.Errorf("AwaitInput returned before the output was delivered: %v", err)
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
				t.Error("AwaitInput did not return")
			}
			p.Stop()
			wait(t, p)
		})
	}
}
